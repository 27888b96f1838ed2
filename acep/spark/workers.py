"""What Spark's Python workers do: pack rows by bucket, step a bucket, unpack results; and a batch in one go.

Rows travel as Arrow IPC bytes, one blob a bucket: the JVM then moves a few large rows instead of many small ones,
and pandas, which PySpark puts between, never touches a value (it would turn integers with nulls into floats).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acep.engine.columns import ticks_of
from acep.engine.compiled import why_not
from acep.errors import DataError
from acep.spark.buckets import Bucket
from acep.spark.job import Job
from acep.spark.times import clock_of, has_ended
from acep.spark.totals import TOLD

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

__all__ = ["BUCKET", "PACKED", "STEPPED", "TELLING", "TELLS", "match_partition", "pack", "step", "unpack"]

BUCKET = "__bucket"
BLOB_BYTES = 64 * 1024 * 1024
LATEST = 2**63 - 1

# What goes into a step and what comes out of it, as (column, Arrow type).
PACKED = pa.schema({"bucket": pa.int32(), "rows": pa.binary(), "time": pa.int64()})
STEPPED = pa.schema([("rows", pa.binary()), *TOLD])
TELLS = "__told"
TELLING = pa.struct(list(TOLD))


def to_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def from_bytes(data: bytes) -> pa.Table:
    """The table of :func:`to_bytes`."""
    return pa.ipc.open_stream(data).read_all()


def plain(rows: pa.Table) -> pa.Table:
    """Without metadata and nullability, so that tables of any origin can be joined."""
    return rows.cast(pa.schema([pa.field(f.name, f.type) for f in rows.schema]))


def events_only(job: Job, rows: pa.Table) -> pa.Table:
    """The rows without those that mark the end of the stream. Raises :class:`DataError` for a null time."""
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


# Streaming --------------------------------------------------------------------------------------


def pack(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows in, a row per bucket out.

    Each bucket gets a row, if only an empty one: then all buckets learn of the watermark in the same micro-batch,
    and what is late does not depend on which bucket an event falls into.
    """
    waiting: dict[int, list[pa.Table]] = {bucket: [] for bucket in range(job.buckets)}
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = events_only(job, pa.Table.from_batches([batch]))
        for part in range(len(job.passes)):
            column = f"{BUCKET}{part}"
            for bucket, some in by_bucket(rows, column):
                waiting[bucket].append(plain(some.select(job.columns)))
        size += batch.nbytes
        if size >= BLOB_BYTES:
            yield _blobs({bucket: tables for bucket, tables in waiting.items() if tables})
            waiting = {bucket: [] for bucket in waiting}
            size = 0
    yield _blobs(waiting)


def _blobs(waiting: dict[int, list[pa.Table]]) -> pa.RecordBatch:
    blobs = [to_bytes(pa.concat_tables(tables)) if tables else b"" for tables in waiting.values()]
    # Spark drops rows whose event time the watermark has passed, and would count a blob as one row: these never are.
    return pa.RecordBatch.from_arrays(
        [
            pa.array(list(waiting), pa.int32()),
            pa.array(blobs, pa.binary()),
            pa.array([LATEST] * len(blobs), pa.int64()),
        ],
        schema=PACKED,
    )


# Buckets as they stood after the last micro-batch, by a digest of their state: a worker that gets the same bucket
# again need not read the state. An entry is taken out when it is used, so a retried batch starts from the bytes.
_LIVE: OrderedDict[bytes, Bucket] = OrderedDict()
LIVE = 64


def _restored(job: Job, number: int, data: bytes) -> Bucket:
    bucket = _LIVE.pop(_digest(job, number, data), None)
    return bucket if bucket is not None else Bucket.loads(job, job.pass_of(number), data)


def _digest(job: Job, number: int, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32, key=f"{number} {job.engine} {job.fingerprint}".encode()[:64]).digest()


def step(job: Job, key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """One bucket in one micro-batch: its blobs and the watermark in, a row of result bytes and totals out."""
    import pandas as pd

    number = int(key[0])
    bucket = _restored(job, number, bytes(state.get[0])) if state.exists else Bucket(job, job.pass_of(number))
    bucket.begin(state.getCurrentProcessingTimeMs())
    for frame in frames:
        for blob in frame["rows"]:
            if blob:
                bucket.add(from_bytes(blob))
    watermark = state.getCurrentWatermarkMs()
    out: list[pa.Table] = []
    if has_ended(watermark, job.schema):
        out = bucket.finish()
    elif (clock := clock_of(watermark, job.tick_ms)) is not None:
        out = bucket.advance(clock)
    data = bucket.dumps()
    state.update((data,))
    if not bucket.ended:
        # So that the bucket is called again when the watermark moves, though no row of its comes.
        state.setTimeoutTimestamp(max(watermark, 0) + 1)
    _LIVE[_digest(job, number, data)] = bucket
    while len(_LIVE) > LIVE:
        _LIVE.popitem(last=False)
    row = {"rows": to_bytes(pa.concat_tables(out)) if out else b""} | _told(bucket, len(data))
    yield pd.DataFrame({name: [row[name]] for name in STEPPED.names})


def _told(bucket: Bucket, state: int) -> dict[str, Any]:
    return bucket.totals.told(len(bucket.held), state, bucket.job.engine == "auto" and why_not() is not None)


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Result bytes in, rows of the result out."""
    for batch in batches:
        for blob in batch.column(0):
            if data := blob.as_py():
                yield from from_bytes(data).to_batches()


# Batch ------------------------------------------------------------------------------------------


def match_partition(job: Job, batches: Iterable[pa.RecordBatch], *, tells: bool = False) -> Iterator[pa.RecordBatch]:
    """A partition of rows in the order of (bucket, ts) in, rows of the result out; ``tells``: with one more column,
    :data:`TELLS`, and one more row for each bucket, in which only that is not null."""
    current: tuple[int, Bucket] | None = None

    def emitted(bucket: Bucket, tables: list[pa.Table], *, last: bool) -> Iterator[pa.RecordBatch]:
        for table in tables:
            yield from (_telling(job, table, []) if tells else table).to_batches()
        if tells and last:
            yield from _telling(job, job.result.empty_table(), [_told(bucket, 0)]).to_batches()

    for batch in batches:
        if not batch.num_rows:
            continue
        rows = events_only(job, pa.Table.from_batches([batch]))
        for number, whole in by_bucket(rows, BUCKET):
            if current is not None and current[0] != number:
                yield from emitted(current[1], current[1].finish(), last=True)
                current = None
            if current is None:
                current = (number, Bucket(job, job.pass_of(number)))
            some = plain(whole.select(job.columns))
            current[1].begin(0)
            current[1].add(some)
            ticks, _ = ticks_of(job.schema.ts, some.column(job.schema.ts), job.schema.tick_ns or 1)
            # More of the last time may follow, and ties are ordered among all of them.
            found = current[1].advance(int(ticks[-1]) - 1)
            current[1].end()
            yield from emitted(current[1], found, last=False)
    if current is not None:
        yield from emitted(current[1], current[1].finish(), last=True)


def _telling(job: Job, rows: pa.Table, told: list[dict[str, Any]]) -> pa.Table:
    """Rows of the result, and rows of what buckets told, in one table."""
    columns = [pa.concat_arrays([*rows.column(f.name).chunks, pa.nulls(len(told), f.type)]) for f in job.result]
    numbers = pa.array([None] * rows.num_rows + told, TELLING)
    return pa.table([*columns, numbers], [*job.result.names, TELLS])
