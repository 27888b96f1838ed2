"""List the bound events of matches, as a table with one row each or as the rows of the user's own events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError, QueryError
from acep.events.batch import column_of_values
from acep.events.columns import column_of, ticks_of
from acep.events.hashes import hashes_of_columns
from acep.events.tables import attribute_tick
from acep.events.user_rows import changed_error, column_names, narrow, places_of, rows_of_frame, take_rows
from acep.matches.flat import flat_table, layout_of
from acep.matches.found_columns import FoundColumns
from acep.matches.match_ids import places_in_runs
from acep.matches.records import Found

if TYPE_CHECKING:
    from acep.matches.matches import Match, Matches

__all__ = ["BoundEvents", "explode_matches", "own_events", "places_of_bound_events", "rows_of_events"]

MATCH, VARIABLE, POSITION, EVENT = "match", "variable", "position", "event"


@dataclass(frozen=True, eq=False)
class BoundEvents:
    """The m events that n matches bind, match by match in stream order: ``owners`` are the numbers of their matches,
    ``codes`` those of their variables (int64, (m,)), ``ids`` their ids."""

    owners: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    variables: tuple[str, ...]
    ids: Any

    def names(self) -> pa.Array:
        """Return the variable of each event."""
        return pa.array(self.variables, pa.string()).take(pa.array(self.codes))

    def positions(self) -> pa.Array:
        """Return the position of each event among those of its match and variable, from 0."""
        return pa.array(places_in_runs(self.owners * len(self.variables) + self.codes).astype(np.int64))


def bound_events(records: Sequence[Found]) -> BoundEvents:
    """Return the bound events of matches.

    >>> record = Found((), 1, 9, 0, (("a", (0, 3)), ("b", (2,))), 9, trail=((0, "a"), (2, "b"), (3, "a")))
    >>> bound = bound_events([record, record])
    >>> bound.owners, bound.names().to_pylist()[:3], bound.positions().to_pylist()[:3], bound.ids[:3]
    (array([0, 0, 0, 1, 1, 1]), ['a', 'b', 'a'], [0, 0, 1], [0, 2, 3])
    """
    if isinstance(records, FoundColumns):
        owners = np.repeat(np.arange(len(records)), np.diff(records.offsets))
        return BoundEvents(owners, records.vars.astype(np.int64), records.variables, records.ids)
    trails = [record.trail or [(i, var) for var, ids in record.bindings for i in ids] for record in records]
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(var, len(numbers)) for trail in trails for _, var in trail]
    owners = np.repeat(np.arange(len(trails)), [len(trail) for trail in trails])
    return BoundEvents(owners, np.array(codes, np.int64), tuple(numbers), [i for trail in trails for i, _ in trail])


def explode_matches(matches: Matches) -> pa.Table:
    """Return a table with one row per bound event, in stream order within a match: the number of the match, the
    variable, the position in the variable, the id of the event, and the plain columns of the match."""
    from acep.matches.arrow import id_type, matches_table

    layout = layout_of(matches)
    bound = bound_events(matches.found)
    head_columns = {
        MATCH: pa.array(bound.owners, pa.int64()),
        VARIABLE: bound.names(),
        POSITION: bound.positions(),
        EVENT: pa.array(bound.ids if len(bound.ids) else [], id_type(matches)),
    }
    match_rows = matches_table(matches, fractional=layout.fractional).drop_columns(["bindings"])
    table = flat_table(match_rows, layout, [*head_columns]).take(head_columns[MATCH])
    return pa.Table.from_arrays([*head_columns.values(), *table.columns], names=[*head_columns, *table.column_names])


def own_events(matches: Matches, match: Match | None, frame: Any, variable: str, number: str) -> Any:
    """Return the rows of the user's events that are bound, see :meth:`acep.matches.matches.Matches.events`."""
    rows = rows_of_events(matches, frame)
    records: Sequence[Found] = matches.found
    if match is not None:
        record = getattr(match, "_record", None)
        if not isinstance(record, Found):
            raise QueryError(
                f"events() takes one of these matches, not {type(match).__name__}",
                hint="events(found[0])",
                code="option_invalid",
            )
        _check_own(record, matches, among=frame is None)
        records = [record]
    added = (variable,) if match is not None else (number, variable)
    event_columns = {name.lower() for name in column_names(rows)}
    for name, word in ((variable, "variable"), (number, "number")):
        if not isinstance(name, str):
            raise QueryError(f"{word}= is the name of a column, not {type(name).__name__}", code="option_invalid")
        if name in added and (name.lower() in event_columns or added.count(name) > 1):
            raise DataError(
                f"the events have a column `{name}` already", hint=f'{word}="another name"', code="data_column"
            )
    if frame is not None and matches.schema.id is None and not matches.ops:
        _check_number(rows, matches)
    bound, places = places_of_bound_events(matches, records, rows)
    extra_columns = {number: pa.array(bound.owners, pa.int64())} if match is None else {}
    return take_rows(rows, places, extra_columns | {variable: bound.names()})


