"""MATCH_RECOGNIZE on Spark: the rows of one process, types, statements, table functions, and what is refused."""

from __future__ import annotations

import datetime as dt
import math
import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import acep
from acep.errors import AcepError, DataError, QueryError
from acep.pattern.sql.common_tables import common_tables
from acep.spark.clauses import sql_statements
from acep.spark.clauses.row_pattern_worker import whole_partitions
from acep.spark.clauses.row_patterns import plan_for_spark
from acep.spark.clauses.table_functions import call_columns
from acep.spark.columns.types import spark_schema
from tests.thinned import thinned

V_SHAPE = """PARTITION BY k ORDER BY n MEASURES FIRST(x) AS high, LAST(DOWN.x) AS low, count(*) AS size
    PATTERN (STRT DOWN+ UP+) DEFINE DOWN AS x < PREV(x), UP AS x > PREV(x)"""
CLAUSES = {
    "a V": V_SHAPE,
    "keys with nulls and zeros": """PARTITION BY k, f ORDER BY n MEASURES MATCH_NUMBER() AS m, FIRST(n) AS a,
        sum(x * 1.5) AS s, min(at) AS early, LAST(at) - FIRST(at) AS lasting, array_agg(x) AS xs, LAST(part) AS part
        PATTERN (A B+) DEFINE B AS x <> PREV(x)""",
    "a key that is computed": """PARTITION BY upper(k), x % 2 ORDER BY n DESC MEASURES CLASSIFIER() AS label
        ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B+) DEFINE B AS x < PREV(x)""",
    "one partition": """ORDER BY x NULLS FIRST, n DESC MEASURES part.u AS u, FINAL LAST(n) AS stop
        ALL ROWS PER MATCH PATTERN (A B* C+?) DEFINE B AS n > PREV(n), C AS n < PREV(n)""",
    "empty matches": """PARTITION BY k ORDER BY f DESC NULLS LAST, x + 1, n MEASURES count(B.*) AS b
        ALL ROWS PER MATCH SHOW EMPTY MATCHES PATTERN (B*) DEFINE B AS x > 5""",
    "no columns": "MEASURES count(*) AS size, CLASSIFIER() AS label PATTERN (A B{9} | C)",
    "overlapping matches": """PARTITION BY at ORDER BY n MEASURES FIRST(k) AS k, LAST(n) AS n
        AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) DEFINE B AS x > PREV(x)""",
    "aggregates over partitions": """PARTITION BY k ORDER BY n MEASURES COUNT(*) AS size, FIRST(n) AS n PATTERN (A+)
        DEFINE A AS x > avg(x) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)""",
    "dates and times": """PARTITION BY CAST(at AS DATE) ORDER BY n MEASURES LAST(at) + INTERVAL '1' MONTH AS a,
        CAST(FIRST(at) AS DATE) + 3 AS b, array_agg(at::DATE) AS c, date_trunc('quarter', LAST(at)) AS d,
        TO_CHAR(LAST(at), 'YYYY-MM-DD') || '/' || COUNT(*) AS e, MATCH_ROWTIME(at) AS f, COUNT_IF(x > 3) g
        PATTERN (A B*) DEFINE B AS COUNT_IF(x > 3) < 3 AND EXTRACT(ISODOW FROM at) = ISODOW(FIRST(A.at))""",
}


def rows_of(seed: int, size: int = 400) -> pa.Table:
    """Random rows, in no order."""
    rng = random.Random(seed)
    start = dt.datetime(2024, 3, 31, tzinfo=dt.UTC)
    days = [start + dt.timedelta(days=rng.randrange(9)) for _ in range(size)]
    return pa.table(
        {
            "n": pa.array(rng.sample(range(size), size), pa.int32()),
            "k": rng.choices(["a", "B", "b", "ü", "", None], k=size),
            "f": rng.choices([0.0, -0.0, math.nan, 1.5, None], k=size),
            "x": rng.choices([*range(9), None], k=size),
            "at": pa.array(days, pa.timestamp("us", "UTC")),
            "part": [{"u": n % 3, "v": [n]} for n in range(size)],
        }
    )


