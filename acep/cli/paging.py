"""Make the page of ``acep match --page``: keep some matches while they are found, then read the events around them."""

from __future__ import annotations

import argparse
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep.cli.plotting import Chosen, check_folder, number_rows
from acep.errors import QueryError
from acep.events.fields import named_column
from acep.explain.near_misses import MOST_EVENTS
from acep.matches.flat import layout_of
from acep.matches.matches import Match, Matches
from acep.pages.page_data import MOST_MATCHES, PageSource
from acep.pages.result_page import check_page, make_page, table_misses
from acep.pattern.tree import Query
from acep.plots.time_axis import moment, moments

if TYPE_CHECKING:
    from acep.events.files.stream import EventStream
    from acep.matches.report import Report

__all__ = ["MatchPage", "check_page_options"]

MOST_HELD = 1_000_000
"""The most events that are held; where there would be more around the matches, fewer matches are shown."""
MISSES = 10


def check_page_options(args: argparse.Namespace) -> None:
    """Raise :class:`AcepError` if the options of a page do not go together, or bokeh is missing."""
    if args.kind != "matches":
        raise QueryError("--page shows matches", hint=f"leave out --{args.kind}", code="option_invalid")
    check_page(args.page)
    check_folder(args.page)


class MatchPage:
    """The page of a run of ``acep match``: :meth:`settle` it with the columns, :meth:`add` what is found, and
    :meth:`write` it."""

    def __init__(self, args: argparse.Namespace, query: Query) -> None:
        self.path, self.query = args.page, query
        self._few = Chosen(MOST_MATCHES // 2)
        self._like: Matches | None = None  # which says how matches are to be read

    def settle(self, schema: pa.Schema, names: dict[str, Any]) -> None:
        """Take in the columns of the events: a page needs none of its own."""

    def add(self, part: Matches) -> None:
        """Take in the next matches; the first part is there also if it is empty."""
        self._like = part
        self._few.add(part)

    def write(self, events: EventStream, names: dict[str, Any], report: Report) -> None:
        """Read the events around the matches, and write the file. Raises :class:`DataError` if that fails."""
        assert self._like is not None
        matches = self._like.with_found([match._record for match in self._few.items])
        if layout_of(matches).composed:
            reason = "the events of the matches are matches of the queries in FROM"
            source = PageSource(matches, report, self._few.n_seen, self._few.step, self.query, None, reason)
        else:
            near, no_misses = table_misses(_first_events(events), self.query, MISSES, matches.schema)
            near = None if near is None else replace(near, events=max(events.rows, near.events))
            around = _read_around(events, matches, self._few.items, names)
            step = self._few.step * around.step
            source = PageSource(
                around.matches, report, self._few.n_seen, step, self.query, around.rows, "", near, no_misses
            )
        make_page(source).save(self.path)


@dataclass(frozen=True)
class _RowsAround:
    """Matches, each ``step``-th of those that were asked for, and the rows between their starts and ends."""

    matches: Matches
    rows: pa.Table
    step: int


def _read_around(events: EventStream, matches: Matches, chosen: list[Match], names: dict[str, Any]) -> _RowsAround:
    """Read the events once more, and return the matches with the rows between the start and the end of one of them."""
    number = None
    if names["id"] is None:
        taken_names = events.schema.names
        number = "row" if "row" not in taken_names else "_".join(["row", *taken_names])  # a name that none has
        matches = copy(matches)
        matches.form = replace(matches.form, schema=replace(matches.schema, id=number))
    step, spans = 1, _spans(chosen)
    parts: list[pa.Table] = []
    for table, times in number_rows(events, names["ts"], number):
        near = table.filter(pa.array(_are_inside(times, spans)))
        parts.append(near.filter(_have_keys(near, chosen)))
        while sum(part.num_rows for part in parts) > MOST_HELD and len(chosen[::step]) > 1:
            step *= 2
            spans = _spans(chosen[::step])
            parts = [
                part.filter(pa.array(_are_inside(moments(names["ts"], named_column(part, names["ts"]))[1], spans)))
                for part in parts
            ]
        if not events.small and len(times) and len(spans) and times[0] > spans[-1, 1]:
            break
    rows = pa.concat_tables(parts) if parts else events.schema.empty_table()
    return _RowsAround(matches.with_found(matches.found[::step]), rows, step)


def _times(table: pa.Table, ts: str) -> npt.NDArray[np.int64]:
    return moments(ts, named_column(table, ts))[1]


def _spans(matches: list[Match]) -> npt.NDArray[np.int64]:
    """Return the stretches of time that matches take, those that overlap as one: (n, 2), in order."""
    spans: list[list[int]] = []
    for start, end in sorted((moment(match.start)[1], moment(match.end)[1]) for match in matches):
        if spans and start <= spans[-1][1]:
            spans[-1][1] = max(end, spans[-1][1])
        else:
            spans.append([start, end])
    return np.array(spans, np.int64).reshape(-1, 2)


def _are_inside(times: npt.NDArray[np.int64], spans: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which times lie in one of the stretches.

    >>> _are_inside(np.array([1, 2, 5, 9]), np.array([[2, 4], [9, 9]]))
    array([False,  True, False,  True])
    """
    if not len(spans):
        return np.zeros(len(times), bool)
    places = np.searchsorted(spans[:, 0], times, "right") - 1
    is_inside: npt.NDArray[np.bool_] = (places >= 0) & (times <= spans[places, 1])
    return is_inside


def _have_keys(table: pa.Table, matches: list[Match]) -> pa.Array:
    """Return which rows have the value of one of the matches in each partition attribute; where values cannot be
    compared so, all may."""
    has_key = np.ones(table.num_rows, bool)
    for name in matches[0].key if matches else ():
        column = named_column(table, name)
        try:
            values = pa.array([*dict.fromkeys(match.key[name] for match in matches)], column.type)
            has_key &= pc.is_in(column, value_set=values).to_numpy()
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
    return pa.array(has_key)


def _first_events(events: EventStream) -> pa.Table:
    """Return the first events, in which near misses are looked for."""
    parts: list[pa.Table] = []
    for table in events.batches():
        parts.append(table)
        if sum(part.num_rows for part in parts) >= MOST_EVENTS:
            break
    return pa.concat_tables(parts).slice(0, MOST_EVENTS) if parts else events.schema.empty_table()
