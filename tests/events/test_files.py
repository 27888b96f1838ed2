"""Files of events: every format, what stands in them, and what is said of damaged ones."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.errors import DataError, DataWarning
from acep.events.files.formats import format_of
from acep.events.files.reading import read_events

CSV = "ts,type,price\n1,a,1.5\n2,b,\n"
JSONL = '{"ts": 1, "type": "a", "price": 1.5}\n{"ts": 2, "type": "b"}\n'
EXPECTED = {"ts": [1, 2], "type": ["a", "b"], "price": [1.5, None]}


@pytest.fixture
def put(tmp_path: Path) -> Any:
    """Writes a file and gives its path."""

    def write(name: str, content: str | bytes) -> Path:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", CSV),
        ("x.CSV", "\ufeff" + CSV.replace("\n", "\r\n")),
        ("x.csv.gz", CSV),
        ("x.jsonl", JSONL),
        ("x.ndjson", JSONL.replace("\n", "\n\n")),
        ("x.json.gz", JSONL),
        ("x.parquet", parquet(pa.table(EXPECTED))),
        ("x.pq", parquet(pa.table(EXPECTED))),
    ],
)
def test_every_format(put: Any, name: str, content: str | bytes) -> None:
    path = put(name, content)
    assert read_events(path).to_pydict() == EXPECTED
    assert read_events(str(path), ["ts", "price", "ts"]).column_names == ["ts", "price"]
    assert read_events(path, ["ts", "pirce"]).column_names == ["ts", "type", "price"]


def test_nothing_but_a_header_is_no_events(put: Any) -> None:
    table = read_events(put("x.csv", "ts,type\n"))
    assert (table.num_rows, table.column_names) == (0, ["ts", "type"])
    assert read_events(put("x.parquet", parquet(pa.table(EXPECTED).slice(0, 0)))).num_rows == 0


def test_the_type_column_of_csv_is_text(put: Any) -> None:
    assert read_events(put("x.csv", "ts,type\n1,7\n2,true\n")).column("type").to_pylist() == ["7", "true"]
    assert read_events(put("x.csv", "ts,kind\n1,7\n"), type="kind").column("kind").to_pylist() == ["7"]


def test_empty_cells_are_null_and_names_are_not(put: Any) -> None:
    path = put("x.csv", "ts,type,who,price\n1,a,,NA\n2,b,NA,1\n3,c,Al,nan\n")
    with pytest.warns(DataWarning, match="line 2: `price` is 'NA'"):
        table = read_events(path)
    assert table.column("who").to_pylist() == [None, "NA", "Al"]
    assert table.column("price").to_pylist() == ["NA", "1", "nan"]
    table = read_events(path, nulls=["NA"])
    assert table.column("who").to_pylist() == [None, None, "Al"]
    assert table.column("price").to_pylist()[:2] == [None, 1]


NAIVE = dt.datetime(2024, 1, 1, 10)
AWARE = NAIVE.replace(tzinfo=dt.UTC)


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-01T10:00:00", NAIVE),
        ("2024-01-01 10:00:00.25", NAIVE.replace(microsecond=250000)),
        ("2024-01-01T10:00:00.000001", NAIVE.replace(microsecond=1)),
        ("2024-01-01T10:00:00Z", AWARE),
        ("2024-01-01T12:00:00.5+02:00", AWARE.replace(microsecond=500000)),
        ("9999-12-31T00:00:00.000Z", dt.datetime(9999, 12, 31, tzinfo=dt.UTC)),  # as Spark writes the end of a stream
        ("9999-12-31 00:00:00.001", dt.datetime(9999, 12, 31, microsecond=1000)),
        ("1500-01-01T00:00:00.25Z", dt.datetime(1500, 1, 1, microsecond=250000, tzinfo=dt.UTC)),
    ],
)
def test_times(put: Any, name: str, text: str, value: dt.datetime) -> None:
    content = f"ts,type\n{text},a\n" if name == "x.csv" else json.dumps({"ts": text, "type": "a"})
    read = read_events(put(name, content)).column("ts")[0].as_py()
    assert read == value


def test_nanoseconds_stay(put: Any) -> None:
    column = read_events(put("x.csv", "ts,type\n2024-01-01T10:00:00.000000001,a\n")).column("ts")
    assert column.type == pa.timestamp("ns")


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
@pytest.mark.parametrize("text", ["9999-12-31T00:00:00.000000001Z", "1600-01-01 00:00:00"])
def test_nanoseconds_do_not_reach_far_times(put: Any, name: str, text: str) -> None:
    near = "2024-01-01T10:00:00.000000001" + ("Z" if text.endswith("Z") else "")
    for texts in ([text], [near, text], [text, near]):
        csv = "ts,type\n" + "".join(f"{each},a\n" for each in texts)
        path = put(name, csv if name == "x.csv" else "".join(f'{{"ts": "{each}", "type": "a"}}\n' for each in texts))
        with pytest.raises(DataError):
            read_events(path, cast={"ts": "timestamp(ns)"})


def test_lines_of_json_that_need_the_slow_way(put: Any) -> None:
    long = {"ts": 1, "type": "a", "note": "x" * 3_000_000}
    table = read_events(put("x.jsonl", json.dumps(long) + "\n" + json.dumps({"ts": 2, "type": "b"})))
    assert table.num_rows == 2


DAMAGED = [
    ("x.csv", b"ts,t\xffpe\n1,a\n", "the header is not UTF-8 text", "UTF-8"),
    ("x.csv", b"ts,n,type\n1,b,\xff\n", "line 2: `type` is not UTF-8 text", "UTF-8"),
    ("x.csv", "ts,type\n1,a\n2\n", "line 3 has 1 cell, the header 2", None),
    ("x.csv", "ts,type\n1,a\n2,b,c\n", "line 3 has 3 cells, the header 2", None),
    ("x.csv", b"ts,type,x\n1,a,\xff\n", "line 2: `x` is not UTF-8", "UTF-8"),
    ("x.csv", b"ts,type\n\n1,\xff\n", "line 3: `type` is not UTF-8 text", "UTF-8"),
    ("x.csv", "ts,type\n2024-01-01,a\nyesterday,b\n", "line 3: `ts` is not a time: 'yesterday'", "ISO 8601"),
    ("x.csv", "ts,type\n2024-01-01T00:00,a\n2024-01-01T00:00Z,b\n", "line 3: `ts` is not a time", "with a zone"),
    ("x.csv", "ts;type\n1;a\n", "has one column, which is called 'ts;type'", 'delimiter=";"'),
    ("x.csv", "ts\ttype\n1\ta\n", "has one column", 'delimiter="tab"'),
    ("x.csv", "ts,type\n1,a\n,b\n", "line 3: `ts` is null", "skip_bad_lines"),
    ("x.jsonl", JSONL + '\n{"type": "c"}\n', "line 4: `ts` is null", "skip_bad_lines"),
    ("x.parquet", parquet(pa.table({"ts": [1, None]})), r"row 1 \(rows count from 0\): `ts` is null", "skip_bad_lines"),
    ("x.jsonl", JSONL + '{"ts": 3, \n', "line 3, column 10: broken JSON", "one JSON object"),
    ("x.jsonl", JSONL + "\n7\n", "line 4 is not a JSON object", "one JSON object"),
    ("x.json", '[{"ts": 1}]', "line 1 is not a JSON object", "one JSON object"),
    ("x.jsonl", JSONL + '{"ts": "three"}\n', "line 3: `ts` is text, but a number in line 1", "one type"),
    ("x.jsonl", b'{"ts": 1, "type": "\xff"}\n{', "line 1 is not UTF-8", "UTF-8"),
    ("x.jsonl", '{"ts": 1, "ts": 2}\n', "line 1: broken JSON: `ts` is there twice", "one JSON object"),
    ("x.jsonl", '{"ts": 1, "x": ' + "[" * 200_000, "line 1 is nested too deeply", None),
    ("x.parquet", CSV, "is not a whole Parquet file", "cut off"),
    ("x.parquet", parquet(pa.table(EXPECTED))[:-9], "is not a whole Parquet file", "cut off"),
    ("x.parquet", parquet(pa.table(EXPECTED))[:40], "is not a whole Parquet file", "cut off"),
    ("x.txt", CSV, "not named like a file of events", ".csv"),
    ("x", CSV, "not named like a file of events", ".csv"),
    ("x.parquet.gz", "", "not named like a file of events", ".csv"),
]


@pytest.mark.parametrize(("name", "content", "message", "hint"), DAMAGED)
def test_damaged_files(put: Any, name: str, content: str | bytes, message: str, hint: str | None) -> None:
    with pytest.raises(DataError, match=message) as raised:
        read_events(put(name, content))
    assert "\n" not in raised.value.message
    assert hint is None or hint in (raised.value.hint or "")


def test_damaged_inside(put: Any) -> None:
    whole = parquet(pa.table(EXPECTED))
    with pytest.raises(DataError, match="is not a whole Parquet file"):
        read_events(put("x.parquet", whole[:20] + bytes(30) + whole[50:]))
    path = put("x.csv.gz", "ts,type\n" + "1,a\n" * 999)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="cannot be read"):
        read_events(path)
    path.write_bytes(b"not gzip at all")
    with pytest.raises(DataError, match="cannot be read"):
        read_events(path)


def test_files_that_are_not_there(put: Any, tmp_path: Path) -> None:
    put("events.csv", CSV)
    with pytest.raises(DataError, match="there is no file") as raised:
        read_events(tmp_path / "event.csv")
    assert raised.value.hint == "did you mean `events.csv`?"
    with pytest.raises(DataError, match="there is no file"):
        read_events(tmp_path / "no" / "events.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match="no file of events in the folder"):
        read_events(tmp_path / "folder.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(put: Any) -> None:
    path = put("x.csv", CSV)
    path.chmod(0)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        read_events(path)


def test_format_of() -> None:
    assert [format_of(n) for n in ("a.csv", "b.JSON.gz", "/c/d.pq")] == ["csv", "jsonl", "parquet"]


@pytest.mark.parametrize("path", [None, 5, b"x.csv", ["x.csv", 5]])
def test_a_path_is_a_text_or_a_path(path: Any) -> None:
    with pytest.raises(DataError, match="a file is named by its path"):
        read_events(path)


# Several files ------------------------------------------------------------------------------------


def test_files_of_other_names_in_a_folder_are_told(put: Any, tmp_path: Path) -> None:
    put("1.csv", CSV)
    for name in ("2.log", "README", ".hidden", "_SUCCESS", "3.csv.tmp"):
        put(name, "no events")
    with pytest.warns(DataWarning, match=r"has 2 files that are not read: `2\.log`, `README`; format= says"):
        assert read_events(tmp_path).to_pydict() == EXPECTED
    for name in ("README", "2.log"):
        (tmp_path / name).write_text(CSV)
    assert len(read_events(tmp_path, format="csv")) == 6


def test_a_file_is_not_read_twice(put: Any, tmp_path: Path) -> None:
    path = put("1.csv", CSV)
    for paths in ([path, path], [tmp_path, path], [str(tmp_path / "*.csv"), tmp_path / "." / "1.csv"]):
        with pytest.raises(DataError, match="is named twice"):
            read_events(paths)


def test_a_file_of_two_names_by_a_hard_link_is_refused(put: Any, tmp_path: Path) -> None:
    path = put("1.csv", CSV)
    (tmp_path / "below").mkdir()
    linked = tmp_path / "below" / "2.csv"
    linked.hardlink_to(path)
    for paths in (tmp_path, [path, linked], str(tmp_path / "**" / "*.csv"), [str(tmp_path / "*.csv"), linked]):
        with pytest.raises(DataError, match=r"1\.csv` and `.*2\.csv` are one file, by a hard link") as wrong:
            read_events(paths)
        assert wrong.value.hint == "remove one of them"
    assert read_events(path).to_pydict() == EXPECTED


def test_a_hard_link_to_what_is_not_read_is_no_second_file(put: Any, tmp_path: Path) -> None:
    path = put("1.csv", CSV)
    for name in (".1.csv", "_1.csv", "1.csv.tmp"):
        (tmp_path / name).hardlink_to(path)
    put("2.csv", "")
    (tmp_path / "3.csv").hardlink_to(tmp_path / "2.csv")
    assert read_events(tmp_path).to_pydict() == EXPECTED


def test_a_file_without_a_byte_among_others_has_no_events(put: Any, tmp_path: Path) -> None:
    put("1.csv", CSV)
    put("2.csv", "")
    assert read_events(tmp_path).to_pydict() == EXPECTED
    (tmp_path / "1.csv").write_text("")
    assert read_events(tmp_path).num_rows == 0


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n\r\n", b"\n\n\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.parquet", "x.csv.gz", "x.jsonl.gz"])
def test_a_lone_file_without_events_has_no_matches(put: Any, name: str, content: bytes) -> None:
    if name == "x.parquet" and content:
        return
    path = put(name, content)
    assert read_events(path).num_rows == 0
    assert acep.match(path, "PATTERN SEQ(a x, b y) WHERE [user] AND x.n > y.n WITHIN 5").count() == 0


@pytest.mark.parametrize("order", [1, -1])
def test_a_name_that_is_an_attribute_here_and_a_field_there(put: Any, order: int) -> None:
    lines = ['{"ts":1,"ev":{"a":"x","b":1}}\n', '{"ts":2,"ev.a":"x"}\n']
    path = put("x.jsonl", "".join(lines[::order]))
    for columns in (None, ["ts", "ev.a"]):
        with pytest.raises(DataError, match=r"`ev\.a` is an attribute of some lines and a field of `ev` in others"):
            read_events(path, columns)
    assert read_events(path, ["ts"])["ts"].to_pylist() == [1, 2][::order]


def test_times_with_and_without_a_zone(put: Any) -> None:
    put("x.csv", "ts\n2026-03-01T07:00:00Z\n2026-03-01T07:00:01\n")
    one, two = put("1.csv", "ts\n2026-03-01T07:00:00Z\n"), put("2.csv", "ts\n2026-03-01T07:00:01\n")
    for paths in (one.parent / "x.csv", [one, two]):
        with pytest.raises(DataError, match="`ts` has times with a zone and times without one"):
            read_events(paths, cast={"ts": "timestamp"})
    assert len(read_events([two, put("3.csv", "ts\n2026-03-01T07:00:02\n")], cast={"ts": "timestamp"})) == 2


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_times_of_two_kinds_among_bad_lines(put: Any, name: str) -> None:
    texts = ("2026-03-01T07:00:00Z", "bad", "2026-03-01T07:00:01")
    csv = "ts,x\n" + "".join(f"{text},1\n" for text in texts)
    path = put(name, csv if name == "x.csv" else "".join(f'{{"ts": "{text}"}}\n' for text in texts))
    with pytest.raises(DataError, match="`ts` has times with a zone and times without one"):
        read_events(path, cast={"ts": "timestamp"}, skip_bad_lines=True)


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_a_cast_keeps_the_zone(put: Any, name: str) -> None:
    texts = ("2026-03-01T07:00:00+01:00", "2026-03-01T07:00:00.5Z")
    csv = "ts\n" + "".join(f"{text}\n" for text in texts)
    path = put(name, csv if name == "x.csv" else "".join(f'{{"ts": "{text}"}}\n' for text in texts))
    found = read_events(path, cast={"ts": "timestamp"})
    assert found.schema.field("ts").type == pa.timestamp("us", "UTC")
    assert [time.isoformat() for time in found["ts"].to_pylist()] == [
        "2026-03-01T06:00:00+00:00",
        "2026-03-01T07:00:00.500000+00:00",
    ]


def test_a_cast_of_a_column_that_is_not_there_is_refused(put: Any) -> None:
    one, two = put("1.csv", "ts,user\n1,2\n"), put("2.jsonl", '{"ts": 1, "dev": {"n": 1}}\n')
    for cast in ({"usr": "string"}, {"ts": "int", "nosuch": "int"}):
        with pytest.raises(DataError, match=r"there is no column `(usr|nosuch)`"):
            read_events(one, cast=cast)
    with pytest.raises(DataError, match="there is no column `usr`"):
        read_events(two, ["ts"], cast={"usr": "string"})
    assert read_events(one, ["ts"], cast={"user": "string"}).column_names == ["ts"]


def test_a_column_here_and_a_field_there_are_told_with_what_to_do(put: Any) -> None:
    one, two = put("1.csv", "ts,src.ip\n1,7\n"), put("2.jsonl", '{"ts": 2, "src": {"ip": 7}}\n')
    with pytest.raises(DataError, match=r"1\.csv` has no column `src`, which `.*2\.jsonl` has") as refused:
        read_events([one, two])
    assert refused.value.hint == "it has `src.ip` as a column: write all files alike, or match each kind by itself"


@pytest.mark.parametrize(
    ("option", "typed"),
    [
        ({"delimiter": ";"}, ["--delimiter", ";"]),
        ({"quote": None}, ["--quote", "none"]),
        ({"decimal": ","}, ["--decimal", ","]),
        ({"nulls": ["NA"]}, ["--null", "NA"]),
        ({"multiline_cells": True}, ["--multiline-cells"]),
    ],
    ids=lambda value: str(*value) if isinstance(value, dict) else "",
)
def test_an_option_of_csv_is_refused_without_csv(
    option: dict[str, Any], typed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"ts": 1, "type": "a", "x": 1}, {"ts": 2, "type": "b", "x": 2}]
    lines, parquet, cells = tmp_path / "x.jsonl", tmp_path / "x.parquet", tmp_path / "x.csv"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), parquet)
    delimiter = option.get("delimiter", "\t" if option.get("decimal") else ",")
    cells.write_text(delimiter.join(("ts", "type", "x")) + "\n" + delimiter.join(("3", "a", "5")) + "\n")
    more = {"delimiter": delimiter} if option.get("decimal") else {}
    for paths in ([lines], [parquet], [lines, parquet]):
        with pytest.raises(DataError, match="says how CSV is written, and no file is CSV"):
            read_events(paths, **option)
        for command in ("match", "lint", "why"):
            assert main([command, "PATTERN SEQ(a p, b q) WITHIN 9", *map(str, paths), *typed]) == 2
            said = capsys.readouterr().err
            assert " ".join(typed) in said
            assert "no file is CSV" in said
        assert read_events([cells, *paths], **option, **more).num_rows == 1 + 2 * len(paths)
