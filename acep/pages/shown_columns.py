"""Choose some of very many matches, and turn them into plain columns: texts to read, numbers to sort and draw by."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acep.display import clip_text
from acep.events.times import value_text
from acep.matches.matches import Match, Matches
from acep.matches.zoned_times import zoned_text
from acep.pages.exact_values import (
    PageAxis,
    exact_moment,
    kind_of_values,
    nanoseconds_of,
    page_axis,
    ranks_of_values,
)

__all__ = ["LONGEST", "PARTS", "MatchColumns", "ShownColumn", "choose_matches", "column_of_values", "match_columns"]

LONGEST = 200  # characters of a text
PARTS = 20  # key attributes, and values of RETURN
SUB_LANES = 6  # bars of one key that overlap, side by side
SECOND = 10**9  # in nanoseconds, as are the units of lengths of time
UNITS = {"d": 86_400 * SECOND, "h": 3600 * SECOND, "min": 60 * SECOND, "s": SECOND, "ms": 10**6, "µs": 10**3, "ns": 1}


@dataclass(frozen=True)
class ShownColumn:
    """A column of a table on a page: its ``name``, a text for each row, and its ``kind``: "text", "number", "time" or
    "duration". ``numbers`` are those to draw, and durations in the unit of the time line (``None``: there are none; a
    row without a finite number has ``None``). ``ranks`` are the exact order of the rows (``None``: that of their
    texts; a row without a value has ``None``)."""

    name: str
    texts: tuple[str, ...]
    numbers: tuple[float | None, ...] | None = None
    kind: str = "text"
    ranks: tuple[int | None, ...] | None = None


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
    axis: PageAxis
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
    begins, ends = ([exact_moment(getattr(match, name)) for match in chosen] for name in ("start", "end"))
    is_calendar = any(calendar for calendar, _ in begins)
    zone = bool(matches.form.zoned_names() & {"start"}) or any(getattr(match.start, "tzinfo", None) for match in chosen)
    first, last = min((time for _, time in begins), default=0), max((time for _, time in ends), default=0)
    axis = page_axis(first, last, calendar=is_calendar, zone=zone)
    start, end = (axis.positions(time for _, time in side) for side in (begins, ends))
    spans = [end_time - start_time for (_, start_time), (_, end_time) in zip(begins, ends, strict=True)]
    unit = _unit_of_lengths(spans) if is_calendar else ""
    lengths = tuple(span / UNITS.get(unit, 1) for span in spans)
    lanes, lane = _lanes(chosen, sorted(range(len(chosen)), key=[time for _, time in begins].__getitem__))
    sub_lane, depths = _sub_lanes(start, end, lane, len(lanes))
    return MatchColumns(
        total,
        tuple(numbers),
        tuple(_named_apart(matches, _table(matches, chosen, numbers, spans, unit))),
        axis.calendar,
        axis,
        start,
        end,
        lengths,
        unit,
        lanes,
        lane,
        sub_lane,
        depths,
        tuple(float(match.error) for match in chosen),
        tuple(match.op for match in chosen),
    )


def column_of_values(
    name: str, values: Iterable[Any], texts: Iterable[str] | None = None, unit: str = "s"
) -> ShownColumn:
    """Return a column of values, with ranks if all that are there are numbers, times or durations; numbers of durations
    are in ``unit``.

    >>> column_of_values("x", [1, None, 2.5])
    ShownColumn(name='x', texts=('1', 'null', '2.5'), numbers=(1.0, None, 2.5), kind='number', ranks=(0, None, 1))
    >>> column_of_values("x", ["1", "<b>"]).kind
    'text'
    """
    values = list(values)
    if texts is None:
        texts = ["null" if value is None else value_text(value) for value in values]
    kind = kind_of_values(values)
    numbers = tuple(_number(value, kind, unit) for value in values) if kind in ("number", "duration") else None
    ranks = ranks_of_values(values, kind)
    return ShownColumn(clip_text(name), tuple(clip_text(text, LONGEST) for text in texts), numbers, kind, ranks)


def _number(value: Any, kind: str, unit: str) -> float | None:
    """Return a value as a number that JSON has."""
    if value is None:
        return None
    try:
        number = nanoseconds_of(value) / UNITS[unit] if kind == "duration" else float(value)
    except OverflowError:
        return None
    return number if np.isfinite(number) else None


def _unit_of_lengths(spans: Sequence[int]) -> str:
    """Return the unit that suits the longest of some lengths of time.

    >>> _unit_of_lengths([90 * SECOND, 200 * SECOND]), _unit_of_lengths([700])
    ('min', 'ns')
    """
    longest = max(spans, default=0)
    return next((unit for unit, size in UNITS.items() if longest >= 2 * size), "ns")


def _lanes(chosen: Sequence[Match], order: Sequence[int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the texts of the keys of matches in an order, no two of them equal, and the place of each match's key."""
    keys = [tuple(None if value != value else value for value in match.key.values()) for match in chosen]
    place_of = {key: place for place, key in enumerate(dict.fromkeys(keys[number] for number in order))}
    match_of = dict(zip(keys, chosen, strict=True))
    texts: dict[str, None] = {}
    for key in place_of:
        text = clip_text(", ".join(map(value_text, match_of[key].key.values())), LONGEST)
        number, distinct = 1, text
        while distinct in texts:
            number += 1
            distinct = f"{text} (key {number})"
        texts[distinct] = None
    return tuple(texts), tuple(place_of[key] for key in keys)


