"""Statements of SQL around clauses: what DuckDB gives becomes types that acep has, or is refused by name."""

# ruff: noqa: S608 - the statements are those of tests

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.statements.statements import explain_statement

pytest.importorskip("duckdb")

TIMES = [dt.datetime(2026, 1, 1, 10), dt.datetime(2026, 1, 1, 12)]
CLAUSE = "MATCH_RECOGNIZE (ORDER BY t MEASURES LAST(t) - FIRST(t) AS lasting PATTERN (a+))"


@pytest.mark.parametrize("form", ["dict", "arrow", "pandas", "polars"])
def test_a_duration_stays_one_in_sql_around_a_clause(form: str) -> None:
    table: Any = pa.table({"t": TIMES})
    rows = table.to_pydict() if form == "dict" else table if form == "arrow" else _frame(form, table)
    result = acep.sql(f"SELECT * FROM ticks {CLAUSE} ORDER BY 1", ticks=rows)
    durations = [*result["lasting"]] if form != "arrow" else result["lasting"].to_pylist()
    assert durations == [dt.timedelta(hours=2)]


def _frame(form: str, table: pa.Table) -> Any:
    if form == "pandas":
        return table.to_pandas()
    pl = pytest.importorskip("polars")
    return pl.from_arrow(table)


def test_a_clause_reads_a_duration_of_another_one() -> None:
    statement = f"""SELECT * FROM (SELECT * FROM ticks {CLAUSE}) MATCH_RECOGNIZE (
        ORDER BY lasting MEASURES FIRST(lasting) AS first PATTERN (a+) DEFINE a AS lasting > INTERVAL '1' HOUR)"""
    assert acep.sql(statement, ticks={"t": TIMES}) == {"first": [dt.timedelta(hours=2)]}


def test_durations_are_exact_or_refused() -> None:
    days = {"d": [dt.timedelta(days=-3, microseconds=1), None, dt.timedelta(days=400)], "t": [1, 2, 3]}
    statement = "SELECT d FROM ticks MATCH_RECOGNIZE (ORDER BY t MEASURES LAST(d) AS d, t AS t PATTERN (a)) ORDER BY t"
    assert acep.sql(statement, ticks=days) == {"d": days["d"]}
    with pytest.raises(acep.DataError, match="`d` has an interval with months"):
        acep.sql(statement.replace("SELECT d", "SELECT d + INTERVAL 1 MONTH AS d"), ticks=days)
    finer = pa.table({"t": [1], "d": pa.array([1_001], pa.duration("ns"))})
    with pytest.raises(acep.DataError, match="`d` has durations finer than microseconds"):
        acep.sql(statement, ticks=finer)


@pytest.mark.parametrize("rows", [{"t": [1]}, pa.table({"t": [1]})])
def test_two_columns_of_one_name_are_refused(rows: Any) -> None:
    statement = "SELECT * FROM a MATCH_RECOGNIZE (ORDER BY t MEASURES t AS t PATTERN (x)) AS m JOIN a AS b ON b.t = m.t"
    with pytest.raises(acep.QueryError, match="two columns of the result are called `t`"):
        acep.sql(statement, a=rows)


@pytest.mark.parametrize("rest", ["; SELECT 2", "; SELECT 2;", ";;SELECT ';'", "; DROP TABLE a"])
def test_a_second_statement_is_refused(rest: str) -> None:
    statement = "SELECT t FROM a MATCH_RECOGNIZE (ORDER BY t MEASURES t AS t PATTERN (x))"
    assert acep.sql(statement + " ; -- the end;", a={"t": [1]}) == {"t": [1]}
    with pytest.raises(acep.QueryError, match="one statement"):
        acep.sql(statement + rest, a={"t": [1]})


ZONED = """
import acep, pyarrow as pa
times = pa.table({"i": [1], "t": pa.array([1750000000], pa.timestamp("s", "UTC"))})
clause = "t MATCH_RECOGNIZE (ORDER BY i MEASURES last(t) AS lt PATTERN (A))"
for rest in ("count(*) AS n FROM {} WHERE lt >= TIMESTAMP '2025-06-15 15:00:00'", "CAST(lt AS VARCHAR) AS text FROM {}",
             "hour(lt) AS hour, lt FROM {}"):
    result = acep.sql("SELECT " + rest.format(clause), t=times)
    print(result.schema, result.to_pylist())
"""


def test_the_zone_of_the_machine_changes_no_row_of_a_statement() -> None:
    outputs = [_run_in_zone(zone, "-c", ZONED) for zone in ("UTC", "America/New_York", "Asia/Kolkata")]
    assert outputs[0] == outputs[1] == outputs[2]
    assert "[{'n': 1}]" in outputs[0]
    assert "timestamp[us, tz=UTC]" in outputs[0]


