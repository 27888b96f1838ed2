"""Make the job of a MATCH_RECOGNIZE clause over the files of a folder (``acep.follow``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from acep.errors import QueryError
from acep.events.buffers import selectable
from acep.events.tables import schema_of
from acep.following.inbox import ROW
from acep.pattern.sql.clause_parser import parse_clause
from acep.row_patterns.clause_stream import ClauseStream
from acep.row_patterns.clause_text import read_clause
from acep.row_patterns.stream_time import check_time_option, order_error, time_column
from acep.runtime.options import StreamOptions
from acep.streaming.clause_description import JobClause, without_trees
from acep.streaming.clause_job import clause_job
from acep.streaming.job import Job
from acep.streaming.latest_time import Latest
from acep.streaming.times import delay_ms_of, first_end_tick
from acep.tables.clause_options import check_partitions, clause_budget

__all__ = ["check_clause_outputs", "clause_options", "followed_clause"]


def clause_options(text: str, options: StreamOptions) -> StreamOptions:
    """Return the options of a stream with the time column of a clause.

    Raises :class:`QueryError` as :func:`time_name` does, and for a budget that the clause cannot keep to."""
    check_partitions(text, clause_budget(options))
    return replace(options, ts=time_name(text, options.ts), type=None)


def time_name(text: str, ts: str) -> str:
    """Return the name of the time column of a clause, the first key of ORDER BY; ``ts``, where that is only written
    in other letters, or is no name of a column.

    Raises :class:`QueryError` if ``ts`` names another column, or there is no ORDER BY.

    >>> time_name("ORDER BY at, x PATTERN (a)", "ts"), time_name("ORDER BY TS PATTERN (a)", "ts")
    ('at', 'ts')
    """
    order = parse_clause(read_clause(text).clause).order
    if not order:
        raise order_error()
    tree: Any = order[0].expression.tree
    if type(tree).__name__ != "Column" or tree.table or tree.name.casefold() == ts.casefold():
        return ts
    check_time_option(ts, tree.name)
    return str(tree.name)


def check_clause_outputs(*, output: str, flat: bool, late: bool, versions: Any, end_marker: bool) -> None:
    """Raise :class:`QueryError` for options of results that a clause does not have."""
    unused = {"output": output != "matches", "flat": flat, "late": late, "versions": versions is not None,
              "end_marker": end_marker}  # fmt: skip
    for name, is_unused in unused.items():
        if is_unused:
            raise QueryError(f"{name}= is not for MATCH_RECOGNIZE", hint="leave it out", code="option_invalid")


def followed_clause(
    text: str, schema: pa.Schema, options: StreamOptions, *, watermark: Any, latest: Any
) -> tuple[Job, int]:
    """Return the job of a clause over files with these columns, and the delay of its watermark in milliseconds.

    Raises :class:`QueryError` or :class:`DataError`."""
    columns = selectable(schema.remove_metadata().empty_table()).schema
    columns = pa.schema([field for field in columns if field.name != options.op])
    clause = read_clause(text)
    plan = clause.make_plan(columns)
    try:
        ts = time_column(plan)
    except QueryError as error:
        raise clause.place_error(error) from None
    check_time_option(options.ts, ts)
    numbered = schema.append(pa.field(ROW, pa.int64()))
    roles: dict[str, Any] = {"ts": ts, "type": None, "seq": options.seq or ROW, "id": options.id, "unit": options.unit}
    stream_schema = schema_of(numbered, **roles)
    result = clause.select(ClauseStream(plan, columns).empty_result()).schema
    job_part = JobClause(text, without_trees(plan), tuple(columns.names), clause.columns, (None,) * len(result),
                         tuple(result.names))  # fmt: skip
    last = first_end_tick(schema.field(ts).type, stream_schema)
    job = clause_job(
        job_part, stream_schema, options, keys=(), buckets=None, end=last, latest=latest, result=result
    )  # fmt: skip
    # A time that only the end of a stream has is never that of an event; without op= the ids are looked at as files are
    # read, so that file and row are known.
    bound = Latest(tick=last - 1) if job.latest is None else job.latest
    duplicates = None if options.op is None else job.duplicates
    return replace(job, latest=bound, duplicates=duplicates), delay_ms_of(watermark, stream_schema)
