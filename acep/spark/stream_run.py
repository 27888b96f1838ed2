"""Run a job over a stream, with its state in files or in Spark's own store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from acep.errors import DataError
from acep.overload.early_shedding import DECISION, EarlyShedding
from acep.overload.needed_events import uses_of
from acep.overload.sampled_recall import POINTS
from acep.spark.columns.fields import quote_name, with_fields
from acep.spark.columns.times import DELAY_KEY, end_column, event_time, is_punctuation, latest_tick, ticks_of_row
from acep.spark.columns.types import spark_schema
from acep.spark.early_shedding import cell_keys
from acep.spark.job import SentJob
from acep.spark.job_run import (
    batch_time,
    bucket_number,
    bucket_numbers,
    codes_of,
    event_ticks,
    has_null_key,
    observed_columns,
    plan_function,
    process_in_files,
    sent_columns,
    spread,
    travelling_columns,
    with_versions,
)
from acep.spark.listening import COUNTS, METRICS, NULL_KEYS, PACKING, SHED
from acep.spark.needed_rows import usable_column, with_needed_rows
from acep.spark.newest_time import announce_newest, with_announcements
from acep.spark.query_start import STEP_IN_SPARK, can_announce, prepare_queries
from acep.spark.shed_batches import register_call
from acep.spark.shed_columns import with_admission
from acep.spark.shuffle_partitions import shuffle_partitions, warn_of_state_partitions
from acep.spark.state_choice import StateChoice
from acep.spark.workers.spark_state_worker import SPAN, STEPPED, pack, packed_schema, step, unpack
from acep.spark.workers.state_place import StatePlace
from acep.streaming.step import BUCKET
from acep.streaming.times import delay_ms_of
from acep.streaming.totals import METRICS_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["place_of", "run_stream", "run_stream_in_files", "watermark_delay"]

TIME = "__time"
OF_CLAUSE = "acep.clause"
"""The metadata of a column of a clause whose state is Spark's own."""
# The number of micro-batches from which Spark can restart: its setting, and the default.
RETAINED, DEFAULT_RETAINED = "spark.sql.streaming.minBatchesToRetain", 100


def run_stream(
    frame: DataFrame,
    job: SentJob,
    result: StructType,
    watermark: Any,
    choice: StateChoice,
    newer: DataFrame | None = None,
) -> DataFrame:
    """Return the result of a job over a streaming DataFrame, with the state in Spark's own store, as ``choice`` says.
    ``newer`` has versions of its queries (:func:`acep.spark.query_rows.query_rows`).

    Raises :class:`DataError` if there is no watermark, or two, or one that ``latest`` cannot bound.
    """
    from pyspark.sql import functions as sf
    from pyspark.sql.streaming.state import GroupStateTimeout
    from pyspark.sql.types import StructField, StructType

    if watermark is None and job.latest is not None:
        raise DataError(
            f"latest= cannot bound the watermark that `{job.schema.ts}` has already, which every row moves",
            hint="leave withWatermark out and give watermark=, or give state=",
            code="option_invalid",
        )
    _refuse_second_state(frame)
    warn_of_state_partitions(frame.sparkSession, job.buckets)
    if can_announce(frame.sparkSession):
        prepare_queries(frame.sparkSession)
    frame = with_fields(frame, job.columns)
    delay_ms = watermark_delay(frame, job, watermark)
    frame = _observe_null_keys(frame, job)
    rows = frame if watermark is None else _with_watermark(frame, job, delay_ms)
    numbers = [bucket_number(frame, job, part).alias(f"{BUCKET}{i}") for i, part in enumerate(job.passes)]
    now = [batch_time()] if job.latest is not None and job.clocked else []
    rows = rows.select(*travelling_columns(frame, job), *numbers, *now)
    if newer is not None:
        rows = with_versions(rows, newer, {})
    # A stateful operator requires an event time column. The watermark itself comes from the rows, above.
    packed_fields = [
        StructField(f.name, f.dataType, metadata={DELAY_KEY: 0} if f.name == "time" else None)
        for f in spark_schema(packed_schema(job))
    ]
    # A watermark that the DataFrame has already may be that of several streams: Spark's own count of it is used then.
    packed = rows.mapInArrow(
        plan_function("acep_pack", pack, job, announces=watermark is not None), StructType(packed_fields)
    )
    spans = sf.concat_ws("\n", sf.collect_list(SPAN)).alias("spans")
    packed = packed.observe(f"{PACKING}{job.fingerprint[:8]}", spans).drop(SPAN)
    stepped = packed.groupBy("bucket").applyInPandasWithState(
        plan_function(STEP_IN_SPARK, step, job, delay_ms),
        spark_schema(STEPPED),
        "state binary",
        "append",
        GroupStateTimeout.EventTimeTimeout,
    )
    observed = stepped.observe(f"{METRICS}{job.fingerprint[:8]}", *observed_columns(job.names, route=str(choice)))
    columns = result if job.clause is None else _mark_columns(result)
    return observed.select("rows").mapInArrow(plan_function("acep_unpack", unpack), columns)


