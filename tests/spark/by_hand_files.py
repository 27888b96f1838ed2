"""The way through files called in this process, as Spark would call it: micro-batches, tries, runs and restarts."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep.events.columns import ticks_of
from acep.spark.columns.times import end_of_stream
from acep.spark.newest_time import NEVER, mark_newest
from acep.spark.workers import bucket_rows, state_place
from acep.spark.workers.file_state_worker import step_in_files
from acep.spark.workers.state_place import StatePlace
from acep.streaming import live_buckets
from acep.streaming.job import Job
from acep.streaming.punctuation_rows import are_punctuations
from acep.streaming.step import BUCKET, newest_tick
from acep.streaming.totals import METRICS_COLUMN
from tests.runner.streams import fast_disk
from tests.spark.by_hand import COUNTED, spread, with_versions

__all__ = ["FileStream"]


class FileStream:
    """A streaming query whose state is in ``folder``; ``delay_ms`` is that of its watermark. Where it is ``coalesced``
    all partitions are called by one task.

    By the way ``each`` the driver says which micro-batch it is, and each partition has a row that says its number; by
    the way ``driver`` there is one partition, in this process, and the driver knows the newest time. On both, events
    that are not ``needed`` stay behind.

    With ``rng`` a partition is sometimes run twice, workers forget, and a micro-batch is sometimes begun by a new run.
    """

    def __init__(
        self,
        job: Job,
        folder: Path,
        delay_ms: int,
        *,
        partitions: int = 2,
        rng: random.Random | None = None,
        query: int = 1,
        coalesced: bool = False,
        way: Literal["files", "each", "driver"] = "files",
        needed: Callable[[dict[str, Any]], bool] | None = None,
    ) -> None:
        self.job, self.rng, self.way, self.needed = job, rng, way, needed
        partitions = 1 if way == "driver" else partitions
        self.query, self.coalesced = str(uuid.UUID(int=query)), coalesced
        self.place = StatePlace(str(folder), 100, delay_ms, min(partitions, job.buckets))
        self.batch = 0
        self.run = uuid.UUID(int=100)
        self.told: dict[int, dict[str, Any]] = {}

    def push(self, table: pa.Table, versions: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Rows of the result that a micro-batch gives. ``versions`` of queries are rows for each partition."""
        announced_to = 0 if self.way == "driver" else self.place.partitions
        rows = coded(self.job, table, announced_to, needed=self.needed, rng=self.rng)
        if self.way == "driver":
            ticks, _ = ticks_of(self.job.schema.ts, table.column(self.job.schema.ts), self.job.schema.tick_ns or 1)
            self.place = replace(self.place, newest=newest_tick(self.job, ticks, 0, table))
        if self.job.dynamic:
            rows = with_versions(rows, [text for text in versions for _ in range(self.place.partitions)])
            to = [*range(self.place.partitions)] * len(versions)
            codes = rows.column(BUCKET).to_pylist()[: rows.num_rows - len(to)] + to
            rows = rows.set_column(rows.column_names.index(BUCKET), BUCKET, pa.array(codes, pa.int32()))
        return self._ran(rows)

    def end(self) -> list[dict[str, Any]]:
        """Rows of the result that the row gives that ends the stream."""
        marks = [-1 - bucket for bucket in range(self.job.buckets)]
        schema = self.schema
        ts = schema.field(self.job.schema.ts)
        ends = pa.array([end_of_stream(spark_type(ts.type))] * len(marks)).cast(ts.type)
        known = {BUCKET: pa.array(marks, pa.int32()), ts.name: ends}
        columns = {field.name: known.get(field.name, pa.nulls(len(marks), field.type)) for field in schema}
        return self._ran(pa.table(columns))

    def stream(self, batches: Sequence[pa.Table], *, end: bool = True) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Rows of the result over all of them, and the totals."""
        found = [row for table in batches for row in self.push(table)]
        if end:
            found += self.end()
        totals = {name: sum(one[name] for one in self.told.values()) for name in COUNTED}
        totals["matches"] = sum(query["matches"] for one in self.told.values() for query in one["queries"])
        return found, totals

    def _ran(self, rows: pa.Table) -> list[dict[str, Any]]:
        self.schema = rows.schema
        numbers = [n if n >= 0 else -1 - n for n in rows.column(BUCKET).to_pylist()]
        out: list[dict[str, Any]] = []
        if self._chance(0.2):  # a run that does a part of the micro-batch, and is killed
            self._tried(rows, numbers, self._any(self.place.partitions))
            self.run = uuid.UUID(int=self.run.int + 1)
        for partition in range(self.place.partitions):
            found, told = self._tried(rows, numbers, partition)
            if self._chance(0.3):
                again, _ = self._tried(rows, numbers, partition)
                assert repr(again) == repr(found)
            out += found
            self.told |= told
        self.batch += 1
        return out

    def _tried(self, rows: pa.Table, numbers: Sequence[int], partition: int) -> tuple[list[dict[str, Any]], Any]:
        if self._chance(0.3):
            live_buckets.forget_live()
        mine = [row for row, n in enumerate(numbers) if n % self.place.partitions == partition]
        found: list[dict[str, Any]] = []
        told = {}
        buckets = iter(range(partition, self.job.buckets, self.place.partitions))
        held = 200 if self._chance(0.3) else bucket_rows.MAX_HELD_BYTES  # many rows go to files
        with self._on(partition), mock.patch.object(bucket_rows, "MAX_HELD_BYTES", held):
            part, place = rows.take(pa.array(mine, pa.int64())), self.place
            if self.way != "files":
                place = replace(place, batch_ids=(self.batch, self.query, str(self.run)))
            if self.way == "each" and place.partitions > 1:
                part = pa.concat_tables([part, marking_row(self.job, place.partitions, partition, part.schema)])
            cores = 2 if self.way == "driver" else 1
            for batch in step_in_files(self.job, place, part.to_batches(max_chunksize=5), cores):
                for row in batch.to_pylist(maps_as_pydicts="strict"):
                    text = row.pop(METRICS_COLUMN)
                    if text is None:
                        found.append(row)
                    else:
                        told[next(buckets)] = json.loads(text)
        return found, told

    @contextmanager
    def _on(self, partition: int) -> Iterator[None]:
        """Be Spark, on a disk that is fast."""
        says = (self.batch, self.query, str(self.run), 0 if self.coalesced else partition)

        def ids_of_task() -> tuple[int, str, str, int]:  # a mock takes longer to make
            return says

        with mock.patch.object(state_place, "_ids_of_task", ids_of_task), fast_disk():
            yield

    def _chance(self, of: float) -> bool:
        return self.rng is not None and self.rng.random() < of

    def _any(self, size: int) -> int:
        return 0 if self.rng is None else self.rng.randrange(size)


def marking_row(job: Job, partitions: int, number: int, schema: pa.Schema) -> pa.Table:
    """The row that says which partition it is in (:func:`acep.spark.job_run.marks_of`)."""
    first = -(-job.buckets // partitions) * partitions
    columns = {field.name: pa.nulls(1, field.type) for field in schema}
    return pa.table(columns | {BUCKET: pa.array([first + number], pa.int32())}, schema)


def spark_type(held: pa.DataType) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(held, prefer_timestamp_ntz=True)


def coded(
    job: Job,
    table: pa.Table,
    partitions: int,
    *,
    needed: Callable[[dict[str, Any]], bool] | None = None,
    rng: random.Random | None = None,
) -> pa.Table:
    """The rows that travel, with codes, a copy for each pass. Those that are not ``needed`` stay behind. The newest
    ones go to all ``partitions`` (0: to none), as a few tasks would mark them, in batches of a few rows."""
    wide = spread(job, table)
    rows = wide.select(job.columns)
    stays = [needed is not None and not needed(row) for row in table.to_pylist()]
    parts = []
    for i in range(len(job.passes)):
        numbers = pa.array(wide.column(f"{BUCKET}{i}").to_pylist(), pa.int32())
        codes = pc.if_else(pa.array(stays, pa.bool_()), pa.scalar(None, pa.int32()), numbers)
        parts.append(rows.append_column(BUCKET, codes).filter(codes.is_valid()))
    ticks, _ = ticks_of(job.schema.ts, table.column(job.schema.ts), job.schema.tick_ns or 1)
    latest = job.greatest_tick(0)
    is_near = (ticks <= (job.end if latest is None else latest)) | are_punctuations(table, job.schema)
    ticks = np.where((ticks < job.end) & is_near, ticks, NEVER)
    cut = table.num_rows if rng is None else rng.randint(0, table.num_rows)
    for task in (range(cut), range(cut, table.num_rows)):
        batches = [np.array(task[start : start + 3], np.int64) for start in range(0, len(task), 3)]
        marks = mark_newest(ticks[batch] for batch in batches)
        marked = [row for batch, flags in zip(batches, marks, strict=True) for row in batch[flags]]
        for number in range(partitions):
            codes = pa.array([-1 - number] * len(marked), pa.int32())
            parts.append(rows.take(pa.array(marked, pa.int64())).append_column(BUCKET, codes))
    return pa.concat_tables(parts)
