"""Draw matches as bars from their start to their end, a row for each key."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.errors import DataError
from acep.events.times import value_text
from acep.matches.matches import Match, Matches
from acep.plan.schema import Schema
from acep.plots.canvas import AS_WRITTEN, COLOURS, axes_of, colours_of, label_text, legend, set_title
from acep.plots.images import figure_of
from acep.plots.over_series import key_text
from acep.plots.time_axis import TimeAxis, moment, time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MOST_BARS", "timeline"]

MOST_BARS = 2_000
"""The most bars that are drawn."""
MOST_KEYS = 200
MOST_TAKEN_BACK = 200_000  # matches among which those that were taken back are looked for
LANES = 8  # bars side by side in the row of a key
LEVELS = 8  # colours of errors
NARROW = 4.0  # points of width below which a bar has a diamond over it
DIAMOND, SMALLEST = 6.0, 3.0  # points of width of a diamond, and of one in a narrow lane


@dataclass(frozen=True)
class _Bar:
    """A match as it is drawn: its key as a text, its times, and the name of its query."""

    key: str
    start: int
    end: int
    error: float
    query: str


def timeline(
    matches: Matches | Sequence[Match] | Mapping[str, Matches | Sequence[Match]],
    *,
    most_keys: int = 40,
    of: int | None = None,
    ts: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw matches over time, a row for each key, as bars from their start to their end; return the axes.

    ``matches`` are those of one query, coloured by their error, or a dict of names and matches, coloured by query. Bars
    of a key that overlap are drawn side by side, up to eight. A bar that would be too narrow to be seen has a diamond
    over it, which is as wide for all of them and so says nothing of the length; the title says how many there are.
    ``ts`` names the axis of time; times are drawn to the
    microsecond. ``ax``: the axes to draw in (default: those of a new figure).

    At most 2,000 matches are drawn, evenly chosen, and of the keys among them the ``most_keys`` (at most 200) that have
    the most. The title says so. If ``matches`` are themselves some that were chosen, ``of`` is the number of all, for
    the title. Matches that were taken back (``op`` -1) are not drawn.

    Raises :class:`DataError` for anything but matches, and for more than 200,000 of which some may be taken back.

    >>> import acep
    >>> events = {"ts": [1, 2, 3, 4], "type": ["a", "a", "b", "b"], "user": [7, 8, 8, 7]}
    >>> ax = timeline(acep.match(events, acep.regex("ab", within=5, by="user")))
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_title(loc="left")
    (['7', '8'], '2 matches')
    """
    if isinstance(most_keys, bool) or not isinstance(most_keys, int) or not 1 <= most_keys <= MOST_KEYS:
        raise DataError(f"most_keys={most_keys!r} is not a number of keys from 1 to {MOST_KEYS}", code="option_invalid")
    if ts is not None and not isinstance(ts, str):
        raise DataError(f"ts= is the name of the axis, not {type(ts).__name__}", code="option_invalid")
    if of is not None and (isinstance(of, bool) or not isinstance(of, int)):
        raise DataError(f"of={of!r} is not a number of matches", code="option_invalid")
    several = isinstance(matches, Mapping)
    named = matches.items() if isinstance(matches, Mapping) else [("", matches)]
    by_name = {str(name): matches_of_query for name, matches_of_query in named}
    if ts is None:
        schemas = [getattr(matches_of_query, "schema", None) for matches_of_query in by_name.values()]
        ts = next((schema.ts for schema in schemas if isinstance(schema, Schema)), "ts")
    total, calendar, zone, bars, names, notes = _bars(by_name)
    total = max(total, of or 0)
    number = f"{total:,} match" + ("" if total == 1 else "es")
    if not bars:
        axes = axes_of(ax, height=1.6)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_xlabel(label_text(ts), fontsize=9, **AS_WRITTEN)
        set_title(axes, "no matches" if not total else number, notes)
        return axes
    keys, n_keys = _shown_keys(bars, most_keys)
    drawn_bars = [bar for bar in bars if bar.key in keys]
    axes = axes_of(ax, height=min(1.3 + 0.3 * len(keys), 14.0))
    first, last = min(bar.start for bar in drawn_bars), max(bar.end for bar in drawn_bars)
    axis = time_axis(first, last, calendar=calendar, zone=zone)
    axis.label(axes, ts, first, last)
    narrow = _draw(axes, axis, drawn_bars, keys, by_query=several)
    axes.set_ylabel(label_text(names), fontsize=9, **AS_WRITTEN)
    if len(bars) < total:
        notes.append(f"{len(bars):,} of them chosen")
    if n_keys > len(keys):
        notes.append(f"the {len(keys):,} of {n_keys:,} keys that have the most of them")
    if narrow:
        notes.append(f"diamonds: {narrow:,} too short for a bar")
    set_title(axes, number, notes)
    return axes


