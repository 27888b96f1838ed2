"""The folder of results is of one state: what another follower wrote there is not written over, nor mixed with more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.bucket_state.folders import give_name
from acep.errors import SnapshotError
from acep.following.outbox import Outbox
from tests.runner.streams import Stream, fast_disk, results

AB = acep.regex("ab", within=5)


@pytest.fixture(autouse=True)
def _fast_disk() -> Iterator[None]:
    with fast_disk():
        yield


def two_streams(root: Path) -> tuple[Stream, Stream]:
    """Two followers with events and states of their own, and one folder of results."""
    first, second = Stream(root / "first", AB), Stream(root / "second", AB)
    second.found = first.found
    return first, second


def put_match(stream: Stream, number: int, *, matches: bool = True) -> None:
    at = 10 * number
    stream.put(f"{number}.csv", f"ts,type\n{at},a\n{at + 1},{'b' if matches else 'x'}\n{at + 2},x\n")


def test_a_second_state_is_refused_before_it_plans_anything(tmp_path: Path) -> None:
    first, second = two_streams(tmp_path)
    put_match(first, 0)
    first.follow()
    put_match(second, 0, matches=False)
    with pytest.raises(SnapshotError, match=r"has results up to micro-batch 0 that are not of the state in `.*second"):
        second.follow()
    assert not (second.state / "plans").exists()
    second.found = tmp_path / "of its own"
    put_match(second, 1)
    assert second.follow().report.matches == 1
    put_match(first, 1)
    first.follow()
    assert [row["start"] for row in first.lines()] == [0, 10]


@pytest.mark.parametrize("quiet", [1, 2])
def test_of_two_that_run_at_once_the_one_that_comes_second_is_refused(quiet: int, tmp_path: Path) -> None:
    """Also if its first micro-batches have no results, so that no number is the same."""
    first, second = two_streams(tmp_path)
    for number in range(5):
        put_match(second, number, matches=number >= quiet)

    def come_between(progress: Any) -> None:
        if progress.batch == 0:
            put_match(first, 0)
            first.follow()

    with pytest.raises(SnapshotError, match="has results up to micro-batch 0"):
        second.follow(max_files=1, tell=come_between)
    assert_first_goes_on(first, second, "has results up to micro-batch 0")


@pytest.mark.parametrize(
    ("moment", "message"),
    [("Outbox.write", "has results up to micro-batch 0"), ("give_name", "another follower has written to")],
)
def test_results_that_come_while_a_micro_batch_is_stepped_are_not_written_over(
    moment: str, message: str, tmp_path: Path
) -> None:
    first, second = two_streams(tmp_path)
    put_match(first, 0)
    put_match(second, 3)

    def come_between(*arguments: Any, **options: Any) -> Any:
        patch.undo()
        first.follow()
        return usual(*arguments, **options)

    usual = Outbox.write if moment == "Outbox.write" else give_name
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"acep.following.outbox.{moment}", come_between)
        with pytest.raises(SnapshotError, match=message):
            second.follow()
    assert_first_goes_on(first, second, "another follower has written to")


def assert_first_goes_on(first: Stream, second: Stream, message: str) -> None:
    """The second stream stays refused, and the first one finds both of its matches."""
    before = (first.found / "000000000.jsonl").read_text()
    with pytest.raises(SnapshotError, match=message):
        second.follow()
    put_match(first, 1)
    assert first.follow().report.matches == 2
    assert (first.found / "000000000.jsonl").read_text() == before
    assert [row["start"] for row in first.lines()] == [0, 10]
    second.found = second.state.parent / "of its own"
    assert second.follow().report.matches == len(second.lines()) > 0


def test_a_copy_of_a_state_does_not_write_over_the_results_of_the_other(tmp_path: Path) -> None:
    first = Stream(tmp_path / "first", AB)
    put_match(first, 0)
    first.follow()
    copy = Stream(tmp_path / "copy", AB)
    shutil.rmtree(copy.events)
    copy.events, copy.found = first.events, first.found
    shutil.copytree(first.state, copy.state)
    put_match(first, 1)
    first.follow()
    put_match(first, 2)
    with pytest.raises(SnapshotError, match="has results up to micro-batch 1 that are not of the state"):
        copy.follow()
    assert first.follow().report.matches == 3


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("changed", [False, True], ids=["same", "changed"])
def test_results_that_a_killed_follower_has_written_are_there_already(form: str, changed: bool, tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB, into_format=form)
    put_match(stream, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep.following.journal.Journal.finish", fail)
        with pytest.raises(RuntimeError):
            stream.follow()
    (path,) = stream.found.iterdir()
    before = path.read_bytes()
    if form == "parquet":  # another version of Arrow writes the same rows as other bytes
        table = pq.read_table(path)
        pq.write_table(pa.concat_tables([table, table]) if changed else table, path, compression="none")
        assert path.read_bytes() != before
    elif changed:
        path.write_bytes(before.replace(b"1", b"2"))
    now = path.read_bytes()
    if changed:
        with pytest.raises(SnapshotError, match="another follower has written to"):
            stream.follow()
        path.unlink()
    assert stream.follow().report.matches == 1
    assert changed or path.read_bytes() == now
    assert len(list(stream.found.iterdir())) == 1


def fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError("killed")


def test_a_budget_of_memory_may_give_other_rows_when_it_is_begun_again(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB, budget=acep.Budget(memory="16 MB"))
    put_match(stream, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep.following.journal.Journal.finish", fail)
        with pytest.raises(RuntimeError):
            stream.follow()
    (stream.found / "000000000.jsonl").write_text("")
    stream.follow()
    assert [row["start"] for row in stream.lines()] == [0]


def test_what_another_follower_is_writing_is_not_removed_by_one_that_is_refused(tmp_path: Path) -> None:
    first, second = two_streams(tmp_path)
    put_match(first, 0)
    first.follow()
    draft = first.found / f".000000001.jsonl.{'0' * 32}.tmp"
    draft.write_text("half")
    with pytest.raises(SnapshotError, match="has results up to"):
        second.follow()
    assert draft.exists()
    first.follow()  # its own, of a killed one
    assert not draft.exists()


def test_results_may_be_moved_away(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    for number in range(3):
        put_match(stream, number)
        stream.follow()
        for path in stream.found.iterdir():
            path.unlink()
    assert stream.follow().report.matches == 3


def test_a_state_of_an_earlier_acep_does_not_say_which_results_were_the_last(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    put_match(stream, 0)
    stream.follow()
    path = stream.state / "done" / "0"
    done = json.loads(path.read_text())
    assert done.pop("results") == 0
    path.write_text(json.dumps(done))
    put_match(stream, 1)
    assert stream.follow().report.matches == 2
    assert len(results(stream.found)) == 2