def lines(table: pa.Table) -> list[str]:
    """The rows of a table as texts, sorted, since Spark's come in no order."""
    return sorted(map(repr, table.to_pylist()))


def with_clause(statement: str) -> str:
    """A statement with the clause that it names."""
    return statement.replace("V_SHAPE", V_SHAPE)


@pytest.mark.parametrize("name", thinned([*CLAUSES], 3))
def test_spark_gives_the_rows_of_one_process(spark: Any, name: str) -> None:
    table = rows_of(seed=len(name))
    result = acep.spark.match_recognize(spark.createDataFrame(table).repartition(3), CLAUSES[name])
    expected = acep.match_recognize(table, CLAUSES[name])
    assert expected.num_rows > 10
    received = result.toArrow()
    assert lines(received) == lines(expected)
    assert received.schema.types == expected.schema.types


@pytest.mark.long
def test_types_that_pass_are_those_of_the_columns(spark: Any) -> None:
    frame = spark.sql(
        "select id n, cast(id as tinyint) small, 1.50BD dec, date'2024-01-02' d, timestamp_ntz'2024-01-02 03:04:05' t, "
        "map('a', id) m, array(named_struct('x', id)) l, binary('x') bin, interval '1' day gap, cast(null as void) z, "
        "cast('x' as char(3)) c, id `a.b``c` from range(4)"
    )
    result = acep.spark.match_recognize(frame, "ORDER BY n ALL ROWS PER MATCH PATTERN (A B)")
    assert [(f.name, f.dataType) for f in result.schema] == [(f.name, f.dataType) for f in frame.schema]
    assert sorted(row.n for row in result.collect()) == [0, 1, 2, 3]
    measured = (
        "ORDER BY n MEASURES LAST(m) AS m, LAST(d) - FIRST(d) AS days, max(dec) AS dec, LAST(t) AS t PATTERN (A B)"
    )
    result = acep.spark.match_recognize(frame, measured)
    assert [f.dataType.simpleString() for f in result.schema] == [
        "map<string,bigint>", "interval day to second", "decimal(3,2)", "timestamp_ntz"]  # fmt: skip
    assert [row.m for row in result.collect()] == [{"a": 1}, {"a": 3}]


def test_a_partition_that_spans_batches_is_matched_as_one() -> None:
    rng = random.Random(4)
    keys = sorted(rng.choices([0.5, 1.5, math.inf], k=300)) + [math.nan, None] * 20
    batches = pa.table({"k": keys, "n": range(340)}).to_batches(max_chunksize=7)
    tables = list(whole_partitions(batches, [0], size=10))
    assert pa.concat_tables(tables).column("n").to_pylist() == list(range(340))
    assert len(tables) > 1
    for earlier, later in pairwise(tables):
        assert not set(earlier["k"].to_pylist()) & set(later["k"].to_pylist()) - {None}


def test_errors_come_before_a_job(spark: Any) -> None:
    frame = spark.sql("select id n, interval '1' year y, map(1, 2) m, 'a' collate UTF8_LCASE c from range(4)")
    for clause, words in (
        ("ORDER BY k PATTERN (A)", "unknown column `k`"),
        ("PARTITION BY m PATTERN (A)", "column `m` is map<int,int>"),
        ("PARTITION BY c PATTERN (A)", "which Spark compares otherwise"),
        ("ORDER BY n ALL ROWS PER MATCH PATTERN (A)", "`y` is interval year, which does not travel to Python"),
        ("ORDER BY n PATTERN (A", "does not end"),
        ("ORDER BY n PATTERN (A)", "no columns"),
    ):
        with pytest.raises((QueryError, DataError), match=words):
            acep.spark.match_recognize(frame, clause)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(QueryError, match="the clause has no ORDER BY"):
        acep.spark.match_recognize(stream, "MEASURES value AS v PATTERN (A)")


def test_errors_of_values_are_found_in_the_failure(spark: Any) -> None:
    result = acep.spark.match_recognize(
        spark.range(4), "ORDER BY id MEASURES id AS i AFTER MATCH SKIP TO FIRST A PATTERN (A B)"
    )
    with pytest.raises(Exception, match="SKIP") as failure:
        result.collect()
    assert isinstance(acep.spark.error_in(failure.value), DataError)


