"""Matches, bundles and points in files: every format, times as texts, and a file that is whole or not there."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep.errors import DataError
from acep.events.tables import schema_of
from acep.matches.match_form import MatchForm
from acep.matches.matches import Match, Matches
from acep.matches.records import Found
from acep.output.json_records import json_line, match_record
from acep.output.writing import group_writer, write_matches, write_table


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


INTEGERS = schema_of(pa.schema({"ts": pa.int64(), "type": pa.string(), "symbol": pa.string()}))
TIMES = schema_of(pa.schema({"ts": pa.timestamp("ms"), "type": pa.string()}))
ONE = Found(("AAPL",), 1, 9, 0, (("a", (0, 3)), ("b", (7,))), 9)
LINE = '{"key": {"symbol": "AAPL"}, "start": 1, "end": 9, "error": 0, "bindings": {"a": [0, 3], "b": [7]}, "bundle": 9}'
KEYED = Matches([ONE], MatchForm(INTEGERS, keys=("symbol",)))
RETURNING = Matches(
    [Found((), 0, 1500, Fraction(1, 2), (("a", (0,)),), 1500, (2, None))], MatchForm(TIMES, returns=("n", "m"))
)


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
        (pa.timestamp("ns", "UTC"), 1, "1970-01-01T00:00:00.000000001Z"),
        (pa.timestamp("ns", "UTC"), 1000, "1970-01-01T00:00:00.000001Z"),
        (pa.timestamp("s", "UTC"), 1, "1970-01-01T00:00:01Z"),
        (pa.date32(), 86400, "1970-01-02"),
        (pa.int32(), 5, 5),
    ],
)
def test_times_out(held: pa.DataType, ticks: int, text: Any) -> None:
    schema = schema_of(pa.schema({"ts": held}))
    out = io.StringIO()
    write_matches(Matches([Found((), ticks, ticks, 0, (("a", (0,)),), ticks)], MatchForm(schema)), out, "jsonl")
    assert json.loads(out.getvalue())["start"] == text


def test_numbers_that_json_has_not() -> None:
    match = Match({"x": float("inf")}, 1, 1, 0, {"a": ("ä",)}, 1, {"n": float("nan"), "f": Fraction(3, 2)})
    assert json_line(match_record(match)) == (
        '{"key": {"x": "Infinity"}, "start": 1, "end": 1, "error": 0, "bindings": {"a": ["ä"]}, "bundle": 1, '
        '"values": {"n": null, "f": 1.5}}'
    )


def test_csv(tmp_path: Path) -> None:
    write_matches(KEYED, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == (
        'key.symbol,start,end,error,bindings,bundle\nAAPL,1,9,0,"{""a"": [0, 3], ""b"": [7]}",9\n'
    )
    write_matches(RETURNING, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines()[0] == "start,end,error,bindings,bundle,values.n,values.m"
    write_matches(Matches([], MatchForm(INTEGERS, keys=("symbol",))), tmp_path / "x.csv")
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
        with group_writer(path, heads=heads, schema=INTEGERS, keys=("symbol",)) as write:
            write(groups)
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
        write_matches(Broken([ONE], MatchForm(INTEGERS, keys=("symbol",))), path)
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
