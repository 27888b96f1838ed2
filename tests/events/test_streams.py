"""Streams of several files, casts, and streams that are too large to be read at once: the same as a small one."""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import acep
from acep.errors import DataError
from acep.events.files import disk_sort, stream, survey
from acep.events.files.csv import csv_files
from acep.events.files.json import json_lines
from acep.events.files.options import options_of
from acep.events.files.parquet import parquet_files
from acep.events.files.stream import ROW, open_events


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tiny() -> Iterator[None]:
    """Blocks and runs of a few rows, so that small files take the ways of large ones."""
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        yield


def make_tiny(patch: pytest.MonkeyPatch) -> None:
    for module, name, size in (
        (survey, "SMALL", 1),
        (csv_files, "BLOCK", 64),
        (json_lines, "BLOCK", 64),
        (json_lines, "FIRST", 2),
        (parquet_files, "ROWS", 3),
        (stream, "ROWS", 3),
        (disk_sort, "RUN", 100),
        (disk_sort, "ROWS", 2),
        (disk_sort, "FAN", 3),
    ):
        patch.setattr(module, name, size)


def batches(paths: Any, **how: Any) -> tuple[list[pa.Table], stream.EventStream]:
    with open_events(paths, options_of(**how)) as events:
        return list(events.batches()), events


# Types over the whole file -----------------------------------------------------------------------

CELLS = st.sampled_from(
    ["", "1", "-7", "007", "+5", "0", "99999999999999999999", "1.5", "-0.25", "1e3", "NA", "nan", "true", "False", "x",
     "2024-01-31", "2024-01-31T10:00:00", "2024-01-31T10:00:00.25", "2024-01-31T10:00:00.000000001",
     "2024-01-31T10:00:00Z", "2024-01-31T10:00:00+02:00", "10:00:00", " 3", "0x1F", "-05", 'a "b", c', "two\nlines"]
)  # fmt: skip
KINDS = [["1", "-7", "", "NA", "0"], ["1", "007", "+5", "99999999999999999999"], ["1.5", "1", "nan", ""]]
KINDS += [["2024-01-31", "2024-01-31T10:00:00"], ["2024-01-31T10:00:00Z", "2024-01-31T10:00:00+02:00"], ["true", ""]]
COLUMN = st.lists(CELLS, max_size=12) | st.one_of([st.lists(st.sampled_from(kind), max_size=12) for kind in KINDS])


def write_csv(path: str, cells: list[str]) -> None:
    rows = pa.table({"ts": pa.array(range(len(cells))), "x": pa.array(cells, pa.string())})
    pyarrow.csv.write_csv(rows, path)


def read_or_refuse(path: str) -> pa.Table | str:
    """Read a file, or give the message of its refusal: `99999999999999999999` and `1.5` do not fit one column."""
    try:
        return acep.read_events(path)
    except acep.DataError as error:
        return str(error)


def are_equal(left: pa.Table, right: pa.Table) -> bool:
    """Return whether two tables have the same schema and values; NaN is equal to itself here."""
    return bool(left.schema.equals(right.schema) and str(left.to_pydict()) == str(right.to_pydict()))


@given(COLUMN)
@example(["nan"])
def test_types_do_not_depend_on_where_a_block_ends(cells: list[str]) -> None:
    write_csv("x.csv", cells)
    whole = read_or_refuse("x.csv")
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        again = read_or_refuse("x.csv")
        if isinstance(whole, str) or isinstance(again, str):
            assert again == whole
            return
        parts, events = batches("x.csv", type=None)
        assert are_equal(again, whole)
    assert events.schema.equals(whole.schema)
    if parts:
        assert are_equal(pa.concat_tables(parts), whole)
    assert whole.num_rows == len(cells)


@given(COLUMN)
@example(["nan", "1"])
def test_a_column_is_as_arrow_reads_it_or_text(cells: list[str]) -> None:
    write_csv("x.csv", cells)
    only_empty = pyarrow.csv.ConvertOptions(null_values=[""])
    mine_or_refusal, table = read_or_refuse("x.csv"), pyarrow.csv.read_csv("x.csv", convert_options=only_empty)
    if isinstance(mine_or_refusal, str):
        assert "a double tells numbers of 17 digits apart" in mine_or_refusal
        return
    mine = mine_or_refusal.column("x")
    if pa.types.is_string(mine.type):
        assert mine.to_pylist() == [cell or None for cell in cells]
    else:
        assert str(mine.cast(table.column("x").type).to_pylist()) == str(table.column("x").to_pylist())


