"""Cast columns to the types that a user asks for; a value that does not fit exactly is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from acep.errors import DataError, suggest
from acep.events.columns import TICKS_NS, UNIT_NS
from acep.events.files.exponents import first_beyond
from acep.events.files.far_times import check_reach
from acep.events.files.whole_numbers import WHY, equals_no_double
from acep.events.nested import has_text, is_list

__all__ = [
    "Cast",
    "as_cast",
    "bad_rows",
    "cast_column",
    "cast_of",
    "casts_of",
    "check_time_cast",
    "elements_error",
    "finest_time",
    "with_nanoseconds",
]

TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
UNITS = ("s", "ms", "us", "ns", "100ns")
FILETIME = "filetime"
SHOWN = (
    "int, float, string, bool, date, timestamp, timestamptz, timestamp(s), timestamp(ms), timestamp(us),"
    " timestamp(ns), timestamp(100ns), timestamp(filetime), decimal(p,s)"
)
SINCE_1601 = 116_444_736_000_000_000  # the ticks of 100 ns from 1601 to 1970
INTEGER = r"^[+-]?[0-9]+$"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)$"


@dataclass(frozen=True)
class Cast:
    """The cast of a column: its target ``type``, the user's ``text`` for it, and for a timestamp the unit that numbers
    count since 1970, or ``"filetime"`` for 100 ns since 1601 (``None``: not specified)."""

    type: pa.DataType
    text: str
    counts: str | None = None


def cast_of(name: str, text: str, unit: str | None = None) -> Cast:
    """Parse a cast as a user writes it; ``unit`` is the unit of numbers if ``timestamp`` does not specify it.

    Raises :class:`DataError` for an unknown type.

    >>> cast_of("ts", "timestamp(ms)").counts, cast_of("x", "decimal(10, 2)").type
    ('ms', Decimal128Type(decimal128(10, 2)))
    """
    normalized = text.strip().lower() if isinstance(text, str) else ""
    if normalized in TYPES:
        counts = None
        if normalized == "timestamp" and unit is not None:
            if unit not in UNITS:
                raise DataError(
                    f"numbers in `{name}` cannot count {unit!r}",
                    hint=f"one of {', '.join(UNITS)}",
                    code="option_invalid",
                )
            counts = unit
        return Cast(TYPES[normalized], normalized, counts)
    if match := re.fullmatch(r"timestamp\s*\(\s*(\w+)\s*\)", normalized):
        if match[1] in (*UNITS, FILETIME):
            return Cast(pa.timestamp("ns" if match[1] == "ns" else "us"), f"timestamp({match[1]})", match[1])
    elif match := re.fullmatch(r"decimal\s*\(\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?\)", normalized):
        precision, scale = int(match[1]), int(match[2] or 0)
        if 1 <= precision <= 38 and scale <= precision:
            return Cast(pa.decimal128(precision, scale), f"decimal({precision},{scale})")
    suggestion = suggest(normalized, TYPES) if normalized else None
    hint = suggestion if suggestion and suggestion.startswith("did") else f"one of {SHOWN}"
    raise DataError(f"`{name}` cannot be cast to {text!r}", hint=hint, code="option_invalid")


def casts_of(cast: object, ts: str = "ts", unit: str | None = None) -> dict[str, Cast]:
    """Parse the casts of columns as a user writes them; ``unit`` is that of numbers in ``ts``.

    Raises :class:`DataError` for an unknown type, for one that all elements of a list (``tags[]``) cannot have, and for
    what is no dict.

    >>> casts_of({"zip": "string"})["zip"].type
    DataType(string)
    """
    if cast is not None and not isinstance(cast, Mapping):
        raise DataError(
            f"cast= takes a dict of columns and types, not {cast.__class__.__name__}", code="option_invalid"
        )
    casts = {name: cast_of(name, text, unit if name == ts else None) for name, text in (cast or {}).items()}
    for name, wanted in casts.items():
        if "[]" in name and not (pa.types.is_string(wanted.type) or pa.types.is_decimal(wanted.type)):
            raise DataError(
                f"all elements of a list can be cast to string or decimal, and `{name}` is cast to {wanted.text}",
                hint=f"cast one of them: {as_cast(name.replace('[]', '[1]'), wanted.text)}",
                code="option_invalid",
            )
    return casts


def elements_error(name: str) -> DataError:
    """Return the error for a cast of all elements of a list where they have a type already."""
    return DataError(
        f"cast: the elements of a list, `{name}`, are cast in JSON Lines only",
        hint="in a table they have a type: make the list of another one before",
        code="option_invalid",
    )


def check_time_cast(ts: str, casts: Mapping[str, Cast]) -> None:
    """Raise :class:`DataError` if the time column of a stream is cast to what is neither times nor integers."""
    cast = casts.get(ts)
    if cast is None or pa.types.is_integer(cast.type) or pa.types.is_temporal(cast.type):
        return
    raise DataError(
        f"the time column `{ts}` must hold integers, timestamps or dates, and it is cast to {cast.text}",
        hint=f"{as_cast(ts, 'timestamp')}, or (s), (ms), (us) or (ns) for numbers that count these; or to int",
        code="data_type",
    )


def with_nanoseconds(cast: Cast) -> Cast | None:
    """Return the same cast to nanoseconds, or ``None`` if it is no cast to times, or is to nanoseconds already."""
    if not pa.types.is_timestamp(cast.type) or cast.type.unit == "ns":
        return None
    return Cast(pa.timestamp("ns", cast.type.tz), cast.text, cast.counts)


def finest_time(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Return the type of the finer unit of two times, or ``None`` if they are not both times with a zone, or both
    times without one.

    >>> finest_time(pa.timestamp("ms"), pa.timestamp("us")), finest_time(pa.timestamp("ms"), pa.timestamp("s", "UTC"))
    (TimestampType(timestamp[us]), None)
    """
    if not (pa.types.is_timestamp(first) and pa.types.is_timestamp(second)) or (not first.tz) != (not second.tz):
        return None
    return pa.timestamp(min(first.unit, second.unit, key=lambda unit: UNIT_NS[unit]), first.tz)


