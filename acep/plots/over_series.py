"""Draw a match over a series of numbers: the values of its events in time, the bound ones marked by variable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep.errors import DataError, suggest
from acep.events.fields import column_at, fields_of
from acep.events.tables import to_table
from acep.events.times import value_text
from acep.matches.matches import Match
from acep.plots.canvas import AS_WRITTEN, COLOURS, GREY, axes_of, label_text, legend, titled
from acep.plots.time_axis import Floats, Ints, moment, moments, time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Series",
    "column_of",
    "draw_series",
    "is_numeric",
    "key_text",
    "match_over_series",
    "of_key",
    "series_of",
    "surroundings",
]

Bools = npt.NDArray[np.bool_]

MOST_POINTS = 2_000
"""The most points of the line."""
MOST_MARKS = 400
"""The most marks of bound events, of all variables together."""
NEIGHBOURS = 20  # events on each side of a match that takes no time
GREATEST = 1e300  # beyond, differences of two values would overflow
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


@dataclass(frozen=True)
class Series:
    """Events around a match: their ``times`` (see :func:`acep.plots.time_axis.moments`; ``calendar`` and ``zone`` are
    about these), ``values`` (NaN: none), which of them are ``usable`` for the line, and the rows that are bound to each
    variable."""

    calendar: bool
    zone: bool
    times: Ints
    values: Floats
    usable: Bools
    rows: dict[str, Ints]


def series_of(table: pa.Table, match: Match, value: str, *, ts: str, id: str | None, usable: Bools) -> Series:
    """Return the events of a table around a match. Raises as :func:`match_over_series` does."""
    rows, values = _bound_rows(table, match, id), _numbers(table, value)
    calendar, times = moments(ts, column_of(table, ts))
    _same_events(match, rows, times, calendar=calendar)
    zone = getattr(column_of(table, ts).type, "tz", None) is not None
    return Series(calendar, zone, times, values, usable, rows)


def draw_series(series: Series, match: Match, value: str, ts: str, context: float, ax: object) -> Axes:
    """Draw a match over a series; ``value`` and ``ts`` name the axes."""
    low, high = surroundings(match, context)
    times, values = series.times, series.values
    shown = _shown(series.usable & ~np.isnan(values), times, low, high)
    axes = axes_of(ax)
    bounds = np.array([moment(match.start)[1], moment(match.end)[1]])
    whole = np.concatenate([times[shown], bounds])
    first, last = int(whole.min()), int(whole.max())
    axis = time_axis(first, last, calendar=series.calendar, zone=series.zone)
    drawn, notes = _thinned(shown, values[shown]), []
    if len(drawn) < len(shown):
        notes.append(f"{len(drawn):,} of {len(shown):,} events drawn")
    dots: dict[str, Any] = {"marker": ".", "markersize": 4} if len(drawn) <= FEW else {}
    axes.plot(axis.at(times[drawn]), values[drawn], color=GREY, linewidth=0.9, zorder=1, **dots)
    start, end = axis.at(bounds).tolist()
    axes.axvspan(start, end, color=COLOURS[4], alpha=0.15, linewidth=0, zorder=0)
    marked = _marked(series.rows)
    bound, kept = sum(map(len, series.rows.values())), sum(map(len, marked.values()))
    if kept < bound:
        notes.append(f"{kept:,} of {bound:,} bound events marked")
    entries = []
    for number, (variable, at) in enumerate(marked.items()):
        entries.append((_marks(axes, axis.at(times[at]), values[at], COLOURS[number % len(COLOURS)]), variable))
    axis.label(axes, ts, first, last)
    axes.set_ylabel(label_text(value), fontsize=9, **AS_WRITTEN)
    axes.tick_params(labelsize=8)
    legend(axes, entries)
    error = f", error {match.error}" if match.error else ""
    titled(axes, f"match of {key_text(match.key)}{error}" if match.key else f"match{error}", notes)
    return axes


def key_text(key: Mapping[str, Any]) -> str:
    """Return the key of a match as a text.

    >>> key_text({"symbol": "AAPL", "venue": 7})
    'symbol=AAPL, venue=7'
    """
    return ", ".join(f"{name}={value_text(value)}" for name, value in key.items())


def surroundings(match: Match, context: float) -> tuple[int, int]:
    """Return the times between which events are shown; those of a match that takes no time are its own.

    >>> surroundings(Match({}, 10, 20, 0, {"a": (0,)}, 20), 0.5)
    (5, 25)
    """
    first, last = moment(match.start)[1], moment(match.end)[1]
    free = round(min(context, 1e6) * (last - first))
    return max(first - free, -(2**63)), min(last + free, 2**63 - 1)


def is_numeric(held: pa.DataType) -> bool:
    """Return whether a column of this type can be drawn as a line.

    >>> is_numeric(pa.float32()), is_numeric(pa.bool_())
    (True, False)
    """
    return bool(pa.types.is_integer(held) or pa.types.is_floating(held) or pa.types.is_decimal(held))


def of_key(table: pa.Table, key: Mapping[str, Any]) -> Bools:
    """Return which rows have the values of a key. Raises :class:`DataError` if a column is missing or does not fit."""
    chosen = np.ones(table.num_rows, bool)
    for name, value in key.items():
        column = column_of(table, name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            wanted = pa.scalar(value, column.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise DataError(f"column `{name}` is {column.type}, and the key of the match is {value!r}") from None
        chosen &= pc.fill_null(pc.equal(column, wanted), False).to_numpy()
    return chosen


# The parts ---------------------------------------------------------------------------------------


def _check(match: object, context: object) -> None:
    if not isinstance(match, Match):
        hint = "take one of them, such as found[0]" if hasattr(match, "__len__") else None
        raise DataError(f"one match is drawn, and {type(match).__name__} is none", hint=hint)
    if match.op < 0:
        raise DataError("this match was taken back", hint="draw one whose op is 1")
    if isinstance(context, bool) or not isinstance(context, int | float) or not 0 <= context < float("inf"):
        raise DataError(f"context={context!r} is not a share of the length of a match, such as 0.5")


def _table(events: Any, ts: str) -> pa.Table:
    if not isinstance(events, str | os.PathLike):
        return to_table(events)
    from acep.events.files.reading import read_events

    return read_events(events, ts=ts)


def column_of(table: pa.Table, name: object) -> pa.ChunkedArray:
    """Return a column or a field of a struct. Raises :class:`DataError` if there is none of this name."""
    if not isinstance(name, str):
        raise DataError(f"the name of a column is a text, not {type(name).__name__}")
    found = column_at(table, name)
    if found is None:
        raise DataError(f"there is no column `{name}`", hint=suggest(name, [*fields_of(table.schema)]))
    return found


def _numbers(table: pa.Table, name: str) -> Floats:
    """Return the values of a column as floats, NaN for null and for what no axis can have."""
    column = column_of(table, name)
    if not is_numeric(column.type):
        numeric = [one for one, held in fields_of(table.schema).items() if is_numeric(held)]
        hint = f"such as {', '.join(numeric[:3])}" if numeric else None
        raise DataError(f"column `{name}` is {column.type}, and a column of numbers is drawn", hint=hint)
    values: Floats = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    values[np.abs(values) > GREATEST] = np.nan
    return values


@dataclass(frozen=True)
class _Rows:
    """How rows are found by the ids of events: by the column of ids, or by their number."""

    ids: pa.ChunkedArray | None
    size: int

    def at(self, ids: tuple[Any, ...]) -> Ints:
        if self.ids is None:
            known = all(isinstance(one, int) and 0 <= one < self.size for one in ids)
            missing = None if known else next(o for o in ids if not isinstance(o, int) or not 0 <= o < self.size)
            rows = np.array(ids if known else [], np.int64)
        else:
            try:
                found = pc.index_in(pa.array(ids, self.ids.type), value_set=self.ids)
            except (pa.ArrowException, TypeError, OverflowError):
                raise DataError(f"the ids of the events are {self.ids.type}, and the match binds {ids[0]!r}") from None
            missing = ids[found.to_pylist().index(None)] if found.null_count else None
            rows = found.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        if missing is not None:
            hint = "give the events that were matched, and the id= that was given to acep.match"
            raise DataError(f"the match binds the event {missing!r}, which is not among the events", hint=hint)
        return rows


def _bound_rows(table: pa.Table, match: Match, id: str | None) -> dict[str, Ints]:
    ids = None if id is None else column_of(table, id)
    if ids is not None and pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    rows = _Rows(ids, table.num_rows)
    return {variable: rows.at(bound) for variable, bound in match.bindings.items() if bound}


def _same_events(match: Match, rows: dict[str, Ints], times: Ints, *, calendar: bool) -> None:
    """Raise :class:`DataError` if the times of the first and the last bound event are not those of the match."""
    (same, start), (_, end) = moment(match.start), moment(match.end)
    at = times[np.concatenate([*rows.values(), np.empty(0, np.int64)])]
    if same is not calendar or not len(at) or (int(at.min()), int(at.max())) != (start, end):
        hint = "give the events that were matched, in the same order or with id=, and the same ts="
        raise DataError("the times of the bound events are not those of the match", hint=hint)


def _shown(usable: Bools, times: Ints, low: int, high: int) -> Ints:
    """Return the rows of the line in order of time; around a match that takes no time some of its neighbours."""
    rows: Ints = np.flatnonzero(usable)
    rows = rows[np.argsort(times[rows], kind="stable")]
    begin, end = (int(np.searchsorted(times[rows], *one)) for one in ((low, "left"), (high, "right")))
    if low == high:
        begin, end = max(0, begin - NEIGHBOURS), end + NEIGHBOURS
    return rows[begin:end]


def _thinned(rows: Ints, values: Floats) -> Ints:
    """Return at most ``MOST_POINTS`` of the rows: the least and the greatest value of each stretch of them."""
    if len(rows) <= MOST_POINTS:
        return rows
    edges = np.linspace(0, len(rows), MOST_POINTS // 2 + 1).astype(np.int64)
    kept = [
        begin + np.array([values[begin:end].argmin(), values[begin:end].argmax()])
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    places: Ints = np.unique(np.concatenate(kept))
    return rows[places]


def _marked(rows: dict[str, Ints]) -> dict[str, Ints]:
    """Return the bound events that are marked, evenly chosen where there are more than ``MOST_MARKS``."""
    numbers = np.repeat(np.arange(len(rows)), [len(at) for at in rows.values()])
    kept = np.arange(0, len(numbers), max(1, -(-len(numbers) // MOST_MARKS)))
    whole = np.concatenate([*rows.values(), np.empty(0, np.int64)])
    some = {variable: whole[kept[numbers[kept] == number]] for number, variable in enumerate(rows)}
    return {variable: at for variable, at in some.items() if len(at)}


def _marks(axes: Axes, at: Floats, values: Floats, colour: str) -> Any:
    """Mark events, those without a value by a dotted line from top to bottom, and return the artist for the legend."""
    without = np.isnan(values)
    marks: Any = axes.plot(
        at[~without], values[~without], linestyle="none", marker="o", markersize=6, color=colour, zorder=3
    )[0]
    if without.any():
        lines = axes.vlines(at[without], 0, 1, transform=axes.get_xaxis_transform(), colors=colour, linestyles=":")
        return lines if without.all() else marks
    return marks
