"""Find the rows that look as ``acep.spark.punctuation`` writes them: they end a stream where that is permitted."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.events.buffers import decode
from acep.events.fields import column_at, fields_of
from acep.streaming.times import END_MS

__all__ = ["end_markers", "has_last_time"]

PER_S = {"s": 1, "ms": 1_000, "us": 1_000_000}  # a number of nanoseconds does not reach that far


def has_last_time(table: pa.Table, ts: str) -> npt.NDArray[np.bool_]:
    """Return which rows have the time that only the end of a stream has: 9999-12-31, or the greatest integer of the
    type of the column ``ts``.

    >>> has_last_time(pa.table({"ts": pa.array([1, 127, None], pa.int8())}), "ts").tolist()
    [False, True, False]
    """
    column = column_at(table, ts)
    last = None if column is None else _last_time(decode(column).type)
    if column is None or last is None:
        return np.zeros(table.num_rows, bool)
    times = decode(column)
    if not pa.types.is_integer(times.type):
        times = times.cast(pa.int32() if pa.types.is_date32(times.type) else pa.int64())
    numbers = times.fill_null(0).to_numpy()
    return np.asarray(numbers == last)


def _last_time(value_type: pa.DataType) -> int | None:
    """Return the last time as a number of a type; ``None`` if the type has no such time."""
    if pa.types.is_integer(value_type):
        return int(np.iinfo(value_type.to_pandas_dtype()).max)
    if pa.types.is_date32(value_type):
        return END_MS // 86_400_000
    if pa.types.is_date64(value_type):
        return END_MS
    if pa.types.is_timestamp(value_type) and value_type.unit in PER_S:
        return END_MS // 1000 * PER_S[value_type.unit]
    return None


def end_markers(table: pa.Table, ts: str, besides: Collection[str], columns: Collection[str]) -> npt.NDArray[np.bool_]:
    """Return which rows end the stream: their time is the last one, and all else in them is null.

    ``besides`` names columns that may have a value: those of ``seq`` and ``id``, which a source may fill in. A row
    lacks those of ``columns`` that the table does not have. If there is nothing else than these, no row ends the
    stream, as nothing would tell it from an event.

    >>> rows = pa.table({"ts": pa.array([127, 127, 3], pa.int8()), "type": ["a", None, None], "n": [1, 2, 3]})
    >>> end_markers(rows, "ts", ["n"], ["ts", "type", "n"]).tolist()
    [False, True, False]
    """
    marks = has_last_time(table, ts)
    types = fields_of(table.schema)
    inner = [name for name, value_type in types.items() if not pa.types.is_struct(value_type)]
    if not marks.any() or not {*inner, *columns} - {ts, *besides}:
        return np.zeros(table.num_rows, bool)
    for name in inner:
        column = column_at(table, name)
        if name not in (ts, *besides) and column is not None:
            marks &= column.is_null().to_numpy()
    return marks
