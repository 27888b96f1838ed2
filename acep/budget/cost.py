"""Estimate the cost of events, touches (transition evaluations) and matches in seconds, from measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

__all__ = ["CostModel"]

# Initial costs in seconds; higher than on most machines, so that the first budget is small.
EVENT, TOUCH, MATCH = 2e-6, 2e-8, 5e-7
FIRST = (EVENT, TOUCH, MATCH)
FORGET = 0.95  # weight of old measurements after a new one
TIED = 0.02  # weight of the initial values relative to an average measurement
LEAST_COST = 1e-3  # least cost of a touch and of a match, as a share of the initial values
PAIRS = [(i, k) for i in range(3) for k in range(i, 3)]
SUMS = len(PAIRS) + 3


@dataclass
class CostModel:
    """A cost model ``seconds = event * events + touch * touches + match * matches``, with non-negative coefficients by
    recursive least squares with forgetting (only sums are stored).

    Each measurement is divided by its events, so that small batches count as much as large ones. If all measurements
    have the same number of touches per event, the two costs cannot be separated; then the ratio of the initial values
    is used.

    >>> model = CostModel()
    >>> for events, touches in ((1000, 50_000), (1000, 5_000), (2000, 40_000)):
    ...     model.learn(events, touches, 1e-6 * events + 1e-8 * touches)
    >>> model.event < CostModel().event, model.touch < CostModel().touch
    (True, True)
    """

    event: float = EVENT
    touch: float = TOUCH
    match: float = MATCH
    # Sums of the products of events (1), touches and matches per event, and of seconds per event with each of these.
    sums: list[float] = field(default_factory=lambda: [0.0] * SUMS)

    def learn(
        self, events: int, touches: float, seconds: float, forget: float = FORGET, *, matches: float = 0.0
    ) -> None:
        """Add the measurement of a stretch of ``events``; ``forget`` is the weight of old measurements."""
        if events <= 0 or seconds < 0 or not math.isfinite(seconds):
            return
        # In units of the initial values, with a pull to equal deviations that fades as more is measured.
        x = [count * cost for count, cost in zip((1.0, touches / events, matches / events), FIRST, strict=True)]
        y = seconds / events
        for k, new in enumerate([*(x[i] * x[j] for i, j in PAIRS), *(amount * y for amount in x)]):
            self.sums[k] = forget * self.sums[k] + new
        a = dict(zip(PAIRS, self.sums, strict=False))
        b = self.sums[len(PAIRS) :]
        pull = TIED * sum(a[i, i] for i in range(3)) / max(self.n_measured, 1.0)
        # The overall ratio of measured to initial costs. The pull only raises costs, so the ratio is at least 1.
        level = max(1.0, b[0] / sum(a[0, k] for k in range(3)))
        factors = _least_squares(
            [[a[min(i, j), max(i, j)] + (pull if i == j else 0.0) for j in range(3)] for i in range(3)],
            [amount + pull * level for amount in b],
        )
        self.event, self.touch, self.match = (
            max(factor, lowest) * cost
            for factor, lowest, cost in zip(factors, (0.0, LEAST_COST, LEAST_COST), FIRST, strict=True)
        )

    @property
    def n_measured(self) -> float:
        """Return the weighted number of measurements."""
        return self.sums[0] / EVENT**2

    def state(self) -> list[float]:
        """Return the learned state, for :meth:`restore`."""
        return [self.event, self.touch, self.match, *self.sums]

    @classmethod
    def restore(cls, state: Sequence[float]) -> CostModel:
        """Restore a model from :meth:`state`. Raises :class:`ValueError` for invalid data."""
        numbers = [float(x) for x in state]
        sensible = len(numbers) == 3 + SUMS and all(math.isfinite(x) and x >= 0 for x in numbers)
        if not sensible or min(numbers[1:3]) <= 0:
            raise ValueError("cost model")
        return cls(numbers[0], numbers[1], numbers[2], numbers[3:])


def _least_squares(a: list[list[float]], b: list[float]) -> list[float]:
    """Solve ``a x = b`` (positive definite); negative components are set to 0, the most negative first."""
    components = list(range(len(b)))
    while components:
        solution = np.linalg.solve(
            [[a[i][j] for j in components] for i in components], [b[i] for i in components]
        ).tolist()
        if min(solution) >= 0:
            break
        del components[solution.index(min(solution))]
    values = dict(zip(components, solution, strict=True)) if components else {}
    return [values.get(i, 0.0) for i in range(len(b))]
