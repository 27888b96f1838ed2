"""Give tables to DuckDB and take tables from it: its intervals have months, and nothing finer than microseconds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep.errors import DataError

__all__ = ["from_duckdb", "to_duckdb"]

_INTERVAL = np.dtype([("months", np.int32), ("days", np.int32), ("ns", np.int64)])
_DAY_US = 86_400_000_000


def to_duckdb(table: pa.Table) -> pa.Table:
    """Return a table for DuckDB, which would cut off what is finer than microseconds in a duration.

    Raises :class:`DataError` for such a value.
    """
    for field in table.schema:
        if field.type == pa.duration("ns"):
            ticks = table[field.name].cast(pa.int64())
            if pc.any(pc.not_equal(ticks, pc.multiply(pc.divide(ticks, 1_000), 1_000))).as_py():
                raise DataError(f"`{field.name}` has durations finer than microseconds, which DuckDB does not have",
                                hint="round them, or give them to acep.match_recognize", code="data_value")  # fmt: skip
    return table


def from_duckdb(table: pa.Table) -> pa.Table:
    """Return a table of DuckDB with durations of microseconds in place of its intervals, whose days have 24 hours.

    Raises :class:`DataError` for an interval with months.
    """
    for index, field in enumerate(table.schema):
        if field.type == pa.month_day_nano_interval():
            chunks = [_durations(chunk, field.name) for chunk in table.column(index).chunks]
            column = pa.chunked_array(chunks, pa.duration("us"))
            table = table.set_column(index, pa.field(field.name, column.type), column)
    return table


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
