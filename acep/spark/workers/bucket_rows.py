"""Sort the rows of a partition by bucket and time; use temporary files if they are many."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acep.errors import DataError
from acep.events.columns import ticks_of
from acep.overload.load import SENT
from acep.spark.job import SentJob
from acep.spark.workers.spark_state_worker import NOW, VERSION, restore_names
from acep.streaming.punctuation_rows import are_punctuations
from acep.streaming.query_versions import NewVersion, versions_in_rows
from acep.streaming.step import BUCKET, newest_tick, remove_metadata

__all__ = ["PartitionRows", "SortedRows", "count_rows", "rows_of_partition"]

MAX_HELD_BYTES = 128 << 20
"""Bytes of rows that a partition holds in memory; more rows go to temporary files, one for each bucket."""


@dataclass(frozen=True)
class SortedRows:
    """Rows of a bucket in the order of time, with their ``codes`` and their times in ``ticks``, both int. A code is the
    number of the bucket, or ``-1 - number`` for a row that only advances its time."""

    rows: pa.Table
    codes: NDArray[np.int32]
    ticks: NDArray[np.int64]


@dataclass
class PartitionRows:
    """The rows of a partition by bucket: some ``in_memory``, and others in ``files``, which have no name and so vanish
    with the process. ``mark`` is the number in the marking row (``None`` without such a row), ``now`` is when the
    micro-batch began, and ``newest`` the newest time of its rows, in ticks. ``versions`` are new ones of queries, in
    rows of the ``version_buckets``. ``spans`` are the beginnings and ends of sorting and writing, in seconds since
    1970. ``counts`` are numbers of no bucket, which carry counts of events without a use, and ``newest_idle`` is the
    newest time of these, in ticks (:mod:`acep.spark.workers.needed_worker`)."""

    job: SentJob
    in_memory: Mapping[int, SortedRows] = field(default_factory=dict)
    files: dict[int, IO[bytes]] = field(default_factory=dict)
    mark: int | None = None
    now: int | None = None
    newest: int | None = None
    versions: list[NewVersion] = field(default_factory=list)
    version_buckets: set[int] = field(default_factory=set)
    spans: list[list[float]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    newest_idle: int | None = None

    @property
    def numbers(self) -> set[int]:
        """The numbers of the buckets that have rows, or a row with a version."""
        return {*self.in_memory, *self.files, *self.version_buckets}

    def take_rows(self, number: int) -> SortedRows | None:
        """Return the rows of a bucket; its file can be read only once."""
        sorted_rows, file = self.in_memory.get(number), self.files.pop(number, None)
        if file is None:
            return sorted_rows
        with file:
            file.seek(0)
            pieces = []
            while file.tell() < os.fstat(file.fileno()).st_size:
                pieces.append(pa.ipc.open_stream(file).read_all())
        if sorted_rows is not None:
            pieces.append(sorted_rows.rows)
        return _sort_rows(self.job, pa.concat_tables(pieces))[number]

    def close(self) -> None:
        """Close, and so remove, the files that were not read."""
        for file in self.files.values():
            file.close()

    def sort(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Sort the rows of batches, and keep them in memory in place of earlier ones."""
        began = time.time()
        rows = remove_metadata(restore_names(self.job, batches))
        self.in_memory = _sort_rows(self.job, rows.drop_columns([NOW]) if NOW in rows.column_names else rows)
        ticks = (newest_tick(self.job, part.ticks, self.now, part.rows) for part in self.in_memory.values())
        self.newest = max((tick for tick in (self.newest, *ticks) if tick is not None), default=None)
        self.spans.append([began, time.time()])

    def add_counts(self, rows: pa.RecordBatch) -> None:
        """Take rows that carry counts."""
        self.counts += (-1 - rows.column(BUCKET).to_numpy()).tolist()
        name, tick_ns = self.job.schema.ts, self.job.schema.tick_ns or 1
        ticks, _ = ticks_of(name, pa.chunked_array([rows.column(self.job.sent_as(name))]), tick_ns)
        self.newest_idle = max(int(ticks.max()), int(ticks.max()) if self.newest_idle is None else self.newest_idle)

    def write(self) -> None:
        """Move the rows in memory to the files of their buckets."""
        began = time.time()
        for number, sorted_rows in self.in_memory.items():
            if number not in self.files:
                self.files[number] = tempfile.TemporaryFile(dir=_folder())  # noqa: SIM115 - closed where it is read
            with pa.ipc.new_stream(self.files[number], sorted_rows.rows.schema) as writer:
                writer.write_table(sorted_rows.rows)
        self.in_memory = {}
        self.spans.append([began, time.time()])


