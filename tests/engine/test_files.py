"""Files in and out: every format, what stands in them, and what is said of damaged ones."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep.engine.files import format_of, read_events, write_groups, write_matches
from acep.engine.found import Found
from acep.engine.matches import Match, Matches
from acep.engine.tables import events_of, schema_of
from acep.engine.writing import json_line, match_record, write_table
from acep.errors import DataError

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
    table = read_events(put("x.csv", "ts,type,who,price\n1,a,,NA\n2,b,NA,1\n3,c,Al,nan\n"))
    assert table.column("who").to_pylist() == [None, "NA", "Al"]
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
    ],
)
def test_times(put: Any, name: str, text: str, value: dt.datetime) -> None:
    content = f"ts,type\n{text},a\n" if name == "x.csv" else json.dumps({"ts": text, "type": "a"})
    read = read_events(put(name, content)).column("ts")[0].as_py()
    if name == "x.jsonl" and text.endswith("Z"):  # Arrow's JSON reader turns a plain zone into an instant without one
        read = read.replace(tzinfo=dt.UTC)
    assert read == value


def test_nanoseconds_stay(put: Any) -> None:
    column = read_events(put("x.csv", "ts,type\n2024-01-01T10:00:00.000000001,a\n")).column("ts")
    assert column.type == pa.timestamp("ns")


def test_lines_of_json_that_need_the_slow_way(put: Any) -> None:
    long = {"ts": 1, "type": "a", "note": "x" * 3_000_000}
    table = read_events(put("x.jsonl", json.dumps(long) + "\n" + json.dumps({"ts": 2, "type": "b"})))
    assert table.num_rows == 2
    twice = read_events(put("y.jsonl", '{"ts": 1, "ts": 2}\n'))
    assert twice.to_pydict() == {"ts": [2]}


DAMAGED = [
    ("x.csv", "", "is empty", None),
    ("x.csv", "\n\n", "is empty", None),
    ("x.csv", "ts,type\n1,a\n2\n", "row 3 has 1 cell, the header 2", None),
    ("x.csv", "ts,type\n1,a\n2,b,c\n", "row 3 has 3 cells, the header 2", None),
    ("x.csv", b"ts,type,x\n1,a,\xff\n", "column `x` is not UTF-8", "UTF-8"),
    ("x.csv", b"ts,type\n1,\xff\n", "cannot be read", None),
    ("x.csv", "ts,type\n2024-01-01,a\nyesterday,b\n", "`ts` is not a time in row 1.*'yesterday'", "ISO 8601"),
    ("x.csv", "ts,type\n2024-01-01T00:00,a\n2024-01-01T00:00Z,b\n", "`ts` is not a time in row 1", "with a zone"),
    ("x.jsonl", "", "is empty", None),
    ("x.jsonl", "\n", "holds no objects", "one JSON object"),
    ("x.jsonl", JSONL + '{"ts": 3, \n', "line 3, column 10: broken JSON", "one JSON object"),
    ("x.jsonl", JSONL + "\n7\n", "line 4 is not a JSON object", "one JSON object"),
    ("x.json", '[{"ts": 1}]', "line 1 is not a JSON object", "one JSON object"),
    ("x.jsonl", JSONL + '{"ts": "three"}\n', "line 3: `ts` is text, but a number in line 1", "one type"),
    ("x.jsonl", b'{"ts": 1, "type": "\xff"}\n{', "line 1 is not UTF-8", None),
    ("x.parquet", b"", "is empty", None),
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


def test_text_that_is_no_utf8_is_seen_when_it_is_used(put: Any) -> None:
    table = read_events(put("x.jsonl", b'{"ts": 1, "type": "\xff"}\n'))
    with pytest.raises(DataError, match="column `type` is not UTF-8 text"):
        events_of(table, schema_of(table.schema), ())


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
    with pytest.raises(DataError, match="is a directory"):
        read_events(tmp_path / "folder.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(put: Any) -> None:
    path = put("x.csv", CSV)
    path.chmod(0)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        read_events(path)


def test_format_of() -> None:
    assert [format_of(n) for n in ("a.csv", "b.JSON.gz", "/c/d.pq")] == ["csv", "jsonl", "parquet"]


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


# Out ---------------------------------------------------------------------------------------------

INTEGERS = schema_of(pa.schema({"ts": pa.int64(), "type": pa.string(), "symbol": pa.string()}))
TIMES = schema_of(pa.schema({"ts": pa.timestamp("ms"), "type": pa.string()}))
ONE = Found(("AAPL",), 1, 9, 0, (("a", (0, 3)), ("b", (7,))), 9)
LINE = '{"key": {"symbol": "AAPL"}, "start": 1, "end": 9, "error": 0, "bindings": {"a": [0, 3], "b": [7]}, "bundle": 9}'
KEYED = Matches([ONE], INTEGERS, ("symbol",))
RETURNING = Matches([Found((), 0, 1500, Fraction(1, 2), (("a", (0,)),), 1500, (2, None))], TIMES, (), ("n", "m"))


def test_a_line_of_json(tmp_path: Path) -> None:
    write_matches(KEYED, tmp_path / "x.jsonl")
    assert (tmp_path / "x.jsonl").read_text() == LINE + "\n"
    assert names_in(tmp_path) == ["x.jsonl"]


def test_values_come_last_and_the_query_first() -> None:
    record = match_record(RETURNING[0], query="q")
    assert json_line(record) == (
        '{"query": "q", "key": {}, "start": "1970-01-01T00:00:00", "end": "1970-01-01T00:00:01.500000", '
        '"error": 0.5, "bindings": {"a": [0]}, "bundle": "1970-01-01T00:00:01.500000", "values": {"n": 2, "m": null}}'
    )


@pytest.mark.parametrize(
    ("held", "ticks", "text"),
    [
        (pa.timestamp("ns"), 1_000_000_000, "1970-01-01T00:00:01"),
        (pa.timestamp("ns"), 1_500_000_000, "1970-01-01T00:00:01.500000"),
        (pa.timestamp("ns"), 1, "1970-01-01T00:00:00.000000001"),
        (pa.timestamp("ns", "UTC"), 1, "1970-01-01T00:00:00.000000001+00:00"),
        (pa.timestamp("ns", "UTC"), 1000, "1970-01-01T00:00:00.000001+00:00"),
        (pa.timestamp("s", "UTC"), 1, "1970-01-01T00:00:01+00:00"),
        (pa.date32(), 86400, "1970-01-02"),
        (pa.int32(), 5, 5),
    ],
)
def test_times_out(held: pa.DataType, ticks: int, text: Any) -> None:
    schema = schema_of(pa.schema({"ts": held}))
    out = io.StringIO()
    write_matches(Matches([Found((), ticks, ticks, 0, (("a", (0,)),), ticks)], schema), out, "jsonl")
    assert json.loads(out.getvalue())["start"] == text


def test_numbers_that_are_none_are_null() -> None:
    match = Match({"x": float("inf")}, 1, 1, 0, {"a": ("ä",)}, 1, {"n": float("nan"), "f": Fraction(3, 2)})
    assert json_line(match_record(match)) == (
        '{"key": {"x": null}, "start": 1, "end": 1, "error": 0, "bindings": {"a": ["ä"]}, "bundle": 1, '
        '"values": {"n": null, "f": 1.5}}'
    )


def test_csv(tmp_path: Path) -> None:
    write_matches(KEYED, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == (
        'key.symbol,start,end,error,bindings,bundle\nAAPL,1,9,0,"{""a"": [0, 3], ""b"": [7]}",9\n'
    )
    write_matches(RETURNING, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines()[0] == "start,end,error,bindings,bundle,values.n,values.m"
    write_matches(Matches([], INTEGERS, ("symbol",)), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "key.symbol,start,end,error,bindings,bundle\n"


def test_parquet(tmp_path: Path) -> None:
    write_matches(KEYED, tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    assert table.to_pylist() == [
        {
            "key": {"symbol": "AAPL"},
            "start": 1,
            "end": 9,
            "error": 0,
            "bindings": [("a", [0, 3]), ("b", [7])],
            "bundle": 9,
        }
    ]
    for matches in (RETURNING, RETURNING[:0]):
        write_matches(matches, tmp_path / "x.parquet")
        table = pq.read_table(tmp_path / "x.parquet")
        assert table.column_names == ["start", "end", "error", "bindings", "bundle", "values"]
        assert table.schema.field("start").type == pa.timestamp("ms")


@pytest.mark.parametrize("matches", [KEYED, RETURNING, KEYED[:0]])
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_table_of_matches_is_written_like_matches(matches: Matches, form: str) -> None:
    from_table, from_matches = io.StringIO(), io.StringIO()
    table = matches.to_arrow()
    write_table(table if matches.keys else table.drop_columns(["key"]), from_table, form)
    write_matches(matches, from_matches, form)
    assert from_table.getvalue() == from_matches.getvalue()


@pytest.mark.parametrize("kind", ["bundles", "points"])
def test_groups(tmp_path: Path, kind: str) -> None:
    groups: Any = KEYED.bundles() if kind == "bundles" else KEYED.points()
    heads = ["start", "end", "matches", "best"] if kind == "bundles" else ["point", "best"]
    for path in (tmp_path / "x.jsonl", tmp_path / "x.csv", tmp_path / "x.parquet"):
        write_groups(groups, path, heads=heads, schema=INTEGERS, keys=("symbol",))
    values = {"start": 9, "end": 9, "matches": 1, "best": 0} if kind == "bundles" else {"point": 9, "best": 0}
    record = {"key": {"symbol": "AAPL"}} | values
    assert json.loads((tmp_path / "x.jsonl").read_text()) == record
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == [record]
    head, row = (tmp_path / "x.csv").read_text().splitlines()
    assert (head, row) == ("key.symbol," + ",".join(heads), "AAPL," + ",".join(map(str, values.values())))


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    class Broken(Matches):
        def __iter__(self) -> Any:
            yield from super().__iter__()
            raise RuntimeError("midway")

    path = tmp_path / "x.jsonl"
    path.write_text("before")
    with pytest.raises(RuntimeError, match="midway"):
        write_matches(Broken([ONE], INTEGERS, ("symbol",)), path)
    assert (path.read_text(), names_in(tmp_path)) == ("before", ["x.jsonl"])


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    write_matches(KEYED, tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "real.jsonl").read_text() == LINE + "\n"


def test_a_device_is_written_to() -> None:
    write_matches(KEYED, "/dev/null", "jsonl")
    write_matches(KEYED, "/dev/null", "parquet")


@pytest.mark.parametrize(
    ("target", "form", "message"),
    [
        ("x.xlsx", None, "no format of output is named like `x.xlsx`"),
        ("x.jsonl", "xlsx", "there is no format 'xlsx'"),
        (io.StringIO(), None, "a stream needs a format"),
        ("no/such/folder/x.jsonl", None, "cannot be written: No such file"),
        (".", "jsonl", "is a directory"),
    ],
)
def test_where_nothing_can_be_written(target: Any, form: str | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        write_matches(KEYED, target, form)
