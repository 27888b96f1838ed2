"""``latest=``: the greatest time that an event of a stream may have, as it is read."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest

from acep.errors import DataError
from acep.events.tables import InputSchema
from acep.streaming.latest_time import Latest, latest_of

PLAIN = InputSchema((), tick_ns=None)
SECONDS = InputSchema((), tick_ns=Fraction(10**9))
MICROS = InputSchema((), tick_ns=Fraction(1000), instants=True)
DAYS = InputSchema((), tick_ns=Fraction(86_400 * 10**9), instants=True)
BERLIN = dt.timezone(dt.timedelta(hours=1))


@pytest.mark.parametrize(
    ("latest", "schema", "read"),
    [
        (None, PLAIN, None),
        (7, PLAIN, Latest(tick=7)),
        (-7, SECONDS, Latest(tick=-7)),
        ("90 s", SECONDS, Latest(ahead=90_000)),
        (dt.timedelta(hours=1), MICROS, Latest(ahead=3_600_000)),
        ("2030-01-01", SECONDS, Latest(tick=1_893_456_000)),
        ("2030-01-01T01:00+01:00", SECONDS, Latest(tick=1_893_456_000)),
        (dt.datetime(2030, 1, 1, 1, tzinfo=BERLIN), MICROS, Latest(tick=1_893_456_000 * 10**6)),
        (dt.datetime(2030, 1, 1, 23), DAYS, Latest(tick=21_915)),
        (dt.date(2030, 1, 1), DAYS, Latest(tick=21_915)),
        (dt.datetime(1969, 12, 31, 23), DAYS, Latest(tick=-1)),
    ],
)
def test_a_bound_is_a_span_after_the_clock_or_a_time(latest: Any, schema: InputSchema, read: Latest | None) -> None:
    assert latest_of(latest, schema) == read


@pytest.mark.parametrize(
    ("latest", "schema", "message"),
    [
        (True, PLAIN, "latest= takes a span, a time or a number of ticks, not bool"),
        (1.5, PLAIN, "not float"),
        (7, MICROS, "latest=7 is a number, and `ts` is a timestamp"),
        ("1 hour", PLAIN, "needs to know how long a tick of the integer `ts` is"),
        (dt.timedelta(hours=1), PLAIN, "needs to know how long a tick"),
        ("2030-01-01", PLAIN, "the ticks of `ts` have no unit"),
        ("2030-13-01", MICROS, "is no time"),
        ("soon", MICROS, "latest='soon' is no span of time"),
        ("60", MICROS, "latest='60' has no unit of time"),
        (dt.timedelta(hours=-1), MICROS, "is not between 0 and 100 years"),
        ("40000 d", MICROS, "is not between 0 and 100 years"),
    ],
)
def test_what_is_no_bound_is_refused(latest: Any, schema: InputSchema, message: str) -> None:
    with pytest.raises(DataError, match=message):
        latest_of(latest, schema)


def test_a_bound_by_the_clock_is_whole_ticks() -> None:
    assert Latest(ahead=1500).greatest_tick(1000, (1000, 1)) == 2
    assert Latest(ahead=1500).greatest_tick(1000, (1, 1000)) == 2_500_000
    assert Latest(tick=5).greatest_tick(None, (1, 1)) == 5
