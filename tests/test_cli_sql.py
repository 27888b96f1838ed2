"""`acep sql` runs statements over files, and says what is wrong in one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from acep.cli import main

CLAUSE = """(ORDER BY day MEASURES FIRST(day) AS start, LAST(day) AS stop
    PATTERN (a DOWN) DEFINE DOWN AS price < PREV(price))"""
STATEMENT = f"SELECT * FROM ticks MATCH_RECOGNIZE {CLAUSE}"  # noqa: S608 - the statement of a test


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ticks.csv").write_text("day,price\n1,10\n2,8\n3,9\n4,7\n")
    Path("ticks.jsonl").write_text('{"day": 1, "price": 3}\n{"day": 2, "price": 2}\n')
    Path("statement.sql").write_text(STATEMENT)
    Path("empty.sql").write_text("")


def test_a_statement_in_a_file_and_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    for statement in ("statement.sql", STATEMENT):
        assert main(["sql", statement, "ticks=ticks.csv"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert rows == [{"start": 1, "stop": 2}, {"start": 3, "stop": 4}]


def test_the_rows_go_to_files_of_each_format() -> None:
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        assert main(["sql", STATEMENT, "ticks=ticks.csv", "--output", name, "--limit", "1"]) == 0
    assert Path("out.csv").read_text() == "start,stop\n1,2\n"
    assert json.loads(Path("out.jsonl").read_text()) == {"start": 1, "stop": 2}
    assert pq.read_table("out.parquet").to_pydict() == {"start": [1], "stop": [2]}


def test_two_tables_and_sql_around_the_clause(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    statement = f"SELECT m.start, o.price FROM ticks MATCH_RECOGNIZE {CLAUSE} AS m JOIN o ON o.day = m.start"  # noqa: S608 - the statement of a test
    assert main(["sql", statement, "ticks=ticks.csv", "o=ticks.jsonl"]) == 0
    assert json.loads(capsys.readouterr().out) == {"start": 1, "price": 3}


def test_what_becomes_of_a_clause(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", STATEMENT, "ticks=ticks.csv", "--explain"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("MATCH_RECOGNIZE over ticks\norder: day\n")
    assert "DOWN, of each row at once: price, PREV(price)\n" in output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["statement.sql", "ticks"], "'ticks' names no table"),
        (["statement.sql", "ticks=ticks.csv", "ticks=ticks.jsonl"], "two tables `ticks`"),
        (["statement.sql", "tick=ticks.csv"], "unknown table `ticks`"),
        (["statement.sql", "ticks=tick.csv"], "there is no file `tick.csv`"),
        (["other.sql", "ticks=ticks.csv"], "`other.sql` cannot be read"),
        (["", "ticks=ticks.csv"], "the statement is empty"),
        ([" \n", "ticks=ticks.csv"], "the statement is empty"),
        (["empty.sql", "ticks=ticks.csv"], "the statement is empty"),
        ([".", "ticks=ticks.csv"], "`.` cannot be read: Is a directory"),
        (["statement.sql", "ticks=ticks.csv", "--explain", "--limit", "3"], "--explain gives no rows"),
        (["SELECT 1 FROM ticks", "ticks=ticks.csv"], "no MATCH_RECOGNIZE"),
        (["statement.sql", "ticks=ticks.csv", "--cast", "price=string", "--output", "out.xml"], "no format of output"),
    ],
)
def test_a_mistake_is_one_message(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("acep: ")
    assert complaint in output.err


@pytest.mark.parametrize(
    "command", [["sql", "statement.sql", "ticks=ticks.csv"], ["match", "PATTERN SEQ(a x)", "ticks.csv"]]
)
def test_a_negative_limit_is_called_so(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*command, "--limit=-1"])
    assert "'-1' is below 0" in capsys.readouterr().err


def test_lint_of_a_statement(capsys: pytest.CaptureFixture[str]) -> None:
    text = "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY day MEASURES day AS d PATTERN (A+) DEFINE A AS price = NULL)"
    Path("odd.sql").write_text(text)
    assert main(["lint", "odd.sql", "--strict", "--json", "found.json"]) == 1
    assert "a comparison with NULL is never true [null_compared] (line 1, column 94)" in capsys.readouterr().out
    assert [finding["code"] for finding in json.loads(Path("found.json").read_text())] == [
        "null_compared",
        "partition_missing",
    ]
    assert main(["lint", "statement.sql", "ticks=ticks.csv"]) == 0
    assert capsys.readouterr().out.endswith("4 events: 1 finding\n")
    assert main(["lint", "PATTERN SEQ(a x)"]) != 0
    assert "needs the events" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["match", "explain"])
def test_commands_for_queries_say_what_runs_a_clause(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "statement.sql", *(["ticks.csv"] if command == "match" else [])]) == 2
    assert "hint: acep sql runs it" in capsys.readouterr().err


def test_options_of_queries_are_refused_where_a_clause_is_followed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("clause.sql").write_text("ORDER BY day MEASURES count(*) AS n PATTERN (A+)")
    places = ["in", "--state", "state", "--output", "out", "--once"]
    Path("in").mkdir()
    for option in (["--type", "kind"], ["--speed", "3"], ["--errors", "1"]):
        assert main(["follow", "clause.sql", *places, *option]) == 2
        assert f"{option[0]} is not for MATCH_RECOGNIZE" in capsys.readouterr().err


NAMES_OF_MATCHES = ("key", "values", "bindings", "error", "best", "start", "bundle", "a.b")


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("name", NAMES_OF_MATCHES)
def test_a_measure_may_have_the_name_of_a_part_of_matches(name: str, form: str) -> None:
    clause = f'MATCH_RECOGNIZE (ORDER BY day MEASURES CLASSIFIER() AS "{name}" PATTERN (a) DEFINE a AS day = 1)'
    statement = f"SELECT * FROM ticks {clause}"  # noqa: S608 - the statement of a test
    assert main(["sql", statement, "ticks=ticks.csv", "--output", f"out.{form}"]) == 0
    assert _rows_of_file(f"out.{form}") == [{name: "A"}]
    Path("events").mkdir()
    Path("events/ticks.csv").write_text(Path("ticks.csv").read_text())
    arguments = ["--state", "state", "--output", "results", "--output-format", form, "--once", "--end"]
    assert main(["follow", clause, "events", *arguments]) == 0
    (path,) = Path("results").iterdir()
    assert _rows_of_file(str(path)) == [{name: "A"}]


def _rows_of_file(path: str) -> list[dict[str, object]]:
    if path.endswith(".parquet"):
        return pq.read_table(path).to_pylist()
    text = Path(path).read_text()
    return [json.loads(text)] if path.endswith(".jsonl") else [*csv.DictReader(text.splitlines())]


def test_lists_are_json_lists(capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.csv").write_text("ts,word,amount\n2026-01-01T10:00:00Z,it's,1.50\n2026-01-01T10:00:01Z,,2.25\n")
    statement = """SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES array_agg(word) AS words,
        array_agg(amount) AS amounts, array_agg(ts) AS times, array_agg(amount > 2) AS signs PATTERN (a+))"""
    arguments = ["sql", statement, "t=texts.csv", "--cast", "amount=decimal(9,2)"]
    assert main(arguments) == 0
    lists = {"words": ["it's", None], "amounts": ["1.50", "2.25"],
             "times": ["2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z"], "signs": [False, True]}  # fmt: skip
    assert json.loads(capsys.readouterr().out) == lists
    assert main([*arguments, "--output", "out.csv"]) == 0
    (row,) = csv.DictReader(Path("out.csv").read_text().splitlines())
    assert {name: json.loads(text) for name, text in row.items()} == lists


@pytest.mark.parametrize("name", ["ticks.csv", "./ticks.csv", "link.csv", "hard.csv"])
def test_no_input_is_overwritten(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("link.csv").symlink_to("ticks.csv")
    Path("hard.csv").hardlink_to("ticks.csv")
    text = Path("ticks.csv").read_text()
    query = "PATTERN SEQ(any a, any b) WITHIN 5"
    tables = ["ticks=ticks.csv", "o=ticks.jsonl"]
    commands = [
        ["sql", STATEMENT, *tables, "--output", name],
        ["match", query, "ticks.csv", "--ts", "day", "--output", name],
        ["match", query, "tick*.csv", "--ts", "day", "--output", name],
        ["replay", query, "ticks.csv", "--ts", "day", "--output", name],
    ]
    for command in commands:
        assert main(command) == 2
        error = capsys.readouterr().err
        assert f"`{name}` is read as events, and would be overwritten" in error
        assert Path("ticks.csv").read_text() == text


def test_no_file_of_a_folder_of_events_is_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("events").mkdir()
    Path("events/a.csv").write_text(Path("ticks.csv").read_text())
    query = "PATTERN SEQ(any a, any b) WITHIN 5"
    assert main(["match", query, "events", "--ts", "day", "--output", "events/a.csv"]) == 2
    assert "is read as events, and would be overwritten" in capsys.readouterr().err
    assert main(["match", query, "events", "--ts", "day", "--output", "events/b.jsonl"]) == 0
