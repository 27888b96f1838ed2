"""One odd value changes the type of a whole column: a warning names it, or the file is refused."""

from __future__ import annotations

import datetime as dt
import json
import re
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.errors import DataError, DataWarning, QueryError
from tests.events.test_streams import make_tiny

ORDERED = "PATTERN SEQ(a x, b y) WHERE x.exp < y.exp WITHIN 9"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=[True, False], ids=["whole", "in blocks"])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        make_tiny(monkeypatch)


@pytest.fixture(params=[1500, 60], ids=["whole", "in blocks"])
def n_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A large number of rows, and one of many blocks where these are tiny."""
    n_rows: int = request.param
    if n_rows == 60:
        make_tiny(monkeypatch)
    return n_rows


def write(form: str, values: list[Any]) -> str:
    name = f"x.{form}"
    if form == "jsonl":
        rows = [{"ts": i, "type": "ab"[i % 2], "exp": value} for i, value in enumerate(values)]
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        sign = "\t" if form == "tsv" else ","
        rows_of_text = [sign.join((str(i), "ab"[i % 2], "" if v is None else str(v))) for i, v in enumerate(values)]
        Path(name).write_text("\n".join([sign.join(("ts", "type", "exp")), *rows_of_text]) + "\n")
    return name


def remarks(read: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read()
    return [str(warning.message) for warning in caught if issubclass(warning.category, DataWarning)]


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_a_text_among_times(form: str) -> None:
    """The report's: a comparison of times with zones becomes one of texts by one more row."""
    times = ["2024-01-01T10:00:00+02:00", "2024-01-01T09:00:00Z"]
    assert len(acep.match(write(form, times), ORDERED)) == 1
    name = write(form, [*times, "never"])
    (said,) = remarks(lambda: acep.match(name, ORDERED))
    line = 3 if form == "jsonl" else 4
    assert said == (
        f"`{name}`, line {line}: `exp` is 'never', and 2 values of the column are times with a zone; so all of them are"
        ' read as texts, and compared as such; cast={"exp": "string"} says that they are texts, another cast with'
        " skip_bad_lines=True leaves such rows out"
    )
    assert len(remarks(lambda: acep.read_events(name, ["ts", "type", "exp"]))) == 1
    assert remarks(lambda: acep.match(name, "PATTERN SEQ(a x, b y) WITHIN 9")) == []  # the column is not used
    assert remarks(lambda: acep.read_events(name, cast={"exp": "string"})) == []
    with pytest.raises(DataError, match=f"line {line}: `exp` is no timestamp: 'never'"):
        acep.read_events(name, cast={"exp": "timestamp"})
    table = acep.read_events(name, cast={"exp": "timestamp"}, skip_bad_lines=True, max_skipped=0.5)
    assert table.column("exp").to_pylist()[0] == dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("at", [0, 17, 39])
@pytest.mark.parametrize(
    ("usual", "odd", "sort"),
    [
        ("7", "seven", "numbers"),
        ("1.5", "n/a.", "numbers"),
        ("12", "007", "numbers"),
        ("12", "99999999999999999999", "numbers"),
        ("2024-01-31", "tomorrow", "times"),
        ("2024-01-31T10:00:00", "2024-01-31T10:00:00Z", "times"),
        ("2024-01-31 10:00:00.5", "10:00", "times"),
        ("true", "yes", "truth values"),
        ("10:00:00", "noon", "times of day"),
        ("1", "2024-01-31", "numbers"),
    ],
)
def test_each_odd_cell_of_csv_is_named(usual: str, odd: str, sort: str, at: int) -> None:
    values = [usual] * 40
    values[at] = odd
    name = write("csv", values)
    table: list[pa.Table] = []
    (said,) = remarks(lambda: table.append(acep.read_events(name)))
    assert said.startswith(f"`x.csv`, line {at + 2}: `exp` is {odd!r}, and 39 values of the column are {sort};")
    assert table[0].column("exp").to_pylist() == values


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", "7", "c"],  # most are texts
        ["01234", "00007", "12345"],  # most are digits that are no plain numbers
        ["7", None, "nan", "8"],  # these are null
        ["2024-01-31", "2024-01-31T10:00:00"],  # both are times
        ["1", "1.5"],  # both are numbers
        [None, None],
        ["x"] * 3,
        ["A", "1", "A", "A", "1"],  # two kinds, not a text for no value
    ],
)
def test_what_is_no_odd_value(values: list[Any]) -> None:
    name = write("csv", values)
    assert remarks(lambda: acep.read_events(name)) == []


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_a_text_that_stands_for_no_value_in_most_rows(form: str) -> None:
    """Most values are one text: it stands for none, and the column is not one of texts."""
    values = [f"2024-01-{i:02}" if i % 3 == 0 else "-" for i in range(1, 31)]
    (said,) = remarks(lambda: acep.match(write(form, values), ORDERED))
    assert f"line {1 if form == 'jsonl' else 2}: `exp` is '-', and 10 values of the column are times;" in said