@pytest.mark.parametrize("cell", ["01234", "+5", "99999999999999999999"])
@pytest.mark.parametrize("at", [0, 50])
@pytest.mark.usefixtures("tiny")
def test_digits_that_are_no_plain_number_are_text_wherever_they_stand(cell: str, at: int) -> None:
    cells = ["1234"] * 60
    cells[at] = cell
    write_csv("x.csv", cells)
    assert acep.read_events("x.csv").column("x").to_pylist() == cells
    if cell == "01234":
        assert set(acep.read_events("x.csv", cast={"x": "int"}).column("x").to_pylist()) == {1234}


@pytest.mark.usefixtures("tiny")
def test_zip_codes_are_two_keys() -> None:
    Path("x.csv").write_text("ts,type,zip\n1,a,01234\n2,b,1234\n3,b,01234\n")
    (found,) = acep.match("x.csv", acep.regex("ab", within=5, by="zip"))
    assert (found.key, found.bindings) == ({"zip": "01234"}, {"a": (0,), "b": (2,)})


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5), st.sampled_from(["2024-01-31T10:00:00", "2024-01-31T10:00:00.5", "2024-01-31", 2**53 + 1]),
)  # fmt: skip


@given(st.lists(VALUES, max_size=10))
def test_json_is_exact_or_refused(values: list[Any]) -> None:
    lines = [json.dumps({"ts": i, "x": value}) for i, value in enumerate(values)]
    Path("x.jsonl").write_text("\n\r\n".join(lines) + "\n" * (len(values) % 2) or "{}\n")
    try:
        whole = acep.read_events("x.jsonl")
    except DataError:
        whole = None
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        try:
            again = acep.read_events("x.jsonl")
        except DataError:
            again = None
    assert (whole is None) == (again is None)
    if whole is None or again is None or not values:
        return
    assert again.equals(whole)
    column = whole.column("x")
    if not (pa.types.is_temporal(column.type)):
        assert column.to_pylist() == values


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"ts": 1, "x": 9223372036854775808}', "line 1: `x` is an integer beyond 64 bits"),
        (
            '{"ts": 1, "x": 9007199254740993}\n{"ts": 2, "x": 0.5}',
            "line 1.*`x` is an integer that no float is equal to",
        ),
        ('{"ts": 1, "x": 0.5}\n' * 9 + '{"ts": 1, "x": 9007199254740993}', "line 10.*no float is equal to"),
        ('{"ts": 1, "x": 1, "x": 2}', "`x` is there twice"),
        ('{"ts": 1, "x": "\\ud800"}', "half of a surrogate pair"),
        ('{"ts": 1}{"ts": 2}', "line 1, column 10: broken JSON"),
    ],
)
@pytest.mark.parametrize("small", [True, False])
def test_json_that_is_refused(content: str, message: str, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not small:
        make_tiny(monkeypatch)
    Path("x.jsonl").write_text(content)
    with pytest.raises(DataError, match=message):
        acep.read_events("x.jsonl")


def test_integers_beyond_64_bits_can_be_cast() -> None:
    Path("x.jsonl").write_text('{"ts": 1, "x": 9223372036854775808}\n{"ts": 2, "x": 0.10}\n{"ts": 3, "x": "7"}\n')
    assert acep.read_events("x.jsonl", cast={"x": "string"}).column("x").to_pylist() == [
        "9223372036854775808", "0.10", "7"
    ]  # fmt: skip
    assert acep.read_events("x.jsonl", cast={"x": "decimal(21,2)"}).column("x").type == pa.decimal128(21, 2)


# Order -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@given(times=st.lists(st.integers(0, 20), min_size=1, max_size=40), seq=st.booleans())
def test_an_unsorted_stream_is_sorted_on_disk(form: str, times: list[int], seq: bool) -> None:
    table = pa.table({"ts": times, "type": [f"t{i}" for i in range(len(times))], "s": [-i for i in range(len(times))]})
    write(table, f"x.{form}")
    keys = [("ts", "ascending"), *([("s", "ascending")] if seq else []), (ROW, "ascending")]
    wanted = table.append_column(ROW, pa.array(range(len(times)))).sort_by(keys)
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        patch.setattr(tempfile, "tempdir", str(Path.cwd()))
        parts, events = batches(f"x.{form}", seq="s" if seq else None)
    found = pa.concat_tables(parts)
    assert all(part.num_rows <= 3 for part in parts)
    if events.sorted_on_disk:
        assert found.to_pylist() == wanted.select(found.column_names).to_pylist()
        assert times[events.back] < times[events.back - 1] or seq
    else:
        assert found.to_pylist() == wanted.drop_columns([ROW]).select(found.column_names).to_pylist()
    assert not [*Path.cwd().glob("acep-events-*")]


def write(table: pa.Table, path: str) -> None:
    if path.endswith("csv"):
        pyarrow.csv.write_csv(table, path)
    elif path.endswith("parquet"):
        pq.write_table(table, path, row_group_size=7)
    else:
        Path(path).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    "ids", [["a", "b", "c", "d", "a"], [5, 4, 3, 2, 5], ["e", "d", "c", "b", "a"], [1, 2, 3, 4, 5]]
)
def test_an_id_that_comes_twice_far_apart(ids: list[Any]) -> None:
    write(pa.table({"ts": range(5), "type": ["a"] * 5, "key": ids}), "x.csv")
    if len(set(ids)) == 5:
        assert pa.concat_tables(batches("x.csv", id="key")[0]).num_rows == 5
        return
    with pytest.raises(DataError, match=f"the id {ids[0]!r} of column `key` came before"):
        batches("x.csv", id="key")


