"""Find the rows of matches and the rows in between, those of the same key, and turn them into plain columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.events.columns import ticks_of
from acep.events.fields import named_column
from acep.events.frames import to_table
from acep.events.times import value_of, value_text
from acep.events.user_rows import column_names, narrow, take_rows
from acep.matches.bound_events import places_of_bound_events
from acep.matches.matches import Matches
from acep.pages.exact_values import PageAxis, exact_moments
from acep.pages.shown_columns import ShownColumn, column_of_values
from acep.plots.around_match import is_numeric

__all__ = ["MOST_COLUMNS", "ROWS_OF_MATCH", "EventRows", "event_rows"]

ROWS_OF_MATCH = 200
"""The most rows of one match that are shown, with those in between."""
FEWEST_ROWS = 4
MOST_COLUMNS = 16
"""The most columns of an event that are shown."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EventRows:
    """The rows of n matches: ``table`` has each row once, ``times`` are its places on the axis of time.

    The rows of match i are ``offsets[i]`` to ``offsets[i + 1]`` of ``rows`` (places in the table, in stream order) and
    ``variables`` (places in ``names``, -1: a row in between), ``steps`` (the number of a bound row among those of the
    match, -1: a row in between) and ``gaps`` (1: rows before it are left out, else 0). ``counts`` are the numbers of
    all rows of each match, and ``n_bound`` of those that are bound; ``n_columns`` is the number of columns that the
    events have.
    """

    table: tuple[ShownColumn, ...] = ()
    times: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    offsets: tuple[int, ...] = (0,)
    rows: tuple[int, ...] = ()
    variables: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    gaps: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    n_bound: tuple[int, ...] = ()
    n_columns: int = 0


def event_rows(matches: Matches, rows: Any, axis: PageAxis, limit: int, first_columns: Sequence[str] = ()) -> EventRows:
    """Return the rows of matches and those in between, at most ``limit`` in all, of each match as many as there is room
    for. ``rows`` are the events, of which ``first_columns`` are shown first.

    Raises :class:`DataError` if the rows are not the events that were matched.

    >>> import acep
    >>> from acep.pages.exact_values import page_axis
    >>> events = {"ts": [1, 2, 3, 4], "type": list("axbb"), "user": [7, 7, 8, 7]}
    >>> matches = acep.match(events, acep.regex("ab", within=5, by="user"))
    >>> found = event_rows(matches, acep.events.tables.to_table(events), page_axis(1, 4, calendar=False), 100)
    >>> found.table[0].texts, found.rows, found.variables
    (('0', '1', '3'), (0, 1, 2), (0, -1, 1))
    """
    if not len(matches):
        return EventRows()
    schema = matches.schema
    bound, places = places_of_bound_events(matches, matches.found, rows)
    order = _Order.of_rows(rows, matches)
    ranks = order.rank[places]
    begins = np.searchsorted(bound.owners, np.arange(len(matches)))
    first, last = np.minimum.reduceat(ranks, begins), np.maximum.reduceat(ranks, begins)
    counts, stops = last - first + 1, np.append(begins, len(places))[1:]
    rows_of_match = ROWS_OF_MATCH
    while rows_of_match > FEWEST_ROWS and int(np.minimum(counts, rows_of_match).sum()) > limit:
        rows_of_match //= 2
    parts = [
        _rows_of_match(np.sort(ranks[begin:stop]), int(low), int(high), rows_of_match)
        for begin, stop, low, high in zip(begins.tolist(), stops.tolist(), first.tolist(), last.tolist(), strict=True)
    ]
    offsets = np.cumsum([0, *map(len, parts)])
    shown_ranks = np.concatenate(parts)
    distinct, numbers = np.unique(shown_ranks, return_inverse=True)
    is_after_gap = np.diff(shown_ranks, prepend=shown_ranks[:1]) > 1
    is_after_gap[offsets[:-1]] = False
    variables, steps = np.full(len(shown_ranks), -1), np.full(len(shown_ranks), -1)
    for number, (begin, stop) in enumerate(zip(begins.tolist(), stops.tolist(), strict=True)):
        part = slice(int(offsets[number]), int(offsets[number + 1]))
        by_rank = np.argsort(ranks[begin:stop], kind="stable")
        places_in = np.searchsorted(ranks[begin:stop][by_rank], shown_ranks[part])
        places_in = np.minimum(places_in, stop - begin - 1)
        is_bound = ranks[begin:stop][by_rank][places_in] == shown_ranks[part]
        variables[part] = np.where(is_bound, bound.codes[begin:stop][by_rank][places_in], -1)
        steps[part] = np.where(is_bound, places_in, -1)
    table = to_table(take_rows(rows, order.place[distinct], {}))
    _, times = exact_moments(schema.ts, named_column(table, schema.ts))
    names = [schema.id, schema.ts, schema.type, *matches.keys, *first_columns]
    return EventRows(
        tuple(_columns(table, [name for name in names if name], order.place[distinct], schema.id)),
        axis.positions(times),
        bound.variables,
        tuple(offsets.tolist()),
        tuple(numbers.tolist()),
        tuple(variables.tolist()),
        tuple(steps.tolist()),
        tuple(is_after_gap.astype(int).tolist()),
        tuple(counts.tolist()),
        tuple((stops - begins).tolist()),
        len(column_names(rows)),
    )