# The matches -------------------------------------------------------------------------------------


def _bars(matches_by_name: Mapping[str, Any]) -> tuple[int, bool, bool, list[_Bar], str, list[str]]:
    """Return the number of matches, whether their times are of the calendar and have a zone, the bars of those chosen,
    the names of their key if it is the same for all, and a note on matches that were taken back."""
    standing, n_taken_back = {}, 0
    for name, matches in matches_by_name.items():
        _check(matches)
        standing[name], n_gone = _remove_taken_back(matches)
        n_taken_back += n_gone
    total = sum(map(len, standing.values()))
    every = max(1, -(-total // MOST_BARS))
    drawn_matches: list[tuple[str, Match]] = []
    begin = 0
    for name, matches in standing.items():
        drawn_matches += [(name, match) for match in matches[-begin % every :: every]]
        begin += len(matches)
    heads = {tuple(match.key) for _, match in drawn_matches}
    names = ", ".join(heads.pop()) if len(heads) == 1 else ""
    kinds, zone, bars = set[bool](), False, list[_Bar]()
    for name, match in drawn_matches:
        (calendar, start), (_, end) = moment(match.start), moment(match.end)
        kinds.add(calendar)
        zone = zone or getattr(match.end, "tzinfo", None) is not None
        key = ", ".join(map(value_text, match.key.values())) if names else key_text(match.key)
        bars.append(_Bar(key, start, max(start, end), float(match.error), name))
    if len(kinds) > 1:
        raise DataError(
            "some matches have integers as times, and others dates", hint="draw them one by one", code="option_invalid"
        )
    notes = [f"{n_taken_back:,} taken back, not drawn"] if n_taken_back else []
    return total, bool(kinds and kinds.pop()), zone, bars, names, notes


def _check(matches: Any) -> None:
    if not isinstance(matches, list | tuple | Matches):
        hint = "give what acep.match returns, or a list of matches"
        raise DataError(f"a time line is of matches, not of {type(matches).__name__}", hint=hint, code="option_invalid")
    for match in () if isinstance(matches, Matches) else matches:
        if not isinstance(match, Match):
            raise DataError(f"a time line is of matches, not of {type(match).__name__}", code="option_invalid")


def _remove_taken_back(matches: Any) -> tuple[Any, int]:
    """Return matches without those that were taken back, and the number of these."""
    if isinstance(matches, Matches) and not matches.ops:
        return matches, 0
    if not isinstance(matches, Matches) and all(match.op > 0 for match in matches):
        return matches, 0
    if len(matches) > MOST_TAKEN_BACK:
        raise DataError(
            f"of {len(matches):,} matches, those that were taken back are not looked for",
            hint="draw less",
            code="option_invalid",
        )
    standing: dict[str, Match] = {}
    n_taken_back = 0
    for match in matches:
        if match.op > 0:
            standing[match.id] = match
        else:
            n_taken_back += 1
            standing.pop(match.id, None)
    return list(standing.values()), n_taken_back


def _shown_keys(bars: Sequence[_Bar], limit: int) -> tuple[dict[str, int], int]:
    """Return the rows of the keys that have the most bars, the first match on top, and the number of all keys."""
    number = Counter(bar.key for bar in bars)
    first: dict[str, int] = {}
    for bar in bars:
        first[bar.key] = min(first.get(bar.key, bar.start), bar.start)
    keys = heapq.nsmallest(limit, number, key=lambda key: (-number[key], first[key]))
    return {key: row for row, key in enumerate(sorted(keys, key=lambda key: (first[key], key)))}, len(number)


# The drawing -------------------------------------------------------------------------------------


def _draw(axes: Axes, axis: TimeAxis, bars: Sequence[_Bar], rows: dict[str, int], *, by_query: bool) -> int:
    """Draw bars on axes whose span of time is set, and diamonds over those that are narrow; return how many are."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    axes.set_ylim(len(rows) - 0.5, -0.5)
    boxes = dict(_boxes(bars, rows))
    points_per_tick, points_per_row = _points_per_unit(axes)
    entries, narrow_count = [], 0
    for name, colour, group in _colour_groups(bars, by_query=by_query):
        left = axis.positions(np.array([bar.start for bar in group]))
        right = axis.positions(np.array([bar.end for bar in group]))
        low, high = np.array([boxes[id(bar)] for bar in group]).T
        corners = np.stack([np.stack([left, right, right, left], 1), np.stack([low, low, high, high], 1)], 2)
        # One path for all bars makes small files.
        path = Path.make_compound_path_from_polys(corners)
        patch = axes.add_patch(PathPatch(path, facecolor=colour, edgecolor=colour, linewidth=1.2))
        entries.append((patch, name))
        narrow = (right - left) * points_per_tick < NARROW
        narrow_count += int(narrow.sum())
        sizes = np.where(narrow, np.clip((high - low) * points_per_row, SMALLEST, DIAMOND).round(1), 0)
        for size in np.unique(sizes[narrow]):  # a mark of one size is written once
            middle = [(begin + end)[sizes == size] / 2 for begin, end in ((left, right), (low, high))]
            axes.plot(
                *middle, "D", color=colour, markersize=size / 2**0.5, markeredgecolor="white", markeredgewidth=0.4
            )
    names = [label_text(name, 28) or ("all events" if len(rows) == 1 else " ") for name in rows]
    axes.set_yticks(range(len(rows)), labels=names, fontsize=8 if len(rows) <= 45 else 5, **AS_WRITTEN)
    axes.tick_params(axis="x", labelsize=8)
    for row in range(1, len(rows)):
        axes.axhline(row - 0.5, color="#d0d7de", linewidth=0.5, zorder=0)
    if by_query or len(entries) > 1 or entries[0][1] != "0":
        legend(axes, entries, "" if by_query else "error")
    return narrow_count


def _points_per_unit(axes: Axes) -> tuple[float, float]:
    """Return the points of a unit along both axes, before a layout makes room for labels."""
    box, dpi = axes.get_window_extent(), figure_of(axes).dpi
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    return box.width * 72 / dpi / abs(right - left), box.height * 72 / dpi / abs(high - low)


def _colour_groups(bars: Sequence[_Bar], *, by_query: bool) -> Iterator[tuple[str, str, list[_Bar]]]:
    """Yield the name, the colour and the bars of each query, or of each level of the error."""
    if by_query:
        names = list(dict.fromkeys(bar.query for bar in bars))
        for number, name in enumerate(names):
            yield name, COLOURS[number % len(COLOURS)], [bar for bar in bars if bar.query == name]
        return
    errors = sorted({bar.error for bar in bars})
    wide = -(-len(errors) // LEVELS)
    levels = [errors[first : first + wide] for first in range(0, len(errors), wide)]
    for level, colour in zip(levels, colours_of([level[0] for level in levels]), strict=True):
        name = f"{level[0]:g}" if len(level) == 1 else f"{level[0]:g} to {level[-1]:g}"
        yield name, colour, [bar for bar in bars if level[0] <= bar.error <= level[-1]]


def _boxes(bars: Sequence[_Bar], rows: dict[str, int]) -> Iterator[tuple[int, tuple[float, float]]]:
    """Yield the identity of each bar with the lower and upper edge of its place in the row of its key."""
    for key, row in rows.items():
        key_bars = sorted((bar for bar in bars if bar.key == key), key=lambda bar: (bar.start, bar.end))
        ends: list[int] = []  # of the last bar of each lane
        lanes = []
        for bar in key_bars:
            free = next((lane for lane, end in enumerate(ends) if end < bar.start), None)
            if free is None and len(ends) < LANES:
                ends.append(bar.end)
                free = len(ends) - 1
            elif free is None:
                free = min(range(LANES), key=ends.__getitem__)
            ends[free] = max(ends[free], bar.end)
            lanes.append(free)
        height = 0.8 / len(ends)
        for bar, lane in zip(key_bars, lanes, strict=True):
            low = row - 0.4 + lane * height
            yield id(bar), (low + 0.08 * height, low + 0.92 * height)
