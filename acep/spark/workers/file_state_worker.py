"""Process buckets whose state is in files, with one call of Python for each partition of a micro-batch.

The page docs/internals/spark_state.md has the design. A bucket reads the version that it had before the micro-batch,
adds its rows, writes its next version, and only then returns its results.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from acep.bucket_state.state_files import StateFile
from acep.errors import EngineError
from acep.overload.early_shedding import pack_decision, sheds_nothing
from acep.overload.event_choice import explored_in
from acep.overload.sampled_recall import pack_points, points_by_cell
from acep.spark.job import SentJob
from acep.spark.workers.batch_decision import decide_batch, refuse_open_gaps
from acep.spark.workers.bucket_rows import PartitionRows, SortedRows, rows_of_partition
from acep.spark.workers.needed_worker import count_in
from acep.spark.workers.row_sums import sum_of_rows
from acep.spark.workers.state_place import StatePlace, TaskContext, context_of_task
from acep.streaming.job import EXACT
from acep.streaming.query_versions import sort_versions
from acep.streaming.step import BucketRows, MicroBatch, SteppedBucket, end_step, take_step, with_metrics, write_step
from acep.streaming.time_spent import Stopwatch

__all__ = ["step_in_files", "with_exactness"]

ROWS = 1 << 14  # result rows in one record batch

Result = TypeVar("Result")


def step_in_files(
    job: SentJob, place: StatePlace, batches: Iterable[pa.RecordBatch], cores: int = 1
) -> Iterator[pa.RecordBatch]:
    """Process the buckets of a partition of a micro-batch, in as many threads as there are ``cores``: read their rows
    and yield rows of the result.

    The result has the additional column :data:`METRICS_COLUMN`, as in
    :func:`acep.spark.workers.spark_state_worker.match_partition`.

    Raises :class:`DataError`, :class:`SnapshotError` or :class:`EngineError`.
    """
    context = context_of_task(job, place)
    if place.batch_ids is None and context.partition >= place.partitions:
        raise _moved_error(place)
    marked = place.batch_ids is not None and place.partitions > 1
    with closing(rows_of_partition(job, batches, marked=marked)) as rows:
        if place.shedding is None:
            if place.batch_ids is None:
                refuse_open_gaps(job, context)
            yield from _step_buckets(job, place, context, rows, cores)
            return
        # The tasks that chose the events are done, so the decision is written.
        decision = decide_batch(job, place, place.shedding, context)
        out_of_reach = place.shedding.is_out_of_reach(decision)
        for batch in _step_buckets(job, place, context, rows, cores, is_out_of_reach=out_of_reach):
            yield with_exactness(batch, is_exact=sheds_nothing(decision))
        if context.partition == 0:
            texts = with_metrics(job, job.result.empty_table(), [pack_decision(decision)])
            yield from (with_exactness(batch, is_exact=True) for batch in texts.to_batches())


def with_exactness(rows: pa.RecordBatch, *, is_exact: bool) -> pa.RecordBatch:
    """Return rows of the result and of metrics, whose column :data:`EXACT` says whether nothing had been shed by then,
    neither before the events travelled nor on the workers."""
    exact = pa.array([is_exact] * rows.num_rows, pa.bool_())
    if EXACT in rows.schema.names:
        position = rows.schema.get_field_index(EXACT)
        return rows.set_column(position, EXACT, pc.and_(rows.column(position), exact))
    return rows.add_column(rows.num_columns - 1, EXACT, exact)


def _step_buckets(
    job: SentJob,
    place: StatePlace,
    context: TaskContext,
    rows: PartitionRows,
    cores: int,
    *,
    is_out_of_reach: bool = False,
) -> Iterator[pa.RecordBatch]:
    batch, partition, versions = context.batch, context.partition, context.versions
    if place.batch_ids is not None:
        partition = 0 if place.partitions == 1 else _marked_partition(rows, place)
    if any(number % place.partitions != partition for number in rows.numbers):
        raise _moved_error(place)
    old_versions = versions.begin_batch(batch)
    # Without rows the number of the partition cannot be checked, and it may be that of another one. Then nothing has
    # become certain either, as the row that moves the time goes to each partition.
    is_sure = place.batch_ids is not None or bool(rows.numbers)
    newest = max((tick for tick in (rows.newest, place.newest) if tick is not None), default=None)
    micro_batch = MicroBatch(job, versions, batch, old_versions, place.delay_ms, rows.now, place.seen, is_out_of_reach)
    newer = (*place.newer, *sort_versions(rows.versions))
    numbers = range(partition, job.buckets, place.partitions)

    def take(number: int, core: int) -> tuple[SteppedBucket, Stopwatch, BucketRows]:
        # Each core has a number of its own, so that times of the same core add up.
        watch = Stopwatch(partition + core)
        watch.packed = rows.spans if number == partition else []
        part = _bucket_rows(job, rows.take_rows(number), newest)
        if number == 0:
            counts = [count_in(count, place) for count in rows.counts]
            idle, idle_late = (sum(count for count, is_late in counts if is_late is kind) for kind in (False, True))
            part = replace(part, idle=idle, idle_late=idle_late, newest_idle=rows.newest_idle)
        if newer:
            part = replace(part, versions=newer, digest=f"{part.digest} {newer}")
        step = take_step(micro_batch, number, part, watch, is_sure=is_sure)
        watch.stop()
        return step, watch, part

    counted, explored = [], []
    # While the state of a bucket is written, the next one is processed. Results follow once it is durable.
    with ThreadPoolExecutor(1) as writer, closing(_on_cores(take, numbers, cores)) as steps:
        writing: _Writing | None = None
        for step, watch, part in steps:
            if place.sampled:
                counted.append(points_by_cell(job, place.cells, part.rows, step.out))
                explored += [] if place.exploring is None else [place.exploring.counts(job, part.rows, step.out)]
            last, writing = writing, _Writing(step, watch, writer.submit(write_step, micro_batch, step))
            if last is not None:
                yield from _results(micro_batch, last)
        if writing is not None:
            yield from _results(micro_batch, writing)
    if counted:
        yield from with_metrics(
            job, job.result.empty_table(), [pack_points(counted, explored_in(explored))]
        ).to_batches()


def _on_cores(take: Callable[[int, int], Result], numbers: Sequence[int], cores: int) -> Generator[Result, None, None]:
    """Yield what a function returns for some numbers and the number of a core, in the order of the numbers."""
    if cores == 1:
        yield from (take(number, 0) for number in numbers)
        return
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(cores)]
        waiting = [threads[i % cores].submit(take, number, i % cores) for i, number in enumerate(numbers)]
        try:
            for future in waiting:
                yield future.result()
        finally:
            for future in waiting:
                future.cancel()


@dataclass(frozen=True)
class _Writing:
    """A bucket whose state is being written."""

    step: SteppedBucket
    watch: Stopwatch
    new: Future[StateFile]


def _results(micro_batch: MicroBatch, writing: _Writing) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the result of a bucket, once its state is durable."""
    job, watch = micro_batch.job, writing.watch
    watch.start()
    new = writing.new.result()
    for table in writing.step.out:
        yield from with_metrics(job, table, []).to_batches(ROWS)
    metrics = end_step(micro_batch, writing.step, new, watch)
    yield from with_metrics(job, job.result.empty_table(), [metrics]).to_batches()


def _marked_partition(rows: PartitionRows, place: StatePlace) -> int:
    """Return the number of the partition from its marking row."""
    if rows.mark is None:
        raise _moved_error(place)
    return rows.mark % place.partitions


def _moved_error(place: StatePlace) -> EngineError:
    return EngineError(
        "the result of match was united with another DataFrame, or coalesced, and its state= is in files",
        hint=f"shuffle the result: found.repartition({place.partitions}).union(...), or found.repartition(1) in place"
        " of found.coalesce(1)",
    )


def _bucket_rows(job: SentJob, received_rows: SortedRows | None, newest: int | None) -> BucketRows:
    """Return the rows of a bucket as a step takes them. Rows that only advance its time are no part of the digest, as
    which of them come depends on how Spark divides its work."""
    if received_rows is None:
        return BucketRows(None, newest, "", ended=False)
    is_event = (received_rows.codes >= 0) & (received_rows.ticks < job.end)
    rows = received_rows.rows if is_event.all() else received_rows.rows.filter(pa.array(is_event))
    digest = f"{rows.num_rows} {sum_of_rows(rows)}" if rows.num_rows else ""
    ended = bool((received_rows.ticks >= job.end).any())
    return BucketRows(rows.select(job.columns), newest, digest, ended=ended)
