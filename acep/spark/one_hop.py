"""Step buckets whose state is in files: one call of Python for each partition of a micro-batch.

The page docs/spark_state.md has the design. A bucket reads the version that it had before the micro-batch, takes in its
rows, writes its next version, and only then gives its results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acep.engine.columns import ticks_of
from acep.errors import DataError, EngineError
from acep.spark.job import SentJob
from acep.spark.workers import received
from acep.streaming.sampled import points_by_cell, points_told
from acep.streaming.spent import Stopwatch
from acep.streaming.step import BUCKET, NOTHING, BucketRows, MicroBatch, plain, step_bucket, telling
from acep.streaming.versions import Versions

__all__ = ["HASH", "NOW", "Place", "call_name", "step_in_files", "versions_of"]

ROWS = 1 << 14  # of the result that travel at a time
HASH = "__hash"  # a column with a hash of each row
NOW = "__now"  # a column with the time at which the micro-batch began, in milliseconds, where the job needs a clock


@dataclass(frozen=True)
class Place:
    """Where a job runs: its state is in ``folder``, where the last ``keep`` micro-batches can be begun again.
    ``delay_ms`` is how far the watermark stays behind. Bucket ``n`` is in partition ``n % partitions``. ``seen`` is the
    greatest time of rows that did not travel in earlier micro-batches, in ticks; ``sampled``: some may not
    travel for want of time, so that the match points of each key are counted, by the cells of the keys if these are
    ``cells``, attributes that have them.

    In foreachBatch the driver knows the micro-batch, the query and its run (``known``), and a sink may do anything with
    the result. Of several partitions each then has a row without a hash, which only says which partition it is: behind
    a union the task's own number is another one."""

    folder: str
    keep: int
    delay_ms: int
    partitions: int
    seen: int | None = None
    sampled: bool = False
    cells: tuple[str, ...] = ()
    known: tuple[int, str, str] | None = None


def step_in_files(job: SentJob, place: Place, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Step the buckets that a partition of a micro-batch holds: their rows in, rows of the result out.

    The result has one more column, :data:`TOLD`, as that of :func:`acep.spark.workers.match_partition`.

    Raises :class:`DataError`, :class:`SnapshotError` or :class:`EngineError`.
    """
    batch, partition, versions = _context(job, place)
    if place.known is None and partition >= place.partitions:
        raise _moved(place)
    filled = [batch for batch in batches if batch.num_rows]
    if place.known is not None:
        partition, filled = _unmarked(filled, place) if place.partitions > 1 else (0, filled)
    watch = Stopwatch(partition)
    there = versions.before(batch)
    # Without rows the number of the partition must be believed. It is right if a micro-batch with rows was stepped in
    # this run, as a wrong number is refused there. Until then nothing is given that another task may give too.
    sure = (
        place.known is not None or bool(filled) or any(one.fed and versions.of_this_run(one) for one in there.values())
    )
    parts, now = dict[int, BucketRows](), None
    if filled:
        rows = plain(received(job, filled))
        now = rows.column(NOW)[0].as_py() if NOW in rows.column_names else None
        codes = rows.column(BUCKET).to_numpy()
        numbers = np.where(codes >= 0, codes, -1 - codes)
        if (numbers % place.partitions != partition).any():
            raise _moved(place)
        ticks, null = ticks_of(job.schema.ts, rows.column(job.schema.ts), job.schema.tick_ns or 1)
        if null is not None and null.any():
            raise DataError(f"column `{job.schema.ts}` is null in some event", hint="fill it in, or drop the row")
        order = np.argsort(ticks, kind="stable")  # by bucket, then by time: what is in order need not be copied again
        order = order[np.argsort(numbers[order].astype(np.int16 if job.buckets < 1 << 15 else np.int32), kind="stable")]
        rows, codes, numbers, ticks = rows.take(pa.array(order)), codes[order], numbers[order], ticks[order]
        cuts = np.searchsorted(numbers, np.arange(job.buckets + 1))
        for number in np.flatnonzero(np.diff(cuts)).tolist():
            own = slice(cuts[number], cuts[number + 1])
            parts[number] = _part(job, rows.slice(own.start, own.stop - own.start), codes[own], ticks[own], now)
    micro_batch = MicroBatch(job, versions, batch, there, place.delay_ms, now, place.seen)
    counted = []
    for number in range(partition, job.buckets, place.partitions):
        part = parts.pop(number, None) or NOTHING
        found, done = step_bucket(micro_batch, number, part, watch, sure=sure)
        for table in found:
            yield from telling(job, table, []).to_batches(ROWS)
        if place.sampled:
            counted.append(points_by_cell(job, place.cells, part.rows, found))
        yield from telling(job, job.result.empty_table(), [done]).to_batches()
        watch = Stopwatch(partition)
    if counted:
        yield from telling(job, job.result.empty_table(), [points_told(counted)]).to_batches()


def _unmarked(batches: list[pa.RecordBatch], place: Place) -> tuple[int, list[pa.RecordBatch]]:
    """Read the number of the partition from the row that marks it, and leave that row out."""
    for i, batch in enumerate(batches):
        if batch.column(HASH).null_count:
            mark = batch.column(HASH).is_null()
            code = batch.column(BUCKET).filter(mark)[0].as_py()
            batches[i] = batch.filter(pc.invert(mark))
            return (-1 - code) % place.partitions, [batch for batch in batches if batch.num_rows]
    raise _moved(place)


def _moved(place: Place) -> EngineError:
    return EngineError(
        "the result of match was united with another DataFrame, or coalesced, and its state= is in files",
        hint=f"shuffle the result: found.repartition({place.partitions}).union(...), or found.repartition(1) in place"
        " of found.coalesce(1)",
    )


def _part(
    job: SentJob, rows: pa.Table, codes: NDArray[np.int32], ticks: NDArray[np.int64], now: int | None
) -> BucketRows:
    ends = ticks >= job.end
    events = (codes >= 0) & ~ends
    latest = job.bound(now)
    seen = ticks if not ends.any() else ticks[~ends]
    seen = seen if latest is None else seen[seen <= latest]
    taken = rows.select(job.columns)
    return BucketRows(
        taken if events.all() else taken.filter(pa.array(events)),
        int(seen.max()) if len(seen) else None,
        f"{len(rows)} {int(rows.column(HASH).to_numpy().sum()) % 2**64}",
        ended=bool(ends.any()),
    )


def _context(job: SentJob, place: Place) -> tuple[int, int, Versions]:
    """The micro-batch, the task's number of the partition, and the versions of the run."""
    batch, query, run, partition = _says() if place.known is None else (*place.known, 0)
    return batch, partition, versions_of(job, place, query, run)


def versions_of(job: SentJob, place: Place, query: str, run: str) -> Versions:
    """Name the versions of a job in a run of a streaming query, both by Spark's ids."""
    return Versions(place.folder, query=query, call=call_name(job), run=run, buckets=job.buckets, keep=place.keep)


def call_name(job: SentJob) -> str:
    """Name a call among those of a streaming query."""
    return job.fingerprint[:32]


def _says() -> tuple[int, str, str, int]:
    """Tell what Spark says: the micro-batch, the streaming query, its run, the partition."""
    from pyspark import TaskContext

    context = TaskContext.get()
    names = ("streaming.sql.batchId", "sql.streaming.queryId", "spark.jobGroup.id")
    batch, query, run = (None if context is None else context.getLocalProperty(name) for name in names)
    if context is None or batch is None or query is None or run is None:
        raise EngineError(
            "Spark did not say which micro-batch this is", hint="run it by writeStream, or leave state= out"
        )
    return int(batch), query, run, context.partitionId()
