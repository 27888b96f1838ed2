"""Single Arrow columns as NumPy arrays and Python values.

Arrow's own ``to_numpy`` and ``pa.array`` import pandas where it is installed, which costs more time than
matching a small file does; so buffers are read directly here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.engine.batch import Column
from acep.errors import DataError
from acep.plan.schema import Kind

__all__ = ["UNIT_NS", "column_of", "kind_of", "plain_type", "tick_of", "ticks_of"]

UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
LIMIT = 2**63
FEW = 10_000  # for fewer texts a dictionary does not pay the import of pyarrow.compute

Array = npt.NDArray[Any]


def plain_type(held: pa.DataType) -> pa.DataType:
    """The type of the values, without dictionary, run-end or extension wrapping."""
    while True:
        if isinstance(held, pa.BaseExtensionType):
            held = held.storage_type
        elif pa.types.is_dictionary(held) or pa.types.is_run_end_encoded(held):
            held = held.value_type
        else:
            return held


def kind_of(held: pa.DataType) -> Kind | None:
    """What a column holds, or ``None`` where it cannot be an attribute (nested, binary, time of day).

    Durations are integers, in ticks.

    >>> kind_of(pa.dictionary(pa.int8(), pa.large_string())), kind_of(pa.list_(pa.int64()))
    (<Kind.STRING: 'string'>, None)
    """
    held = plain_type(held)
    is_ = pa.types
    if is_.is_boolean(held):
        return Kind.BOOL
    if is_.is_integer(held) or is_.is_duration(held):
        return Kind.INT
    if is_.is_floating(held) or is_.is_decimal(held):
        return Kind.FLOAT
    if is_.is_null(held):
        return Kind.NULL
    if is_.is_string(held) or is_.is_large_string(held) or is_.is_string_view(held):
        return Kind.STRING
    if is_.is_timestamp(held) or is_.is_date(held):
        return Kind.TIMESTAMP
    return None


def tick_of(held: pa.DataType) -> int | None:
    """The length in nanoseconds of the unit of a timestamp, date or duration, else ``None``. A date counts in seconds.

    >>> tick_of(pa.timestamp("ms")), tick_of(pa.date32()), tick_of(pa.int64())
    (1000000, 1000000000, None)
    """
    held = plain_type(held)
    if pa.types.is_timestamp(held) or pa.types.is_duration(held):
        return UNIT_NS[held.unit]
    if pa.types.is_date32(held):
        return UNIT_NS["s"]
    if pa.types.is_date64(held):
        return UNIT_NS["ms"]
    return None


def ticks_of(name: str, column: pa.ChunkedArray, tick_ns: Fraction | int) -> tuple[Array, Array | None]:
    """A column of integers, times or durations as ``(n int64, n bool or None)``: ticks, and which rows are null.

    Raises :class:`DataError` where a value does not fit 64 bits, or is no whole number of ticks.
    """
    column = _decoded(column)
    held = column.type
    numbers, null = _joined(column)
    if pa.types.is_null(held):
        return np.zeros(len(column), np.int64), np.ones(len(column), bool)
    if null is not None:
        numbers = np.where(null, numbers.dtype.type(0), numbers)
    if pa.types.is_uint64(held) and len(numbers) and int(numbers.max()) >= LIMIT:
        raise DataError(
            f"column `{name}` has an integer beyond 64 bits with sign: {int(numbers.max())}",
            hint="cast it to float or to text",
        )
    numbers = numbers.astype(np.int64, copy=False)
    if pa.types.is_integer(held):
        return numbers, null
    unit = UNIT_NS["d"] if pa.types.is_date32(held) else tick_of(held)
    assert unit is not None
    return _scaled(name, numbers, Fraction(unit) / tick_ns), null


def _scaled(name: str, numbers: Array, factor: Fraction) -> Array:
    if factor == 1 or not len(numbers):
        return numbers
    largest = max(abs(int(numbers.min())), abs(int(numbers.max())))
    if largest * factor.numerator >= LIMIT:
        raise DataError(
            f"column `{name}` has a time that does not fit the finest unit among the time columns",
            hint="cast the time columns to one coarser unit",
        )
    numbers = numbers * factor.numerator
    if factor.denominator > 1:
        if np.any(numbers % factor.denominator):
            raise DataError(
                f"column `{name}` has times that fall between the ticks of an integer ts",
                hint="make ts a timestamp, or an integer of a finer unit",
            )
        numbers = numbers // factor.denominator
    return numbers


def column_of(name: str, column: pa.ChunkedArray, kind: Kind, tick_ns: Fraction | int) -> Column:
    """An Arrow column as one of the engine's, times as ticks of ``tick_ns``.

    ``kind`` is what the stream's schema says; a column of another kind raises :class:`DataError`.
    """
    found = kind_of(column.type)
    nothing = pa.types.is_null(column.type)
    if found is not kind and not nothing and not (found is Kind.INT and kind is Kind.FLOAT):
        what = f"is {column.type}" if found is None else f"holds {found.value} values"
        before = "only nulls" if kind is Kind.NULL else f"{kind.value} values"
        raise DataError(
            f"column `{name}` {what}, where {before} were seen before",
            hint="give every batch the same types",
        )
    if nothing:
        held: Any = np.float64 if kind is Kind.FLOAT else np.int64
        texts: list[str] | None = [] if kind is Kind.STRING else None
        valid = np.zeros(len(column), np.uint8) if len(column) else None
        return Column(kind, np.zeros(len(column), held), valid, texts)
    if kind is Kind.STRING:
        try:
            return _texts(_decoded(column, keep_dictionary=True))
        except UnicodeDecodeError:
            raise DataError(f"column `{name}` is not UTF-8 text") from None
    if kind is Kind.FLOAT and found is Kind.FLOAT:
        numbers, null = _joined(_decoded(column))
        numbers = numbers.astype(np.float64, copy=False)
        nan = np.isnan(numbers)
        if nan.any():
            null = nan if null is None else null | nan
    elif kind is Kind.BOOL:
        numbers, null = _joined(_decoded(column))
        numbers = numbers.astype(np.int64)
    else:
        numbers, null = ticks_of(name, column, tick_ns)
        if kind is Kind.FLOAT:
            numbers = numbers.astype(np.float64)
    if null is None or not null.any():
        return Column(kind, numbers)
    return Column(kind, np.where(null, numbers.dtype.type(0), numbers), (~null).view(np.uint8))


def _decoded(column: pa.ChunkedArray, *, keep_dictionary: bool = False) -> pa.ChunkedArray:
    """The column without wrapping, as a type whose buffers are simple."""
    held = column.type
    if isinstance(held, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in column.chunks]
        return _decoded(pa.chunked_array(chunks, held.storage_type), keep_dictionary=keep_dictionary)
    if pa.types.is_run_end_encoded(held):
        import pyarrow.compute as pc

        return _decoded(pc.run_end_decode(column), keep_dictionary=keep_dictionary)
    if pa.types.is_dictionary(held) and not keep_dictionary:
        return _decoded(column.cast(held.value_type))
    if pa.types.is_decimal(held):
        return column.cast(pa.float64())
    return column


def _joined(column: pa.ChunkedArray) -> tuple[Array, Array | None]:
    """All chunks of a column of fixed width as one array of its own dtype, and which rows are null."""
    parts = [_buffer(chunk) for chunk in column.chunks]
    # One chunk is taken as it is, without a copy.
    alone = len(parts) == 1 and parts[0].flags.aligned
    numbers = parts[0] if alone else np.concatenate(parts) if parts else np.empty(0, _dtype(column.type))
    if not column.null_count:
        return numbers, None
    return numbers, np.concatenate([_nulls(chunk) for chunk in column.chunks])


def _dtype(held: pa.DataType) -> np.dtype[Any]:
    if pa.types.is_boolean(held):
        return np.dtype(bool)
    if pa.types.is_floating(held):
        return np.dtype(f"f{held.bit_width // 8}")
    if pa.types.is_null(held):
        return np.dtype(np.int64)
    unsigned = pa.types.is_unsigned_integer(held)
    return np.dtype(f"{'u' if unsigned else 'i'}{held.bit_width // 8}")


def _buffer(array: pa.Array) -> Array:
    """The numbers of an array of fixed width; what stands in null rows is arbitrary."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), _dtype(array.type))
    if pa.types.is_boolean(array.type):
        return _bits(buffer, array.offset, len(array))
    return np.frombuffer(buffer, _dtype(array.type))[array.offset : array.offset + len(array)]


