"""``acep state --buckets``: a stream goes on with another number of buckets, and gives what it gives without that."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import acep
from acep import Budget
from acep.bucket_state import run_orders
from acep.bucket_state.folders import LocalFolder
from acep.errors import DataError, QueryError, SnapshotError
from acep.restarting.other_buckets import with_buckets
from acep.runtime.key_hashes import hash_keys
from acep.streaming import live_buckets
from acep.streaming.job import Job
from acep.streaming.step import BUCKET
from tests.complaints import fail_if_wrong
from tests.random_cases import Case as RandomCase
from tests.random_cases import random_case
from tests.spark import by_hand_files
from tests.spark.by_hand import numbered, rows_of, rows_that_differ, the_job
from tests.spark.by_hand_files import FileStream
from tests.spark.cases import Streamed, of_random
from tests.spark.restarted import (
    PAIRS,
    QUERY_ID,
    Restarted,
    all_files,
    as_spark,
    random_table,
    refusal,
    rows_without_change,
    spread_as_spark,
    stopped,
)

CHAINS = "PATTERN SEQ(a p, b+ q[], c r) WHERE [k] AND q[i].x > p.x WITHIN 30 RETURN count(q[]) AS n"
WAITING = "PATTERN SEQ(a p, b q, !(c r)) WHERE [k] WITHIN 20"


@pytest.fixture(autouse=True)
def as_on_spark() -> Iterator[None]:
    with as_spark():
        yield


def change(restarted: Restarted, buckets: int, *more: str) -> int:
    """Go on with so many buckets, if that can be."""
    try:
        job = with_buckets(restarted.job, buckets)
    except QueryError:
        job = restarted.job
    return restarted.change(job, "--buckets", str(buckets), *more)


# States that go on ----------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("steps", "output", "texts"),
    [
        ((4, 8), "matches", True),
        ((8, 4), "count", False),
        ((3, 7, 2), "matches", False),
        pytest.param((8, 1, 6), "count", True, marks=pytest.mark.long),
        pytest.param((8, 1, 6), "matches", True, marks=pytest.mark.long),
    ],
)
def test_a_stream_goes_on(steps: tuple[int, ...], output: str, texts: bool, tmp_path: Path) -> None:
    table = random_table(len(steps), texts=texts)
    queries: list[Any] = [PAIRS, CHAINS, {"pairs": PAIRS, "alone": "PATTERN SEQ(a p, c q) WITHIN 3"}]
    for query in queries:
        job = the_job(table, query, buckets=steps[0], output=output)
        batches = rows_of(table, range(table.num_rows), [60, 60])
        folder = Path(mkdtemp(dir=tmp_path))
        restarted = Restarted(job, folder, delay_ms=5)
        for number, batch in enumerate(batches):
            restarted.push(batch)
            if number + 1 < len(steps):
                assert change(restarted, steps[number + 1]) == 0
        assert restarted.job.fingerprint == the_job(table, query, buckets=steps[-1], output=output).fingerprint
        rows = restarted.rows + restarted.stream.end()
        wanted = rows_without_change(job, batches, folder / "other", 5)
        assert wanted
        if output == "count":
            assert counts_by_query(rows) == counts_by_query(wanted)
        else:
            assert rows_that_differ(rows, wanted) == ""


def counts_by_query(rows: list[dict[str, Any]]) -> Counter[str]:
    counts = Counter[str]()
    for row in rows:
        counts[row.get("query", "")] += row["count"]
    return counts


KEYED = (
    "PATTERN SEQ(a p, b q) WHERE [k] AND q.x > p.x WITHIN 12",
    "PATTERN SEQ(a p, !(c n), b q) WHERE [k] WITHIN 20",
    "PATTERN SEQ(!(c n), a p, b q) WHERE [k] WITHIN 9",
    WAITING,
    "PATTERN SEQ(a p, b+ q[]) WHERE skip_till_next_match(p, q[]) { [k] } WITHIN 15",
    "PATTERN SEQ(a p, b q, c r) WHERE partition_contiguity(p, q, r) { [k] } WITHIN 50",
    "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 12 OUTPUT EARLIEST MAXIMAL",
    "PATTERN SEQ(a p, b q, c r) WHERE [k]",
    "PATTERN SEQ(a p, b q, c r) WHERE [k] AND r.x + q.x > p.x WITHIN 25",
)


@pytest.mark.long
def test_random_streams_by_key_go_on(cases: Callable[[int], int], tmp_path: Path) -> None:
    """They change at random, forth and back; what is refused changes nothing."""
    seen = Counter[str]()
    for seed in range(cases(40)):
        rng = random.Random(seed)
        table = random_table(seed, size=rng.randint(10, 80), texts=rng.random() < 0.5, keys=rng.randint(1, 8))
        query, output = rng.choice(KEYED), rng.choice(["matches", "matches", "count"])
        options: dict[str, Any] = {"buckets": rng.randint(1, 6), "output": output}
        if output == "matches" and "OUTPUT" not in query and rng.random() < 0.3:
            options |= rng.choice([{"id": None}, {"dynamic": True}, {"engine": "reference"}])
        job, delay = the_job(table, query, **options), rng.randint(0, 5)
        batches = rows_of(table, range(table.num_rows), [table.num_rows // 3] * 2)
        folder = Path(mkdtemp(dir=tmp_path))
        restarted = Restarted(job, folder, delay, rng)
        for batch in batches:
            restarted.push(batch)
            size = rng.randint(1, 12)
            seen[f"{change(restarted, size)} {'trailing' if query == WAITING else ''}"] += 1
        rows = restarted.rows + restarted.stream.end()
        wanted = rows_without_change(job, batches, folder / "other", delay)
        if output == "count":
            assert counts_by_query(rows) == counts_by_query(wanted), seed
        else:
            assert rows_that_differ(rows, wanted) == "", seed
    cases.expect(seen, "0 ", "2 trailing", "0 trailing")


def test_random_streams_go_on(cases: Callable[[int], int], tmp_path: Path) -> None:
    seen = dict.fromkeys(("more", "fewer", "other", "refused"), 0)

    def complaint_of(case: RandomCase) -> str:
        streamed = of_random(case, case.seed, "count" if case.seed % 4 == 0 else "matches")
        return complaint_of_changes(streamed, Path(mkdtemp(dir=tmp_path)), seen)

    for seed in range(cases(100)):
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
            changed = change(restarted, size) == 0
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


# Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "options", "reason"),
    [
        ("PATTERN SEQ(a p, b q) WITHIN 9", {}, "no query has a partition attribute"),
        (PAIRS, {"output": "points"}, "match points are kept as groups"),
        (PAIRS, {"output": "bundles"}, "bundles are kept as groups"),
        (PAIRS, {"speculation": 5}, "cannot be made again"),
        (PAIRS, {"budget": Budget(work=5)}, "cannot be made again"),
        (acep.regex("(ab)", within=20, by="k"), {}, "cannot be made again"),
    ],
)
def test_what_cannot_be_divided(
    query: Any, options: dict[str, Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restarted = stopped(tmp_path, query, **options)
    assert reason in refusal(capsys, restarted, "--buckets", "2")


def test_a_number_that_is_none_or_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    restarted = stopped(tmp_path)
    assert "0 is no number of buckets" in refusal(capsys, restarted, "--buckets", "0")
    assert "has 4 buckets already" in refusal(capsys, restarted, "--buckets", "4")
    assert "are steps of their own" in refusal(capsys, restarted, "--buckets", "2", "--go-back", "1")
    changed = stopped(tmp_path / "many", buckets=65)
    assert "streams side by side" in refusal(capsys, changed, "--buckets", "1")


def test_matches_that_wait_can_be_united_and_not_divided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {"ts": [1, 2, 3, 4, 5, 6], "type": ["a", "b", "a", "b", "b", "c"], "k": [1, 1, 2, 2, 3, 2]}
    table = numbered(pa.table(rows))
    restarted = Restarted(the_job(table, WAITING, buckets=4), tmp_path)
    batches = rows_of(table, range(6), [5])
    restarted.push(batches[0])
    message = refusal(capsys, restarted, "--buckets", "8")
    assert "wait for time to pass, and its keys would be in 2 buckets" in message
    assert "(1, 2)" in message
    assert "which reads the events from a window and the delay of the watermark before the newest time on" in message
    assert change(restarted, 2) == 0
    restarted.push(batches[1])
    (row,) = restarted.rows + restarted.stream.end()
    assert (row["key"], row["end"]) == ({"k": 1}, 2)
    assert row in rows_without_change(the_job(table, WAITING, buckets=4), batches, tmp_path / "other")


def test_damaged_or_missing_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    restarted = stopped(tmp_path)
    (call,) = (tmp_path / "acep" / str(QUERY_ID)).iterdir()
    first, second, *_ = sorted((call / "1").iterdir())
    content = first.read_bytes()
    first.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert f"state is damaged: `{tmp_path / 'acep'}/{QUERY_ID}/{call.name}/1/{first.name}`" in refusal(
        capsys, restarted, "--buckets", "2"
    )
    first.write_bytes(content)
    content = second.read_bytes()
    second.unlink()
    assert "has not the state of all 4 buckets after micro-batch 1" in refusal(capsys, restarted, "--buckets", "2")
    second.write_bytes(content)
    (call / "job").unlink()
    assert "cannot be made again" in refusal(capsys, restarted, "--buckets", "2")


def test_a_folder_that_is_no_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    restarted = stopped(tmp_path)
    restarted.folder = tmp_path / "acep"
    assert "is no checkpoint of Spark" in refusal(capsys, restarted, "--buckets", "2")


# Crashes, and runs that are alive --------------------------------------------------------------------


@pytest.mark.long
def test_a_kill_after_each_file_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = random_table(3)
    batches = rows_of(table, range(table.num_rows), [60, 60])
    wanted = rows_without_change(the_job(table, PAIRS, buckets=4), batches, tmp_path / "other", 5)
    write, n_writes = LocalFolder.write, 9  # two runs, six buckets, and the description
    for kill_at in (0, 1, 2, 3, 5, 8, n_writes):
        for goes_on_with in (4, 6):
            restarted = stopped(Path(mkdtemp(dir=tmp_path)))
            written = iter(range(100))

            def write_or_die(
                self: LocalFolder,
                path: str,
                data: bytes,
                *,
                written: Any = written,
                dies: int = kill_at,
                **options: Any,
            ) -> None:
                if next(written) == dies:
                    raise KeyboardInterrupt
                write(self, path, data, **options)

            with mock.patch.object(LocalFolder, "write", write_or_die):
                try:
                    killed = change(restarted, 6) != 0
                except KeyboardInterrupt:
                    killed = True
            assert killed == (kill_at < n_writes)
            job = the_job(table, PAIRS, buckets=goes_on_with)
            if goes_on_with == 6 and killed:
                assert change(restarted, 6) == 0  # once more
            run_orders._begun.clear()
            live_buckets.forget_live()
            restarted.stream = restarted.start(job, 2, 500)
            restarted.push(batches[2])
            restarted.rows += restarted.stream.end()
            assert rows_that_differ(restarted.rows, wanted) == ""
    capsys.readouterr()


def test_until_the_last_file_is_written_the_new_number_is_refused(tmp_path: Path) -> None:
    restarted = stopped(tmp_path)
    assert change(restarted, 6) == 0
    new_call = tmp_path / "acep" / str(QUERY_ID) / restarted.job.fingerprint[:32]
    next(iter((new_call / "1").iterdir())).unlink()
    with pytest.raises(SnapshotError, match="has not the state of all 6 buckets"):
        restarted.push(random_table(3).slice(120))


def test_a_run_that_is_alive_is_refused(tmp_path: Path) -> None:
    restarted = stopped(tmp_path)
    alive = restarted.stream
    assert change(restarted, 2) == 0
    with pytest.raises(SnapshotError, match="another run"):
        alive.push(random_table(3).slice(120))


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    restarted = stopped(tmp_path)
    before = all_files(tmp_path)
    assert change(restarted, 8, "--dry-run", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["written"], record["batch"], record["from"]["buckets"], record["to"]["buckets"]) == (False, 2, 4, 8)
    assert all_files(tmp_path) == before


def test_totals_and_work_are_those_of_one_stream(tmp_path: Path) -> None:
    table = random_table(5)
    batches = rows_of(table, range(table.num_rows), [60, 60])
    without = FileStream(the_job(table, CHAINS, buckets=4), tmp_path / "other", 5)
    restarted = Restarted(without.job, tmp_path / "changed", 5)
    for batch, buckets in zip(batches, (8, 3, 6), strict=True):
        without.push(batch)
        restarted.push(batch)
        assert change(restarted, buckets) == 0
    restarted.push(table.slice(table.num_rows))
    without.push(table.slice(table.num_rows))

    def sums(stream: FileStream) -> dict[str, int]:
        told = list(stream.told.values())
        work = {name: sum(row["queries"][0][name] for row in told) for name in ("matches", "nodes", "touches")}
        return work | {name: sum(row[name] for row in told) for name in ("events", "late", "held")}

    assert sums(restarted.stream) == sums(without)


def test_a_row_of_another_bucket_is_refused(tmp_path: Path) -> None:
    restarted = stopped(tmp_path)
    assert change(restarted, 2) == 0
    table = random_table(3).slice(120)

    def wrongly(job: Job, table: pa.Table) -> pa.Table:
        rows = spread_as_spark(job, table)
        index = rows.column_names.index(f"{BUCKET}0")
        return rows.set_column(index, f"{BUCKET}0", pa.array([0] * rows.num_rows, pa.int32()))

    with mock.patch.object(by_hand_files, "spread", wrongly), pytest.raises(SnapshotError, match="another bucket"):
        restarted.push(table)


def test_keys_of_a_type_that_is_not_hashed_are_refused() -> None:
    with pytest.raises(DataError, match="keys of type"):
        hash_keys([pa.array([1], pa.uint64())])
