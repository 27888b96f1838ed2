"""Run a job over a DataFrame: select its columns, spread its rows by bucket, and call the workers."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import mmh3

from acep.errors import DataError
from acep.overload.needed_events import uses_of
from acep.spark.fields import key_column, quote_name, with_fields
from acep.spark.file_state_worker import StatePlace, step_in_files
from acep.spark.job import SentJob
from acep.spark.needed_filter import filter_column
from acep.spark.newest_time import announce_newest, with_announcements
from acep.spark.spark_state_worker import (
    NOW,
    STEPPED,
    VERSION,
    add_buckets,
    match_partition,
    pack,
    packed_schema,
    step,
    unpack,
)
from acep.spark.times import (
    DELAY_KEY,
    delay_of,
    end_column,
    event_time,
    is_punctuation,
    latest_tick,
    ticks_of_row,
)
from acep.spark.types import spark_schema
from acep.streaming.job import EXACT, Pass, columns_read
from acep.streaming.step import BUCKET
from acep.streaming.totals import METRICS_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "bucket_numbers",
    "codes_of",
    "event_ticks",
    "has_bucket",
    "marks_of",
    "observed_columns",
    "place_of",
    "process_in_files",
    "run_batch",
    "run_stream",
    "run_stream_in_files",
    "sent_columns",
    "sent_rows",
    "with_versions",
]

TIME = "__time"
OF_CLAUSE = "acep.clause"
"""The metadata of a column of a clause whose state is Spark's own."""
# The number of micro-batches from which Spark can restart: its setting, and the default.
RETAINED, DEFAULT_RETAINED = "spark.sql.streaming.minBatchesToRetain", 100


# Columns ----------------------------------------------------------------------------------------


def _bucket(frame: DataFrame, job: SentJob, part: Pass) -> Column:
    """Return the number of a row's bucket; null if a partition attribute is null or NaN, as such rows never match, and
    for a punctuation. One that takes an event back gets a number, so that the workers refuse it."""
    from pyspark.sql import functions as sf

    if not part.keys:
        first, is_no_event = sf.lit(part.first).cast("int"), is_punctuation(frame.schema, job.schema)
        return first if is_no_event is None else sf.when(~is_no_event, first)
    if job.clause is not None:  # null keys are a partition
        keys = [key_column(frame, key) for key in part.keys]
        return (sf.pmod(sf.xxhash64(*keys), sf.lit(part.size)) + sf.lit(part.first)).cast("int")
    missing = _is_outside(frame, job, part)
    number = sf.pmod(sf.xxhash64(*[sf.col(quote_name(key)) for key in part.keys]), sf.lit(part.size)) + sf.lit(
        part.first
    )
    bucket = sf.when(~missing, number.cast("int"))
    return bucket if job.op is None else bucket.when(sf.col(quote_name(job.op)) < 0, sf.lit(part.first))


def _is_outside(frame: DataFrame, job: SentJob, part: Pass) -> Column:
    """Return whether a row is a punctuation, or a partition attribute is null or NaN."""
    from pyspark.sql import functions as sf

    is_no_event = is_punctuation(frame.schema, job.schema)
    missing = sf.lit(False) if is_no_event is None else is_no_event
    for key in part.keys:
        column = sf.col(quote_name(key))
        missing = missing | column.isNull()
        if frame.schema[key].dataType.typeName() in ("float", "double"):
            missing = missing | sf.isnan(column)
    return missing


def has_bucket(frame: DataFrame, job: SentJob, part: Pass) -> Column:
    """Return whether a row with a time has a bucket in a pass, as :func:`bucket_numbers` would say."""
    from pyspark.sql import functions as sf

    has_keys = ~_is_outside(frame, job, part)
    return has_keys if job.op is None else has_keys | sf.coalesce(sf.col(quote_name(job.op)) < 0, sf.lit(False))