@pytest.mark.usefixtures("_blocks")
def test_numbers_with_a_comma_are_named() -> None:
    name = write("tsv", ["0,5", "1,5", "10,5"])
    query = "PATTERN SEQ(a x, b y) WHERE x.exp < y.exp WITHIN 9"
    (said,) = remarks(lambda: acep.match(name, query))
    assert said.startswith("`x.tsv`, line 2: `exp` is '0,5'; so all of them are read as texts")
    assert 'decimal="," that a comma stands before decimals' in said
    assert remarks(lambda: acep.read_events(name, decimal=",")) == []
    (said,) = remarks(lambda: acep.read_events(write("tsv", ["0,5", "1,5", "7", "1.234"]), decimal=","))
    assert said.startswith("`x.tsv`, line 5: `exp` is '1.234', and 3 values of the column are numbers;")


def test_an_odd_value_in_another_file() -> None:
    Path("1.csv").write_text("ts,type,exp\n1,a,5\n2,b,6\n")
    Path("2.csv").write_text("ts,type,exp\n3,a,7\n4,b,none\n")
    (said,) = remarks(lambda: acep.match(["1.csv", "2.csv"], ORDERED))
    assert said.startswith("`2.csv`, line 3: `exp` is 'none', and 3 values")


def test_a_key_of_digits_is_warned_of_too() -> None:
    name = write("csv", ["123", "124", "0123", "123"])
    (said,) = remarks(lambda: acep.match(name, "PATTERN SEQ(a x, b y) WHERE [exp] WITHIN 9"))
    assert said.startswith("`x.csv`, line 4: `exp` is '0123', and 3 values of the column are numbers;")


@pytest.mark.filterwarnings("always::acep.errors.DataWarning")
def test_the_command_line_warns(capsys: pytest.CaptureFixture[str]) -> None:
    name = write("csv", ["2024-01-01", "2024-01-02", "never"])
    for command in (["match", ORDERED, name, "--count"], ["lint", ORDERED, name], ["why", ORDERED, name]):
        assert main(command) == 0
        assert "acep: warning: `x.csv`, line 4: `exp` is 'never'" in capsys.readouterr().err
    Path("in").mkdir()
    Path(name).rename("in/x.csv")
    assert main(["follow", ORDERED, "in", "--state", "state", "--output", "out", "--once"]) == 0
    err = capsys.readouterr().err
    assert "--cast exp=string says that they are texts" in err
    assert err.count("warning") == 1


def test_the_events_of_a_match_are_read_without_more_warnings() -> None:
    name = write("csv", ["2024-01-01", "2024-01-02", "never"])
    with pytest.warns(DataWarning):
        found = acep.match(name, ORDERED)
    assert remarks(lambda: found.events(found[0])) == []


@pytest.mark.parametrize("held", [["7", 8], [dt.date(2024, 1, 1), "never"], [True, 2]])
def test_a_table_has_no_odd_values(held: list[Any]) -> None:
    """Nothing is inferred there: a column has one type, or is refused."""
    with pytest.raises(QueryError, match="column `exp` mixes"):
        acep.match({"ts": [1, 2], "type": ["a", "b"], "exp": held}, ORDERED)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_number_to_which_no_double_is_near_is_refused(form: str) -> None:
    """`1e400` and a longer exponent would be one key, infinity."""
    for numbers in (["1e400", "1e999999"], ["-1e309", "0.5"], ["0.5", "1e-400"], ["1E+400", "1"]):
        if form == "csv":
            Path("x.csv").write_text("ts,type,k\n" + "".join(f"{i},a,{text}\n" for i, text in enumerate(numbers)))
        else:
            lines = [f'{{"ts": {i}, "type": "a", "k": {text}}}\n' for i, text in enumerate(numbers)]
            Path("x.jsonl").write_text("".join(lines))
        odd = next(text for text in numbers if "e" in text.lower())
        for cast in (None, {"k": "float"}):
            with pytest.raises(
                DataError, match=r"`k` is (no float: '?)?-?[01.]*[15]?[eE]|no double is near it"
            ) as wrong:
                acep.read_events(f"x.{form}", cast=cast)
            assert "line" in wrong.value.message
        with pytest.raises(DataError):
            acep.match(f"x.{form}", "PATTERN SEQ(a x, a y) WHERE [k]")
        assert odd in acep.read_events(f"x.{form}", cast={"k": "string"}).column("k").to_pylist()


