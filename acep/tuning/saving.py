"""Measure whether a budget saves time: it takes time to decide what to keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from acep.tuning.curve import CurvePoint
from acep.tuning.replay import Meter, SampleRun

__all__ = ["SAVING_SHARE", "Saving", "saving_of"]

SAVING_SHARE = 0.95
"""What is recommended takes at most this part of the work, and a budget also of the time, of the exact run."""

ROUNDS = 3


@dataclass(frozen=True)
class Saving:
    """The seconds of processor time of the ``exact`` replay and of one under a ``budget``: of each the least of a few
    that were run by turns."""

    exact: float
    budget: float

    @property
    def ratio(self) -> float:
        """Return the time under the budget, in parts of that of the exact replay."""
        return self.budget / max(self.exact, 1e-9)


def saving_of(exact: SampleRun, point: CurvePoint, run: Callable[[float | None], SampleRun], meter: Meter) -> Saving:
    """Replay a sample exactly and under the budget of a ``point`` of the curve by turns, as far as there is work left.
    ``run`` replays it under a budget of work (``None``: exactly)."""
    seconds = [exact.seconds], [point.seconds]
    for _ in range(ROUNDS):
        if not meter.affords(exact.touches + point.work * exact.events, "the time under a budget"):
            break
        for measured, work in zip(seconds, (None, point.budget), strict=True):
            measured.append(run(work).seconds)
    return Saving(min(seconds[0]), min(seconds[1]))