# Several files -----------------------------------------------------------------------------------

LINES = ['{"ts": 1, "type": "a"}', '{"ts": 2, "type": "b"}', '{"ts": 3, "type": "c"}']


def types_in(paths: Any, **how: Any) -> list[str]:
    return acep.read_events(paths, **how).column("type").to_pylist()


def test_which_files_are_meant(tmp_path: Path) -> None:
    inner = tmp_path / "d" / "inner"
    inner.mkdir(parents=True)
    for name, line in zip(("b.ndjson", "a.jsonl.gz", "inner/c.jsonl.zst"), LINES, strict=True):
        data = (line + "\n").encode()
        packed = gzip.compress(data) if name.endswith("gz") else pa.compress(data, "zstd", asbytes=True)
        (tmp_path / "d" / name).write_bytes(data if name.endswith("ndjson") else packed)
    for name in ("_SUCCESS", ".hidden.jsonl", "readme.txt"):
        (tmp_path / "d" / name).write_text("no event")
    assert types_in("d") == ["b", "a", "c"]
    assert types_in("d/*.*json*") == ["b", "a"]
    assert types_in("d/**/*.zst") == ["c"]
    assert types_in(["d/inner", Path("d/b.ndjson")]) == ["c", "a"]
    assert acep.match("d/*json*", acep.regex("ba", within=5)).count() == 0
    assert acep.match(["d/b.ndjson", "d/a.jsonl.gz"], acep.regex("ab", within=5)).count() == 1
    with pytest.raises(DataError, match="no file of events in `e/"):
        types_in("e/*.csv")


def test_a_name_with_the_letters_of_a_glob() -> None:
    Path("x[1].jsonl").write_text(LINES[0])
    assert types_in("x[1].jsonl") == ["a"]


def test_pipes_and_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo("pipe.jsonl")
    threading.Thread(target=lambda: Path("pipe.jsonl").write_text("\n".join(LINES)), daemon=True).start()
    assert types_in("pipe.jsonl") == ["a", "b", "c"]
    for data in (LINES[0].encode(), gzip.compress(LINES[0].encode())):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert types_in("-", format="jsonl") == ["a"]
    with pytest.raises(DataError, match="format of standard input"):
        types_in("-")
    assert acep.read_events("/dev/null", format="csv").num_rows == 0


def test_files_that_do_not_fit_together() -> None:
    Path("a.csv").write_text("ts,type,x\n1,a,1\n")
    Path("b.csv").write_text("ts,type\n2,b\n")
    Path("c.csv").write_text("ts,type,x\n2,b,01\n")
    pq.write_table(pa.table({"ts": [3], "type": ["c"], "x": [0.5]}), "d.parquet")
    with pytest.raises(DataError, match=r"`b\.csv` has no column `x`, which `a\.csv` has"):
        acep.read_events(["a.csv", "b.csv"])
    assert acep.read_events(["a.csv", "c.csv"]).column("x").to_pylist() == ["1", "01"]
    with pytest.raises(DataError, match=r"column `x` is double in `d\.parquet`, int64 in `a\.csv`") as wrong:
        acep.read_events(["a.csv", "d.parquet"])
    assert 'cast={"x": "string"}' in (wrong.value.hint or "")
    cast = acep.read_events(["a.csv", "d.parquet"], cast={"x": "float"})
    assert cast.column("x").to_pylist() == [1, 0.5]


