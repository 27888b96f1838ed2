"""A followed folder gives what one process gives over all of its files, however these come and whatever is killed."""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError, DataError, DataWarning, QueryError, SnapshotError
from acep.events.files.options import Options
from acep.following import journal
from acep.following.inbox import Inbox
from tests import corpus
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
from tests.each_case import by_file
from tests.random_cases import Case, random_case
from tests.runner.streams import Stream, fast_disk, final, lines_of, the_same

GOOD = [case for case in corpus.load_all() if case.raises is None]
AB = acep.regex("ab", within=5)


@pytest.fixture(autouse=True)
def _fast_disk() -> Iterator[None]:
    with fast_disk():
        yield


def cut(table: pa.Table, stream: Stream, rng: random.Random) -> None:
    """Put a table into the folder as files of random lengths, and follow it now and then."""
    at, number = 0, 0
    while at < table.num_rows:
        size = rng.randint(1, 1 + table.num_rows // 3)
        stream.put(f"{number}.parquet", table.slice(at, size))
        at, number = at + size, number + 1
        if rng.random() < 0.3:
            stream.follow(max_files=rng.randint(1, 3))
    stream.follow(end=True, max_files=rng.randint(1, 3))


# The same as in one process ----------------------------------------------------------------------


@by_file(GOOD[2::4])
def test_files_in_order_are_one_process(case: corpus.Case, tmp_path: Path) -> None:
    check_files_in_order(case, tmp_path)


@pytest.mark.long
@by_file([case for number, case in enumerate(GOOD) if number % 4 != 2])
def test_files_of_the_other_cases_are_one_process(case: corpus.Case, tmp_path: Path) -> None:
    check_files_in_order(case, tmp_path)


def check_files_in_order(case: corpus.Case, folder: Path) -> None:
    query = (acep.regex if case.letters else acep.parse)(case.text, **case.query_options)
    table, options = case.table(), dict(case.stream_options)
    ticks = table.column(options.get("ts", "ts")).to_pylist()
    table = table.take(pa.array(sorted(range(len(ticks)), key=ticks.__getitem__), pa.int64()))
    exact = lines_of(acep.match(table, query, **options))
    stream = Stream(Path(tempfile.mkdtemp(dir=folder)), query, **options)
    cut(table, stream, random.Random(case.id))
    assert the_same(stream.lines(), exact)
    assert sum(one.late for one in stream.told) == 0


def complaint_in_disorder(case: Case, folder: Path) -> str:
    """Follow the events of a case in disorder, and say how what is found differs from the matches of one table."""
    rng = random.Random(case.seed)
    delay = rng.randint(1, 12)
    ticks = [row[case.stream.get("ts", "ts")] for row in case.events]
    order = sorted(range(len(ticks)), key=lambda row: ticks[row] + rng.uniform(0, delay))
    table = case.table().take(pa.array(order, pa.int64()))
    if not table.num_rows:
        return ""
    exact = lines_of(acep.match(table, case.query(), **case.stream))
    stream = Stream(Path(tempfile.mkdtemp(dir=folder)), case.query(), watermark=delay, **case.stream)
    cut(table, stream, rng)
    numbers = {"late": stream.told[-1].late, "matches": stream.told[-1].matches}
    rows, exact_rows = (sorted(json.dumps(row, sort_keys=True) for row in rows) for rows in (stream.lines(), exact))
    differing = difference(rows, exact_rows, ("follow", "match")) or difference(
        numbers, {"late": 0, "matches": len(exact)}, ("follow", "match")
    )
    return differing and f"in the order {order}:\n{differing}"


def test_random_streams_in_disorder_are_one_process(cases: CaseCounts, tmp_path: Path) -> None:
    for seed in range(cases(60)):
        fail_if_wrong(random_case(seed), lambda case: complaint_in_disorder(case, tmp_path))


@pytest.mark.parametrize("output", ["points", "bundles", "count"])
def test_other_outputs_are_those_of_one_process(output: str, tmp_path: Path) -> None:
    rng = random.Random(3)
    table = pa.table({"ts": range(60), "type": rng.choices("abx", k=60), "k": rng.choices("uv", k=60)})
    query = acep.regex("ab", within=6, by="k")
    stream = Stream(tmp_path, query, output=output)
    cut(table, stream, rng)
    exact = acep.match(table, query, output=output)
    if output == "count":
        assert sum(row["count"] for row in stream.lines()) == exact > 0
    else:
        assert the_same(stream.lines(), [json.loads(json.dumps(final(one))) for one in exact])
        assert stream.lines()


def test_several_queries_share_the_files(tmp_path: Path) -> None:
    rng = random.Random(4)
    table = pa.table({"ts": range(80), "type": rng.choices("abc", k=80), "k": rng.choices("uv", k=80)})
    queries = {"up": acep.regex("ab", within=4, by="k"), "all": acep.regex("ac", within=2)}
    stream = Stream(tmp_path, queries)
    cut(table, stream, rng)
    found = acep.match(table, queries)
    exact = [{"query": name, **line} for name in queries for line in lines_of(found[name])]
    ours = [row | {"key": {k: v for k, v in row["key"].items() if v is not None}} for row in stream.lines()]
    assert the_same(ours, exact)
    done = stream.follow()
    assert {name: one.matches for name, one in done.reports.items()} == {name: len(found[name]) for name in queries}
    assert done.report.events == 80


def test_under_a_budget_of_work_it_gives_up_what_one_process_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is known of later events, so that it does not matter how the stream is cut."""
    monkeypatch.setattr("acep.native.session.STRATEGIES", (0, 1))
    rng = random.Random(5)
    table = pa.table({"ts": range(4000), "type": rng.choices("ab", k=4000), "x": [rng.random() for _ in range(4000)]})
    query = acep.parse(
        "PATTERN SEQ(a p, b q, a r) WHERE skip_till_any_match(p, q, r) { q.x > p.x AND r.x > q.x } WITHIN 60"
    )
    limits: dict[str, Any] = {"budget": acep.Budget(work=3), "policy": "newest"}
    stream = Stream(tmp_path, query, **limits)
    cut(table, stream, rng)
    exact = acep.match(table, query, **limits)
    rows = stream.lines()
    assert {row.pop("exact") for row in rows} >= {False}
    assert the_same(rows, lines_of(exact))
    done = stream.follow()
    assert done.report.shed == exact.report.shed > 0
    assert not done.report.exact
    assert "were found" in str(done) or "may be missing" in str(done)


def test_latency_bounds_a_micro_batch(tmp_path: Path) -> None:
    rng = random.Random(6)
    query = acep.parse("PATTERN SEQ(a p, b q, a r) WHERE skip_till_any_match(p, q, r) { r.x > q.x } WITHIN 300")
    stream = Stream(tmp_path, query, output="points", budget=acep.Budget(latency=0.002), policy="newest")
    for at in range(0, 16_000, 1000):
        columns = {
            "ts": range(at, at + 1000),
            "type": rng.choices("ab", k=1000),
            "x": [rng.random() for _ in range(1000)],
        }
        stream.put(f"{at:05}.parquet", pa.table(columns))
    done = stream.follow(max_files=1)
    assert done.report.shed > 0
    assert done.report.events == 16_000
    assert {row["exact"] for row in stream.lines()} >= {False}


# Time --------------------------------------------------------------------------------------------


def test_a_match_is_given_by_the_micro_batch_that_makes_it_certain(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB, watermark=2)
    given = []
    for ts, kind in ((1, "a"), (3, "b"), (5, "x"), (6, "x")):
        stream.put(f"{ts}.csv", f"ts,type\n{ts},{kind}\n")
        stream.follow()
        given.append(len(stream.lines()))
    assert given == [0, 0, 0, 1]


def test_late_events_are_counted_and_not_used(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB, watermark=2)
    stream.put("1.csv", "ts,type\n1,a\n9,x\n")
    stream.put("2.csv", "ts,type\n6,b\n7,x\n9,x\n")  # less than 9 - 2 is late
    done = stream.follow(end=True, max_files=1)
    assert (done.report.events, done.report.late, done.report.matches) == (4, 1, 0)
    assert "1 event came too late" in str(done)


def test_an_event_beyond_the_latest_time_does_not_move_time(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB, watermark=2, unit="s", latest="1 day")
    begins = int(time.time())
    stream.put("1.csv", f"ts,type\n{begins},a\n{begins + 200_000},x\n")
    stream.put("2.csv", f"ts,type\n{begins + 1},b\n")
    done = stream.follow(end=True, max_files=1)
    assert (done.report.events, done.report.late, done.report.ahead, done.report.matches) == (2, 0, 1, 1)
    assert "1 event was too far ahead" in str(done)
    later = Stream(tmp_path / "later", AB, watermark=2, latest=begins)
    later.put("1.csv", f"ts,type\n{begins},a\n{begins + 1},b\n")
    assert later.follow(end=True).report.ahead == 1
    # The bound is no part of the state.
    later = Stream(tmp_path / "more", AB, watermark=2, latest=begins)
    later.put("1.csv", f"ts,type\n{begins},a\n{begins + 1},b\n")
    later.follow()
    later.put("2.csv", f"ts,type\n{begins + 1},b\n")
    assert later.follow(end=True, latest=begins + 1).report.matches == 1


def test_it_warns_when_most_events_are_late(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB, watermark=2)
    stream.put("1.csv", "ts,type\n1,a\n1000000,x\n")
    stream.put("2.csv", "ts,type\n" + "2,b\n" * 10)
    with pytest.warns(acep.DataWarning, match="most events come too late, as time has come to 999998"):
        stream.follow(end=True, max_files=1)
    assert "most rows are late" in stream.told[1].line


def test_only_the_end_decides_what_waits(tmp_path: Path) -> None:
    query = acep.parse("PATTERN SEQ(a x, b y, ~c z) WITHIN 10")
    stream = Stream(tmp_path, query)
    stream.put("1.csv", "ts,type\n1,a\n2,b\n3,x\n")
    assert not stream.follow().ended
    assert stream.lines() == []
    done = stream.follow(end=True)
    assert done.ended
    assert "the stream has ended" in str(done)
    assert [row["bindings"] for row in stream.lines()] == [{"x": [0], "y": [1]}]
    again = stream.follow(end=True)
    assert (again.batches, again.report.matches, len(stream.lines())) == (0, 1, 1)
    stream.put("2.csv", "ts,type\n4,c\n")
    with pytest.raises(SnapshotError, match=r"has ended, and `2\.csv` is new"):
        stream.follow()


def test_a_row_of_the_last_time_ends_the_stream_as_on_spark(tmp_path: Path) -> None:
    query = acep.parse("PATTERN SEQ(a x, b y, ~c z) WITHIN 10 seconds")
    stream = Stream(tmp_path, query)
    stream.put("1.csv", "ts,type\n2024-01-01 00:00:01,a\n2024-01-01 00:00:02,b\n")
    stream.put("2.csv", "ts,type\n9999-12-31 00:00:00,\n")
    assert stream.follow(end_marker=True).report.matches == 1


# Files -------------------------------------------------------------------------------------------


def test_files_are_taken_once_in_the_order_of_their_times(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("b.csv", "ts,type\n1,a\n")
    stream.put("a.jsonl", '{"ts": 2, "type": "b"}\n')
    (stream.events / "deep").mkdir()
    stream.put("c.parquet", pa.table({"ts": [3], "type": ["x"]})).rename(stream.events / "deep" / "c.parquet")
    for name in (".hidden.csv", "_note.csv", "half.csv.tmp", "README.md", "empty.csv"):
        (stream.events / name).write_text("" if name == "empty.csv" else "no events")
    assert stream.follow(max_files=1).batches == 3
    assert stream.follow().batches == 0
    assert [row["bindings"] for row in stream.lines()] == [{"a": [0], "b": [1]}]
    assert [one.rows for one in stream.told] == [1, 1, 1]


def test_files_of_other_names_are_named_once_for_each_ending(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("1.csv", "ts,type\n1,a\n2,b\n")
    for name in ("app.log", "web.log", "notes"):
        (stream.events / name).write_text("no events")
    with pytest.warns(DataWarning, match=r"has 3 files that are not read: `app\.log`, `notes`, `web\.log`") as said:
        assert stream.follow(end=True).report.matches == 1
    assert len(said) == 1
    inbox = Inbox(stream.events, Options(), 1, end_marker=False)
    with pytest.warns(DataWarning, match="has 3 files"):
        assert [file.name for file in inbox.list_files().files] == ["1.csv"]
    (stream.events / "more.log").write_text("no events")
    with warnings.catch_warnings(action="error"):
        inbox.list_files()
    (stream.events / "other.txt").write_text("no events")
    with pytest.warns(DataWarning, match=r"has a file that is not read: `other\.txt`"):
        inbox.list_files()


def test_files_without_rows_settle_nothing(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("1.csv", "ts,type\n")
    assert stream.follow().batches == 0
    stream.put("2.csv", "ts,type\n")
    stream.put("3.csv", "ts,type\n1,a\n2,b\n")
    assert stream.follow(max_files=1, end=True).report.matches == 1


def test_a_folder_without_files_is_no_mistake(tmp_path: Path) -> None:
    done = Stream(tmp_path, AB).follow(end=True)
    assert (done.batches, done.report.events, done.ended) == (0, 0, False)


def test_a_file_that_was_taken_and_changed_is_refused(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("1.csv", "ts,type\n1,a\n")
    stream.follow()
    path.write_text("ts,type\n1,a\n2,b\n")
    with pytest.raises(DataError, match=r"`1\.csv` was changed after its events had been taken"):
        stream.follow()
    path.unlink()
    stream.put("2.csv", "ts,type\n2,b\n3,x\n")
    assert stream.follow().report.matches == 1


@pytest.mark.parametrize("change", ["gone", "longer", "newer"])
def test_a_planned_file_that_changed_is_refused_until_the_plan_is_removed(change: str, tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("1.csv", "ts,type\n1,a\n")
    stream.follow()
    path = stream.put("2.csv", "ts,type\n2,b\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep.following.follower.step_bucket", fail)
        with pytest.raises(RuntimeError):
            stream.follow()
    kept = path.read_text(), path.stat()
    if change == "gone":
        path.unlink()
    elif change == "longer":
        path.write_text("ts,type\n2,b\n3,b\n")
    else:
        os.utime(path)
    with pytest.raises(DataError) as wrong:
        stream.follow()
    assert str(path) in wrong.value.message
    assert str(stream.state / "plans" / "1") in str(wrong.value.hint)
    if change == "gone":  # put back as it was
        path.write_text(kept[0])
        os.utime(path, ns=(kept[1].st_atime_ns, kept[1].st_mtime_ns))
    else:
        (stream.state / "plans" / "1").unlink()
    assert stream.follow(end=True).report.events == (3 if change == "longer" else 2)
    assert stream.lines()


def fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError("killed")


# Types -------------------------------------------------------------------------------------------

LONG = acep.parse("PATTERN SEQ(a p, b q) WHERE q.x > p.x WITHIN 9")


def after(tmp_path: Path, first: str, then: str, name: str = "2.csv", **options: Any) -> list[Any]:
    """The results over two files, of which the first settles the types."""
    stream = Stream(tmp_path, LONG, **options)
    stream.put("1.jsonl" if name.endswith("jsonl") else "1.csv", first)
    stream.follow()
    stream.put(name, then)
    stream.follow(end=True)
    return [row["bindings"] for row in stream.lines()]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("ts,type,x\n1,a,1\n", "ts,type,x\n2,b,2\n"),
        ("ts,type,x\n1,a,1.5\n", "ts,type,x\n2,b,2\n"),  # an integer is a float
        ("ts,type,x\n1,a,z1\n", "ts,type,x\n2,b,z2\n"),
        ("ts,type,x\n1,a,0\n5,a,07\n", "ts,type,x\n2,b,1\n"),  # digits stay text
        ("ts,type,x,y\n1,a,1,q\n", "y,x,type,ts\nq,2,b,2\n"),
        ("ts,type,x\n1,a,2024-01-01 10:00:00\n", "ts,type,x\n2,b,2024-01-01 10:00:00.5\n"),
    ],
)
def test_values_that_fit_are_taken(first: str, then: str, tmp_path: Path) -> None:
    assert after(tmp_path, first, then, watermark=9)[0]["q"]


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ("ts,type,x\n1,a,1\n", "ts,type,x\n2,b,2\n3,b,2.5\n", "line 3: `x` is double, as 2.5 is"),
        ("ts,type,x\n1,a,1\n", "ts,type,x\n2,b,2\n3,b,oh\n", "line 3: `x` is string, as 'oh' is"),
        ("ts,type,x\n1,a,1\n", "ts,type,x\n2,b,2\n3,b,07\n", "line 3: `x` is string, as '07' is"),
        ("ts,type,x\n1,a,1\n", "ts,type\n2,b\n", "has no column `x`"),
        ("ts,type,x\n1,a,2024-01-01\n", "ts,type,x\n2,b,2024-01-01 10:00:00\n", "made it date32"),
        ("ts,type,x\n1,a,\n", "ts,type,x\n2,b,1\n", "made it null"),
        ("ts,type,x\n1,a,1\n", "ts,type,x\n,b,2\n", "line 2: `ts` is null"),
        ("ts,type,x\n1,a,1\n", "ts,type,x\n2,b\n", "line 2 has 2 cells"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_file_and_row(
    first: str, then: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message) as wrong:
        after(tmp_path, first, then)
    assert "2.csv`" in wrong.value.message
    # Nothing was planned, so that the file can be mended.
    (tmp_path / "events" / "2.csv").unlink()
    stream = Stream(tmp_path, LONG)
    stream.put("2.csv", first.replace("\n1,a", "\n2,b").replace(",1\n", ",2\n"))
    assert stream.follow(end=True).ended


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_the_cast_that_the_refusal_names_holds_an_integer_that_no_double_equals(form: str, tmp_path: Path) -> None:
    texts = {"csv": "ts,type,x\n{},{},{}\n", "jsonl": '{{"ts":{},"type":"{}","x":{}}}\n'}
    first, then = (texts[form].format(*row) for row in ((1, "a", "1.5"), (2, "b", 2**53 + 1)))
    (tmp_path / "refused").mkdir()
    with pytest.raises(DataError, match="`x` is int64, as 9007199254740993 is") as wrong:
        after(tmp_path / "refused", first, then, f"2.{form}")
    assert str(wrong.value.hint).endswith('cast={"x": "decimal(19,3)"}')
    assert after(tmp_path, first, then, f"2.{form}", cast={"x": "decimal(19,3)"}) == [{"p": [0], "q": [1]}]


def test_times_of_another_kind_are_refused_without_a_cast_to_texts(tmp_path: Path) -> None:
    first, then = '{"ts": 1, "type": "a", "x": 1}\n', '{"ts": "2024-01-01T00:00:00", "type": "b", "x": 2}\n'
    with pytest.raises(DataError, match="the files before it made it int64") as wrong:
        after(tmp_path, first, then, "2.jsonl")
    assert wrong.value.hint == "mend the file, or write the times of all files as integers, or all as dates and times"


def test_a_cast_holds_for_all_files(tmp_path: Path) -> None:
    first, then = "ts,type,x\n1,a,1\n", "ts,type,x\n2,b,2.5\n"
    assert after(tmp_path, first, then, cast={"x": "float"}) == [{"p": [0], "q": [1]}]


def test_an_attribute_that_json_leaves_out_is_null(tmp_path: Path) -> None:
    first, then = '{"ts": 1, "type": "a", "x": 1}\n', '{"ts": 2, "type": "b"}\n{"ts": 3, "type": "b", "x": 2}\n'
    assert after(tmp_path, first, then, "2.jsonl") == [{"p": [0], "q": [2]}]


def test_bad_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB, skip_bad_lines=True, max_skipped=0.25)
    stream.put("1.csv", "ts,type\n1,a\noh,no,no\n2,b\n3,x\n")
    done = stream.follow()
    assert (done.bad.count, done.report.matches) == (1, 1)


# State -------------------------------------------------------------------------------------------


def test_of_two_followers_the_older_is_refused(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)

    def overtake(_: Any) -> None:
        if not overtaken:
            overtaken.append(1)
            stream.put("2.csv", "ts,type\n2,b\n")
            stream.follow()
            stream.put("3.csv", "ts,type\n3,x\n")

    overtaken: list[int] = []
    stream.put("1.csv", "ts,type\n1,a\n")
    with pytest.raises(SnapshotError, match="another") as wrong:
        stream.follow(tell=overtake)
    assert "one follower" in str(wrong.value.hint) or "one of them" in str(wrong.value.hint)
    assert stream.follow(end=True).report.events == 3
    assert len(stream.lines()) == 1


def test_results_that_could_not_be_written_are_written_by_the_next_follower(tmp_path: Path) -> None:
    """As after a disk was full."""
    stream, moved = Stream(tmp_path, AB), tmp_path / "moved"
    for number in range(3):
        stream.put(f"{number}.csv", f"ts,type\n{10 * number},a\n{10 * number + 1},b\n{10 * number + 9},x\n")

    def block(progress: Any) -> None:
        if progress.batch == 0:
            stream.found.rename(moved)
            stream.found.write_text("no folder")

    with pytest.raises(DataError, match="results cannot be written"):
        stream.follow(max_files=1, tell=block)
    stream.found.unlink()
    moved.rename(stream.found)
    assert stream.follow(end=True).report.matches == 3
    assert the_same(stream.lines(), lines_of(acep.match(acep.read_events(stream.events), AB)))


@pytest.mark.parametrize(
    "change",
    [
        {"output": "points"},
        {"cast": {"type": "string"}},
        {"budget": acep.Budget(work=3)},
        {"query": acep.regex("ab", within=6)},
        {"query": "PATTERN SEQ(a p, b q) WHERE q.volume > p.volume WITHIN 5"},
    ],
    ids=str,
)
def test_another_query_is_refused_and_nothing_is_lost(change: dict[str, Any], tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("1.csv", "ts,type\n1,a\n")
    stream.follow()
    other = Stream(tmp_path, change.get("query", AB), **{k: v for k, v in change.items() if k != "query"})
    with pytest.raises(SnapshotError, match="was made with") as wrong:
        other.follow()
    assert "\n" not in wrong.value.message
    stream.put("2.csv", "ts,type\n2,b\n3,x\n")
    assert stream.follow().report.matches == 1


def test_results_of_another_state_are_not_written_over(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("1.csv", "ts,type\n1,a\n2,b\n3,x\n")
    stream.follow()
    other = Stream(tmp_path, AB)
    other.state = tmp_path / "other"
    with pytest.raises(SnapshotError, match="has results up to micro-batch 0"):
        other.follow()
    assert stream.lines()


def test_every_damage_is_one_line(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    for number in range(3):
        stream.put(f"{number}.csv", f"ts,type\n{number},a\n")
        stream.follow()
    stream.put("4.csv", "ts,type\n4,b\n5,x\n")
    read = [stream.state / name for name in ("settings", "plans/0", "plans/1", "done/2")]
    for path in [*read, *(stream.state / "versions").glob("*/*/2/*"), stream.state / "plans" / "2"]:
        kept = path.read_bytes()
        for data in (b"", b"[1]", b"{}", kept[: len(kept) // 2], *([] if path.parent.name == "done" else [None])):
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            with pytest.raises(SnapshotError) as wrong:
                stream.follow()
            assert "\n" not in wrong.value.message
            assert wrong.value.hint
            path.write_bytes(kept)
            (stream.state / "plans" / "3").unlink(missing_ok=True)
    assert stream.follow().report.events == 5


def test_the_way_back(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    for number in range(6):
        stream.put(f"{number}.csv", f"ts,type\n{2 * number},a\n{2 * number + 1},b\n")
        stream.follow()
    exact = stream.lines()
    (broken,) = (path for path in (stream.state / "versions").glob("*/*/5/*"))
    broken.write_bytes(b"oh")
    stream.put("6.csv", "ts,type\n12,x\n")
    with pytest.raises(SnapshotError, match="damaged") as wrong:
        stream.follow()
    assert "beginning of micro-batch 5" in str(wrong.value.hint)
    plans = [stream.state / "plans" / number for number in ("5", "6")]
    back = [*plans, stream.state / "done" / "5", stream.found / "000000005.jsonl"]
    for path in [*back, *broken.parent.iterdir()]:
        path.unlink(missing_ok=True)
    broken.parent.rmdir()
    stream.follow()
    assert stream.lines()[: len(exact)] == exact
    assert the_same(stream.lines(), lines_of(acep.match(acep.read_events(stream.events), AB)))


@pytest.mark.long
@pytest.mark.parametrize("last", [121, pytest.param(1_001, marks=pytest.mark.whole)])
def test_nothing_grows(last: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "EVERY", 20)
    stream = Stream(tmp_path, AB)
    # Plans are removed every 20 micro-batches, so that as many are there at both looks.
    first, seen = 60, list[tuple[int, int]]()

    def next_file(done: Any) -> None:
        (stream.events / f"{done.batch}.csv").unlink()
        if done.batch in (first, last - 1):
            seen.append((sum(1 for _ in stream.state.rglob("*")), done.state))
        if done.batch + 1 < last:
            stream.put(f"{done.batch + 1}.csv", f"ts,type\n{done.batch + 1},{'ab'[done.batch % 2]}\n")

    stream.put("0.csv", "ts,type\n0,b\n")
    stream.follow(tell=next_file)
    (files, state), (files_later, state_later) = seen
    assert files_later <= files + 20
    assert state_later <= state + 16 * (len(str(last - 1)) - len(str(first)))  # numbers have more digits
    assert len(list((stream.state / "versions").glob("*/*/[0-9]*"))) == journal.KEEP + 2
    assert stream.follow(end=True).report.events == last


@pytest.mark.long
def test_what_was_taken_is_known_after_plans_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "EVERY", 5)
    stream = Stream(tmp_path, AB)
    for number in range(40):
        stream.put(f"{number}.csv", f"ts,type\n{number},{'ab'[number % 2]}\n")
        if number % 7 == 0:
            stream.follow(max_files=1)
    stream.follow(max_files=1)
    assert len(list((stream.state / "plans").iterdir())) < 20
    done = stream.follow(end=True)
    assert (done.report.events, done.report.matches) == (40, 20 + 19 + 18)
    (taken,) = (stream.state / "taken").iterdir()
    taken.write_text("[1]")
    with pytest.raises(SnapshotError, match="damaged"):
        stream.follow()


def test_no_file_is_taken_again_after_plans_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "EVERY", 5)
    stream, size = Stream(tmp_path, AB, watermark=1000), journal.KEEP + 10
    for number in range(size):
        stream.put(f"{number:02}.csv", f"ts,type\n{number},{'ab'[number % 2]}\n")
        stream.follow()
        assert stream.follow().batches == 0
    assert len(list((stream.state / "plans").iterdir())) < size
    assert stream.follow(end=True).report.events == size
    assert the_same(stream.lines(), lines_of(acep.match(acep.read_events(stream.events), AB)))


# Mistakes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"into_format": "xml"}, DataError, "no format 'xml' of results"),
        ({"max_files": 0}, DataError, "max_files=0"),
        ({"poll": 0}, DataError, "poll=0"),
        ({"watermark": "10"}, DataError, "no unit of time"),
        ({"watermark": "10 minutes"}, DataError, "how long a tick"),
        ({"watermark": -1}, DataError, "negative"),
        ({"watermark": None}, DataError, "watermark= takes"),
        ({"latest": "1 hour"}, DataError, "needs to know how long a tick"),
        ({"output": "exists"}, QueryError, "no output='exists'"),
        ({"ts": "when"}, DataError, "no column `when`"),
        ({"cast": {"ts": "int7"}}, DataError, "cannot be cast"),
        ({"policy": "mine", "budget": acep.Budget(work=1)}, AcepError, "mine"),
    ],
    ids=str,
)
def test_mistakes_are_one_line(options: dict[str, Any], error: type[AcepError], message: str, tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB, **options)
    stream.put("1.csv", "ts,type\n1,a\n")
    with pytest.raises(error, match=message) as wrong:
        stream.follow()
    assert "\n" not in wrong.value.message


def test_folders_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no folder"):
        acep.follow(tmp_path / "none", AB, state=tmp_path / "s", into=tmp_path / "o", once=True)
    for name in ("state", "into"):
        folders = {"state": tmp_path / "s", "into": tmp_path / "o"} | {name: tmp_path / "events" / "inside"}
        (tmp_path / "events").mkdir(exist_ok=True)
        with pytest.raises(DataError, match=f"{name}= is a folder whose files would be taken for events"):
            acep.follow(tmp_path / "events", AB, once=True, **folders)
    with pytest.raises(DataError, match="folder on a disk"):
        acep.follow(tmp_path / "events", AB, state="s3://bucket/state", into=tmp_path / "o", once=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="results cannot be written"):
        acep.follow(tmp_path / "events", AB, state=tmp_path / "s", into=tmp_path / "file", once=True)
