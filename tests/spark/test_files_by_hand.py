"""With its state in files a stream is what one process is, and each clause of the rule of release holds."""

from __future__ import annotations

import dataclasses
import random
import time
import uuid
import warnings
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import acep
from acep.bucket_state import file_names
from acep.errors import DataError, EngineError, SnapshotError
from acep.spark.workers import file_state_worker
from acep.streaming import live_buckets
from acep.streaming.job import Job
from acep.streaming.latest_time import Latest
from acep.streaming.step import BUCKET, write_step
from acep.streaming.totals import METRICS_COLUMN
from tests.complaints import difference, fail_if_wrong
from tests.corpus import Case
from tests.each_case import by_file
from tests.random_cases import Case as RandomCase
from tests.random_cases import random_case
from tests.spark.by_hand import as_rows, numbered, rows_of, rows_that_differ, stream, the_job
from tests.spark.by_hand_files import FileStream, coded
from tests.spark.cases import GOOD, Streamed, complaint_of_stream, of_corpus, of_random
from tests.test_random import manageable
from tests.tied_cases import tied_cases


@by_file(GOOD[1::4])
def test_a_stream_is_one_process(case: Case, tmp_path: Path) -> None:
    check_stream(case, tmp_path)


@pytest.mark.long
@by_file([case for number, case in enumerate(GOOD) if number % 4 != 1])
def test_streams_of_the_other_cases_are_one_process(case: Case, tmp_path: Path) -> None:
    check_stream(case, tmp_path)


def check_stream(case: Case, folder: Path) -> None:
    one = of_corpus(case)
    found, totals = FileStream(one.job, Path(mkdtemp(dir=folder)), one.delay_ms, rng=one.rng).stream(one.batches)
    assert totals["late"] == 0
    assert rows_that_differ(found, one.exact) == ""


def test_random_streams_in_disorder_are_one_process(cases: Callable[[int], int], tmp_path: Path) -> None:
    def complaint_of(case: RandomCase) -> str:
        streamed = of_random(case, case.seed)
        partitions, folder = streamed.rng.randint(1, 4), Path(mkdtemp(dir=tmp_path))
        run = FileStream(streamed.job, folder, streamed.delay_ms, partitions=partitions, rng=streamed.rng)
        return complaint_of_stream(streamed, *run.stream(streamed.batches))

    for seed in range(cases(100)):
        fail_if_wrong(random_case(seed), complaint_of)


def test_a_bucket_that_comes_back_to_a_worker_goes_on_where_another_one_was(
    cases: Callable[[int], int], tmp_path: Path
) -> None:
    def complaint_of(case: RandomCase) -> str:
        streamed, folder = of_random(case, case.seed), Path(mkdtemp(dir=tmp_path))
        run, rows = FileStream(streamed.job, folder, streamed.delay_ms), list[dict[str, Any]]()
        caches, turns = [OrderedDict[str, Any]() for _ in range(2)], random.Random(case.seed)
        for step in (*(partial(run.push, batch) for batch in streamed.batches), run.end):
            with mock.patch.object(live_buckets, "_LIVE", turns.choice(caches)):  # each process has one
                rows += step()
        return complaint_of_stream(streamed, rows, {"late": sum(totals["late"] for totals in run.told.values())})

    for seed in range(cases(100)):
        fail_if_wrong(random_case(seed), complaint_of)


# Outputs and budgets ---------------------------------------------------------------------------------


def complaint_of_run(streamed: Streamed, output: str, folder: Path) -> str:
    """Say how the rows of a run differ from those of one process; nothing if they do not."""
    run = FileStream(streamed.job, Path(mkdtemp(dir=folder)), streamed.delay_ms, rng=streamed.rng)
    rows, totals = run.stream(streamed.batches)
    if output == "count":
        counted = {"late": totals["late"], "count": sum(row["count"] for row in rows)}
        return difference(counted, {"late": 0, "count": streamed.exact[0]["count"]}, ("run", "exact"))
    return complaint_of_stream(streamed, rows, {"late": totals["late"]})


