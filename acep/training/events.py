"""Learn the utility of single events by type and values: events bound by matches, and trials of what can be shed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep.events.batch import Batch
from acep.events.tables import batch_of
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns
from acep.native.session import NativeSession
from acep.plan.choice import base_engine
from acep.plan.compile import Plan
from acep.runtime.match_blocks import blocks_of
from acep.shedding.event_utility import CELLS, EventUtility, bin_values, is_sheddable, numeric_attributes
from acep.training.match_points import Ints, Partitions, points_of, recall_of

__all__ = ["learn_event_utility", "select_bindable"]

LEARNED_SHARE = 0.6  # share of the events to learn from before orders are tried on the others
SHARES = (0.0625, 0.125, 0.25, 0.375, 0.5, 0.75)  # shares of the events that are kept in trials
MOST_TYPES = 31
BINS = 16  # most bins of an attribute
MARKED_MATCHES = 1 << 21  # matches up to which bound events are marked; then the rest of the events is not used
ENOUGH = 30  # match points needed to learn from, and for a trial
PRIOR = 8.0  # events that are added to each cell, with the mean utility

Bools = npt.NDArray[np.bool_]


def learn_event_utility(plan: Plan, engine: str, table: pa.Table) -> EventUtility | None:
    """Learn which events of a stream to keep if not all can be carried, from a table of past events.

    Three orders of cells are tried on the last two fifths of the events: by utility, the share of the events that some
    match binds; the same share of the events of each type; the same number of events of each type. Returns the one that
    finds the most; ``None`` if events may not be shed (:func:`is_sheddable`), if a column is a field of another, if
    matches are too few, or if no order finds more than equal chances.
    """
    schema = plan.schema
    columns = {name for name in (schema.ts, schema.seq, schema.type, *plan.columns) if name is not None}
    if not is_sheddable(plan) or schema.type is None or not columns <= set(table.column_names):
        return None
    by_time = [(name, "ascending") for name in (schema.ts, schema.seq) if name is not None]
    table = select_bindable(plan, table).sort_by(by_time)
    border = int(LEARNED_SHARE * len(table))
    past, trial = table.slice(0, border), table.slice(border)
    is_bound, points = _mark_bound(plan, past)
    past = past.slice(0, len(is_bound))
    partitions = Partitions()
    every = _points(plan, engine, trial, partitions)
    if points < ENOUGH or len(every) < ENOUGH:
        return None
    best, gain = None, 0.0
    for order in _orders(plan, past, is_bound):
        utility, advantage = _try_order(order, plan, engine, trial, every, partitions)
        if advantage > gain:
            best, gain = utility, advantage
    return best


def _mark_bound(plan: Plan, table: pa.Table) -> tuple[Bools, int]:
    """Return which events some match binds, and the number of match points; where matches are very many, only of the
    first events."""
    batch = _batch(plan, table)
    is_bound, matches, points = np.zeros(len(table), bool), 0, 0
    for block, _ in blocks_of(plan, "native", batch):
        if not isinstance(block, FoundColumns) or not len(block):
            continue
        is_bound[block.ids] = True
        points += len(np.unique(block.end))
        matches += len(block)
        if matches > MARKED_MATCHES and plan.window.span is not None:  # no later match binds an event before its window
            return is_bound[: np.searchsorted(batch.ts, block.end[-1] - plan.window.span)], points
    return is_bound, points


def _points(plan: Plan, engine: str, table: pa.Table, partitions: Partitions) -> Ints:
    """Return the match points of a table, int64[n, 3]."""
    session = NativeSession([plan], [engine])
    is_counting = base_engine(engine) == "nodes"
    if is_counting:
        session.tally(0, "points")
    session.push(_batch(plan, table))
    session.finish()
    points = session.take_tally(0, "points") if is_counting else session.take_points(0)
    assert isinstance(points, Counted)
    return np.unique(points_of(points, partitions), axis=0)


def _batch(plan: Plan, table: pa.Table) -> Batch:
    """Return a table as a batch whose ids are positions."""
    return replace(batch_of(table, plan.schema, plan.columns), ids=range(len(table)))


def _orders(plan: Plan, table: pa.Table, is_bound: Bools) -> Iterator[EventUtility]:
    """Yield each order of cells, without its recall."""
    types, bins = _types_of(plan, table), _bins_of(plan, table, is_bound)
    size = (len(types) + 1) * prod(len(edges) + 1 for _, edges in bins)
    plain = EventUtility(plan.fingerprint, types, bins, tuple(range(size)), (0.0,) * size, (), ())
    cell = plain.cells(table, table[plan.schema.type])
    events, useful = (np.bincount(cells, minlength=size).astype(float) for cells in (cell, cell[is_bound]))
    utility = (useful + PRIOR * is_bound.mean()) / (events + PRIOR)
    type_of_cell = np.arange(size) // (size // (len(types) + 1))
    best = np.argsort(-utility, kind="stable")
    events_so_far = np.zeros(size)  # events of the cell's type in cells that are as useful or more
    for type_index in range(len(types) + 1):
        cells = best[type_of_cell[best] == type_index]
        events_so_far[cells] = np.cumsum(events[cells])
    total = np.bincount(type_of_cell, events)[type_of_cell]
    for rank in (-utility, events_so_far / np.maximum(total, 1), events_so_far):
        order = np.argsort(rank, kind="stable")
        yield replace(plain, order=tuple(order.tolist()), events=tuple((events / events.sum()).tolist()))


def select_bindable(plan: Plan, table: pa.Table) -> pa.Table:
    """Return the events whose types the plan can bind."""
    types_asked = {name for letter in plan.automaton.letters for name in letter.types}
    if not all(letter.types for letter in plan.automaton.letters):
        return table
    types = pc.cast(table[plan.schema.type], pa.string())
    return table.filter(pc.is_in(types, value_set=pa.array(sorted(types_asked), pa.string())))


def _types_of(plan: Plan, table: pa.Table) -> tuple[str, ...]:
    """Return the most frequent types."""
    counts = pc.value_counts(pc.cast(table[plan.schema.type], pa.string())).to_pylist()
    frequencies = sorted((-entry["counts"], entry["values"]) for entry in counts if entry["values"] is not None)
    return tuple(name for _, name in frequencies[:MOST_TYPES])


def _bins_of(plan: Plan, table: pa.Table, is_bound: Bools) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Return up to two attributes that tell most of whether an event is bound, with the edges of their bins."""
    max_cells = CELLS // (len(_types_of(plan, table)) + 1)
    scored = []
    for name in numeric_attributes(plan):
        values = pc.cast(table[name], pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        finite = values[np.isfinite(values)]
        if len(finite):
            edges = np.quantile(finite, np.linspace(0, 1, BINS + 1)[1:-1])
            cell = bin_values(values, tuple(np.unique(edges).tolist()))
            events, useful = np.bincount(cell), np.bincount(cell, weights=is_bound)
            scored.append((-float((useful**2 / np.maximum(events, 1)).sum()), name, finite))
    best = sorted(scored, key=lambda entry: entry[:2])[:2]
    n_bins = min(BINS, int(max_cells ** (1 / max(len(best), 1))))
    if n_bins < 2:
        return ()
    marks = np.linspace(0, 1, n_bins + 1)[1:-1]
    return tuple((name, tuple(np.unique(np.quantile(finite, marks)).tolist())) for _, name, finite in best)


def _try_order(
    utility: EventUtility, plan: Plan, engine: str, table: pa.Table, every: Ints, partitions: Partitions
) -> tuple[EventUtility, float]:
    """Measure the recall of match points if only the first cells are kept, and return with it how much more that is
    than equal chances would find, summed over the trials; ``every`` are the points of the table."""
    rank = np.argsort(utility.order)[utility.cells(table, table[plan.schema.type])]
    shares = np.cumsum(np.bincount(rank, minlength=len(utility.order))) / len(table)
    n_kept = np.unique(np.searchsorted(shares, SHARES, "right"))
    n_kept = n_kept[(n_kept > 0) & (n_kept < len(shares))]
    points_by_trial = [_points(plan, engine, table.filter(pa.array(rank < n)), partitions) for n in n_kept]
    recall = tuple(recall_of(points, every)[0] for points in points_by_trial)
    return replace(utility, n_kept=tuple(n_kept.tolist()), recall=recall), float(sum(recall) - shares[n_kept - 1].sum())
