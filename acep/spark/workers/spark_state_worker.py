"""Functions for Spark's Python workers: pack rows by bucket, process a bucket, unpack results; match a whole batch.

Rows travel as Arrow IPC bytes, one blob per bucket. So the JVM moves a few large rows instead of many small ones, and
pandas, which PySpark uses in between, does not change values (it would turn integers with nulls into floats).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acep.events.buffers import read_table, table_bytes
from acep.events.columns import ticks_of
from acep.spark.job import SentJob
from acep.spark.newest_time import NEVER
from acep.streaming.buckets import Bucket
from acep.streaming.computed_buckets import bucket_codes
from acep.streaming.live_buckets import keep_live, live_key_of, take_live
from acep.streaming.query_versions import versions_in_rows
from acep.streaming.step import (
    BUCKET,
    add_rows,
    events_only,
    final_rows,
    make_bucket,
    metrics_of_bucket,
    newest_tick,
    remove_metadata,
    split_by_bucket,
    with_metrics,
)
from acep.streaming.time_spent import Stopwatch
from acep.streaming.times import first_open_tick, first_tick_after, watermark_of
from acep.streaming.totals import METRICS_COLUMN

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

__all__ = [
    "NOW",
    "SPAN",
    "STEPPED",
    "VERSION",
    "add_buckets",
    "match_partition",
    "pack",
    "packed_schema",
    "restore_names",
    "step",
    "unpack",
]

NOW = "__now"  # column with the time at which the micro-batch began, in milliseconds, if the job needs a clock
VERSION = "__version"  # column with a new version of a query as JSON, in a row that is no event
BLOB_BYTES = 64 * 1024 * 1024
AT_ONCE = 1 << 16  # rows of a DataFrame matched at once, at least: Spark's Arrow batches have 10,000
LATEST = 2**63 - 1

SPAN = "span"
# Input and output of :func:`step`, as (column, Arrow type). The rows of all buckets have the newest time of the packed
# rows, in ticks. That of the first one has the span of packing, its beginning and its end as JSON. This column is
# observed and does not travel: Spark gives a query up if a task that it repeats sends other rows than before.
PACKED = pa.schema(
    {
        "bucket": pa.int32(),
        "rows": pa.binary(),
        "ended": pa.bool_(),
        "time": pa.int64(),
        "newest": pa.int64(),
        SPAN: pa.string(),
    }
)
VERSIONS = pa.field("versions", pa.string())  # of queries, as JSON, if the job is dynamic
STEPPED = pa.schema([("rows", pa.binary()), (METRICS_COLUMN, pa.string())])


def restore_names(job: SentJob, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return the rows of batches as a table whose columns have their own names again."""
    names = {job.sent_as(name): name for name in job.columns}
    rows = pa.Table.from_batches(batches)
    return rows.rename_columns([names.get(name, name) for name in rows.column_names])


def with_computed_buckets(job: SentJob, rows: pa.Table, name: str) -> pa.Table:
    """Return rows with their buckets by the expressions of PARTITION BY in the column ``name``; codes below 0 stay."""
    assert job.clause is not None
    codes = rows.column(name).combine_chunks().to_numpy(zero_copy_only=False)
    buckets = bucket_codes(job.clause.plan, rows, job.buckets)
    index = rows.column_names.index(name)
    return rows.set_column(index, name, pa.array(np.where(codes < 0, codes, buckets).astype(np.int32)))


