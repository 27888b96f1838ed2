"""Step a bucket in one micro-batch: rows by bucket in, rows of the result and what the bucket tells out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from acep.engine.columns import ticks_of
from acep.engine.compiled import why_not
from acep.errors import DataError
from acep.streaming.buckets import Bucket
from acep.streaming.job import Job
from acep.streaming.spent import Stopwatch
from acep.streaming.times import before, passed
from acep.streaming.totals import TOLD

__all__ = ["BUCKET", "by_bucket", "decided", "events_only", "plain", "telling", "told"]

BUCKET = "__bucket"  # the column with the number of the bucket of a row


def plain(rows: pa.Table) -> pa.Table:
    """Without metadata and nullability, so that tables of any origin can be joined."""
    return rows.cast(pa.schema([pa.field(f.name, f.type) for f in rows.schema]))


def events_only(job: Job, rows: pa.Table) -> pa.Table:
    """Leave out the rows that mark the end of the stream. Raises :class:`DataError` for a null time."""
    ticks, null = ticks_of(job.schema.ts, rows.column(job.schema.ts), job.schema.tick_ns or 1)
    if null is not None and null.any():
        raise DataError(f"column `{job.schema.ts}` is null in some event", hint="fill it in, or drop the row")
    events = ticks < job.end
    return rows if events.all() else rows.filter(pa.array(events))


def by_bucket(rows: pa.Table, column: str) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each bucket, their order kept; rows without a bucket belong to no partition and are left out."""
    numbers = rows.column(column)
    if numbers.null_count:
        rows = rows.filter(numbers.is_valid())
        numbers = rows.column(column)
    codes = numbers.combine_chunks().to_numpy(zero_copy_only=False) if rows.num_rows else np.empty(0, np.int32)
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    starts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist()] if len(codes) else []
    for start, end in zip(starts, [*starts[1:], len(codes)], strict=False):
        yield int(codes[start]), rows.take(pa.array(order[start:end]))


def decided(bucket: Bucket, watermark: int, delay_ms: int, *, ended: bool) -> list[pa.Table]:
    """Give the rows of the result that are certain once a bucket has taken in all rows of a micro-batch.

    ``watermark`` (milliseconds) is that of all buckets up to the micro-batch before; the bucket's own may be beyond it.
    """
    if ended:
        return bucket.finish()
    tick_ms = bucket.job.tick_ms
    bound = before(max(watermark, passed(bucket.held.greatest, delay_ms, tick_ms)), tick_ms)
    return [] if bound is None else bucket.advance(bound)


def told(bucket: Bucket, state: int, watermark: int, watch: Stopwatch) -> str:
    """Tell what a bucket has done so far: ``state`` is its size in bytes, ``watermark`` in milliseconds. ``watch`` was
    started with the micro-batch."""
    job, newest = bucket.job, bucket.held.greatest
    now = {
        "held": len(bucket.held),
        "state": state,
        "live": bucket.stream.live,
        "reference": int(job.engine == "auto" and why_not() is not None),
        "watermark": watermark,
        "newest": None if newest is None else passed(newest, 0, job.tick_ms),
        "instants": job.schema.instants,
        "ended": bucket.ended,
        "pass": bucket.part.first,
    }
    return bucket.totals.told(now | watch.shown())


def telling(job: Job, rows: pa.Table, texts: list[str]) -> pa.Table:
    """Put rows of the result, and rows of what buckets told, into one table with the column :data:`TOLD`."""
    columns = [pa.chunked_array([*rows.column(f.name).chunks, pa.nulls(len(texts), f.type)]) for f in job.result]
    last = pa.chunked_array([pa.nulls(rows.num_rows, pa.string()), pa.array(texts, pa.string())])
    return pa.table([*columns, last], [*job.result.names, TOLD])
