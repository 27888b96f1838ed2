"""Types and times of files: casts whose hints work, columns that are null at first, finer times, one way to count."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import json
import lzma
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.errors import AcepError, DataError, DataWarning, QueryError

PAIR = "PATTERN SEQ(a x, b y) WITHIN 9"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def jsonl(name: str, *rows: dict[str, Any]) -> str:
    Path(name).parent.mkdir(exist_ok=True, parents=True)
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


# Times -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "cast", "text"),
    [
        (17041032000000001, "timestamp(100ns)", "2024-01-01 10:00:00.000000100"),
        (17041032000000010, "timestamp(100ns)", "2024-01-01 10:00:00.000001"),
        (133485768000000000, "timestamp(filetime)", "2024-01-01 10:00:00"),
        (0, "timestamp(filetime)", "1601-01-01 00:00:00"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_times_that_count_100_nanoseconds(value: int, cast: str, text: str, form: str) -> None:
    if form == "parquet":
        pq.write_table(pa.table({"ts": [value]}), "x.parquet")
    else:
        Path(f"x.{form}").write_text(f"ts\n{value}\n" if form == "csv" else f'{{"ts": {value}}}\n')
    column = acep.read_events(f"x.{form}", cast={"ts": cast}).column("ts")
    assert column.cast(pa.timestamp("ns" if len(text) > 26 else "us")).cast(pa.string())[0].as_py().startswith(text)


def test_integers_that_count_100_nanoseconds(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.csv").write_text("ts,type\n0,a\n10000000,b\n30000000,b\n")
    query = "PATTERN SEQ(a x, b y) WITHIN 1 s"
    assert main(["match", query, "x.csv", "--unit", "100ns", "--count"]) == 0
    assert capsys.readouterr().out == "1\n"
    assert acep.match({"ts": [0, 10**7], "type": ["a", "b"]}, query, unit="100ns").count() == 1


def test_times_finer_than_those_of_the_first_batch() -> None:
    """The hint of the refusal names a cast that holds both."""
    jsonl("in/1.jsonl", {"ts": "2024-01-01T10:00:00.5", "type": "a"})
    how: dict[str, Any] = {"state": "state", "into": "out"}
    acep.follow("in", "PATTERN SEQ(a x, b y) WITHIN 9 s", **how, once=True)
    jsonl("in/2.jsonl", {"ts": "2024-01-01T10:00:01.000000001", "type": "b"})
    with pytest.raises(DataError, match=r"2\.jsonl`, line 1: `ts` is timestamp\[ns\]") as wrong:
        acep.follow("in", "PATTERN SEQ(a x, b y) WITHIN 9 s", **how, once=True)
    cast = re.search(r'cast=\{"(\w+)": "(.*?)"\}', str(wrong.value.hint))
    assert cast is not None
    how = {"state": "state2", "into": "out2", "into_format": "parquet", "cast": {cast[1]: cast[2]}}
    assert acep.follow("in", "PATTERN SEQ(a x, b y) WITHIN 9 s", **how, end=True).report.matches == 1
    assert acep.read_events("in", cast={"ts": "timestamp"}).column("ts").type == pa.timestamp("ns")


# Columns that are null at first ------------------------------------------------------------------

LATER = "PATTERN SEQ(a x, b y) WHERE y.v > x.v WITHIN 9"


@pytest.mark.parametrize("first", [{"v": None}, {}])
def test_an_attribute_that_is_null_or_missing_at_first_has_the_type_of_its_cast(first: dict[str, Any]) -> None:
    how: dict[str, Any] = {"state": "state", "into": "out"}
    jsonl("in/1.jsonl", {"ts": 1, "type": "a", **first})
    acep.follow("in", LATER, **how, once=True, cast={"v": "int"})
    jsonl("in/2.jsonl", {"ts": 2, "type": "a", "v": 1}, {"ts": 3, "type": "b", "v": 2})
    assert acep.follow("in", LATER, **how, end=True, cast={"v": "int"}).report.matches == 1


def test_without_a_cast_the_refusal_names_one_that_works() -> None:
    how: dict[str, Any] = {"state": "state", "into": "out"}
    Path("in").mkdir()
    Path("in/1.csv").write_text("ts,type,v\n1,a,\n")
    acep.follow("in", LATER, **how, once=True)
    Path("in/2.csv").write_text("ts,type,v\n2,a,1\n3,b,2\n")
    with pytest.raises(DataError, match=r"line 2: `v` is int64") as wrong:
        acep.follow("in", LATER, **how, once=True)
    assert 'cast={"v": "int"}' in str(wrong.value.hint)
    how = {"state": "state2", "into": "out2", "cast": {"v": "int"}}
    assert acep.follow("in", LATER, **how, end=True).report.matches == 1


def test_times_with_a_zone_that_are_null_at_first() -> None:
    how: dict[str, Any] = {"state": "state", "into": "out"}
    jsonl("in/1.jsonl", {"ts": 1, "type": "a", "v": None})
    acep.follow("in", LATER, **how, once=True)
    jsonl("in/2.jsonl", *({"ts": i, "type": "ab"[i % 2], "v": f"2024-01-31T10:00:0{i}+01:00"} for i in (2, 3)))
    with pytest.raises(DataError, match=r"line 1: `v` is timestamp\[.*, tz=UTC\]") as wrong:
        acep.follow("in", LATER, **how, once=True)
    assert 'cast={"v": "timestamptz"}' in str(wrong.value.hint)
    how = {"state": "state2", "into": "out2", "cast": {"v": "timestamptz"}}
    assert acep.follow("in", LATER, **how, end=True).report.matches == 1


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    "cast", ["int", "float", "string", "bool", "date", "timestamp", "timestamptz", "timestamp(s)", "decimal(9,2)"]
)
def test_a_column_of_nulls_has_the_type_of_its_cast(form: str, cast: str) -> None:
    if form == "csv":
        Path("x.csv").write_text("ts,type,v\n1,a,\n2,b,\n")
    elif form == "jsonl":
        jsonl("x.jsonl", {"ts": 1, "type": "a", "v": None}, {"ts": 2, "type": "b"})
    else:
        pq.write_table(pa.table({"ts": [1, 2], "type": ["a", "b"], "v": pa.nulls(2)}), "x.parquet")
    table = acep.read_events(f"x.{form}", ["ts", "type", "v"], cast={"v": cast})
    assert table.column("v").null_count == 2
    assert not pa.types.is_null(table.schema.field("v").type)


def test_a_cast_of_an_attribute_that_no_line_has_is_told() -> None:
    name = jsonl("x.jsonl", {"ts": 1, "type": "a", "user": 5})
    with pytest.warns(DataWarning, match="no event has `usr`, which is cast: it is null"):
        table = acep.read_events(name, ["ts", "usr"], cast={"usr": "int"})
    assert table.schema.field("usr").type == pa.int64()
    with pytest.raises(DataError, match="there is no column `usr`"):
        acep.read_events(name, ["ts"], cast={"usr": "int"})


# Fields ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_field_is_cast_like_a_column(form: str) -> None:
    rows = [{"ts": i, "type": "ab"[i % 2], "dev": {"id": f"0{i}", "at": f"2024-01-0{i + 1}"}} for i in range(2)]
    if form == "jsonl":
        jsonl("x.jsonl", *rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), "x.parquet")
    columns = ["ts", "type", "dev.id", "dev.at"]
    table = acep.read_events(f"x.{form}", columns, cast={"dev.id": "int", "dev.at": "date"})
    assert table.column("dev.id").to_pylist() == [0, 1]
    assert table.column("dev.at").to_pylist() == [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    with pytest.raises(DataError, match=r"`dev\.id` is a field, and all columns are read as they are") as wrong:
        acep.read_events(f"x.{form}", cast={"dev.id": "int"})
    assert 'columns=["ts", "dev.id"]' in str(wrong.value.hint)
    if form == "jsonl":  # texts that are times, in fields too
        assert acep.read_events("x.jsonl", columns).schema.field("dev.at").type == pa.date32()


def test_fields_of_later_files_keep_their_meaning() -> None:
    """`acep match` and `acep follow` refuse the same: an object that is a number later."""
    jsonl("in/1.jsonl", {"ts": 1, "type": "a", "dev": {"id": 7}})
    how: dict[str, Any] = {"state": "state", "into": "out"}
    query = "PATTERN SEQ(a x, b y) WHERE [dev.id] WITHIN 9"
    acep.follow("in", query, **how, once=True)
    jsonl("in/2.jsonl", {"ts": 2, "type": "b", "dev": 7})
    with pytest.raises(DataError, match=r"`dev` is a number, but an object in"):
        acep.match("in", query)
    with pytest.raises(DataError, match=r"2\.jsonl`, line 1: `dev` is a number, not an object"):
        acep.follow("in", query, **how, once=True)
    with pytest.raises(DataError, match=r"2\.jsonl`, line 1: `dev` is a number, not an object"):
        acep.match("in/2.jsonl", query)


@pytest.mark.parametrize(
    ("rows", "condition", "message"),
    [
        (
            [{"dev": {"tags": ["x"]}}, {"dev": {"tags": "x"}}],
            "contains(y.dev.tags, 'x')",
            "`dev.tags` is text, not a list",
        ),
        ([{"dev": {"tags": ["x"]}}, {"dev": ["x"]}], "y.dev.tags[1] = 'x'", "`dev` is a list, not an object"),
        ([{"tags": [{"n": 1}]}, {"tags": [1]}], "y.tags[1].n = 1", r"`tags\[\]` is a number, not an object"),
        ([{"tags": ["x"]}, {"tags": {"n": 1}}], "y.tags[1] = 'x'", "`tags` is an object, not a list"),
    ],
)
def test_parts_of_later_files_keep_their_meaning(rows: list[Any], condition: str, message: str) -> None:
    jsonl("in/1.jsonl", {"ts": 1, "type": "a", **rows[0]})
    how: dict[str, Any] = {"state": "state", "into": "out"}
    query = f"PATTERN SEQ(a x, b y) WHERE {condition} WITHIN 9"
    acep.follow("in", query, **how, once=True)
    jsonl("in/2.jsonl", {"ts": 2, "type": "b", **rows[1]})
    with pytest.raises(DataError, match=rf"2\.jsonl`, line 1: {message}"):
        acep.follow("in", query, **how, once=True)
    jsonl("in/2.jsonl", {"ts": 2, "type": "b"}, {"ts": 3, "type": "b", **rows[0]})
    assert acep.follow("in", query, **how, end=True).report.matches == 1


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "content", "columns", "cast"),
    [
        ("csv", "ts,type,v\n1,a,90071992547409930.01\n2,b,1.5\n", ["v"], None),
        ("csv", "ts,type,v\n1,a,1e400\n", ["v"], None),
        ("jsonl", '{"ts": 1, "v": 1}\n{"ts": 2, "v": "x"}\n', ["v"], None),
        ("jsonl", '{"ts": 1, "v": {"n": 1}}\n{"ts": 2, "v": {"n": "x"}}\n', ["v.n"], None),
        ("jsonl", '{"ts": 1, "v": {"n": 1}}\n{"ts": 2, "v": [1]}\n', ["v"], None),
        ("jsonl", '{"ts": 1, "v": [1, "x"]}\n', ["v"], None),
        ("jsonl", '{"ts": 1, "v": 9223372036854775808}\n', ["v"], None),
        ("jsonl", '{"ts": 1, "v": 9007199254740993}\n{"ts": 2, "v": 0.5}\n', ["v"], None),
        ("csv", "ts,type,v\n1,a,2024-01-01T10:00:00Z\n2,b,2024-01-01T10:00:00\n", ["v"], {"v": "timestamp"}),
        ("csv", "ts,type,v\n1,a,12\n", ["v"], {"v": "timestamp"}),
    ],
)
def test_a_cast_that_a_hint_names_works(
    form: str, content: str, columns: list[str], cast: dict[str, str] | None
) -> None:
    Path(f"x.{form}").write_text(content)
    with pytest.raises(DataError) as wrong:
        acep.read_events(f"x.{form}", ["ts", *columns], cast=cast)
    named = re.search(r'cast=\{"([\w.]+)": "(.*?)"\}', str(wrong.value.hint))
    assert named is not None, wrong.value
    assert acep.read_events(f"x.{form}", ["ts", *columns], cast={named[1]: named[2]}).num_rows >= 1


def test_lines_and_rows_are_counted_in_one_way() -> None:
    """Whatever is wrong in the third line of a file of text, it is line 3; the second row of a table is row 1."""
    csv = {
        "2": "line 3 has 1 cell",
        '2,"b': "line 3: a quotation mark",
        "2,b,9e999": "line 3: `v` is 9e999",
        "2,b,90071992547409930.01": "line 3: `v` is",
        ",b,1": "line 3: `ts` is null",
        "x,b,1": "line 3: `ts` is not a time",
    }
    for line, words in csv.items():
        Path("x.csv").write_text(f"ts,type,v\n1,a,1.5\n{line}\n")
        with pytest.raises(DataError, match=re.escape(f"`x.csv`, {words}")):
            acep.read_events("x.csv")
    with pytest.raises(DataError, match=r"`x\.csv`, line 3: `ts` is no int: 'x'"):
        acep.read_events("x.csv", cast={"ts": "int"})
    for line in ('{"ts": 2, "v": "x"}', "[]", "{", '{"v": 1}', '{"ts": 2, "v": 1e999}', '{"ts": 2, "v": 1, "v": 2}'):
        Path("x.jsonl").write_text('{"ts": 1, "v": 1.5}\n\n' + line + "\n")
        with pytest.raises(DataError, match=r"`x\.jsonl`, line 3"):
            acep.read_events("x.jsonl")
    pq.write_table(pa.table({"ts": [1, None], "type": ["a", "b"]}), "x.parquet")
    with pytest.raises(DataError, match=r"`x.parquet`, row 1 \(rows count from 0\)"):
        acep.read_events("x.parquet")
    with pytest.raises(DataError, match=r"row 1 \(rows count from 0\)"):
        acep.match(pa.table({"ts": [1, None], "type": ["a", "b"]}), PAIR)


def test_lines_are_counted_past_skipped_ones_and_cells_of_several_lines() -> None:
    rows = ['1,a,"two', 'lines"', "", "2", "3,b,x", "4,a,1.5"]
    Path("x.csv").write_text("ts,type,v\n" + "\n".join(rows) + "\n")
    how: dict[str, Any] = {"skip_bad_lines": True, "max_skipped": 0.9, "cast": {"v": "float"}}
    assert acep.read_events("x.csv", **how).column("ts").to_pylist() == [4]
    Path("x.csv").write_text("ts,type,v\n" + "\n".join([*rows[:2], "", *rows[4:]]) + "\n")
    with pytest.raises(DataError, match=r"line 2: `v` is no float: 'two\\nlines'"):
        acep.read_events("x.csv", cast={"v": "float"})
    Path("x.csv").write_text("ts,type,v\n" + "\n".join(["1,a,1", '2,a,"x', 'y"', "", "3,b,1", "z,b,1"]) + "\n")
    with pytest.raises(DataError, match="line 7: `ts` is not a time"):
        acep.read_events("x.csv")


@pytest.mark.parametrize(
    "queries",
    [
        {"good": PAIR, "bad": "PATTERN SEQ(a x, b y) WHERE y.pirce > 1"},
        {"good": PAIR, "bad": "PATTERN SEQ("},
        {"good": PAIR, "bad": 5},
        {"good": PAIR, "bad": "PATTERN SEQ(a x, b y) WITHIN 9 s"},
    ],
)
def test_errors_name_the_query_where_there_are_several(queries: dict[str, Any]) -> None:
    rows = {"ts": [1, 2], "type": ["a", "b"], "price": [1, 2]}
    Path("in").mkdir()
    Path("in/1.csv").write_text("ts,type,price\n1,a,1\n")

    def follow(asked: Any) -> Any:
        return acep.follow("in", asked, state="state", into="out", once=True)

    for call in (lambda asked: acep.match(rows, asked), lambda asked: acep.Matcher(asked).push(rows), follow):
        with pytest.raises(AcepError, match=r"^query `bad`: "):
            call(queries)
        with pytest.raises(QueryError, match=r"^query `1`: "):
            call([*queries.values()])
        with pytest.raises(AcepError) as single:
            call(queries["bad"])
        assert "query `" not in str(single.value)


def test_a_far_time_beside_one_with_nanoseconds_is_refused() -> None:
    Path("x.csv").write_text("ts,type,v\n2024-01-01T10:00:00.000000001,a,1\n9999-12-31T00:00:00,b,2\n")
    with pytest.raises(DataError):
        acep.read_events("x.csv")


# Files that are not what their name says -------------------------------------------------------------

TABLE = b"ts,type,x\n1,a,1\n"


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl"])
@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (gzip.compress(TABLE, mtime=0), "is compressed with gzip", "name it so: {}.gz"),
        (pa.compress(TABLE, "zstd", asbytes=True), "is compressed with zstd", "name it so: {}.zst"),
        (bz2.compress(TABLE), "is compressed with bzip2", "decompress it first"),
        (lzma.compress(TABLE), "is compressed with xz", "decompress it first"),
        (b"PK\x03\x04\x14\0", "is a zip archive, or a workbook", "take the file out of it"),
        (b"PAR1\x15\x04", "is a Parquet file", "name it so: {}.parquet"),
    ],
)
def test_bytes_that_are_no_text_are_named(name: str, data: bytes, message: str, hint: str) -> None:
    Path(name).write_bytes(data)
    with pytest.raises(DataError) as wrong:
        acep.read_events(name)
    assert wrong.value.message == f"`{name}` {message}"
    assert str(wrong.value.hint).startswith(hint.format(name))


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b"#separator \\x09\n", "zeek"),
        (b'{"ts": 1}\n', "jsonl"),
        (b"PAR1\x15", "parquet"),
        (b"ts\ttype\n", "tsv"),
        (TABLE, "csv"),
        (b"", "csv"),
    ],
)
def test_the_hint_of_an_unknown_name_says_the_format_of_its_text(data: bytes, form: str) -> None:
    for name, packed in (("conn.log", data), ("conn.log.gz", gzip.compress(data))):
        Path(name).write_bytes(packed)
        with pytest.raises(DataError, match="is not named like a file of events") as wrong:
            acep.read_events(name)
        assert str(wrong.value.hint).endswith(f'or say what it is, as format="{form}"')


def test_a_header_behind_empty_lines() -> None:
    Path("x.csv").write_text("\n\nts,type\n1,a\n")
    assert acep.read_events("x.csv").num_rows == 1
    Path("x.csv").write_text("\n0,0,a\n1,2,b\n")
    with pytest.raises(DataError, match="line 2 is the header, as lines before it are empty, and two of its names are"):
        acep.read_events("x.csv")


def test_a_wrong_quotation_mark_is_said_as_it_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.csv").write_bytes(TABLE)
    assert main(["match", "PATTERN SEQ(a p, b q) WITHIN 1", "x.csv", "--quote", "'"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        """acep: --quote "'" is no quotation mark [option_invalid]""",
        """hint: --quote '"', or --quote none""",
    ]
