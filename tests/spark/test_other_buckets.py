"""``acep state --buckets``: a stream goes on with another number of buckets, and gives what it gives without that."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest import mock
from uuid import UUID

import pyarrow as pa
import pytest

from acep.bucket_state import runs
from acep.bucket_state.folders import LocalFolder
from acep.cli import main
from acep.errors import DataError, SnapshotError
from acep.events.fields import column_at
from acep.streaming import live_buckets
from acep.streaming.job import Job
from acep.streaming.key_hash import hash_keys
from acep.streaming.other_buckets import with_buckets
from acep.streaming.punctuation_rows import are_punctuations
from acep.streaming.step import BUCKET
from tests.complaints import fail_if_wrong
from tests.random_cases import Case as RandomCase
from tests.random_cases import random_case
from tests.spark import by_hand_files
from tests.spark.by_hand import numbered, rows_of, rows_that_differ, the_job
from tests.spark.by_hand_files import FileStream
from tests.spark.cases import Streamed, of_random, split

QUERY_ID = UUID(int=1)
PAIRS = "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 20"
CHAINS = "PATTERN SEQ(a p, b+ q[], c r) WHERE [k] AND q[i].x > p.x WITHIN 30 RETURN count(q[]) AS n"
WAITING = "PATTERN SEQ(a p, b q, !(c r)) WHERE [k] WITHIN 20"


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


@pytest.fixture(autouse=True)
def as_spark() -> Iterator[None]:
    """Spread rows as Spark does, and begin like a new process."""
    runs._begun.clear()
    live_buckets.forget_live()
    with mock.patch.object(by_hand_files, "spread", spread_as_spark), mock.patch("os.fsync"):
        yield
    runs._begun.clear()
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

    def change(self, buckets: int, *more: str) -> int:
        """Run the command, and start the stream with so many buckets if it succeeds. Return its exit code."""
        runs._begun.clear()
        live_buckets.forget_live()
        code = main(["state", str(self.folder), "--buckets", str(buckets), *more])
        run, schema = self.stream.run.int + 1, self.stream.schema
        if code == 0 and "--dry-run" not in more:
            self.job = with_buckets(self.job, buckets)
        self.stream = self.start(self.job, self.stream.batch, run)
        self.stream.schema = schema
        return code


def random_table(seed: int, *, size: int = 300, texts: bool = False) -> pa.Table:
    rng = random.Random(seed)
    keys = [rng.randrange(12) for _ in range(size)]
    columns = {
        "ts": sorted(rng.randrange(size) for _ in range(size)),
        "type": rng.choices("abc", k=size),
        "k": [f"key {key}" for key in keys] if texts else keys,
        "x": [rng.randrange(9) for _ in range(size)],
    }
    return numbered(pa.table(columns))


def rows_without_change(job: Job, batches: list[pa.Table], folder: Path, delay_ms: int = 0) -> list[dict[str, Any]]:
    rows, _ = FileStream(job, folder, delay_ms).stream(batches)
    return rows


def all_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# What goes on ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
@pytest.mark.parametrize("steps", [(4, 8), (8, 4), (3, 7, 2), (8, 1, 6)], ids=str)
@pytest.mark.parametrize("output", ["matches", "count"])
def test_a_stream_goes_on(steps: tuple[int, ...], output: str, texts: bool, tmp_path: Path) -> None:
    table = random_table(len(steps), texts=texts)
    for query in (PAIRS, CHAINS, [PAIRS, "PATTERN SEQ(a p, c q) WITHIN 3"]):
        options = {} if output == "matches" else {"output": "count"}
        job = the_job(table, query, buckets=steps[0], **options)
        rng = random.Random(7)
        batches = rows_of(table, range(table.num_rows), split(table.num_rows, rng))
        folder = Path(mkdtemp(dir=tmp_path))
        restarted = Restarted(job, folder, delay_ms=5)
        for number, batch in enumerate(batches):
            restarted.push(batch)
            if number % 2 == 0 and number // 2 + 1 < len(steps):
                assert restarted.change(steps[number // 2 + 1]) == 0
        assert restarted.job.fingerprint == the_job(table, query, buckets=steps[-1], **options).fingerprint
        restarted.rows += restarted.stream.end()
        wanted = rows_without_change(job, batches, folder / "other", 5)
        if output == "count":
            assert sum(row["count"] for row in restarted.rows) == sum(row["count"] for row in wanted) > 0
        else:
            assert wanted
            assert rows_that_differ(restarted.rows, wanted) == ""


def test_random_streams_go_on(cases: Callable[[int], int], tmp_path: Path) -> None:
    seen = dict.fromkeys(("more", "fewer", "other", "refused"), 0)

    def complaint_of(case: RandomCase) -> str:
        streamed = of_random(case, case.seed, "count" if case.seed % 4 == 0 else "matches")
        return complaint_of_changes(streamed, Path(mkdtemp(dir=tmp_path)), seen)

    for seed in range(cases(200)):
        fail_if_wrong(random_case(seed), complaint_of)
    cases.expect(seen, *seen)


def complaint_of_changes(streamed: Streamed, folder: Path, seen: dict[str, int]) -> str:
    rng, job = streamed.rng, streamed.job
    restarted = Restarted(job, folder, streamed.delay_ms, rng)
    buckets = job.passes[0].size
    for batch in streamed.batches:
        restarted.push(batch)
        if rng.random() < 0.5:
            size = rng.randint(1, 12)
            before = all_files(folder)
            changed = restarted.change(size) == 0
            if changed:
                seen["more" if size % buckets == 0 else "fewer" if buckets % size == 0 else "other"] += 1
                buckets = size
            else:
                seen["refused"] += 1
                assert all_files(folder) == before, "a refusal has written"
    rows = restarted.rows + restarted.stream.end()
    if job.output == "count":
        counted, exact = sum(row["count"] for row in rows), streamed.exact[0]["count"]
        return "" if counted == exact else f"{counted} matches, and not {exact}"
    return rows_that_differ(rows, streamed.exact)
