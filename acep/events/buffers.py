"""Convert the buffers of Arrow columns to NumPy arrays.

Arrow's own ``to_numpy`` imports pandas if it is installed, which takes longer than matching a small file.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError

__all__ = [
    "buffer",
    "decode",
    "join_chunks",
    "nulls",
    "numbers_in_place",
    "plain_type",
    "read_table",
    "selectable",
    "table_bytes",
]

Array = npt.NDArray[Any]

_DIRECT = {pa.int64().id: np.dtype(np.int64), pa.float64().id: np.dtype(np.float64)}
_BARE = {
    *_DIRECT,
    *(data_type.id for data_type in (pa.string(), pa.large_string(), pa.timestamp("us"), pa.int32(), pa.bool_())),
}


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type of the values, without dictionary, run-end or extension wrapping."""
    if data_type.id in _BARE:
        return data_type
    if isinstance(data_type, pa.BaseExtensionType):  # which may have no hash
        return plain_type(data_type.storage_type)
    return _plain(data_type)


def numbers_in_place(column: pa.ChunkedArray) -> Array | None:
    """Return the numbers of a column of int64 or float64 in one chunk without nulls, in the memory that they have;
    ``None`` for any other column. For small batches this takes less time than :func:`join_chunks`.

    >>> numbers_in_place(pa.chunked_array([[1, 2]])), numbers_in_place(pa.chunked_array([[1, None]]))
    (array([1, 2]), None)
    """
    if column.num_chunks != 1 or column.null_count or not len(column):
        return None
    dtype = _DIRECT.get(column.type.id)
    if dtype is None:
        return None
    chunk = column.chunk(0)
    numbers = np.frombuffer(chunk.buffers()[1], dtype, len(chunk), dtype.itemsize * chunk.offset)
    return numbers if numbers.flags.aligned else None


@lru_cache(maxsize=256)
def _plain(data_type: pa.DataType) -> pa.DataType:
    wrapped = pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type)
    return plain_type(data_type.value_type) if wrapped else data_type


def decode(column: pa.ChunkedArray, *, keep_dictionary: bool = False) -> pa.ChunkedArray:
    """Return the column without dictionary (unless kept), run-end or extension wrapping."""
    data_type = column.type
    if isinstance(data_type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in column.chunks]
        return decode(pa.chunked_array(chunks, data_type.storage_type), keep_dictionary=keep_dictionary)
    if pa.types.is_run_end_encoded(data_type):
        import pyarrow.compute as pc

        return decode(pc.run_end_decode(column), keep_dictionary=keep_dictionary)
    if pa.types.is_dictionary(data_type) and not keep_dictionary:
        return decode(column.cast(data_type.value_type))
    return column


def selectable(rows: pa.Table) -> pa.Table:
    """Return the table with types of which Arrow can select rows: without run ends, and without views of texts.

    Raises :class:`DataError` for a struct or list that holds runs.

    >>> rows = pa.table({"x": pa.array(["a", "b"], pa.string_view()), "y": [1, 2]})
    >>> selectable(rows).schema.types
    [DataType(large_string), DataType(int64)]
    """
    for index, field in enumerate(rows.schema):
        extended = isinstance(field.type, pa.BaseExtensionType)  # which may have no hash
        selectable_type = field.type if extended else _selectable(field.type)
        if selectable_type != field.type:
            column = rows.column(index)
            column = decode(column, keep_dictionary=True) if pa.types.is_run_end_encoded(field.type) else column
            try:
                rows = rows.set_column(index, field.with_type(selectable_type), column.cast(selectable_type))
            except pa.ArrowNotImplementedError:
                raise DataError(
                    f"rows cannot be selected from column `{field.name}`, which is {field.type}",
                    hint="leave it out, or decode it first",
                    code="data_type",
                ) from None
    return rows


@lru_cache(maxsize=256)
def _selectable(data_type: pa.DataType) -> pa.DataType:
    is_ = pa.types
    if is_.is_string_view(data_type):
        return pa.large_string()
    if is_.is_binary_view(data_type):
        return pa.large_binary()
    if is_.is_run_end_encoded(data_type):
        return _selectable(data_type.value_type)
    if is_.is_struct(data_type):
        return pa.struct([field.with_type(_selectable(field.type)) for field in data_type])
    if is_.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(_selectable(data_type.value_type)))
    return data_type


def join_chunks(column: pa.ChunkedArray) -> tuple[Array, Array | None]:
    """Return all chunks of a fixed-width column as one array of its dtype, and a mask of its nulls or ``None``.

    Decimals of n * 64 bits are n int64 each, the lowest word first.
    """
    parts = [buffer(chunk) for chunk in column.chunks]
    # A single chunk needs no copy.
    is_single = len(parts) == 1 and parts[0].flags.aligned
    numbers = parts[0] if is_single else np.concatenate(parts) if parts else np.empty(0, _dtype(column.type))
    if not column.null_count:
        return numbers, None
    return numbers, np.concatenate([nulls(chunk) for chunk in column.chunks])


@lru_cache(maxsize=256)
def _dtype(data_type: pa.DataType) -> np.dtype[Any]:
    if pa.types.is_boolean(data_type):
        return np.dtype(bool)
    if pa.types.is_floating(data_type):
        return np.dtype(f"f{data_type.bit_width // 8}")
    if pa.types.is_null(data_type):
        return np.dtype(np.int64)
    if pa.types.is_decimal(data_type):
        return np.dtype(f"i{min(data_type.bit_width // 8, 8)}")
    unsigned = pa.types.is_unsigned_integer(data_type)
    return np.dtype(f"{'u' if unsigned else 'i'}{data_type.bit_width // 8}")


def buffer(array: pa.Array) -> Array:
    """Return the numbers of a fixed-width array; those of null rows are arbitrary."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array) * _words(array.type), _dtype(array.type))
    if pa.types.is_boolean(array.type):
        return _bits(buffer, array.offset, len(array))
    words = _words(array.type)
    return np.frombuffer(buffer, _dtype(array.type))[array.offset * words : (array.offset + len(array)) * words]


def _words(data_type: pa.DataType) -> int:
    return data_type.bit_width // 64 if pa.types.is_decimal(data_type) and data_type.bit_width > 64 else 1


def nulls(array: pa.Array) -> Array:
    """Return a mask of the null rows."""
    if not array.null_count:
        return np.zeros(len(array), bool)
    if pa.types.is_null(array.type):
        return np.ones(len(array), bool)
    return ~_bits(array.buffers()[0], array.offset, len(array))


def _bits(buffer: pa.Buffer, offset: int, size: int) -> Array:
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
    return bits[offset : offset + size].astype(bool)


def table_bytes(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream.

    >>> read_table(table_bytes(pa.table({"x": [1, 2]}))).to_pydict()
    {'x': [1, 2]}
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def read_table(data: bytes) -> pa.Table:
    """Return the table of :func:`table_bytes`. Raises :class:`ValueError` or :class:`pyarrow.ArrowException` for other
    data."""
    if not isinstance(data, bytes):
        raise ValueError("bytes")
    return pa.ipc.open_stream(data).read_all()
