"""Make the job of queries, or of a MATCH_RECOGNIZE clause, over the files of a folder (``acep.follow``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from acep.errors import QueryError
from acep.events.files.casts import check_time_cast
from acep.events.files.options import Options, options_of
from acep.events.tables import InputSchema, schema_of
from acep.following.inbox import ROW
from acep.following.later_columns import explain_unknown
from acep.matches.flat import Layout, flat_table
from acep.pattern.query_arguments import columns_read, is_clause, read_queries
from acep.runtime.options import StreamOptions
from acep.streaming.job import Job, make_job
from acep.streaming.latest_time import Latest
from acep.streaming.results import result_schema
from acep.streaming.times import delay_ms_of, first_end_tick

__all__ = ["FollowedQueries", "after_cast", "reading_options"]


@dataclass(frozen=True, kw_only=True)
class FollowedQueries:
    """Queries, or a clause, with what :func:`acep.follow` says of their events and results. ``options`` have the unit
    that the time has after its cast (:func:`after_cast`). ``reading`` says how files are read. ``dynamic``: newer
    versions may take the place of the queries."""

    query: Any
    options: StreamOptions
    reading: Options
    watermark: Any
    latest: Any
    output: str
    late: bool
    flat: bool
    dynamic: bool

    def job_over(self, schema: pa.Schema) -> tuple[Job, int]:
        """Return the job over files with these columns, and the delay of its watermark in milliseconds.

        Raises :class:`QueryError` or :class:`DataError`."""
        if is_clause(self.query):
            from acep.following.clause_follower import followed_clause

            return followed_clause(self.query, schema, self.options, watermark=self.watermark, latest=self.latest)
        numbered = schema.append(pa.field(ROW, pa.int64()))
        seq, event_id = self.options.seq or ROW, self.options.id or ROW
        input_schema = schema_of(numbered, **self.options.columns | {"seq": seq, "id": event_id})
        last = first_end_tick(schema.field(self.options.ts).type, input_schema)
        try:
            job = self._make_job(input_schema, last)
        except QueryError as error:
            explain_unknown(error, schema, self.reading)
            raise
        result = result_schema(job, job.plans)
        if self.flat:
            flat_table(result.empty_table(), Layout.of_plans(job.plans))  # raises for two columns of one name
        # A time that only the end of a stream has is never that of an event.
        bound = Latest(tick=last - 1) if job.latest is None else job.latest
        # Without op= the ids are looked at as files are read, so that file and row are known.
        duplicates = None if self.options.op is None else job.duplicates
        delay_ms = delay_ms_of(self.watermark, input_schema)
        return replace(job, result=result, latest=bound, duplicates=duplicates), delay_ms

    def _make_job(self, schema: InputSchema, end: int) -> Job:
        return make_job(
            self.query,
            schema,
            self.options,
            end=end,
            ties=(ROW,),
            output=self.output,
            spread=False,
            latest=self.latest,
            late=self.late,
            dynamic=self.dynamic,
        )

    def layout_of(self, job: Job) -> Layout | None:
        """Return the layout of results that have plain columns only; ``None`` for results with nested columns."""
        return Layout.of_plans(job.plans) if self.flat else None


def reading_options(query: Any, options: StreamOptions, files: Mapping[str, Any], *, reads_all: bool) -> Options:
    """Return how files are read for a query: with the options ``files`` of :func:`acep.read_events`, and only the
    columns that the query uses, unless it is a clause or ``reads_all``.

    Raises :class:`DataError` or :class:`QueryError` for options or a query that are invalid."""
    used_names = None if is_clause(query) else _used_names(query, options)
    reading = options_of(
        columns=None if reads_all else used_names,
        **options.columns,
        **files,
        drop_duplicates=options.duplicates == "drop" and options.op is None,
    )
    check_time_cast(options.ts, reading.casts)
    return reading


def _used_names(query: Any, options: StreamOptions) -> list[str]:
    """Return the names of the columns that queries and options use, each once."""
    names = [name for role, name in options.columns.items() if role != "unit" and name is not None]
    names += [] if options.op is None else [options.op]
    names += [name for asked_query in read_queries(query).queries for name in columns_read(asked_query)]
    return list(dict.fromkeys(names))


def after_cast(options: StreamOptions, cast: Mapping[str, str] | None) -> StreamOptions:
    """Return the options of a stream whose time was cast: a cast to a timestamp or a date has used the unit."""
    is_cast = cast and cast.get(options.ts, "").lower().startswith(("timestamp", "date"))
    return replace(options, unit=None) if is_cast else options
