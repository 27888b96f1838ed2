"""``acep.spark.match``: patterns over a batch or streaming DataFrame, by hash bucket of the partition key."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from acep.budget import Budget
from acep.engine.api import ENGINES, OUTPUTS
from acep.engine.tables import schema_of, to_table
from acep.errors import DataError, EngineError, QueryError, suggest
from acep.plan.schema import Kind
from acep.spark.job import Job, columns_read, named_queries, passes_of, plans_of
from acep.spark.results import result_type
from acep.spark.running import over_batch, over_stream
from acep.spark.session import get_session, needs_pyspark
from acep.spark.times import end_of_stream, first_end_tick, tick_ms_of
from acep.spark.types import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["match", "punctuation"]

STREAM_BUCKETS = 8


def match(
    df: Any,
    query: Any,
    *,
    budget: Budget | None = None,
    ts: str = "ts",
    type: str | None = "type",
    seq: str | None = None,
    id: str | None = None,
    unit: str | None = None,
    output: str = "matches",
    engine: str = "auto",
    buckets: int | None = None,
    watermark: Any = None,
) -> DataFrame:
    """Find patterns in a DataFrame of events, batch or streaming.

    ``df``: a Spark DataFrame, or a table that :func:`acep.match` takes (a session is then started). ``query``: one
    query, a list, or a dict of name to query; several share one pass over the data. ``ts`` (integer, date or
    timestamp), ``type``, ``seq`` and ``id`` name columns, ``unit`` is the length of a tick of an integer ``ts``.
    Spark has no arrival order: without ``seq`` ties in ``ts`` are broken by all other columns, which then
    travel too. Without ``id`` events are numbered, from 0, within their partition.

    On a stream, events are held until the watermark has passed them, then matched in order; those that come later
    are counted. ``watermark`` is how far it stays behind the newest event: "10 minutes", a timedelta, or ticks
    of an integer ``ts`` (needed unless ``df.withWatermark`` has been called on ``ts``).

    ``buckets`` is how many parts the keys are hashed into: so many rows of state, and at most so many cores at work
    (8 unless given; in a batch ``spark.sql.shuffle.partitions``). A checkpoint belongs to one query and one number
    of buckets.

    The result has the columns ``query`` (if several), ``key`` (struct of the partition attributes, if any) and,
    by ``output``:

    * "matches": ``start``, ``end`` (as ``ts``), ``error`` (long; double where weights are fractional), ``bindings``
      (map of variable to array of ids), ``bundle`` (as ``ts``), ``values`` (struct, if a query has RETURN);
    * "points": ``point``, ``best``; "bundles": ``start``, ``end``, ``matches``, ``best``;
    * "count": ``count``, without a key: one row a query; on a stream, rows that have to be added up.

    Raises :class:`QueryError`, :class:`DataError` or :class:`EngineError`; what is wrong with the events only shows
    when Spark runs, see :func:`acep.spark.error_in`.
    """
    needs_pyspark()
    if output not in OUTPUTS:
        raise QueryError(f"unknown output {output!r}", hint=suggest(output, OUTPUTS))
    if engine not in ENGINES:
        raise EngineError(f"there is no engine {engine!r}", hint=f"one of {', '.join(ENGINES)}")
    if buckets is not None and (isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 1):
        raise DataError(f"buckets={buckets!r} is not a positive number")
    frame = _frame(df)
    names, queries, several = named_queries(query, budget)
    schema = schema_of(arrow_schema(frame.schema), ts=ts, type=type, seq=seq, id=id, unit=unit)
    plans = plans_of(queries, schema)
    text_ids = id is not None and schema.kind(id) is Kind.STRING
    result = result_type(plans, frame.schema, ts, text_ids, output, several)
    columns = columns_read(plans, schema) | (set(frame.columns) if seq is None else set())
    if buckets is None:
        buckets = STREAM_BUCKETS if frame.isStreaming else _shuffle_partitions(frame)
    job = Job(
        names=names,
        queries=queries,
        schema=schema,
        columns=tuple(sorted(columns)),
        passes=passes_of(plans, buckets),
        output=output,
        result=arrow_schema(result),
        tick_ms=tick_ms_of(schema),
        end=first_end_tick(frame.schema[ts].dataType, schema),
        several=several,
    ).sealed()
    _warn(job)
    if frame.isStreaming:
        return over_stream(frame, job, plans, result, watermark)
    return over_batch(frame, job, plans, result)


def punctuation(df: Any, *, ts: str = "ts") -> DataFrame:
    """A DataFrame of one row that ends a stream with the columns of ``df``: written to where the stream
    reads, it makes the watermark pass all events, and what waited for the end is decided.

    The row is no event. Its ``ts`` is 9999-12-31, or the greatest integer of the column's type, all else is null.
    After it every event is late.
    """
    from pyspark.sql import functions as sf

    frame = _frame(df)
    held = frame.schema[ts].dataType
    end = end_of_stream(held)
    one = get_session(frame).range(1)
    return one.select(
        [sf.lit(end if f.name == ts else None).cast(f.dataType).alias(f.name) for f in frame.schema.fields]
    )


def _frame(df: Any) -> DataFrame:
    from pyspark.sql import DataFrame

    if isinstance(df, DataFrame):
        return df
    return get_session().createDataFrame(to_table(df))


def _shuffle_partitions(frame: DataFrame) -> int:
    return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or STREAM_BUCKETS)


def _warn(job: Job) -> None:
    if job.schema.seq is None:
        warnings.warn(
            f"ties in `{job.schema.ts}` are broken by the other columns: name seq= if there is an order of arrival",
            stacklevel=3,
        )
    single = [job.names[number] or "the query" for part in job.passes if not part.keys for number in part.queries]
    if single:
        warnings.warn(
            f"{', '.join(single)} must see the whole stream in one place: one bucket, one core (partition attributes,"
            " such as [symbol], and a strategy other than strict contiguity would let it spread)",
            stacklevel=3,
        )