def _travelling(frame: DataFrame, job: SentJob) -> list[Column]:
    """Return the columns that go to the workers; one that only breaks ties and has no order in Arrow goes as text."""
    from pyspark.sql import functions as sf

    read = columns_read(job.plans, job.schema) if job.clause is None else set(job.columns)
    out = []
    for name in job.columns:
        column = sf.col(quote_name(name))
        kind = frame.schema[name].dataType.typeName()
        if name not in read and kind in ("geometry", "geography"):
            raise DataError(
                f"ties cannot be broken by column `{name}`, which is {kind}",
                hint="name seq=, or drop it",
                code="data_type",
            )
        if name not in read and kind in ("struct", "array", "map", "variant"):
            column = sf.to_json(column)
        elif name not in read and job.schema.kind(name) is None and kind != "binary":
            column = column.cast("string")
        out.append(column.alias(job.sent_as(name)))
    return out


def _spread(rows: DataFrame, buckets: int, number: Column) -> DataFrame:
    """Repartition the rows so that each bucket has a partition of its own."""
    from pyspark.sql import functions as sf

    if hasattr(rows, "repartitionById"):  # since Spark 4.1
        return rows.repartitionById(buckets, number)
    return rows.repartition(buckets, sf.get(sf.array(*map(sf.lit, partition_numbers(buckets))), number))


def partition_numbers(buckets: int) -> list[int]:
    """Return a number for each partition in order, which Spark's hash sends to that partition.

    >>> len(set(partition_numbers(100)))
    100
    """
    numbers: dict[int, int] = {}
    number = 0
    while len(numbers) < buckets:
        numbers.setdefault(mmh3.hash(struct.pack("<i", number), 42) % buckets, number)
        number += 1
    return [numbers[bucket] for bucket in range(buckets)]


def observed_columns(names: Sequence[str], metrics: Column | None = None) -> list[Column]:
    """Return the aggregates with which Spark collects the metrics of buckets, and the ``names`` of the queries."""
    from pyspark.sql import functions as sf

    # One text of lines: Spark 4.0 returns a list in an observation as a Java object.
    return [
        sf.concat_ws("\n", sf.collect_list(sf.col(METRICS_COLUMN) if metrics is None else metrics)).alias("told"),
        sf.lit(json.dumps(names)).alias("names"),
    ]


# Batch and stream -------------------------------------------------------------------------------


def run_batch(frame: DataFrame, job: SentJob, result: StructType, observation: Observation | None) -> DataFrame:
    """Return the result of a job over a batch DataFrame; an ``observation`` collects its metrics."""
    from pyspark.sql import functions as sf

    frame = with_fields(frame, job.columns)
    # With an observation all events travel, because its report counts them.
    if observation is None and (usable := _usable(frame, job)) is not None:
        frame = frame.where(usable | sf.col(quote_name(job.schema.ts)).isNull())
    ts = sf.col(quote_name(job.sent_as(job.schema.ts)))
    numbers = [_bucket(frame, job, part) for part in job.passes]
    number = numbers[0] if len(numbers) == 1 else sf.explode(sf.array(*numbers))
    rows = frame.select(*_travelling(frame, job), number.alias(BUCKET))
    # Rows without a time travel, too, so that the workers raise an error.
    rows = rows.where(sf.col(BUCKET).isNotNull() | ts.isNull())
    rows = rows.withColumn(BUCKET, sf.coalesce(sf.col(BUCKET), sf.lit(0)))
    rows = _spread(rows, job.buckets, sf.col(BUCKET)).sortWithinPartitions(BUCKET, ts)
    if observation is None:
        matches = rows.mapInArrow(partial(match_partition, job), result)
    else:
        result_and_metrics = rows.mapInArrow(partial(match_partition, job, tells=True), _with_metrics_column(result))
        observed = result_and_metrics.observe(observation, *observed_columns(job.names))
        matches = observed.where(sf.col(METRICS_COLUMN).isNull()).select(*result.names)
    if job.output != "count":
        return matches
    count = sf.coalesce(sf.sum("count"), sf.lit(0)).cast("long").alias("count")
    exact = [sf.coalesce(sf.bool_and(EXACT), sf.lit(True)).alias(EXACT)] if EXACT in result.names else []
    if not job.several:
        return matches.agg(count, *exact)
    zeros = frame.sparkSession.createDataFrame([(name, 0, True)[: len(result)] for name in job.names], result)
    return matches.unionAll(zeros).groupBy("query").agg(count, *exact)


