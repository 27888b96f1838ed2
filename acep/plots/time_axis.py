"""Place times on the axis of a plot: integers as numbers, dates and timestamps as moments of the calendar."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TimeAxis", "moment", "moments", "time_axis"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FIRST, LAST = (np.datetime64(day).astype("datetime64[us]").astype(np.int64) for day in ("0001-01-02", "9999-12-30"))
"""The moments that the calendar of matplotlib has, in microseconds since 1970."""

EXACT = 1 << 50  # integers beyond are no longer told apart well as floats
DAY = 86_400_000_000
SHORT = 1_000_000  # microseconds below which the calendar is of no use
LONG = 10_000  # and from which milliseconds are easier to read
EMPTY = 0.03  # share of the span that is left free on both sides


@dataclass(frozen=True)
class TimeAxis:
    """The scale of an axis of times, which are integers: ``calendar`` says that they are microseconds since 1970, shown
    as dates. Positions are counted from ``origin`` in units of ``unit``; ``note`` says so to the reader, or names the
    zone."""

    calendar: bool
    origin: int
    note: str
    unit: int = 1

    def positions(self, times: Ints) -> Floats:
        """Return the positions of times."""
        positions = (times - self.origin).astype(np.float64)
        return positions / (DAY if self.calendar else self.unit)

    def label(self, ax: Axes, name: str, first: int, last: int) -> None:
        """Name the axis, show times on it in the way that they need, and bound it to a span and a little more."""
        from matplotlib import dates

        from acep.plots.canvas import AS_WRITTEN, label_text

        low, high = self.positions(np.array([first, last])).tolist()
        free = EMPTY * (high - low) or (1 / 86_400 if self.calendar else 1.0)
        low, high = low - free, high + free
        if self.calendar:
            low, high = max(low, FIRST / DAY), min(high, LAST / DAY)
            untyped: Any = dates
            locator = untyped.AutoDateLocator(minticks=3, maxticks=8)
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))
        ax.set_xlim(low, high)
        ax.set_xlabel(" ".join(filter(None, (label_text(name), self.note))), fontsize=9, **AS_WRITTEN)


def moment(time: Any) -> tuple[bool, int]:
    """Return whether a time of a match is a moment of the calendar, and its microseconds since 1970 or its ticks.

    >>> moment(dt.datetime(1970, 1, 2)), moment(7)
    ((True, 86400000000), (False, 7))
    """
    if isinstance(time, dt.datetime) and time.tzinfo is not None:
        time = time.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(time, dt.date | np.datetime64):  # a datetime is a date
        return True, int(np.datetime64(time).astype("datetime64[us]").astype(np.int64))
    if isinstance(time, bool) or not isinstance(time, int | np.integer):
        raise DataError(f"a time is an integer, a date or a datetime, not {type(time).__name__}", code="option_invalid")
    if not -(2**63) <= time < 2**63:
        raise DataError(f"the time {time} is beyond 64 bits", code="data_value")
    return False, int(time)


def moments(name: str, column: pa.ChunkedArray) -> tuple[bool, Ints]:
    """Return the times of a column as :func:`moment` does. Raises :class:`DataError` for nulls and for other types.

    >>> moments("ts", pa.chunked_array([pa.array([0, 5], pa.timestamp("ns"))]))
    (True, array([0, 0]))
    """
    dtype = column.type
    calendar = pa.types.is_timestamp(dtype) or pa.types.is_date(dtype)
    if not calendar and not pa.types.is_integer(dtype):
        raise DataError(
            f"column `{name}` is {dtype}, and a time is an integer, a date or a timestamp", code="data_type"
        )
    if column.null_count:
        raise DataError(f"column `{name}` has nulls, and a time is needed for each event", code="data_null")
    if not calendar:
        try:
            return False, column.cast(pa.int64()).to_numpy().astype(np.int64)
        except pa.ArrowInvalid:
            raise DataError(f"column `{name}` has times beyond 64 bits", code="data_value") from None
    if pa.types.is_timestamp(dtype):
        column = column.cast(pa.timestamp(dtype.unit))  # in UTC, without its zone
    return True, column.to_numpy().astype("datetime64[us]").astype(np.int64)


def time_axis(first: int, last: int, *, calendar: bool, zone: bool = False) -> TimeAxis:
    """Return the axis for times between two; ``zone``: those of the calendar are in UTC.

    A span of less than a second is counted from its beginning, in milliseconds or, if it is short, in microseconds.
    Raises :class:`DataError` for moments beyond the years 1 to 9999, which the calendar does not have.

    >>> time_axis(5, 7, calendar=False)
    TimeAxis(calendar=False, origin=0, note='', unit=1)
    >>> time_axis(0, 1000, calendar=True).note
    '(µs from 1970-01-01T00:00:00.000000)'
    """
    if not calendar:
        far = max(abs(first), abs(last)) > EXACT
        return TimeAxis(False, first if far else 0, f"(from {first})" if far else "")
    if not FIRST <= first <= last <= LAST:
        raise DataError("times beyond the years 1 to 9999 cannot be drawn", code="data_value")
    utc = "UTC" if zone else ""
    if 0 < last - first < SHORT:
        begin = np.datetime64(first, "us")
        unit, name = (1000, "ms") if last - first >= LONG else (1, "µs")
        return TimeAxis(False, first, f"({name} from {begin}{'Z' if zone else ''})", unit)
    return TimeAxis(True, 0, f"({utc})" if utc else "")
