"""Make matches of intervals of the rows of partitions, with the values of RETURN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch, Column, column_of_values
from acep.matches.found_columns import FoundColumns
from acep.ordered.partition_rows import RowsByPartition, batch_column
from acep.pattern import expressions as ex
from acep.plan.compile import Plan
from acep.reference.bindings import aggregate

__all__ = ["ChosenIntervals", "matches_of_intervals"]

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint16]
Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ChosenIntervals:
    """Matches of some of ``rows``, partition by partition and in their order there.

    ``places``: which of the rows are their events, those of match i from ``offsets[i]`` on. ``variables``: of the
    events, as indices of those of the plan. ``open_from``: for each partition the first of the rows with which a match
    may begin that later events extend; ``None``: there are no later ones. ``work``: how many rows were met.
    """

    rows: RowsByPartition
    offsets: Ints
    places: Ints
    variables: Codes
    open_from: Ints | None
    work: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def firsts(self) -> Ints:
        """Return the first row of each match."""
        return self.places[self.offsets[:-1]]

    @property
    def lasts(self) -> Ints:
        """Return the last row of each match."""
        return self.places[self.offsets[1:] - 1]

    def next_starts(self, plan: Plan) -> Ints:
        """Return for each match the first row with which another one may begin after it."""
        skip, firsts = plan.query.skip, self.firsts
        if skip is None:
            return self.lasts + 1
        if skip.place == "next":
            return firsts + 1
        is_target = self.variables == plan.variables.index(skip.variable)
        of_targets = np.repeat(np.arange(len(self)), np.diff(self.offsets))[is_target]
        targets = self.places[is_target]
        if skip.place == "first":
            of_targets, targets = of_targets[::-1], targets[::-1]
        starts = firsts + 1
        starts[of_targets] = np.maximum(starts[of_targets], targets)  # of several the last one counts
        return starts

    def select_matches(self, is_kept: Bits) -> ChosenIntervals:
        """Return some of the matches."""
        sizes = np.diff(self.offsets)
        of_events = np.repeat(is_kept, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes[is_kept])]).astype(np.int64)
        return replace(self, offsets=offsets, places=self.places[of_events], variables=self.variables[of_events])


def matches_of_intervals(plan: Plan, batch: Batch, chosen: ChosenIntervals) -> FoundColumns:
    """Return intervals of the rows of a batch as matches."""
    rows, offsets, places, codes = chosen.rows, chosen.offsets, chosen.places, chosen.variables
    firsts, lasts = chosen.firsts, chosen.lasts
    begun, ended, events = rows.rows[firsts], rows.rows[lasts], rows.rows[places]
    return FoundColumns(
        start=batch.ts[begun],
        end=batch.ts[ended],
        bundle=_bundles(plan, batch.ts[ended], rows.positions[lasts], rows.begins[lasts]),
        error=np.zeros(len(firsts), np.int64),
        scale=plan.automaton.costs.scale,
        keys=tuple(batch_column(plan, batch, name).take(begun) for name in plan.keys),
        offsets=offsets,
        ids=_ids_at(batch, events, rows.positions[places]),
        vars=codes,
        variables=plan.variables,
        values=tuple(_Returned(plan, batch, events, codes, offsets).columns()) if plan.returns else (),
    )


def _ids_at(batch: Batch, rows: Ints, positions: Ints) -> Any:
    if batch.ids is None:
        return positions
    if isinstance(batch.ids, list):
        return np.array(batch.ids, dtype=object)[rows]
    if isinstance(batch.ids, range):
        return batch.ids.start + batch.ids.step * rows
    return np.asarray(batch.ids, np.int64)[rows]


def _bundles(plan: Plan, points: Ints, positions: Ints, partitions: Ints) -> Ints:
    """Return the bundle of each match: those of a partition come one after another, in the order of their starts."""
    order = np.lexsort((positions, partitions))  # matches that overlap may end in another order
    if not (order[1:] > order[:-1]).all():
        bundles = np.empty_like(points)
        bundles[order] = _bundles(plan, points[order], positions[order], partitions[order])
        return bundles
    begins = np.ones(len(points), bool)
    begins[1:] = partitions[1:] != partitions[:-1]
    span = plan.window.span
    if span is not None:  # a difference of two ticks may exceed 63 bits
        places = positions if plan.window.counted else points
        begins[1:] |= (places[1:] - places[:-1]).view(np.uint64) > np.uint64(min(span, 2**63))
    numbers = np.flatnonzero(begins)
    return np.repeat(points[numbers], np.diff(numbers, append=len(points)))


class _Returned:
    """The values of RETURN. ``events``: the rows of all matches; ``codes``: their variables; ``offsets``: where the
    events of each match begin."""

    def __init__(self, plan: Plan, batch: Batch, events: Ints, codes: Codes, offsets: Ints) -> None:
        self.plan, self.batch, self.events = plan, batch, events
        self.codes, self.offsets = codes, offsets
        self.rows: dict[str, tuple[Ints, list[tuple[int, int]]]] = {}  # by variable, and where those of a match are
        self.lists: dict[tuple[str, str], list[Any]] = {}  # by variable and column

    def columns(self) -> Iterator[Column]:
        """Yield the columns of the values."""
        size = len(self.offsets) - 1
        for (_, compiled), kind in zip(self.plan.returns, self.plan.return_kinds, strict=True):
            leaves = [self._values_of_leaf(leaf) for leaf in compiled.leaves]
            values_of_matches = zip(*leaves, strict=True) if leaves else iter([()] * size)
            yield column_of_values([compiled.run(values) for values in values_of_matches], kind)

    def _rows_of(self, variable: str) -> tuple[Ints, list[tuple[int, int]]]:
        if variable not in self.rows:
            is_bound = self.codes == self.plan.variables.index(variable)
            bounds = np.concatenate([[0], np.cumsum(is_bound)])[self.offsets].tolist()
            self.rows[variable] = self.events[is_bound], list(pairwise(bounds))
        return self.rows[variable]

    def _list_of(self, variable: str, name: str) -> list[Any]:
        if (variable, name) not in self.lists:
            rows, _ = self._rows_of(variable)
            self.lists[variable, name] = batch_column(self.plan, self.batch, name).take(rows).to_list()
        return self.lists[variable, name]

    def _values_of_leaf(self, leaf: ex.Leaf) -> list[Any]:
        """Return the value of a reference in each match."""
        _, bounds = self._rows_of(leaf.var)
        match leaf:
            case ex.Length() | ex.Aggregate(function="count", name=None):
                return [end - begin for begin, end in bounds]
            case ex.Attribute(index=int() as number, name=name):
                values = self._list_of(leaf.var, name)
                return [values[begin + number - 1] if begin + number <= end else None for begin, end in bounds]
            case ex.Attribute(name=name):
                values = self._list_of(leaf.var, name)
                return [values[end - 1] if begin < end else None for begin, end in bounds]
            case ex.Aggregate(function=function, name=str(name)):
                values, scale = self._list_of(leaf.var, name), self.plan.schema.scale(name) or 0
                return [aggregate(function, values[begin:end], scale) for begin, end in bounds]
        raise AssertionError(leaf)
