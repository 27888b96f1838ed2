"""Read INT96 times of Parquet exactly: find the unit in which Arrow holds all of them.

An INT96 time is a day and the nanoseconds in it. Arrow makes it a timestamp of 64 bits; one that does not fit wraps
around without an error. Spark writes such times by default, for the years 1 to 9999.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError
from acep.events.buffers import buffer, nulls

__all__ = ["int96_columns", "unit_of_int96"]

NS_REACH = 2**63 // 1_000  # in microseconds: times that nanoseconds reach lie between minus this and this


@dataclass(frozen=True)
class Times:
    """The ``numbers`` of all times in a column or a field, 0 for nulls. ``by_row``: one for each row, as no list is
    around them."""

    name: str
    numbers: npt.NDArray[np.int64]
    by_row: bool = True


def int96_columns(schema: Any) -> list[str]:
    """Return the names of the columns that are INT96 times, or that have such fields.

    ``schema`` is a :class:`pyarrow.parquet.ParquetSchema`.
    """
    paths = [leaf.path for leaf in map(schema.column, range(len(schema))) if leaf.physical_type == "INT96"]
    names = schema.to_arrow_schema().names if paths else []
    return [name for name in names if any(path == name or path.startswith(f"{name}.") for path in paths)]


def unit_of_int96(path: Path, name: str, columns: Sequence[str], rows: int) -> str:
    """Return the unit that holds all INT96 times of some ``columns``: ``"us"``, or ``"ns"`` if one of them is finer.

    ``name`` is the user's name of the file, which is read ``rows`` rows at a time. Raises :class:`DataError` for times
    of which neither unit holds all.
    """
    is_finer, beyond, n_rows = False, "", 0
    for tables in _read_thrice(path, columns, rows):
        triples = zip(*(_times_in(table, columns) for table in tables), strict=True)
        for millis, micros, nanos in triples:
            if (micros.numbers // 1_000 != millis.numbers).any():
                raise DataError(f"`{name}`: `{micros.name}` has a time beyond the year 292,000", code="data_value")
            # Both wrap around alike, so that they differ by the nanoseconds.
            micros_as_nanos = micros.numbers.view(np.uint64) * np.uint64(1_000)
            is_finer = is_finer or bool((nanos.numbers.view(np.uint64) != micros_as_nanos).any())
            beyond = beyond or _time_beyond(micros, n_rows)
        if is_finer and beyond:
            raise DataError(
                f"`{name}`: {beyond}, which nanoseconds do not reach, and other times of the file have nanoseconds",
                hint="write all times in microseconds, or read the columns of one kind only",
                code="data_value",
            )
        n_rows += tables[0].num_rows
    return "ns" if is_finer else "us"


def _read_thrice(path: Path, columns: Sequence[str], rows: int) -> Iterator[tuple[pa.Table, ...]]:
    """Yield the rows with their times in milliseconds, in microseconds and in nanoseconds."""
    import pyarrow.parquet as pq

    files = [pq.ParquetFile(path, coerce_int96_timestamp_unit=unit) for unit in ("ms", "us", "ns")]
    try:
        readers = [file.iter_batches(rows, columns=list(columns), use_threads=False) for file in files]
        for batches in zip(*readers, strict=True):
            yield tuple(pa.Table.from_batches([batch]) for batch in batches)
    finally:
        for file in files:
            file.close()


def _times_in(table: pa.Table, columns: Sequence[str]) -> Iterator[Times]:
    for column in columns:
        for chunk in table.column(column).chunks:
            yield from _times_of(column, chunk, by_row=True)


def _times_of(name: str, array: pa.Array, *, by_row: bool) -> Iterator[Times]:
    value_type = array.type
    if pa.types.is_timestamp(value_type):
        numbers = buffer(array)
        yield Times(name, np.where(nulls(array), 0, numbers) if array.null_count else numbers, by_row)
    elif pa.types.is_struct(value_type):
        for field, inner in zip(value_type, array.flatten(), strict=True):
            yield from _times_of(f"{name}.{field.name}", inner, by_row=by_row)
    elif pa.types.is_map(value_type):
        yield from _times_of(name, array.keys, by_row=False)
        yield from _times_of(name, array.items, by_row=False)
    elif pa.types.is_nested(value_type):
        yield from _times_of(name, array.flatten(), by_row=False)


def _time_beyond(micros: Times, n_rows: int) -> str:
    """Describe the first time that nanoseconds do not reach, empty if there is none; ``n_rows`` came before."""
    places = np.flatnonzero((micros.numbers >= NS_REACH) | (micros.numbers <= -NS_REACH))
    if not len(places):
        return ""
    row = f" in row {n_rows + int(places[0])} (rows count from 0)" if micros.by_row else ""
    return f"`{micros.name}` is {np.datetime64(int(micros.numbers[places[0]]), 'us')}{row}"