@pytest.mark.parametrize("output", ["points", "bundles", "count"])
def test_what_is_counted_is_what_one_process_counts(output: str, cases: Callable[[int], int], tmp_path: Path) -> None:
    def complaint_of(case: RandomCase) -> str:
        streamed = of_random(case, case.seed, output)
        return complaint_of_run(streamed, output, tmp_path)

    for seed in range(cases(40)):
        fail_if_wrong(random_case(seed), complaint_of)


@pytest.mark.long
@pytest.mark.parametrize("output", ["matches", "points", "bundles", "count"])
def test_equalities_that_tie_all_are_one_process(output: str, cases: Callable[[int], int], tmp_path: Path) -> None:
    """They are no partition. Events of several values are spread over buckets where only matches are counted."""
    spread = 0

    def complaint_of(case: RandomCase) -> str:
        nonlocal spread
        streamed = of_random(case, case.seed, output)
        spread += any(part.keys and not streamed.job.plans[0].keys for part in streamed.job.passes)
        return complaint_of_run(streamed, output, tmp_path)

    for seed in range(cases(120)):
        fail_if_wrong(manageable(tied_cases(seed)[seed % 3])[0], complaint_of)
    if output != "count":
        assert spread == 0
    cases.expect({"spread": spread}, *(["spread"] if output == "count" else []))


def test_ids_without_a_column_are_places_in_the_declared_partition(tmp_path: Path) -> None:
    rows = {"ts": [1, 2, 3, 4, 5], "type": list("abaab"), "k": [1, 2, 2, 1, 1], "x": [7, 7, 8, 7, 7]}
    query = acep.parse("PATTERN SEQ(a p, b q) WHERE [k] AND q.x = p.x WITHIN 9")
    table = numbered(pa.table(rows))
    job = the_job(table, query, id=None)
    found, _ = FileStream(job, tmp_path, 0).stream([table])
    assert sorted((row["key"]["k"], row["bindings"]["p"], row["bindings"]["q"]) for row in found) == [
        (1, [0], [2]),
        (1, [1], [2]),
    ]


SWING = "PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { [k] AND q.x > p.x AND r.x < q.x } WITHIN 90"


@pytest.mark.long
@pytest.mark.parametrize("policy", ["random", "newest", "history"])
def test_a_budget_of_work_keeps_what_the_other_route_keeps(policy: str, tmp_path: Path) -> None:
    rng = random.Random(8)
    rows = [(t, rng.choice("abc"), rng.randrange(4), rng.random()) for t in range(400)]
    table = numbered(pa.table(dict(zip(("ts", "type", "k", "x"), map(list, zip(*rows, strict=True)), strict=True))))
    exact = as_rows(acep.match(table.drop_columns(["__order", "__row"]), acep.parse(SWING)))
    for work, sheds in ((1.5, True), (10_000.0, False)):
        job = the_job(table, acep.parse(SWING), buckets=3, budget=acep.Budget(work=work), policy=policy)
        batches = rows_of(table, range(400), [90, 150])
        files = FileStream(job, tmp_path / str(work), 2, rng=rng)
        found, totals = files.stream(batches)
        by_state, _, _ = stream(job, batches, delay=2, rng=rng)
        assert rows_that_differ(found, by_state) == ""
        shed = sum(query["shed"] for one in files.told.values() for query in one["queries"])
        assert (shed > 0) == sheds
        assert (len(found) < len(exact)) == sheds
        assert totals["matches"] == len(found)
        assert all(row["exact"] for row in found) != sheds
        if not sheds:
            assert rows_that_differ(found, exact) == ""


# The rule of release, on both routes -------------------------------------------------------------

Run = Callable[[Job, list[pa.Table], int], tuple[list[list[int]], dict[str, int]]]