def _usable(frame: DataFrame, job: SentJob) -> Column | None:
    """Return a column that tells whether some query can use an event; ``None`` if all events are needed."""
    uses = uses_of(job.plans, ids=job.schema.id is not None, budget=job.budget)
    return filter_column(frame.schema, uses, job.schema.type)


def run_stream(
    frame: DataFrame, job: SentJob, result: StructType, watermark: Any, newer: DataFrame | None = None
) -> DataFrame:
    """Return the result of a job over a streaming DataFrame. ``newer`` has versions of its queries
    (:func:`acep.spark.query_rows.query_rows`).

    Raises :class:`DataError` if there is no watermark, or two, or one that ``latest`` cannot bound.
    """
    from pyspark.sql.streaming.state import GroupStateTimeout
    from pyspark.sql.types import StructField, StructType

    if watermark is None and job.latest is not None:
        raise DataError(
            f"latest= cannot bound the watermark that `{job.schema.ts}` has already, which every row moves",
            hint="leave withWatermark out and give watermark=, or give state=",
            code="option_invalid",
        )
    _refuse_second_state(frame)
    frame = with_fields(frame, job.columns)
    rows, delay_ms = _set_watermark(frame, job, watermark)
    numbers = [_bucket(frame, job, part).alias(f"{BUCKET}{i}") for i, part in enumerate(job.passes)]
    now = [_batch_time()] if job.latest is not None and job.clocked else []
    rows = rows.select(*_travelling(frame, job), *numbers, *now)
    if newer is not None:
        rows = with_versions(rows, newer, {})
    # A stateful operator requires an event time column. The watermark itself comes from the rows, above.
    packed_fields = [
        StructField(f.name, f.dataType, metadata={DELAY_KEY: 0} if f.name == "time" else None)
        for f in spark_schema(packed_schema(job))
    ]
    # A watermark that the DataFrame has already may be that of several streams: Spark's own count of it is used then.
    packed = rows.mapInArrow(partial(pack, job, announces=watermark is not None), StructType(packed_fields))
    stepped = packed.groupBy("bucket").applyInPandasWithState(
        partial(step, job, delay_ms),
        spark_schema(STEPPED),
        "state binary",
        "append",
        GroupStateTimeout.EventTimeTimeout,
    )
    observed = stepped.observe(f"acep_{job.fingerprint[:8]}", *observed_columns(job.names))
    return observed.select("rows").mapInArrow(unpack, result if job.clause is None else _mark_columns(result))


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


def _with_metrics_column(result: StructType) -> StructType:
    """Return the columns of the result and the column of metrics."""
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*result, StructField(METRICS_COLUMN, StringType())])


def _set_watermark(frame: DataFrame, job: SentJob, watermark: Any) -> tuple[DataFrame, int]:
    """Return the frame with a watermark, and its delay in milliseconds. Raises :class:`DataError` for none or two."""
    from pyspark.sql import functions as sf

    ts = job.schema.ts
    has = DELAY_KEY in (frame.schema[ts].metadata or {})
    if watermark is None and not has:
        raise DataError(
            "a stream needs a watermark",
            hint='say how late events may come: watermark="10 minutes"',
            code="option_invalid",
        )
    name = ts
    if watermark is not None:
        if has:
            raise DataError(f"`{ts}` has a watermark already", hint="leave watermark= out", code="option_invalid")
        delay = delay_of(watermark, job.schema)
        time_type = frame.schema[ts].dataType
        if time_type.typeName() == "timestamp" and job.latest is None:
            frame = frame.withWatermark(quote_name(ts), delay)
        else:
            name = TIME
            time = event_time(ts, time_type, job.schema)
            if (bound := latest_tick(job)) is not None:  # later times do not move the watermark
                is_near = (ticks_of_row(ts, time_type, job.schema) <= bound) | (
                    sf.col(quote_name(ts)) >= end_column(time_type)
                )
                is_no_event = is_punctuation(frame.schema, job.schema)
                is_near = is_near if is_no_event is None else is_near | is_no_event
                time = sf.when(is_near, time).otherwise(sf.timestamp_micros(sf.lit(0)))
            frame = frame.withColumn(TIME, time).withWatermark(TIME, delay)
    return frame, int(frame.schema[name].metadata[DELAY_KEY])


