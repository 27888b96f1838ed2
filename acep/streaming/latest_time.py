"""Set an upper bound on event times, so that one event from far in the future does not advance the watermark."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from acep.errors import DataError
from acep.events.tables import InputSchema
from acep.streaming.times import delay_ms_of

__all__ = ["Latest", "latest_of", "tick_of_moment"]

_MOMENT = re.compile(r"\s*\d{4}-")
_MOST_MS = 100 * 366 * 86_400_000  # a hundred years: a bound in nanoseconds still fits in 64 bits
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True)
class Latest:
    """The greatest time that an event may have: a ``tick``, or a number of milliseconds ``ahead`` of the clock."""

    tick: int | None = None
    ahead: int | None = None

    def greatest_tick(self, now: int | None, tick_ms: tuple[int, int]) -> int:
        """Return the greatest tick of an event in a micro-batch that began at ``now``, in milliseconds since 1970
        (not used where the tick is fixed).

        >>> Latest(ahead=500).greatest_tick(1000, (1000, 1)), Latest(tick=7).greatest_tick(None, (1, 1))
        (1, 7)
        """
        if self.ahead is None:
            assert self.tick is not None, "a bound"
            return self.tick
        assert now is not None, "a bound by the clock"
        return (now + self.ahead) * tick_ms[1] // tick_ms[0]


def latest_of(latest: Any, schema: InputSchema) -> Latest | None:
    """Read ``latest=``: a span of time (a text or a timedelta) after the beginning of each micro-batch, or a fixed time
    (ticks of an integer ``ts``, or a date, a datetime or a text of one, in UTC unless it has a time zone).

    Raises :class:`DataError` for other values.

    >>> latest_of("1 hour", InputSchema((), tick_ns=Fraction(1000), instants=True))
    Latest(tick=None, ahead=3600000)
    >>> latest_of("2030-01-01", InputSchema((), tick_ns=Fraction(10**9), instants=True))
    Latest(tick=1893456000, ahead=None)
    """
    if latest is None:
        return None
    tick = tick_of_moment(latest, schema, "latest", 'write latest="1 hour"')
    if tick is not None:
        return Latest(tick=tick)
    if not isinstance(latest, str | dt.timedelta):
        raise DataError(
            f"latest= takes a span, a time or a number of ticks, not {type(latest).__name__}", code="option_invalid"
        )
    if schema.tick_ns is None:
        raise DataError(
            f"latest={latest!r} needs to know how long a tick of the integer `{schema.ts}` is",
            hint='name the unit (unit="s"), or give a time in ticks: latest=1000000',
            code="option_invalid",
        )
    ahead = delay_ms_of(latest, schema, "latest")
    if not 0 <= ahead <= _MOST_MS:
        raise DataError(f"latest={latest!r} is not between 0 and 100 years", code="option_invalid")
    return Latest(ahead=ahead)


def tick_of_moment(moment: Any, schema: InputSchema, option: str, hint: str) -> int | None:
    """Return the last tick that is not after a fixed time: ticks of an integer ``ts``, or a date, a datetime or a text
    of one, in UTC unless it has a time zone. ``None``: it is no such time. Error messages use the name ``option``.

    Raises :class:`DataError` for a number where times are timestamps (with this ``hint``), a text that is no time, and
    a time where ticks have no unit.

    >>> tick_of_moment("2030-01-01", InputSchema((), tick_ns=Fraction(10**9), instants=True), "until", "")
    1893456000
    """
    if isinstance(moment, int) and not isinstance(moment, bool):
        if schema.instants:
            raise DataError(
                f"{option}={moment} is a number, and `{schema.ts}` is a timestamp", hint=hint, code="option_invalid"
            )
        return moment
    if isinstance(moment, str) and _MOMENT.match(moment):
        try:
            moment = dt.datetime.fromisoformat(moment.strip())
        except ValueError:
            raise DataError(
                f"{option}={moment!r} is no time", hint=f'write {option}="2030-01-01 12:00:00"', code="option_invalid"
            ) from None
    return _tick_at(moment, schema, option) if isinstance(moment, dt.date) else None


def _tick_at(moment: dt.date, schema: InputSchema, option: str) -> int:
    """Return the last tick that is not after a moment."""
    if schema.tick_ns is None:
        raise DataError(
            f"{option}={moment} is a time, and the ticks of `{schema.ts}` have no unit",
            hint="unit=",
            code="option_invalid",
        )
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime(moment.year, moment.month, moment.day)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return int((moment - _EPOCH) // _MICROSECOND * 1000 // Fraction(schema.tick_ns))
