"""``acep state --replace``: a stream goes on with another query as in one process, or says what a replay needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import acep
from acep.bucket_state.folders import folder_of
from acep.overload.batch_log import BatchLog, Decision, RunningTotals
from acep.overload.unit_admission import ALL, UnitAdmission
from acep.restarting.described_job import call_of
from acep.restarting.other_query import with_query
from acep.spark.workers import file_state_worker
from acep.spark.workers.bucket_rows import PartitionRows
from acep.streaming.job import Job
from tests.complaints import difference
from tests.random_versions import random_chain
from tests.spark.by_hand import as_rows, numbered, rows_of, rows_that_differ, the_job
from tests.spark.restarted import PAIRS, QUERY_ID, Restarted, all_files, as_spark, random_table, refusal, stopped

OTHER = "PATTERN SEQ(c p, b q) WHERE [k] WITHIN 20"
SAME_START = "PATTERN SEQ(a p, c q) WHERE [k] WITHIN 20"


@pytest.fixture(autouse=True)
def as_on_spark() -> Iterator[None]:
    with as_spark():
        yield


def replaced(restarted: Restarted, text: str, job: Job, *more: str) -> int:
    return restarted.change(job, "--replace", text, *more)


def rows_in_one_process(table: pa.Table, texts: list[str], sinces: list[int]) -> list[dict[str, Any]]:
    """The rows of a matcher whose query is replaced before the first event of each of these times."""
    matcher = acep.Matcher(texts[0], seq="__order", id="__row", dynamic=True)
    ticks = table.column("ts").to_pylist()
    matches, begin = [], 0
    for text, since in zip(texts[1:], sinces, strict=True):
        end = sum(tick < since for tick in ticks)
        matches += matcher.push(table.slice(begin, end - begin))
        matcher.replace(text)
        begin = end
    return as_rows([*matches, *matcher.push(table.slice(begin)), *matcher.finish()])


@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("output", ["matches", "count"])
def test_a_stream_goes_on_with_another_query(output: str, delay: int, tmp_path: Path) -> None:
    table = random_table(4)
    options: dict[str, Any] = {"buckets": 3, "output": output}
    restarted = Restarted(the_job(table, PAIRS, **options), tmp_path, delay)
    batches = rows_of(table, range(table.num_rows), [60, 60])
    for batch in batches[:2]:
        restarted.push(batch)
    since = max(batches[1].column("ts").to_pylist()) - delay
    assert replaced(restarted, OTHER, the_job(table, OTHER, **options)) == 0
    restarted.push(batches[2])
    rows, wanted = restarted.rows + restarted.stream.end(), rows_in_one_process(table, [PAIRS, OTHER], [since])
    assert any(row["end"] < since for row in wanted)
    assert any(row["end"] > since for row in wanted)
    if output == "count":
        assert sum(row["count"] for row in rows) == len(wanted)
    else:
        assert rows_that_differ(rows, wanted) == ""


def test_a_query_goes_on_with_the_same_start_where_nothing_is_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"ts": [1, 2, 40, 41, 42], "type": ["a", "b", "d", "a", "c"], "k": [1, 1, 1, 1, 1]}
    table = numbered(pa.table(rows))
    restarted = Restarted(the_job(table, PAIRS, buckets=2), tmp_path)
    batches = rows_of(table, range(5), [2, 1])
    restarted.push(batches[0])
    assert "would go on under both queries" in refusal(capsys, restarted, "--replace", SAME_START)
    restarted.push(batches[1])
    restarted.push(table.slice(5))
    assert replaced(restarted, SAME_START, the_job(table, SAME_START, buckets=2)) == 0
    restarted.push(batches[2])
    rows_given = restarted.rows + restarted.stream.end()
    assert [(row["start"], row["end"]) for row in rows_given] == [(1, 2), (41, 42)]


def test_random_queries_go_on_or_need_a_replay(cases: Callable[[int], int], tmp_path: Path) -> None:
    seen = {"went on": 0, "refused": 0}
    for seed in range(cases(150)):
        rng = Random(seed)
        within = rng.randint(3, 12)
        texts = [random_chain(rng).text(within) for _ in range(2)]
        complaint = complaint_of(rng, texts, Path(mkdtemp(dir=tmp_path)), seen)
        assert complaint == "", f"seed {seed}, {texts}: {complaint}"
    cases.expect(seen, *seen)


def complaint_of(rng: Random, texts: list[str], folder: Path, seen: dict[str, int]) -> str:
    size = rng.randint(6, 40)
    columns = {
        "ts": sorted(rng.randrange(2 * size) for _ in range(size)),
        "type": rng.choices("ABCD", k=size),
        "x": [rng.randrange(5) for _ in range(size)],
    }
    table, delay = numbered(pa.table(columns)), rng.randint(0, 4)
    jobs = [the_job(table, text, buckets=2) for text in texts]
    restarted = Restarted(jobs[0], folder, delay)
    cut = rng.randint(1, size)
    batches = rows_of(table, range(size), [cut])
    restarted.push(batches[0])
    before = all_files(folder)
    if replaced(restarted, texts[1], jobs[1]) == 0:
        seen["went on"] += 1
        sinces = [max(columns["ts"][:cut]) - delay]
    else:
        seen["refused"] += 1
        texts, sinces = texts[:1], []
        if all_files(folder) != before:
            return "a refusal has written"
    restarted.push(batches[1])
    wanted = rows_in_one_process(table, texts, sinces)
    return rows_that_differ(restarted.rows + restarted.stream.end(), wanted)


# Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "options", "other", "reason"),
    [
        (PAIRS, {}, PAIRS.replace("20", "21"), "another value of `WITHIN`"),
        (PAIRS, {}, "PATTERN SEQ(a p, b q) WITHIN 20", "other partition attributes"),
        (PAIRS, {}, f"{PAIRS} RETURN q.x AS x", "another value of `RETURN`"),
        (PAIRS, {}, "PATTERN SEQ(c p, b q) WHERE [k] AND q.x > 3 WITHIN 20", "unknown column `x`"),
        (PAIRS, {}, "PATTERN SEQ(c p, b q) WHERE [k] AND q.z > 3 WITHIN 20", "unknown column `z`"),
        (PAIRS, {}, "PATTERN SEQ(!(d n), c p, b q) WHERE [k] WITHIN 20", "begins with a negation"),
        (PAIRS, {"id": None}, OTHER, "without `id=` events are known by their place"),
        (PAIRS, {"output": "points"}, OTHER, "points are groups of matches"),
        (f"{PAIRS} OUTPUT EARLIEST MAXIMAL", {}, f"{OTHER} OUTPUT EARLIEST MAXIMAL", "OUTPUT chooses"),
        ({"one": PAIRS, "two": SAME_START}, {}, OTHER, "it has several queries"),
        (PAIRS, {}, PAIRS, "has this query already"),
    ],
)
def test_what_cannot_go_on(
    query: Any, options: dict[str, Any], other: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restarted = stopped(tmp_path, query, **options)
    assert reason in refusal(capsys, restarted, "--replace", other)


def test_a_state_of_queries_that_change_has_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = random_table(3)
    restarted = Restarted(the_job(table, PAIRS, buckets=2, dynamic=True), tmp_path)
    restarted.push(table)
    assert "put the query into the folder of versions" in refusal(capsys, restarted, "--replace", OTHER)


def test_a_refusal_says_what_a_replay_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = refusal(capsys, stopped(tmp_path), "--replace", SAME_START)
    greatest = max(random_table(3).column("ts").to_pylist()[:120])
    since = greatest - 5
    assert f"a replay needs the events from tick {since - 20} on again" in message
    assert f"in `versions=` the new one, `-- since: {since}`" in message
    assert f"matches that end before tick {since} were given" in message


def test_a_replay_reads_the_events_that_were_held_back_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needed = "a replay needs the events from a window and the delay of the watermark before the newest time on"
    assert needed in refusal(capsys, stopped(tmp_path / "numbered", id=None), "--replace", OTHER)
    unbounded = stopped(tmp_path / "unbounded", PAIRS.split(" WITHIN ")[0], id=None)
    assert "a replay needs all events" in refusal(capsys, unbounded, "--replace", OTHER)


def test_matches_that_wait_need_a_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waiting, other = (f"PATTERN SEQ({first} p, b q, !(c r)) WHERE [k] WITHIN 20" for first in "ad")
    table = numbered(pa.table({"ts": [1, 2, 3], "type": ["a", "b", "b"], "k": [1, 1, 1]}))
    restarted = Restarted(the_job(table, waiting, buckets=2), tmp_path)
    restarted.push(table)
    assert "wait for time to pass" in refusal(capsys, restarted, "--replace", other)


@pytest.mark.parametrize(
    ("newest_idle", "other", "goes_on"),
    [
        (110, OTHER, False),
        (90, OTHER, True),
        (110, "PATTERN SEQ(b p, b q) WHERE [k] WITHIN 20", True),
        (110, "PATTERN SEQ(b p, a q) WHERE [k] WITHIN 20", False),
    ],
)
def test_events_that_stayed_behind_are_not_missed(
    newest_idle: int, other: str, goes_on: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before tick 100 all is final. Events later than that may have stayed behind, as the query before had no use for
    them; another query could use them."""
    before = "PATTERN SEQ(a p, b q) WHERE [k] AND p.x > 10 WITHIN 20"
    table = numbered(pa.table({"ts": [1, 2, 105], "type": ["a", "b", "b"], "k": [1, 1, 1], "x": [9, 9, 9]}))
    restarted = Restarted(the_job(table, before, buckets=2), tmp_path, 5)
    rows_of_partition = file_state_worker.rows_of_partition

    def rows_with_idle(*arguments: Any, **keywords: Any) -> PartitionRows:
        rows = rows_of_partition(*arguments, **keywords)
        rows.newest_idle = newest_idle
        return rows

    with mock.patch.object(file_state_worker, "rows_of_partition", rows_with_idle):
        restarted.push(table)
    if goes_on:
        assert replaced(restarted, other, the_job(table, other, buckets=2)) == 0
        return
    message = refusal(capsys, restarted, "--replace", other)
    assert "events that only the new one can use stayed behind" in message
    assert "punctuation(df, until=...)" in message


def test_a_stream_that_sheds_is_not_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A gap that ends too early could create a match. Events that the driver left behind are not missed, either."""
    restarted = stopped(tmp_path)
    log = BatchLog(folder_of(str(tmp_path / "acep")), str(QUERY_ID), call_of(restarted.job))
    log.begin(1, Decision(UnitAdmission(20).with_threshold(90, ALL // 2)))
    for change in (("--replace", OTHER), ("--buckets", "2")):
        assert "shed by whole units" in refusal(capsys, restarted, *change)
    log.end(1, Decision(carried=RunningTotals(seen=10**6, idle=3)))
    assert "stayed behind" in refusal(capsys, restarted, "--replace", OTHER)


def test_a_file_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    restarted = stopped(tmp_path / "run")
    (tmp_path / "new.sase").write_text(OTHER + "\n")
    capsys.readouterr()
    job = with_query(restarted.job, OTHER)
    assert replaced(restarted, str(tmp_path / "new.sase"), job, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["written"], record["to"]["call"], record["batch"]) == (True, job.fingerprint[:32], 2)
    table = random_table(3)
    assert difference(the_job(table, OTHER, buckets=4).fingerprint, job.fingerprint, ("call", "state")) == ""
    restarted.push(table.slice(120))
