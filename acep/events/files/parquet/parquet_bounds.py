"""Bound what a Parquet file may take when it is read: its columns, its rows, and texts that a dictionary repeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from acep.errors import DataError
from acep.events.files.finding import EventFile
from acep.events.files.options import Options
from acep.events.files.text_bytes import VALUE, check_expansion

__all__ = ["check_size", "rows_at_once"]

BATCH = 64 << 20
"""The bytes that the texts of one batch may have."""


def check_size(opened: Any, source: EventFile, columns: Sequence[str], options: Options) -> None:
    """Raise :class:`DataError` for a file of too many columns, or of more rows than its bytes can tell apart.

    ``opened`` is a :class:`pyarrow.parquet.ParquetFile`; ``columns`` are those that are read.
    """
    n_columns, rows = opened.metadata.num_columns, opened.metadata.num_rows
    if n_columns > options.max_columns:
        raise DataError(
            f"`{source.name}` has {n_columns:,} columns, and {options.max_columns:,} are allowed",
            hint="max_columns= allows more",
            code="data_column",
        )
    check_expansion(source, options, rows * VALUE * max(len(columns), 1), "read")


def rows_at_once(source: EventFile, columns: Sequence[str], options: Options, n_most: int) -> tuple[int, float]:
    """Return how many rows may be read at once, at most ``n_most``, so that the texts of a batch fit into memory; and
    how many bytes a row may have.

    A dictionary has a text once, however often it comes. Raises :class:`DataError` for a text that is too long.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(source.path) as opened:
        leaves = [leaf.path for leaf in map(opened.schema.column, range(len(opened.schema)))]
        wanted = {path for path in leaves for name in columns if path == name or path.startswith(f"{name}.")}
        groups = [opened.metadata.row_group(i) for i in range(opened.metadata.num_row_groups)]
        rows = max(opened.metadata.num_rows, 1)
    width = 0.0
    for number, group in enumerate(groups):
        for i in range(group.num_columns):
            chunk = group.column(i)
            if chunk.path_in_schema not in wanted:
                continue
            width += max(chunk.total_uncompressed_size, group.num_rows * VALUE) / rows
            if chunk.physical_type != "BYTE_ARRAY":
                continue
            if not chunk.has_dictionary_page or chunk.total_uncompressed_size * min(group.num_rows, n_most) <= BATCH:
                continue
            with pq.ParquetFile(source.path, read_dictionary=[chunk.path_in_schema]) as opened:
                batch = next(opened.iter_batches(1, row_groups=[number], columns=[chunk.path_in_schema]), None)
            longest = max((_longest(column) for column in (batch.columns if batch is not None else ())), default=0)
            if longest > options.max_line:
                raise DataError(
                    f"`{source.name}`: `{chunk.path_in_schema}` has a text of {longest:,} bytes",
                    hint="max_line= allows longer ones",
                    code="data_value",
                )
            n_most = max(min(n_most, BATCH // max(longest, 1)), 1)
            width += longest * group.num_rows / rows
    return n_most, width


def _longest(array: pa.Array) -> int:
    """Return the number of bytes of the longest text in the dictionaries of an array."""
    return max(map(_bytes_of_longest, _dictionaries(array)), default=0)


def _dictionaries(array: pa.Array) -> Iterator[pa.Array]:
    value_type = array.type
    if pa.types.is_dictionary(value_type):
        yield array.dictionary
    elif pa.types.is_struct(value_type):
        for i in range(value_type.num_fields):
            yield from _dictionaries(array.field(i))
    elif pa.types.is_map(value_type):
        yield from _dictionaries(array.keys)
        yield from _dictionaries(array.items)
    elif pa.types.is_list(value_type) or pa.types.is_large_list(value_type):
        yield from _dictionaries(array.values)


def _bytes_of_longest(texts: pa.Array) -> int:
    import pyarrow.compute as pc

    return int(pc.max(pc.binary_length(texts)).as_py() or 0) if len(texts) else 0
