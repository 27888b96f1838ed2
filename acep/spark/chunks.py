"""A table of events as files for a file stream: one micro-batch each, in order, and a last one that ends the stream."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acep.errors import DataError, SnapshotError
from acep.events.columns import UNIT_NS, kind_of, plain_type, tick_of, ticks_of
from acep.events.tables import InputSchema
from acep.plan.schema import Kind

__all__ = ["ORDER", "ROW", "for_spark", "with_order", "write_chunks"]

# Columns that stand for what Spark does not know: the place of an event in the stream, and its row in the file.
ORDER, ROW = "__order", "__row"

# A file stream reads files by their time of modification, and forgets those a week older than the newest.
FIRST_MTIME = 1_000_000_000


def for_spark(table: pa.Table) -> pa.Table:
    """The table in types that Parquet files and Spark have.

    Raises :class:`DataError` for times that fall between Spark's microseconds, integers beyond 64 bits, decimals of
    more than 38 digits, and durations where they are not ticks of microseconds.
    """
    units = [unit for field in table.schema if (unit := tick_of(field.type)) is not None]
    for field in table.schema:
        if pa.types.is_duration(field.type) and min(units) != UNIT_NS["us"]:
            raise DataError(
                f"column `{field.name}` is {field.type}: on Spark durations are ticks of microseconds, and here of"
                f" {min(units)} ns",
                hint="cast it, and times that are finer, to microseconds, or cast it to integers",
            )
    return pa.table({name: _fitted(name, table.column(name)) for name in table.column_names})


def _fitted(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    truth = kind_of(column.type) is Kind.BOOL
    plain = plain_type(column.type)
    if plain != column.type:
        column = column.cast(plain)
    wanted = pa.bool_() if truth else _wanted(plain)
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid:
        raise DataError(
            f"column `{name}` ({plain}) holds values that Spark's {wanted} does not",
            hint="round times to microseconds" if pa.types.is_timestamp(plain) else None,
        ) from None


def _wanted(plain: pa.DataType) -> pa.DataType:
    """The type of Spark's that holds the values of a plain type, the type itself where there is none."""
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


def with_order(table: pa.Table, schema: InputSchema, *, sort: bool) -> pa.Table:
    """The table with its rows numbered, as :data:`ROW`, and their places in the stream's order, as :data:`ORDER`.

    The order is that of (``ts``, ``seq``, row). ``sort`` puts the rows in that order too.
    """
    size = table.num_rows
    keys: list[Any] = []
    for name in (schema.seq, schema.ts):
        if name is not None:
            ticks, null = ticks_of(name, table.column(name), schema.tick_ns or 1)
            if null is not None and null.any():
                row = int(np.argmax(null))
                raise DataError(f"column `{name}` is null in row {row} (rows count from 0)", hint="drop the row")
            keys.append(ticks)
    order = np.lexsort(keys)
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    table = table.append_column(ORDER, pa.array(place)).append_column(ROW, pa.array(np.arange(size)))
    return table.take(pa.array(order)) if sort else table


def write_chunks(table: pa.Table, folder: Path, size: int, end: dict[str, Any], about: dict[str, Any]) -> int:
    """Write ``table`` as files of ``size`` rows, and the row ``end`` as the last one; how many files there are.

    ``about`` says what the files are of, as JSON. Where the folder holds files already, they stay, if they are of
    the same; else :class:`SnapshotError` is raised.
    """
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "_about.json"
    number = -(-int(table.num_rows) // size)
    if note.exists():
        try:
            found = json.loads(note.read_text(encoding="utf-8"))
        except ValueError:
            raise SnapshotError(f"`{note}` is damaged", hint="start with a new checkpoint") from None
        if found != about:
            changed = [name for name in about if found.get(name) != about[name]]
            raise SnapshotError(
                f"the checkpoint was made with another {' and '.join(changed) or 'version'}",
                hint="go on with what it was made with, or start with a new checkpoint; nothing was lost",
            )
        return number + 1
    for i in range(number):
        _write(table.slice(i * size, size), folder, i)
    last = {name: [end.get(name)] for name in table.column_names}
    _write(pa.table(last, schema=table.schema), folder, number)
    part = note.with_suffix(".part")
    part.write_text(json.dumps(about), encoding="utf-8")
    part.replace(note)
    return number + 1


def _write(rows: pa.Table, folder: Path, number: int) -> None:
    path = folder / f"{number:06}.parquet"
    # A name that begins with a dot is not read, so half a file is never seen.
    part = path.with_name(f".{path.name}")
    pq.write_table(rows, part)
    os.utime(part, (FIRST_MTIME + number, FIRST_MTIME + number))
    part.replace(path)


def end_row(schema: InputSchema, held: pa.DataType) -> dict[str, Any]:
    """The row that ends a stream whose time column has this Arrow type."""
    if pa.types.is_integer(held):
        return {schema.ts: int(np.iinfo(held.to_pandas_dtype()).max)}
    day = dt.datetime(9999, 12, 31)
    if pa.types.is_date(held):
        return {schema.ts: day.date()}
    return {schema.ts: day.replace(tzinfo=dt.UTC) if held.tz else day}