def as_cast(name: str, text: str) -> str:
    """Return the Python argument for a cast, for hints; the command line has its own option.

    >>> as_cast("zip", "string")
    'cast={"zip": "string"}'
    """
    return f'cast={{"{name}": "{text}"}}'


def cast_column(column: pa.ChunkedArray, cast: Cast) -> pa.ChunkedArray:
    """Cast a column to another type.

    Raises :class:`pyarrow.ArrowException` or :class:`ValueError` if a value does not fit exactly.

    >>> cast_column(pa.chunked_array([["1.5", None]]), cast_of("x", "decimal(4,2)")).to_pylist()
    [Decimal('1.50'), None]
    """
    data_type, wanted = column.type, cast.type
    if pa.types.is_null(data_type):
        return pa.chunked_array([pa.nulls(len(column), wanted)])
    if data_type == wanted and not (pa.types.is_timestamp(wanted) and pa.types.is_string(data_type)):
        return column
    if pa.types.is_dictionary(data_type):
        return cast_column(column.cast(data_type.value_type), cast)
    if pa.types.is_string(wanted) and (is_list(data_type) or pa.types.is_struct(data_type)):
        if not has_text(data_type):
            _refuse("a value that JSON has not")
        from acep.events.json_texts import json_text

        return pa.chunked_array([[json_text(value) for value in column.to_pylist()]], pa.string())
    if pa.types.is_string_view(data_type):
        return cast_column(column.cast(pa.string()), cast)
    text = pa.types.is_string(data_type) or pa.types.is_large_string(data_type)
    if pa.types.is_timestamp(wanted):
        return _times(column, cast, text=text)
    if text:
        return _from_text(column, wanted)
    if pa.types.is_floating(data_type) and (pa.types.is_integer(wanted) or pa.types.is_decimal(wanted)):
        return _from_text(column.cast(pa.string()), wanted) if pa.types.is_decimal(wanted) else column.cast(wanted)
    if pa.types.is_boolean(wanted) and not pa.types.is_boolean(data_type):
        raise ValueError("a truth value is made of a text")
    if pa.types.is_floating(wanted) and pa.types.is_integer(data_type):
        floats = column.cast(wanted)
        return floats if floats.cast(data_type).equals(column) else _refuse(WHY)
    if pa.types.is_floating(wanted) and pa.types.is_decimal(data_type) and equals_no_double(column):
        _refuse(WHY)
    return column.cast(wanted)