def add_buckets(job: SentJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows as they travel, with their buckets by the expressions of PARTITION BY."""
    for batch in batches:
        if batch.num_rows:
            rows = with_computed_buckets(job, restore_names(job, [batch]), BUCKET)
            yield from rows.rename_columns(batch.schema.names).to_batches()


def packed_schema(job: SentJob) -> pa.Schema:
    """Return the columns of the rows of :func:`pack`."""
    return PACKED.append(VERSIONS) if job.dynamic else PACKED


# Streaming --------------------------------------------------------------------------------------


def pack(job: SentJob, batches: Iterable[pa.RecordBatch], *, announces: bool) -> Iterator[pa.RecordBatch]:
    """Pack the rows of a partition into one row per bucket.

    Each bucket gets a row, even if it is empty, so that all buckets get the watermark, the end of the stream and, if it
    ``announces`` it, the newest time in the same micro-batch.
    """
    waiting: dict[int, list[pa.Table]] = {bucket: [] for bucket in range(job.buckets)}
    size, ended, packing, texts, newest = 0, False, 0.0, list[str](), NEVER
    for batch in batches:
        if not batch.num_rows:
            continue
        began = time.perf_counter()
        if VERSION in batch.schema.names:
            texts += batch.column(VERSION).drop_null().to_pylist()
            batch = batch.filter(batch.column(VERSION).is_null())  # noqa: PLW2901
        all_rows = restore_names(job, [batch])
        rows = events_only(job, all_rows)
        ended = ended or rows.num_rows < all_rows.num_rows
        if announces and rows.num_rows:
            ticks, _ = ticks_of(job.schema.ts, rows.column(job.schema.ts), job.schema.tick_ns or 1)
            now = rows.column(NOW)[0].as_py() if NOW in rows.column_names else None
            tick = newest_tick(job, ticks, now, rows)
            newest = newest if tick is None else max(newest, tick)
        if job.clause is not None and job.clause.has_computed_buckets:
            rows = with_computed_buckets(job, rows, f"{BUCKET}0")
        for part in range(len(job.passes)):
            column = f"{BUCKET}{part}"
            for bucket, bucket_rows in split_by_bucket(rows, column):
                waiting[bucket].append(remove_metadata(bucket_rows.select(job.columns)))
        size += batch.nbytes
        packing += time.perf_counter() - began
        if size >= BLOB_BYTES:
            yield _pack_blobs(
                job, {bucket: tables for bucket, tables in waiting.items() if tables}, packing, ended=False
            )
            waiting = {bucket: [] for bucket in waiting}
            size, packing = 0, 0.0
    yield _pack_blobs(job, waiting, packing, ended=ended, texts=texts, newest=newest)


def _pack_blobs(
    job: SentJob,
    waiting: dict[int, list[pa.Table]],
    packing: float,
    *,
    ended: bool,
    texts: Sequence[str] = (),
    newest: int = NEVER,
) -> pa.RecordBatch:
    began = time.perf_counter()
    blobs = [table_bytes(pa.concat_tables(tables)) if tables else b"" for tables in waiting.values()]
    end, seconds = time.time(), packing + time.perf_counter() - began
    # Spark drops rows behind the watermark, and would count a blob as one late row. The time LATEST avoids this.
    newer = [pa.array([json.dumps(texts) if texts else None] * len(blobs), pa.string())] if job.dynamic else []
    return pa.RecordBatch.from_arrays(
        [
            pa.array(list(waiting), pa.int32()),
            pa.array(blobs, pa.binary()),
            pa.array([ended] * len(blobs), pa.bool_()),
            pa.array([LATEST] * len(blobs), pa.int64()),
            pa.array([newest] * len(blobs), pa.int64()),
            pa.array([json.dumps([end - seconds, end]), *[None] * (len(blobs) - 1)], pa.string()),
            *newer,
        ],
        schema=packed_schema(job),
    )


def _name_of_state(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def step(
    job: SentJob, delay_ms: int, key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Process one bucket in one micro-batch: read its blobs, and yield a row of result bytes and metrics."""
    import pandas as pd
    from pyspark import TaskContext

    context = TaskContext.get()
    watch = Stopwatch(0 if context is None else context.partitionId())
    number = int(key[0])
    live_key = live_key_of(job, f"{context and context.getLocalProperty('sql.streaming.queryId')} {number}")
    if state.exists:
        data = bytes(state.get[0])
        bucket = take_live(live_key, _name_of_state(data)) or make_bucket(job, number, data)
    else:
        bucket = make_bucket(job, number, None)
    began = state.getCurrentProcessingTimeMs()
    bucket.begin(began)
    watermark, ended, texts, newest = state.getCurrentWatermarkMs(), False, list[str](), NEVER
    for frame in frames:
        newest = max([newest, *map(int, frame["newest"])])  # a timeout brings a frame without rows
        if job.dynamic:
            texts += [text for versions_json in frame["versions"].dropna() for text in json.loads(versions_json)]
        ended = ended or bool(frame["ended"].any())
        for blob in frame["rows"]:
            if blob:
                rows = read_table(blob)
                with watch.matching():
                    add_rows(bucket, rows, watermark, began, watch)
    with watch.matching():
        if texts:
            # Spark does not tell a bucket the time before its watermark has moved: it is at most the delay then.
            since = first_tick_after(max(watermark, 0) + delay_ms, job.tick_ms) if state.exists else None
            watch.went_on += bucket.replace(
                versions_in_rows(texts, job.names), since, first_open_tick(watermark, job.tick_ms)
            )
        if newest > NEVER:
            bucket.hold_back.see(newest)
        out = final_rows(bucket, watermark, delay_ms, ended=ended)
    data = bucket.dumps()
    state.update((data,))
    # The timeout calls the bucket again when the watermark moves, even without new rows.
    state.setTimeoutTimestamp(max(watermark, 0) + 1)
    keep_live(live_key, _name_of_state(data), bucket)
    reached = max(watermark, watermark_of(bucket.hold_back.greatest, delay_ms, job.tick_ms))
    blob = table_bytes(pa.concat_tables(out)) if out else b""
    yield pd.DataFrame({"rows": [blob], METRICS_COLUMN: [metrics_of_bucket(bucket, len(data), reached, watch)]})


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the result from result bytes."""
    for batch in batches:
        for blob in batch.column(0):
            if data := blob.as_py():
                yield from read_table(data).to_batches()


# Batch ------------------------------------------------------------------------------------------


def match_partition(
    job: SentJob, batches: Iterable[pa.RecordBatch], *, tells: bool = False, at_once: int = AT_ONCE
) -> Iterator[pa.RecordBatch]:
    """Match a partition of rows sorted by (bucket, ts), at least ``at_once`` of them at a time, and yield rows of the
    result. If it ``tells``, they have the additional column :data:`METRICS_COLUMN`, and each bucket an additional row
    in which only this column is not null."""
    current: tuple[int, Bucket] | None = None

    def emit(bucket: Bucket, tables: list[pa.Table], *, last: bool) -> Iterator[pa.RecordBatch]:
        for table in tables:
            yield from (with_metrics(job, table, []) if tells else table).to_batches()
        if tells and last:
            yield from with_metrics(
                job, job.result.empty_table(), [metrics_of_bucket(bucket, 0, 0, Stopwatch())]
            ).to_batches()

    for some_batches in _group_batches(batches, at_once):
        rows = events_only(job, restore_names(job, some_batches).combine_chunks())
        for number, bucket_rows in split_by_bucket(rows, BUCKET):
            if current is not None and current[0] != number:
                yield from emit(current[1], current[1].finish(), last=True)
                current = None
            if current is None:
                current = (number, Bucket(job, job.pass_of(number), is_batch=True))
            plain_rows = remove_metadata(bucket_rows.select(job.columns))
            current[1].begin(0)
            current[1].add(plain_rows)
            ticks, _ = ticks_of(job.schema.ts, plain_rows.column(job.schema.ts), job.schema.tick_ns or 1)
            # More rows with the last time may follow, and ties are ordered among all of them.
            tables = current[1].advance(int(ticks[-1]))
            current[1].end()
            yield from emit(current[1], tables, last=False)
    if current is not None:
        yield from emit(current[1], current[1].finish(), last=True)


def _group_batches(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches in groups of at least so many rows; the last group may have fewer."""
    waiting, size = list[pa.RecordBatch](), 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        size += batch.num_rows
        if size >= rows:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting
