"""Draw a match over a series of numbers: the values of its events in time, the bound ones marked by variable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError
from acep.events.tables import to_table
from acep.events.times import value_text
from acep.matches.matches import Match
from acep.plots.around_match import Bools, Series, of_key, series_of, surroundings
from acep.plots.canvas import AS_WRITTEN, COLOURS, GREY, axes_of, label_text, legend, set_title
from acep.plots.time_axis import Floats, Ints, moment, time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_series", "key_text", "match_over_series"]

MOST_POINTS = 2_000
"""The most points of the line."""
MOST_MARKS = 400
"""The most marks of bound events, of all variables together."""
NEIGHBOURS = 20  # events on each side of a match that takes no time
FEW = 80  # points that are marked by dots


def match_over_series(
    events: Any,
    match: Match,
    value: str,
    *,
    ts: str = "ts",
    id: str | None = None,
    context: float = 0.5,
    ax: Axes | None = None,
) -> Axes:
    """Draw a numeric column of events around a match as a line, and mark the bound events by variable; return the axes.

    ``events`` are those that were matched: a table of any kind that :func:`acep.match` takes, or the path of a file.
    ``value``, ``ts`` and ``id`` name columns; without ``id`` events are known by their row, as by :func:`acep.match`.
    The line has the events that share the key of the match and have a value; a bound event without a value is a dotted
    vertical line. A value beyond 1e300, or not a number, counts as none. ``context`` is how much is shown before and
    after the match, as a share of its length. Times are drawn to the microsecond. ``ax``: the axes to draw in (default:
    those of a new figure).

    At most 2,000 points are drawn: of more, the least and the greatest of each stretch. At most 400 events are marked.
    The title says so.

    Raises :class:`DataError` if a column is missing or of the wrong kind, or if the events are not those of the match.

    >>> import acep
    >>> events = {"ts": [1, 2, 3, 4], "type": ["a", "x", "b", "b"], "price": [7.0, 8.5, 6.0, 9.0]}
    >>> found = acep.match(events, acep.regex("ab", within=5))
    >>> ax = match_over_series(events, found[0], "price")
    >>> ax.get_ylabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('price', ['a', 'b'])
    """
    _check(match, context)
    table = _table(events, ts)
    series = series_of(table, match, value, ts=ts, id=id, usable=of_key(table, match.key))
    return draw_series(series, match, value, ts, context, ax)


def draw_series(series: Series, match: Match, value: str, ts: str, context: float, ax: object) -> Axes:
    """Draw a match over a series; ``value`` and ``ts`` name the axes."""
    low, high = surroundings(match, context)
    times, values = series.times, series.values
    shown_rows = _line_rows(series.usable & ~np.isnan(values), times, low, high)
    axes = axes_of(ax)
    bounds = np.array([moment(match.start)[1], moment(match.end)[1]])
    drawn_times = np.concatenate([times[shown_rows], bounds])
    first, last = int(drawn_times.min()), int(drawn_times.max())
    axis = time_axis(first, last, calendar=series.calendar, zone=series.zone)
    drawn_rows, notes = _thin_out(shown_rows, values[shown_rows]), []
    if len(drawn_rows) < len(shown_rows):
        notes.append(f"{len(drawn_rows):,} of {len(shown_rows):,} events drawn")
    dots: dict[str, Any] = {"marker": ".", "markersize": 4} if len(drawn_rows) <= FEW else {}
    axes.plot(axis.positions(times[drawn_rows]), values[drawn_rows], color=GREY, linewidth=0.9, zorder=1, **dots)
    start, end = axis.positions(bounds).tolist()
    axes.axvspan(start, end, color=COLOURS[4], alpha=0.15, linewidth=0, zorder=0)
    marked = _choose_marked(series.rows)
    n_bound, n_marked = sum(map(len, series.rows.values())), sum(map(len, marked.values()))
    if n_marked < n_bound:
        notes.append(f"{n_marked:,} of {n_bound:,} bound events marked")
    entries = []
    for number, (variable, rows) in enumerate(marked.items()):
        entries.append(
            (_marks(axes, axis.positions(times[rows]), values[rows], COLOURS[number % len(COLOURS)]), variable)
        )
    axis.label(axes, ts, first, last)
    axes.set_ylabel(label_text(value), fontsize=9, **AS_WRITTEN)
    axes.tick_params(labelsize=8)
    legend(axes, entries)
    error = f", error {match.error}" if match.error else ""
    set_title(axes, f"match of {key_text(match.key)}{error}" if match.key else f"match{error}", notes)
    return axes


def key_text(key: Mapping[str, Any]) -> str:
    """Return the key of a match as a text.

    >>> key_text({"symbol": "AAPL", "venue": 7})
    'symbol=AAPL, venue=7'
    """
    return ", ".join(f"{name}={value_text(value)}" for name, value in key.items())


# The parts ---------------------------------------------------------------------------------------


def _check(match: object, context: object) -> None:
    if not isinstance(match, Match):
        hint = "take one of them, such as found[0]" if hasattr(match, "__len__") else None
        raise DataError(f"one match is drawn, and {type(match).__name__} is none", hint=hint, code="option_invalid")
    if match.op < 0:
        raise DataError("this match was taken back", hint="draw one whose op is 1", code="option_invalid")
    if isinstance(context, bool) or not isinstance(context, int | float) or not 0 <= context < float("inf"):
        raise DataError(
            f"context={context!r} is not a share of the length of a match, such as 0.5", code="option_invalid"
        )


def _table(events: Any, ts: str) -> pa.Table:
    if not isinstance(events, str | os.PathLike):
        return to_table(events)
    from acep.events.files.reading import read_events

    return read_events(events, ts=ts)


def _line_rows(usable: Bools, times: Ints, low: int, high: int) -> Ints:
    """Return the rows of the line in order of time; around a match that takes no time some of its neighbours."""
    rows: Ints = np.flatnonzero(usable)
    rows = rows[np.argsort(times[rows], kind="stable")]
    begin, end = (int(np.searchsorted(times[rows], *side)) for side in ((low, "left"), (high, "right")))
    if low == high:
        begin, end = max(0, begin - NEIGHBOURS), end + NEIGHBOURS
    return rows[begin:end]


def _thin_out(rows: Ints, values: Floats) -> Ints:
    """Return at most ``MOST_POINTS`` of the rows: the least and the greatest value of each stretch of them."""
    if len(rows) <= MOST_POINTS:
        return rows
    edges = np.linspace(0, len(rows), MOST_POINTS // 2 + 1).astype(np.int64)
    extremes = [
        begin + np.array([values[begin:end].argmin(), values[begin:end].argmax()])
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    positions: Ints = np.unique(np.concatenate(extremes))
    return rows[positions]


def _choose_marked(rows: dict[str, Ints]) -> dict[str, Ints]:
    """Return the bound events that are marked, evenly chosen where there are more than ``MOST_MARKS``."""
    numbers = np.repeat(np.arange(len(rows)), [len(bound_rows) for bound_rows in rows.values()])
    marked = np.arange(0, len(numbers), max(1, -(-len(numbers) // MOST_MARKS)))
    all_rows = np.concatenate([*rows.values(), np.empty(0, np.int64)])
    marked_rows = {variable: all_rows[marked[numbers[marked] == number]] for number, variable in enumerate(rows)}
    return {variable: bound_rows for variable, bound_rows in marked_rows.items() if len(bound_rows)}


def _marks(axes: Axes, x: Floats, values: Floats, colour: str) -> Any:
    """Mark events, those without a value by a dotted line from top to bottom, and return the artist for the legend."""
    without = np.isnan(values)
    marks: Any = axes.plot(
        x[~without], values[~without], linestyle="none", marker="o", markersize=6, color=colour, zorder=3
    )[0]
    if without.any():
        lines = axes.vlines(x[without], 0, 1, transform=axes.get_xaxis_transform(), colors=colour, linestyles=":")
        return lines if without.all() else marks
    return marks