def _from_text(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    trimmed = column if pa.types.is_string(wanted) else pc.utf8_trim_whitespace(column)
    if pa.types.is_integer(wanted):
        if pc.all(pc.match_substring_regex(trimmed, INTEGER)).as_py() is False:
            _refuse("an integer has digits only, and a sign")  # Arrow takes 0x7 for 7
        trimmed = pc.replace_substring_regex(trimmed, r"^\+(\d)", r"\1")
        trimmed = pc.replace_substring_regex(trimmed, r"^(-?)0+(\d)", r"\1\2")
    if pa.types.is_boolean(wanted):
        trimmed = pc.utf8_lower(trimmed)
    if pa.types.is_floating(wanted) and first_beyond(trimmed) is not None:
        _refuse("a number to which no double is near")
    if pa.types.is_floating(wanted) and equals_no_double(trimmed):
        _refuse(WHY)
    return check_reach(trimmed, trimmed.cast(wanted))


def _refuse(reason: str) -> Any:
    raise ValueError(reason)


# Times ------------------------------------------------------------------------------------------


def _times(column: pa.ChunkedArray, cast: Cast, *, text: bool) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    data_type = column.type
    if cast.type.tz and not text and not getattr(data_type, "tz", None) and len(column) > column.null_count:
        _refuse("a time without a zone")
    if pa.types.is_timestamp(data_type):
        return column.cast(pa.timestamp(cast.type.unit, data_type.tz or cast.type.tz))
    if pa.types.is_date(data_type) or pa.types.is_null(data_type):
        return column.cast(cast.type)
    if text:
        numbers = pc.all(pc.match_substring_regex(pc.utf8_trim_whitespace(column), NUMBER)).as_py()
        if numbers and len(column) > column.null_count:
            return _times_of_counts(_from_text(column, pa.decimal128(38, 9)), cast)
        try:
            return check_reach(column, column.cast(cast.type))
        except pa.ArrowInvalid:
            return check_reach(column, column.cast(pa.timestamp(cast.type.unit, "UTC")))
    if pa.types.is_floating(data_type):
        # The value of a float is the number that it is printed as.
        return _times_of_counts(
            pc.if_else(pc.is_nan(column), None, column).cast(pa.string()).cast(pa.decimal128(38, 9)), cast
        )
    return _times_of_counts(column.cast(pa.decimal128(38, 9)), cast)


def _times_of_counts(column: pa.ChunkedArray, cast: Cast) -> pa.ChunkedArray:
    """Convert decimals that count units of time since 1970 to times."""
    import pyarrow.compute as pc

    if cast.counts is None:
        raise DataError(
            "a number is no time by itself",
            hint="say what it counts: timestamp(s), (ms), (us) or (ns)",
            code="data_value",
        )
    numbers = column.cast(pa.decimal256(48, 9))
    if cast.counts == FILETIME:
        numbers = pc.subtract(numbers, pa.scalar(SINCE_1601, pa.decimal256(20, 0)))
    factor = Decimal(TICKS_NS.get(cast.counts, TICKS_NS["100ns"])) / UNIT_NS[cast.type.unit]
    scaled = pc.multiply(numbers.cast(pa.decimal256(50, 9)), pa.scalar(factor, pa.decimal256(24, 4)))
    return scaled.cast(pa.decimal128(38, 0)).cast(pa.int64()).cast(cast.type)


# Bad rows ---------------------------------------------------------------------------------------


def bad_rows(column: pa.ChunkedArray, convert: Callable[[pa.ChunkedArray], Any]) -> list[int]:
    """Find the rows whose values ``convert`` rejects, by bisection."""
    rows: list[int] = []

    def bisect(begin: int, stop: int) -> None:
        if begin == stop:
            return
        try:
            convert(column.slice(begin, stop - begin))
        except MemoryError:
            raise
        except (pa.ArrowException, ValueError, OverflowError):
            if stop - begin == 1:
                rows.append(begin)
                return
            middle = (begin + stop) // 2
            bisect(begin, middle)
            bisect(middle, stop)

    bisect(0, len(column))
    return rows
