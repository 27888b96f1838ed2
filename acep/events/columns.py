"""Convert single Arrow columns to the engine's columns of NumPy arrays.

Buffers are read directly (:mod:`acep.events.buffers`).
"""

from __future__ import annotations

import sys
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError
from acep.events.batch import Column
from acep.events.buffers import buffer, decode, join_chunks, nulls, numbers_in_place, plain_type
from acep.events.decimals import scale_of, units_of
from acep.pattern.times import UNITS
from acep.plan.schema import Kind

__all__ = ["TICKS_NS", "UNIT_NS", "column_of", "kind_of", "plain_type", "refusal", "tick_of", "ticks_of"]

UNIT_NS = {unit: UNITS[unit] for unit in ("ns", "us", "ms", "s", "min", "h", "d")}
"""The nanoseconds of each unit that an integer time may count."""

TICKS_NS = UNIT_NS | {"100ns": 100}
"""The nanoseconds of each tick that an integer time may count: 100 ns are the ticks of Windows and .NET."""

LIMIT = 2**63
MAX_TEXTS_BEFORE_CALL = 100  # up to so many texts, a Python dict is faster than a call of Arrow
MAX_TEXTS_BEFORE_IMPORT = 10_000  # up to so many texts, a Python dict is faster than importing pyarrow.compute

Array = npt.NDArray[Any]