def test_the_zone_of_the_machine_changes_no_row_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("i,t\n1,2025-06-15T15:06:40Z\n")
    statement = """SELECT CAST(lt AS VARCHAR) AS text, lt FROM t MATCH_RECOGNIZE (
        ORDER BY i MEASURES last(t) AS lt PATTERN (A)) WHERE lt >= TIMESTAMP '2025-06-15 15:00:00'"""
    arguments = ("-m", "acep", "sql", statement, f"t={tmp_path / 't.csv'}")
    outputs = [_run_in_zone(zone, *arguments) for zone in ("UTC", "America/New_York")]
    assert outputs[0] == outputs[1] == '{"text": "2025-06-15 15:06:40+00", "lt": "2025-06-15T15:06:40Z"}\n'


def _run_in_zone(zone: str, *arguments: str) -> str:
    environment = os.environ | {"TZ": zone}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, check=True, capture_output=True, text=True
    ).stdout


COUNTS = "MATCH_RECOGNIZE (ORDER BY i MEASURES count(*) AS n, LAST(i) AS i PATTERN (A))"
NO_TYPE_OF_DUCKDB = {
    "decimal": pa.array([Decimal(10) ** 50, Decimal(1)], pa.decimal256(60, 2)),
    "places": pa.array([Decimal("1.5"), Decimal(1)], pa.decimal256(76, 50)),
    "union": pa.UnionArray.from_dense(pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32()), [pa.array([1, 2])]),
}


@pytest.mark.parametrize("name", [*NO_TYPE_OF_DUCKDB])
def test_a_column_that_duckdb_does_not_hold_matters_where_it_is_used(name: str) -> None:
    table = pa.table({"i": [1, 2], "X": NO_TYPE_OF_DUCKDB[name]})
    source = f"t {COUNTS} AS m JOIN t USING (i) WHERE n > 0"
    for statement in (f"SELECT n FROM {source}", f"SELECT n FROM (SELECT DISTINCT * FROM t) {COUNTS} WHERE i < 3"):
        assert acep.sql(statement, t=table).to_pydict() == {"n": [1, 1]}
    other = f"SELECT u.x FROM t {COUNTS} AS m JOIN t USING (i) JOIN u ON u.y = m.i"
    assert acep.sql(other, t=table, u=pa.table({"y": [1, 2], "x": [5, 6]})).to_pydict() == {"x": [5, 6]}
    for used in (f"SELECT * FROM {source}", f"SELECT x FROM {source}", f"SELECT n FROM {source} AND x > 1"):
        with pytest.raises(acep.DataError, match=r"column `X` is .*, which DuckDB does not have") as error:
            acep.sql(used, t=table)
        assert error.value.hint is not None
    of_clause = "SELECT * FROM (SELECT * FROM t) MATCH_RECOGNIZE (ORDER BY i MEASURES LAST(X) AS y PATTERN (A))"
    with pytest.raises(acep.AcepError, match=r"column `X` is .*, which DuckDB does not have"):
        acep.sql(of_clause, t=table)


def test_types_that_duckdb_does_not_have_become_wider_or_narrower_without_loss() -> None:
    columns = {
        "h": pa.array([1.5, None], pa.float16()),
        "hs": pa.array([[1.5], None], pa.list_(pa.float16())),
        "d": pa.array([Decimal("1.50"), None], pa.decimal256(60, 2)),
    }
    statement = f"SELECT h, hs, d FROM t {COUNTS} AS m JOIN t USING (i) WHERE d IS NULL OR h + d > 2 ORDER BY i"
    result = acep.sql(statement, t=pa.table({"i": [1, 2], **columns}))
    assert result.schema.types == [pa.float32(), pa.list_(pa.field("l", pa.float32())), pa.decimal128(38, 2)]
    assert result.to_pydict() == {name: column.to_pylist() for name, column in columns.items()}


