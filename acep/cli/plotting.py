"""Draw the matches of ``acep match --plot``: keep some while they are found, then read the events around a few."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acep.cli.inputs import files_text
from acep.errors import DataError, QueryError, suggest
from acep.events.fields import fields_of, named_column
from acep.matches.matches import Match, Matches
from acep.pattern.query_arguments import columns_read
from acep.pattern.tree import Query
from acep.plots.around_match import Series, is_numeric, of_key, series_of, surroundings
from acep.plots.canvas import label_text
from acep.plots.images import check_matplotlib, image_form, write_image
from acep.plots.over_series import key_text
from acep.plots.page import CONTEXT, MOST_SERIES, Drawn, as_file
from acep.plots.time_axis import moments
from acep.plots.time_line import MOST_BARS

if TYPE_CHECKING:
    from acep.events.files.stream import EventStream
    from acep.matches.report import Report

__all__ = ["Chosen", "MatchPlot", "check", "check_folder", "number_rows"]

FORMS = ("html", "svg", "png")
MOST_ROWS = 1_000_000
"""The most events around a match that are held to draw it."""


def check(args: argparse.Namespace) -> None:
    """Raise :class:`AcepError` if the options of a plot do not go together, or matplotlib is missing."""
    if args.kind != "matches":
        raise QueryError("--plot draws matches", hint=f"leave out --{args.kind}", code="option_invalid")
    image_form(args.plot, FORMS, "a plot")
    check_matplotlib()
    check_folder(args.plot)


def check_folder(path: str) -> None:
    """Raise :class:`DataError` if the folder of a file that is to be written is not there."""
    try:
        has_folder = Path(path).parent.is_dir()
    except ValueError:  # a name with a null character
        has_folder = False
    if not has_folder:
        raise DataError(f"`{path}` cannot be written: there is no such folder", code="file_write")


@dataclass
class Chosen:
    """Matches that are chosen evenly from a stream of them: each ``step``-th, between ``limit`` and twice as many, or
    all if there are fewer. ``n_seen`` counts all.

    >>> few = Chosen(2)
    >>> for part in (range(3), range(3, 9)):
    ...     few.add(part)
    >>> few.items, few.n_seen
    ([0, 4, 8], 9)
    """

    limit: int
    n_seen: int = 0
    step: int = 1
    items: list[Any] = field(default_factory=list)

    def add(self, part: Sequence[Any]) -> None:
        """Take in the next part of the stream."""
        while len(self.items) + len(range(-self.n_seen % self.step, len(part), self.step)) > 2 * self.limit:
            self.items, self.step = self.items[::2], 2 * self.step
        self.items += part[-self.n_seen % self.step :: self.step]
        self.n_seen += len(part)


class MatchPlot:
    """The plot of a run of ``acep match``: :meth:`settle` it with the columns, :meth:`add` what is found, and
    :meth:`write` it."""

    def __init__(self, args: argparse.Namespace, query: Query) -> None:
        self.path, self.asked_column, self.query = args.plot, args.plot_value, query
        self.ts, self.files, self.name = args.ts, args.events, args.query
        self.value: str | None = None
        self._bars, self._few = Chosen(MOST_BARS // 2), Chosen(2 * MOST_SERIES)

    def settle(self, schema: pa.Schema, names: dict[str, Any]) -> None:
        """Choose the column that matches are drawn over. Raises :class:`DataError` if it is missing or no number."""
        columns = fields_of(schema)
        if self.asked_column is not None:
            if self.asked_column not in columns:
                raise DataError(
                    f"--plot-value: there is no column `{self.asked_column}`",
                    hint=suggest(self.asked_column, columns),
                    code="option_invalid",
                )
            if not is_numeric(columns[self.asked_column]):
                raise DataError(
                    f"--plot-value: column `{self.asked_column}` is {columns[self.asked_column]}, and no number",
                    code="option_invalid",
                )
            self.value = self.asked_column
            return
        no_values = {*self.query.ties, *(names[role] for role in ("ts", "type", "seq", "id"))}
        numeric = (name for name in columns_read(self.query) if name not in no_values and name in columns)
        self.value = next((name for name in numeric if is_numeric(columns[name])), None)

    def add(self, part: Matches) -> None:
        """Take in the next matches."""
        self._bars.add(part)
        self._few.add(part)

    def write(self, events: EventStream, names: dict[str, Any], report: Report) -> None:
        """Read the events around a few matches, and write the file. Raises :class:`DataError` if that fails."""
        facts = [("query", self.query.text), ("events", files_text(self.files)), ("result", str(report))]
        series: list[tuple[Match, Series]] = []
        if self.query.sources:
            facts.append(("series", "none: the events of the matches are matches of the queries in FROM"))
        elif self.value is None:
            facts.append(("series", "none: the query's predicates name no column of numbers (--plot-value names one)"))
        else:
            series, crowded = _read_around(events, self._choose_matches(), self.value, names)
            facts += [
                ("series", f"more than {MOST_ROWS:,} events around the match of {key_text(match.key)}")
                for match in crowded
            ]
        qualification = "" if report.exact else f" (not exact: {report.missing()})"
        heading = f"acep match {label_text(self.name, 50)} {label_text(files_text(self.files), 50)}{qualification}"
        drawing = Drawn(heading, facts, self._bars.items, self._bars.n_seen, self.ts, self.value or "", series)
        write_image(self.path, as_file(drawing, image_form(self.path, FORMS, "a plot")))

    def _choose_matches(self) -> list[Match]:
        """Return a few matches from the beginning to the end, if there are such, ones that take time."""
        matches = [match for match in self._few.items if match.start != match.end] or self._few.items
        positions = np.linspace(0, len(matches) - 1, min(MOST_SERIES, len(matches))).round().astype(int)
        return [matches[position] for position in positions]


def _read_around(
    events: EventStream, matches: Sequence[Match], value: str, names: dict[str, Any]
) -> tuple[list[tuple[Match, Series]], list[Match]]:
    """Read the events once more, and return the matches with those around them, and the matches that have too many."""
    spans = [surroundings(match, CONTEXT) for match in matches]
    parts_by_match: list[list[pa.Table]] = [[] for _ in matches]
    number = None if names["id"] is not None else "_".join(["number", *events.schema.names])  # a name that none has
    roles = {"ts": names["ts"], "value": value, "id": names["id"] or number}
    for table, times in number_rows(events, names["ts"], number):
        if not events.small and len(times) and times[0] > max((high for _, high in spans), default=0):
            break
        for parts, match, (low, high) in zip(parts_by_match, matches, spans, strict=True):
            is_near = (times >= low) & (times <= high)
            if not is_near.any() or sum(part.num_rows for part in parts) > MOST_ROWS:
                continue
            nearby = table.filter(pa.array(is_near))
            nearby = nearby.filter(pa.array(of_key(nearby, match.key)))
            parts.append(pa.table({name: named_column(nearby, column) for name, column in roles.items()}))
    series: list[tuple[Match, Series]] = []
    crowded: list[Match] = []
    for parts, match in zip(parts_by_match, matches, strict=True):
        if sum(part.num_rows for part in parts) > MOST_ROWS:
            crowded.append(match)
            continue
        nearby_events = pa.concat_tables(parts)
        every = np.ones(nearby_events.num_rows, bool)
        series.append((match, series_of(nearby_events, match, "value", ts="ts", id="id", usable=every)))
    return series, crowded


def number_rows(events: EventStream, ts: str, number: str | None) -> Iterator[tuple[pa.Table, Any]]:
    """Yield the events with their times, and with a column that numbers their rows if it has a name."""
    rows = 0
    for table in events.batches():
        numbers = pa.array(np.arange(rows, rows + table.num_rows))
        rows += table.num_rows
        yield (
            table if number is None else table.append_column(number, numbers),
            moments(ts, named_column(table, ts))[1],
        )
