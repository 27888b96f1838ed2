"""Run a MATCH_RECOGNIZE clause over a table of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError, QueryError, suggest
from acep.events.batch import Column
from acep.events.buffers import selectable
from acep.events.columns import column_of
from acep.events.fields import column_at
from acep.events.frames import to_table
from acep.events.tables import InputSchema, attribute_tick, schema_of
from acep.events.times import values_of_column
from acep.pattern.expressions import Span, error_at
from acep.pattern.sql.clause_parser import parse_clause
from acep.pattern.sql.clause_tree import RowsMode
from acep.plan.ordered.ordered_plan import OrderedPlan, make_plan
from acep.plan.schema import Kind
from acep.row_patterns.match_batch import MatchBatch
from acep.row_patterns.partition_values import partition_values
from acep.row_patterns.references import ReferenceValues
from acep.row_patterns.result_table import output_rows, result_table
from acep.row_patterns.row_search import search_rows
from acep.row_patterns.row_values import Evaluator
from acep.row_patterns.sorted_rows import PartitionedRows, sort_rows

__all__ = [
    "SortedTable",
    "check_values",
    "convert_like",
    "convert_to",
    "form_of",
    "match_recognize",
    "match_table",
    "match_tables",
    "no_columns_error",
    "partition_columns",
    "plan_clause",
    "result_tables",
    "row_columns",
    "select_columns",
]

_ANY_VALUE = {pa.int64().id, pa.float64().id, pa.bool_().id}
"""The types, beside texts, of which each value can be computed with."""
_TIME = " "  # a column of times that no table has: a tick is a microsecond or less, whatever columns there are


def match_recognize(rows: Any, clause: str) -> Any:
    """Find row patterns in a table: the clause MATCH_RECOGNIZE of SQL (ISO/IEC 19075-5) without the SQL around it.

    ``rows`` is anything that :func:`acep.match` takes; the result is of the same kind (pandas, polars, a dict of
    columns), else a ``pyarrow.Table``. ``clause`` is what stands between the parentheses of MATCH_RECOGNIZE. Names of
    columns and variables are the same whatever their case. See docs/reference/sql.md.

    Raises :class:`QueryError` for a clause that is wrong or not supported, with its place, and :class:`DataError` for
    values that it cannot be answered for, such as a match after which AFTER MATCH SKIP leads nowhere.

    >>> ticks = {"day": [1, 2, 3, 4, 5], "price": [10, 8, 7, 9, 11]}
    >>> match_recognize(ticks, '''
    ...     ORDER BY day
    ...     MEASURES FIRST(day) AS start, LAST(DOWN.day) AS bottom, LAST(UP.day) AS stop
    ...     PATTERN (STRT DOWN+ UP+)
    ...     DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)
    ... ''')
    {'start': [1], 'bottom': [3], 'stop': [5]}
    """
    table = to_table(rows)
    plan = plan_clause(table.schema, clause)
    if not plan.output_names:
        raise no_columns_error()
    return convert_like(rows, match_table(plan, table))


def no_columns_error() -> QueryError:
    """Return the error for a clause without MEASURES whose result has no columns."""
    return QueryError("the result has no columns", hint="add MEASURES, as in MEASURES count(*) AS n",
                      code="query_invalid")  # fmt: skip


def convert_like(rows: Any, table: pa.Table) -> Any:
    """Return a table in the form in which ``rows`` came."""
    return convert_to(form_of(rows), table)


def form_of(rows: Any) -> str:
    """Return the form of rows: ``"pandas"``, ``"polars"``, ``"dict"``, or ``"arrow"`` for any other."""
    home = type(rows).__module__.partition(".")[0]
    return home if home in ("pandas", "polars") else "dict" if isinstance(rows, dict) else "arrow"


def convert_to(form: str, table: pa.Table) -> Any:
    """Return a table in a form of :func:`form_of`."""
    if form == "pandas":
        from acep.matches.pandas_frames import exact_frame_of  # few results become frames

        return exact_frame_of(table)
    if form == "polars":
        import polars as pl

        return pl.from_arrow(table)
    if form == "dict":
        return {name: values_of_column(table[name]) for name in table.column_names}
    return table


def plan_clause(schema: pa.Schema, clause: str, input_name: str = "") -> OrderedPlan:
    """Return the plan of a clause for the columns of a table, and what the table is called (``input_name``) in it."""
    if _TIME in schema.names:
        raise DataError("a column has a blank as its name", hint="rename it", code="data_column")
    schema_with_time = schema_of(schema.append(pa.field(_TIME, pa.timestamp("us"))), ts=_TIME, type=None)
    dates = frozenset(field.name for field in schema if pa.types.is_date(field.type))
    return make_plan(parse_clause(clause), tuple(schema.names), schema_with_time, dates, input_name)


def match_table(plan: OrderedPlan, table: pa.Table) -> pa.Table:
    """Return the result of a plan over a table."""
    return pa.concat_tables(match_tables(plan, table))


def match_tables(plan: OrderedPlan, table: pa.Table) -> Iterator[pa.Table]:
    """Yield the result of a plan over a table, a part of the matches at a time; the last part may have no rows."""
    evaluator, table = Evaluator(attribute_tick(plan.schema)), selectable(table)
    columns = row_columns(plan, table, evaluator)
    rows = sort_rows(table.num_rows, plan.partition, plan.order, columns)
    is_ordered = not len(rows) or bool((rows.order[1:] > rows.order[:-1]).all())
    ordered = columns if is_ordered else {name: column.take(rows.order) for name, column in columns.items()}
    batches: Iterable[MatchBatch] = search_rows(plan, rows, ordered, evaluator) if len(rows) else ()
    covered = np.zeros(len(rows), bool)
    yield from result_tables(plan, table, SortedTable(rows, ordered), evaluator, batches, covered)


@dataclass(frozen=True)
class SortedTable:
    """The rows of a table in the order of a clause, and the columns that it computes with, in that order."""

    rows: PartitionedRows
    columns: Mapping[str, Column]


def result_tables(
    plan: OrderedPlan,
    table: pa.Table,
    ordered: SortedTable,
    evaluator: Evaluator,
    batches: Iterable[MatchBatch],
    covered: npt.NDArray[np.bool_],
) -> Iterator[pa.Table]:
    """Yield the rows of the result for batches of matches; the last part may have no rows. ``covered``: (n,) the sorted
    rows that WITH UNMATCHED ROWS does not give, even if none of these matches has them."""
    spellings = dict(plan.spellings)
    names = [variable for variable, _ in plan.states.labels]
    for batch, unmatched in _with_unmatched(plan, batches, covered):
        values = ReferenceValues(
            batch,
            ordered.columns,
            names,
            [spellings[name] for name in names],
            dict(plan.mapped),
            evaluator,
            plan.states.missing_rows,
        )
        output = output_rows(plan, batch, unmatched)
        yield result_table(plan, table, ordered.rows.order, values, output, evaluator)


def _with_unmatched(
    plan: OrderedPlan, batches: Iterable[MatchBatch], covered: npt.NDArray[np.bool_]
) -> Iterator[tuple[MatchBatch, Any]]:
    """Yield each batch with the rows before its end that no match has; an empty one if there are neither."""
    is_empty = True
    if plan.rows is not RowsMode.UNMATCHED:
        for batch in batches:
            is_empty = False
            yield batch, np.zeros(0, np.int64)
        if is_empty:
            yield _no_matches(), np.zeros(0, np.int64)
        return
    begin = 0
    previous = _no_matches()
    for batch in batches:
        covered[batch.rows] = True
        covered[batch.first[np.diff(batch.offsets) == 0]] = True
        end = int(batch.first[0])
        if len(previous) or not covered[begin:end].all():
            yield previous, _uncovered_rows(covered, begin, end)
        begin, previous = end, batch
    yield previous, _uncovered_rows(covered, begin, len(covered))


def _uncovered_rows(covered: Any, begin: int, end: int) -> Any:
    return np.flatnonzero(~covered[begin:end]).astype(np.int64) + begin


def _no_matches() -> MatchBatch:
    none = np.zeros(0, np.int64)
    return MatchBatch(none, none, none, np.zeros(1, np.int64), np.zeros(0, np.uint16), none, none)


def check_values(plan: OrderedPlan, table: pa.Table) -> None:
    """Raise :class:`DataError` for a value that a clause cannot compute with, such as a decimal of too many digits."""
    columns = {name: table.column(name).type.id for name in table.column_names}
    names = (
        name
        for name in plan.columns_read
        if columns.get(name) not in _ANY_VALUE and plan.schema.kind(name) is not Kind.STRING
    )
    for _ in read_columns(plan, table, names):
        pass


def read_columns(plan: OrderedPlan, table: pa.Table, names: Iterable[str]) -> Iterator[tuple[str, Column]]:
    """Yield columns of a table, and fields of its structs, converted."""
    assert isinstance(plan.schema, InputSchema)
    tick = attribute_tick(plan.schema) or 1
    columns_of_table = table.column_names
    for name in names:
        kind = plan.schema.kind(name)
        array = table.column(name) if name in columns_of_table else column_at(table, name)
        if kind is not None and array is not None:
            yield name, column_of(name, array, kind, tick, plan.schema.scale(name))


def partition_columns(plan: OrderedPlan, table: pa.Table, evaluator: Evaluator) -> dict[str, Column]:
    """Return the columns of PARTITION BY, those of expressions too."""
    computed = dict(plan.computed)
    columns = dict(read_columns(plan, table, (name for name in plan.partition_sources if name not in computed)))
    for name in plan.partition_sources:
        if name in computed:
            columns[name] = evaluator.column(computed[name], columns, table.num_rows)
    return columns


def row_columns(plan: OrderedPlan, table: pa.Table, evaluator: Evaluator) -> dict[str, Column]:
    """Return the columns that keys, conditions and measures compute with, those of expressions too."""
    columns = dict(read_columns(plan, table, plan.columns_read))
    for name, typed in plan.computed:
        columns[name] = evaluator.column(typed, columns, table.num_rows)
    if plan.windows:
        columns |= partition_values(plan, columns, table.num_rows)
    return columns


def select_columns(table: pa.Table, columns: tuple[tuple[str, str, Span], ...]) -> pa.Table:
    """Return columns of a table under other names; ``*`` stands for all."""
    arrays: list[Any] = []
    names: list[str] = []
    for column, name, span in columns:
        if column == "*":
            arrays += table.columns
            names += table.column_names
            continue
        alike = [label for label in table.column_names if label.casefold() == column.casefold()]
        if not alike:
            raise error_at(f"unknown column `{column}`", span, suggest(column, table.column_names), code="query_name")
        arrays.append(table.column(column if column in alike else alike[0]))
        names.append(name if name != column else (column if column in alike else alike[0]))
    if len(set(names)) < len(names):
        raise DataError("two columns of the result have one name", hint="rename one with AS", code="data_column")
    return pa.table(arrays, names=names)
