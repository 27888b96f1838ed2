"""One odd value changes the type of a whole column: a warning names it, or the file is refused."""

from __future__ import annotations

import datetime as dt
import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
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
