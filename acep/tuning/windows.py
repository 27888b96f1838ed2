"""Try shorter windows: what they find of a sample, or only what they cost where the sample is too small for that."""

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
from acep.tuning.replay import Meter, SampleRun, measure_fit, replay
from acep.tuning.trials import CHOOSING

__all__ = ["WindowCost", "WindowTrial", "cheapest_window", "shorten_window", "window_costs", "window_trials"]

PARTS = (Fraction(3, 4), Fraction(1, 2), Fraction(1, 4), Fraction(1, 8))
"""The windows that are tried, in parts of the window."""

COST_PARTS = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 16), Fraction(1, 32))
"""The windows whose cost alone is measured: they are shorter, as the query itself costs too much."""

COST_SHARE = 40
"""The replay of such a window may take one part in so many of all touches, as that of the query itself may."""


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


@dataclass(frozen=True)
class WindowCost:
    """An exact replay under a shorter ``window``, as WITHIN reads it, of as many of the first ``events`` of the sample
    before it was cut as can be replayed: the ``work`` of an event, and the ``matches``."""

    window: str
    events: int
    work: float
    matches: int


def window_costs(
    table: pa.Table, plan: Plan, columns: Mapping[str, Any], meter: Meter, engine: str
) -> Iterator[WindowCost]:
    """Yield what shorter windows cost, the longest first, up to the first one under which the whole table can be
    replayed. Those that are left out are noted as cut."""
    query = plan.query
    if query.within is None or query.graph is not None or plan.sources:
        return
    touches = max(meter.limit // COST_SHARE, 1)
    for part in COST_PARTS:
        shorter_window = shorten_window(query.within, part)
        if shorter_window is None:
            return
        name, shortened = f"WITHIN {window_text(shorter_window)}", replace(query, within=shorter_window)
        if not meter.affords(2 * touches, name):
            continue
        n_events = measure_fit(table, shortened, columns, meter, touches, engine, CHOOSING).events
        if not n_events:
            meter.cut.append(f"{name}: not measured, as the first events alone take too many touches or matches")
            continue
        run = replay(table.slice(0, n_events), shortened, columns, Partitions(), meter, engine=engine)
        yield WindowCost(window_text(shorter_window), n_events, run.work, run.matches)
        if n_events == table.num_rows:
            return


def window_trials(
    table: pa.Table, plan: Plan, columns: Mapping[str, Any], exact: SampleRun, meter: Meter, kind: str, engine: str,
    partitions: Partitions,
) -> Iterator[WindowTrial]:  # fmt: skip
    """Yield shorter windows, the longest first, each with what it finds; ``kind``: the recall that is asked for."""
    query = plan.query
    if query.within is None or query.graph is not None or plan.sources:
        return
    for part in PARTS:
        shorter_window = shorten_window(query.within, part)
        if shorter_window is None:
            return
        if not meter.affords(exact.touches, f"WITHIN {window_text(shorter_window)}"):
            continue
        run = replay(table, replace(query, within=shorter_window), columns, partitions, meter, engine=engine)
        recall, bundle_recall = run.recall(exact)
        low, high = interval(recall if kind == "points" else bundle_recall, exact.draws_of(kind))
        yield WindowTrial(window_text(shorter_window), run.work, recall, bundle_recall, low, high)


def shorten_window(window: Within, part: Fraction) -> Within | None:
    """Return a part of a window, in whole events or ticks; ``None`` if nothing is left.

    >>> [shorten_window(Within(Fraction(n), "events"), Fraction(1, 2)) for n in (5, 1)]
    [Within(amount=Fraction(2, 1), unit='events'), None]
    """
    amount = window.amount * part
    if window.unit != "ns":
        amount = Fraction(int(amount))
    return Within(amount, window.unit) if amount >= 1 else None


def cheapest_window(trials: Sequence[WindowTrial], target: float, kind: str) -> WindowTrial | None:
    """Return the window that takes the least work among those that reach a target recall."""
    good = [trial for trial in trials if (trial.recall if kind == "points" else trial.bundle_recall) >= target]
    return min(good, key=lambda trial: trial.work, default=None)
