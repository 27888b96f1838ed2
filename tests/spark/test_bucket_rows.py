"""The rows of a partition by bucket: the same in memory and in files, and never many in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.errors import DataError
from acep.spark.job import SentJob
from acep.spark.workers import bucket_rows
from acep.spark.workers.bucket_rows import rows_of_partition
from acep.spark.workers.spark_state_worker import NOW
from acep.streaming.step import BUCKET
from tests.spark.by_hand import the_job

QUERY = acep.parse("PATTERN SEQ(a p, b q) WHERE [k] WITHIN 9")


def rows_of(size: int, seed: int) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, size)
    return pa.record_batch(
        {
            "ts": rng.integers(0, 1_000, size),
            "type": pa.array(rng.choice(["a", "b"], size)),
            "k": rng.integers(0, 50, size),
            "n": rng.integers(0, 2**60, size),
            "name": pa.array(["\u00e9" * int(n) for n in rng.integers(0, 9, size)]),
            NOW: np.full(size, 77),
            BUCKET: pa.array(np.where(rng.random(size) < 0.1, -1 - codes, codes), pa.int32()),
        }
    )


def job_of(rows: pa.RecordBatch) -> SentJob:
    table = pa.Table.from_batches([rows]).drop_columns([NOW, BUCKET])
    return the_job(table, QUERY, seq="n", id="n", buckets=4)


def test_rows_in_files_are_those_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [rows_of(200, seed) for seed in range(6)]
    job = job_of(batches[0])
    whole = rows_of_partition(job, batches, marked=False)
    assert not whole.files
    for held in (1, 20_000):
        monkeypatch.setattr(bucket_rows, "MAX_HELD_BYTES", held)
        parts = rows_of_partition(job, batches, marked=False)
        assert set(parts.files) == parts.numbers == whole.numbers == {0, 1, 2, 3}
        assert parts.now == whole.now == 77
        for number in range(4):
            one, other = parts.take_rows(number), whole.take_rows(number)
            assert one is not None
            assert other is not None
            assert one.ticks.tolist() == other.ticks.tolist() == sorted(one.ticks.tolist())
            assert one.rows.column(BUCKET).to_pylist() == one.codes.tolist()
            # Of the same time, in any order.
            key = [("ts", "ascending"), ("n", "ascending")]
            assert one.rows.sort_by(key).equals(other.rows.sort_by(key))
        assert not parts.files


def test_a_row_of_a_bucket_too_great_says_which_partition_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(100, 3)
    codes = rows.column(BUCKET).to_pylist()
    codes[40] = 6
    marked = rows.set_column(rows.schema.get_field_index(BUCKET), BUCKET, pa.array(codes, pa.int32()))
    for held in (bucket_rows.MAX_HELD_BYTES, 1):
        monkeypatch.setattr(bucket_rows, "MAX_HELD_BYTES", held)
        found = rows_of_partition(job_of(rows), [rows, marked, rows], marked=True)
        assert found.mark == 6
        assert sum(len(one.ticks) for n in range(4) if (one := found.take_rows(n)) is not None) == 299
    with closing(rows_of_partition(job_of(rows), [rows], marked=True)) as found:
        assert found.mark is None


@pytest.mark.long
def test_no_more_rows_are_in_memory_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    size = rows_of(20_000, 0).nbytes
    monkeypatch.setattr(bucket_rows, "MAX_HELD_BYTES", 2 * size)
    job, most, before = job_of(rows_of(10, 0)), [0], pa.total_allocated_bytes()

    def given() -> Iterator[pa.RecordBatch]:
        for seed in range(40):
            yield rows_of(20_000, seed)
            most.append(pa.total_allocated_bytes() - before)

    found = rows_of_partition(job, given(), marked=False)
    assert len(found.files) == 4
    assert max(most) < 8 * size, [round(one / size, 1) for one in most]
    total = 0
    for number in range(4):
        one = found.take_rows(number)
        assert one is not None
        total += len(one.ticks)
        del one
    assert total == 40 * 20_000


def test_a_time_that_is_null_is_refused() -> None:
    rows = rows_of(5, 1)
    empty = rows.set_column(0, "ts", pa.array([1, 2, None, 4, 5]))
    with pytest.raises(DataError, match="column `ts` is null"):
        rows_of_partition(job_of(rows), [empty], marked=False)
