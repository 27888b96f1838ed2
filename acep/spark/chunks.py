"""Write a table of events as files for a file stream: one micro-batch each, in order; the last ends the stream."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError
from acep.events.columns import UNIT_NS, kind_of, plain_type, tick_of
from acep.events.tables import InputSchema
from acep.following.replayed_events import ORDER, ROW, has_content, note_content, with_order, write_chunk
from acep.plan.schema import Kind

__all__ = ["ORDER", "ROW", "for_spark", "with_order", "write_chunks"]


def for_spark(table: pa.Table) -> pa.Table:
    """Cast the columns of a table to types that Parquet files and Spark have.

    Raises :class:`DataError` for times that are not whole microseconds, integers beyond 64 bits, decimals of more than
    38 digits, and durations if the table's finest time unit is not a microsecond.
    """
    units = [unit for field in table.schema if (unit := tick_of(field.type)) is not None]
    for field in table.schema:
        if pa.types.is_duration(field.type) and min(units) != UNIT_NS["us"]:
            raise DataError(
                f"column `{field.name}` is {field.type}: on Spark durations are ticks of microseconds, and here of"
                f" {min(units)} ns",
                hint="cast it, and times that are finer, to microseconds, or cast it to integers",
                code="data_type",
            )
    return pa.table({name: _cast_column(name, table.column(name)) for name in table.column_names})


def _cast_column(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    truth = kind_of(column.type) is Kind.BOOL
    plain = plain_type(column.type)
    if plain != column.type:
        column = column.cast(plain)
    spark_type = pa.bool_() if truth else _type_for_spark(plain)
    try:
        return column.cast(spark_type)
    except pa.ArrowInvalid:
        raise DataError(
            f"column `{name}` ({plain}) holds values that Spark's {spark_type} does not",
            hint="round times to microseconds" if pa.types.is_timestamp(plain) else None,
            code="data_type",
        ) from None


def _type_for_spark(plain: pa.DataType) -> pa.DataType:
    """Return the Spark type that holds the values of a plain type; if there is none, the type itself."""
    is_ = pa.types
    if is_.is_timestamp(plain):
        return pa.timestamp("us", tz=plain.tz)
    if is_.is_decimal(plain):
        scale = max(plain.scale, 0)
        return pa.decimal128(min(38, plain.precision - min(plain.scale, 0)), scale) if scale <= 38 else plain
    if is_.is_duration(plain):
        return pa.duration("us")
    if is_.is_date64(plain):
        return pa.date32()
    if is_.is_unsigned_integer(plain):
        return pa.int64()
    if is_.is_float16(plain):
        return pa.float32()
    if is_.is_large_string(plain) or is_.is_string_view(plain) or is_.is_null(plain):
        return pa.string()
    return plain


def write_chunks(table: pa.Table, folder: Path, size: int, end: dict[str, Any], about: dict[str, Any]) -> int:
    """Write ``table`` as files of ``size`` rows, and the row ``end`` as the last file; return the number of files.

    ``about`` describes the content of the files as JSON-like data. Existing files of the same content stay; if the
    content differs, :class:`SnapshotError` is raised.
    """
    number = -(-int(table.num_rows) // size)
    if has_content(folder, about):
        return number + 1
    for i in range(number):
        write_chunk(table.slice(i * size, size), folder, i)
    last = {name: [end.get(name)] for name in table.column_names}
    write_chunk(pa.table(last, schema=table.schema), folder, number)
    note_content(folder, about)
    return number + 1


def end_row(schema: InputSchema, arrow_type: pa.DataType) -> dict[str, Any]:
    """Return the row that ends a stream whose time column has this Arrow type."""
    if pa.types.is_integer(arrow_type):
        return {schema.ts: int(np.iinfo(arrow_type.to_pandas_dtype()).max)}
    day = dt.datetime(9999, 12, 31)
    if pa.types.is_date(arrow_type):
        return {schema.ts: day.date()}
    return {schema.ts: day.replace(tzinfo=dt.UTC) if arrow_type.tz else day}