def _nulls(array: pa.Array) -> Array:
    if not array.null_count:
        return np.zeros(len(array), bool)
    if pa.types.is_null(array.type):
        return np.ones(len(array), bool)
    return ~_bits(array.buffers()[0], array.offset, len(array))


def _bits(buffer: pa.Buffer, offset: int, size: int) -> Array:
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
    return bits[offset : offset + size].astype(bool)


def _texts(column: pa.ChunkedArray) -> Column:
    """Texts as places in a list in which each distinct one of a chunk stands once."""
    if column.num_chunks == 1 and not column.null_count:
        texts, codes = _encoded(column.chunk(0))
        if None not in texts and codes.flags.aligned:
            return Column(Kind.STRING, codes, None, [t for t in texts if t is not None])
    known: list[str] = []
    parts: list[Array] = []
    for chunk in column.chunks:
        texts, codes = _encoded(chunk)
        # An entry of a dictionary may itself be null.
        places = np.array([-1 if t is None else len(known) + i for i, t in enumerate(texts)] + [-1], np.int64)
        parts.append(places[codes])
        known += ["" if t is None else t for t in texts]
    values = np.concatenate(parts) if parts else np.empty(0, np.int64)
    null = values < 0
    if not null.any():
        return Column(Kind.STRING, values, None, known)
    return Column(Kind.STRING, np.where(null, 0, values), (~null).view(np.uint8), known)


def _encoded(array: pa.Array) -> tuple[list[str | None], Array]:
    """The texts of a chunk and each row's place among them; that of a null is their number."""
    if not pa.types.is_dictionary(array.type) and len(array) <= FEW:
        found: dict[str, int] = {}
        rows = array.to_pylist()
        places = [-1 if t is None else found.setdefault(t, len(found)) for t in rows]
        return [*found], np.array([len(found) if p < 0 else p for p in places], np.int64)
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    texts = array.dictionary.to_pylist()
    codes = _buffer(array.indices)
    if codes.dtype.kind == "u":
        codes = codes.astype(np.int64)
    return texts, np.where(_nulls(array), len(texts), codes.astype(np.int64)) if array.null_count else codes