def _observe_null_keys(frame: DataFrame, job: SentJob) -> DataFrame:
    """Return the frame, whose events without a partition attribute Spark counts: they do not travel."""
    from pyspark.sql import functions as sf

    if not job.passes[0].keys or job.clause is not None:
        return frame
    ts = sf.col(quote_name(job.schema.ts))
    is_event = ts < end_column(frame.schema[job.schema.ts].dataType)
    null_keys = sf.count_if(is_event & has_null_key(frame, job)).alias("null_keys")
    return frame.observe(f"{NULL_KEYS}{job.fingerprint[:8]}", null_keys)


def _refuse_second_state(frame: DataFrame) -> None:
    """Raise :class:`DataError` for a stream whose rows come from a clause with such a state: Spark allows one in a
    query, and says so in many lines once the query starts."""
    if any((field.metadata or {}).get(OF_CLAUSE) for field in frame.schema.fields):
        raise DataError(
            "the stream comes from a clause that keeps its state in Spark, and Spark allows one such state in a query",
            hint='keep the state of one of them in files: state="folder"',
            code="option_invalid",
        )


def _mark_columns(result: StructType) -> StructType:
    """Return the columns of the result of a clause, marked as such: Spark hands the mark on with a column."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(f.name, f.dataType, f.nullable, {OF_CLAUSE: True}) for f in result.fields])


def watermark_delay(frame: DataFrame, job: SentJob, watermark: Any) -> int:
    """Return the delay of the watermark of a stream, in milliseconds: that of ``watermark``, or the one that the column
    of times has. Raises :class:`DataError` if there is none, or both."""
    ts = job.schema.ts
    own_delay = (frame.schema[ts].metadata or {}).get(DELAY_KEY) if ts in frame.schema.names else None
    if watermark is None:
        if own_delay is None:
            raise DataError(
                "a stream needs a watermark",
                hint='say how late events may come: watermark="10 minutes"',
                code="option_invalid",
            )
        return int(own_delay)
    if own_delay is not None:
        raise DataError(f"`{ts}` has a watermark already", hint="leave watermark= out", code="option_invalid")
    return delay_ms_of(watermark, job.schema)


def _with_watermark(frame: DataFrame, job: SentJob, delay_ms: int) -> DataFrame:
    """Return the frame with a watermark of Spark's on its times, or on a column that is derived from them."""
    from pyspark.sql import functions as sf

    ts, delay = job.schema.ts, f"{delay_ms} milliseconds"
    time_type = frame.schema[ts].dataType
    if time_type.typeName() == "timestamp" and job.latest is None:
        return frame.withWatermark(quote_name(ts), delay)
    time = event_time(ts, time_type, job.schema)
    if (bound := latest_tick(job)) is not None:  # later times do not move the watermark
        is_near = (ticks_of_row(ts, time_type, job.schema) <= bound) | (sf.col(quote_name(ts)) >= end_column(time_type))
        is_no_event = is_punctuation(frame.schema, job.schema)
        is_near = is_near if is_no_event is None else is_near | is_no_event
        time = sf.when(is_near, time).otherwise(sf.timestamp_micros(sf.lit(0)))
    return frame.withColumn(TIME, time).withWatermark(TIME, delay)


