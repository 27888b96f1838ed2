"""Choose some of very many matches, and turn them into plain columns: texts to read, numbers to sort and draw by."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acep.display import clip_text
from acep.events.times import value_text
from acep.matches.matches import Match, Matches
from acep.matches.zoned_times import zoned_text
from acep.plots.time_axis import TimeAxis, moment, time_axis

__all__ = ["LONGEST", "PARTS", "MatchColumns", "ShownColumn", "choose_matches", "column_of_values", "match_columns"]

LONGEST = 200  # characters of a text
PARTS = 20  # key attributes, and values of RETURN
SUB_LANES = 6  # bars of one key that overlap, side by side
DAY_MS = 86_400_000.0
# The units of lengths of time, in microseconds.
UNITS = ((8.64e10, "d"), (3.6e9, "h"), (6e7, "min"), (1e6, "s"), (1e3, "ms"), (1.0, "µs"))


@dataclass(frozen=True)
class ShownColumn:
    """A column of a table on a page: its ``name``, a text for each row, and the numbers by which rows are sorted and
    compared (``None``: by their texts; a row without a number has ``None``)."""

    name: str
    texts: tuple[str, ...]
    numbers: tuple[float | None, ...] | None = None


@dataclass(frozen=True)
class MatchColumns:
    """Some matches as columns: ``numbers`` are their places among all ``total`` matches, ``table`` the columns to read.

    ``start`` and ``end`` are their places on the axis of time: milliseconds since 1970 if it is a ``calendar``, else
    numbers, of which ``axis_note`` says how they count. ``lengths`` are their durations, in ``unit`` ("": ticks). Each
    has a lane, a place in ``lanes``, the texts of the keys in the order in which they begin; ``sub_lanes`` are places
    side by side within a lane, of ``depths`` many for each lane. ``errors`` are the errors, ``ops`` 1 or -1.
    """

    total: int
    numbers: tuple[int, ...]
    table: tuple[ShownColumn, ...]
    calendar: bool
    axis: TimeAxis
    start: tuple[float, ...]
    end: tuple[float, ...]
    lengths: tuple[float, ...]
    unit: str
    lanes: tuple[str, ...]
    lane: tuple[int, ...]
    sub_lane: tuple[int, ...]
    depths: tuple[int, ...]
    errors: tuple[float, ...]
    ops: tuple[int, ...]


def choose_matches(matches: Matches, limit: int) -> tuple[Matches, int]:
    """Return at most so many of the matches, each ``step``-th of them in output order, and the step.

    >>> import acep
    >>> matches = acep.match({"ts": list(range(10)), "type": list("ab" * 5)}, acep.regex("ab", within=1))
    >>> few, step = choose_matches(matches, 2)
    >>> [match.start for match in few], step
    ([0, 6], 3)
    """
    step = max(1, -(-len(matches) // limit))
    return matches[::step], step


def match_columns(matches: Matches, numbers: Sequence[int], total: int) -> MatchColumns:
    """Return matches as columns; ``numbers`` are their places among all ``total`` matches.

    Raises :class:`DataError` for times beyond the years 1 to 9999.

    >>> import acep
    >>> events = {"ts": [1, 2, 3, 4], "type": list("aabb"), "user": [7, 8, 8, 7]}
    >>> columns = match_columns(acep.match(events, acep.regex("ab", within=5, by="user")), (0, 1), 2)
    >>> columns.start, columns.end, columns.lanes, columns.lane
    ((2.0, 1.0), (3.0, 4.0), ('7', '8'), (1, 0))
    >>> [(column.name, column.texts) for column in columns.table][:2]
    [('match', ('0', '1')), ('user', ('8', '7'))]
    """
    chosen = list(matches)
    begins, ends = ([moment(getattr(match, name)) for match in chosen] for name in ("start", "end"))
    is_calendar = any(calendar for calendar, _ in begins)
    ticks = np.array([[tick for _, tick in side] for side in (begins, ends)], np.int64).reshape(2, -1)
    zone = bool(matches.form.zoned_names() & {"start"}) or any(getattr(match.start, "tzinfo", None) for match in chosen)
    first, last = (int(ticks[0].min()), int(ticks[1].max())) if chosen else (0, 0)
    axis = time_axis(first, last, calendar=is_calendar, zone=zone)
    start, end = (axis.positions(side) * (DAY_MS if axis.calendar else 1.0) for side in ticks)
    lengths, unit = _lengths(ticks[1] - ticks[0], calendar=is_calendar)
    keys = [clip_text(", ".join(map(value_text, match.key.values())), LONGEST) for match in chosen]
    lanes = tuple(dict.fromkeys(keys[place] for place in np.argsort(start, kind="stable").tolist()))
    lane = tuple(map({key: number for number, key in enumerate(lanes)}.__getitem__, keys))
    sub_lane, depths = _sub_lanes(start, end, lane, len(lanes))
    return MatchColumns(
        total,
        tuple(numbers),
        tuple(_table(matches, chosen, numbers, start, end, lengths)),
        axis.calendar,
        axis,
        tuple(start.tolist()),
        tuple(end.tolist()),
        lengths,
        unit,
        lanes,
        lane,
        sub_lane,
        depths,
        tuple(float(match.error) for match in chosen),
        tuple(match.op for match in chosen),
    )


def column_of_values(name: str, values: Iterable[Any], texts: Iterable[str] | None = None) -> ShownColumn:
    """Return a column of values, with numbers if all that are there are numbers.

    >>> column_of_values("x", [1, None, 2.5])
    ShownColumn(name='x', texts=('1', 'null', '2.5'), numbers=(1.0, None, 2.5))
    >>> column_of_values("x", ["1", "<b>"]).numbers is None
    True
    """
    values = list(values)
    if texts is None:
        texts = ["null" if value is None else value_text(value) for value in values]
    is_numeric = any(value is not None for value in values) and all(
        value is None or _is_number(value) for value in values
    )
    numbers = tuple(None if value is None else _number(value) for value in values) if is_numeric else None
    return ShownColumn(clip_text(name), tuple(clip_text(text, LONGEST) for text in texts), numbers)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.timedelta64)


def _number(value: Any) -> float | None:
    """Return a value as a number that JSON has."""
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if np.isfinite(number) else None


def _lengths(ticks: np.ndarray[Any, np.dtype[np.int64]], *, calendar: bool) -> tuple[tuple[float, ...], str]:
    """Return durations in the unit that suits the longest, and the unit; without a calendar they are ticks."""
    numbers = ticks.astype(np.float64)
    if not calendar:
        return tuple(numbers.tolist()), ""
    longest = float(numbers.max()) if len(numbers) else 0.0
    size, unit = next(((size, unit) for size, unit in UNITS if longest >= 2 * size), UNITS[-1])
    return tuple((numbers / size).tolist()), unit


def _sub_lanes(start: Any, end: Any, lane: Sequence[int], n_lanes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return for each bar the first place in its lane where it overlaps with none, and the number of places by lane."""
    ends: list[list[float]] = [[] for _ in range(n_lanes)]
    places = [0] * len(lane)
    for bar in np.lexsort((end, start)).tolist():
        taken = ends[lane[bar]]
        place = next((n for n, until in enumerate(taken) if until < start[bar]), len(taken))
        place = min(range(len(taken)), key=taken.__getitem__) if place == SUB_LANES else place
        if place == len(taken):
            taken.append(0.0)
        taken[place], places[bar] = max(end[bar], taken[place] if place < len(taken) else end[bar]), place
    return tuple(places), tuple(max(1, len(taken)) for taken in ends)