def run_stream_in_files(
    frame: DataFrame, job: SentJob, result: StructType, watermark: Any, folder: str, newer: DataFrame | None = None
) -> DataFrame:
    """Return the result of a job over a streaming DataFrame, with the state in files of ``folder``. ``newer`` has
    versions of its queries (:func:`acep.spark.query_rows.query_rows`).

    Raises :class:`DataError` if there is no watermark, or two.
    """
    from pyspark.sql import functions as sf

    frame = with_fields(frame, job.columns)
    _, delay_ms = _set_watermark(frame, job, watermark)  # only the delay: the state in files has its own watermark
    place = place_of(frame.sparkSession, job, folder, delay_ms)
    numbers = bucket_numbers(frame, job)
    if place.partitions == 1:  # it gets all rows, those that have no bucket, too
        codes = codes_of(frame, job, [sf.coalesce(numbers[0], sf.lit(-1)), *numbers[1:]])
    else:
        codes = with_announcements(codes_of(frame, job, numbers), place.partitions)
        frame = announce_newest(frame, event_ticks(frame, job))
    result_and_metrics = process_in_files(frame, job, result, place, sent_columns(frame, job, codes), newer=newer)
    observed = result_and_metrics.observe(f"acep_{job.fingerprint[:8]}", *observed_columns(job.names))
    return observed.where(sf.col(METRICS_COLUMN).isNull()).select(*result.names)


def place_of(spark: SparkSession, job: SentJob, folder: str, delay_ms: int) -> StatePlace:
    """Return the place where a job runs, from the settings of a session."""
    partitions = min(job.buckets, int(spark.conf.get("spark.sql.shuffle.partitions") or job.buckets))
    return StatePlace(folder, int(spark.conf.get(RETAINED) or DEFAULT_RETAINED), delay_ms, partitions)


def bucket_numbers(frame: DataFrame, job: SentJob) -> list[Column]:
    """Return the number of a row's bucket in each pass; rows without a time get one, so that the workers raise."""
    from pyspark.sql import functions as sf

    ts = sf.col(quote_name(job.schema.ts))
    return [sf.when(ts.isNull(), part.first).otherwise(_bucket(frame, job, part)) for part in job.passes]


def codes_of(frame: DataFrame, job: SentJob, numbers: Sequence[Column]) -> Column:
    """Return the array of a row's codes, from those in each pass; a row that ends the stream goes to all buckets."""
    from pyspark.sql import functions as sf

    ends = sf.col(quote_name(job.schema.ts)) >= end_column(frame.schema[job.schema.ts].dataType)
    all_buckets = [sf.lit(-1 - bucket) for bucket in range(job.buckets)]
    return sf.when(ends, sf.array(*all_buckets)).otherwise(sf.array(*numbers))


def _batch_time() -> Column:
    """Return the time at which the micro-batch began, in milliseconds."""
    from pyspark.sql import functions as sf

    return sf.unix_millis(sf.current_timestamp()).alias(NOW)


