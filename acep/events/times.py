"""Convert ticks to times as a user gave them: dates, datetimes, durations, and their Arrow types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from acep.events.columns import UNIT_NS, plain_type
from acep.events.durations import duration_of, duration_words, round_to_unit

__all__ = ["from_ticks", "moment_text", "quote_scalar", "time_type", "value_of", "value_text", "values_of_column"]

EPOCH = dt.datetime(1970, 1, 1)
DAY_US = 86_400 * 10**6


def time_type(tick_ns: Fraction | int | None) -> pa.DataType:
    """Return the Arrow type of an instant counted in ticks of ``tick_ns``: a timestamp without zone."""
    for unit in ("s", "ms", "us"):
        if tick_ns == UNIT_NS[unit]:
            return pa.timestamp(unit)
    return pa.timestamp("ns")


def from_ticks(
    ticks: Iterable[int | float | None], tick_ns: Fraction | int | None, data_type: pa.DataType
) -> list[Any]:
    """Return ticks as Python values of an Arrow type.

    Integers stay; dates become :class:`datetime.date`; timestamps :class:`datetime.datetime`, in UTC if the type
    has a zone. A time that no datetime can represent (a fraction of a microsecond, a year before 1 or beyond 9999) is a
    :class:`numpy.datetime64`, of days if it is a date. This has no zone: it is in UTC. Durations become
    :class:`datetime.timedelta`, or :class:`numpy.timedelta64` where that cannot represent them. Fractions of ticks are
    rounded, of times to microseconds; what is beyond 64 bits is ``None``.

    >>> from_ticks([0, None], 10**9, pa.timestamp("s"))
    [datetime.datetime(1970, 1, 1, 0, 0), None]
    >>> from_ticks([1000, 1], 1, pa.timestamp("ns"))
    [datetime.datetime(1970, 1, 1, 0, 0, 0, 1), np.datetime64('1970-01-01T00:00:00.000000001')]
    """
    data_type = plain_type(data_type)
    if tick_ns is not None and pa.types.is_duration(data_type):
        return [None if t is None else duration_of(t, Fraction(tick_ns), data_type) for t in ticks]
    if tick_ns is None or not (pa.types.is_timestamp(data_type) or pa.types.is_date(data_type)):
        return list(ticks)
    zone = dt.UTC if pa.types.is_timestamp(data_type) and data_type.tz else None
    day = pa.types.is_date(data_type)
    tick_us = Fraction(tick_ns) / 1000
    units, parts = tick_us.numerator, tick_us.denominator  # of microseconds in a tick
    out: list[Any] = []
    for t in ticks:
        if t is None:
            out.append(None)
        elif isinstance(t, float):
            micros = round_to_unit(t, tick_us)
            out.append(None if micros is None else _moment(micros, zone, day))
        elif not day and t * units % parts:
            out.append(np.datetime64(t * tick_ns.numerator // tick_ns.denominator, "ns"))
        else:
            out.append(_moment(t * units // parts, zone, day))
    return out


def _moment(micros: int, zone: dt.tzinfo | None, day: bool) -> Any:
    try:
        time = EPOCH + dt.timedelta(microseconds=micros)
        return time.date() if day else time.replace(tzinfo=zone)
    except OverflowError:  # beyond the years 1 to 9999 of Python's datetime
        if day:
            return np.datetime64(micros // DAY_US, "D")
        if abs(micros) < 2**63:
            return np.datetime64(micros, "us")
        millis = micros // 1000
        return np.datetime64(millis, "ms") if abs(micros) < 2**63 * 1000 else np.datetime64(millis // 1000, "s")


def value_text(value: Any) -> str:
    """Return a value as text for people to read: a time with a zone in UTC, marked by ``Z``; a duration as a query has
    it.

    >>> value_text(dt.datetime(2024, 5, 1, 10, tzinfo=dt.UTC)), value_text(1.5), value_text(dt.timedelta(minutes=90))
    ('2024-05-01 10:00:00Z', '1.5', '1 h 30 min')
    """
    if isinstance(value, dt.timedelta | np.timedelta64):
        return duration_words(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return f"{value.astimezone(dt.UTC).replace(tzinfo=None)}Z"
    return moment_text(value, " ") if isinstance(value, np.datetime64) else str(value)


def moment_text(moment: np.datetime64, between: str = "T") -> str:
    """Return a time of NumPy as a datetime is written, with no, six or nine digits of a second.

    >>> moment_text(np.datetime64("0000-01-01T00:00:00.000")), moment_text(np.datetime64(1, "ns"), " ")
    ('0000-01-01T00:00:00', '1970-01-01 00:00:00.000000001')
    """
    text, _, fraction = str(moment).partition(".")
    digits = fraction.rstrip("0")
    return text.replace("T", between) + (f".{digits.ljust(6 if len(digits) <= 6 else 9, '0')}" if digits else "")


def values_of_column(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return the values of a column, each as :func:`value_of` does.

    >>> values_of_column(pa.array([2_932_897], pa.date32()))
    [np.datetime64('10000-01-01')]
    """
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (OverflowError, ValueError):  # a time that Python has not
        return [value_of(scalar) for scalar in column]


def value_of(scalar: pa.Scalar) -> Any:
    """Return an Arrow value as Python's; times and durations that Python's cannot hold are NumPy's, in UTC, in structs
    too.

    >>> value_of(pa.scalar(-719528, pa.date32())), value_of(pa.scalar(7))
    (np.datetime64('0000-01-01'), 7)
    """
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        value_type = scalar.type
        if pa.types.is_struct(value_type):
            return {field.name: value_of(scalar[field.name]) for field in value_type}
        if pa.types.is_duration(value_type):
            return np.timedelta64(scalar.value, value_type.unit)
        if not (pa.types.is_timestamp(value_type) or pa.types.is_date(value_type)):
            raise
        if pa.types.is_date(value_type):
            days = scalar.value if pa.types.is_date32(value_type) else scalar.value * 1000 // DAY_US
            return np.datetime64(days, "D")
        return np.datetime64(scalar.value, value_type.unit)


def quote_scalar(scalar: pa.Scalar) -> str:
    """Return an Arrow value as messages quote it: a text in quotation marks, a time as people read it.

    >>> [quote_scalar(pa.scalar(value)) for value in ("x", 1.5)]
    ["'x'", '1.5']
    >>> quote_scalar(pa.scalar(253402300800, pa.timestamp("s", "UTC")))
    '10000-01-01 00:00:00Z'
    """
    value = value_of(scalar)
    zone = "Z" if isinstance(value, np.datetime64) and getattr(scalar.type, "tz", None) else ""
    return repr(value) if isinstance(value, str) else f"{value_text(value)}{zone}"