def _table(
    matches: Matches, chosen: list[Match], numbers: Sequence[int], start: Any, end: Any, lengths: Sequence[float]
) -> Iterable[ShownColumn]:
    """Yield the columns of the table of matches."""
    yield column_of_values("match", numbers)
    for name in matches.keys[:PARTS]:
        values = [match.key[name] for match in chosen]
        yield column_of_values(name, values, [zoned_text(m.key[name], f"key.{name}", m._zoned) for m in chosen])
    for name, positions in (("start", start), ("end", end)):
        texts = (zoned_text(getattr(match, name), "start", match._zoned) for match in chosen)
        yield ShownColumn(name, tuple(clip_text(text, LONGEST) for text in texts), tuple(positions.tolist()))
    yield ShownColumn("duration", tuple(_duration_text(match) for match in chosen), tuple(lengths))
    yield column_of_values("error", [match.error for match in chosen])
    for name in matches.returns[:PARTS]:
        values = [match.values[name] for match in chosen]
        yield column_of_values(name, values, [_value_text(match, name) for match in chosen])
    if matches.ops:
        yield column_of_values("op", [match.op for match in chosen])


def _value_text(match: Match, name: str) -> str:
    value = match.values[name]
    return "null" if value is None else zoned_text(value, f"values.{name}", match._zoned)


def _duration_text(match: Match) -> str:
    (calendar, start), (_, end) = moment(match.start), moment(match.end)
    return value_text(dt.timedelta(microseconds=end - start)) if calendar else str(end - start)
