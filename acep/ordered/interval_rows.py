"""Find the chosen matches of a query by passes over rows in the native core."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch, Column
from acep.matches.found_columns import ranks_of
from acep.native import _native
from acep.ordered.interval_matches import ChosenIntervals
from acep.ordered.partition_rows import RowsByPartition, batch_column, has_type, ids_rise, rows_by_partition
from acep.pattern import expressions as ex
from acep.pattern.tree import SKIP_PLACES
from acep.pattern.walk import leaves_of
from acep.plan.chosen.interval_automaton import OF_FIRST, IntervalsPlan, RowCondition, RowFilter
from acep.plan.compile import Plan
from acep.plan.lower.bytecode import CannotLower, lower_expression
from acep.row_patterns.row_values import Evaluator

__all__ = ["IntervalBits", "bits_of_intervals", "find_intervals", "matters", "places_of", "span_of"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]
TiedInput = tuple[npt.NDArray[np.int64], Bits | None, bool]
"""A column as words with their validity, and whether a condition reads it in the first row."""
TiedTest = tuple[Bits | None, list[int], bool]
"""Bits of rows, the numbers of conditions, and whether a row must fail them."""


def find_intervals(
    states: IntervalsPlan,
    plan: Plan,
    batch: Batch,
    *,
    may_continue: bool,
    rows: RowsByPartition | None = None,
    evaluator: Evaluator | None = None,
) -> ChosenIntervals | None:
    """Return the matches; ``None`` if the order of ids decides between matches, and is not that of the stream.
    ``may_continue``: events may come after those of the batch. ``rows``: those to look at; ``None``: all.
    ``evaluator``: that of a stream, which lowers conditions once."""
    rows = rows_by_partition(plan, batch) if rows is None else rows
    if states.needs_order and not ids_rise(batch, rows, of_one_time=states.needs_order == "time"):
        return None
    ts = np.ascontiguousarray(batch.ts[rows.rows])
    try:
        bits = bits_of_intervals(states, plan, batch, rows, evaluator)
    except CannotLower:
        return None
    ranks = ranks_of(plan.variables)
    order = 1 if states.output.is_longest else 2 if states.output.is_shortest else 0
    skip_to, skip_label = 0, 0
    if states.skip is not None:
        skip_to = 1 + SKIP_PLACES.index(states.skip.place)
        skip_label = int(ranks[plan.variables.index(states.skip.variable)]) if states.skip.variable else 0
    offsets, places_of_events, labels, open_from, met = _native.search_intervals(
        *bits, rows.edges, ts, places_of(plan, batch, rows), span_of(plan), order, skip_to, skip_label, may_continue
    )
    variables = np.argsort(ranks).astype(np.uint16)[labels]
    return ChosenIntervals(rows, offsets, places_of_events, variables, open_from if may_continue else None, met)


class IntervalBits(NamedTuple):
    """The arcs, the ends and the arcs that leave rows out, each with its states, whether it may be taken in each row,
    and tests of ``tied`` conditions, which also read the first row; ``texts`` are those that these read."""

    arcs: list[tuple[int, int, int, Bits | None, list[TiedTest]]]
    ends: list[tuple[int, Bits | None, list[TiedTest]]]
    skips: list[tuple[int, int, Bits | None, list[TiedTest]]]
    tied: list[tuple[Any, list[TiedInput]]]
    texts: Any

    def select_rows(self, is_wanted: npt.NDArray[np.bool_]) -> IntervalBits:
        """Return the bits of some of the rows. There must be no tied conditions."""
        assert not self.tied

        def select_bits(bits: Bits | None) -> Bits | None:
            return None if bits is None else np.ascontiguousarray(bits[is_wanted])

        return self._replace(
            arcs=[
                (source, target, label, select_bits(bits), tests) for source, target, label, bits, tests in self.arcs
            ],
            ends=[(state, select_bits(bits), tests) for state, bits, tests in self.ends],
            skips=[(source, target, select_bits(bits), tests) for source, target, bits, tests in self.skips],
        )


def bits_of_intervals(
    states: IntervalsPlan, plan: Plan, batch: Batch, rows: RowsByPartition, evaluator: Evaluator | None = None
) -> IntervalBits:
    """Return the automaton of a plan with its conditions as bits of rows. ``evaluator``: that of a stream, whose
    columns of earlier batches are not needed any more. Raises :class:`CannotLower` if the core has no operation that a
    tied condition needs."""
    bits, ranks = _RowBits(plan, batch, rows, evaluator), ranks_of(plan.variables)
    arcs = [
        (arc.source, arc.target, int(ranks[plan.variables.index(arc.variable)]), *bits.of_tests((arc.test,)))
        for arc in states.arcs
    ]
    ends = [(state, *bits.of_tests((test,))) for state, test in states.ends]
    skips = [(skip.source, skip.target, *bits.of_tests(skip.passing, skip.failing)) for skip in states.skips]
    return IntervalBits(arcs, ends, skips, bits.tied, bits.texts)


def matters(
    states: IntervalsPlan, plan: Plan, batch: Batch, rows: RowsByPartition, evaluator: Evaluator
) -> npt.NDArray[np.bool_]:
    """Return whether each row may be bound, or must not be left out, where some are left out."""
    bits = _RowBits(plan, batch, rows, evaluator)
    tests = [arc.test for arc in states.arcs] + [test for skip in states.skips for test in skip.passing + skip.failing]
    of_tests = [bits.of_test(test) for test in dict.fromkeys(tests)]
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
    """The conditions of rows as bits, each computed once, and those that also read the first row as programs."""

    def __init__(self, plan: Plan, batch: Batch, rows: RowsByPartition, evaluator: Evaluator | None) -> None:
        self.plan, self.batch, self.rows = plan, batch, rows
        self.evaluator = Evaluator(plan.schema.tick_ns) if evaluator is None else evaluator
        self.evaluator.forget_texts()
        self.bits_of: dict[RowCondition | tuple[str, ...], Bits] = {}
        self.tied: list[tuple[Any, list[TiedInput]]] = []
        self.numbers: dict[RowCondition, int] = {}  # of tied conditions

    @property
    def texts(self) -> Any:
        """Return the texts that tied conditions read."""
        return None if self.evaluator.codes is None else self.evaluator.codes.texts

    def of_tests(
        self, passing: tuple[RowFilter, ...], failing: tuple[RowFilter, ...] = ()
    ) -> tuple[Bits | None, list[TiedTest]]:
        """Return whether each row passes all tests of ``passing`` and none of ``failing`` (``None``: all do), and what
        else is asked of it, and of the first row. Raises :class:`CannotLower` if the core has no such operation."""
        parts: list[Bits] = []
        tied: list[TiedTest] = []
        for test, is_failing in [*((test, False) for test in passing), *((test, True) for test in failing)]:
            bits, conditions = self.of_test(test), [condition for condition in test.conditions if condition.is_tied]
            if conditions:
                tied.append((bits, [self._number(condition) for condition in conditions], is_failing))
            elif is_failing:
                parts.append(np.zeros(len(self.rows), np.uint8) if bits is None else 1 - bits)
            elif bits is not None:
                parts.append(bits)
        return (np.bitwise_and.reduce(parts) if parts else None), tied

    def of_test(self, test: RowFilter) -> Bits | None:
        """Return whether each row passes what a test asks of it alone; ``None``: all do."""
        parts = [self._of_condition(condition) for condition in test.conditions if not condition.is_tied]
        if test.types:
            parts.append(self._of_types(test.types))
        if len(parts) < 2:
            return parts[0] if parts else None
        return np.bitwise_and.reduce(parts)  # type: ignore[no-any-return]

    def _of_types(self, types: tuple[str, ...]) -> Bits:
        if types not in self.bits_of:
            self.bits_of[types] = has_type(self.batch, types)[self.rows.rows].astype(np.uint8)
        return self.bits_of[types]

    def _of_condition(self, condition: RowCondition) -> Bits:
        """Return whether each row passes a condition; of one whose rows are not there, anything: it is not met."""
        if condition not in self.bits_of:
            inputs = {slot: self._column(column, distance) for slot, column, distance in condition.reads}
            self.bits_of[condition] = self.evaluator.truths(condition.expr, inputs, len(self.rows))
        return self.bits_of[condition]

    def _column(self, name: str, distance: int) -> Column:
        """Return the values of a column some rows before each row; where there is none, anything."""
        places = np.maximum(np.arange(len(self.rows)) - distance, 0)
        return batch_column(self.plan, self.batch, name).take(self.rows.rows[places])

    def _number(self, condition: RowCondition) -> int:
        """Return the number of a tied condition, which is added to those of the search."""
        if condition not in self.numbers:
            if self.evaluator.codes is None:
                raise CannotLower("no core")
            leaves = [leaf for leaf in leaves_of(condition.expr) if isinstance(leaf, ex.Attribute)]
            reads = {slot: (column, distance) for slot, column, distance in condition.reads}
            columns = [self._column(reads[leaf.name][0], max(reads[leaf.name][1], 0)) for leaf in leaves]
            kinds, codes = [column.kind for column in columns], self.evaluator.codes
            program = lower_expression(condition.expr, leaves, kinds, self.evaluator.tick_ns, codes.constant)
            block = _native.BlockProgram(np.array(program.code, np.int64), program.slots, program.leaves)
            inputs = [
                (*codes.words(column, 0), reads[leaf.name][1] == OF_FIRST)
                for leaf, column in zip(leaves, columns, strict=True)
            ]
            self.numbers[condition] = len(self.tied)
            self.tied.append((block, inputs))
        return self.numbers[condition]