_KINDS = {
    Kind.BOOL: (pa.types.is_boolean,),
    Kind.INT: (pa.types.is_integer, pa.types.is_duration, pa.types.is_decimal),
    Kind.FLOAT: (pa.types.is_floating,),
    Kind.NULL: (pa.types.is_null,),
    Kind.STRING: (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    Kind.TIMESTAMP: (pa.types.is_timestamp, pa.types.is_date),
}
_SINGLE = "a predicate needs single values"
_REFUSALS = (
    (pa.types.is_union, "its values are of several types", "cast it to one type"),
    (pa.types.is_map, _SINGLE, "take the value of one of its keys as a column"),
    (pa.types.is_nested, _SINGLE, "name an element, as in a.x[1], ask contains(a.x, 'b'), or take CAST(a.x AS text)"),
    (pa.types.is_time, "a time of day is no point in time", "cast it to an integer, or make it a timestamp"),
    (pa.types.is_interval, "months have no fixed length", "cast it to a duration or an integer"),
    (lambda data_type: True, "bytes are not compared", "cast it to text, in hexadecimal for instance"),
)
"""Why a column of a type cannot be used, and what to do; the first row whose test the type passes counts."""


def kind_of(data_type: pa.DataType) -> Kind | None:
    """Return the kind of values of an Arrow type, or ``None`` if it cannot be an attribute (:func:`refusal` says why).

    Durations are integers, in ticks. Decimals are integers, in units given by :func:`acep.events.decimals.scale_of`.

    >>> kind_of(pa.dictionary(pa.int8(), pa.large_string())), kind_of(pa.list_(pa.int64()))
    (<Kind.STRING: 'string'>, None)
    """
    if _is_bool8(data_type):
        return Kind.BOOL
    return _kind(plain_type(data_type))


@lru_cache(maxsize=256)
def _kind(data_type: pa.DataType) -> Kind | None:
    return next((kind for kind, tests in _KINDS.items() if any(test(data_type) for test in tests)), None)


def _is_bool8(data_type: pa.DataType) -> bool:
    return isinstance(data_type, pa.BaseExtensionType) and data_type.extension_name == "arrow.bool8"


def refusal(data_type: pa.DataType) -> str | None:
    """Say why a column of this type cannot be used, and after ``; `` what to do; ``None`` if it can be used.

    >>> refusal(pa.time32("s")), refusal(pa.int64())
    ('is time32[s], and a time of day is no point in time; cast it to an integer, or make it a timestamp', None)
    """
    if kind_of(data_type) is not None:
        return None
    type_text, data_type = str(data_type), plain_type(data_type)
    reason, hint = next((reason, hint) for test, reason, hint in _REFUSALS if test(data_type))
    if pa.types.is_struct(data_type):
        hint = f"name one of its fields, as in a.x.{data_type[0].name}" if data_type.num_fields else "it has no fields"
    return f"is {type_text}, and {reason}; {hint}"


def tick_of(data_type: pa.DataType) -> int | None:
    """Return the nanoseconds in one unit of a timestamp, date or duration, else ``None``; a date32 counts in seconds.

    >>> tick_of(pa.timestamp("ms")), tick_of(pa.date32()), tick_of(pa.int64())
    (1000000, 1000000000, None)
    """
    return _tick(plain_type(data_type))


@lru_cache(maxsize=256)
def _tick(data_type: pa.DataType) -> int | None:
    if pa.types.is_timestamp(data_type) or pa.types.is_duration(data_type):
        return UNIT_NS[data_type.unit]
    if pa.types.is_date32(data_type):
        return UNIT_NS["s"]
    if pa.types.is_date64(data_type):
        return UNIT_NS["ms"]
    return None


def ticks_of(name: str, column: pa.ChunkedArray, tick_ns: Fraction | int) -> tuple[Array, Array | None]:
    """Return a column of integers, times or durations as ``(n int64, n bool or None)``: ticks, and the null rows.

    Raises :class:`DataError` if a value does not fit into 64 bits or is not a whole number of ticks.
    """
    data_type = column.type
    if pa.types.is_int64(data_type) and (direct_values := numbers_in_place(column)) is not None:
        return direct_values, None
    column = decode(column)
    data_type = column.type
    if pa.types.is_null(data_type):
        return np.zeros(len(column), np.int64), np.ones(len(column), bool)
    numbers, null = join_chunks(column)
    if null is not None:
        numbers = np.where(null, numbers.dtype.type(0), numbers)
    if pa.types.is_uint64(data_type) and len(numbers) and int(numbers.max()) >= LIMIT:
        raise DataError(
            f"column `{name}` has an integer beyond 64 bits with sign: {int(numbers.max())}",
            hint="cast it to float or to text",
            code="data_value",
        )
    numbers = numbers.astype(np.int64, copy=False)
    if pa.types.is_integer(data_type):
        return numbers, null
    unit = UNIT_NS["d"] if pa.types.is_date32(data_type) else tick_of(data_type)
    assert unit is not None
    return _scale_ticks(name, numbers, Fraction(unit) / tick_ns, getattr(data_type, "unit", "s")), null


def _scale_ticks(name: str, numbers: Array, factor: Fraction, unit: str) -> Array:
    if factor == 1 or not len(numbers):
        return numbers
    largest = max(abs(int(numbers.min())), abs(int(numbers.max())))
    if largest * factor.numerator >= LIMIT:
        raise DataError(
            f"column `{name}` has a time that does not fit the finest unit among the time columns",
            hint="cast the time columns to one coarser unit",
            code="data_value",
        )
    numbers = numbers * factor.numerator
    if factor.denominator > 1:
        if np.any(numbers % factor.denominator):
            raise DataError(
                f"column `{name}` has times that fall between the ticks of the stream",
                hint="they are those of an integer ts, which unit= makes finer, or of the times in the first batch:"
                f' cast={{"{name}": "timestamp({unit})"}} from there on',
                code="data_value",
            )
        numbers = numbers // factor.denominator
    return numbers


def column_of(
    name: str,
    column: pa.ChunkedArray,
    kind: Kind,
    tick_ns: Fraction | int,
    scale: int | None = None,
    base: int = 0,
) -> Column:
    """Convert an Arrow column to the engine's form: times are ticks of ``tick_ns``, decimals units of 10**-``scale``.
    ``base``: the rows that came before, as an error counts them.

    ``kind`` and ``scale`` come from the stream's schema. Raises :class:`DataError` for a column of another kind or with
    more decimal places, and for a number that cannot be held exactly.
    """
    if scale is None and (direct_values := numbers_in_place(column)) is not None:
        plain_kind = Kind.FLOAT if direct_values.dtype.kind == "f" else Kind.INT
        # The least of some numbers is NaN if one of them is.
        if plain_kind is kind and (plain_kind is Kind.INT or not np.isnan(direct_values.min())):
            return Column(kind, direct_values)
    _check_kind(name, column.type, kind, scale)
    if pa.types.is_null(column.type):
        return _null_column(kind, len(column))
    if kind is Kind.STRING:
        try:
            return _texts(decode(column, keep_dictionary=True))
        except UnicodeDecodeError:
            raise DataError(f"column `{name}` is not UTF-8 text", code="data_value") from None
    if kind is Kind.FLOAT and kind_of(column.type) is Kind.FLOAT:
        numbers, null = _floats(column)
    elif kind is Kind.BOOL:
        numbers, null = join_chunks(decode(column))
        numbers = (numbers != 0).astype(np.int64)
    elif scale is not None:
        numbers, null = units_of(name, column, scale, base)
    else:
        numbers, null = ticks_of(name, column, tick_ns)
        if kind is Kind.FLOAT:
            numbers = _as_floats(name, numbers)
    if null is None or not null.any():
        return Column(kind, numbers)
    return Column(kind, np.where(null, numbers.dtype.type(0), numbers), (~null).view(np.uint8))


def _check_kind(name: str, data_type: pa.DataType, kind: Kind, scale: int | None) -> None:
    """Raise :class:`DataError` for a type that cannot be converted to the kind and scale that the stream's schema has.
    Nulls can, and decimals of no more places, and integers to decimals and floats."""
    column_kind, column_scale = kind_of(data_type), scale_of(data_type)
    is_integer = column_kind is Kind.INT and column_scale is None and tick_of(data_type) is None
    fits = column_kind is kind and (
        column_scale == scale or (scale is not None and (is_integer or (column_scale or 0) <= scale))
    )
    if fits or pa.types.is_null(data_type) or (is_integer and kind is Kind.FLOAT):
        return
    description = (
        f"is {data_type}" if column_kind is None or column_scale is not None else f"holds {column_kind.value} values"
    )
    expected = "only nulls" if kind is Kind.NULL else f"{kind.value} values"
    if scale is not None:
        expected = f"decimals with {scale} places"
    type_text = "string" if column_kind is None else column_kind.value
    type_text += "tz" if getattr(plain_type(data_type), "tz", None) else ""
    hint = f'say its type from the first batch on: cast={{"{name}": "{type_text}"}}'
    raise DataError(
        f"column `{name}` {description}, where {expected} were seen before",
        hint=hint if kind is Kind.NULL else "give every batch the same types",
        code="data_type",
    )


def _null_column(kind: Kind, size: int) -> Column:
    """Return a column of nulls."""
    dtype: Any = np.float64 if kind is Kind.FLOAT else np.int64
    texts: list[str] | None = [] if kind is Kind.STRING else None
    return Column(kind, np.zeros(size, dtype), np.zeros(size, np.uint8) if size else None, texts)


def _floats(column: pa.ChunkedArray) -> tuple[Array, Array | None]:
    """Return a column of floats as float64[n], and its null rows (``None``: none); NaN is null."""
    numbers, null = join_chunks(decode(column))
    numbers = numbers.astype(np.float64, copy=False)
    nan = np.isnan(numbers)
    if nan.any():
        null = nan if null is None else null | nan
    return numbers, null


def _as_floats(name: str, numbers: Array) -> Array:
    """Convert integers of a column that held floats before. Raise :class:`DataError` if one is not exact."""
    floats = numbers.astype(np.float64)
    bad = (floats >= LIMIT) | (np.where(floats >= LIMIT, 0, floats).astype(np.int64) != numbers)
    if bad.any():
        raise DataError(
            f"column `{name}` holds {numbers[np.argmax(bad)]}, which is no float, where floats were seen before",
            hint="give every batch the same types",
            code="data_value",
        )
    return floats


def _texts(column: pa.ChunkedArray) -> Column:
    """Encode texts as indices into a list that has each distinct text of a chunk once."""
    if column.num_chunks == 1 and not column.null_count:
        texts, codes = _encode_texts(column.chunk(0))
        if None not in texts and codes.flags.aligned:
            return Column(Kind.STRING, codes, None, [t for t in texts if t is not None])
    all_texts: list[str] = []
    parts: list[Array] = []
    for chunk in column.chunks:
        texts, codes = _encode_texts(chunk)
        if chunk.null_count or None in texts:  # an entry of a dictionary may itself be null
            code_map = np.array([-1 if t is None else len(all_texts) + i for i, t in enumerate(texts)] + [-1], np.int64)
            parts.append(code_map[codes])
        else:
            parts.append(codes + np.int64(len(all_texts)))
        all_texts += ["" if t is None else t for t in texts]
    values = np.concatenate(parts) if parts else np.empty(0, np.int64)
    null = values < 0
    if not null.any():
        return Column(Kind.STRING, values, None, all_texts)
    return Column(Kind.STRING, np.where(null, 0, values), (~null).view(np.uint8), all_texts)


def _encode_texts(array: pa.Array) -> tuple[list[str | None], Array]:
    """Return the distinct texts of a chunk and the index of each row's text; for a null, the number of texts."""
    # Once the functions of Arrow are loaded, they are faster from a few texts on.
    max_texts = MAX_TEXTS_BEFORE_CALL if "pyarrow.compute" in sys.modules else MAX_TEXTS_BEFORE_IMPORT
    if not pa.types.is_dictionary(array.type) and len(array) <= max_texts:
        code_of_text: dict[str, int] = {}
        rows = array.to_pylist()
        row_codes = [-1 if t is None else code_of_text.setdefault(t, len(code_of_text)) for t in rows]
        return [*code_of_text], np.array([len(code_of_text) if p < 0 else p for p in row_codes], np.int64)
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    texts = array.dictionary.to_pylist()
    codes = buffer(array.indices)
    if codes.dtype.kind == "u":
        codes = codes.astype(np.int64)
    return texts, np.where(nulls(array), len(texts), codes.astype(np.int64)) if array.null_count else codes
