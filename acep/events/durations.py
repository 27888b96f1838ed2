"""Convert ticks to durations, and write durations as text."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.events.columns import LIMIT, UNIT_NS

__all__ = ["convert_to_unit", "duration_of", "duration_type", "duration_words", "iso_duration", "round_to_unit"]

SECOND = UNIT_NS["s"]
PARTS = [(UNIT_NS[name], name) for name in ("d", "h", "min")]


def duration_type(tick_ns: Fraction | int, *, is_whole: bool = True) -> pa.DataType:
    """Return the Arrow type of a duration in ticks of ``tick_ns``: in the greatest unit of which a tick is a multiple.
    One that may be no whole number of ticks (not ``is_whole``) is in microseconds, or in nanoseconds if a tick is
    shorter.

    >>> duration_type(60 * SECOND), duration_type(10**6, is_whole=False)
    (DurationType(duration[s]), DurationType(duration[us]))
    """
    units = ("s", "ms", "us", "ns") if is_whole else ("us", "ns")
    return pa.duration(next(unit for unit in units if tick_ns % UNIT_NS[unit] == 0))


def convert_to_unit(
    ticks: npt.NDArray[Any], tick_ns: Fraction, unit_type: pa.DataType
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return durations in ticks, int64[n] or float64[n], in the unit of an Arrow type, int64[n], and which of them are
    beyond 64 bits, bool[n]. Fractions of the unit are rounded, half to even.

    >>> [column.tolist() for column in convert_to_unit(np.array([0.0015, 1e300]), Fraction(10**6), pa.duration("us"))]
    [[2, 0], [False, True]]
    """
    factor = tick_ns / UNIT_NS[unit_type.unit]
    if ticks.dtype.kind == "f":
        with np.errstate(over="ignore"):
            scaled = np.rint(ticks * float(factor))
        is_beyond = ~(np.abs(scaled) < float(LIMIT))
        return np.where(is_beyond, 0, scaled).astype(np.int64), is_beyond
    limit = min((LIMIT - 1) * factor.denominator // factor.numerator, LIMIT - 1)
    is_beyond = (ticks > limit) | (ticks < -limit)
    return np.where(is_beyond, 0, ticks) * factor.numerator // factor.denominator, is_beyond


def round_to_unit(ticks: float, factor: Fraction) -> int | None:
    """Return a number of ticks in a unit of which a tick is ``factor``, rounded half to even; ``None``: it is beyond 64
    bits.

    >>> round_to_unit(0.0015, Fraction(1000)), round_to_unit(1e300, Fraction(1))
    (2, None)
    """
    scaled = ticks * float(factor)
    return round(scaled) if abs(scaled) < LIMIT else None


def duration_of(ticks: float, tick_ns: Fraction, unit_type: pa.DataType) -> Any:
    """Return a duration in ticks as a :class:`datetime.timedelta`, or a :class:`numpy.timedelta64` where that cannot
    hold it: a fraction of a microsecond, or more than 999,999,999 days. One beyond 64 bits is ``None``.

    >>> duration_of(90, Fraction(SECOND), pa.duration("s")), duration_of(1.5, Fraction(1), pa.duration("ns"))
    (datetime.timedelta(seconds=90), np.timedelta64(2,'ns'))
    """
    factor = tick_ns / UNIT_NS[unit_type.unit]
    number = (
        round_to_unit(ticks, factor) if isinstance(ticks, float) else ticks * factor.numerator // factor.denominator
    )
    if number is None or abs(number) >= LIMIT:
        return None
    nanoseconds = number * UNIT_NS[unit_type.unit]
    try:
        if nanoseconds % 1000 == 0:
            return dt.timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        pass
    return np.timedelta64(number, unit_type.unit)


# Text --------------------------------------------------------------------------------------------


def iso_duration(duration: Any) -> str:
    """Return a duration as ISO 8601 text, in days of 24 hours, hours, minutes and seconds.

    >>> iso_duration(dt.timedelta(days=1, hours=6)), iso_duration(-dt.timedelta(seconds=90.5))
    ('P1DT6H', '-PT1M30.5S')
    """
    sign, parts = _parts(_nanoseconds(duration))
    days = "".join(f"{number}D" for number, unit in parts if unit == "d")
    hours = "".join(f"{number}{unit[0].upper()}" for number, unit in parts if unit != "d")
    return f"{sign}P{days}{f'T{hours}' if hours else ''}"


def duration_words(duration: Any) -> str:
    """Return a duration as a query has it.

    >>> duration_words(dt.timedelta(days=1, hours=6)), duration_words(np.timedelta64(-250, "ns"))
    ('1 d 6 h', '-250 ns')
    """
    nanoseconds = _nanoseconds(duration)
    if 0 < abs(nanoseconds) < SECOND:
        name = next(name for name in ("ms", "us", "ns") if abs(nanoseconds) >= UNIT_NS[name])
        return f"{'-' if nanoseconds < 0 else ''}{_decimal(abs(nanoseconds), UNIT_NS[name])} {name}"
    sign, parts = _parts(nanoseconds)
    return sign + " ".join(f"{number} {unit}" for number, unit in parts)


def _nanoseconds(duration: Any) -> int:
    """Return the length of a duration; pandas' are of Python's class, with nanoseconds of their own."""
    if isinstance(duration, np.timedelta64):
        unit, multiple = np.datetime_data(duration)
        return int(duration.astype(np.int64)) * multiple * UNIT_NS[unit]
    microseconds = int(duration // dt.timedelta(microseconds=1))
    return microseconds * 1000 + int(getattr(duration, "nanoseconds", 0))


def _parts(nanoseconds: int) -> tuple[str, list[tuple[str, str]]]:
    """Return the sign, and the days, hours, minutes and seconds with their units; no time is no seconds."""
    remainder, parts = abs(nanoseconds), []
    for size, unit in PARTS:
        number, remainder = divmod(remainder, size)
        parts += [(str(number), unit)] if number else []
    parts += [(_decimal(remainder, SECOND), "s")] if remainder or not parts else []
    return "-" if nanoseconds < 0 else "", parts


def _decimal(nanoseconds: int, size: int) -> str:
    """Return nanoseconds in a unit of a power of ten of them, without zeros at the end."""
    number, fraction = divmod(nanoseconds, size)
    digits = len(str(size)) - 1
    return f"{number}.{fraction:0{digits}}".rstrip("0") if fraction else str(number)
