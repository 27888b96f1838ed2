"""Warn of a micro-batch of ``foreachBatch`` that is matched by itself, as if it were all events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep.errors import warn_caller
from acep.spark.query_start import can_announce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["warn_of_micro_batch"]

QUERY = "sql.streaming.queryId"
"""The local property by which Spark tells a thread which streaming query it belongs to."""
ROWS_AT_HAND = "LogicalRDD"
"""Spark's node for rows that it has already, as those of a micro-batch."""


def warn_of_micro_batch(frame: DataFrame, function: str) -> None:
    """Warn if a batch DataFrame is the micro-batch that a function for ``foreachBatch`` has got: Spark does not call it
    a stream, and it has the events of one trigger alone. ``function`` takes the stream in its place."""
    spark = frame.sparkSession
    if not can_announce(spark) or spark.sparkContext.getLocalProperty(QUERY) is None:
        return
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    if all(leaves.apply(number).nodeName() == ROWS_AT_HAND for number in range(leaves.size())):
        warn_caller(
            "a micro-batch of foreachBatch is matched by itself, so no match goes from one to the next: give the stream"
            f" to {function}"
        )
