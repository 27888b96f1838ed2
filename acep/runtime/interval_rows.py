"""Find the chosen matches of a query whose conditions are functions of the row, by passes in the native core."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch
from acep.matches.found_columns import ranks_of
from acep.native import _native
from acep.plan.compile import Plan
from acep.plan.decimals import Typed
from acep.plan.ordered.interval_automaton import IntervalSkip, IntervalsPlan, RowCondition, RowFilter
from acep.row_patterns.row_values import Evaluator, truth_bits
from acep.runtime.interval_matches import ChosenIntervals
from acep.runtime.partition_rows import RowsByPartition, batch_column, has_type, ids_rise, rows_by_partition

__all__ = ["IntervalBits", "bits_of_intervals", "find_intervals", "matters", "places_of", "span_of"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]


def find_intervals(
    states: IntervalsPlan, plan: Plan, batch: Batch, *, more: bool, rows: RowsByPartition | None = None
) -> ChosenIntervals | None:
    """Return the matches; ``None`` if the order of ids decides between matches, and is not that of the stream.
    ``more``: events may come after those of the batch. ``rows``: those to look at; ``None``: all."""
    rows = rows_by_partition(plan, batch) if rows is None else rows
    if states.needs_order and not ids_rise(batch, rows, of_one_time=states.needs_order == "time"):
        return None
    ts = np.ascontiguousarray(batch.ts[rows.rows])
    bits, places = bits_of_intervals(states, plan, batch, rows), places_of(plan, batch, rows)
    offsets, places_of_events, labels, open_from, met = _native.search_intervals(
        *bits, rows.edges, ts, places, span_of(plan), states.is_longest, more
    )
    variables = np.argsort(ranks_of(plan.variables)).astype(np.uint16)[labels]
    return ChosenIntervals(rows, offsets, places_of_events, variables, open_from if more else None, met)


class IntervalBits(NamedTuple):
    """The arcs, the ends and the arcs that leave rows out, each with its states and whether it may be taken in each
    row."""

    arcs: list[tuple[int, int, int, Bits | None]]
    ends: list[tuple[int, Bits | None]]
    skips: list[tuple[int, int, Bits | None]]

    def where(self, is_wanted: npt.NDArray[np.bool_]) -> IntervalBits:
        """Return the bits of some of the rows."""

        def of(bits: Bits | None) -> Bits | None:
            return None if bits is None else np.ascontiguousarray(bits[is_wanted])

        return IntervalBits(
            [(source, target, label, of(bits)) for source, target, label, bits in self.arcs],
            [(state, of(bits)) for state, bits in self.ends],
            [(source, target, of(bits)) for source, target, bits in self.skips],
        )


def bits_of_intervals(states: IntervalsPlan, plan: Plan, batch: Batch, rows: RowsByPartition) -> IntervalBits:
    """Return the automaton of a plan with its conditions as bits of rows."""
    bits, ranks = _RowBits(plan, batch, rows), ranks_of(plan.variables)
    arcs = [
        (arc.source, arc.target, int(ranks[plan.variables.index(arc.variable)]), bits.of(arc.test))
        for arc in states.arcs
    ]
    ends = [(state, bits.of(test)) for state, test in states.ends]
    return IntervalBits(arcs, ends, [(skip.source, skip.target, bits.of_skip(skip)) for skip in states.skips])


def matters(states: IntervalsPlan, plan: Plan, batch: Batch, rows: RowsByPartition) -> npt.NDArray[np.bool_]:
    """Return whether each row may be bound, or must not be left out, where some are left out."""
    bits = _RowBits(plan, batch, rows)
    tests = [arc.test for arc in states.arcs] + [test for skip in states.skips for test in skip.passing + skip.failing]
    of_tests = [bits.of(test) for test in dict.fromkeys(tests)]
    parts = [of_test for of_test in of_tests if of_test is not None]
    if len(parts) < len(of_tests):
        return np.ones(len(rows), bool)
    bits_of_rows: npt.NDArray[np.bool_] = np.any(parts, axis=0)
    return bits_of_rows


def places_of(plan: Plan, batch: Batch, rows: RowsByPartition) -> Ints | None:
    """Return the places of rows for the window; ``None``: there is none."""
    if plan.window.span is None:
        return None
    return np.ascontiguousarray(rows.positions if plan.window.counted else batch.ts[rows.rows])


def span_of(plan: Plan) -> int:
    """Return the width of the window as a word without a sign."""
    return min(plan.window.span or 0, 2**64 - 1)


class _RowBits:
    """The conditions of rows as bits, each computed once."""

    def __init__(self, plan: Plan, batch: Batch, rows: RowsByPartition) -> None:
        self.plan, self.batch, self.rows = plan, batch, rows
        self.evaluator = Evaluator(plan.schema.tick_ns)
        self.bits_of: dict[RowCondition | tuple[str, ...], Bits] = {}

    def of(self, test: RowFilter) -> Bits | None:
        """Return whether each row passes a test; ``None``: all do."""
        parts = [self._of_condition(condition) for condition in test.conditions]
        if test.types:
            parts.append(self._of_types(test.types))
        if len(parts) < 2:
            return parts[0] if parts else None
        return np.bitwise_and.reduce(parts)  # type: ignore[no-any-return]

    def of_skip(self, skip: IntervalSkip) -> Bits | None:
        """Return whether each row may be left out; ``None``: all may."""
        parts = [bits for test in skip.passing if (bits := self.of(test)) is not None]
        for test in skip.failing:
            bits = self.of(test)
            parts.append(np.zeros(len(self.rows), np.uint8) if bits is None else 1 - bits)
        return np.bitwise_and.reduce(parts) if parts else None

    def _of_types(self, types: tuple[str, ...]) -> Bits:
        if types not in self.bits_of:
            self.bits_of[types] = has_type(self.batch, types)[self.rows.rows].astype(np.uint8)
        return self.bits_of[types]

    def _of_condition(self, condition: RowCondition) -> Bits:
        """Return whether each row passes a condition; of one whose rows are not there, anything: it is not met."""
        if condition not in self.bits_of:
            size = len(self.rows)
            inputs = {
                slot: batch_column(self.plan, self.batch, column).at(
                    self.rows.rows[np.maximum(np.arange(size) - distance, 0)]
                )
                for slot, column, distance in condition.reads
            }
            self.bits_of[condition] = truth_bits(self.evaluator.column(Typed(condition.expr, "bool"), inputs, size))
        return self.bits_of[condition]
