"""Find the matches of a clause in sorted rows: conditions of rows as bits, then the search of an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.errors import DataError
from acep.events.batch import Column
from acep.pattern import expressions as ex
from acep.pattern.evaluation import compile_expression
from acep.plan.ordered.clause_leaves import reference_name
from acep.plan.ordered.open_matches import OPEN
from acep.plan.ordered.ordered_plan import Condition, OrderedPlan
from acep.plan.ordered.row_references import LABEL, NUMBER, Navigation, RowAggregate
from acep.reference.ordered_search import MappedColumn, RowTest, SearchedRows, find_matches
from acep.row_patterns.match_batch import MatchBatch
from acep.row_patterns.row_values import Evaluator, shift_rows, truth_bits
from acep.row_patterns.search_limits import SearchLimits
from acep.row_patterns.sorted_rows import PartitionedRows

__all__ = ["local_bits", "search_rows", "window_of"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]
BATCH_ROWS = 1 << 16
MOST_WIDTH = 2**64 - 1
"""No two times are farther apart."""
USE_NATIVE = True
"""Tests turn the native core off."""


def search_rows(
    plan: OrderedPlan,
    rows: PartitionedRows,
    columns: Mapping[str, Column],
    evaluator: Evaluator,
    limits: SearchLimits | None = None,
    bits: Mapping[str, Bits] | None = None,
) -> Iterator[MatchBatch]:
    """Yield the matches, some at a time, in the order in which they start. ``limits``: for partitions that go on; they
    take where the search ended. ``bits``: the conditions of single rows, if they have been computed.

    The native core searches; without one, and for conditions that it cannot run, the reference engine does."""
    bits = local_bits(plan, rows, columns, evaluator) if bits is None else bits
    times, width = window_of(plan, columns, evaluator.tick_ns)
    if evaluator.codes is not None and USE_NATIVE:
        from acep.row_patterns.native_search import lower_plan, search_natively

        if (tables := lower_plan(plan, columns, evaluator)) is not None:
            return search_natively(tables, rows, columns, bits, (times, width), BATCH_ROWS, limits)
    searched = searched_rows(plan, rows, columns, evaluator, bits, (times, width), limits)
    return _by_reference(searched, rows, limits)


def local_bits(
    plan: OrderedPlan, rows: PartitionedRows, columns: Mapping[str, Column], evaluator: Evaluator
) -> dict[str, Bits]:
    """Return for each variable with conditions on the row and its neighbours whether each row passes them."""
    bits: dict[str, Bits] = {}
    shifted: dict[int, Column] = {}
    for condition in plan.conditions:
        if not condition.is_local:
            continue
        for number in condition.references:
            if number not in shifted:
                reference = plan.references[number]
                assert isinstance(reference, Navigation)
                column = columns[reference.column]
                shifted[number] = shift_rows(column, rows.partitions, reference.shift) if reference.shift else column
        inputs = {reference_name(number): shifted[number] for number in condition.references}
        passes = truth_bits(evaluator.column(condition.typed, inputs, len(rows)))
        bits[condition.variable] = passes & bits[condition.variable] if condition.variable in bits else passes
    return bits


def window_of(plan: OrderedPlan, columns: Mapping[str, Column], tick_ns: Fraction | None) -> tuple[Ints | None, int]:
    """Return the times of the window and its width; ``None`` without one. Raises :class:`DataError` for a null time."""
    window = plan.width
    if window is None:
        return None, 0
    name = plan.order[0].column
    column = columns[name]
    if column.valid is not None and not column.valid.all():
        raise DataError(
            f"WITHIN needs a time in every row, and `{name}` has nulls",
            hint="leave the rows without a time out before",
            code="data_null",
        )
    width = window.amount / tick_ns if window.is_interval and tick_ns is not None else window.amount
    return np.asarray(column.values, np.int64), min(int(width), MOST_WIDTH)


def _test_of(plan: OrderedPlan, condition: Condition, evaluator: Evaluator) -> RowTest:
    compiled = compile_expression(condition.typed.expr, evaluator.tick_ns)
    numbers = [int(leaf.name[1:]) for leaf in compiled.leaves if isinstance(leaf, ex.Attribute)]
    return RowTest(tuple(plan.references[number] for number in numbers), compiled.run)


def _mapped_columns(plan: OrderedPlan, evaluator: Evaluator) -> dict[str, MappedColumn]:
    """Return the columns of mapped rows as functions."""
    columns: dict[str, MappedColumn] = {}
    for name, typed in plan.mapped:
        compiled = compile_expression(typed.expr, evaluator.tick_ns)
        leaves = tuple(leaf.name for leaf in compiled.leaves if isinstance(leaf, ex.Attribute))
        columns[name] = MappedColumn(leaves, compiled.run)
    return columns


def bits_with_open_rows(plan: OrderedPlan, bits: Mapping[str, Bits], open_rows: Ints, size: int) -> dict[str, Bits]:
    """Return the bits of all variables where open rows belong to no variable but their own."""
    closed = np.ones(size, np.uint8)
    closed[open_rows] = 0
    names = dict.fromkeys(variable for variable, _ in plan.states.labels)
    return {name: 1 - closed if name == OPEN else bits[name] & closed if name in bits else closed for name in names}


def searched_rows(
    plan: OrderedPlan,
    rows: PartitionedRows,
    columns: Mapping[str, Column],
    evaluator: Evaluator,
    bits: Mapping[str, Bits],
    window: tuple[Ints | None, int],
    limits: SearchLimits | None,
) -> SearchedRows:
    """Return the rows as the reference engine takes them."""
    names = [variable for variable, _ in plan.states.labels]
    spellings = dict(plan.spellings)
    tests = {name: [_test_of(plan, c, evaluator) for c in plan.conditions if c.variable == name and not c.is_local]
             for name in names}  # fmt: skip
    mapped = _mapped_columns(plan, evaluator)
    names_read = [name for tested in tests.values() for test in tested for reference in test.references
                  if isinstance(reference, Navigation | RowAggregate) and reference.column is not None
                  for name in (reference.column, *getattr(reference, "arguments", ()))]  # fmt: skip
    names_read += [name for column in names_read if column in mapped for name in mapped[column].names]
    columns_read = set(names_read) - {LABEL, NUMBER, *mapped}
    times, width = window
    return SearchedRows(
        states=plan.states.states,
        partitions=rows.partitions.tolist(),
        local=[bits[name].tolist() if name in bits else None for name in names],
        tests=[tests[name] for name in names],
        columns={name: columns[name].to_list() for name in columns_read},
        names=names,
        spellings=[spellings[name] for name in names],
        times=None if times is None else times.tolist(),
        width=width,
        skip=plan.clause.skip.mode.value,
        skip_to=plan.skip_to,
        starts=() if limits is None else limits.triples(),
        open_label=None if limits is None else len(names) - 1,
        mapped=mapped,
    )


def _by_reference(searched: SearchedRows, rows: PartitionedRows, limits: SearchLimits | None) -> Iterator[MatchBatch]:
    pending: list[Any] = []
    ends: list[tuple[int, int]] = []
    size = 0
    for match in find_matches(searched, ends):
        pending.append(match)
        size += len(match.labels) + 1
        if size >= BATCH_ROWS:
            yield _batch(pending, rows)
            pending, size = [], 0
    if pending:
        yield _batch(pending, rows)
    if limits is not None:
        limits.end_at(*(np.array([end[part] for end in ends], np.int64) for part in (0, 1)))


def _batch(matches: list[Any], rows: PartitionedRows) -> MatchBatch:
    partition = np.array([match.partition for match in matches], np.int64)
    return MatchBatch(
        partition=partition,
        number=np.array([match.number for match in matches], np.int64),
        first=np.array([match.first for match in matches], np.int64),
        offsets=np.concatenate([[0], np.cumsum([len(match.labels) for match in matches])]).astype(np.int64),
        labels=np.array([label for match in matches for label in match.labels], np.uint16),
        begins=rows.partitions[partition],
        ends=rows.partitions[partition + 1],
    )
