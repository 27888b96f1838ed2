"""Gather all that a page shows as plain data, which JSON can hold: matches, rows, walks, near misses, and notes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from acep.display import clip_text, clipped_lines
from acep.errors import AcepError, printable
from acep.explain.near_misses import NearMisses
from acep.matches.bound_events import bound_events
from acep.matches.matches import Matches
from acep.matches.report import Report
from acep.pages.event_rows import MOST_COLUMNS, EventRows, event_rows
from acep.pages.shown_columns import MatchColumns, match_columns
from acep.pages.walks import find_walk, steps_of_query
from acep.pattern.query_arguments import columns_read
from acep.pattern.tree import Query

__all__ = ["MOST_BYTES", "MOST_MATCHES", "PageData", "PageSource", "as_json", "page_data"]

MOST_MATCHES = 1_000
"""The most matches of a page."""
MOST_ROWS = 20_000
"""The most rows of all matches together."""
MOST_BYTES = 4_000_000
"""The most bytes of the data of a page; where these would be more, it has fewer matches and rows."""
LONGEST_MISS = 4_000  # characters


@dataclass(frozen=True)
class PageSource:
    """The content of a page, of which some is shown: ``matches``, chosen by ``step`` from ``total`` in output order;
    their ``query``; the events as ``rows`` (``None``: there are none, and ``no_rows`` says why); ``misses`` (``None``:
    there are none, and ``no_misses`` says why); the ``report`` of the run."""

    matches: Matches
    report: Report
    total: int
    step: int
    query: Query
    rows: Any = None
    no_rows: str = ""
    misses: NearMisses | None = None
    no_misses: str = "none were looked for"


@dataclass(frozen=True)
class PageData:
    """All that a page shows. ``walks`` are the states after each bound event of a match (empty: none are known),
    ``misses`` pairs of a heading and a text, ``report`` and ``notes`` lines. ``keys`` and ``ts`` name the partition
    attributes and the time, ``value`` the series that is shown first. ``start`` is the state in which a walk starts."""

    title: str
    query: str
    matches: MatchColumns
    rows: EventRows
    walks: tuple[tuple[int, ...], ...]
    misses: tuple[tuple[str, str], ...]
    misses_note: str
    report: tuple[str, ...]
    notes: tuple[str, ...]
    keys: tuple[str, ...]
    ts: str
    value: str
    start: int


def page_data(source: PageSource) -> PageData:
    """Return the data of a page, with as many matches and rows as its size allows.

    >>> import acep
    >>> events = {"ts": [1, 2, 3], "type": ["A", "x", "B"]}
    >>> query = acep.parse("PATTERN SEQ(A a, B b) WITHIN 5")
    >>> matches = acep.match(events, query)
    >>> data = page_data(PageSource(matches, matches.report, 1, 1, query, matches.rows.frame()))
    >>> data.title, data.rows.variables, data.walks
    ('1 match', (0, -1, 1), ((1, 2),))
    """
    n_matches, n_rows = MOST_MATCHES, MOST_ROWS
    while True:
        data = _bounded_data(source, n_matches, n_rows)
        if n_matches == 1 or len(as_json(data).encode()) <= MOST_BYTES:
            return data
        n_matches, n_rows = n_matches // 2, max(n_rows // 2, 1)


def as_json(data: PageData) -> str:
    """Return the data as JSON that may stand in a page, within a script: no character in it begins or ends a tag."""
    values = asdict(data)
    values["matches"] |= {"axis": data.matches.axis.note}
    text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _bounded_data(source: PageSource, n_matches: int, n_rows: int) -> PageData:
    more = max(1, -(-len(source.matches) // n_matches))
    matches, step, total = source.matches[::more], source.step * more, source.total
    columns = match_columns(matches, range(0, step * len(matches), step), total)
    report, notes = source.report, list[str]()
    if step > 1:
        which = f"one of every {step:,} in output order, beginning with match 0"
        notes.append(f"shown: {len(matches):,} of {total:,} matches, {which}")
    rows = EventRows()
    if source.rows is not None:
        read = columns_read(source.query) or ()
        rows = event_rows(matches, source.rows, columns.axis, n_rows, [*read])
        notes += _notes_on_rows(rows)
    elif source.no_rows:
        notes.append(f"no rows: {source.no_rows}")
    walks, start = _walks(source.query, matches)
    title = _count_of_matches(total, report) + ("" if report.exact else f"; not exact: {report.missing()}")
    return PageData(
        printable(title),
        clipped_lines(source.query.text, 20_000),
        columns,
        rows,
        walks,
        _texts_of_misses(source.misses),
        _note_on_misses(source),
        tuple(clip_text(line, 400) for line in str(report).splitlines()[:40]),
        tuple(notes),
        tuple(clip_text(name) for name in matches.keys),
        matches.schema.ts,
        _first_value(rows, source),
        start,
    )


def _count_of_matches(total: int, report: Report) -> str:
    """Return the number of matches, and of how many in the run, where these are not all."""
    number, in_run = "no" if not total else f"{total:,}", report.matches
    if in_run is not None and total < in_run:
        return f"{number} of {'at least ' * report.limited}{in_run:,} matches"
    return f"{number} match{'' if total == 1 else 'es'}"


def _first_value(rows: EventRows, source: PageSource) -> str:
    """Return the first column of numbers that the query reads, other than times and keys; "" if there is none."""
    schema = source.matches.schema
    plain = {schema.ts, schema.id, schema.seq, *source.matches.keys}
    numeric = {column.name for column in rows.table if column.numbers is not None}
    return next((name for name in columns_read(source.query) or () if name in numeric - plain), "")


def _notes_on_rows(rows: EventRows) -> list[str]:
    notes = []
    shown = [stop - begin for begin, stop in zip(rows.offsets, rows.offsets[1:], strict=False)]
    if n_cut := sum(count > number for count, number in zip(rows.counts, shown, strict=True)):
        have = "1 match has" if n_cut == 1 else f"{n_cut:,} matches have"
        notes.append(f"at most {max(shown):,} rows of each match are shown, and {have} more")
    n_columns = sum(column.name != "row" for column in rows.table)
    if n_columns < rows.n_columns and rows.table and len(rows.table) == MOST_COLUMNS:
        notes.append(f"{n_columns:,} of {rows.n_columns:,} columns of the events are shown")
    return notes


def _walks(query: Query, matches: Matches) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Return the states after each bound event of the matches, and the state in which they start."""
    try:
        steps = steps_of_query(query)
    except AcepError:  # too large an automaton
        return ((),) * len(matches), 0
    bound = bound_events(matches.found)
    names: list[list[str]] = [[] for _ in range(len(matches))]
    for owner, code in zip(bound.owners.tolist(), bound.codes.tolist(), strict=True):
        names[owner].append(bound.variables[code])
    walk_of: dict[tuple[str, ...], tuple[int, ...]] = {}
    for variables in map(tuple, names):
        if variables not in walk_of:
            walk_of[variables] = find_walk(steps, variables)
    return tuple(walk_of[tuple(variables)] for variables in names), steps.start


