"""Put the result of a clause together: keys, measures and columns of the table, as an Arrow table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.events.batch import Column
from acep.events.columns import plain_type
from acep.events.decimals import decimal_type
from acep.events.durations import duration_type
from acep.events.tables import InputSchema
from acep.events.times import time_type
from acep.pattern import expressions as ex
from acep.pattern.sql.clause_tree import RowsMode
from acep.pattern.walk import leaves_of
from acep.plan.decimals import Typed
from acep.plan.ordered.clause_leaves import reference_name
from acep.plan.ordered.ordered_plan import OrderedPlan, PlannedMeasure
from acep.plan.ordered.row_columns import ROW
from acep.plan.ordered.row_references import CHOOSING, LABEL, NUMBER, MatchNumber, Navigation, RowAggregate
from acep.plan.schema import Kind
from acep.row_patterns.match_batch import MatchBatch, MeasurePoints
from acep.row_patterns.references import ReferenceValues
from acep.row_patterns.row_values import Evaluator, kind_of_typed
from acep.row_patterns.sorted_rows import order_places

__all__ = ["NO_COLUMNS", "OutputRows", "arrow_values", "output_rows", "result_table"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OutputRows:
    """The rows of the result: the sorted row that each shows, and the points at which its measures are computed
    (``matched``; elsewhere measures are null)."""

    rows: Ints
    points: MeasurePoints
    matched: npt.NDArray[np.bool_]


def output_rows(plan: OrderedPlan, batch: MatchBatch, unmatched: Ints) -> OutputRows:
    """Return the rows of the result for a batch of matches. ``unmatched``: sorted rows that no match has."""
    excluded = np.array([is_excluded for _, is_excluded in plan.states.labels], bool)
    sizes = np.diff(batch.offsets)
    if plan.rows is RowsMode.ONE_ROW:
        points = MeasurePoints(np.arange(len(batch)), batch.offsets[1:])
        return OutputRows(batch.first, points, np.ones(len(batch), bool))
    is_shown = ~excluded[batch.labels] if len(excluded) else np.ones(len(batch.labels), bool)
    rows, match = batch.rows[is_shown], batch.match[is_shown]
    ends = np.flatnonzero(is_shown) + 1
    matched = np.ones(len(rows), bool)
    if plan.rows is not RowsMode.OMIT:
        empty = np.flatnonzero(sizes == 0)
        rows = np.concatenate([rows, batch.first[empty]])
        match = np.concatenate([match, empty])
        ends = np.concatenate([ends, batch.offsets[empty]])
        matched = np.ones(len(rows), bool)
    order = np.lexsort((rows, match))
    rows, match, ends = rows[order], match[order], ends[order]
    if len(unmatched):
        # A row without a match stands behind the matches that begin before it.
        match_index = np.searchsorted(batch.first, unmatched, "right")
        before = np.searchsorted(match, match_index, "left")
        rows = np.insert(rows, before, unmatched)
        matched = np.insert(matched, before, False)
        match, ends = np.insert(match, before, 0), np.insert(ends, before, 0)
    return OutputRows(rows, MeasurePoints(match, ends), matched)


def result_table(
    plan: OrderedPlan,
    table: pa.Table,
    order: Ints,
    values: ReferenceValues,
    output: OutputRows,
    evaluator: Evaluator,
) -> pa.Table:
    """Return the result for a batch of matches. ``table``: the rows as they came; ``order``: them, sorted."""
    measures = {measure.name: measure for measure in plan.measures}
    cache: dict[int, Column] = {}
    places = np.flatnonzero(output.matched)
    points = MeasurePoints(output.points.match[places], output.points.end[places])
    arrays: list[Any] = []
    source = order[output.rows]
    for name in plan.output_names:
        if name in measures:
            array = _measure(plan, measures[name], table, order, values, points, evaluator, cache)
            arrays.append(array if len(places) == len(output.rows) else _spread(array, places, len(output.rows)))
        elif name in plan.names:
            arrays.append(table.column(name).take(pa.array(source)))
        else:
            typed = dict(plan.computed)[name]
            array = arrow_values(values.columns[name].take(output.rows), typed, evaluator)
            arrays.append(as_dates(array) if name in plan.dates else array)
    if not arrays:
        return pa.table({NO_COLUMNS: pa.nulls(len(output.rows))})
    return pa.table(arrays, names=[*plan.output_names])


def _spread(array: Any, places: Ints, size: int) -> Any:
    """Return values at places of ``size`` rows, null elsewhere."""
    index = np.full(size, -1, np.int64)
    index[places] = np.arange(len(places))
    return array.take(pa.array(index, mask=index < 0))


def _measure(
    plan: OrderedPlan,
    measure: PlannedMeasure,
    table: pa.Table,
    order: Ints,
    values: ReferenceValues,
    points: MeasurePoints,
    evaluator: Evaluator,
    cache: dict[int, Column],
) -> Any:
    def column(number: int) -> Column:
        if number not in cache:
            cache[number] = values.column(plan.references[number], points)
        return cache[number]

    if measure.reference is None:
        assert measure.typed is not None
        names = {reference_name(number): number for number in range(len(plan.references))}
        columns = _Lazy(names, column)
        computed = evaluator.column(measure.typed, columns, len(points))
        array = arrow_values(computed, measure.typed, evaluator, is_zoned=_is_zoned(plan, measure.typed))
        return as_dates(array) if measure.is_date else array
    reference = plan.references[measure.reference]
    if isinstance(reference, Navigation) and reference.column in plan.names:
        rows = values.rows(reference, points)
        index = pa.array(np.where(rows < 0, 0, order[np.maximum(rows, 0)]), mask=rows < 0)
        return table.column(reference.column).take(index)
    if isinstance(reference, RowAggregate) and reference.function == "array_agg":
        return _lists(plan, reference, table, order, values, points, evaluator)
    typed = plan.reference_types[measure.reference]
    assert typed is not None
    value = Typed(ex.Attribute(ROW, None, reference_name(measure.reference)), typed.kind)
    array = arrow_values(column(measure.reference), typed, evaluator, is_zoned=_is_zoned(plan, value))
    if isinstance(reference, RowAggregate) and reference.function in CHOOSING and reference.column in plan.names:
        source_type = plain_type(table.schema.field(reference.column).type)
        return array if pa.types.is_null(source_type) else array.cast(source_type)
    return as_dates(array) if measure.is_date else array


def as_dates(array: Any) -> Any:
    """Return times, which are the beginnings of days, as dates."""
    return array.cast(pa.date32()) if pa.types.is_timestamp(array.type) else array


def _is_zoned(plan: OrderedPlan, typed: Typed) -> bool:
    """Return whether a time is computed of one with a zone."""
    if typed.kind != "timestamp":
        return False
    assert isinstance(plan.schema, InputSchema)
    zoned = {name for name, value_type in plan.schema.times if getattr(value_type, "tz", None) is not None}
    computed = {**dict(plan.computed), **dict(plan.mapped)}
    pending = [leaf.name for leaf in leaves_of(typed.expr) if isinstance(leaf, ex.Attribute)]
    while pending:
        name = pending.pop()
        if name in zoned:
            return True
        if name.startswith("#") and name not in plan.names:
            reference = plan.references[int(name[1:])]
            pending += [] if isinstance(reference, MatchNumber) or reference.column is None else [reference.column]
        elif name in computed:
            pending += [leaf.name for leaf in leaves_of(computed[name].expr) if isinstance(leaf, ex.Attribute)]
    return False


NO_COLUMNS = " "
"""The name of the column of nulls in a result that has no columns, so that its rows can be counted."""

_OF_MATCH = {LABEL: Typed(ex.Literal(""), "string"), NUMBER: Typed(ex.Literal(0), "int")}


class _Lazy(Mapping[str, Column]):
    """Columns of references by name, each computed when it is read."""

    def __init__(self, names: Mapping[str, int], column: Any) -> None:
        self.names, self.column = names, column

    def __getitem__(self, name: str) -> Column:
        column: Column = self.column(self.names[name])
        return column

    def __iter__(self) -> Any:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _lists(
    plan: OrderedPlan,
    reference: RowAggregate,
    table: pa.Table,
    order: Ints,
    values: ReferenceValues,
    points: MeasurePoints,
    evaluator: Evaluator,
) -> Any:
    """Return array_agg: the values of a column in the rows of each point, nulls too; null where there is no row."""
    lows, highs, members = values.segments(reference.variables, points, reference.is_final)
    sizes = highs - lows
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    steps = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes) + np.repeat(lows, sizes)
    flat = members[steps]
    assert reference.column is not None
    if reference.order:
        segment = np.repeat(np.arange(len(sizes)), sizes)
        columns = [values.member_values(name, flat) for name in reference.arguments]
        flat = flat[order_places(segment, columns, reference.order)]
    computed = {**dict(plan.computed), **dict(plan.mapped), **_OF_MATCH}
    if reference.column in plan.names:
        inner: Any = table.column(reference.column).take(pa.array(order[values.batch.rows[flat]]))
    else:
        inner = arrow_values(values.member_values(reference.column, flat), computed[reference.column], evaluator)
        inner = as_dates(inner) if reference.column in plan.dates else inner
    inner = inner.combine_chunks() if isinstance(inner, pa.ChunkedArray) else inner
    if reference.is_distinct:
        lists = [_different(inner[a:b].to_pylist())
                 for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]  # fmt: skip
        return pa.array([items or None for items in lists], pa.list_(inner.type))
    return pa.LargeListArray.from_arrays(pa.array(offsets), inner, mask=pa.array(sizes == 0)).cast(
        pa.list_(inner.type))  # fmt: skip


def _different(values: list[Any]) -> list[Any]:
    """Return the different values that are not null, each at its first place. Lists and structs have no hash.

    >>> _different([[2], None, [1], [2]]), _different([3, 1, 3])
    ([[2], [1]], [3, 1])
    """
    different: dict[Any, Any] = {}
    for value in values:
        if value is not None:
            different.setdefault(repr(value) if isinstance(value, list | dict) else value, value)
    return [*different.values()]


def arrow_values(column: Column, typed: Typed, evaluator: Evaluator, *, is_zoned: bool = False) -> pa.Array:
    """Return a computed column as an Arrow array of the type that its kind has; times with a zone in UTC."""
    null = None if column.valid is None else column.valid == 0
    kind = kind_of_typed(typed)
    if kind is Kind.NULL:
        return pa.nulls(len(column))
    if kind is Kind.STRING:
        if not column.texts:
            return pa.nulls(len(column), pa.string())
        return pa.array(list(column.texts), pa.string()).take(pa.array(np.asarray(column.values, np.int64), mask=null))
    if kind is Kind.BOOL:
        return pa.array(column.values.astype(bool), pa.bool_(), mask=null)
    if typed.kind == "decimal":
        return _decimals(column, typed.scale, null)
    if typed.kind in ("timestamp", "duration"):
        assert evaluator.tick_ns is not None
        ticks = column.values if column.kind is not Kind.FLOAT else np.rint(column.values)
        whole_ticks = pa.array(ticks.astype(np.int64), mask=null)
        if typed.kind == "duration":
            return whole_ticks.cast(duration_type(evaluator.tick_ns))
        unit = time_type(evaluator.tick_ns).unit
        return whole_ticks.cast(pa.timestamp(unit, "UTC" if is_zoned else None))
    if kind is Kind.FLOAT or column.kind is Kind.FLOAT:
        return pa.array(column.values.astype(np.float64), mask=null)
    return pa.array(column.values.astype(np.int64), mask=null)


def _decimals(column: Column, scale: int, null: Any) -> pa.Array:
    from decimal import Decimal

    arrow_type = decimal_type(scale)
    values = [Decimal(int(value)).scaleb(-scale) for value in column.values.tolist()]
    if null is not None:
        values = [None if is_null else value for value, is_null in zip(values, null.tolist(), strict=True)]  # type: ignore[misc]
    return pa.array(values, arrow_type)
