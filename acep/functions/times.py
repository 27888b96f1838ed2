"""Define the scalar functions of times: their parts in UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from acep.functions.scalar_function import Example, ScalarFunction

__all__ = ["TIMES"]

_EPOCH = datetime(1970, 1, 1)
_EXAMPLE = datetime(2026, 1, 31, 10, 20, 30)


def _part(name: str) -> Callable[[Any, Fraction], int]:
    def part(ticks: Any, tick_ns: Fraction) -> int:
        moment = _EPOCH + timedelta(microseconds=int(Fraction(ticks) * tick_ns // 1000))
        return moment.isoweekday() % 7 + 1 if name == "dayofweek" else int(getattr(moment, name))

    return part


def _of_time(number: int, name: str, sentence: str, gives: int, nodes: tuple[str, ...]) -> ScalarFunction:
    """Return the entry of a part of times, by its number in the native core."""
    return ScalarFunction(name, ("time",), "integer", sentence, Example(f"{name}(a.t)", {"t": _EXAMPLE}, gives),
                          _part(name), operations={"integer": "PART"}, part=number,
                          nodes=dict.fromkeys(nodes, ("this",)))  # fmt: skip


TIMES = (
    _of_time(0, "hour", "the hour of a time in UTC, 0 to 23", 10, ("Hour",)),
    _of_time(1, "minute", "its minute, 0 to 59", 20, ("Minute",)),
    _of_time(2, "second", "its second, 0 to 59", 30, ("Second",)),
    _of_time(3, "day", "its day in the month, from 1", 31, ("Day", "DayOfMonth")),
    _of_time(4, "month", "its month, 1 to 12", 1, ("Month",)),
    _of_time(5, "year", "its year", 2026, ("Year",)),
    _of_time(6, "dayofweek", "its day in the week, from 1 on Sundays to 7", 7, ()),
)