def event_ticks(frame: DataFrame, job: SentJob) -> Column:
    """Return the time of a row in ticks, null for one whose time does not count: it ends the stream, or is too far
    ahead."""
    from pyspark.sql import functions as sf

    time_type = frame.schema[job.schema.ts].dataType
    ticks = ticks_of_row(job.schema.ts, time_type, job.schema)
    counts = ~(sf.col(quote_name(job.schema.ts)) >= end_column(time_type))
    if (latest := latest_tick(job)) is not None:
        is_no_event = is_punctuation(frame.schema, job.schema)
        counts &= (ticks <= latest) if is_no_event is None else (ticks <= latest) | is_no_event
    return sf.when(counts, ticks)


def sent_columns(frame: DataFrame, job: SentJob, codes: Column) -> list[Column]:
    """Return the columns of the rows that go to the workers, from those of ``frame``.

    ``codes`` is an array with the codes of a row. A code is the number ``n`` of a bucket, or ``-1 - n`` for a row that
    only advances its time, or null for a row that does not travel.
    """
    from pyspark.sql import functions as sf

    sent = _travelling(frame, job)
    now = [_batch_time()] if job.clocked else []
    return [*sent, *now, sf.explode(codes).alias(BUCKET)]


def marks_of(frame: DataFrame, job: SentJob, place: StatePlace, sent: Sequence[Column]) -> DataFrame:
    """Create a row for each partition that gives its number: that of a bucket which is too great."""
    from pyspark.sql import functions as sf

    rows = frame.sparkSession.range(0, place.partitions, 1, 1)
    first = -(-job.buckets // place.partitions) * place.partitions  # Spark sends each to its own partition
    mark = {BUCKET: (sf.lit(first) + sf.col("id")).cast("int")}
    return rows.select(*(mark.get(name, sf.lit(None)).alias(name) for name in frame.select(*sent).columns))


def sent_rows(frame: DataFrame, sent: Sequence[Column]) -> DataFrame:
    """Return the rows that go to the workers, with the columns of :func:`sent_columns`."""
    from pyspark.sql import functions as sf

    return frame.select(*sent).where(sf.col(BUCKET).isNotNull())


def with_versions(rows: DataFrame, newer: DataFrame, values: Mapping[str, Column]) -> DataFrame:
    """Return the rows that go to the workers together with those of new versions of queries, which have null in all
    columns but :data:`VERSION`, those in ``values``, and the clock."""
    from pyspark.sql import functions as sf

    values = {NOW: sf.unix_millis(sf.current_timestamp())} | dict(values)
    columns = [
        (values[f.name] if f.name in values else sf.lit(None).cast(f.dataType)).alias(f.name) for f in rows.schema
    ]
    return rows.withColumn(VERSION, sf.lit(None).cast("string")).unionAll(newer.select(*columns, VERSION))


def process_in_files(
    frame: DataFrame,
    job: SentJob,
    result: StructType,
    place: StatePlace,
    sent: Sequence[Column],
    marks: DataFrame | None = None,
    newer: DataFrame | None = None,
) -> DataFrame:
    """Process the buckets of a micro-batch whose state is in files; return the result with the column
    :data:`METRICS_COLUMN`.

    ``sent`` are the :func:`sent_columns` of its rows. ``marks`` are the :func:`marks_of` its partitions; a streaming
    DataFrame cannot have them, and a single partition does not need them. ``newer`` has versions of queries.
    """
    from pyspark.sql import functions as sf

    code = sf.col(BUCKET)
    number = sf.when(code >= 0, code).otherwise(sf.lit(-1) - code)
    rows = sent_rows(frame, sent)
    if job.clause is not None and job.clause.has_computed_buckets:
        rows = rows.mapInArrow(partial(add_buckets, job), rows.schema)
    if marks is not None:
        rows = rows.unionAll(marks)
    if newer is not None:
        all_partitions = sf.explode(sf.array(*map(sf.lit, range(place.partitions))))
        rows = with_versions(rows, newer, {BUCKET: all_partitions})
    rows = _spread(rows, place.partitions, sf.pmod(number, sf.lit(place.partitions)))
    return rows.mapInArrow(partial(step_in_files, job, place), _with_metrics_column(result))
