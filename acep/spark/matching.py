"""Match patterns in a batch or streaming DataFrame (``acep.spark.match``), by hash bucket of the partition key."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from acep.budget import Budget
from acep.errors import QueryError, warn_caller
from acep.events.tables import to_table
from acep.matches.flat import check_flat
from acep.native.compiled import warn_if_missing
from acep.overload.early_shedding import EarlyShedding
from acep.runtime.options import RevisedKeywords, StreamOptions, lists_options
from acep.spark.chunks import for_spark
from acep.spark.columns.fields import with_fields
from acep.spark.columns.letter_case import ignores_case
from acep.spark.columns.types import spark_schema
from acep.spark.early_shedding import plan_early_shedding, with_exact_column
from acep.spark.flat_results import flatten_result
from acep.spark.interpreter import check_workers
from acep.spark.job import SentJob, make_spark_job
from acep.spark.job_run import run_batch
from acep.spark.micro_batches import warn_of_micro_batch
from acep.spark.query_rows import query_rows
from acep.spark.query_start import can_announce
from acep.spark.session import get_session, needs_pyspark, outside_pipelines
from acep.spark.shuffle_partitions import shuffle_partitions, warn_of_small_batch
from acep.spark.state_choice import StateChoice, choose_state
from acep.spark.stream_run import run_stream, run_stream_in_files, watermark_delay
from acep.streaming.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation
    from pyspark.sql.types import StructType

__all__ = ["frame_of", "match", "warn_of"]


@lists_options(RevisedKeywords)
@outside_pipelines()
def match(
    df: Any,
    query: Any,
    *,
    output: str = "matches",
    buckets: int | None = None,
    watermark: Any = None,
    state: str | os.PathLike[str] | None = None,
    latest: Any = None,
    late: bool = False,
    flat: bool = False,
    versions: Any = None,
    observation: Observation | None = None,
    **options: Unpack[RevisedKeywords],
) -> DataFrame:
    """Find patterns in a DataFrame of events, batch or streaming.

    ``df``: a Spark DataFrame, or a table that :func:`acep.match` takes (a session is then started). ``query``: one
    query, a list, or a dict of name to query; several queries share one pass over the data. ``ts`` (integer, date or
    timestamp), ``type``, ``seq`` and ``id`` name columns, ``unit`` is the length of a tick of an integer ``ts``.
    Spark has no arrival order: without ``seq`` ties in ``ts`` are broken by all other columns, which then
    travel to the workers, too. Without ``id`` events are numbered, from 0, within their partition.

    On a stream, events are held until the watermark has passed them, then matched in order; later ones are counted,
    not used. ``watermark`` is its delay behind the newest event: "10 minutes", a timedelta, or ticks of an integer
    ``ts`` (needed unless ``df.withWatermark`` has been called on ``ts``).

    ``latest``, for a stream: the greatest time that an event may have. A span ("1 hour", a timedelta) is counted from
    the beginning of the micro-batch; a date, a datetime, a text of one ("2030-01-01", in UTC) or ticks of an integer
    ``ts`` are fixed. Events beyond it are counted, not used, and do not move the watermark.

    ``duplicates``: a row with the ``id`` of an event that is not final, and with its partition attributes, is refused
    (``"refuse"``) or left out (``"drop"``); in a batch DataFrame, also with its ``ts``.

    ``state``, for a stream: where it keeps its state. A folder, or a URI such as ``"s3://bucket/folder"``, that all
    workers and every later run can reach; ``"checkpoint"``: files in the checkpoint of the stream; ``"spark"``: Spark's
    own store (``"./spark"`` is a folder of that name). Unless it is given here or by the setting ``spark.acep.state``
    of the session, files of the checkpoint are used if all workers certainly reach it, as on one machine, and else
    Spark's own store, which is slower. ``Progress.route`` says which it is, and why (docs/reference/spark_restarts.md).

    ``late``, for a stream: whether late events are rows of the result, too. It then has the columns ``kind`` ("match"
    or "late") and ``event``: a late event has its id there, its time as ``start`` and ``end``, and its ``key``. This
    needs ``id``.

    ``flat``: whether the result has plain columns only, which CSV files and databases can hold: those of
    :meth:`acep.Matches.to_arrow` with ``flat=True``, one for each partition attribute, each value of RETURN and each
    variable. Variables of several queries share the columns of their names. It goes without ``versions``.

    ``speculation``, for a stream: how long before the watermark passes them events are matched ("10 s", a timedelta,
    ticks, or "inf": at once). A match that turns out wrong comes again, with -1 in the column ``op``. ``op``, for a
    stream: a column with 1 for an event, and -1 for a row that takes back the event with the same id, and has its time
    and its partition attributes. Both need ``id``, and ``op`` needs a ``seq`` that counts all rows as they come. The
    result then has the columns ``op`` and ``id`` (docs/howto/late_events.md). Points have the column ``change``
    instead. Points and counts are differences that have to be added up, and bundles are refused. A ``budget`` then
    bounds ``work`` alone.

    ``versions``, for a stream: newer versions of the queries, as a folder of files as of :func:`acep.follow`, or as a
    streaming DataFrame with the columns ``number``, ``text`` and, if there are several queries, ``name``. A version
    reaches every bucket with the micro-batch that brings it, and holds from the first millisecond after the latest
    event of earlier micro-batches, or from a later time that its first line gives; with ``speculation``, also from an
    earlier one that is not final. The rules for changes are those of
    :meth:`acep.Matcher.replace`. All columns travel then.

    ``buckets`` is the number of parts into which the keys are hashed. It is the number of rows of state, and the
    greatest number of cores at work (8 unless given; in a batch ``spark.sql.shuffle.partitions``). A checkpoint belongs
    to one query and one number of buckets.

    ``engine`` is ``"native"`` or ``"reference"``, or ``"auto"``: the native core if a worker has it and it can run
    the query. Points, bundles and counts are found without enumerating matches if no predicate relates events.

    ``budget``, ``policy`` (by its name), ``seed`` and ``history`` are those of :func:`acep.match`, in each bucket:
    ``work`` counts transition evaluations per event of the bucket; docs/reference/spark_budgets.md has the others.

    ``observation``, for a batch: a ``pyspark.sql.Observation``, from which :func:`acep.spark.metrics.reports_of` makes
    reports once an action has run; a stream reports its metrics by its progress.

    The result has the columns ``query`` (if several), ``key`` (struct of the partition attributes, if any) and,
    by ``output``:

    * "matches": ``start``, ``end`` (as ``ts``), ``error`` (long; double where weights are fractional), ``bindings``
      (map of variable to array of ids), ``bundle`` (as ``ts``), ``values`` (struct, if a query has RETURN);
    * "points": ``point``, ``best``; "bundles": ``start``, ``end``, ``matches``, ``best``;
    * "count": ``count``, without a key: one row per query; on a stream, rows that have to be added up;
    * under a ``budget`` with a bound also ``exact`` (boolean): whether nothing had been shed by then.

    Raises :class:`QueryError`, :class:`DataError` or :class:`EngineError`. Problems of the events themselves only show
    when Spark runs, see :func:`acep.spark.error_in`.
    """
    needs_pyspark()
    StreamOptions.from_keywords("match", options, RevisedKeywords)  # raises for an option that does not exist
    check_flat(flat, dynamic=versions is not None)
    frame = frame_of(df)
    is_spread_by_setting = buckets is None and not frame.isStreaming
    buckets = shuffle_partitions(frame.sparkSession) if is_spread_by_setting else buckets
    job_options: dict[str, Any] = dict(options)
    budget = job_options.pop("budget", None)

    def make(bounds: Budget | None) -> tuple[SentJob, StructType]:
        is_limited = bounds is not None and bounds.limited
        names = {name for name in job_options if budget is None or is_limited or name not in ("policy", "history")}
        return make_spark_job(
            frame.schema,
            query,
            output=output,
            buckets=buckets,
            latest=latest,
            late=late,
            dynamic=versions is not None,
            any_case=ignores_case(frame.sparkSession),
            budget=bounds,
            **{name: job_options[name] for name in names},
        )

    job, result = make(budget if budget is None else replace(budget, min_recall=None))
    warn_of(job)
    if not frame.isStreaming:
        warn_of_micro_batch(frame, "acep.spark.match, or write it with acep.spark.for_each_batch")
        _refuse_options_of_streams(
            job, budget and budget.min_recall, latest=latest, late=late, versions=versions, state=state
        )
    elif observation is not None:
        raise _observation_error()
    check_workers(frame.sparkSession, job.engine)
    warn_of_small_batch(frame, job.buckets, by_setting=is_spread_by_setting)
    if frame.isStreaming:
        newer = None if versions is None else query_rows(frame.sparkSession, versions)
        choice = choose_state(frame, state, watermark)
        matches = _run_stream(frame, job, result, watermark, choice, newer, budget, make)
    else:
        matches = run_batch(frame, job, result, observation)
    return flatten_result(matches, job) if flat else matches


def _run_stream(
    frame: DataFrame,
    job: SentJob,
    result: StructType,
    watermark: Any,
    choice: StateChoice,
    newer: DataFrame | None,
    budget: Budget | None,
    remake: Callable[[Budget], tuple[SentJob, StructType]],
) -> DataFrame:
    """Return the result of a job over a stream by the route of ``choice``."""
    if choice.in_spark:
        _warn_of_late_shedding(budget)
        return run_stream(frame, job, result, watermark, choice, newer)
    job, result, shedding = _plan_shedding(frame, job, result, watermark, budget, remake)
    return run_stream_in_files(frame, job, result, watermark, choice, newer, shedding)


def _plan_shedding(
    frame: DataFrame,
    job: SentJob,
    result: StructType,
    watermark: Any,
    budget: Budget | None,
    remake: Callable[[Budget], tuple[SentJob, StructType]],
) -> tuple[SentJob, StructType, EarlyShedding | None]:
    """Return how events of a stream are shed before they travel, with the job and the columns that are left for the
    workers."""
    if budget is None or not can_announce(frame.sparkSession):
        if budget is not None and budget.min_recall is not None:
            raise QueryError(
                "min_recall= needs events that are shed before they travel, which needs a driver in this process",
                hint="leave it out on Spark Connect",
                code="option_invalid",
            )
        return job, result, None
    delay_ms = watermark_delay(with_fields(frame, job.columns), job, watermark)
    job, result, shedding = plan_early_shedding(frame, job, result, budget, delay_ms, remake)
    return job, (result if shedding.admission is None else with_exact_column(result)), shedding


def _warn_of_late_shedding(budget: Budget | None) -> None:
    """Warn of a bound of time where the state is in Spark's own store, and refuse what cannot be kept there."""
    if budget is None or (budget.latency, budget.cpu) == (None, None):
        return
    if budget.min_recall is not None:
        raise QueryError(
            "min_recall= needs events that are shed before they travel, which needs state in files",
            hint='name a folder for the state: state="folder"',
            code="option_invalid",
        )
    warn_caller(
        "events are shed behind the shuffle, which saves less time: the state is in Spark's own store, and the driver"
        " cannot tell the workers what a micro-batch takes (state= names a folder)"
    )


