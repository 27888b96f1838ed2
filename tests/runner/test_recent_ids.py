"""Followed files that bring an event again: it is refused, or left out and counted, while the event is not final."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import acep
from acep.cli import main
from acep.errors import DataError
from tests.runner.streams import put

QUERY = "PATTERN SEQ(F{4} f[], S s) WHERE skip_till_next_match(f[], s) { [user] } WITHIN 10"
FIRST = "ts,type,user,id\n1,F,ann,1\n2,F,ann,2\n"
AGAIN = "ts,type,user,id\n2,F,ann,2\n3,F,ann,3\n4,S,ann,4\n"


def followed(folder: Path, **options: Any) -> acep.Followed:
    return acep.follow(folder / "in", QUERY, state=folder / "state", into=folder / "out", id="id", **options)


def matches(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted((folder / "out").iterdir()) for line in file.read_text().splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    put(tmp_path / "in", "1.csv", FIRST)
    put(tmp_path / "in", "2.csv", AGAIN)
    return tmp_path


WAYS: list[dict[str, Any]] = [{}, {"watermark": 5}, {"watermark": 5, "speculation": "inf"}, {"speculation": 2}]


@pytest.mark.parametrize("most", [1, 100])
@pytest.mark.parametrize("way", WAYS)
def test_an_id_that_comes_again_is_refused_with_its_file_and_row(folder: Path, way: dict[str, Any], most: int) -> None:
    with pytest.raises(DataError, match=r"2\.csv`, row 0 \(rows count from 0\): the id 2 of column `id` came before"):
        followed(folder, end=True, max_files=most, **way)


@pytest.mark.parametrize("way", WAYS)
def test_it_is_refused_after_a_restart_too(folder: Path, way: dict[str, Any]) -> None:
    second = folder / "in" / "2.csv"
    second.rename(folder / "2.csv")
    followed(folder, once=True, **way)
    put(folder / "in", "2.csv", AGAIN)
    with pytest.raises(DataError, match="the id 2 of column `id` came before"):
        followed(folder, end=True, **way)
    put(folder / "in", "2.csv", AGAIN.replace("2,F,ann,2\n", ""))
    assert followed(folder, end=True, **way).report.events == 4


@pytest.mark.parametrize("most", [1, 100])
@pytest.mark.parametrize("way", WAYS)
def test_it_is_left_out_and_counted(folder: Path, way: dict[str, Any], most: int) -> None:
    put(folder / "in", "2.csv", AGAIN + "5,S,ann,4\n")
    put(folder / "in", "3.csv", FIRST)
    done = followed(folder, end=True, duplicates="drop", max_files=most, **way)
    late = 2 if most == 1 and "watermark" not in way else 0
    assert (done.report.events, done.report.late, done.report.duplicates, done.bad.count) == (4, late, 4 - late, 0)
    assert matches(folder) == []


def test_it_is_left_out_after_a_restart_too(folder: Path) -> None:
    (folder / "in" / "2.csv").rename(folder / "2.csv")
    followed(folder, once=True, watermark=5, duplicates="drop")
    put(folder / "in", "2.csv", AGAIN + FIRST.partition("\n")[2])
    done = followed(folder, end=True, watermark=5, duplicates="drop")
    assert (done.report.events, done.report.duplicates) == (4, 3)


def test_it_is_no_bad_line(folder: Path) -> None:
    put(folder / "in", "2.csv", AGAIN + "nothing\n")
    with pytest.raises(DataError, match="the id 2 of column `id` came before"):
        followed(folder, end=True, skip_bad_lines=True)
    done = acep.follow(
        *(folder / "in", QUERY),
        state=folder / "other",
        into=folder / "else",
        id="id",
        end=True,
        skip_bad_lines=True,
        duplicates="drop",
    )
    assert (done.report.events, done.report.duplicates, done.bad.count) == (4, 1, 1)


@pytest.mark.parametrize("speculation", [{}, {"speculation": "inf"}])
def test_a_row_with_op_that_comes_again(tmp_path: Path, speculation: dict[str, Any]) -> None:
    (tmp_path / "in").mkdir()
    rows = ["1,F,ann,1,1,1", "2,F,ann,2,1,2", "2,F,ann,2,-1,3"]
    for name, some in (("1", rows), ("2", rows[:2]), ("3", rows[2:])):
        put(tmp_path / "in", f"{name}.csv", "\n".join(["ts,type,user,id,op,seq", *some, *some, ""]))
    options: dict[str, Any] = {"op": "op", "seq": "seq", "watermark": 9, "end": True, "max_files": 1} | speculation
    with pytest.raises(DataError, match="two events have the same `id` and `seq`"):
        followed(tmp_path, **options)
    into = {"state": tmp_path / "other", "into": tmp_path / "else", "id": "id", "duplicates": "drop"}
    done = acep.follow(tmp_path / "in", "PATTERN SEQ(F a, F b) WHERE [user] WITHIN 9", **into, **options)
    # The event with id 2 that was taken back comes again, and is taken back again.
    assert (done.report.events, done.report.duplicates) == (5, 7)


def test_an_event_whose_time_is_final_is_late_whatever_its_id(folder: Path) -> None:
    put(folder / "in", "2.csv", "ts,type,user,id\n50,F,ann,3\n")
    put(folder / "in", "3.csv", "ts,type,user,id\n1,F,ann,1\n60,F,ann,1\n")
    done = followed(folder, end=True, max_files=1)
    assert (done.report.events, done.report.late) == (4, 1)


def test_an_event_too_far_ahead_is_not_used_and_may_come_again(folder: Path) -> None:
    put(folder / "in", "2.csv", "ts,type,user,id\n5000,F,ann,3\n")
    put(folder / "in", "3.csv", "ts,type,user,id\n3,F,ann,3\n")
    done = followed(folder, end=True, max_files=1, latest=100)
    assert (done.report.events, done.report.late) == (3, 0)


def test_texts_and_times_with_fractions_are_known_too(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    row = '{"ts": "2024-01-01T10:00:00Z", "type": "F", "user": "ann", "id": "%s"}\n'
    put(tmp_path / "in", "1.jsonl", row % "x" + row % "y")
    put(tmp_path / "in", "2.jsonl", row.replace(":00Z", ":00.5Z") % "y")
    query = QUERY.replace("10", "10 s")
    with pytest.raises(DataError, match="the id 'y' of column `id` came before"):
        acep.follow(tmp_path / "in", query, state=tmp_path / "s", into=tmp_path / "out", id="id", end=True, max_files=1)


def test_the_command_leaves_it_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["follow", QUERY, str(folder / "in"), "--state", str(folder / "s"), "--output", str(folder / "o"), "--end"]
    assert main([*args, "--id", "id"]) == 2
    assert "the id 2 of column `id` came before" in capsys.readouterr().err
    assert main([*args, "--id", "id", "--duplicates", "drop"]) == 0
    assert "1 came twice" in capsys.readouterr().err