def test_an_infinite_number_is_written_as_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.csv").write_text("ts,type,k\n1,a,inf\n2,b,inf\n3,a,-inf\n4,b,-inf\n")
    assert main(["match", "PATTERN SEQ(a x, b y) WHERE [k] RETURN y.k AS k", "x.csv"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["key"], line["values"]) for line in lines] == [
        ({"k": "Infinity"}, {"k": "Infinity"}),
        ({"k": "-Infinity"}, {"k": "-Infinity"}),
    ]


# The year 0, which is no year ---------------------------------------------------------------------

YEARS_0 = [
    "0000-01-01",
    "0000-12-31T23:59:59",
    "0000-06-01 10:00:00.5",
    "0000-12-31T23:30:00-01:00",
    "0000-01-01T00:00Z",
]


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("odd", YEARS_0)
def test_a_time_of_the_year_0_is_an_odd_text(form: str, odd: str) -> None:
    usual = ["0001-01-01T00:00:00", "2024-01-01T00:00:00"] if odd[-1] != "Z" and odd[-6:-5] != "-" else []
    usual = usual if "T" in odd or " " in odd else ["0001-01-01", "2024-01-01"]
    usual = usual or ["0001-01-01T00:00:00Z", "2024-01-01T00:00:00Z"]
    assert pa.types.is_temporal(acep.read_events(write(form, usual)).schema.field("exp").type)
    name = write(form, [*usual, odd])
    (said,) = remarks(lambda: acep.read_events(name))
    assert said.startswith(
        f"`{name}`, line {3 if form == 'jsonl' else 4}: `exp` is {odd!r}, and 2 values of the column"
    )


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("cast", ["date", "timestamp", "timestamptz", "timestamp(ns)"])
@pytest.mark.parametrize("odd", YEARS_0)
def test_a_cast_to_a_time_refuses_the_year_0_with_its_line(form: str, cast: str, odd: str) -> None:
    name = write(form, [None, odd])
    line = 2 if form == "jsonl" else 3
    with pytest.raises(DataError, match=re.escape(f"line {line}: `exp` is no {cast}: {odd!r}")):
        acep.read_events(name, cast={"exp": cast})
    with pytest.raises(
        DataError, match=re.escape(f"`exp` is {odd!r} in row 0 (rows count from 0), which is no {cast}")
    ):
        acep.Matcher(ORDERED, cast={"exp": cast}).push({"ts": [1], "type": ["a"], "exp": [odd]})


def test_the_year_0_in_the_time_column_is_refused() -> None:
    Path("x.csv").write_text("ts,type\n0001-01-01,a\n0000-12-31,b\n0001-01-02,b\n")
    with pytest.raises(DataError, match="line 3: `ts` is not a time: '0000-12-31'"):
        acep.read_events("x.csv")


# Cells are quoted as they are written -------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "cast", "message"),
    [
        (["0,5"], "int", "line 2: `x` is no int: '0,5'"),
        (["1,5", "0,555"], "decimal(9,2)", "line 3: `x` is no decimal(9,2): '0,555'"),
        (["1.234"], "float", "line 2: `x` is no float: '1.234'"),
        (["1,5", "a.b,c"], "float", "line 3: `x` is no float: 'a.b,c'"),
        (["0,1234567890123456789"], None, "line 2: `x` is 0,1234567890123456789, and a double tells"),
        (["1,5e400"], None, "line 2: `x` is 1,5e400, and no double is near it"),
        (["1,5", "9007199254740993"], None, "line 3: `x` is 9007199254740993, an integer that no float"),
    ],
)
def test_a_number_with_a_decimal_comma_is_quoted_as_it_is_written(
    cells: list[str], cast: str | None, message: str
) -> None:
    Path("x.csv").write_text("ts;type;x\n" + "".join(f"{i};a;{cell}\n" for i, cell in enumerate(cells)))
    with pytest.raises(DataError, match=re.escape(message)):
        acep.read_events("x.csv", delimiter=";", decimal=",", cast=None if cast is None else {"x": cast})


