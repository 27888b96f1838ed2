"""Build Spark expressions over the rows of a micro-batch as they come, for one of which no event is shed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acep.spark.columns.times import ticks_of_row
from acep.spark.job import SentJob
from acep.spark.job_run import bucket_numbers, codes_of, has_bucket, has_null_key, sent_columns
from acep.spark.newest_time import ANNOUNCES, with_announcements, with_punctuations

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["UnshedColumns", "add_columns", "unshed_columns", "varying_column"]


@dataclass(frozen=True)
class UnshedColumns:
    """Expressions over rows as they come. Spark observes those faster than rows with computed columns, which it has to
    create first.

    ``observed`` are aggregates of all rows; a count that equals another is left out
    (:meth:`acep.spark.foreach.observed_batches.Observed.read_all` adds it). ``ticks`` is the time of an event, and
    ``nought`` is 0, which only the row tells. ``idle`` tells for each pass whether an event has a bucket, but no use.
    ``sent`` are columns of the rows for which ``travels`` is true, or of all rows.
    """

    observed: tuple[Column, ...]
    ticks: Column
    nought: Column
    idle: tuple[Column, ...]
    travels: Column | None
    sent: tuple[Column, ...]

    def counting_columns(self, before: int | None) -> list[Column]:
        """Return the aggregates of all rows. Idle rows with a time less than ``before`` (ticks) count as late."""
        from pyspark.sql import functions as sf

        if before is None or not self.idle:
            return list(self.observed)
        # As for `varying`, but with few calls of the JVM, since each micro-batch has another number.
        late = self.ticks < sf.get(sf.expr(f"array(CAST('{before}' AS BIGINT))"), self.nought)
        return [*self.observed, add_columns([sf.count_if(is_idle & late) for is_idle in self.idle]).alias("late")]


def unshed_columns(
    frame: DataFrame,
    job: SentJob,
    event: Column,
    usable: Column | None,
    announced_to: int = 0,
    is_no_event: Column | None = None,
) -> UnshedColumns:
    """Build the expressions over rows with the columns of ``frame``.

    ``event`` tells whether a row is an event, and ``usable`` whether some query can use it (``None``: each event). Rows
    that have the newest time go to so many partitions: ``announced_to`` (0: none does). ``is_no_event`` tells whether a
    row is a punctuation, if these travel by themselves.
    """
    from pyspark.sql import functions as sf

    in_buckets = [event & has_bucket(frame, job, part) for part in job.passes]
    ticks = sf.when(event, ticks_of_row(job.schema.ts, frame.schema[job.schema.ts].dataType, job.schema))
    nought = sf.pmod(ticks, sf.lit(1))
    observed = (
        sf.count(sf.lit(1)).alias("rows"),
        add_columns([sf.count_if(in_bucket) for in_bucket in in_buckets]).alias("events"),
        sf.count_if(event & has_null_key(frame, job)).alias("null_keys"),
        sf.max(ticks).alias("seen"),
    )
    codes = codes_of(frame, job, bucket_numbers(frame, job))
    travels = None if usable is None else usable | ~sf.coalesce(event, sf.lit(False))
    if announced_to:
        codes = with_announcements(codes, announced_to, travels)
        travels = None if travels is None else travels | sf.col(ANNOUNCES)
    if is_no_event is not None:
        codes = with_punctuations(codes, is_no_event)
    sent = tuple(sent_columns(frame, job, codes))
    if usable is None:
        return UnshedColumns(observed, ticks, nought, (), None, sent)
    needed = add_columns([sf.count_if(in_bucket & usable) for in_bucket in in_buckets]).alias("needed")
    idle = tuple(in_bucket & ~usable for in_bucket in in_buckets)
    return UnshedColumns((*observed, needed), ticks, nought, idle, travels, sent)


def add_columns(parts: Sequence[Column]) -> Column:
    """Return the sum of some columns."""
    return sum(parts[1:], parts[0])


def varying_column(numbers: Sequence[int], ticks: Column) -> Callable[[int], Column]:
    """Return a function from each of these numbers, which change with each micro-batch, to its column. ``ticks`` is the
    time of a row.

    A literal becomes part of the code that Spark generates, so a new one would be compiled again and run slowly at
    first. An array element whose index depends on the row does not.
    """
    from pyspark.sql import functions as sf

    distinct = sorted(set(numbers))
    literals = sf.array(*(sf.lit(number).cast("long") for number in distinct))
    nought = sf.pmod(ticks, sf.lit(1))
    return lambda number: sf.get(literals, nought + sf.lit(distinct.index(number)))
