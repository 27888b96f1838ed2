"""Followed files that bring an event again: its id is refused, or skipped and counted, while the event is not final."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import acep
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


@pytest.mark.parametrize("way", WAYS)
def test_it_is_skipped_and_counted_where_bad_lines_are(folder: Path, way: dict[str, Any]) -> None:
    put(folder / "in", "2.csv", AGAIN + "5,S,ann,4\n")
    done = followed(folder, end=True, skip_bad_lines=True, max_files=1, **way)
    assert done.bad.count == 2
    assert "the id 2 of column `id` came before" in done.bad.first
    assert done.report.events == 4
    assert matches(folder) == []


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
