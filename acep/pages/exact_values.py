"""Keep values exact on a page: times as integers on an axis, and the order of numbers, times and durations."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from acep.events.columns import UNIT_NS
from acep.plots.time_axis import moment, moments, time_axis

__all__ = [
    "PageAxis", "exact_moment", "exact_moments", "kind_of_values", "nanoseconds_of", "page_axis", "ranks_of_values",
]  # fmt: skip

EPOCH = dt.datetime(1970, 1, 1)
DAY_NS = 86_400 * 10**9
SECOND_NS = 10**9
# The units of an axis of less than a second, with the least spans for which they serve, in nanoseconds.
SHORT_UNITS = ((10**6, 10**7, "ms"), (10**3, 10**4, "µs"), (1, 0, "ns"))


@dataclass(frozen=True)
class PageAxis:
    """The axis of time of a page: milliseconds since 1970 if it is a ``calendar``, else numbers. Times are integers,
    nanoseconds since 1970 or ticks; positions are counted from ``origin`` in units of ``unit``, and ``note`` says so
    to the reader, or names the zone."""

    calendar: bool
    origin: int
    unit: int
    note: str

    def positions(self, times: Iterable[int]) -> tuple[float, ...]:
        """Return the positions of times.

        >>> page_axis(1_700_000_000_000_000_000, 1_700_000_000_000_000_007, calendar=True).positions(
        ...     [1_700_000_000_000_000_003]
        ... )
        (3.0,)
        """
        return tuple((time - self.origin) / self.unit for time in times)


def page_axis(first: int, last: int, *, calendar: bool, zone: bool = False) -> PageAxis:
    """Return the axis for times between two; ``zone``: those of the calendar are in UTC.

    A span of less than a second is counted from its beginning. Raises :class:`DataError` for moments beyond the years
    1 to 9999.

    >>> page_axis(5, 7, calendar=False)
    PageAxis(calendar=False, origin=0, unit=1, note='')
    >>> page_axis(7, 1000, calendar=True).note
    '(ns from 1970-01-01T00:00:00.000000007)'
    """
    if not calendar:
        axis = time_axis(first, last, calendar=False)
        return PageAxis(False, axis.origin, 1, axis.note)
    span = last - first
    axis = time_axis(first // 1000, last // 1000, calendar=True, zone=zone)
    if not 0 < span < SECOND_NS:
        return PageAxis(True, 0, 10**6, "(UTC)" if zone else "")
    unit, _, name = next(entry for entry in SHORT_UNITS if span >= entry[1])
    begin = f"{np.datetime64(first // 1000, 'us')}{f'{first % 1000:03}' if first % 1000 else ''}"
    return PageAxis(False, first, unit, f"({name} from {begin}{'Z' if zone else ''})")


def exact_moment(time: Any) -> tuple[bool, int]:
    """Return whether a time is a moment of the calendar, and its nanoseconds since 1970 or its ticks.

    >>> exact_moment(dt.datetime(1970, 1, 2)), exact_moment(np.datetime64(5, "ns")), exact_moment(7)
    ((True, 86400000000000), (True, 5), (False, 7))
    """
    if isinstance(time, np.datetime64):
        unit, multiple = np.datetime_data(time)
        if unit in UNIT_NS or unit == "D":
            return True, int(time.astype(np.int64)) * multiple * int(DAY_NS if unit == "D" else UNIT_NS[unit])
    is_calendar, number = moment(time)
    return is_calendar, (number * 1000 + int(getattr(time, "nanosecond", 0))) if is_calendar else number


def exact_moments(name: str, column: pa.ChunkedArray) -> tuple[bool, list[int]]:
    """Return the times of a column as :func:`exact_moment` does. Raises :class:`DataError` as
    :func:`acep.plots.time_axis.moments` does.

    >>> exact_moments("ts", pa.chunked_array([pa.array([0, 5], pa.timestamp("ns"))]))
    (True, [0, 5])
    """
    is_calendar, times = moments(name, column)
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return True, column.cast(pa.int64()).to_pylist()
    return is_calendar, [time * 1000 for time in times.tolist()] if is_calendar else times.tolist()


def nanoseconds_of(duration: Any) -> int:
    """Return the exact length of a duration of Python or NumPy.

    >>> nanoseconds_of(dt.timedelta(microseconds=2)), nanoseconds_of(np.timedelta64(7, "ns"))
    (2000, 7)
    """
    if isinstance(duration, np.timedelta64):
        unit, multiple = np.datetime_data(duration)
        return int(duration.astype(np.int64)) * multiple * int(DAY_NS if unit == "D" else UNIT_NS[unit])
    return int(duration // dt.timedelta(microseconds=1)) * 1000 + int(getattr(duration, "nanoseconds", 0))


def kind_of_values(values: Sequence[Any]) -> str:
    """Return "number", "time" or "duration" if all values that are there are such, else "text".

    >>> kind_of_values([1, None, Decimal("2.5")]), kind_of_values([dt.date(2024, 5, 1)]), kind_of_values([True, 1])
    ('number', 'time', 'text')
    """
    kinds = {_kind(value) for value in values if value is not None}
    return kinds.pop() if len(kinds) == 1 else "text"


def _kind(value: Any) -> str:
    if isinstance(value, dt.timedelta | np.timedelta64):
        return "duration"
    if isinstance(value, dt.date | np.datetime64):
        return "time"
    is_number = isinstance(value, int | float | Decimal | Fraction | np.number) and not isinstance(value, bool)
    return "number" if is_number else "text"


def ranks_of_values(values: Sequence[Any], kind: str) -> tuple[int | None, ...] | None:
    """Return the rank of each value in the order of all, equal ones with the same (``None``: no number, or none is
    there); no ranks of texts.

    >>> ranks_of_values([2**53 + 1, float("inf"), None, 2**53, Decimal("0.5")], "number")
    (2, 3, None, 1, 0)
    """
    if kind == "text":
        return None
    exact = [_exact(value, kind) for value in values]
    rank_of = {value: rank for rank, value in enumerate(sorted({value for value in exact if value is not None}))}
    return tuple(None if value is None else rank_of[value] for value in exact)


def _exact(value: Any, kind: str) -> Any:
    """Return a value as a number of Python, which compares exactly; ``None`` for what has no place in an order."""
    if value is None:
        return None
    if kind == "duration":
        return nanoseconds_of(value)
    if kind == "time":
        return exact_moment(value)[1]
    value = value.item() if isinstance(value, np.number) else value
    return None if math.isnan(value) else value
