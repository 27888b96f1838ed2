"""A job over a DataFrame: columns pruned, rows spread by bucket, workers called."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep.errors import DataError
from acep.spark.job import Job, Pass, columns_read, plans_of
from acep.spark.times import DELAY_KEY, delay_of, event_time, quoted
from acep.spark.totals import observed
from acep.spark.types import spark_schema
from acep.spark.workers import BUCKET, PACKED, STEPPED, TELLING, TELLS, match_partition, pack, step, unpack

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation
    from pyspark.sql.types import StructType

__all__ = ["over_batch", "over_stream"]

TIME = "__time"


# Columns ----------------------------------------------------------------------------------------


def _bucket(frame: DataFrame, part: Pass) -> Column:
    """The number of a row's bucket; null where a partition attribute is null or NaN, as such a row matches nothing."""
    from pyspark.sql import functions as sf

    if not part.keys:
        return sf.lit(part.first).cast("int")
    missing = sf.lit(False)
    for key in part.keys:
        column = sf.col(quoted(key))
        missing = missing | column.isNull()
        if frame.schema[key].dataType.typeName() in ("float", "double"):
            missing = missing | sf.isnan(column)
    number = sf.pmod(sf.xxhash64(*[sf.col(quoted(key)) for key in part.keys]), sf.lit(part.size)) + sf.lit(part.first)
    return sf.when(~missing, number.cast("int"))


def _travelling(frame: DataFrame, job: Job) -> list[Column]:
    """The columns that go to the workers; one that only breaks ties, and that Arrow cannot order, goes as text."""
    from pyspark.sql import functions as sf

    read = columns_read(plans_of(job.queries, job.schema), job.schema)
    out = []
    for name in job.columns:
        column = sf.col(quoted(name))
        kind = frame.schema[name].dataType.typeName()
        if name not in read and kind in ("struct", "array", "map", "variant"):
            column = sf.to_json(column)
        elif name not in read and job.schema.kind(name) is None and kind != "binary":
            column = column.cast("string")
        out.append(column.alias(name))
    return out


# Batch and stream -------------------------------------------------------------------------------


def over_batch(frame: DataFrame, job: Job, result: StructType, observation: Observation | None) -> DataFrame:
    """The result of a job over a DataFrame that is all there; an ``observation`` is told what it took."""
    from pyspark.sql import functions as sf
    from pyspark.sql.types import StructType

    ts = sf.col(quoted(job.schema.ts))
    numbers = [_bucket(frame, part) for part in job.passes]
    number = numbers[0] if len(numbers) == 1 else sf.explode(sf.array(*numbers))
    rows = frame.select(*_travelling(frame, job), number.alias(BUCKET))
    # Rows without a time go along, to be complained about.
    rows = rows.where(sf.col(BUCKET).isNotNull() | ts.isNull())
    rows = rows.withColumn(BUCKET, sf.coalesce(sf.col(BUCKET), sf.lit(0)))
    if hasattr(rows, "repartitionById"):
        rows = rows.repartitionById(job.buckets, sf.col(BUCKET))
    else:
        rows = rows.repartition(job.buckets, sf.col(BUCKET))
    rows = rows.sortWithinPartitions(BUCKET, ts)
    if observation is None:
        found = rows.mapInArrow(partial(match_partition, job), result)
    else:
        wide = pa.schema([(TELLS, TELLING)])
        both = rows.mapInArrow(partial(match_partition, job, tells=True), StructType([*result, *spark_schema(wide)]))
        told = both.observe(observation, *observed(job.names, f"{TELLS}.", bounded=job.budget is not None))
        found = told.where(sf.col(TELLS).isNull()).select(*result.names)
    if job.output != "count":
        return found
    if not job.several:
        return found.agg(sf.coalesce(sf.sum("count"), sf.lit(0)).cast("long").alias("count"))
    none = frame.sparkSession.createDataFrame([(name, 0) for name in job.names], result)
    return found.unionAll(none).groupBy("query").agg(sf.sum("count").alias("count"))


def over_stream(frame: DataFrame, job: Job, result: StructType, watermark: Any) -> DataFrame:
    """The result of a job over a streaming DataFrame.

    Raises :class:`DataError` where there is no watermark, or two.
    """
    from pyspark.sql.streaming.state import GroupStateTimeout
    from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

    ts = job.schema.ts
    rows = frame
    has = DELAY_KEY in (frame.schema[ts].metadata or {})
    if watermark is None and not has:
        raise DataError("a stream needs a watermark", hint='say how late events may come: watermark="10 minutes"')
    if watermark is not None:
        if has:
            raise DataError(f"`{ts}` has a watermark already", hint="leave watermark= out")
        delay = delay_of(watermark, job.schema)
        time = event_time(ts, frame.schema[ts].dataType, job.schema)
        if frame.schema[ts].dataType.typeName() == "timestamp":
            rows = rows.withWatermark(ts, delay)
        else:
            rows = rows.withColumn(TIME, time).withWatermark(TIME, delay)
    numbers = [_bucket(frame, part).alias(f"{BUCKET}{i}") for i, part in enumerate(job.passes)]
    rows = rows.select(*_travelling(frame, job), *numbers)
    # A stateful operator wants to see an event time column. The watermark itself comes from the rows, above.
    held = [IntegerType(), BinaryType(), LongType()]
    marks: list[dict[str, Any] | None] = [None, None, {DELAY_KEY: 0}]
    packed = rows.mapInArrow(
        partial(pack, job),
        StructType([StructField(n, t, True, m) for n, t, m in zip(PACKED.names, held, marks, strict=True)]),
    )
    stepped = packed.groupBy("bucket").applyInPandasWithState(
        partial(step, job),
        spark_schema(STEPPED),
        "state binary",
        "append",
        GroupStateTimeout.EventTimeTimeout,
    )
    told = stepped.observe(f"acep_{job.fingerprint[:8]}", *observed(job.names, bounded=job.budget is not None))
    return told.select("rows").mapInArrow(unpack, result)
