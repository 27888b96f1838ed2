"""What events and touches cost in seconds, learned from what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["CostModel"]

EVENT, TOUCH = 2e-6, 2e-8  # seconds; more than they cost on most machines, so that the first allowance is a small one
FORGET = 0.95  # what is left of old measurements after a new one
TIED = 0.02  # how much the first values count beside what was measured (1: as one measurement that deviates by all)


@dataclass
class CostModel:
    """``seconds = event * events + touch * touches``: least squares with forgetting, in the recursive form (what is
    kept are sums), neither of the two negative.

    Each measurement is taken for an event of it, so that small batches count as much as large ones. Where all of
    them have as many touches an event, nothing tells the two apart: then the proportion of the first values
    decides.

    >>> model = CostModel()
    >>> for events, touches in ((1000, 50_000), (1000, 5_000), (2000, 40_000)):
    ...     model.learn(events, touches, 1e-6 * events + 1e-8 * touches)
    >>> model.seconds(1000, 20_000) < CostModel().seconds(1000, 20_000)
    True
    """

    event: float = EVENT
    touch: float = TOUCH
    sums: list[float] = field(default_factory=lambda: [0.0] * 5)  # 1, t, t*t, y, t*y: t touches, y seconds an event

    def learn(self, events: int, touches: float, seconds: float, forget: float = FORGET) -> None:
        """What a stretch of ``events`` was measured to take; ``forget``: what is left of old measurements."""
        if events <= 0 or seconds < 0 or not math.isfinite(seconds):
            return
        t, y = touches / events, seconds / events
        for k, new in enumerate((1.0, t, t * t, y, t * y)):
            self.sums[k] = forget * self.sums[k] + new
        n, st, stt, sy, sty = self.sums
        # In units of the first values, with a pull to equal deviations of both, which fades as measurements tell more.
        level = self._level(n, st, sy)
        a11, a12, a22 = n * EVENT**2, st * EVENT * TOUCH, stt * TOUCH**2
        pull = TIED * (a11 + a22) / max(n, 1.0)
        b1, b2 = sy * EVENT + pull * level, sty * TOUCH + pull * level
        a11, a22 = a11 + pull, a22 + pull
        determinant = a11 * a22 - a12 * a12
        x1, x2 = (b1 * a22 - b2 * a12) / determinant, (a11 * b2 - a12 * b1) / determinant
        if x1 < 0:
            x1, x2 = 0.0, max(0.0, b2 / a22)
        elif x2 < 0:
            x1, x2 = max(0.0, b1 / a11), 0.0
        self.event, self.touch = x1 * EVENT, max(x2 * TOUCH, TOUCH * 1e-3)

    @staticmethod
    def _level(n: float, st: float, sy: float) -> float:
        """By how much all of it is dearer than the first values say; cheaper it must be measured to be."""
        return max(1.0, sy / (n * EVENT + st * TOUCH))

    def seconds(self, events: float, touches: float) -> float:
        """What so many are expected to take."""
        return self.event * events + self.touch * touches

    def touches(self, seconds: float, events: float) -> float:
        """How many touches fit into ``seconds`` beside ``events``; none where the events alone take as long."""
        return max(0.0, seconds - self.event * events) / self.touch

    def state(self) -> list[float]:
        """What it has learned."""
        return [self.event, self.touch, *self.sums]

    @classmethod
    def restore(cls, state: Sequence[float]) -> CostModel:
        """From :meth:`state`. Raises :class:`ValueError` for what is none."""
        numbers = [float(x) for x in state]
        if len(numbers) != 7 or not all(math.isfinite(x) and x >= 0 for x in numbers) or numbers[1] <= 0:
            raise ValueError("cost model")
        return cls(numbers[0], numbers[1], numbers[2:])