def run_stream_in_files(
    frame: DataFrame,
    job: SentJob,
    result: StructType,
    watermark: Any,
    choice: StateChoice,
    newer: DataFrame | None = None,
    shedding: EarlyShedding | None = None,
) -> DataFrame:
    """Return the result of a job over a streaming DataFrame, with the state in files that ``choice`` names. ``newer``
    has versions of its queries (:func:`acep.spark.query_rows.query_rows`). ``shedding``: how events are shed before
    they travel.

    Raises :class:`DataError` if there is no watermark, or two.
    """
    from pyspark.sql import functions as sf

    frame = with_fields(frame, job.columns)
    delay_ms = watermark_delay(frame, job, watermark)
    if can_announce(frame.sparkSession):
        prepare_queries(frame.sparkSession)
    place = place_of(frame.sparkSession, job, choice.folder, delay_ms)
    frame = _observe_null_keys(frame, job)
    name, key = job.fingerprint[:8], ""
    if shedding is not None and shedding.admission is not None:
        place = replace(
            place, shedding=shedding, sampled=True, cells=cell_keys(frame, job), exploring=shedding.exploring
        )
        key = register_call(job, place)
        needs_all = job.op is not None or job.late or job.dynamic
        uses = None if needs_all else uses_of(job.plans, ids=job.schema.id is not None, budget=job.budget)
        frame, codes = with_admission(frame, job, place, shedding, uses, f"{COUNTS}{key}")
    elif (usable := usable_column(frame, job)) is not None and newer is None:
        place = replace(place, first_count=-(-job.buckets // place.partitions) * place.partitions)
        frame, codes = with_needed_rows(frame, job, place, usable)
    elif place.partitions == 1:  # it gets all rows, those that have no bucket, too
        numbers = bucket_numbers(frame, job)
        codes = codes_of(frame, job, [sf.coalesce(numbers[0], sf.lit(-1)), *numbers[1:]])
    else:
        codes = with_announcements(codes_of(frame, job, bucket_numbers(frame, job)), place.partitions)
        frame = announce_newest(frame, event_ticks(frame, job))
    result_and_metrics = process_in_files(frame, job, result, place, sent_columns(frame, job, codes), newer=newer)
    line = sf.col(METRICS_COLUMN)
    if place.shedding is not None:
        is_of_shedding = line.startswith(POINTS) | line.startswith(DECISION)
        texts = sf.concat_ws("\n", sf.collect_list(sf.when(is_of_shedding, line))).alias("texts")
        result_and_metrics = result_and_metrics.observe(f"{SHED}{key}", texts)
        line = sf.when(~is_of_shedding, line)
    metrics = observed_columns(job.names, line, route=str(choice))
    observed = result_and_metrics.observe(f"{METRICS}{name}", *metrics)
    rows = observed.where(sf.col(METRICS_COLUMN).isNull()).select(*result.names)
    # A shuffle behind the step: whatever is read of the result, Spark first steps all buckets.
    return spread(rows, place.partitions, sf.spark_partition_id())


def place_of(spark: SparkSession, job: SentJob, folder: str | None, delay_ms: int) -> StatePlace:
    """Return the place where a job runs, from the settings of a session."""
    partitions = min(job.buckets, shuffle_partitions(spark, job.buckets))
    return StatePlace(folder, int(spark.conf.get(RETAINED) or DEFAULT_RETAINED), delay_ms, partitions)
