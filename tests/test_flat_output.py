"""Flat results in files: ``acep match --flat``, ``acep follow --flat`` and the tables that Spark's workers give."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
import acep.cli
from tests.runner.streams import fast_disk, put

QUERY = "PATTERN SEQ(A a, B+ b[], C? c) WHERE strict_contiguity(a, b[], c) { [k] } WITHIN 9 RETURN count(b[]) AS many"
EVENTS = "at,type,k\n2024-01-01T00:00:00Z,A,u\n2024-01-01T00:00:01.5Z,B,u\n2024-01-01T00:00:02Z,B,u\n"
HEADS = ["k", "start", "end", "error", "a", "b_first", "b_last", "c", "bundle", "many"]
BEGAN, POINT = "2024-01-01T00:00:00Z", "2024-01-01T00:00:01.500000Z"
WANTED = [
    ["u", BEGAN, POINT, "0", "0", "1", "1", "", POINT, "1"],
    ["u", BEGAN, "2024-01-01T00:00:02Z", "0", "0", "1", "2", "", POINT, "2"],
]
SECONDS = QUERY.replace("WITHIN 9", "WITHIN 9 s")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the command runs, with a file of events."""
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "in", "1.csv", EVENTS)
    return tmp_path


def match(*args: str, query: str = SECONDS) -> int:
    return acep.cli.main(["match", query, "in/1.csv", "--ts", "at", *args])


def read(path: str) -> list[list[str]]:
    with Path(path).open(newline="") as file:
        return list(csv.reader(file))


def test_match_writes_plain_columns_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("csv", "jsonl", "parquet"):
        assert match("--flat", "--output", f"out.{form}") == 0
    assert read("out.csv") == [HEADS, *WANTED]
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [list(row) for row in rows] == [HEADS] * 2
    assert [["" if one is None else str(one) for one in row.values()] for row in rows] == WANTED
    table = pq.read_table("out.parquet")
    assert table.equals(acep.match("in/1.csv", SECONDS, ts="at").to_arrow(flat=True).replace_schema_metadata())
    assert match("--flat") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[1]) == rows[1]


def test_other_outputs() -> None:
    assert match("--flat", "--bundles", "--output", "bundles.csv") == 0
    assert read("bundles.csv")[0] == ["k", "start", "end", "matches", "best"]
    assert match("--flat", "--points", "--output", "points.jsonl") == 0
    first = json.loads(Path("points.jsonl").read_text().splitlines()[0])
    assert first == {"k": "u", "point": "2024-01-01T00:00:01.500000Z", "best": 0}
    assert match("--flat", "--points", "--output", "points.parquet") == 0
    assert pq.read_table("points.parquet").column_names == ["k", "point", "best"]


def test_no_match_has_the_same_columns() -> None:
    none = SECONDS.replace("WITHIN 9 s", "WITHIN 0 s")
    assert match("--flat", "--output", "out.csv", query=none) == 0
    assert read("out.csv") == [HEADS]
    assert match("--flat", "--output", "none.parquet", query=none) == 0
    assert match("--flat", "--output", "some.parquet") == 0
    assert pq.read_schema("none.parquet") == pq.read_schema("some.parquet")


def test_flat_is_refused_where_there_are_no_columns_or_two_of_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("--count", "--exists"):
        assert match("--flat", kind) == 2
        assert "has no columns" in capsys.readouterr().err
    Path("in/1.csv").write_text("at,type,x,value_x\n2024-01-01T00:00:00Z,A,1,1\n")
    assert match("--flat", "--output", "out.csv", query="PATTERN A a WHERE [x] AND [value_x] RETURN a.x AS X") == 2
    assert "two columns of the flat table would be called `value_X`" in capsys.readouterr().err
    assert not Path("out.csv").exists()


def test_many_matches_are_written_alike() -> None:
    rows = "".join(f"{i},{'ab'[i % 2]}\n" for i in range(200))
    Path("in/1.csv").write_text("at,type\n" + rows)
    query = "PATTERN SEQ(a p, b q) WITHIN 60"
    assert match("--flat", "--output", "flat.csv", query=query) == 0
    assert match("--output", "nested.csv", query=query) == 0
    flat, nested = read("flat.csv"), read("nested.csv")
    assert len(flat) == len(nested) > 2_000
    assert [row[:3] for row in flat] == [row[:3] for row in nested]
    bound = [json.loads(row[3]) for row in nested[1:]]
    assert [row[3:5] for row in flat[1:]] == [[str(one["p"][0]), str(one["q"][0])] for one in bound]


