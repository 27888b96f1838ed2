"""Find the chosen matches of a query whose conditions are functions of the row, by passes in the native core."""

from __future__ import annotations

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

__all__ = ["find_intervals"]

Bits = npt.NDArray[np.uint8]

SKIP_PLACES = ("next", "first", "last")
"""The places of a :class:`SkipTarget`, by the numbers of ``IntervalSkipTo`` in interval_search.hpp, from 1 on."""


def find_intervals(states: IntervalsPlan, plan: Plan, batch: Batch, *, more: bool) -> ChosenIntervals | None:
    """Return the matches; ``None`` if the order of ids decides between matches, and is not that of the stream.
    ``more``: events may come after those of the batch."""
    rows = rows_by_partition(plan, batch)
    if states.needs_order and not ids_rise(batch, rows, of_one_time=states.needs_order == "time"):
        return None
    bits = _RowBits(plan, batch, rows)
    ranks = ranks_of(plan.variables)
    arcs = [
        (arc.source, arc.target, int(ranks[plan.variables.index(arc.variable)]), bits.of(arc.test))
        for arc in states.arcs
    ]
    ends = [(state, bits.of(test)) for state, test in states.ends]
    skips = [(skip.source, skip.target, bits.of_skip(skip)) for skip in states.skips]
    ts, span = np.ascontiguousarray(batch.ts[rows.rows]), plan.window.span
    places = None if span is None else np.ascontiguousarray(rows.positions) if plan.window.counted else ts
    order = 1 if states.output.is_longest else 2 if states.output.is_shortest else 0
    skip_to, skip_label = 0, 0
    if states.skip is not None:
        skip_to = 1 + SKIP_PLACES.index(states.skip.place)
        skip_label = int(ranks[plan.variables.index(states.skip.variable)]) if states.skip.variable else 0
    offsets, places_of_events, labels, open_from, met = _native.search_intervals(
        arcs, ends, skips, rows.edges, ts, places, min(span or 0, 2**64 - 1), order, skip_to, skip_label, more
    )
    variables = np.argsort(ranks).astype(np.uint16)[labels]
    return ChosenIntervals(rows, offsets, places_of_events, variables, open_from if more else None, met)


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