def _sub_lanes(
    start: Sequence[float], end: Sequence[float], lane: Sequence[int], n_lanes: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
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
    matches: Matches, chosen: list[Match], numbers: Sequence[int], spans: Sequence[int], unit: str
) -> Iterable[ShownColumn]:
    """Yield the columns of the table of matches, whose ``spans`` are nanoseconds, or ticks where there is no unit."""
    yield column_of_values("match", numbers)
    for name in matches.keys[:PARTS]:
        values = [match.key[name] for match in chosen]
        texts = [zoned_text(m.key[name], f"key.{name}", m._zoned) for m in chosen]
        yield column_of_values(name, values, texts, unit or "s")
    for name in ("start", "end"):
        times = [getattr(match, name) for match in chosen]
        yield column_of_values(name, times, [zoned_text(getattr(m, name), "start", m._zoned) for m in chosen])
    if unit:
        yield column_of_values("duration", [_duration(span) for span in spans], unit=unit)
    else:
        yield column_of_values("duration", spans)
    yield column_of_values("error", [match.error for match in chosen])
    for name in matches.returns[:PARTS]:
        values = [match.values[name] for match in chosen]
        yield column_of_values(name, values, [_value_text(match, name) for match in chosen], unit or "s")
    if matches.ops:
        yield column_of_values("op", [match.op for match in chosen])


def _named_apart(matches: Matches, columns: Iterable[ShownColumn]) -> Iterable[ShownColumn]:
    """Yield columns of the table with distinct names: a key or a value that has the name of another column says what it
    is, as in ``key_error``."""
    columns = list(columns)
    n_keys, n_returns = min(len(matches.keys), PARTS), min(len(matches.returns), PARTS)
    first_return = 1 + n_keys + 4
    keys, returns = range(1, 1 + n_keys), range(first_return, first_return + n_returns)
    names = [column.name for place, column in enumerate(columns) if place not in keys and place not in returns]
    for places, word in ((keys, "key"), (returns, "value")):
        for place in places:
            name = columns[place].name
            while name in names:
                name = f"{word}_{name}"
            names.append(name)
            columns[place] = replace(columns[place], name=name)
    yield from columns


def _value_text(match: Match, name: str) -> str:
    value = match.values[name]
    return "null" if value is None else zoned_text(value, f"values.{name}", match._zoned)


def _duration(span: int) -> dt.timedelta | np.timedelta64:
    return np.timedelta64(span, "ns") if span % 1000 else dt.timedelta(microseconds=span // 1000)
