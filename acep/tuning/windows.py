"""Try shorter windows on a sample: they save work as a budget does, and what they find is defined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from acep.pattern.times import window_text
from acep.pattern.tree import Within
from acep.plan.compile import Plan
from acep.training.match_points import Partitions
from acep.tuning.curve import interval
from acep.tuning.replay import Meter, SampleRun, replay

__all__ = ["WindowTrial", "cheapest_window", "shorter", "window_trials"]

PARTS = (Fraction(3, 4), Fraction(1, 2), Fraction(1, 4), Fraction(1, 8))
"""The windows that are tried, in parts of the window."""


@dataclass(frozen=True)
class WindowTrial:
    """An exact replay under a shorter ``window``, as WITHIN reads it: the ``work`` that it took, its ``recall`` of the
    match points that the query has and its ``bundle_recall``, and the 90 % interval of the recall that is asked for
    (:func:`acep.tuning.curve.interval`)."""

    window: str
    work: float
    recall: float
    bundle_recall: float
    low: float
    high: float


def window_trials(
    table: pa.Table, plan: Plan, columns: Mapping[str, Any], exact: SampleRun, meter: Meter, of: str, engine: str,
    partitions: Partitions,
) -> Iterator[WindowTrial]:  # fmt: skip
    """Yield shorter windows, the longest first, each with what it finds; ``of``: the recall that is asked for."""
    query = plan.query
    if query.within is None or query.graph is not None or plan.sources:
        return
    for part in PARTS:
        within = shorter(query.within, part)
        if within is None or not meter.affords(exact.touches, f"WITHIN {window_text(within)}"):
            return
        run = replay(table, replace(query, within=within), columns, partitions, meter, engine=engine)
        recall, bundle_recall = run.recall(exact)
        low, high = interval(recall if of == "points" else bundle_recall, exact.draws_of(of))
        yield WindowTrial(window_text(within), run.work, recall, bundle_recall, low, high)


def shorter(within: Within, part: Fraction) -> Within | None:
    """Return a part of a window, in whole events or ticks; ``None`` if nothing is left.

    >>> shorter(Within(Fraction(5), "events"), Fraction(1, 2)), shorter(Within(Fraction(1), "events"), Fraction(1, 2))
    (Within(amount=Fraction(2, 1), unit='events'), None)
    """
    amount = within.amount * part
    if within.unit != "ns":
        amount = Fraction(int(amount))
    return Within(amount, within.unit) if amount >= 1 else None


def cheapest_window(trials: Sequence[WindowTrial], target: float, of: str) -> WindowTrial | None:
    """Return the window that takes the least work among those that reach a target recall."""
    good = [trial for trial in trials if (trial.recall if of == "points" else trial.bundle_recall) >= target]
    return min(good, key=lambda trial: trial.work, default=None)