def rows_of_events(matches: Matches, frame: Any = None) -> Any:
    """Return the rows of the user's events: ``frame``, or those that were kept.

    Raises :class:`QueryError` if there are none, and for a query with FROM."""
    if layout_of(matches).composed:
        raise QueryError(
            "a query with FROM binds matches of its inner queries, which are no rows", hint="match an inner query alone"
        )
    if frame is None and matches.rows is None:
        raise QueryError(
            "the events of these matches were not kept: they came in batches, or the matches were copied or pickled",
            hint="found.events(match, frame), with the events in frame; of a Matcher, all batches in one",
        )
    return matches.rows.frame() if frame is None and matches.rows is not None else rows_of_frame(frame)


def places_of_bound_events(
    matches: Matches, records: Sequence[Found], rows: Any
) -> tuple[BoundEvents, npt.NDArray[np.int64]]:
    """Return the bound events of some of the matches, and their positions among ``rows``.

    Raises :class:`DataError` if the rows are not those that were matched."""
    bound = bound_events(records)
    first = matches.rows is not None and matches.rows.first
    places = places_of(rows, bound.ids, matches.schema.id, first=first)
    _check_times(rows, places, bound, records, matches)
    _check_keys(rows, places, bound, records, matches)
    return bound, places


def _check_own(record: Found, matches: Matches, *, among: bool) -> None:
    """Raise :class:`QueryError` for a match of another result: one that is not ``among`` the matches, or of another
    query."""
    records = matches.found
    is_among_them = len(record.key) == len(matches.keys) and len(record.values) == len(matches.returns)
    if is_among_them and among and isinstance(records, FoundColumns):
        candidates = np.flatnonzero((records.start == record.start) & (records.end == record.end))
        is_among_them = any(records[int(place)] == record for place in candidates)
    elif is_among_them and among:
        is_among_them = record in records
    if not is_among_them:
        raise QueryError(
            "the match is none of these: it is of another result",
            hint="take it from the same result: found.events(found[0])",
            code="option_invalid",
        )


def _check_number(rows: Any, matches: Matches) -> None:
    """Raise :class:`DataError` if rows that are known by their position are not as many as the events were."""
    kept_rows = None if matches.rows is None else matches.rows.rows
    n_events = matches.report.events if kept_rows is None else len(kept_rows)
    if len(rows) < n_events or (kept_rows is not None and len(rows) > n_events):  # a Matcher may have got more since
        raise changed_error(f"there are {len(rows):,} rows, and {n_events:,} events were matched")


def _check_keys(
    rows: Any, places: npt.NDArray[np.int64], bound: BoundEvents, records: Sequence[Found], matches: Matches
) -> None:
    """Raise :class:`DataError` if the rows of a match do not have the values of its partition attributes."""
    if not len(places) or not matches.keys:
        return
    schema, tick = matches.schema, attribute_tick(matches.schema) or 1
    row_keys = [
        column_of(name, narrow(rows, name, places), schema.engine_kind(name), tick, schema.scale(name))
        for name in matches.keys
    ]
    if isinstance(records, FoundColumns):
        keys = list(records.keys)
    else:
        values = zip(*(record.key for record in records), strict=True)
        keys = [
            column_of_values(key_values, schema.engine_kind(name))
            for key_values, name in zip(values, matches.keys, strict=True)
        ]
    wrong = hashes_of_columns(row_keys, len(places)) != hashes_of_columns(keys, len(records))[bound.owners]
    if wrong.any():
        key = ", ".join(f"`{name}`" for name in matches.keys)
        raise changed_error(f"row {int(places[np.argmax(wrong)])} has another {key} than its match")


def _check_times(
    rows: Any, places: npt.NDArray[np.int64], bound: BoundEvents, records: Sequence[Found], matches: Matches
) -> None:
    """Raise :class:`DataError` if the first and last of the rows of a match do not have its start and end."""
    if not len(places):
        return
    schema = matches.schema
    ticks, null = ticks_of(schema.ts, narrow(rows, schema.ts, places), schema.tick_ns or 1)
    begins = np.flatnonzero(np.append(True, bound.owners[1:] != bound.owners[:-1]))
    if isinstance(records, FoundColumns):
        start, end = records.start, records.end
    else:
        start, end = (np.array([getattr(record, name) for record in records], np.int64) for name in ("start", "end"))
    owners = bound.owners[begins]
    is_right = np.minimum.reduceat(ticks, begins) == start[owners]
    is_right &= np.maximum.reduceat(ticks, begins) == end[owners]
    if (null is not None and null.any()) or not is_right.all():
        raise changed_error(f"the times in `{schema.ts}` are others")
