"""Read the events that a user passes: a table of any kind, or the paths of files."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pyarrow as pa

from acep.events.duplicates import settle_duplicates
from acep.events.tables import to_table
from acep.events.user_rows import OwnRows, own_rows, rows_of_paths
from acep.pattern.query_arguments import QuerySet, columns_read, is_swapped

__all__ = ["are_paths", "input_table", "names_used"]


def input_table(
    events: Any,
    query_set: QuerySet,
    *,
    ts: Any,
    type: Any,
    seq: Any,
    id: Any,
    duplicates: str = "drop",
    threads: int = 1,
    **_: Any,
) -> tuple[pa.Table, OwnRows]:
    """Return events as an Arrow table, and hold of the rows themselves; of files read only the columns that the queries
    use. With ``duplicates="refuse"`` a row of a file whose id came before is refused with its place, else it stays.
    With more than one of the ``threads`` the columns of files are read side by side.

    Raises :class:`DataError` for anything but a table, the path of a file, or a list of paths.
    """
    columns = names_used(query_set, ts, type, seq, id)
    if not are_paths(events):
        table = to_table(events, columns)
        return table, own_rows(events, table)
    from acep.events.files.options import options_of
    from acep.events.files.stream import open_events

    rows = rows_of_paths(events, ts=ts, type=type)
    options = options_of(columns=columns, ts=ts, type=type, seq=seq, id=id)
    options = replace(options, checks_ids=False, in_threads=threads > 1)
    with open_events(events, options) as stream:
        table = stream.read_all()
        return (settle_duplicates(table, id, place_of=stream.place_of) if duplicates == "refuse" else table), rows


def are_paths(events: Any) -> bool:
    """Return whether the path of a file was given for events, or a list of paths."""
    several = isinstance(events, list | tuple) and bool(events) and all(map(_is_path, events))
    return (several or _is_path(events)) and not is_swapped(events)


def names_used(query_set: QuerySet, *roles: Any) -> list[str]:
    """Return the columns that queries use, by the names of columns with a role and those that they read."""
    used = dict.fromkeys(name for name in roles if isinstance(name, str))
    for query in query_set.queries:
        used |= dict.fromkeys(columns_read(query))
    return [*used]


def _is_path(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)