def test_statements(spark: Any) -> None:
    table = rows_of(seed=5)
    spark.createDataFrame(table).createOrReplaceTempView("ticks")
    views = {view.name for view in spark.catalog.listTables()}
    result = acep.spark.sql(with_clause("SELECT * FROM ticks MATCH_RECOGNIZE (V_SHAPE)"))
    expected = acep.match_recognize(table, V_SHAPE)
    assert lines(result.toArrow()) == lines(expected)
    statement = with_clause("""
        WITH late AS (SELECT * FROM ticks WHERE n >= 200),
             vs AS (SELECT * FROM late MATCH_RECOGNIZE (V_SHAPE))
        SELECT vs.k, count(*) AS n, '{k} `acep`' AS text
        FROM vs JOIN (SELECT * FROM late) MATCH_RECOGNIZE (V_SHAPE) AS w ON vs.k = w.k AND w.size >= vs.size
        GROUP BY vs.k ORDER BY vs.k
    """)
    late = acep.match_recognize(table.filter(pc.field("n") >= 200), V_SHAPE).to_pylist()
    pairs = [v["k"] for v in late for w in late if v["k"] is not None and v["k"] == w["k"] and w["size"] >= v["size"]]
    counts = [{"k": k, "n": pairs.count(k), "text": "{k} `acep`"} for k in sorted(set(pairs))]
    assert acep.spark.sql(statement, spark).toArrow().to_pylist() == counts
    nested = with_clause("""SELECT * FROM (SELECT k, low AS n, size AS x FROM ticks MATCH_RECOGNIZE (V_SHAPE))
        MATCH_RECOGNIZE (ORDER BY k, n, x MEASURES count(*) AS size PATTERN (A*))""")
    assert [row["size"] for row in acep.spark.sql(nested).collect()] == [expected.num_rows]
    counted = "SELECT count(*) AS n FROM ticks MATCH_RECOGNIZE (PATTERN (A B))"
    assert [row.n for row in acep.spark.sql(counted).collect()] == [table.num_rows // 2]
    assert {view.name for view in spark.catalog.listTables()} == views


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT * FROM tiks MATCH_RECOGNIZE (PATTERN (A))", "Spark refuses .* `tiks`"),
        ("SELECT y FROM range(3) MATCH_RECOGNIZE (MEASURES count(*) AS x PATTERN (A))", "Spark refuses .* `y`"),
        ("SELECT * FROM range(3) MATCH_RECOGNIZE (MEASURES ids AS x PATTERN (A))", "unknown column `ids`"),
        ("SELECT 1", "there is no MATCH_RECOGNIZE"),
        ("CREATE TEMP VIEW v AS SELECT * FROM range(3) MATCH_RECOGNIZE (PATTERN (A))", "a view cannot have"),
    ],
)
def test_statements_that_are_refused(spark: Any, statement: str, words: str) -> None:
    with pytest.raises(QueryError, match=words) as refusal:
        acep.spark.sql(statement, spark)
    if refusal.value.start is not None:
        assert refusal.value.text == statement
        assert statement[refusal.value.start : refusal.value.end] in (statement, "ids", "CREATE")


