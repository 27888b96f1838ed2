"""Read durations, windows and timestamps from text, and write them as text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from acep.errors import QueryError
from acep.pattern.tree import Within

__all__ = [
    "UNITS",
    "duration_text",
    "exact_number",
    "read_duration",
    "read_timestamp",
    "read_window",
    "rounded_duration_text",
    "timestamp_text",
    "unit_ns",
]

_NAMES = {
    1: "ns nano nanos nanosecond nanoseconds",
    1_000: "us µs micros microsecond microseconds",
    1_000_000: "ms millis millisecond milliseconds",
    1_000_000_000: "s sec secs second seconds",
    60_000_000_000: "min mins minute minutes",
    3_600_000_000_000: "h hr hrs hour hours",
    86_400_000_000_000: "d day days",
    604_800_000_000_000: "w week weeks",
}
UNITS = {name: ns for ns, names in _NAMES.items() for name in names.split()}
"""The nanoseconds of each unit by its name in lower case."""

_LARGEST = 2**63 - 1
_DIGITS = 400  # longer numbers are a mistake and would be slow to parse
_NUMBER = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)(?:e([+-]?\d+))?", re.IGNORECASE)
_WINDOW = re.compile(r"\s*([\d.]\S*?)\s*([^\W\d]*)\s*")
_LENGTH = re.compile(r"([\d.]+)\s*([^\W\d]+)")
_LENGTHS = re.compile(rf"\s*(?:{_LENGTH.pattern}\s*){{2,}}")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?)?"
    r"\s*(Z|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)


def exact_number(text: str) -> Fraction:
    """Return the exact value of a decimal number such as ``1.5`` or ``2e3``.

    Raises :class:`QueryError` (without a place) if it is not a number, or has too many digits.

    >>> exact_number("1.5")
    Fraction(3, 2)
    """
    number = _NUMBER.fullmatch(text)
    if number is None:
        raise QueryError(f"`{text[:40]}` is not a number")
    exponent = number.group(1)
    if len(text) > _DIGITS or (exponent is not None and abs(int(exponent)) > _DIGITS):
        raise QueryError("this number is too long", hint=f"at most {_DIGITS} digits", code="query_size")
    return Fraction(text)


def unit_ns(name: str) -> int:
    """Return the nanoseconds of a unit. Raises :class:`QueryError` (without a place) for an unknown one.

    >>> unit_ns("Minutes")
    60000000000
    """
    key = name.lower().replace("μ", "µ")  # two code points look the same
    if key in UNITS:
        return UNITS[key]
    if key == "m":
        raise QueryError("`m` could be minutes or months", hint="write `min` for minutes")
    if key in ("month", "months", "mon", "year", "years", "y"):
        raise QueryError(f"a {key.rstrip('s')} has no fixed length", hint="write days or weeks")
    import difflib  # needed for error messages only

    close = difflib.get_close_matches(key[:40], UNITS, n=1)
    hint = f"did you mean `{close[0]}`?" if close else "the units are ns, us, ms, s, min, h, d and w"
    raise QueryError(f"unknown unit `{name[:40]}`", hint=hint, code="query_name")


def read_duration(amounts: Sequence[tuple[str, str]]) -> Fraction:
    """Return the nanoseconds of a length of time in one unit or several, such as ``1 h 30 min``.

    Raises :class:`QueryError` (without a place) unless each unit is smaller than the one before it.

    >>> read_duration([("1", "h"), ("30", "min")])
    Fraction(5400000000000, 1)
    """
    units = [unit_ns(unit) for _, unit in amounts]
    for before, after, (_, unit) in zip(units, units[1:], amounts[1:], strict=False):
        if before <= after:
            raise QueryError(
                f"`{unit}` comes after a unit that is no longer", hint="the longest unit first: 1 h 30 min"
            )
    return sum((exact_number(number) * unit for (number, _), unit in zip(amounts, units, strict=True)), Fraction(0))


def read_window(amount: str, unit: str | None) -> Within:
    """Return the window of ``WITHIN amount unit``; without a unit the amount is in ticks of ``ts``.

    Raises :class:`QueryError` (without a place) if the amount is negative, beyond 64 bits, or, for events, not a
    positive whole number.

    >>> read_window("1", "hour")
    Within(amount=Fraction(3600000000000, 1), unit='ns')
    >>> read_window("500", "EVENTS")
    Within(amount=Fraction(500, 1), unit='events')
    """
    number = exact_number(amount)
    if unit is None:
        return checked_window(Within(number, "ticks"))
    if unit.lower() in ("event", "events"):
        return checked_window(Within(number, "events"))
    return checked_window(Within(number * unit_ns(unit), "ns"))


def checked_window(within: Within) -> Within:
    """Return the window itself. Raises :class:`QueryError` (without a place) if it is invalid."""
    if within.amount < 0 or (within.unit == "events" and within.amount == 0):
        raise QueryError("WITHIN needs a positive length")
    if within.unit == "events" and within.amount.denominator != 1:
        raise QueryError("WITHIN needs a whole number of events")
    if within.amount >= _LARGEST:
        raise QueryError(
            "this window is too long", hint="fewer than 2**63 - 1 nanoseconds, ticks or events", code="query_size"
        )
    return within


def window_of(value: object) -> Within | None:
    """Return the window of an argument: a number of ticks, a text such as ``"1 hour"`` or ``"5 EVENTS"``, a
    :class:`~datetime.timedelta`, or ``None`` for no window. Raises :class:`QueryError` for anything else.

    >>> window_of("5 events")
    Within(amount=Fraction(5, 1), unit='events')
    >>> window_of("1 h 30 min") == window_of("1h30min") == window_of("90 min")
    True
    """
    match value:
        case None:
            return None
        case timedelta():
            return checked_window(Within(Fraction(value // timedelta(microseconds=1)) * 1000, "ns"))
        case str():
            text = value[: 2 * _DIGITS]
            if _LENGTHS.fullmatch(text):
                return checked_window(Within(read_duration(_LENGTH.findall(text)), "ns"))
            window = _WINDOW.fullmatch(text)
            if window is None:
                raise QueryError(f"`{value[:40]}` is not a window", hint='write "1 hour", "5 EVENTS" or a number')
            return read_window(window.group(1), window.group(2) or None)
        case bool():
            pass
        case int() | Fraction():
            return checked_window(Within(Fraction(value), "ticks"))
        case float() if math.isfinite(value):
            return checked_window(Within(Fraction(str(value)), "ticks"))
    raise QueryError(
        f"within={value!r} is not a window", hint='write "1 hour", "5 EVENTS" or a number', code="option_invalid"
    )


def ns_of(moment: datetime) -> int:
    """Return the nanoseconds since 1970-01-01 UTC of a time; without a zone it is UTC.

    >>> ns_of(datetime(1970, 1, 1, 0, 0, 1))
    1000000000
    """
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def read_timestamp(text: str) -> int:
    """Return the nanoseconds since 1970-01-01 UTC of an ISO date, or date and time; without a zone it is UTC.

    Raises :class:`QueryError` (without a place) if it is not a timestamp, or beyond 64 bits (1677 to 2262).

    >>> read_timestamp("1970-01-01 00:00:01.5")
    1500000000
    """
    parts = _TIMESTAMP.fullmatch(text.strip()[:80])
    hint = "write '2024-01-31', '2024-01-31 10:00:00.25' or '2024-01-31T10:00:00+01:00'"
    if parts is None:
        raise QueryError(f"`{text[:40]}` is not a timestamp", hint=hint, code="query_type")
    *numbers, fraction, zone = parts.groups()
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    try:
        moment = datetime(year, month, day, hour, minute, second)
    except ValueError as error:
        raise QueryError(f"`{text[:40]}` is not a timestamp: {error}", hint=hint, code="query_type") from None
    seconds = ns_of(moment) // 1_000_000_000
    if zone and zone not in "Zz":
        offset = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        seconds -= offset if zone[0] == "+" else -offset
    ns = seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))
    if abs(ns) > _LARGEST:
        raise QueryError("this timestamp is out of range", hint="years 1678 to 2261")
    return ns


def decimal_text(number: Fraction) -> str:
    """Write a fraction as a decimal if that is finite, else as ``p/q``."""
    if number.denominator == 1:
        return str(number.numerator)
    for digits in range(1, _DIGITS + 1):
        scaled = number * 10**digits
        if scaled.denominator == 1:
            all_digits = str(abs(scaled.numerator)).rjust(digits + 1, "0")
            return f"{'-' if number < 0 else ''}{all_digits[:-digits]}.{all_digits[-digits:]}"
    return f"{number.numerator}/{number.denominator}"


def duration_text(ns: Fraction) -> str:
    """Write a length of time in the largest unit in which it is whole.

    >>> duration_text(Fraction(5_400_000_000_000)), duration_text(Fraction(1, 2))
    ('90 min', '0.5 ns')
    """
    names = {ns: names.split()[0] for ns, names in _NAMES.items()}
    for size in sorted(names, reverse=True):
        if ns != 0 and (ns / size).denominator == 1:
            return f"{ns // size} {names[size]}"
    return f"{decimal_text(ns)} ns"


def rounded_duration_text(ns: Fraction) -> str:
    """Write a length of time with three digits, in the largest unit of which it has at least one.

    >>> rounded_duration_text(Fraction(1_164_719_069_000)), rounded_duration_text(Fraction(90_000_000_000))
    ('19.4 min', '1.5 min')
    """
    fitting = [size for size in _NAMES if size <= ns]
    if not fitting:
        return duration_text(ns)
    amount = float(ns / max(fitting))
    return f"{f'{amount:,.0f}' if amount >= 100 else f'{amount:.3g}'} {_NAMES[max(fitting)].split()[0]}"


def window_text(within: Within) -> str:
    """Write the length of a window as WITHIN reads it.

    >>> window_text(Within(Fraction(500), "events"))
    '500 EVENTS'
    """
    if within.unit == "events":
        return f"{within.amount} EVENTS"
    return duration_text(within.amount) if within.unit == "ns" else decimal_text(within.amount)


def timestamp_text(ns: int) -> str:
    """Write a point in time as ISO text in UTC.

    >>> timestamp_text(1_500_000_000)
    '1970-01-01 00:00:01.500000000'
    """
    seconds, fraction = divmod(ns, 1_000_000_000)
    moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    return moment.isoformat(" ") + (f".{fraction:09d}" if fraction else "")
