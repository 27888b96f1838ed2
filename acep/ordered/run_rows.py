"""Compute over whole columns where the runs of a query may begin, how far they reach, and where they may end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch, Column
from acep.ordered.partition_rows import RowsByPartition, batch_column, has_type, rows_by_partition
from acep.pattern import expressions as ex
from acep.pattern.walk import leaves_of
from acep.plan.chosen.query_runs import RunsPlan
from acep.plan.chosen.run_conditions import LatestStart, StartKind, earlier
from acep.plan.compile import Plan
from acep.plan.schema import Kind
from acep.row_patterns.row_values import Evaluator

__all__ = ["RunColumns", "RunRows", "rows_of_runs"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RunRows:
    """The n ``events`` that fit the variable. ``is_start``: whether a run may begin with each. ``reach``: the last
    event of the longest run that begins with each; it never falls. ``latest``: the last event with which a run may
    begin so that each may be the last one of a match; -1 if none."""

    events: RowsByPartition
    is_start: Bits
    reach: Ints
    latest: Ints

    def __len__(self) -> int:
        return len(self.events)


def rows_of_runs(
    runs: RunsPlan, plan: Plan, batch: Batch, rows: RowsByPartition | None = None, evaluator: Evaluator | None = None
) -> RunRows:
    """Return the events of a batch, or of some ``rows`` of it, that fit, and the runs that they can be in.
    ``evaluator``: as :class:`RunColumns` has it."""
    return RunColumns(runs, plan, batch, rows, evaluator).run_rows()


class RunColumns:
    """The columns of a batch, and of those of its events that fit. ``evaluator``: that of a stream, whose columns of
    earlier batches are not needed any more."""

    def __init__(
        self,
        runs: RunsPlan,
        plan: Plan,
        batch: Batch,
        rows: RowsByPartition | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        self.runs, self.plan, self.batch = runs, plan, batch
        self.evaluator = Evaluator(plan.schema.tick_ns) if evaluator is None else evaluator
        self.evaluator.forget_texts()
        self.events = (rows_by_partition(plan, batch) if rows is None else rows).select_rows(self.fits())
        self.rows, self.positions, self.begins = self.events.rows, self.events.positions, self.events.begins
        self.ts = batch.ts[self.rows]

    def run_rows(self) -> RunRows:
        """Return what the columns say of runs."""
        numbers = np.arange(len(self.rows))
        latest = numbers - (self.runs.low - 1)
        if self.runs.ends is not None:
            latest = np.minimum(latest, self._latest(self.runs.ends))
        return RunRows(self.events, self.is_start(), self._reach(), latest)

    def column(self, name: str) -> Column:
        """Return a column of the batch."""
        return batch_column(self.plan, self.batch, name)

    def fits(self) -> Bits:
        """Return whether each row of the batch fits."""
        return self.holds(self.runs.fitting, np.arange(len(self.batch))) & has_type(self.batch, self.runs.types)

    def is_start(self) -> Bits:
        """Return whether a run may begin with each event."""
        return self.holds(self.runs.starting, self.rows)

    def holds(self, conditions: Iterable[ex.Expr], rows: Ints, before: Ints | None = None) -> Bits:
        """Return whether conditions are true for events, each with another one ``before``."""
        holds = np.ones(len(rows), bool)
        for condition in conditions:
            names = {leaf.name for leaf in leaves_of(condition) if isinstance(leaf, ex.Attribute)}
            inputs: dict[str, Column] = {}
            for name in {*self.plan.row, self.plan.schema.ts}:
                if name in names:
                    inputs[name] = self.column(name).take(rows)
                if before is not None and earlier(name) in names:
                    inputs[earlier(name)] = self.column(name).take(before)
            holds &= self.evaluator.truths(condition, inputs, len(rows)) != 0
        return holds

    # ---- how far runs reach

    def reach_by_links(self) -> Ints:
        """Return the last event of the longest run from each event whose number and window are not bounded."""
        numbers = np.arange(len(self.rows))
        breaks = self.begins == numbers
        if self.runs.adjacent:
            breaks[1:] |= self.positions[1:] != self.positions[:-1] + 1
        edges = np.append(np.flatnonzero(breaks), len(self.rows))
        reach: Ints = np.repeat(edges[1:] - 1, np.diff(edges))
        for condition, steps in self.runs.linking:
            before = np.concatenate([self.rows[:1].repeat(min(steps, len(self.rows))), self.rows[:-steps]])
            fails = ~self.holds([condition], self.rows, before) & (numbers - steps >= self.begins)
            failures = np.flatnonzero(fails)
            begins = np.maximum(failures - steps + 1, 0)  # from these starts on a run does not end before the failure
            first_failures = np.append(failures, len(self.rows))
            reach = np.minimum(reach, np.repeat(first_failures - 1, np.diff(begins, prepend=0, append=len(self.rows))))
        return reach

    def _reach(self) -> Ints:
        """Return the last event of the longest run from each event."""
        numbers, reach = np.arange(len(self.rows)), self.reach_by_links()
        if self.runs.high is not None:
            reach = np.minimum(reach, numbers + (self.runs.high - 1))
        span = self.plan.window.span
        if span is not None:
            reach = np.minimum(reach, self._last_within(self.positions if self.plan.window.counted else self.ts, span))
        return reach

    def _last_within(self, places: Ints, span: int) -> Ints:
        """Return the last event of the partition whose place is at most ``span`` after that of each event."""
        reach = np.empty(len(places), np.int64)
        edges = np.append(np.flatnonzero(self.begins == np.arange(len(places))), len(places))
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            offsets = places[begin:end] - places[begin]  # a difference of two ticks may exceed 63 bits
            if int(places[end - 1]) - int(places[begin]) <= span:
                reach[begin:end] = end - 1
            else:
                limits = np.minimum(offsets.view(np.uint64) + np.uint64(min(span, 2**63)), np.uint64(2**64 - 1))
                reach[begin:end] = begin - 1 + np.searchsorted(offsets.view(np.uint64), limits, "right")
        return reach

    # ---- the latest start for each end

    def _latest(self, condition: LatestStart) -> Ints:
        """Return the latest event with which a run may begin so that a condition holds where it ends with each event;
        -1 if there is none."""
        numbers = np.arange(len(self.rows))
        match condition.kind:
            case StartKind.BOTH:
                return reduce(np.minimum, map(self._latest, condition.parts))
            case StartKind.EITHER:
                return reduce(np.maximum, map(self._latest, condition.parts))
            case StartKind.LENGTH:
                return numbers - (max(condition.threshold, 1) - 1)
            case StartKind.END:
                assert condition.expr is not None
                return np.where(self.holds([condition.expr], self.rows), numbers, -1)
            case StartKind.ANY:
                assert condition.expr is not None
                return np.maximum.accumulate(np.where(self.holds([condition.expr], self.rows), numbers, -1))
            case StartKind.SPAN:
                assert condition.expr is not None
                return self._latest_by_times(condition.expr)
        assert condition.column is not None
        if condition.threshold <= 0:
            return numbers
        column = self.column(condition.column).take(self.rows)
        valid = np.ones(len(numbers), bool) if column.valid is None else column.valid != 0
        if condition.kind == StartKind.VALUES:
            counts, places = np.cumsum(valid), np.flatnonzero(valid)
            nth = counts - condition.threshold
            return np.where(nth >= 0, places[np.maximum(nth, 0)], -1) if len(places) else np.full(len(numbers), -1)
        return _latest_of_distinct(_value_numbers(column), valid, self.begins, condition.threshold)

    def _latest_by_times(self, condition: ex.Expr) -> Ints:
        """Do the same for a condition of the times of the first and the last event that is true for the early ones of
        the events of a partition, and false for the others: halve what is left of them."""
        low, high = self.begins - 1, np.arange(len(self.rows))
        while (low < high).any():
            middle = np.maximum(low + (high - low + 1) // 2, 0)
            holds = self.holds([condition], self.rows, self.rows[middle])
            low = np.where((low < high) & holds, middle, low)
            high = np.where((low < high) & ~holds, middle - 1, high)
        return np.where(low < self.begins, -1, low)


def _value_numbers(column: Column) -> list[Any]:
    """Return a number for each value, the same for equal ones."""
    values: Any = column.values
    if column.kind is Kind.STRING:
        numbers: dict[str, int] = {}
        values = np.array([numbers.setdefault(text, len(numbers)) for text in column.texts or ("",)])[values]
    return values.tolist()  # type: ignore[no-any-return]


def _latest_of_distinct(values: list[Any], valid: Bits, begins: Ints, threshold: int) -> Ints:
    """Return for each event the latest one from which there are ``threshold`` different values up to it; -1 if there is
    none.

    >>> zero = np.zeros(4, np.int64)
    >>> _latest_of_distinct([5, 6, 5, 7], zero == 0, zero, 2).tolist()
    [-1, 0, 1, 2]
    """
    counts: Counter[Any] = Counter()
    start, latest = 0, []
    flags, firsts = valid.tolist(), begins.tolist()
    for end, value in enumerate(values):
        if firsts[end] == end:
            counts.clear()
            start = end
        if flags[end]:
            counts[value] += 1
        # The window keeps ``threshold`` values, and loses its first event while it keeps them.
        while len(counts) >= threshold:
            first = values[start]
            if flags[start]:
                if counts[first] == 1 and len(counts) == threshold:
                    break
                counts[first] -= 1
                if not counts[first]:
                    del counts[first]
            start += 1
        latest.append(start if len(counts) >= threshold else -1)
    return np.array(latest, np.int64)
