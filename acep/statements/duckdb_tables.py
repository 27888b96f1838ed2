"""Give tables to DuckDB and take tables from it: its intervals have months, and nothing finer than microseconds; half
floats and decimals of more than 38 digits it has not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep.errors import DataError
from acep.events.frames import unread_error, with_unread

__all__ = ["check_result", "from_duckdb", "stand_ins", "to_duckdb"]

_INTERVAL = np.dtype([("months", np.int32), ("days", np.int32), ("ns", np.int64)])
_DAY_US = 86_400_000_000
_DIGITS = 38  # of the widest decimal of DuckDB


_MARK = "acep: not of DuckDB"
"""The first field of the structs that stand in for values which DuckDB does not hold; the name of the second one says
why."""


def to_duckdb(table: pa.Table) -> pa.Table:
    """Return a table for DuckDB, which would cut off what is finer than microseconds in a duration.

    Half floats become floats, and wide decimals narrower ones where all values fit. Other columns of types that DuckDB
    does not have are replaced by structs that tell their values apart (:func:`stand_ins`).

    Raises :class:`DataError` for a duration that is finer.
    """
    for index, field in enumerate(table.schema):
        if field.type == pa.duration("ns"):
            ticks = table[field.name].cast(pa.int64())
            if pc.any(pc.not_equal(ticks, pc.multiply(pc.divide(ticks, 1_000), 1_000))).as_py():
                raise DataError(f"`{field.name}` has durations finer than microseconds, which DuckDB does not have",
                                hint="round them, or give them to acep.match_recognize", code="data_value")  # fmt: skip
        elif _is_foreign(field.type):
            column = _column_for_duckdb(table.column(index))
            table = table.set_column(index, pa.field(field.name, column.type), column)
    return table


def stand_ins(schema: pa.Schema) -> dict[str, str]:
    """Return why DuckDB does not hold columns, by name; behind ``; `` is what to do.

    >>> union = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    >>> stand_ins(to_duckdb(pa.table({"x": union, "y": [1]})).schema)
    {'x': 'is dense_union<0: int64=0>, which DuckDB does not have; cast it to text, or leave it out'}
    """
    return {field.name: field.type[1].name for field in schema if _is_stand_in(field.type)}


def check_result(table: pa.Table) -> None:
    """Raise :class:`DataError` for a column of a result that DuckDB does not hold."""
    for name, reason in stand_ins(table.schema).items():
        raise unread_error(name, reason)


def _is_stand_in(data_type: pa.DataType) -> bool:
    return pa.types.is_struct(data_type) and bool(data_type.num_fields == 2 and data_type[0].name == _MARK)


def _is_foreign(data_type: pa.DataType) -> bool:
    """Return whether DuckDB does not have a type, or one inside of it."""
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return _is_foreign(data_type.value_type)
    if pa.types.is_float16(data_type) or pa.types.is_decimal256(data_type) or pa.types.is_union(data_type):
        return True
    return any(_is_foreign(data_type.field(index).type) for index in range(data_type.num_fields))


def _nearest_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type of DuckDB that may hold the values of another one; the same one if there is none."""
    if pa.types.is_dictionary(data_type):
        return _nearest_type(data_type.value_type)
    if pa.types.is_float16(data_type):
        return pa.float32()
    if pa.types.is_decimal256(data_type) and data_type.scale <= _DIGITS:
        return pa.decimal128(_DIGITS, data_type.scale)
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_nearest_type(field.type)) for field in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(_nearest_type(data_type.value_type)))
    if pa.types.is_large_list(data_type):
        return pa.large_list(data_type.value_field.with_type(_nearest_type(data_type.value_type)))
    return data_type


def _column_for_duckdb(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of a type that DuckDB has: with the same values, or a stand-in."""
    if pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], column.type.value_type)
    nearest = _nearest_type(column.type)
    if not _is_foreign(nearest):
        try:
            return column.cast(nearest)
        except pa.ArrowInvalid:  # a decimal of more digits
            pass
    try:
        values = column.cast(pa.string())
    except pa.ArrowNotImplementedError:
        values = pa.chunked_array([pa.array(np.arange(len(column)))])
    reason = f"is {column.type}, which DuckDB does not have; cast it to text, or leave it out"
    chunk = pa.StructArray.from_arrays([values.combine_chunks(), pa.nulls(len(column), pa.bool_())], [_MARK, reason])
    return pa.chunked_array([chunk])


def from_duckdb(table: pa.Table) -> pa.Table:
    """Return a table of DuckDB with durations of microseconds in place of its intervals, whose days have 24 hours, and
    without columns that DuckDB does not hold (:func:`acep.events.frames.unread_columns`).

    Raises :class:`DataError` for an interval with months.
    """
    for index, field in enumerate(table.schema):
        if field.type == pa.month_day_nano_interval():
            chunks = [_durations(chunk, field.name) for chunk in table.column(index).chunks]
            column = pa.chunked_array(chunks, pa.duration("us"))
            table = table.set_column(index, pa.field(field.name, column.type), column)
    reasons = stand_ins(table.schema)
    return with_unread(table.drop_columns([*reasons]), reasons) if reasons else table


def _durations(intervals: pa.Array, name: str) -> pa.Array:
    """Return the intervals of a column as durations."""
    if not len(intervals):
        return pa.array([], pa.duration("us"))
    parts = np.frombuffer(intervals.buffers()[1], _INTERVAL)[intervals.offset : intervals.offset + len(intervals)]
    is_null = intervals.is_null().to_numpy(zero_copy_only=False)
    if np.any(parts["months"][~is_null]):
        raise DataError(f"`{name}` has an interval with months, which have no fixed length",
                        hint=f"cast it in the statement: CAST({name} AS VARCHAR)", code="data_value")  # fmt: skip
    ticks = parts["days"].astype(np.int64) * _DAY_US + parts["ns"] // 1_000
    return pa.array(ticks, mask=is_null).cast(pa.duration("us"))
