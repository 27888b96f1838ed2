"""Convert between decimals and the engine's integers, which count units of 10**-scale."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError
from acep.events.buffers import decode, join_chunks, plain_type
from acep.plan.decimals import MOST_SCALE

__all__ = ["DIGITS", "decimal_of", "decimal_type", "scale_of", "units_of"]

DIGITS = 19  # enough for any 64-bit integer
MIN_PLACES = 9  # decimal places kept for the widest types


def scale_of(data_type: pa.DataType) -> int | None:
    """Return the decimal places kept for a decimal type (0 for a negative scale), ``None`` for any other type.

    Types of up to 19 digits keep their places, up to :data:`MOST_SCALE`. Wider ones keep the places that leave room
    in 64 bits for the digits before the point, but at least 9.

    >>> scale_of(pa.decimal128(19, 2)), scale_of(pa.decimal128(38, 18)), scale_of(pa.float64())
    (2, 9, None)
    """
    data_type = plain_type(data_type)
    if not pa.types.is_decimal(data_type):
        return None
    max_places = (
        MOST_SCALE
        if data_type.precision <= DIGITS
        else max(MOST_SCALE - (data_type.precision - data_type.scale), MIN_PLACES)
    )
    return int(max(min(data_type.scale, max_places, MOST_SCALE), 0))


def decimal_of(units: int | None, scale: int, data_type: pa.DataType | None = None) -> Decimal | None:
    """Return units of 10**-``scale`` as a decimal, exactly, independent of Python's decimal context.

    It has the decimal places of ``data_type`` if that has more.

    >>> decimal_of(110, 2), decimal_of(110, 2, pa.decimal128(38, 4)), decimal_of(None, 2)
    (Decimal('1.10'), Decimal('1.1000'), None)
    """
    if units is None:
        return None
    places = scale if data_type is None else max(data_type.scale, scale)
    return Decimal((int(units < 0), tuple(map(int, str(abs(units) * 10 ** (places - scale)))), -places))


def decimal_type(scale: int) -> pa.DataType:
    """Return the Arrow type that holds all 64-bit numbers of a scale.

    >>> decimal_type(2)
    Decimal128Type(decimal128(19, 2))
    """
    return pa.decimal128(DIGITS, scale)


def units_of(
    name: str, column: pa.ChunkedArray, scale: int, base: int = 0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any] | None]:
    """Return a column of decimals or integers as ``(n int64, n bool or None)``: units of 10**-scale, and the null rows.
    ``base``: the rows that came before, as an error counts them.

    Raises :class:`DataError` if a number does not fit into 64 bits or has more places than ``scale``.

    >>> column = pa.chunked_array([pa.array([Decimal("1.10"), None])])
    >>> units_of("price", column, 3)
    (array([1100,    0]), array([False,  True]))
    """
    column = decode(column)
    type_text = column.type
    if pa.types.is_decimal(column.type) and column.type.scale > scale:
        column = _of_fewer_places(name, column, scale, base)
    data_type = column.type
    numbers, null = join_chunks(column)
    bad = np.zeros(len(column), bool)
    if pa.types.is_decimal(data_type) and data_type.bit_width > 64:
        words = numbers.reshape(-1, data_type.bit_width // 64)
        numbers = words[:, 0]
        bad = (words[:, 1:] != (numbers >> 63)[:, None]).any(axis=1)
    if pa.types.is_uint64(data_type):
        bad = numbers > np.uint64(2**63 - 1)
    numbers = numbers.astype(np.int64)
    unit = 10 ** (scale - (data_type.scale if pa.types.is_decimal(data_type) else 0))
    if unit > 2**63:
        bad = bad | (numbers != 0)
    elif unit > 1:
        largest = (2**63 - 1) // unit
        bad = bad | (numbers > largest) | (numbers < -largest)
    if null is not None:
        bad &= ~null
        numbers = np.where(null, np.int64(0), numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"column `{name}` is {type_text}, and its {column[row].as_py()} in row {base + row} (rows count from 0) "
            f"does not fit into 64 bits with {scale} decimal places",
            hint="cast it to a decimal of fewer places, to text for a key, or to double",
            code="data_type",
        )
    return numbers * unit if unit > 1 else numbers, null


def _of_fewer_places(name: str, column: pa.ChunkedArray, scale: int, base: int) -> pa.ChunkedArray:
    """Convert decimals to a lower scale. Raise :class:`DataError` if one cannot be converted exactly."""
    data_type = column.type
    narrower_type = pa.decimal256(76, scale) if data_type.bit_width > 128 else pa.decimal128(38, scale)
    try:
        return column.cast(narrower_type)
    except pa.ArrowInvalid:
        units = 10**scale
        rows = ((row, value.as_py()) for row, value in enumerate(column))
        row, bad = next((row, v) for row, v in rows if v is not None and (Fraction(v) * units).denominator > 1)
    raise DataError(
        f"column `{name}` is {data_type}, of which {scale} decimal places are held, and its {bad} in row "
        f"{base + row} (rows count from 0) has more",
        hint=f"cast it to a decimal of at most {DIGITS} digits, to text for a key, or to double",
        code="data_type",
    )