COUNT = "MATCH_RECOGNIZE (ORDER BY i MEASURES LAST(i) AS i PATTERN (A))"


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("CREATE TABLE z AS SELECT * FROM t {}", "CREATE"),
        ("/* new */ insert INTO t SELECT * FROM t {}", "insert"),
        ("COPY (SELECT * FROM t {}) TO 'z.csv'", "COPY"),
        ("DELETE FROM t USING t {} AS m WHERE t.i = m.i", "DELETE"),
        ("WITH m AS (SELECT * FROM t {}) INSERT INTO t SELECT * FROM m", "INSERT"),
        ("WITH m AS (SELECT * FROM t {}), n AS (SELECT 1) DELETE FROM t USING m WHERE t.i = m.i", "DELETE"),
    ],
)
def test_a_statement_that_is_no_query_is_refused(statement: str, word: str) -> None:
    text = statement.format(COUNT)
    for run in (acep.sql, explain_statement):
        with pytest.raises(acep.QueryError, match=f"`{word}` is no query") as error:
            run(text, t={"i": [1, 2]})
        assert (error.value.text, error.value.start) == (text, text.index(word))


@pytest.mark.parametrize(
    "statement",
    [
        "(SELECT i FROM t {})",
        "FROM t {} WHERE i > 0",
        "WITH m AS (SELECT * FROM t {}), insert AS (SELECT 1 AS delete) SELECT i FROM m, insert",
        "TABLE t UNION ALL SELECT * FROM t {} WHERE i > 5",
    ],
)
def test_queries_of_each_form_run(statement: str) -> None:
    assert acep.sql(statement.format(COUNT), t={"i": [1, 2]}) == {"i": [1, 2]}


def _refusal(statement: str, **tables: Any) -> str:
    with pytest.raises(acep.QueryError) as error:
        acep.sql(statement, **tables)
    return str(error.value)


PLACES = [
    # A parenthesis too many ends the clause.
    ("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY i PATTERN (A) DEFINE A AS i > (1)) AND i < 5)", "AND", "syntax error"),
    ("SELECT 'é' AS é FROM t {}\n  WHERE i IN (1,, 2)", ", 2", "syntax error"),
    ("SELECT i FROM t {} AS m WHERE m.j > 1", "j", "`t MATCH_RECOGNIZE (...)`|`?m`?"),
    ("SELECT jj FROM t {}", "jj", "jj"),
    ("SELECT floot(i) FROM t {}", "floot", "floot"),
    ("SELECT * FROM t {} AS m JOIN\n ticks ON ticks.i = m.i", "ticks", "unknown table `ticks`"),
    ("WITH a AS (SELECT * FROM tick) SELECT * FROM a {}", "tick", "unknown table `tick`"),
    ("WITH a AS (SELECT (1 + ) AS x FROM t) SELECT * FROM a {}", ") AS x", "syntax error"),
    ("SELECT * FROM (SELECT * FROM t {} WHERE kk > 1) {}", "kk", "kk"),
    ("SELECT * FROM (SELECT * FROM t {} WHERE > 1) {}", "> 1", "syntax error"),
    ("SELECT * FROM (SELECT * FROM t {}) {} WHERE > 1", "> 1", "syntax error"),
    ("SELECT * FROM (SELECT * FROM t {}) AS m JOIN x {} ON true", "x MATCH", "unknown table `x`"),
    ("SELECT CAST('a' AS INTEGER) FROM t {} WHERE i > 0", "CAST", "Could not convert"),
]


@pytest.mark.parametrize(("form", "word", "message"), PLACES)
def test_an_error_of_duckdb_has_its_place_in_the_statement(form: str, word: str, message: str) -> None:
    text = form.replace("{}", COUNT)
    with pytest.raises(acep.QueryError, match=message) as error:
        acep.sql(text, t={"i": [1, 2]})
    assert "acep match" not in str(error.value)
    assert error.value.text == text
    assert error.value.start == text.index(word)


def test_an_error_of_duckdb_says_what_is_known() -> None:
    text = f"SELECT prise FROM (SELECT i AS price FROM ticks {COUNT})"
    assert _refusal(text, ticks={"i": [1]}).splitlines()[-1] == "hint: did you mean `price`?"
    text = f"SELECT * FROM tickz AS t JOIN ticks {COUNT} AS m ON true"
    assert _refusal(text, ticks={"i": [1]}).splitlines() == [
        "unknown table `tickz` [query_name] (line 1, column 15)",
        "  " + text,
        "                " + "^^^^^",
        "hint: did you mean `ticks`?",
    ]


@pytest.mark.parametrize("alias", ["", " AS m", " m"])
def test_a_clause_directly_behind_another_one_is_refused(alias: str) -> None:
    text = f"SELECT * FROM ticks {COUNT}{alias} {COUNT}"
    lines = _refusal(text, ticks={"i": [1]}).splitlines()
    column = text.rindex("MATCH_RECOGNIZE") + 1
    assert lines[0] == f"MATCH_RECOGNIZE cannot follow another one directly [query_syntax] (line 1, column {column})"
    assert lines[-1].startswith("hint: put the first one in a subquery")