def follow(*args: str) -> int:
    with fast_disk():
        return acep.cli.main(["follow", SECONDS, "in", "--state", "state", "--output", "out", "--ts", "at", *args])


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_follow_writes_plain_columns(form: str) -> None:
    assert follow("--end", "--flat", "--output-format", form) == 0
    (file,) = Path("out").iterdir()
    if form == "csv":
        assert read(str(file)) == [HEADS, *WANTED]
    elif form == "jsonl":
        assert [list(json.loads(line)) for line in file.read_text().splitlines()] == [HEADS] * 2
    else:
        assert pq.read_table(file).column_names == HEADS


def test_follow_with_late_events_and_matches_taken_back() -> None:
    put(Path("in"), "2.csv", EVENTS.replace("2024", "2020"))
    options: dict[str, Any] = {"ts": "at", "state": "state", "into": "out", "into_format": "csv", "id": "no"}
    for name in ("1.csv", "2.csv"):
        text = Path("in", name).read_text().splitlines()
        lines = [f"{line},{name[0]}{i}" for i, line in enumerate(text[1:])]
        Path("in", name).write_text("\n".join([f"{text[0]},no", *lines]) + "\n")
    with fast_disk():
        acep.follow("in", SECONDS, **options, watermark="1 s", late=True, flat=True, max_files=1, end=True)
    rows = [row for file in sorted(Path("out").iterdir()) for row in read(str(file))[1:]]
    heads = read(str(next(Path("out").iterdir())))[0]
    assert heads == [*HEADS, "kind", "event"]
    kinds = [row[heads.index("kind")] for row in rows]
    assert (kinds.count("match"), kinds.count("late")) == (2, 3)
    assert all(row[heads.index("a")] == "" for row in rows if row[heads.index("kind")] == "late")


def test_follow_refuses_flat_columns_of_queries_that_change() -> None:
    Path("newer").mkdir()
    with pytest.raises(acep.QueryError, match="which a new version may change"):
        acep.follow("in", SECONDS, ts="at", state="state", into="out", versions="newer", flat=True)
    with pytest.raises(acep.QueryError, match="flat= is True or False"):
        acep.follow("in", SECONDS, ts="at", state="state", into="out", flat="yes")  # type: ignore[arg-type]


def test_several_queries_share_columns() -> None:
    other = "PATTERN SEQ(A+ a[], B z) WHERE [k] WITHIN 9 s"
    options: dict[str, Any] = {"ts": "at", "state": "state", "into": "out", "into_format": "csv", "flat": True}
    with fast_disk():
        acep.follow("in", {"one": SECONDS, "two": other}, **options, end=True)
    (file,) = Path("out").iterdir()
    heads, *rows = read(str(file))
    assert heads == [
        "query", "k", "start", "end", "error", "a_first", "a_last", "b_first", "b_last", "c", "z", "bundle", "many"
    ]  # fmt: skip
    bound = {(row[0], row[5], row[6], row[7], row[8], row[10], row[12]) for row in rows}
    one = {("one", "0", "0", "1", "1", "", "1"), ("one", "0", "0", "1", "2", "", "2")}
    assert bound == one | {("two", "0", "0", "", "", "1", ""), ("two", "0", "0", "", "", "2", "")}


def test_rows_of_workers_are_flat_as_in_one_process() -> None:
    pytest.importorskip("pyspark")
    from acep.spark.flat_results import flatten_result
    from acep.streaming.results import match_rows
    from tests.spark.by_hand import numbered, the_job

    table = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "k": ["u"] * 3})
    job = the_job(numbered(table), QUERY)
    found = acep.match(table, QUERY)
    rows = match_rows(job, job.plans, 0, found.found)
    assert flatten_result(rows, job).equals(found.to_arrow(flat=True).replace_schema_metadata())
