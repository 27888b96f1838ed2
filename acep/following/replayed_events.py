"""Prepare recorded events for a replay: their columns, their order, and files with what they were made of."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acep.budget import tolerant
from acep.errors import DataError, SnapshotError
from acep.events.buffers import table_bytes
from acep.events.columns import ticks_of
from acep.events.duplicates import settle_duplicates
from acep.events.empty_schema import choose_types
from acep.events.fields import column_at
from acep.events.files.options import options_of
from acep.events.files.stream import open_events
from acep.events.tables import InputSchema, schema_of, to_table
from acep.pattern import query_arguments
from acep.pattern.printing import canonical
from acep.pattern.query_arguments import query_of
from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query
from acep.runtime.options import StreamOptions
from acep.streaming.job import all_columns, columns_read

__all__ = [
    "ORDER",
    "ROW",
    "RecordedEvents",
    "check_page",
    "check_tell",
    "has_content",
    "note_content",
    "record_events",
    "with_order",
    "write_chunk",
]

ORDER: Final = "__order"
"""The column with the position of an event in the stream."""
ROW: Final = "__row"
"""The column with the row of an event in the table."""
NOTE = "_about.json"
FIRST_MTIME = 1_000_000_000
"""The modification time of the first file, in seconds since 1970. Streams read files by that time, and Spark drops
those a week older than the newest."""
CHUNKS = 20
"""The micro-batches of a replay, where none says how many events each has."""
SMALLEST = 2_000
"""The least number of events of such a micro-batch."""


@dataclass(frozen=True, kw_only=True)
class RecordedEvents:
    """Recorded events with the ``query`` that they are replayed for, its ``plan``, their ``schema``, and the columns
    that the query reads, as a ``table``. ``chunk``: events of a micro-batch. ``about`` identifies them, as JSON-like
    data."""

    query: Query
    plan: Plan
    schema: InputSchema
    table: pa.Table
    chunk: int
    about: dict[str, Any]


def record_events(
    query: Any, events: Any, options: StreamOptions, *, chunk: int | None, watermark: Any, latest: Any, versions: Any
) -> RecordedEvents:
    """Return the events of a file or a table for a replay with these arguments.

    Raises :class:`QueryError` or :class:`DataError` for what cannot be replayed.
    """
    budget = options.budget
    query = tolerant(query_of(query), budget)
    source = str(Path(events).resolve()) if isinstance(events, str | os.PathLike) else ""
    table = _table_of(events, query, options, reads_all=versions is not None) if source else to_table(events)
    if chunk is not None and chunk < 1:
        raise DataError(f"chunk={chunk} is not a positive number of events", code="option_invalid")
    schema = schema_of(table.schema, **options.columns)
    plan = compile_query(query, schema)
    read = sorted(columns_read([plan], schema) | ({*all_columns(schema)} if versions is not None else set()))
    table = pa.table({name: column_at(table, name) for name in read})  # a field of a struct as a column of its own
    size = chunk or max(SMALLEST, -(-table.num_rows // CHUNKS))
    about: dict[str, Any] = {
        "events": f"{source} {_identify_events(source, table)}",
        "query": canonical(query),
        "columns": repr([(name, str(table.schema.field(name).type)) for name in read]),
        "names": repr((schema.ts, schema.type, schema.seq, schema.id, options.unit)),
        "chunk": size,
        "watermark": str(watermark),
    }
    if versions is not None:
        about["dynamic"] = True
    if latest is not None:
        about["latest"] = str(latest)
    if budget is not None and budget.limited:
        about["budget"] = repr((budget.work, budget.memory, options.policy, options.seed))
    return RecordedEvents(query=query, plan=plan, schema=schema, table=table, chunk=size, about=about)


def check_tell(tell: object) -> None:
    """Raise :class:`DataError` if ``tell=`` is no function."""
    if tell is not None and not callable(tell):
        raise DataError(
            "tell= is called after each micro-batch", hint="give a function of one argument", code="option_invalid"
        )


def check_page(page: object) -> None:
    """Raise :class:`DataError` if ``page=`` is no live page that is served."""
    if page is not None:
        from acep.serving.live_page import check_live_page  # few streams are watched

        check_live_page(page)


def _table_of(path: Any, query: Query, options: StreamOptions, *, reads_all: bool) -> pa.Table:
    """Read a file of events with the columns that the query reads, or with all of them (``reads_all``).

    Raises :class:`DataError` for a row whose id came before, with its place, unless such rows are left out later.
    """
    roles = [name for name in (options.ts, options.type, options.seq, options.id) if name is not None]
    names = None if reads_all else [*dict.fromkeys([*roles, *query_arguments.columns_read(query)])]
    reading = options_of(columns=names, ts=options.ts, type=options.type, id=options.id)
    with open_events(path, replace(reading, checks_ids=False)) as opened:
        table = opened.read_all()
        if options.duplicates == "refuse":
            table = settle_duplicates(table, options.id, place_of=opened.place_of)
    if table.num_rows:
        return table
    # Spark needs a type of the times; choose_types() replaces one that cannot be theirs.
    fields = [pa.field(f.name, pa.float64() if pa.types.is_null(f.type) else f.type) for f in table.schema]
    return choose_types(pa.schema(fields), [query], options.columns).empty_table()


def _identify_events(source: str, table: pa.Table) -> str:
    """Identify events by the size and modification time of their file, or by a digest of the table."""
    if source:
        stat = Path(source).stat()
        return f"{stat.st_size} {stat.st_mtime_ns}"
    return hashlib.blake2b(table_bytes(table), digest_size=16).hexdigest()


def with_order(table: pa.Table, schema: InputSchema, *, sort: bool) -> pa.Table:
    """Add the column :data:`ROW` with row numbers, and :data:`ORDER` with positions in the stream.

    The order of the stream is that of (``ts``, ``seq``, row). With ``sort`` the rows are sorted by it, too.
    """
    size = table.num_rows
    keys: list[Any] = []
    for name in (schema.seq, schema.ts):
        if name is not None:
            ticks, null = ticks_of(name, table.column(name), schema.tick_ns or 1)
            if null is not None and null.any():
                row = int(np.argmax(null))
                raise DataError(
                    f"column `{name}` is null in row {row} (rows count from 0)", hint="drop the row", code="data_null"
                )
            keys.append(ticks)
    order = np.lexsort(keys)
    positions = np.empty(size, np.int64)
    positions[order] = np.arange(size)
    table = table.append_column(ORDER, pa.array(positions)).append_column(ROW, pa.array(np.arange(size)))
    return table.take(pa.array(order)) if sort else table


def has_content(folder: Path, about: dict[str, Any]) -> bool:
    """Return whether a folder has files of this content, after the folder was made if there was none.

    ``about`` describes the content as JSON-like data. Raises :class:`SnapshotError` if the folder has another one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / NOTE
    if not note.exists():
        return False
    try:
        stored = json.loads(note.read_text(encoding="utf-8"))
    except ValueError:
        raise SnapshotError(f"`{note}` is damaged", hint="start with a new checkpoint", code="state_damaged") from None
    if stored != about:
        changed = [name for name in about if not isinstance(stored, dict) or stored.get(name) != about[name]]
        raise SnapshotError(
            f"the checkpoint was made with another {' and '.join(changed) or 'version'}",
            hint="go on with what it was made with, or start with a new checkpoint; nothing was lost",
        )
    return True


def note_content(folder: Path, about: dict[str, Any]) -> None:
    """Write down what a folder has, for :func:`has_content`."""
    part = folder / f".{NOTE}"
    part.write_text(json.dumps(about), encoding="utf-8")
    part.replace(folder / NOTE)


def write_chunk(rows: pa.Table, folder: Path, number: int) -> Path:
    """Write some events as the file ``number`` of a stream, and return its path."""
    path = folder / f"{number:06}.parquet"
    # Readers of a stream leave out names that begin with a dot, so they never see half a file.
    part = path.with_name(f".{path.name}")
    pq.write_table(rows, part)
    os.utime(part, (FIRST_MTIME + number, FIRST_MTIME + number))
    part.replace(path)
    return path