def _texts_of_misses(misses: NearMisses | None) -> tuple[tuple[str, str], ...]:
    if misses is None:
        return ()
    texts = [str(report).splitlines() for report in misses.reports]
    return tuple((_heading_of_miss(lines), clipped_lines("\n".join(lines), LONGEST_MISS)) for lines in texts)


def _heading_of_miss(lines: Sequence[str]) -> str:
    """Return the key of a near miss, and the first condition that failed or how it ended."""
    key = lines[0].partition(": ")[0]
    reasons = [line.strip() for line in lines[1:] if line.startswith("  event ") and " is " in line and ": " in line]
    ended = [line for line in lines if line.startswith("then ")]
    reason = next(iter([reason for reason in reasons if "=" in reason] or ended or reasons or lines[1:]), "")
    return clip_text(f"{key}: {reason}", 200)


def _note_on_misses(source: PageSource) -> str:
    misses = source.misses
    if misses is None:
        return source.no_misses
    parts = [] if misses.reports else ["there are none"]
    if misses.keys > len(misses.reports) > 0:
        parts.append(f"of the {len(misses.reports):,} of {misses.keys:,} keys that came nearest")
    if misses.looked_at < misses.events:
        parts.append(f"only the first {misses.looked_at:,} of {misses.events:,} events were looked at")
    return "; ".join(parts)
