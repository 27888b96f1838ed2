"""Followed files whose matches are taken back: the results, less those taken back, are those of one process."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.shedding.limits import CREDIT
from tests.runner.streams import Stream, put
from tests.runtime.test_revisions import Row, arriving
from tests.spark.test_revised import late_of, net

QUERY = "PATTERN SEQ(A a, ~B n, C c) WHERE skip_till_next_match(a, c) { [k] } WITHIN 6"


@pytest.mark.long
@pytest.mark.parametrize("speculation", ["0", "2", "inf"])
def test_results_less_those_taken_back_are_those_of_the_corrected_stream(speculation: str, tmp_path: Path) -> None:
    rng = Random(4)
    events = [{"ts": n // 4, "type": rng.choice("ABC"), "k": rng.randrange(3)} for n in range(300)]
    arrived = arriving(events, rng, ops=True, lateness=5, by=8, most=20)
    names = ("ts", "type", "k", "number", "op")
    (tmp_path / "in").mkdir()
    (tmp_path / "query.acep").write_text(QUERY)
    for number, rows in enumerate(arrived.pushes):
        lines = [",".join(str(row[name]) for name in names) for row in rows]
        put(tmp_path / "in", f"{number:04}.csv", "\n".join([",".join(names), *lines, ""]))
    late = sorted(row["number"] for row in late_of(arrived))
    asked = [
        "--late",
        "--watermark",
        "5",
        "--speculation",
        speculation,
        "--op",
        "op",
        "--id",
        "number",
        "--end",
        "--max-files",
        "1",
    ]
    folders = ["--state", str(tmp_path / "state"), "--output", str(tmp_path / "out")]
    assert main(["follow", str(tmp_path / "query.acep"), str(tmp_path / "in"), *folders, *asked]) == 0
    found: list[Row] = []
    for file in sorted((tmp_path / "out").iterdir(), key=lambda one: int(one.name.split(".")[0])):
        found += map(json.loads, file.read_text().splitlines())
    assert late
    assert sorted(row["event"] for row in found if row["kind"] == "late") == late
    found = [row for row in found if row["kind"] == "match"]
    whole = acep.match(arrived.table(), QUERY, id="number")
    assert net(found) == net(whole.to_arrow().to_pylist(maps_as_pydicts="strict"))
    assert any(row["op"] < 0 for row in found) == (speculation == "inf")


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize(("speculation", "duplicates"), [(0, "refuse"), ("inf", "refuse"), ("inf", "drop")])
def test_of_rows_with_one_seq_those_that_take_back_come_first(
    speculation: Any, duplicates: str, files: int, tmp_path: Path
) -> None:
    """A transaction takes an event back and gives it with another time: its rows have one ``seq``, and any order."""
    first, correction = "1,a,1,1,1\n5,b,2,2,1\n", "6,b,2,3,1\n5,b,2,3,-1\n"
    roles = {"id": "number", "seq": "change", "op": "op"}
    options = {"watermark": 9, "speculation": speculation, "duplicates": duplicates, "max_files": 1}
    stream = Stream(tmp_path, "PATTERN SEQ(a p, b q) WITHIN 9", **roles, **options)
    for number, rows in enumerate([first, correction] if files == 2 else [first + correction]):
        stream.put(f"{number}.csv", f"ts,type,number,change,op\n{rows}")
    stream.follow(end=True)
    changes = [(line["op"], line["end"]) for line in stream.lines()]
    assert changes == ([(1, 5), (-1, 5), (1, 6)] if (speculation, files) == ("inf", 2) else [(1, 6)])


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_followed_points_and_counts_come_as_differences(form: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, rows in enumerate(("1,a,x\n5,b,x\n", "3,a,x\n", "4,n,x\n")):
        put(tmp_path / "in", f"{number}.csv", f"ts,type,k\n{rows}")
    query = "PATTERN SEQ(a p, ~n q, b r) WHERE [k] WITHIN 9"
    found = {}
    for output in ("points", "count"):
        asked: dict[str, Any] = {"watermark": 9, "speculation": "inf", "max_files": 1, "output": output}
        folders = {"state": tmp_path / f"state-{output}", "into": tmp_path / output}
        acep.follow(tmp_path / "in", query, **folders, **asked, into_format=form, once=True)
        files = sorted((tmp_path / output).iterdir())
        if form == "jsonl":
            found[output] = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        elif form == "csv":
            found[output] = [row for file in files for row in csv.DictReader(file.read_text().splitlines())]
        else:
            found[output] = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert [int(row["change"]) for row in found["points"]] == [1, 1, -2]
    assert {(int(row["point"]), int(row["best"])) for row in found["points"]} == {(5, 0)}
    assert [int(row["count"]) for row in found["count"]] == [1, 1, -2]
    with pytest.raises(acep.QueryError, match="have no bundles"):
        acep.follow(
            tmp_path / "in",
            query,
            state=tmp_path / "s",
            into=tmp_path / "o",
            **asked | {"output": "bundles"},
            once=True,
        )


def test_what_was_followed_with_another_speculation_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    put(tmp_path / "in", "1.csv", "ts,type,k\n1,A,1\n")
    folders = {"state": tmp_path / "state", "into": tmp_path / "out"}
    acep.follow(tmp_path / "in", QUERY, **folders, watermark=5, speculation=2, once=True)
    with pytest.raises(acep.SnapshotError, match="made with other options"):
        acep.follow(tmp_path / "in", QUERY, **folders, watermark=5, speculation=3, once=True)
    with pytest.raises(acep.QueryError, match="by id"):
        acep.follow(tmp_path / "in", QUERY, state=tmp_path / "s", into=tmp_path / "o", op="k", once=True)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_late_events_are_written_in_every_format(form: str, tmp_path: Path) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [k] } WITHIN 50 RETURN a.ts AS first"
    (tmp_path / "in").mkdir()
    asked: dict[str, Any] = {"state": tmp_path / "state", "into": tmp_path / "out", "into_format": form}
    asked |= {"watermark": 3, "late": True, "once": True}
    for number, rows in enumerate(("1,A,1\n20,B,1\n25,A,1\n", "2,A,7\n30,B,1\n")):
        put(tmp_path / "in", f"{number}.csv", f"ts,type,k\n{rows}")
        acep.follow(tmp_path / "in", query, **asked)
    match, late = (tmp_path / "out" / f"00000000{number}.{form}" for number in (0, 1))
    if form == "csv":
        assert match.read_text().splitlines()[1] == '1,1,20,0,"{""a"": [0], ""b"": [1]}",20,1,match,'
        assert late.read_text().splitlines()[1] == "7,2,2,,,,,late,3"
        return
    lines = [json.loads(late.read_text())] if form == "jsonl" else pq.read_table(late).to_pylist()
    nothing = dict.fromkeys(("error", "bindings", "bundle", "values"))
    assert lines == [{"key": {"k": 7}, "start": 2, "end": 2, **nothing, "kind": "late", "event": 3}]


@pytest.mark.long
def test_a_follower_keeps_to_a_budget_of_work_and_takes_back_what_it_gave(tmp_path: Path) -> None:
    rng = Random(5)
    events = [
        {"ts": n // 4, "type": rng.choice("ABC"), "k": rng.randrange(3), "x": rng.randrange(9)} for n in range(900)
    ]
    arrived = arriving(events, rng, ops=True, lateness=5, by=8, most=60)
    names = ("ts", "type", "k", "x", "number", "op")
    (tmp_path / "in").mkdir()
    for number, rows in enumerate(arrived.pushes):
        lines = [",".join(str(row[name]) for name in names) for row in rows]
        put(tmp_path / "in", f"{number:04}.csv", "\n".join([",".join(names), *lines, ""]))
    query = "PATTERN SEQ(A a, ~B n, C c) WHERE skip_till_any_match(a, c) { [k] AND c.x >= a.x } WITHIN 12"
    asked: dict[str, Any] = {"watermark": 5, "speculation": "inf", "op": "op", "id": "number", "max_files": 1}
    told: list[Any] = []
    asked |= {"state": tmp_path / "state", "into": tmp_path / "out", "once": True, "tell": told.append}
    acep.follow(tmp_path / "in", query, **asked, budget=acep.Budget(work=0.5))
    found: list[Row] = []
    for file in sorted((tmp_path / "out").iterdir(), key=lambda one: int(one.name.split(".")[0])):
        found += map(json.loads, file.read_text().splitlines())
    exact = [row.pop("exact") for row in found]
    assert not all(exact)
    assert any(row["op"] < 0 for row in found)
    given = net(found)
    want = net(acep.match(arrived.table(), query, id="number").to_arrow().to_pylist(maps_as_pydicts="strict"))
    assert given < want
    assert told[-1].shed > 0
    assert all(0 < one.work <= one.allowance + 0.5 * CREDIT for one in told)
