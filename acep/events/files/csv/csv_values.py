"""Read columns of texts as Arrow's CSV reader reads cells."""

from __future__ import annotations

import io

import pyarrow as pa

from acep.events.files.far_times import check_reach

__all__ = ["convert_texts", "infer_values"]


def infer_values(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values that Arrow's CSV reader makes of a column of texts, in the type that it finds.

    >>> infer_values(pa.chunked_array([["1", None, "7.5"]])).to_pylist()
    [1.0, None, 7.5]
    """
    values = _read_back(texts, None)
    try:
        return check_reach(texts, values)
    except pa.ArrowInvalid:
        return texts


def convert_texts(texts: pa.Array | pa.ChunkedArray, value_type: pa.DataType) -> pa.ChunkedArray:
    """Convert texts to values as cells of CSV are read. Raises :class:`pyarrow.ArrowInvalid`."""
    return check_reach(texts, _read_back(texts, value_type))


def _read_back(texts: pa.Array | pa.ChunkedArray, value_type: pa.DataType | None) -> pa.ChunkedArray:
    """Write texts as CSV and read them; only null is null, and not an empty text."""
    from pyarrow import csv

    if not len(texts):
        return pa.chunked_array([], value_type or pa.null())
    sink = io.BytesIO()
    csv.write_csv(pa.table({"x": texts}), sink, csv.WriteOptions(include_header=False))
    table = csv.read_csv(
        io.BytesIO(sink.getbuffer()),
        read_options=csv.ReadOptions(column_names=["x"], use_threads=False, block_size=max(len(sink.getbuffer()), 1)),
        parse_options=csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types={} if value_type is None else {"x": value_type},
            null_values=[""],
            quoted_strings_can_be_null=False,
        ),
    )
    return table.column(0)