@dataclass(frozen=True)
class _Order:
    """The order of rows by key, and in a key as in the stream: the ``rank`` of each row, and the ``place`` of the row
    of each rank. Rows that lack a value of it count as of one key."""

    rank: Ints
    place: Ints

    @classmethod
    def of_rows(cls, rows: Any, matches: Matches) -> _Order:
        schema, n_rows = matches.schema, len(rows)
        codes = np.zeros(n_rows, np.int64)
        for name in matches.keys:
            column = narrow(rows, name)
            column = pa.chunked_array([column.combine_chunks()]) if column.num_chunks != 1 else column
            chunk = column.chunk(0)
            chunk = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
            values = chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            _, codes = np.unique(codes * (len(chunk.dictionary) + 1) + values + 1, return_inverse=True)
        sort_keys: list[Any] = [np.arange(n_rows)]
        if schema.seq is not None:
            sort_keys.append(ticks_of(schema.seq, narrow(rows, schema.seq), 1)[0])
        sort_keys += [ticks_of(schema.ts, narrow(rows, schema.ts), schema.tick_ns or 1)[0], codes]
        place = np.lexsort(sort_keys).astype(np.int64)
        rank = np.empty(n_rows, np.int64)
        rank[place] = np.arange(n_rows)
        return cls(rank, place)


def _rows_of_match(bound: Ints, first: int, last: int, limit: int) -> Ints:
    """Return the ranks of the rows of a match and of those in between: all of them, or the first and the last bound
    ones, and as many of the others as there is room for, evenly chosen."""
    if last - first + 1 <= limit:
        return np.arange(first, last + 1)
    if len(bound) >= limit:
        return np.concatenate([bound[: limit // 2], bound[len(bound) - (limit - limit // 2) :]])
    room = limit - len(bound)
    between = np.setdiff1d(np.linspace(first, last, 2 * room + 2).astype(np.int64), bound)
    picked = between[np.linspace(0, len(between) - 1, min(room, len(between))).astype(np.int64)]
    return np.union1d(bound, picked)


def _columns(table: pa.Table, first: Sequence[str], places: Ints, id: str | None) -> list[ShownColumn]:
    """Return the columns of rows: the number of the row where ids are numbers of rows, those named first, others."""
    columns = [] if id is not None else [column_of_values("row", places.tolist())]
    names = dict.fromkeys([*(name for name in first if name in table.column_names), *table.column_names])
    for name in [*names][: MOST_COLUMNS - len(columns)]:
        column = table.column(name)
        values = [value_of(value) for value in column]
        texts = ["null" if value is None else _text(value, column.type) for value in values]
        numbers: list[Any] = column.cast(pa.float64(), safe=False).to_pylist() if is_numeric(column.type) else [*texts]
        columns.append(column_of_values(name, numbers, texts))
    return [replace(column, ranks=None) for column in columns]  # these rows are not sorted


def _text(value: Any, dtype: pa.DataType) -> str:
    mark = "Z" if isinstance(value, np.datetime64) and getattr(dtype, "tz", None) is not None else ""
    return f"{value_text(value)}{mark}"
