"""Describe the jobs that acep starts by itself in Spark's UI. Those of a DataFrame are started by its user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acep.spark.query_start import can_announce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DESCRIPTION", "describe_jobs"]

DESCRIPTION = "spark.job.description"


@contextmanager
def describe_jobs(spark: SparkSession, text: str) -> Iterator[None]:
    """Describe the jobs that this thread starts meanwhile, behind what Spark says of a micro-batch if there is one.

    On Spark Connect jobs are not described.
    """
    if not can_announce(spark):
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty(DESCRIPTION)
    context.setLocalProperty(DESCRIPTION, f"{before}\nacep: {text}" if before else f"acep: {text}")
    try:
        yield
    finally:
        context.setLocalProperty(DESCRIPTION, before)  # type: ignore[arg-type]