def by_store(job: Job, batches: list[pa.Table], delay: int) -> tuple[list[list[int]], dict[str, int]]:
    """The ids of `b` that each micro-batch gives, and the totals."""
    states: dict[int, Any] = {}
    given = []
    for table in batches:
        found, states, totals = stream(job, [table], delay=delay, end=False, states=states)
        given.append(sorted(row["bindings"]["b"][0] for row in found))
    return given, totals


@pytest.fixture(params=["store", "files"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    def by_files(job: Job, batches: list[pa.Table], delay: int) -> tuple[list[list[int]], dict[str, int]]:
        files = FileStream(job, tmp_path / str(job.buckets), delay)
        given = [sorted(row["bindings"]["b"][0] for row in files.push(table)) for table in batches]
        return given, files.stream([], end=False)[1]

    return by_store if request.param == "store" else by_files


def events(*rows: tuple[int, str, str | None]) -> pa.Table:
    """Events of (time, type, key), numbered from 0 in all tables of a test that are cut from this one."""
    columns = dict(zip(("ts", "type", "k"), map(list, zip(*rows, strict=True)), strict=True))
    return numbered(pa.table(columns | {"k": pa.array(columns["k"], pa.string())}))


def job_for(table: pa.Table, query: Any = None, **options: Any) -> Job:
    return the_job(table, query or acep.regex("ab", within=50, by="k"), **options)


def test_a_bucket_releases_what_its_own_events_make_certain(run: Run) -> None:
    table = events((100, "a", "x"), (102, "b", "x"), (105, "c", "x"))
    totals = {"events": 3, "late": 0, "ahead": 0, "duplicates": 0, "matches": 1}
    assert run(job_for(table, buckets=1), [table], 2) == ([[1]], totals)


def test_an_event_at_the_bound_waits_and_one_of_its_time_may_still_come(run: Run) -> None:
    table = events((100, "a", "x"), (102, "b", "x"), (104, "c", "x"), (102, "b", "x"), (109, "c", "x"))
    given, totals = run(job_for(table, buckets=1), [table.slice(0, 3), table.slice(3)], 2)
    assert given == [[], [1, 3]]
    assert totals["late"] == 0


def test_a_bucket_takes_in_all_rows_before_it_releases_any(run: Run) -> None:
    table = events((100, "a", "x"), (199, "c", "x"), (101, "b", "x"))
    totals = {"events": 3, "late": 0, "ahead": 0, "duplicates": 0, "matches": 1}
    assert run(job_for(table, buckets=1), [table], 2) == ([[2]], totals)


def test_the_events_of_other_buckets_count_at_once(run: Run) -> None:
    table = events((100, "a", "x"), (101, "b", "x"), (150, "c", "y"), (151, "c", "y"))
    job = job_for(table, buckets=64)
    given, _ = run(job, [table.slice(0, 3), table.slice(3)], 2)
    assert given == [[1], []]


def test_an_event_is_late_by_the_time_of_all_buckets_alone(run: Run) -> None:
    table = events(
        *((100, "a", f"{k}") for k in range(9)),
        (200, "c", "far"),
        *((101, "b", f"{k}") for k in range(9)),  # in the next micro-batch: late, whatever its bucket has seen
        (198, "b", "far"),  # at the bound: not late
    )
    for buckets in (1, 3, 64):
        _, totals = run(job_for(table, buckets=buckets), [table.slice(0, 10), table.slice(10)], 2)
        assert (totals["late"], totals["events"]) == (9, 11)


def test_a_row_without_a_key_moves_time(run: Run) -> None:
    table = events((100, "a", "x"), (101, "b", "x"), (150, "c", None), (102, "b", "x"))
    given, totals = run(job_for(table, buckets=1), [table.slice(0, 3), table.slice(3)], 2)
    assert given == [[1], []]
    assert (totals["events"], totals["late"]) == (2, 1)


def test_times_are_cut_to_milliseconds(run: Run) -> None:
    # The greatest time is 105.999 ms: the bound is at 103 ms, and what comes at 103.5 ms is not released.
    rows = (100_000, "a", "x"), (102_999, "b", "x"), (103_500, "b", "x"), (105_999, "c", "x")
    table = events(*rows)
    job = job_for(table, acep.parse("PATTERN SEQ(a a, b b) WHERE skip_till_any_match(a, b) WITHIN 1 s"), unit="us")
    delay = 2000 if run is by_store else 2
    assert run(job, [table], delay)[0] == [[1]]


def test_an_event_beyond_the_latest_time_is_counted_and_does_not_move_time(run: Run) -> None:
    table = events(
        (100, "a", "x"),
        (900, "b", "x"),
        (901, "b", None),  # counts nowhere
        (900, "c", "y"),
        (101, "b", "x"),
        (800, "c", "x"),  # at the bound
        (801, "b", "x"),
    )
    for buckets in (1, 64):
        job = job_for(table, buckets=buckets, latest=800)
        given, totals = run(job, [table.slice(0, 4), table.slice(4)], 2)
        assert given == [[], [4]]
        assert totals == {"events": 3, "late": 0, "ahead": 3, "duplicates": 0, "matches": 1}


def test_a_bucket_leaves_it_to_the_driver_to_say_that_most_events_are_late(run: Run) -> None:
    table = events((100, "a", "x"), (10**6, "c", "x"), *((101 + i, "b", "x") for i in range(10)))
    job = job_for(table, buckets=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(job, [table.slice(0, 2), table.slice(2), table.slice(2)], 2)[1]["late"] == 20


def test_negations_of_idle_buckets_are_decided_when_time_has_passed(tmp_path: Path) -> None:
    table = events((100, "a", "x"), (101, "b", "x"), (300, "c", "y"), (301, "c", "y"))
    query = acep.parse("PATTERN SEQ(a a, b b, ~d d) WHERE skip_till_next_match(a, b) { [k] } WITHIN 50")
    files = FileStream(job_for(table, query, buckets=64), tmp_path, 2)
    assert files.push(table.slice(0, 2)) == []
    (row,) = files.push(table.slice(2, 1))
    assert row["bindings"] == {"a": [0], "b": [1]}
    assert files.push(table.slice(3)) == []


def test_all_is_late_after_the_end_and_no_micro_batch_is_needed_for_it(tmp_path: Path) -> None:
    table = events((100, "a", "x"), (101, "b", "x"), (102, "a", "y"))
    files = FileStream(job_for(table), tmp_path, 10**6)
    assert files.push(table) == []
    assert [row["bindings"] for row in files.end()] == [{"a": [0], "b": [1]}]
    assert files.stream([table], end=False)[1]["late"] == 3


def test_micro_batches_without_rows(tmp_path: Path) -> None:
    table = events((100, "a", "x"), (101, "b", "x"))
    files = FileStream(job_for(table), tmp_path, 5)
    none = table.slice(0, 0)
    found, totals = files.stream([none, table.slice(0, 1), none, none, table.slice(1), none])
    assert [row["bindings"] for row in found] == [{"a": [0], "b": [1]}]
    assert totals["events"] == 2


def test_no_result_is_given_before_the_state_of_its_bucket_is_written(tmp_path: Path) -> None:
    keys = enumerate("pqrstuvwxyz")
    table = events(*((100 + 2 * i + j, name, key) for i, key in keys for j, name in enumerate("ab")))
    job = job_for(table, buckets=4)
    files = FileStream(job, tmp_path, 5, partitions=1)
    written, told = list[int](), list[int]()

    def slowly(micro_batch: Any, step: Any) -> Any:
        time.sleep(0.02)
        if step.number == 2:
            raise DataError("the disk is full")
        new = write_step(micro_batch, step)
        written.append(step.number)
        return new

    def read() -> None:
        for batch in file_state_worker.step_in_files(job, files.place, coded(job, table, 1).to_batches()):
            told.extend([len(written)] * (batch.num_rows - batch.column(METRICS_COLUMN).null_count))

    with (
        files._on(0),
        mock.patch.object(file_state_worker, "write_step", slowly),
        pytest.raises(DataError, match="is full"),
    ):
        read()
    # When a bucket has told its metrics, at least so many states were written.
    assert len(told) == 2
    assert told[0] >= 1
    assert told[1] >= 2


# Refused ----------------------------------------------------------------------------------------


def test_rows_of_another_partition_are_refused(tmp_path: Path) -> None:
    table = events((100, "a", "x"), (101, "b", "x"))
    job = job_for(table, buckets=1)
    files = FileStream(job, tmp_path, 5, partitions=1)
    rows = coded(job, table, 0).drop_columns([BUCKET]).append_column(BUCKET, pa.array([1, 1], pa.int32()))
    files.place = file_state_worker.StatePlace(str(tmp_path), 100, 5, 2)
    with files._on(0), pytest.raises(EngineError, match="coalesced") as bad:
        list(file_state_worker.step_in_files(job, files.place, rows.to_batches()))
    assert "repartition(1)" in (bad.value.hint or "")


def test_a_missing_time_is_an_error(tmp_path: Path) -> None:
    table = events((100, "a", "x"), (101, "b", "x"))
    job = job_for(table)
    broken = table.set_column(0, "ts", pa.array([100, None], pa.int64()))
    with pytest.raises(DataError, match="`ts` is null"):
        FileStream(job, tmp_path, 5).push(broken)


def test_a_source_that_does_not_repeat_itself_is_refused(tmp_path: Path) -> None:
    table = events((100, "a", "x"), (101, "b", "x"), (102, "c", "x"))
    files = FileStream(job_for(table, buckets=1), tmp_path, 5)
    files.push(table.slice(0, 2))
    files.batch = 0
    with pytest.raises(SnapshotError, match="other rows than when its state"):
        files.push(table)


def test_a_result_that_was_not_read_whole_is_refused_in_the_next_micro_batch(tmp_path: Path) -> None:
    table = events((100, "a", "x"), (101, "b", "x"))
    files = FileStream(job_for(table), tmp_path, 5)
    rows = coded(files.job, table, 2)
    files._tried(rows, [code if code >= 0 else -1 - code for code in rows.column(BUCKET).to_pylist()], 0)
    files.batch = 1
    with pytest.raises(SnapshotError, match="has not the state of all 8 buckets after micro-batch 0") as bad:
        files.push(table)
    assert "read something of each micro-batch" in (bad.value.hint or "")


# Streams and calls that share a folder ------------------------------------------------------------------


def other_values(table: pa.Table) -> pa.Table:
    """The same times, with other types."""
    types = ["b" if name == "a" else "a" for name in table.column("type").to_pylist()]
    return table.set_column(table.column_names.index("type"), "type", pa.array(types))


def test_two_streams_share_a_folder(tmp_path: Path) -> None:
    table = events((100, "a", "x"), (101, "b", "x"), (102, "a", "x"), (103, "b", "x"))
    tables = [table, other_values(table)]
    job = job_for(table)
    runs = [FileStream(job, tmp_path, 0, query=n) for n in (1, 2)]
    found: list[list[Any]] = [[], []]
    for start in (0, 2):
        for rows, run, mine in zip(tables, runs, found, strict=True):
            mine.extend(run.push(rows.slice(start, 2)))
    for rows, run, mine in zip(tables, runs, found, strict=True):
        mine.extend(run.end())
        assert rows_that_differ(mine, as_rows(acep.match(rows, acep.regex("ab", within=50, by="k"), id="__row"))) == ""


def test_two_calls_in_one_stream_whose_rows_differ_are_refused(tmp_path: Path) -> None:
    table = events((100, "a", "x"), (101, "b", "x"), (102, "a", "x"), (103, "b", "x"))
    job = job_for(table)
    one, other = (FileStream(job, tmp_path, 0) for _ in range(2))
    one.push(table)
    with pytest.raises(SnapshotError, match="two calls use one folder"):
        other.push(other_values(table))


# A partition without rows ----------------------------------------------------------------------


def test_a_run_that_is_coalesced_gives_no_row_twice(tmp_path: Path) -> None:
    """A micro-batch without rows does not show that one task calls all partitions."""
    table = events(*((100 + t, "ab"[t % 2], f"{k}") for t in range(2) for k in range(40)), (200, "c", "far"))
    files = FileStream(job_for(table), tmp_path, 3)
    none = table.slice(0, 0)
    assert len(files.push(table)) == 40
    files.run = uuid.UUID(int=200)
    files.coalesced = True
    assert files.push(none) == []
    with pytest.raises(SnapshotError, match="has not the state of all 8 buckets"):
        files.push(none)


def test_each_task_of_a_run_that_is_coalesced_is_told_so_by_its_first_row(tmp_path: Path) -> None:
    """Rows come to each partition, though one key has them, since they say how far time is."""
    table = events((100, "a", "x"), (101, "b", "x"), (200, "a", "x"))
    files = FileStream(job_for(table), tmp_path, 3)
    assert files.push(table.slice(0, 2)) == []
    files.run = uuid.UUID(int=200)
    files.coalesced = True
    with pytest.raises(EngineError, match="coalesced"):
        files.push(table.slice(2))


def test_buckets_of_an_idle_partition_are_decided(tmp_path: Path) -> None:
    table = events(*((100 + t, "ab"[t % 2], f"{k}") for t in range(2) for k in range(40)), (200, "c", "far"))
    files = FileStream(job_for(table), tmp_path, 3)
    assert files.push(table.slice(0, 80)) == []
    assert len(files.push(table.slice(80))) == 40


def test_a_state_of_before_goes_on_with_a_micro_batch_that_was_begun(tmp_path: Path) -> None:
    """An earlier acep named a version by the greatest time of its own bucket, and was killed in a micro-batch."""
    table = events(*((100 + t, "ab"[t % 2], f"{k}") for t in range(2) for k in range(9)), (200, "c", "far"))
    files = FileStream(job_for(table), tmp_path, 3)
    assert files.push(table.slice(0, 18)) == []
    files.push(table.slice(18))
    for version in tmp_path.glob("*/*/[01]/*-all"):
        bucket, order, _, digest, _ = version.name.split("-")
        greatest = "101" if version.parent.name == "0" else "none"
        old = version.with_name(f"{bucket}-{order}-{greatest}-{digest}")
        relative = "/".join(old.parts[-4:])
        path = "/".join(version.parts[-4:])
        old.write_bytes(file_names.pack_state(relative, file_names.unpack_state(path, version.read_bytes())))
        version.unlink()
    files.batch, files.run = 1, uuid.UUID(int=files.run.int + 1)
    assert len(files.push(table.slice(18))) == 9
    assert files.push(table.slice(0, 0)) == []


def test_a_bucket_that_is_kept_goes_on_with_the_bounds_of_now(tmp_path: Path) -> None:
    table = events((100, "a", "x"), (101, "b", "x"), (200, "a", "x"), (201, "b", "x"))
    first, second = table.slice(0, 2), table.slice(2)
    files = FileStream(dataclasses.replace(job_for(first), latest=Latest(tick=150)), tmp_path, 3)
    files.push(first)
    files.job, files.run = dataclasses.replace(files.job, latest=None), uuid.UUID(int=files.run.int + 1)
    files.push(second)
    assert sum(one["ahead"] for one in files.told.values()) == 0
    assert len(files.end()) == 1


def test_the_second_of_united_results_is_refused_without_rows_too(tmp_path: Path) -> None:
    table = events((100, "a", "x"))
    files = FileStream(job_for(table), tmp_path, 5)
    with files._on(2), pytest.raises(EngineError, match="united"):
        list(file_state_worker.step_in_files(files.job, files.place, []))
