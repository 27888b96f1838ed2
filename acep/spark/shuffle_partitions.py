"""Warn of a number of shuffle partitions under which Spark's own work takes longer than matching."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep.errors import warn_caller
from acep.spark.query_start import can_announce
from acep.streaming.job import BUCKETS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SETTING", "shuffle_partitions", "warn_of_small_batch", "warn_of_state_partitions"]

SETTING = "spark.sql.shuffle.partitions"
MANY = 32
"""The number of partitions up to which what they cost is not worth a word. Spark's default is 200."""
SMALL = 2**26
"""The number of bytes below which a batch does not need so many partitions."""


def shuffle_partitions(spark: SparkSession, default: int = BUCKETS) -> int:
    """Return the number of shuffle partitions that a session is set to."""
    return int(spark.conf.get(SETTING) or default)


def warn_of_state_partitions(spark: SparkSession, buckets: int) -> None:
    """Warn of a stream whose state is in many more partitions of Spark's own store than it has buckets."""
    partitions = shuffle_partitions(spark, buckets)
    if partitions > max(MANY, buckets):
        warn_caller(
            f"each micro-batch writes {partitions} partitions of state for {buckets} bucket{'s' * (buckets > 1)}:"
            f' spark.conf.set("{SETTING}", {buckets}) before the checkpoint begins, which keeps the number'
        )


def warn_of_small_batch(frame: DataFrame, buckets: int, *, by_setting: bool) -> None:
    """Warn of a small batch that the setting of a local session spreads over many partitions, each of which is a
    task."""
    spark = frame.sparkSession
    if not by_setting or buckets <= MANY or not can_announce(spark):  # Spark Connect does not tell the size of a batch
        return
    master = spark.conf.get("spark.master", "") or ""
    if master.split("[")[0] == "local" and _size_of(frame) < SMALL:
        warn_caller(
            f"a small batch is spread over {buckets} partitions, each a task of Python:"
            f' spark.conf.set("{SETTING}", {BUCKETS}), or buckets={BUCKETS}'
        )


def _size_of(frame: DataFrame) -> int:
    """Return how many bytes Spark expects of a batch at most; a great number where it does not know."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return int(plan.stats().sizeInBytes())
