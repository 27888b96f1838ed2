"""Run a job over a DataFrame: select its columns, spread its rows by bucket, and call the workers."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import mmh3

from acep.errors import DataError
from acep.overload.needed_events import uses_of
from acep.spark.columns.fields import key_column, quote_name, with_fields
from acep.spark.columns.needed_filter import filter_column
from acep.spark.columns.times import end_column, is_punctuation, latest_tick, ticks_of_row
from acep.spark.job import SentJob
from acep.spark.query_start import STEP_IN_FILES
from acep.spark.workers.file_state_worker import step_in_files
from acep.spark.workers.frozen_objects import run_task
from acep.spark.workers.spark_state_worker import NOW, VERSION, add_buckets, match_partition
from acep.spark.workers.state_place import StatePlace
from acep.streaming.job import EXACT, Pass, columns_read
from acep.streaming.step import BUCKET
from acep.streaming.totals import METRICS_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation
    from pyspark.sql.types import StructType

__all__ = [
    "batch_time",
    "bucket_number",
    "bucket_numbers",
    "codes_of",
    "event_ticks",
    "has_bucket",
    "has_null_key",
    "marks_of",
    "observed_columns",
    "plan_function",
    "process_in_files",
    "run_batch",
    "sent_columns",
    "sent_rows",
    "spread",
    "travelling_columns",
    "with_metrics_column",
    "with_versions",
]

# Columns ----------------------------------------------------------------------------------------


def bucket_number(frame: DataFrame, job: SentJob, part: Pass) -> Column:
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
    is_no_event, lacks_key = is_punctuation(frame.schema, job.schema), _lacks_key(frame, part)
    return lacks_key if is_no_event is None else is_no_event | lacks_key


def _lacks_key(frame: DataFrame, part: Pass) -> Column:
    """Return whether a partition attribute is null or NaN."""
    from pyspark.sql import functions as sf

    missing = sf.lit(False)
    for key in part.keys:
        column = sf.col(quote_name(key))
        missing = missing | column.isNull()
        if frame.schema[key].dataType.typeName() in ("float", "double"):
            missing = missing | sf.isnan(column)
    return missing


def has_null_key(frame: DataFrame, job: SentJob) -> Column:
    """Return whether a row is no punctuation, and a partition attribute of the first pass is null or NaN."""
    is_no_event, lacks_key = is_punctuation(frame.schema, job.schema), _lacks_key(frame, job.passes[0])
    return lacks_key if is_no_event is None else ~is_no_event & lacks_key


def has_bucket(frame: DataFrame, job: SentJob, part: Pass) -> Column:
    """Return whether a row with a time has a bucket in a pass, as :func:`bucket_numbers` would say."""
    from pyspark.sql import functions as sf

    has_keys = ~_is_outside(frame, job, part)
    return has_keys if job.op is None else has_keys | sf.coalesce(sf.col(quote_name(job.op)) < 0, sf.lit(False))


def travelling_columns(frame: DataFrame, job: SentJob) -> list[Column]:
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


def spread(rows: DataFrame, buckets: int, number: Column) -> DataFrame:
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


def plan_function(name: str, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Return a function with some of its arguments, which plans of Spark show by this name."""
    bound = partial(run_task, function, *arguments, **keywords)
    bound.__name__ = name  # type: ignore[attr-defined]
    return bound


def observed_columns(names: Sequence[str], metrics: Column | None = None, route: str = "") -> list[Column]:
    """Return the aggregates with which Spark collects the metrics of buckets, the ``names`` of the queries, and the
    ``route`` of a stream in words."""
    from pyspark.sql import functions as sf

    # One text of lines: Spark 4.0 returns a list in an observation as a Java object.
    return [
        sf.concat_ws("\n", sf.collect_list(sf.col(METRICS_COLUMN) if metrics is None else metrics)).alias("told"),
        sf.lit(json.dumps(names)).alias("names"),
        sf.lit(route).alias("route"),
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
    numbers = [bucket_number(frame, job, part) for part in job.passes]
    number = numbers[0] if len(numbers) == 1 else sf.explode(sf.array(*numbers))
    rows = frame.select(*travelling_columns(frame, job), number.alias(BUCKET))
    # Rows without a time travel, too, so that the workers raise an error.
    rows = rows.where(sf.col(BUCKET).isNotNull() | ts.isNull())
    rows = rows.withColumn(BUCKET, sf.coalesce(sf.col(BUCKET), sf.lit(0)))
    rows = spread(rows, job.buckets, sf.col(BUCKET)).sortWithinPartitions(BUCKET, ts)
    if observation is None:
        matches = rows.mapInArrow(plan_function("acep_match", match_partition, job), result)
    else:
        result_and_metrics = rows.mapInArrow(
            plan_function("acep_match", match_partition, job, tells=True), with_metrics_column(result)
        )
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


def with_metrics_column(result: StructType) -> StructType:
    """Return the columns of the result and the column of metrics."""
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*result, StructField(METRICS_COLUMN, StringType())])


def bucket_numbers(frame: DataFrame, job: SentJob) -> list[Column]:
    """Return the number of a row's bucket in each pass; rows without a time get one, so that the workers raise."""
    from pyspark.sql import functions as sf

    ts = sf.col(quote_name(job.schema.ts))
    return [sf.when(ts.isNull(), part.first).otherwise(bucket_number(frame, job, part)) for part in job.passes]


def codes_of(frame: DataFrame, job: SentJob, numbers: Sequence[Column]) -> Column:
    """Return the array of a row's codes, from those in each pass; a row that ends the stream goes to all buckets."""
    from pyspark.sql import functions as sf

    ends = sf.col(quote_name(job.schema.ts)) >= end_column(frame.schema[job.schema.ts].dataType)
    all_buckets = [sf.lit(-1 - bucket) for bucket in range(job.buckets)]
    return sf.when(ends, sf.array(*all_buckets)).otherwise(sf.array(*numbers))


def batch_time() -> Column:
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

    sent = travelling_columns(frame, job)
    now = [batch_time()] if job.clocked else []
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
        rows = rows.mapInArrow(plan_function("acep_buckets", add_buckets, job), rows.schema)
    if marks is not None:
        rows = rows.unionAll(marks)
    if newer is not None:
        all_partitions = sf.explode(sf.array(*map(sf.lit, range(place.partitions))))
        rows = with_versions(rows, newer, {BUCKET: all_partitions})
    rows = spread(rows, place.partitions, sf.pmod(number, sf.lit(place.partitions)))
    return rows.mapInArrow(plan_function(STEP_IN_FILES, step_in_files, job, place), with_metrics_column(result))
