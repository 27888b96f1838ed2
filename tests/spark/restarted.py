"""A stream by hand whose query is stopped, changed by ``acep state``, and started again in another form."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import UUID

import pyarrow as pa
import pytest

from acep.bucket_state import run_orders
from acep.cli import main
from acep.events.fields import column_at
from acep.runtime.key_hashes import hash_keys
from acep.streaming import live_buckets
from acep.streaming.job import Job
from acep.streaming.punctuation_rows import are_punctuations
from acep.streaming.step import BUCKET
from tests.runner.streams import fast_disk
from tests.spark import by_hand_files
from tests.spark.by_hand import numbered, rows_of, the_job
from tests.spark.by_hand_files import FileStream

__all__ = [
    "PAIRS",
    "QUERY_ID",
    "Restarted",
    "all_files",
    "as_spark",
    "random_table",
    "refusal",
    "rows_without_change",
    "spread_as_spark",
    "stopped",
]

QUERY_ID = UUID(int=1)
PAIRS = "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 20"


def spread_as_spark(job: Job, table: pa.Table) -> pa.Table:
    """The columns of a job with the numbers of buckets that Spark would give."""
    out = pa.table({name: column_at(table, name) for name in job.columns})
    marks = are_punctuations(table, job.schema)
    for i, part in enumerate(job.passes):
        columns = [column_at(table, key) for key in part.keys]
        numbers: list[int | None] = [part.first] * table.num_rows
        if columns and table.num_rows:
            numbers = [part.first + int(n) for n in hash_keys(columns) % part.size]
        values = [column.to_pylist() for column in columns]
        for row in range(table.num_rows):
            if marks[row] or any(column[row] is None or column[row] != column[row] for column in values):
                numbers[row] = None
        out = out.append_column(f"{BUCKET}{i}", pa.array(numbers, pa.int32()))
    return out


@contextmanager
def as_spark() -> Iterator[None]:
    """Spread rows as Spark does, and begin like a new process."""
    run_orders._begun.clear()
    live_buckets.forget_live()
    with mock.patch.object(by_hand_files, "spread", spread_as_spark), fast_disk():
        yield
    run_orders._begun.clear()
    live_buckets.forget_live()


class Restarted:
    """A stream in a checkpoint that is stopped and started with another number of buckets between micro-batches."""

    def __init__(self, job: Job, folder: Path, delay_ms: int = 0, rng: random.Random | None = None) -> None:
        self.job, self.folder, self.delay_ms, self.rng = job, folder, delay_ms, rng
        self.stream, self.rows = self.start(job), list[dict[str, Any]]()
        for name in ("offsets", "commits"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "metadata").write_text(json.dumps({"id": str(QUERY_ID)}))

    def start(self, job: Job, batch: int = 0, run: int = 100) -> FileStream:
        stream = FileStream(job, self.folder / "acep", self.delay_ms, rng=self.rng, query=QUERY_ID.int)
        stream.batch, stream.run = batch, UUID(int=run)
        return stream

    def push(self, table: pa.Table) -> list[dict[str, Any]]:
        (self.folder / "offsets" / str(self.stream.batch)).write_text("v1")
        rows = self.stream.push(table)
        (self.folder / "commits" / str(self.stream.batch - 1)).write_text("v1")
        self.rows += rows
        return rows

    def change(self, job: Job, *options: str) -> int:
        """Run the command with some options, and start the stream as another job if it succeeds. Return its exit
        code."""
        run_orders._begun.clear()
        live_buckets.forget_live()
        code = main(["state", str(self.folder), *options])
        run, schema = self.stream.run.int + 1, self.stream.schema
        if code == 0 and "--dry-run" not in options:
            self.job = job
        self.stream = self.start(self.job, self.stream.batch, run)
        self.stream.schema = schema
        return code


def random_table(seed: int, *, size: int = 180, texts: bool = False, keys: int = 12) -> pa.Table:
    rng = random.Random(seed)
    numbers = [rng.randrange(keys) for _ in range(size)]
    columns = {
        "ts": sorted(rng.randrange(size) for _ in range(size)),
        "type": rng.choices("abc", k=size),
        "k": [f"key {number}" for number in numbers] if texts else numbers,
        "x": [rng.randrange(9) for _ in range(size)],
    }
    return numbered(pa.table(columns))


def rows_without_change(job: Job, batches: list[pa.Table], folder: Path, delay_ms: int = 0) -> list[dict[str, Any]]:
    rows, _ = FileStream(job, folder, delay_ms).stream(batches)
    return rows


def all_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stopped(folder: Path, query: Any = PAIRS, *, delay_ms: int = 5, **options: Any) -> Restarted:
    """A query that has done some micro-batches with four buckets."""
    table = random_table(3)
    restarted = Restarted(the_job(table, query, **{"buckets": 4} | options), folder, delay_ms)
    for batch in rows_of(table, range(table.num_rows), [60, 60])[:2]:
        restarted.push(batch)
    return restarted


def refusal(capsys: pytest.CaptureFixture[str], restarted: Restarted, *options: str) -> str:
    """The message of the command with some options, which must be refused in one line, with nothing written."""
    before = all_files(restarted.folder)
    capsys.readouterr()
    assert restarted.change(restarted.job, *options) == 2
    assert all_files(restarted.folder) == before
    message = capsys.readouterr().err
    assert len(message.splitlines()) == 2
    assert "hint: " in message
    return message