# Casts and bad lines -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "cast", "wanted"),
    [
        ("x.csv", "1", "string", "1"),
        ("x.csv", "7", "float", 7.0),
        ("x.csv", " +07 ", "int", 7),
        ("x.csv", "TRUE", "bool", True),
        ("x.csv", "10.50", "decimal(10,2)", "10.50"),
        ("x.csv", "90071992547409930.01", "decimal(19,2)", "90071992547409930.01"),
        ("x.csv", "2024-01-31", "date", "2024-01-31"),
        ("x.csv", "1700000000.123456", "timestamp(s)", "2023-11-14 22:13:20.123456"),
        ("x.csv", "1700000000123", "timestamp(ms)", "2023-11-14 22:13:20.123000"),
        ("x.csv", "1700000000.1234567", "timestamp(s)", "2023-11-14 22:13:20.123456700"),
        ("x.csv", "1700000000.1234567891", "timestamp(s)", None),
        ("x.csv", "12", "timestamp", None),
        ("x.csv", "1.5", "int", None),
        ("x.csv", "10.505", "decimal(10,2)", None),
        ("x.csv", "yes", "bool", None),
        ("x.jsonl", "1700000000.25", "timestamp(s)", "2023-11-14 22:13:20.250000"),
        ("x.jsonl", "1700000000.1234567", "timestamp(s)", "2023-11-14 22:13:20.123456700"),
        ("x.jsonl", "0.30000000000000004", "timestamp(s)", None),
        ("x.jsonl", "9007199254740993", "float", None),
        ("x.jsonl", "7", "string", "7"),
        ("x.jsonl", "0.10", "string", "0.10"),
        ("x.jsonl", "0.10", "decimal(3,2)", "0.10"),
        ("x.jsonl", '"12"', "int", 12),
        ("x.jsonl", "true", "string", "true"),
    ],
)
@pytest.mark.parametrize("small", [True, False])
def test_casts(name: str, content: str, cast: str, wanted: Any, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not small:
        make_tiny(monkeypatch)
    row = f"1,{content}\n" if name == "x.csv" else f'{{"ts": 1, "x": {content}}}\n'
    Path(name).write_text(("ts,x\n" if name == "x.csv" else "") + row * 3)
    if wanted is None:
        with pytest.raises(DataError):
            acep.read_events(name, type=None, cast={"x": cast})
        return
    column = acep.read_events(name, type=None, cast={"x": cast}).column("x")
    values = column.to_pylist() if column.type != pa.timestamp("ns") else column.cast(pa.string()).to_pylist()
    assert values == [wanted] * 3 or [*map(str, values)] == [wanted] * 3


def test_casts_of_parquet() -> None:
    pq.write_table(pa.table({"ts": [0.5, 2.0], "type": [1, 2], "x": [2**53 + 1, 1]}), "x.parquet")
    table = acep.read_events("x.parquet", cast={"ts": "timestamp", "type": "string"}, unit="s")
    assert [str(ts) for ts in table.column("ts").to_pylist()] == ["1970-01-01 00:00:00.500000", "1970-01-01 00:00:02"]
    assert table.column("type").to_pylist() == ["1", "2"]
    with pytest.raises(DataError, match=r"row 0 .*`x` is no float: 9007199254740993"):
        acep.read_events("x.parquet", cast={"x": "float"})


@pytest.mark.parametrize("cast", [{"x": "words"}, {"x": "decimal(50,2)"}, {"x": 7}, {"x": "timestamp(h)"}, "x=int"])
def test_casts_that_there_are_not(cast: Any) -> None:
    Path("x.csv").write_text("ts,x\n1,2\n")
    with pytest.raises(DataError):
        acep.read_events("x.csv", cast=cast)


BAD_CSV = "ts,type,x\n1,a,1\n2,b\n3,c,2,3\n4,d,four\n,e,5\n6,f,6\n"
BAD_JSON = '{"ts": 1, "type": "a"}\n{"ts": 2\n[]\n{"ts": "x", "type": "d"}\n{"type": "e"}\n{"ts": 6, "type": "f"}\n'


def test_rows_that_are_no_utf8_are_bad_lines() -> None:
    Path("x.csv").write_bytes(b"ts,type,x\n1,a,\xff\n2,b,\xc3\xa4\n3,\xff\n4,\xe4,y\n5,a,z\n")
    with pytest.raises(DataError, match=r"`x\.csv`"):
        acep.read_events("x.csv")
    parts, events = batches("x.csv", skip_bad_lines=True, max_skipped=0.6)
    assert pa.concat_tables(parts).column("x").to_pylist() == ["\u00e4", "z"]
    assert events.bad.count == 3


@pytest.mark.parametrize(("name", "content"), [("x.csv", BAD_CSV), ("x.jsonl", BAD_JSON)])
@pytest.mark.parametrize("small", [True, False])
def test_bad_lines_are_counted(name: str, content: str, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not small:
        make_tiny(monkeypatch)
    Path(name).write_text(content)
    cast = {"x": "int"} if name == "x.csv" else {}
    with pytest.raises(DataError) as wrong:
        batches(name, cast=cast)
    assert "3 has" in wrong.value.message or "line 2" in wrong.value.message
    parts, events = batches(name, cast=cast, skip_bad_lines=True, max_skipped=0.67)
    assert pa.concat_tables(parts).column("type").to_pylist() == ["a", "f"]
    assert (events.rows, events.bad.count) == (2, 4)
    assert str(events.bad).startswith("4 bad lines were skipped; the first: `x.")