@pytest.mark.long
def test_conditions_on_partitions_are_tested_before_the_clause(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.createDataFrame(rows_of(5)).createOrReplaceTempView("filtered")
    clause = f"filtered MATCH_RECOGNIZE ({V_SHAPE}) AS m"
    expected: list[list[str]] = [["`k` = 'a'"], ["`k` IN ('a', 'b') OR `k` IS NULL"], []]
    conditions = ["k = 'a' AND high > 1", "(m.k IN ('a', 'b') OR k IS NULL)", "high > low"]
    filters_of, used = sql_statements._filters_of, list[list[str]]()

    def noted(*arguments: Any) -> list[str]:
        used.append([text.removeprefix("(").removesuffix(")") for text in filters_of(*arguments)])
        return filters_of(*arguments)

    for condition in conditions:
        statement = f"SELECT * FROM {clause} WHERE {condition} ORDER BY k, high, low, size"  # noqa: S608 - ours
        monkeypatch.setattr(sql_statements, "_filters_of", noted)
        filtered = acep.spark.sql(statement, spark).toArrow()
        monkeypatch.setattr(sql_statements, "_filters_of", lambda *_: [])
        assert filtered == acep.spark.sql(statement, spark).toArrow()
        assert filtered.num_rows > 0
    assert used == expected


def test_table_functions(spark: Any) -> None:
    table = rows_of(seed=6)
    spark.createDataFrame(table).repartition(3).createOrReplaceTempView("ticks")
    acep.spark.register_clause("v_shapes", V_SHAPE, "x bigint, k string, n int")
    expected = lines(acep.match_recognize(table, V_SHAPE))
    for call in (
        "SELECT * FROM v_shapes(TABLE(ticks) PARTITION BY pmod(hash(k), 4) ORDER BY n)",
        "SELECT * FROM v_shapes(TABLE(SELECT n, k, x FROM ticks) WITH SINGLE PARTITION)",
    ):
        assert lines(spark.sql(call).toArrow()) == expected
    with pytest.raises(Exception, match="v_shapes") as failure:
        spark.sql("SELECT * FROM v_shapes(TABLE(ticks))").collect()
    error = acep.spark.error_in(failure.value)
    assert isinstance(error, DataError)
    assert "come in several parts" in error.message


def test_tables_of_calls_that_do_not_fit() -> None:
    planned = plan_for_spark(spark_schema(rows_of(seed=1).schema), V_SHAPE)
    types = tuple(planned.travelling.types)
    call = pa.RecordBatch.from_pydict({"K": ["a"], "n": pa.array([1], pa.int32()), "more": [1], "X": [2]})
    chosen = call_columns("f", planned.sent, types, call)
    assert dict(zip(planned.sent.columns, chosen.to_pylist()[0].values(), strict=True)) == {"k": "a", "n": 1, "x": 2}
    with pytest.raises(DataError, match="the table has no column `x`"):
        call_columns("f", planned.sent, types, call.select(["K", "n"]))
    with pytest.raises(DataError, match="column `n` is int64, not int32"):
        call_columns("f", planned.sent, types, pa.RecordBatch.from_pydict({"k": ["a"], "n": [1], "x": [2]}))


def test_table_functions_that_are_refused(spark: Any) -> None:
    for name, clause, columns, words in (
        ("two words", V_SHAPE, spark.range(3), "not a name of a function"),
        ("f", V_SHAPE, spark.range(3), "unknown column `k`"),
        ("f", V_SHAPE, ["k"], "columns= takes"),
    ):
        with pytest.raises(AcepError, match=words):
            acep.spark.register_clause(name, clause, columns)


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ('SELECT * FROM "m"', ""),
        ('WITH a AS (SELECT 1) SELECT * FROM "m"', "WITH a AS (SELECT 1)"),
        ('WITH a AS (SELECT 1), b(x) AS NOT MATERIALIZED (SELECT 2) SELECT (SELECT 1 FROM "m")',
         "WITH a AS (SELECT 1), b(x) AS NOT MATERIALIZED (SELECT 2)"),
        ('WITH a AS (SELECT 1), b AS (SELECT * FROM "m"), c AS (SELECT 3) SELECT 4', "WITH a AS (SELECT 1)"),
        ('WITH a AS (SELECT 1) SELECT * FROM (WITH a AS (SELECT 2) SELECT * FROM "m")', "WITH a AS (SELECT 2)"),
        ('SELECT * FROM (WITH a AS (SELECT 1) SELECT 1) JOIN "m"', ""),
        ('WITH RECURSIVE a AS (SELECT 1) SELECT CAST(x AS TIMESTAMP WITH TIME ZONE) FROM "m"',
         "WITH RECURSIVE a AS (SELECT 1)"),
        ('INSERT INTO t WITH a AS (SELECT 1) SELECT * FROM "m"', "WITH a AS (SELECT 1)"),
    ],
)  # fmt: skip
def test_common_tables_that_are_visible(text: str, tables: str) -> None:
    assert common_tables(text, "m") == tables
