"""Measure recall against work: replays of a sample under several budgets, compared with its exact result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt

from acep.tuning.replay import Meter, SampleRun

__all__ = ["CurvePoint", "curve_of", "interval", "knee_of", "least_of"]

SHARES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)  # budgets of the curve, as shares of the exact work
EXTRA_SHARES = (1.5, 2.5, 4.0)  # further ones, if these do not reach the target: decisions are work, too
HALVINGS = 4  # of the space below the least budget that reaches the target
NINETY = 1.6448536269514722  # standard deviations on each side of an interval of 90 %


@dataclass(frozen=True)
class CurvePoint:
    """A replay under ``Budget(work=budget)``: the ``work`` that it took, its ``recall`` of match points and its
    ``bundle_recall``, and whether it was ``exact``. ``low`` and ``high``: the 90 % interval of the recall that is asked
    for (:func:`interval`). ``seconds``: of processor time."""

    budget: float
    work: float
    recall: float
    bundle_recall: float
    exact: bool
    low: float
    high: float
    seconds: float = field(compare=False, default=0.0)


def curve_of(
    exact: SampleRun, run: Callable[[float], SampleRun], meter: Meter, target: float, kind: str
) -> tuple[CurvePoint, ...]:
    """Return the points of a curve by rising budget. ``run`` replays the sample under a budget of work; ``kind``:
    ``"points"`` or ``"bundles"``, whose recall is to reach ``target``. More budgets are tried around the least one that
    does."""
    points: dict[float, CurvePoint] = {}

    def measure(budget: float) -> CurvePoint | None:
        budget = float(f"{budget:.3g}")
        if budget not in points:
            if not meter.affords(1.2 * budget * exact.events, f"budget work={budget:g}"):
                return None
            run_of_budget = run(budget)
            recall, bundle_recall = run_of_budget.recall(exact)
            low, high = interval(recall if kind == "points" else bundle_recall, exact.draws_of(kind))
            points[budget] = CurvePoint(
                budget, run_of_budget.work, recall, bundle_recall, run_of_budget.exact, low, high, run_of_budget.seconds
            )
        return points[budget]

    for share in (*SHARES, *EXTRA_SHARES):
        reached = least_of([*points.values()], target, kind)
        if share in EXTRA_SHARES and reached is not None:
            break
        if measure(share * exact.work) is None:
            break
    for _ in range(HALVINGS):
        reached = least_of([*points.values()], target, kind)
        below = [budget for budget in points if reached is not None and budget < reached.budget]
        if reached is None or not below or measure((max(below) + reached.budget) / 2) is None:
            break
    return tuple(sorted(points.values(), key=lambda point: point.budget))


def least_of(curve: Sequence[CurvePoint], target: float, kind: str) -> CurvePoint | None:
    """Return the least budget from which on every measured one reaches the target, or ``None``.

    >>> one, two = CurvePoint(1, 1, 0.5, 0.9, False, 0, 1), CurvePoint(2, 2, 0.95, 1.0, False, 0, 1)
    >>> least_of([one, two], 0.9, "points").budget, least_of([one, two], 0.9, "bundles").budget
    (2, 1)
    """
    lowest = None
    for point in sorted(curve, key=lambda point: -point.budget):
        if (point.recall if kind == "points" else point.bundle_recall) < target:
            break
        lowest = point
    return lowest


def knee_of(curve: Sequence[CurvePoint], kind: str) -> CurvePoint | None:
    """Return the point of a curve that lies the farthest above the straight line from nothing to its end, which is the
    first exact point, or the last one. From it to each later point a unit of work finds less than up to it. ``None``
    where no point lies above the line by more than chance explains (the lower end of its interval does not).

    >>> def curve_of_rows(*rows):
    ...     return [CurvePoint(budget, 1, recall, recall, recall == 1, recall - 0.1, 1) for budget, recall in rows]
    >>> knee_of(curve_of_rows((1, 0.5), (2, 0.9), (10, 1.0)), "points").budget
    2
    >>> knee_of(curve_of_rows((1, 0.0), (2, 0.1), (10, 1.0), (12, 1.0)), "points") is None
    True
    """
    by_budget = sorted(curve, key=lambda point: point.budget)
    end = next((index for index, point in enumerate(by_budget) if point.exact), len(by_budget) - 1)
    if end < 1:
        return None

    def recall_of(point: CurvePoint) -> float:
        return point.recall if kind == "points" else point.bundle_recall

    slope = recall_of(by_budget[end]) / by_budget[end].budget
    knee = max(by_budget[:end], key=lambda point: recall_of(point) - slope * point.budget)
    return knee if knee.low > slope * knee.budget else None


def interval(share: float, draws: int) -> tuple[float, float]:
    """Return the 90 % interval of a recall (Wilson's), as if each window of the sample with a match were one draw
    (:func:`acep.tuning.replay.draws_in`): the match points of a window are found or lost together.

    >>> low, high = interval(0.9, 100)
    >>> round(low, 2), round(high, 2)
    (0.84, 0.94)
    """
    if not draws:
        return 0.0, 1.0
    square = NINETY**2 / draws
    middle = (share + square / 2) / (1 + square)
    half = NINETY * sqrt(max(0.0, share * (1 - share) / draws + square / (4 * draws))) / (1 + square)
    return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))
