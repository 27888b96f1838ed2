"""Tell whether the first open run of a partition has become a match, from the events that have come since it began.

Conditions of a whole run stay true if events come before its first one. So no later run has become a match either as
long as they fail for the first one.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.ordered.next_events import with_room
from acep.ordered.run_rows import RunColumns
from acep.plan.chosen.query_runs import RunsPlan
from acep.plan.chosen.run_conditions import LatestStart, StartKind, earlier
from acep.plan.schema import Kind

__all__ = ["RunEnds"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]


class RunEnds:
    """One run of each partition, as conditions of a whole run read it: by code the number of its events and the time of
    the first one, and for each condition a count of events, or the different values."""

    def __init__(self, runs: RunsPlan) -> None:
        self.runs = runs
        self.conditions = [] if runs.ends is None else [runs.ends, *_parts(runs.ends)]
        self.sizes, self.begun = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.counts = np.zeros((0, len(self.conditions)), np.int64)
        self.values: dict[tuple[int, int], set[Any]] = {}  # by condition and code

    def make_room(self, size: int) -> None:
        """Make room for so many partitions."""
        room: Any = with_room
        self.sizes, self.begun, self.counts = (room(array, size, 0) for array in (self.sizes, self.begun, self.counts))

    def begin(self, codes: Ints, times: Ints) -> None:
        """Begin with a new run in partitions, at a time in each."""
        self.sizes[codes], self.counts[codes], self.begun[codes] = 0, 0, times
        for number, condition in enumerate(self.conditions):
            if condition.kind == StartKind.DISTINCT:
                self.values.update(((number, code), set()) for code in codes.tolist())

    def add(self, columns: RunColumns, rows: Ints, codes: Ints) -> Bits:
        """Add the events of the columns with some numbers to the runs of their partitions, those of each one after
        another; return for each whether the run that ends with it is a match."""
        if not len(rows):
            return np.zeros(0, bool)
        is_match = self._count(self.sizes, codes, np.ones(len(rows), bool)) >= self.runs.low
        if self.runs.ends is not None:
            is_match &= self._holds(self.runs.ends, columns, rows, codes)
        return is_match

    def _count(self, totals: Ints, codes: Ints, counts: Bits) -> Ints:
        """Add the events that count to the totals of their partitions; return the total up to each."""
        sums = np.cumsum(counts)
        begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        before = np.append(0, sums)[begins]
        up_to: Ints = sums + np.repeat(totals[codes[begins]] - before, np.diff(np.append(begins, len(codes))))
        totals[codes] = up_to  # the last one of each stays
        return up_to

    def _holds(self, condition: LatestStart, columns: RunColumns, rows: Ints, codes: Ints) -> Bits:
        """Return whether a condition holds for the runs that end with events."""
        number = next(place for place, other in enumerate(self.conditions) if other is condition)
        totals = self.counts[:, number]
        match condition.kind:
            case StartKind.BOTH:
                return reduce(np.logical_and, [self._holds(part, columns, rows, codes) for part in condition.parts])
            case StartKind.EITHER:
                return reduce(np.logical_or, [self._holds(part, columns, rows, codes) for part in condition.parts])
            case StartKind.LENGTH:
                return self._count(totals, codes, np.ones(len(rows), bool)) >= condition.threshold
            case StartKind.SPAN:
                return self._spans(condition, columns, rows, codes)
        if condition.expr is not None:
            holds = columns.holds([condition.expr], columns.rows[rows])
            return holds if condition.kind == StartKind.END else self._count(totals, codes, holds) > 0
        assert condition.column is not None
        column = columns.column(condition.column).take(columns.rows[rows])
        is_valid = np.ones(len(rows), bool) if column.valid is None else column.valid != 0
        if condition.kind == StartKind.VALUES:
            return self._count(totals, codes, is_valid) >= condition.threshold
        return self._are_many(number, condition.threshold, column, codes)

    def _spans(self, condition: LatestStart, columns: RunColumns, rows: Ints, codes: Ints) -> Bits:
        """Return whether a condition of the first and the last time holds."""
        assert condition.expr is not None
        schema = columns.plan.schema
        kind = Kind.TIMESTAMP if schema.instants else Kind.INT
        times = {schema.ts: columns.ts[rows], earlier(schema.ts): self.begun[codes]}
        inputs = {name: Column(kind, values) for name, values in times.items()}
        holds: Bits = columns.evaluator.truths(condition.expr, inputs, len(rows)) != 0
        return holds

    def _are_many(self, number: int, threshold: int, column: Column, codes: Ints) -> Bits:
        """Return whether runs have as many different values, no more of which are kept."""
        are_many = []
        for code, value in zip(codes.tolist(), column.to_list(), strict=True):
            values = self.values[number, code]
            if value is not None and len(values) < threshold:
                values.add(value)
            are_many.append(len(values) >= threshold)
        return np.array(are_many, bool)


def _parts(condition: LatestStart) -> list[LatestStart]:
    """Return the conditions that are joined in one."""
    return [inner for part in condition.parts for inner in (part, *_parts(part))]