def rows_of_partition(job: SentJob, batches: Iterable[pa.RecordBatch], *, marked: bool) -> PartitionRows:
    """Read the rows of a partition.

    If they are ``marked``, a row of a bucket whose number is too great may give the number of the partition; it is left
    out of the rows.

    Raises :class:`DataError` if a time is null.
    """
    partition, waiting, size = PartitionRows(job), list[pa.RecordBatch](), 0
    for batch in batches:
        rows = batch
        if marked and (marking := rows.column(BUCKET).to_numpy() >= job.buckets).any():
            partition.mark = rows.column(BUCKET)[int(marking.argmax())].as_py()
            rows = rows.filter(pa.array(~marking))
        if (counting := rows.column(BUCKET).to_numpy() < -job.buckets).any():
            partition.add_counts(rows.filter(pa.array(counting)))
            rows = rows.filter(pa.array(~counting))
        if VERSION in rows.schema.names:
            texts = rows.column(VERSION)
            partition.versions += versions_in_rows(texts.drop_null().to_pylist(), job.names)
            partition.version_buckets |= {*rows.column(BUCKET).filter(texts.is_valid()).to_pylist()}
            rows = rows.filter(texts.is_null()).select([name for name in rows.schema.names if name != VERSION])
        if not rows.num_rows:
            continue
        if partition.now is None and NOW in rows.schema.names:
            partition.now = rows.column(NOW)[0].as_py()
        waiting.append(rows)
        size += rows.nbytes
        if size > MAX_HELD_BYTES:
            partition.sort(waiting)
            partition.write()
            waiting, size = [], 0
    if waiting:
        partition.sort(waiting)
    return partition


def count_rows(job: SentJob, rows: pa.Table) -> dict[str, int | None]:
    """Count the rows of a micro-batch as Spark's observation does, if all of them travel, each event to one bucket.

    A row that ends the stream travels to all buckets. One whose key is null, or a punctuation, has no bucket: it is no
    event of any partition, but its time counts.
    """
    ticks, _ = ticks_of(job.schema.ts, rows.column(job.schema.ts), job.schema.tick_ns or 1)
    timed = ticks[ticks < job.end]
    ends = (len(ticks) - len(timed)) // job.buckets
    null_buckets = rows.column(BUCKET).null_count
    null_keys = null_buckets and null_buckets - int(are_punctuations(rows, job.schema).sum())
    n_events = len(timed) - null_buckets
    seen = int(timed.max()) if len(timed) else None
    counts = dict.fromkeys(("events", "needed", SENT), n_events)
    return counts | {"rows": len(timed) + ends, "null_keys": null_keys, "seen": seen}


def _sort_rows(job: SentJob, rows: pa.Table) -> dict[int, SortedRows]:
    """Sort rows by bucket, then by time, so that the rows of each bucket are a slice and need no copy."""
    codes = rows.column(BUCKET).to_numpy()
    numbers = np.where(codes >= 0, codes, -1 - codes)
    ticks, null = ticks_of(job.schema.ts, rows.column(job.schema.ts), job.schema.tick_ns or 1)
    if null is not None and null.any():
        raise DataError(
            f"column `{job.schema.ts}` is null in some event", hint="fill it in, or drop the row", code="data_null"
        )
    order = np.argsort(ticks, kind="stable")
    order = order[np.argsort(numbers[order].astype(np.int16 if job.buckets < 1 << 15 else np.int32), kind="stable")]
    rows, codes, numbers, ticks = rows.take(pa.array(order)), codes[order], numbers[order], ticks[order]
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    return {
        int(numbers[first]): SortedRows(rows.slice(first, end - first), codes[first:end], ticks[first:end])
        for first, end in pairwise(cuts)
    }


def _folder() -> str | None:
    """Return the folder for temporary files that Spark gives to an executor; ``None`` for the system's folder."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
