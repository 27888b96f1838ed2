"""Choose among runs for NON OVERLAP and LONGEST NON OVERLAP, in time linear in the events, and make them matches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch, Column, column_of_values
from acep.matches.found_columns import FoundColumns
from acep.pattern import expressions as ex
from acep.plan.compile import Plan
from acep.reference.bindings import aggregate
from acep.runtime.run_rows import RunRows, batch_column

__all__ = ["first_ending_runs", "longest_runs", "matches_of_runs"]

Ints = npt.NDArray[np.int64]


def longest_runs(rows: RunRows) -> tuple[Ints, Ints]:
    """Return the first and the last event of the runs of LONGEST NON OVERLAP: the longest one from the first start,
    then the next one that starts after it."""
    size = len(rows)
    ends = _longest_ends(rows)
    starts = np.flatnonzero(rows.is_start & (ends >= 0))
    following = np.searchsorted(starts, np.arange(size + 1)).tolist()
    first_events, last_events = starts.tolist(), ends[starts].tolist()
    chosen: list[int] = []
    place = 0
    while place < len(first_events):
        chosen.append(place)
        place = following[last_events[place] + 1]
    return starts[chosen], ends[starts[chosen]]


def _longest_ends(rows: RunRows) -> Ints:
    """Return the last event of the longest match from each event; -1 if there is none."""
    size = len(rows)
    numbers = np.arange(size)
    ends = np.where(rows.latest[rows.reach] >= numbers, rows.reach, -1)
    rises = (rows.latest[1:] >= rows.latest[:-1]) | (rows.begins[1:] == numbers[1:])
    if (ends >= 0).all() or rises.all():  # what fails at the end of the run fails before
        return ends
    latest, reach = rows.latest.tolist(), rows.reach.tolist()
    # The events that may end a match from here on, the last one on top. One that may not end it goes for good.
    stack: list[int] = []
    seen = 0
    for start in range(size):
        while seen <= reach[start]:
            stack.append(seen)
            seen += 1
        while stack and latest[stack[-1]] < start:
            stack.pop()
        ends[start] = stack[-1] if stack else -1
    return ends


def first_ending_runs(rows: RunRows) -> tuple[Ints, Ints]:
    """Return the first and the last event of the runs of NON OVERLAP: the one that ends first, and of these the one
    that starts first, then the next one that starts after it."""
    size = len(rows)
    starts = np.append(np.flatnonzero(rows.is_start), size)
    following = starts[np.searchsorted(starts, np.arange(size + 1))]
    earliest = following[np.searchsorted(rows.reach, np.arange(size))]  # whose longest run reaches each event
    ends = np.flatnonzero(earliest <= np.minimum(rows.latest, np.arange(size)))
    next_starts = following.tolist()
    chosen: list[tuple[int, int]] = []
    free = next_starts[0]  # the first start after the last match
    for end, start, latest in zip(ends.tolist(), earliest[ends].tolist(), rows.latest[ends].tolist(), strict=True):
        if free <= latest:
            chosen.append((max(free, start), end))
            free = next_starts[end + 1]
    pairs = np.array(chosen, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def matches_of_runs(plan: Plan, batch: Batch, rows: RunRows, firsts: Ints, lasts: Ints) -> FoundColumns:
    """Return runs as matches."""
    begun, ended = rows.rows[firsts], rows.rows[lasts]
    sizes = lasts - firsts + 1
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    events = np.arange(offsets[-1]) + np.repeat(firsts - offsets[:-1], sizes)
    return FoundColumns(
        start=batch.ts[begun],
        end=batch.ts[ended],
        bundle=_bundles(plan, batch.ts[ended], rows.positions[lasts], rows.begins[lasts]),
        error=np.zeros(len(firsts), np.int64),
        scale=plan.automaton.costs.scale,
        keys=tuple(batch_column(plan, batch, name).at(begun) for name in plan.keys),
        offsets=offsets,
        ids=_ids_at(batch, rows.rows[events], rows.positions[events]),
        vars=np.zeros(len(events), np.uint16),
        variables=plan.variables,
        values=tuple(_returned(plan, batch, rows.rows[events], offsets)),
    )


def _ids_at(batch: Batch, rows: Ints, positions: Ints) -> Any:
    if batch.ids is None:
        return positions
    if isinstance(batch.ids, list):
        return np.array(batch.ids, dtype=object)[rows]
    return np.asarray(batch.ids, np.int64)[rows]


def _bundles(plan: Plan, points: Ints, positions: Ints, partitions: Ints) -> Ints:
    """Return the bundle of each match: those of a partition come one after another."""
    begins = np.ones(len(points), bool)
    begins[1:] = partitions[1:] != partitions[:-1]
    span = plan.window.span
    if span is not None:  # a difference of two ticks may exceed 63 bits
        places = positions if plan.window.counted else points
        begins[1:] |= (places[1:] - places[:-1]).view(np.uint64) > np.uint64(min(span, 2**63))
    numbers = np.flatnonzero(begins)
    return np.repeat(points[numbers], np.diff(numbers, append=len(points)))


def _returned(plan: Plan, batch: Batch, rows: Ints, offsets: Ints) -> Iterator[Column]:
    """Yield the values of RETURN of matches, whose events are ``rows``, match after match from ``offsets``."""
    bounds = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    lists: dict[str, list[Any]] = {}
    for (_, compiled), kind in zip(plan.returns, plan.return_kinds, strict=True):
        leaves = []
        for leaf in compiled.leaves:
            if not isinstance(leaf, ex.Length) and leaf.name is not None and leaf.name not in lists:
                lists[leaf.name] = batch_column(plan, batch, leaf.name).at(rows).to_list()
            leaves.append(_values_of_leaf(leaf, lists, bounds, plan))
        values = (
            [compiled.run(row) for row in zip(*leaves, strict=True)] if leaves else [compiled.run(())] * len(bounds)
        )
        yield column_of_values(values, kind)


def _values_of_leaf(leaf: ex.Leaf, lists: dict[str, list[Any]], bounds: list[tuple[int, int]], plan: Plan) -> list[Any]:
    """Return the value of a reference in each match."""
    match leaf:
        case ex.Length() | ex.Aggregate(function="count", name=None):
            return [end - begin for begin, end in bounds]
        case ex.Attribute(index=int() as number, name=name):
            values = lists[name]
            return [values[begin + number - 1] if begin + number <= end else None for begin, end in bounds]
        case ex.Attribute(name=name):
            values = lists[name]
            return [values[end - 1] for _, end in bounds]
        case ex.Aggregate(function=function, name=str(name)):
            values, scale = lists[name], plan.schema.scale(name) or 0
            return [aggregate(function, values[begin:end], scale) for begin, end in bounds]
    raise AssertionError(leaf)
