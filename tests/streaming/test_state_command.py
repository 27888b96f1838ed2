"""``acep state``: what it shows of a state, and how a query goes back, from every point at which a kill may stop it."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyarrow import fs

import acep
from acep.bucket_state import going_back, run_orders
from acep.bucket_state.call_description import CallDescription, list_differences, read_description, write_description
from acep.bucket_state.checkpoints import read_checkpoint
from acep.bucket_state.folders import Folder, LocalFolder, RemoteFolder, folder_of
from acep.bucket_state.going_back import go_back, plan_removal, remove_all
from acep.bucket_state.state_files import StateFiles
from acep.bucket_state.state_listing import list_calls
from acep.cli import main
from acep.errors import SnapshotError

pytestmark = pytest.mark.usefixtures("new_process")

QUERY = str(UUID(int=7))
CALL = "c0ffee"
BUCKETS = 2
KEEP = 100
TEXT = "PATTERN SEQ(a x, b y) WITHIN 5 s"
ABOUT = CallDescription({"": TEXT}, {"ts": "int"}, {"buckets": BUCKETS, "ts": "ts"}, BUCKETS, (1000, 1), True, "0.1.0")


class Stream:
    """A stand-in for Spark: it keeps offsets and commits as Spark does, and steps micro-batches of state files."""

    def __init__(self, checkpoint: Path, state: Path, calls: tuple[str, ...] = (CALL,)) -> None:
        self.checkpoint, self.state, self.calls = checkpoint, state, calls
        self.run = 1
        for name in ("offsets", "commits"):
            (checkpoint / name).mkdir(parents=True, exist_ok=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": QUERY}))

    def numbers(self, name: str) -> list[int]:
        return sorted(int(path.name) for path in (self.checkpoint / name).iterdir() if path.name.isdigit())

    def write(self, name: str, batch: int) -> None:
        (self.checkpoint / name / str(batch)).write_text("v1")
        (self.checkpoint / name / f".{batch}.crc").write_text("sum")

    def next(self) -> int:
        """The micro-batch with which a start goes on (``MicroBatchExecution.populateStartOffsets``)."""
        offsets, commits = self.numbers("offsets"), self.numbers("commits")
        if not offsets:
            return 0
        assert offsets[-1] == 0 or offsets[-2] == offsets[-1] - 1
        return offsets[-1] + 1 if commits and commits[-1] == offsets[-1] else offsets[-1]

    def restart(self) -> None:
        self.run += 1
        run_orders._begun.clear()

    def task(self, call: str) -> StateFiles:
        run = str(UUID(int=self.run))
        about = lambda: ABOUT  # noqa: E731
        options: dict[str, Any] = {"buckets": BUCKETS, "keep": KEEP, "describe": about}
        return StateFiles(str(self.state), query=QUERY, call=call, run=run, **options)

    def step(self, *, commits: bool = True) -> int:
        """The next micro-batch, whose number comes back; its state tells which micro-batches it was made of."""
        batch = self.next()
        self.write("offsets", batch)
        for call in self.calls:
            for bucket in range(BUCKETS):
                task = self.task(call)
                before = task.begin_batch(batch)
                history = json.loads(task.read(before[bucket])) if batch else []
                assert history == [*range(batch)], "the state is that of another micro-batch"
                task.write(batch, bucket, batch * 10 + bucket, f"{batch:032x}", json.dumps([*history, batch]).encode())
        if commits:
            self.write("commits", batch)
        return batch


def stream(tmp_path: Path, batches: int, *, commits_last: bool = True, calls: tuple[str, ...] = (CALL,)) -> Stream:
    made = Stream(tmp_path / "run", tmp_path / "run" / "acep", calls)
    for number in range(batches):
        made.step(commits=commits_last or number < batches - 1)
    return made


def folders_of(made: Stream) -> tuple[LocalFolder, LocalFolder]:
    return LocalFolder(made.checkpoint), LocalFolder(made.state)


def shown(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    capsys.readouterr()
    assert main(["state", *map(str, args)]) == 0
    return capsys.readouterr().out


def refusal(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    capsys.readouterr()
    assert main(["state", *map(str, args)]) == 2
    return capsys.readouterr().err


def all_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The listing -----------------------------------------------------------------------------------------


def test_a_checkpoint_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = stream(tmp_path, 4)
    before = all_files(tmp_path)
    assert shown(capsys, made.checkpoint).splitlines() == [
        f"checkpoint of the query {QUERY}",
        "last offset 3, last commit 3",
        "can go back to micro-batch: 0 to 3",
        f"state in `{made.state}`",
        f"call {CALL}",
        "  versions: 0 to 3, of 2 buckets; the newest has 24 bytes",
        "  newest time: 1970-01-01T00:00:31.000Z",
        f"  query: {TEXT}",
    ]
    record = json.loads(shown(capsys, made.checkpoint, "--json"))
    assert (record["kind"], record["query"], record["back_to"]) == ("checkpoint", QUERY, [0, 1, 2, 3])
    (call,) = record["calls"]
    assert (call["reached"], call["queries"], call["options"]) == (31, {"": TEXT}, {"buckets": 2, "ts": "ts"})
    assert all_files(tmp_path) == before


def test_a_folder_of_state_is_shown_by_path_and_by_uri(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = stream(tmp_path, 2)
    (made.state / QUERY / CALL / "job").unlink()
    text = shown(capsys, made.state)
    assert text == shown(capsys, made.state.as_uri())
    assert text.splitlines()[:2] == [f"query {QUERY}", f"call {CALL}"]
    assert "newest time: tick 11" in text
    assert "queries: not recorded" in text


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 2}', b"\xff", b"[" * 100_000])
def test_a_description_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    made = stream(tmp_path, 2)
    (made.state / QUERY / CALL / "job").write_bytes(content)
    (call,) = list_calls(LocalFolder(made.state))
    assert call.description is None
    assert (call.buckets, call.versions) == (2, (0, 1))
    made.restart()
    assert made.step() == 2


def test_what_is_missing_or_damaged_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = stream(tmp_path, 7)
    call = made.state / QUERY / CALL
    next((call / "1").glob("1-*")).unlink()
    shutil.rmtree(call / "3")
    damaged = next((call / "4").glob("0-*"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    text = shown(capsys, made.checkpoint)
    assert "  missing: micro-batch 1: bucket 1\n  missing: micro-batch 3: all buckets\n" in text
    assert "damaged" not in text  # only the newest version was read
    assert "can go back to micro-batch: 0 to 1, 3, 5 to 6\n" in text
    text = shown(capsys, made.checkpoint, "--check")
    assert f"  damaged: {damaged.relative_to(made.state)}\n" in text
    assert "can go back to micro-batch: 0 to 1, 3, 6\n" in text


def test_a_micro_batch_that_is_not_done_misses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = stream(tmp_path, 3, commits_last=False)
    next((made.state / QUERY / CALL / "2").glob("1-*")).unlink()
    text = shown(capsys, made.checkpoint)
    assert "missing" not in text
    assert "last offset 2, last commit 1\ncan go back to micro-batch: 0 to 2\n" in text


def test_the_state_of_a_follower_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("ts,type\n1,a\n2,b\n")
    query = acep.regex("ab", within=5)
    acep.follow(tmp_path / "in", query, state=tmp_path / "state", into=tmp_path / "out", unit="s", once=True)
    lines = shown(capsys, tmp_path / "state").splitlines()
    assert lines[0] == "state of acep follow: last planned 0, last done 0"
    assert lines[2].startswith("  versions: 0, of 1 bucket; the newest has ")
    assert lines[3] == "  newest time: tick 2"  # seconds since a time that nobody named
    assert lines[4].startswith("  query: LETTERS ")
    text = refusal(capsys, tmp_path / "state", "--go-back", 0, "--yes")
    assert "is no checkpoint of Spark [state_other]\n" in text
    assert "docs/howto/follow.md" in text


@pytest.mark.parametrize("place", ["", "nowhere", "file"])
def test_a_folder_of_something_else_is_refused(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert re.search(
        r"is no checkpoint and no folder of state \[file_read\]|cannot be used", refusal(capsys, tmp_path / place)
    )


def test_a_checkpoint_without_its_id_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = stream(tmp_path, 1)
    for text in ("", "{}", '{"id": 5}', '{"id": "../x"}', "[]"):
        (made.checkpoint / "metadata").write_text(text)
        assert "has no id of a query" in refusal(capsys, made.checkpoint)


# Going back ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [(CALL,), ("aa", "bb")])
@pytest.mark.parametrize("commits_last", [True, False])
@pytest.mark.parametrize("batch", range(5))
def test_a_query_goes_back_and_on(tmp_path: Path, batch: int, commits_last: bool, calls: tuple[str, ...]) -> None:
    made = stream(tmp_path, 5, commits_last=commits_last, calls=calls)
    removal = go_back(*folders_of(made), batch)
    assert (removal.batch, removal.last) == (batch, 4)
    assert made.numbers("offsets") == [*range(batch + 1)]
    assert made.numbers("commits") == [*range(batch)]
    assert sorted(path.name for path in (made.checkpoint / "commits").glob(".*.crc")) == [
        f".{number}.crc" for number in range(batch)
    ]
    made.restart()
    assert [made.step() for _ in range(batch, 6)] == [*range(batch, 6)]
    again = plan_removal(*folders_of(made), 5)
    assert (again.last, len(again.versions)) == (5, len(calls))


@pytest.mark.long
@pytest.mark.parametrize(
    ("batch", "commits_last"),
    [
        pytest.param(batch, commits_last, marks=[pytest.mark.long] if batch % 2 == commits_last else [])
        for batch in range(4)
        for commits_last in (True, False)
    ],
)
def test_each_beginning_of_a_removal_is_refused_or_right(tmp_path: Path, batch: int, commits_last: bool) -> None:
    """A kill stops it after any path, and in the middle of a folder; afterwards it can be done once more."""
    calls = ("aa", "bb")
    untouched = stream(tmp_path / "untouched", 5, commits_last=commits_last, calls=calls)
    removal = plan_removal(*folders_of(untouched), batch)
    count, refused = removal.count, 0
    for removed in range(count):
        for is_halved in (False, True) if removed < len(removal.versions) else (False,):
            run_orders._begun.clear()
            checkpoint = tmp_path / f"{removed} {is_halved}" / "run"
            shutil.copytree(untouched.checkpoint, checkpoint)
            made = Stream(checkpoint, checkpoint / "acep", calls)
            removal = plan_removal(*folders_of(made), batch)
            steps = remove_all(*folders_of(made), removal)
            for _ in range(removed):
                next(steps)
            if is_halved:
                next((made.state / removal.versions[removed]).iterdir()).unlink()
            copy = shutil.copytree(made.checkpoint, tmp_path / f"{removed} {is_halved}" / "copy")
            restarted = Stream(copy, copy / "acep", calls)
            restarted.run = 9
            run_orders._begun.clear()
            begun = restarted.next()
            try:
                restarted.step()  # its state is that of all micro-batches before, or this fails
            except SnapshotError:
                refused += 1
            else:
                # It went on where it was: nothing is taken back, or the last one, which was not done.
                assert begun == batch or not removed or begun == 4
            for folder in (made, restarted):
                go_back(*folders_of(folder), batch)
                folder.restart()
                assert folder.step() == batch
    assert refused >= count - 3


def test_a_run_that_is_alive_is_refused_from_then_on(tmp_path: Path) -> None:
    made = stream(tmp_path, 3)
    task = made.task(CALL)
    task.begin_batch(3)
    go_back(*folders_of(made), 1)
    with pytest.raises(SnapshotError, match="another run of this streaming query has taken over"):
        task.write(3, 0, 30, f"{3:032x}", b"")
    assert not (made.state / QUERY / CALL / "3").exists()
    made.restart()
    assert made.step() == 1


def test_what_a_live_query_writes_meanwhile_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = stream(tmp_path, 3)

    def write_late(*args: Any) -> Iterator[str]:
        yield from remove_all(*args)
        made.write("commits", 2)

    monkeypatch.setattr(going_back, "remove_all", write_late)
    with pytest.raises(SnapshotError, match="has written while it was taken back"):
        go_back(*folders_of(made), 1)


def test_state_that_is_missing_or_damaged_is_refused_before_anything_is_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = stream(tmp_path, 5)
    call = made.state / QUERY / CALL
    damaged = next((call / "1").glob("0-*"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    next((call / "2").glob("1-*")).unlink()
    before = all_files(tmp_path)
    assert "state is damaged: `" in refusal(capsys, made.checkpoint, "--go-back", 2, "--yes")
    text = refusal(capsys, made.checkpoint, "--go-back", 3, "--yes")
    assert "has not the state of all 2 buckets after micro-batch 2" in text
    assert "hint: go back to one of the micro-batches 0 to 1, 4\n" in text
    assert all_files(tmp_path) == before
    shown(capsys, made.checkpoint, "--go-back", 1, "--yes")
    made.restart()
    assert made.step() == 1


def test_what_the_checkpoint_no_longer_has_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = stream(tmp_path, 5)
    for name in ("offsets", "commits"):
        for number in (0, 1):
            (made.checkpoint / name / str(number)).unlink()
    assert "cannot go back to micro-batch 5: the last one that it has begun is 4" in refusal(
        capsys, made.checkpoint, "--go-back", 5, "--yes"
    )
    for batch in (0, 1, 2):
        text = refusal(capsys, made.checkpoint, "--go-back", batch, "--yes")
        assert "it has no longer the offsets and commits" in text
        assert "hint: go back to one of the micro-batches 3 to 4\n" in text
    (made.checkpoint / "commits" / "2").unlink()
    assert "it has no longer" in refusal(capsys, made.checkpoint, "--go-back", 3, "--yes")


def test_a_call_that_ended_before_stays(tmp_path: Path) -> None:
    """State of other options, and a folder without any, are no part of the query that goes on."""
    made = stream(tmp_path, 2, calls=("aa",))
    made.calls = (CALL,)
    for folder in ("0", "1"):
        shutil.copytree(made.state / QUERY / "aa" / folder, made.state / QUERY / "dd" / folder)
    (made.state / QUERY / "ee" / "4").mkdir(parents=True)
    (made.state / QUERY / "ee" / "4" / "begun").touch()
    made.calls = ("aa",)
    for _ in range(3):
        made.step()
    removal = go_back(*folders_of(made), 4)
    assert removal.calls == (f"{QUERY}/aa",)
    assert removal.versions == (f"{QUERY}/aa/4", f"{QUERY}/ee/4")
    assert (made.state / QUERY / "dd" / "1").exists()
    made.restart()
    assert made.step() == 4


def test_the_state_of_another_query_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = stream(tmp_path, 2)
    made.state.rename(tmp_path / "elsewhere")
    text = refusal(capsys, made.checkpoint, "--go-back", 1, "--yes")
    assert f"has no state of the query {QUERY}" in text
    assert "--state FOLDER" in text
    assert ": none of this query\n" in shown(capsys, made.checkpoint)
    assert "versions: 0 to 1" in shown(capsys, made.checkpoint, "--state", tmp_path / "elsewhere")
    shown(capsys, made.checkpoint, "--go-back", 1, "--yes", "--state", tmp_path / "elsewhere")
    made.state = tmp_path / "elsewhere"
    made.restart()
    assert made.step() == 1


def test_the_command_says_what_it_removes_and_removes_nothing_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stream(tmp_path, 3)
    before = all_files(tmp_path)
    paths = [f"{made.state}/{QUERY}/{CALL}/{number}" for number in (2, 1)]
    paths += [f"{made.checkpoint}/{path}" for path in ("commits/2", "commits/1", "offsets/2")]
    end = [
        "the query begins with micro-batch 1; take back what micro-batches 1 to 2 wrote to the sink",
        "of a file sink remove 1 and later from `_spark_metadata`",
    ]
    text = shown(capsys, made.checkpoint, "--go-back", 1, "--dry-run")
    assert text.splitlines() == [*(f"would remove `{path}`" for path in paths), *end]
    assert "--yes removes it" in refusal(capsys, made.checkpoint, "--go-back", 1)
    answers = io.StringIO("no\nyes\n")
    monkeypatch.setattr(answers, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", answers)
    assert "acep: nothing was removed [option_invalid]\n" in refusal(capsys, made.checkpoint, "--go-back", 1)
    assert all_files(tmp_path) == before
    assert shown(capsys, made.checkpoint, "--go-back", 1).splitlines() == [
        *(f"removed `{path}`" for path in paths),
        *end,
    ]
    assert not any(Path(path).exists() for path in paths)
    record = json.loads(shown(capsys, made.checkpoint, "--go-back", 1, "--yes", "--json"))
    assert record == {
        "batch": 1,
        "removed": True,
        "versions": [],
        "commits": [],
        "offsets": [],
        "sink": {"first": 1, "last": 1},
    }


@pytest.mark.parametrize("args", [["--yes"], ["--dry-run"], ["--state", "/x"]])
def test_options_that_say_nothing_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str]
) -> None:
    made = stream(tmp_path, 1)
    assert "[option_invalid]\nhint: " in refusal(capsys, made.state, *args)


@pytest.mark.parametrize("kind", ["URI", "store"])
def test_other_folders_go_back_as_a_disk_does(tmp_path: Path, kind: str) -> None:
    made = stream(tmp_path, 3)
    paths = made.checkpoint, made.state
    places: list[Folder] = [
        folder_of(path.as_uri()) if kind == "URI" else RemoteFolder(fs.LocalFileSystem(), str(path), "store")
        for path in paths
    ]
    assert read_checkpoint(places[0]).commits == (0, 1, 2)
    go_back(*places, 2)
    assert made.numbers("commits") == [0, 1]
    made.restart()
    assert made.step() == 2


# Descriptions ----------------------------------------------------------------------------------------


def test_a_description_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    about = replace(
        ABOUT, queries={"a": "x\ny", "ü": "\ud800"}, options={"work": 2.5, "op": None, "speculation": "inf"}
    )
    write_description(folder, "q/c", about)
    assert read_description(folder, "q/c") == about
    write_description(folder, "q/c", ABOUT)
    assert read_description(folder, "q/c") == about
    assert list_differences(about, about) == ""


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ({}, ""),
        ({"queries": {"": "PATTERN SEQ(b y)"}}, "the query (there `PATTERN SEQ(b y)`)"),
        ({"queries": {"": "x" * 90}}, f"the query (there `{'x' * 80}...`)"),
        ({"queries": {"": TEXT, "b": TEXT}}, "the query `b` (only there)"),
        ({"queries": {"\x1b": TEXT, "": TEXT}}, "the query `\\x1b` (only there)"),
        ({"columns": {"ts": "int", "x": "int"}}, "column `x` (only there)"),
        ({"columns": {}}, "column `ts` (only here)"),
        ({"columns": {"ts": "float"}}, "column `ts` (there float, here int)"),
        ({"options": {"buckets": 8, "ts": "ts"}}, "buckets= (there 8, here 2)"),
        ({"options": {"buckets": 2.0, "ts": "time"}}, "ts= (there time, here ts)"),
        ({"options": {"buckets": 2, "work": 2.0}}, ""),
        ({"version": "0.0.9"}, "the version of acep (there 0.0.9, here 0.1.0)"),
        ({"columns": {f"x{number}": "int" for number in range(4)}}, ", and 2 more"),
    ],
)
def test_differences_are_named(stored: dict[str, Any], text: str) -> None:
    difference = list_differences(replace(ABOUT, **stored), ABOUT)
    assert difference.endswith(text) if text.startswith(",") else difference == text


def test_a_query_that_changed_is_named_as_such(tmp_path: Path) -> None:
    made = stream(tmp_path, 2)

    def message(about: CallDescription | None) -> str:
        describe = None if about is None else lambda: about
        options: dict[str, Any] = {"run": str(UUID(int=5)), "buckets": 3, "keep": KEEP, "describe": describe}
        with pytest.raises(SnapshotError) as error:
            StateFiles(str(made.state), query=QUERY, call="dd", **options).begin_batch(2)
        assert "go on with the query and the options" in (error.value.hint or "")
        return error.value.message

    changed = replace(ABOUT, options={"buckets": 3, "ts": "ts"}, buckets=3)
    plain = "; there is that of another query, or of other options"
    assert message(changed).endswith(f"{plain}: buckets= (there 2, here 3)")
    assert message(None).endswith(plain)
    (made.state / QUERY / CALL / "job").unlink()
    assert message(changed).endswith(plain)
