"""Process a micro-batch in one bucket: take its rows, and return result rows and the metrics of the bucket."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.bucket_state.state_files import StateFile, StateFiles
from acep.errors import DataError, DataWarning
from acep.events.columns import ticks_of
from acep.native.compiled import why_not
from acep.streaming.buckets import Bucket
from acep.streaming.clause_buckets import ClauseBucket
from acep.streaming.job import Job
from acep.streaming.live_buckets import keep_live, live_key_of, take_live
from acep.streaming.progress import moment_text, mostly_late, mostly_late_text
from acep.streaming.punctuation_rows import are_punctuations
from acep.streaming.query_versions import NewVersion
from acep.streaming.revised_rows import RevisedRows
from acep.streaming.time_spent import Stopwatch
from acep.streaming.times import begin_after, first_open_tick, watermark_of
from acep.streaming.totals import METRICS_COLUMN

__all__ = [
    "BUCKET",
    "BucketRows",
    "MicroBatch",
    "SteppedBucket",
    "add_rows",
    "bucket_of",
    "end_step",
    "events_only",
    "final_rows",
    "make_bucket",
    "metrics_of_bucket",
    "newest_tick",
    "reached_time",
    "remove_metadata",
    "split_by_bucket",
    "step_bucket",
    "take_step",
    "with_metrics",
    "write_step",
]

BUCKET = "__bucket"  # the column with the number of the bucket of a row


def remove_metadata(rows: pa.Table) -> pa.Table:
    """Remove metadata and nullability, so that tables of any origin can be concatenated."""
    return rows.cast(pa.schema([pa.field(f.name, f.type) for f in rows.schema]))


def events_only(job: Job, rows: pa.Table) -> pa.Table:
    """Leave out the rows that mark the end of the stream. Raises :class:`DataError` for a null time."""
    ticks, null = ticks_of(job.schema.ts, rows.column(job.schema.ts), job.schema.tick_ns or 1)
    if null is not None and null.any():
        raise DataError(
            f"column `{job.schema.ts}` is null in some event", hint="fill it in, or drop the row", code="data_null"
        )
    events = ticks < job.end
    return rows if events.all() else rows.filter(pa.array(events))


def newest_tick(job: Job, ticks: npt.NDArray[np.int64], now: int | None, rows: pa.Table | None = None) -> int | None:
    """Return the newest of the times of rows, in ticks, in a micro-batch that began at ``now``, in milliseconds (needed
    if the job has a bound by the clock). The end of the stream and times too far ahead do not count; ``None``: there is
    no other. Of ``rows``, those with these times, a punctuation is never too far ahead."""
    latest = job.greatest_tick(now)
    counts = ticks < job.end
    if latest is not None:
        is_near = ticks <= latest
        if rows is not None and not is_near.all():
            is_near |= are_punctuations(rows, job.schema)
        counts &= is_near
    counted = ticks[counts]
    return int(counted.max()) if len(counted) else None


def split_by_bucket(rows: pa.Table, column: str) -> Iterator[tuple[int, pa.Table]]:
    """Yield each bucket and its rows in order. Rows without a bucket belong to no partition and are left out."""
    numbers = rows.column(column)
    if numbers.null_count:
        rows = rows.filter(numbers.is_valid())
        numbers = rows.column(column)
    codes = numbers.combine_chunks().to_numpy(zero_copy_only=False) if rows.num_rows else np.empty(0, np.int32)
    order = None if (codes[1:] >= codes[:-1]).all() else np.argsort(codes, kind="stable")
    codes = codes if order is None else codes[order]
    starts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist()] if len(codes) else []
    for start, end in zip(starts, [*starts[1:], len(codes)], strict=False):
        bucket_rows = rows.slice(start, end - start) if order is None else rows.take(pa.array(order[start:end]))
        yield int(codes[start]), bucket_rows


def add_rows(bucket: Bucket, rows: pa.Table, watermark: int, now: int | None, watch: Stopwatch) -> None:
    """Add rows of a micro-batch to a bucket. ``now``, when it began, and ``watermark``, that of all buckets, are in
    milliseconds."""
    job, totals, ended = bucket.job, bucket.totals, bucket.ended
    late, ahead, duplicates = totals.late, totals.ahead, totals.duplicates
    watch.rows += rows.num_rows
    bucket.add(rows, first_open_tick(watermark, job.tick_ms), job.greatest_tick(now))
    watch.ahead += totals.ahead - ahead
    watch.duplicates += totals.duplicates - duplicates
    if not ended:  # afterwards every row is late
        watch.late += totals.late - late


def final_rows(bucket: Bucket, watermark: int, delay_ms: int, *, ended: bool) -> list[pa.Table]:
    """Return the result rows that are final once a bucket has all rows of a micro-batch, and late events.

    ``watermark`` (milliseconds) is that of the rows up to the micro-batch before; the bucket may have seen newer ones.
    """
    late = bucket.take_late_rows()
    if ended:
        return late + bucket.finish()
    tick_ms = bucket.job.tick_ms
    bound = first_open_tick(max(watermark, watermark_of(bucket.hold_back.greatest, delay_ms, tick_ms)), tick_ms)
    if bucket.job.revised:
        return late + bucket.revise(bound, at_once=bucket.job.matches_at_once(delay_ms))
    return late + bucket.advance(bound)


def metrics_of_bucket(bucket: Bucket, state: int, watermark: int, watch: Stopwatch) -> str:
    """Return the metrics of a bucket as JSON. ``state`` is its size in bytes, ``watermark`` in milliseconds; ``watch``
    was started with the micro-batch."""
    job, newest = bucket.job, bucket.hold_back.greatest
    now = {
        "held": len(bucket.hold_back) + (len(bucket.stream) if isinstance(bucket.stream, RevisedRows) else 0),
        "state": state,
        "live": bucket.stream.live,
        "reference": int(job.engine == "auto" and why_not() is not None),
        "watermark": watermark,
        "newest": None if newest is None else watermark_of(newest, 0, job.tick_ms),
        "instants": job.schema.instants,
        "ended": bucket.ended,
        "pass": bucket.part.first,
        "version": 0 if bucket.queries is None else bucket.queries.newest,
    }
    return bucket.totals.to_json(now | watch.to_metrics())


@dataclass(frozen=True)
class BucketRows:
    """The rows of a micro-batch for one bucket. ``newest`` is the newest time of all rows of the micro-batch, in ticks,
    in whichever bucket they are, without rows too far ahead (``None``: there are none); ``ended`` says whether the
    stream ends with it. The same rows have the same ``digest``, in any order. ``versions``: new ones of queries.
    ``duplicates``: rows that were left out, as their events had come before. Of events that no query can use, ``idle``
    came in time and ``idle_late`` came late; they are counted, wherever they would be. ``newest_idle`` is the newest
    time of these, in ticks."""

    rows: pa.Table | None
    newest: int | None
    digest: str
    ended: bool
    versions: tuple[NewVersion, ...] = ()
    duplicates: int = 0
    idle: int = 0
    idle_late: int = 0
    newest_idle: int | None = None


@dataclass(frozen=True)
class MicroBatch:
    """A micro-batch of a job whose state is in files: its number, the state versions that it begins with
    (``old_versions``), the delay of the watermark, when it began (``now``, in milliseconds, if the job needs a clock),
    and the greatest time ``seen`` in earlier micro-batches in rows that no bucket has, in ticks. One that
    ``is_out_of_reach`` takes longer than its bound of time whatever is shed."""

    job: Job
    versions: StateFiles
    batch: int
    old_versions: Mapping[int, StateFile]
    delay_ms: int
    now: int | None
    seen: int | None = None
    is_out_of_reach: bool = False

    @property
    def watermark(self) -> int:
        """The watermark of all buckets up to the micro-batch before, in milliseconds."""
        return watermark_of(self.greatest, self.delay_ms, self.job.tick_ms)

    @property
    def greatest(self) -> int | None:
        """The greatest tick of earlier micro-batches; ``None``: there is none."""
        ticks = (self.seen, *(version.greatest for version in self.old_versions.values()))
        return max((tick for tick in ticks if tick is not None), default=None)

    @property
    def final(self) -> int | None:
        """The tick before which events are final when this micro-batch begins; ``None``: none is."""
        return first_open_tick(self.watermark, self.job.tick_ms)

    @property
    def since(self) -> int | None:
        """The tick from which on versions hold that come with this micro-batch, the same in all buckets."""
        return begin_after(self.greatest, self.job.tick_ms)


def bucket_of(micro_batch: MicroBatch, number: int) -> Bucket:
    """Return a bucket as it is before a micro-batch, from its state."""
    job, old = micro_batch.job, micro_batch.old_versions.get(number)
    return make_bucket(job, number, None if old is None else micro_batch.versions.read(old))


def make_bucket(job: Job, number: int, data: bytes | None) -> Bucket:
    """Return a bucket of a job, as it begins or from its state. Raises :class:`SnapshotError` as
    :meth:`Bucket.loads` does."""
    kind, part = Bucket if job.clause is None else ClauseBucket, job.pass_of(number)
    if job.has_rules:
        from acep.streaming.rule_buckets import RuleBucket  # few streams have rules

        kind = RuleBucket
    return kind(job, part) if data is None else kind.loads(job, part, data)


@dataclass(frozen=True)
class SteppedBucket:
    """A micro-batch that a bucket has processed: its ``number``, the result rows ``out``, which may be given once the
    state is written, and its state as ``data``, with the ``digest`` of the rows that it has received."""

    number: int
    bucket: Bucket
    out: list[pa.Table]
    data: bytes
    digest: str


def step_bucket(
    micro_batch: MicroBatch,
    number: int,
    bucket_rows: BucketRows,
    watch: Stopwatch,
    look: Callable[[Bucket], None] | None = None,
) -> tuple[list[pa.Table], str]:
    """Process a micro-batch in a bucket whose state is in files; return the result rows and the metrics as JSON.

    The bucket's next state version is durable when this returns. ``look`` is called with the bucket after it.

    Raises :class:`DataError` or :class:`SnapshotError`.
    """
    step = take_step(micro_batch, number, bucket_rows, watch)
    metrics = end_step(micro_batch, step, write_step(micro_batch, step), watch)
    _warn_if_late(micro_batch.job, step.bucket, reached_time(micro_batch, step.bucket), watch)
    if look is not None:
        look(step.bucket)
    return step.out, metrics


def _warn_if_late(job: Job, bucket: Bucket, watermark: int, watch: Stopwatch) -> None:
    """Warn if most rows of a micro-batch came late, unless those of the one before did too."""
    late, already = mostly_late(watch.late, watch.rows), bucket.mostly_late
    bucket.mostly_late = late or (already and not watch.rows)
    if late and not already:
        reached = moment_text(watermark) if job.schema.instants else watermark * job.tick_ms[1] // job.tick_ms[0]
        warnings.warn(mostly_late_text(reached), DataWarning, stacklevel=3)


def take_step(
    micro_batch: MicroBatch, number: int, bucket_rows: BucketRows, watch: Stopwatch, *, is_sure: bool = True
) -> SteppedBucket:
    """Process a micro-batch in a bucket without writing its state. If it ``is_sure`` that the number of the bucket is
    right, there are the result rows that are certain now.

    Raises :class:`DataError` or :class:`SnapshotError`.
    """
    job, versions, watermark = micro_batch.job, micro_batch.versions, micro_batch.watermark
    old = micro_batch.old_versions.get(number)
    live_key = live_key_of(job, f"{versions.call} {number}")
    bucket = (None if old is None else take_live(live_key, versions.unique_name(old))) or bucket_of(micro_batch, number)
    if micro_batch.now is not None:
        bucket.begin(micro_batch.now)
    if bucket.pace is not None:
        bucket.pace.is_out_of_reach = micro_batch.is_out_of_reach
    with watch.matching():
        if bucket_rows.versions:
            watch.went_on += bucket.replace(bucket_rows.versions, micro_batch.since, micro_batch.final)
        if bucket_rows.rows is not None and bucket_rows.rows.num_rows:
            add_rows(bucket, bucket_rows.rows, watermark, micro_batch.now, watch)
        bucket.totals.duplicates += bucket_rows.duplicates
        watch.duplicates += bucket_rows.duplicates
        bucket.totals.events += bucket_rows.idle
        bucket.totals.late += bucket_rows.idle_late
        bucket.totals.see_idle(bucket_rows.newest_idle)
        watch.late += bucket_rows.idle_late
        if bucket_rows.newest is not None:
            bucket.hold_back.see(bucket_rows.newest)
        out = final_rows(bucket, watermark, micro_batch.delay_ms, ended=bucket_rows.ended) if is_sure else []
    data = bucket.dumps()
    digest = hashlib.blake2b(
        f"{old and old.digest} {bucket_rows.digest} {bucket_rows.ended}".encode(), digest_size=16
    ).hexdigest()
    return SteppedBucket(number, bucket, out, data, digest)


def write_step(micro_batch: MicroBatch, step: SteppedBucket) -> StateFile:
    """Write the state of a bucket after a micro-batch, and return it once it is durable. This may run in a thread.

    Raises :class:`SnapshotError`.
    """
    versions, greatest = micro_batch.versions, step.bucket.hold_back.greatest
    new = versions.write(micro_batch.batch, step.number, greatest, step.digest, step.data)
    if step.number == 0:
        versions.clean(micro_batch.batch)
    return new


def end_step(micro_batch: MicroBatch, step: SteppedBucket, new: StateFile, watch: Stopwatch) -> str:
    """Keep a bucket in memory, whose state is in a version, and return its metrics as JSON."""
    job, versions, bucket = micro_batch.job, micro_batch.versions, step.bucket
    if bucket.pace is None:  # with a pace, an earlier attempt may have written other measurements
        keep_live(live_key_of(job, f"{versions.call} {step.number}"), versions.unique_name(new), bucket)
    return metrics_of_bucket(bucket, len(step.data), reached_time(micro_batch, bucket), watch)


def reached_time(micro_batch: MicroBatch, bucket: Bucket) -> int:
    """Return the watermark of a bucket after a micro-batch, in milliseconds."""
    own_watermark = watermark_of(bucket.hold_back.greatest, micro_batch.delay_ms, micro_batch.job.tick_ms)
    return max(micro_batch.watermark, own_watermark)


def with_metrics(job: Job, rows: pa.Table, texts: list[str]) -> pa.Table:
    """Return one table of result rows and of rows with the metrics of buckets in the column :data:`METRICS_COLUMN`."""
    columns = [pa.chunked_array([*rows.column(f.name).chunks, pa.nulls(len(texts), f.type)]) for f in job.result]
    last = pa.chunked_array([pa.nulls(rows.num_rows, pa.string()), pa.array(texts, pa.string())])
    return pa.table([*columns, last], [*job.result.names, METRICS_COLUMN])
