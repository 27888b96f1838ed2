"""Leave the events of a stream behind that no query can use, and let some rows carry their number.

The events of a stream are counted since it began, in the state of its buckets. So a few rows go to the first partition
with a count in place of the number of a bucket (:mod:`acep.spark.workers.needed_worker`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from acep.overload.needed_events import uses_of
from acep.spark.columns.needed_filter import filter_column
from acep.spark.job import SentJob
from acep.spark.job_run import bucket_numbers, codes_of, event_ticks
from acep.spark.newest_time import ANNOUNCES, NEVER, with_announcements
from acep.spark.row_functions import row_function
from acep.spark.workers.needed_worker import NEWEST, mark_rows
from acep.spark.workers.state_place import StatePlace

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["usable_column", "with_needed_rows"]

IDLE, NUMBER, MARKS = "__idle", "__number", "__marks"


def usable_column(frame: DataFrame, job: SentJob) -> Column | None:
    """Return the column that tells whether some query can use an event of a stream; ``None`` if all events travel."""
    if job.op is not None or job.late or job.dynamic or job.clause is not None:
        return None
    uses = uses_of(job.plans, ids=job.schema.id is not None, budget=job.budget)
    return filter_column(frame.schema, uses, job.schema.type)


def with_needed_rows(frame: DataFrame, job: SentJob, place: StatePlace, usable: Column) -> tuple[DataFrame, Column]:
    """Return the rows, and the codes of the buckets to which each travels: none for an event without a use."""
    from pyspark.sql import functions as sf

    ticks, numbers = event_ticks(frame, job), bucket_numbers(frame, job)
    rows = frame.withColumns(
        {IDLE: ticks.isNotNull() & ~usable} | {f"{NUMBER}{i}": number for i, number in enumerate(numbers)}
    )
    n_events = [sf.when(sf.col(f"{NUMBER}{i}").isNotNull(), 1).otherwise(0) for i in range(len(numbers))]
    weight = sf.when(sf.col(IDLE), sum(n_events[1:], n_events[0])).otherwise(0).cast("long")
    mark = row_function("acep_mark", partial(mark_rows, job, place), "long", 2)
    rows = rows.withColumn(MARKS, mark(sf.coalesce(ticks, sf.lit(NEVER)), weight))
    rows = rows.withColumn(ANNOUNCES, sf.col(MARKS).bitwiseAND(sf.lit(NEWEST)) != 0)
    going = [sf.when(~sf.col(IDLE), sf.col(f"{NUMBER}{i}")) for i in range(len(numbers))]
    codes = with_announcements(codes_of(frame, job, going), place.partitions)
    counting = sf.lit(-1 - place.first_count) - sf.shiftright(MARKS, 1) * sf.lit(place.partitions)
    codes = sf.when(sf.col(MARKS) > NEWEST, sf.concat(codes, sf.array(counting.cast("int")))).otherwise(codes)
    return rows.where(~sf.col(IDLE) | (sf.col(MARKS) != 0)), codes