@pytest.mark.parametrize("role", ["ts", "seq", "id"])
def test_a_role_with_a_decimal_comma_is_quoted_as_it_is_written(role: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = {"ts": "ts", "seq": "n", "id": "n"}[role]
    Path("x.csv").write_text(f"{name};type;{'ts' if name == 'n' else 'x'}\n1,5;a;1\n")
    options = [] if role == "ts" else [f"--{role}", "n"]
    assert main(["match", "re:a", "x.csv", "--within", "3", "--delimiter", ";", "--decimal", ",", *options]) == 2
    assert f"line 2: `{name}` is '1,5', which is not written as an integer" in capsys.readouterr().err


@pytest.mark.parametrize("cast", ["timestamp(ns)", "float", "decimal(9,2)", "bool"])
def test_a_time_beyond_those_of_python_is_quoted(cast: str) -> None:
    far = pa.array([253_402_300_800 * 10**6], pa.timestamp("us", "UTC"))
    table = pa.table({"ts": [1], "type": ["a"], "x": far})
    pq.write_table(table, "x.parquet")
    with pytest.raises(
        DataError, match=re.escape(f"row 0 (rows count from 0): `x` is no {cast}: 10000-01-01 00:00:00Z")
    ):
        acep.read_events("x.parquet", cast={"x": cast})
    with pytest.raises(DataError, match="`x` is 10000-01-01 00:00:00Z in row 0"):
        acep.Matcher("PATTERN SEQ(a p) WHERE p.x IS NOT NULL", cast={"x": cast}).push(table)


def test_a_null_beside_a_time_beyond_those_of_python_is_named() -> None:
    pq.write_table(pa.table({"ts": pa.array([253_402_300_800, None], pa.timestamp("s"))}), "x.parquet")
    with pytest.raises(DataError, match=r"row 1 .*: `ts` is null"):
        acep.read_events("x.parquet", type=None)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_times_of_two_kinds_are_refused_with_what_helps(form: str) -> None:
    """A time column cannot be one of texts."""
    name = write(form, ["2024-01-01T00:00:00Z", "2024-01-01T00:00:01"])
    with pytest.raises(DataError, match="`exp` has times with a zone and times without one") as refused:
        acep.read_events(name, cast={"exp": "timestamp"}, ts="exp")
    assert refused.value.hint == "give all of them a zone, or none"
    with pytest.raises(DataError, match="`exp` has times with a zone and times without one") as refused:
        acep.read_events(name, cast={"exp": "timestamp"})
    assert refused.value.hint == 'give all of them a zone, or none; cast={"exp": "string"} shows them as they are'
    assert acep.read_events(name, cast={"exp": "string"}).num_rows == 2


# Times, orders and ids of JSON with decimals ------------------------------------------------------


@pytest.mark.parametrize("role", ["ts", "seq", "id"])
@pytest.mark.parametrize(("name", "before"), [("n", "{"), ("d.n", '{"d": {')])
@pytest.mark.parametrize("odd", ["2.5", "1e3", "7.0"])
def test_decimals_in_a_role_of_json_are_named_by_line(role: str, name: str, before: str, odd: str, n_rows: int) -> None:
    def line(value: object) -> str:
        return f'{before}"n": {value}{"}" * name.count(".")}, "ts": 1, "type": "a"}}\n'

    Path("x.jsonl").write_text(line(1) * n_rows + line(odd) + line(3))
    message = f"line {n_rows + 1}: `{name}` is {odd}, which is not written as an integer"
    with pytest.raises(DataError, match=re.escape(message)):
        acep.match("x.jsonl", "PATTERN SEQ(a p) WITHIN 3", **{role: name})


def test_hints_for_times_of_json_name_no_cast_to_texts() -> None:
    for values in ([1, "2024-01-01"], [2**64, 3]):
        Path("x.jsonl").write_text("".join(json.dumps({"ts": value, "type": "a"}) + "\n" for value in values))
        with pytest.raises(DataError) as refused:
            acep.match("x.jsonl", "PATTERN SEQ(a p) WITHIN 3")
        assert "string" not in str(refused.value.hint)


@pytest.mark.parametrize("column", ["ts", "x"])
@pytest.mark.parametrize("odd", ["2024-01-01T00:00:30Z", "2024-01-01T00:00:30"])
def test_no_cast_is_proposed_for_times_with_and_without_a_zone(column: str, odd: str) -> None:
    usual = "2024-01-01T00:00:{:02}" + ("" if odd.endswith("Z") else "Z")
    times = [usual.format(second) for second in range(30)] + [odd]
    lines = [time if column == "ts" else f"{row},{time}" for row, time in enumerate(times)]
    Path("x.csv").write_text("\n".join(["ts" if column == "ts" else "ts,x", *lines, ""]))
    if column == "ts":
        with pytest.raises(DataError, match="line 32: `ts` is not a time") as refused:
            acep.read_events("x.csv", type=None)
        hint = refused.value.hint or ""
    else:
        with pytest.warns(DataWarning, match="line 32: `x` is") as warned:
            acep.read_events("x.csv", type=None)
        hint = str(warned[0].message)
        assert "else write all or none with a zone" in hint
    assert "skip_bad_lines" not in hint
