"""A file that cannot be read is moved into a folder beside, with the reason, and the follower goes on."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import acep
from acep.errors import DataError, DataWarning, EngineError, memory_error
from acep.following import bad_files
from tests.runner.streams import Stream, lines_of, the_same

AB = acep.regex("ab", within=5)
GOOD = ["ts,type\n1,a\n2,b\n", "ts,type\n3,a\n4,b\n"]


def stream_of(root: Path, **options: Any) -> Stream:
    return Stream(root, AB, bad_files="aside", **options)


def follow_with_warning(stream: Stream, match: str, **options: Any) -> acep.Followed:
    with pytest.warns(DataWarning, match=match):
        return stream.follow(**options)


BAD = {
    "type": ("2.csv", "ts,type\nsoon,a\n", "line 2: `ts` is not a time"),
    "cells": ("2.csv", "ts,type\n3,a,7\n", "line 2 has 3 cells"),
    "parquet": ("2.parquet", "PAR1 and no more", "is not a whole Parquet file"),
    "column": ("2.csv", "ts,kind\n3,a\n", "type"),
    "json": ("2.jsonl", '{"ts": 3, "type": "a"\n', "line 1"),
    "gzip": ("2.csv.gz", "no gzip", "cannot be read"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_moved_with_its_reason_and_the_others_are_taken(kind: str, tmp_path: Path) -> None:
    name, text, reason = BAD[kind]
    stream = stream_of(tmp_path)
    stream.put("1.csv", GOOD[0])
    draft = stream.events / ".draft"
    draft.write_text(text)
    draft.rename(stream.events / name)
    stream.put("3.csv", GOOD[1])
    done = follow_with_warning(stream, rf"`{name}` was moved to", end=True)
    assert done.report.events == 4
    assert done.ended
    place = tmp_path / "events.bad" / name
    assert done.bad_files == (place,)
    assert place.read_text() == text
    assert not (stream.events / name).exists()
    lines = place.with_name(f"{name}.reason").read_text().splitlines()
    assert len(lines) == 1
    assert reason in lines[0]
    assert [progress.bad_files for progress in stream.told][-1] == 1
    assert "1 bad file aside" in stream.told[-1].line
    assert f"1 bad file was moved aside: {place}" in str(done)
    (tmp_path / "good.csv").write_text(GOOD[0] + GOOD[1].partition("\n")[2])
    assert the_same(stream.lines(), lines_of(acep.match(acep.read_events(str(tmp_path / "good.csv")), AB)))


SHORT = {
    "csv": ("2.csv", "ts,type\n3,a\n", "pyarrow.csv.read_csv"),
    "json": ("2.jsonl", '{"ts": 3, "type": "a"}\n', "pyarrow.json.read_json"),
    "parquet": ("2.parquet", "PAR1", "pyarrow.parquet.ParquetFile"),
}


@pytest.mark.parametrize("kind", SHORT)
def test_a_file_for_which_memory_is_too_small_stays_and_stops_the_stream(kind: str, tmp_path: Path) -> None:
    name, text, reader = SHORT[kind]
    stream = stream_of(tmp_path)
    (stream.events / name).write_text(text)
    short = mock.patch(reader, side_effect=pa.ArrowMemoryError("malloc of size 972352 failed"))
    with short, pytest.raises(EngineError, match="memory is too small for a micro-batch") as caught:
        stream.follow()
    assert "max_files" in str(caught.value.hint)
    assert (stream.events / name).read_text() == text
    assert not (tmp_path / "events.bad").exists()


@pytest.mark.parametrize("error", [MemoryError(), memory_error()], ids=["reading", "matching"])
def test_a_micro_batch_for_which_memory_is_too_small_says_how_to_make_smaller_ones(
    error: Exception, tmp_path: Path
) -> None:
    stream = stream_of(tmp_path)
    stream.put("1.csv", GOOD[0])
    short = mock.patch("acep.following.follower.step_bucket", side_effect=error)
    with short, pytest.raises(EngineError, match="memory is too small for a micro-batch") as caught:
        stream.follow()
    assert caught.value.code == "engine_memory"
    assert "max_files" in str(caught.value.hint)
    assert stream.follow().report.events == 2


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOMEM, errno.ENOSPC])
def test_a_file_that_the_system_has_no_room_to_read_stays(number: int, tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    stream.put("1.csv", GOOD[0])
    short = mock.patch("acep.events.files.finding.EventFile.open", side_effect=OSError(number, os.strerror(number)))
    with short, pytest.raises(DataError, match=os.strerror(number)):
        stream.follow()
    assert not (tmp_path / "events.bad").exists()
    assert stream.follow().report.events == 2


def test_a_file_that_its_own_folder_holds_fast_is_named(tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    stream.put("1.csv", GOOD[0])
    path = stream.put("2.csv", "ts,type\nsoon,a\n")
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    with mock.patch("acep.following.bad_files.give_name", side_effect=denied), pytest.raises(DataError) as caught:
        stream.follow()
    assert caught.value.message.startswith(f"`{path}` cannot be moved to")
    assert f"the right to write in `{stream.events}`" in str(caught.value.hint)


def test_another_disk_is_refused(tmp_path: Path) -> None:
    elsewhere = Path("/dev/shm")  # noqa: S108 - nothing is written there
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other disk")
    with pytest.raises(DataError, match="is on another disk than"):
        stream_of(tmp_path, bad_folder=elsewhere / "bad").follow()


def test_no_folder_is_made_without_a_bad_file(tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    stream.put("1.csv", GOOD[0])
    assert stream.follow().bad_files == ()
    assert not (tmp_path / "events.bad").exists()


def test_a_bad_file_stops_the_stream_by_default(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("1.csv", GOOD[0])
    stream.put("2.csv", BAD["type"][1])
    with pytest.raises(DataError, match="`ts` is not a time"):
        stream.follow(max_files=1)
    assert (stream.events / "2.csv").exists()
    assert not (tmp_path / "events.bad").exists()


def test_a_bad_file_among_the_first_ones_is_moved(tmp_path: Path) -> None:
    """No types are settled yet."""
    stream = stream_of(tmp_path)
    stream.put("1.csv", "ts,type\n1,a,1\n")
    stream.put("2.csv", GOOD[0])
    stream.put("3.parquet", "PAR1")
    done = follow_with_warning(stream, "was moved to")
    assert done.report.events == 2
    assert [path.name for path in done.bad_files] == ["1.csv", "3.parquet"]


def test_ids_of_files_before_the_bad_one_are_not_taken_for_repeated(tmp_path: Path) -> None:
    stream = stream_of(tmp_path, id="id", watermark=100)
    stream.put("1.csv", "ts,type,id\n1,a,1\n")
    stream.put("2.csv", "ts,type,id\n2,b,1\n")
    stream.put("3.csv", "ts,type,id\n3,b,3\n")
    done = follow_with_warning(stream, "`id`", end=True)
    assert done.report.events == 2
    assert [path.name for path in done.bad_files] == ["2.csv"]
    assert [row["bindings"] for row in stream.lines()] == [{"a": [1], "b": [3]}]


def test_the_share_of_bad_lines_is_that_of_each_file(tmp_path: Path) -> None:
    stream = stream_of(tmp_path, skip_bad_lines=True, max_skipped=0.4)
    stream.put("1.csv", GOOD[0] + "3,x,1\n")
    stream.put("2.csv", "ts,type\n4,a\n5,b,1\n")
    done = follow_with_warning(stream, "1 of 2 lines cannot be read", end=True)
    assert done.report.events == 2
    assert done.bad.count == 1
    assert [path.name for path in done.bad_files] == ["2.csv"]


def test_the_share_of_bad_lines_is_that_of_each_file_before_types_are_settled(tmp_path: Path) -> None:
    stream = stream_of(tmp_path, skip_bad_lines=True, max_skipped=0.4)
    stream.put("1.csv", GOOD[0] + "3,x,1\n")
    stream.put("2.csv", "ts,type\n4,a\n5,b,1\n6,b,1\n7,b,1\n")
    done = follow_with_warning(stream, "3 of 4 lines cannot be read", end=True)
    assert done.report.events == 2
    assert [path.name for path in done.bad_files] == ["2.csv"]


def test_no_file_is_written_over(tmp_path: Path) -> None:
    for number in range(3):
        stream = stream_of(tmp_path)
        stream.put("1.csv", GOOD[0])
        stream.follow()
        (stream.events / "1.csv").unlink()
        path = stream.put("bad.csv", f"ts,type\nno {number},a\n")
        done = follow_with_warning(stream, "was moved to")
        assert not path.exists()
        assert len(done.bad_files) == 1
    names = sorted(path.name for path in (tmp_path / "events.bad").iterdir())
    assert names == sorted(f"{name}{end}" for name in ("bad.csv", "bad.2.csv", "bad.3.csv") for end in ("", ".reason"))
    assert "no 1" in (tmp_path / "events.bad" / "bad.2.csv.reason").read_text()


@pytest.mark.parametrize("call", ["give_name", "_write_reason", "sync_folder", "warn_caller"])
def test_a_kill_while_a_file_is_moved_loses_nothing(call: str, tmp_path: Path) -> None:
    """Before the name, after the reason, between the two names, and before it is said."""
    stream = stream_of(tmp_path)
    stream.put("1.csv", GOOD[0])
    stream.put("2.csv", "ts,type\nsoon,a\n")

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bad_files, call, stop)
        with pytest.raises(KeyboardInterrupt):
            stream.follow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert stream.follow(end=True).report.events == 2
    assert sorted(path.name for path in (tmp_path / "events.bad").iterdir()) == ["2.csv", "2.csv.reason"]
    assert [path.name for path in stream.events.iterdir()] == ["1.csv"]


def test_a_kill_between_two_names_leaves_one_file(tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    stream.put("1.csv", GOOD[0])
    path = stream.put("2.csv", "ts,type\nsoon,a\n")
    (tmp_path / "events.bad").mkdir()
    os.link(path, tmp_path / "events.bad" / "2.csv")
    done = follow_with_warning(stream, "was moved to", end=True)
    assert done.bad_files == (tmp_path / "events.bad" / "2.csv",)
    assert not path.exists()


def test_a_file_of_a_folder_below_keeps_its_path(tmp_path: Path) -> None:
    stream = stream_of(tmp_path, bad_folder=tmp_path / "events" / "_bad")
    stream.put("1.csv", GOOD[0])
    (stream.events / "below").mkdir()
    (stream.events / "below" / "2.csv").write_text("ts,type\nsoon,a\n")
    done = follow_with_warning(stream, "was moved to", end=True)
    assert done.bad_files == (stream.events / "_bad" / "below" / "2.csv",)


def test_a_file_that_a_link_leads_to_stays_and_stops_the_stream(tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    stream.put("1.csv", GOOD[0])
    (tmp_path / "elsewhere.csv").write_text("ts,type\nsoon,a\n")
    (stream.events / "2.csv").symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(DataError, match="`ts` is not a time"):
        stream.follow()


def test_a_disk_without_room_is_no_bad_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of(tmp_path)
    stream.put("1.csv", GOOD[0])

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryDirectory", fail)
    with pytest.raises(DataError, match="No space left"):
        stream.follow()
    assert (stream.events / "1.csv").exists()


WRONG = {
    "choice": ({"bad_files": "away"}, 'bad_files= is "stop" or "aside"'),
    "only the folder": ({"bad_files": "stop", "bad_folder": "x"}, "bad_folder= is where"),
    "a number": ({"bad_folder": 3}, "bad_folder= takes the path"),
    "inside": ({"bad_folder": "events/bad"}, "would be taken for events"),
    "growing": ({"growing": True}, "is not for files that grow"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options_are_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options, complaint = WRONG[case]
    with pytest.raises(DataError, match=complaint):
        stream_of(tmp_path).follow(**options)


@pytest.mark.long
def test_the_exit_status_says_that_a_file_was_moved(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("1.csv", GOOD[0])
    stream.put("2.csv", "ts,type\nsoon,a\n")
    words = [sys.executable, "-m", "acep", "follow", "re:ab", str(stream.events), "--within", "5"]
    words += ["--state", str(stream.state), "--output", str(stream.found), "--once"]
    words += ["--bad-files", "aside", "--bad-folder", str(tmp_path / "aside")]
    for status, n_warnings in ((4, 1), (0, 0)):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert done.stderr.count("`2.csv` was moved to") == n_warnings
        assert done.stderr.count("1 bad file was moved aside") == n_warnings
    assert (tmp_path / "aside" / "2.csv").exists()


def test_rules_go_on_without_a_bad_file(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    text = '---\nname = "fall"\nseverity = "low"\n---\nPATTERN SEQ(a x, b y) WITHIN 5'
    (rules / "fall.rule").write_text(text)
    stream = Stream(tmp_path, None, bad_files="aside", rules=rules)
    stream.put("1.csv", GOOD[0])
    stream.put("2.csv", "ts,type\nsoon,a\n")
    done = follow_with_warning(stream, "was moved to", end=True)
    assert done.report.matches == 1
    assert len(done.bad_files) == 1


def test_the_name_of_a_bad_file_is_not_read_as_a_pattern(tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    stream.put("1.csv", GOOD[0])
    stream.put("[2] (x).csv", "ts,type\nsoon,a\n")
    done = follow_with_warning(stream, "was moved to", end=True)
    assert [path.name for path in done.bad_files] == ["[2] (x).csv"]