def _refuse_options_of_streams(job: Job, min_recall: float | None, **options: Any) -> None:
    """Raise :class:`QueryError` for options of streams that were given for a batch."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise QueryError(
                f"{name}= is of a stream, and this is no stream", hint="leave it out", code="option_invalid"
            )
    if job.revised:
        raise QueryError(
            "speculation= and op= are of a stream, and this is no stream", hint="leave them out", code="option_invalid"
        )
    if min_recall is not None:
        raise QueryError(
            "min_recall= is of a stream, and this is no stream", hint="leave it out", code="option_invalid"
        )
    if job.budget is not None and job.budget.latency is not None:
        raise QueryError(
            "latency= is the time of a micro-batch, and this is no stream", hint="work= or cpu=", code="option_invalid"
        )


def _observation_error() -> QueryError:
    return QueryError(
        "observation= is of a batch", hint="a stream tells by its progress (acep.spark.metrics)", code="option_invalid"
    )


def frame_of(df: Any) -> DataFrame:
    """Return a DataFrame as it is, and any table that :func:`acep.match` takes as one; a session is then started."""
    from pyspark.sql import DataFrame

    if isinstance(df, DataFrame):
        return df
    table = for_spark(to_table(df))
    # The types are explicit, because a timestamp without a zone would become one with the zone of the session.
    return get_session().createDataFrame(table, spark_schema(table.schema))


def warn_of(job: Job) -> None:
    """Warn of a job that runs slowly, or whose result depends on unexpected columns."""
    warn_if_missing(job.engine)
    if job.schema.seq is None:
        warn_caller(
            f"ties in `{job.schema.ts}` are broken by the other columns: name seq= if there is an order of arrival"
        )
    single = [job.names[number] or "the query" for part in job.passes if not part.keys for number in part.queries]
    if single:
        warn_caller(
            f"{', '.join(single)} must see the whole stream in one place: one bucket, one core (only queries that"
            " declare a partition attribute, under a strategy other than strict contiguity, spread over buckets)"
        )
