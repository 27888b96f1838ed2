"""No query can use the events that Spark leaves out: random conditions over extreme values, in one pass of Spark."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
import acep.spark
from acep.events.tables import InputSchema
from acep.overload.needed_events import uses_of
from acep.plan.compile import compile_query
from acep.spark.columns.fields import CHAR_KEY, with_fields
from acep.spark.columns.needed_filter import MAX_COMPARISONS, filter_column
from acep.spark.job import make_spark_job
from acep.spark.metrics import report_of
from tests.case_counts import CaseCounts

pytestmark = pytest.mark.long

INF, NAN = float("inf"), float("nan")
INTEGERS = [0, 1, -1, 2, 127, -128]
LONGS = [*INTEGERS, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, NAN, 1.0, 1.5, 0.10000000149011612, INF, -INF]
DOUBLES = [*FLOATS, 0.1, 2.0**53, 2.0**53 + 2, 1e308, -1e308, 5e-324, 9.0071992547409e15]
TEXTS = ["", " ", "a", "a ", "A", "b", "\u00e9", "e\u0301", "\U0001f600", "\uffff", "it's", "%", "_", "\\", "\n", "10"]
KINDS: dict[str, tuple[str, Any, list[Any]]] = {
    "b": ("integer", pa.int8(), INTEGERS),
    "i": ("integer", pa.int32(), [*INTEGERS, 2**31 - 1, -(2**31)]),
    "n": ("integer", pa.int64(), LONGS),
    "m": ("integer", pa.int64(), LONGS),
    "r": ("double", pa.float32(), FLOATS),
    "d": ("double", pa.float64(), DOUBLES),
    "e": ("double", pa.float64(), DOUBLES),
    "s": ("text", pa.string(), TEXTS),
    "t": ("text", pa.string(), TEXTS),
    "flag": ("truth", pa.bool_(), [True, False]),
    "other": ("truth", pa.bool_(), [True, False]),
    "price": ("decimal", pa.decimal128(19, 2), [0, 1, -1]),
}
COMPARE = ("=", "!=", "<", "<=", ">", ">=")


def rows(size: int, rng: random.Random) -> pa.Table:
    """Rows of which each value may be null."""
    columns = {name: pa.array(rng.choices([*held, None], k=size), of) for name, (_, of, held) in KINDS.items()}
    own = {"ts": range(size), "id": range(size), "type": rng.choices(["A", "A", "A", "B", None], k=size)}
    return pa.table({**{name: pa.array(values) for name, values in own.items()}, **columns})


class Conditions:
    """Random conditions on one event. ``exact`` ones are translated whole; of others a part may be left out."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def condition(self, depth: int, *, exact: bool) -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.25:
            return self.simple() if exact or rng.random() < 0.7 else self.strange()
        if rng.random() < 0.3:
            return f"NOT ({self.condition(depth - 1, exact=exact)})"
        left, right = (self.condition(depth - 1, exact=exact) for _ in range(2))
        return f"({left} {rng.choice(('AND', 'OR'))} {right})"

    def simple(self) -> str:
        """One that is translated."""
        rng = self.rng
        name = rng.choice([name for name in KINDS if name != "price"])
        kind = KINDS[name][0]
        forms = ["constant", "constant", "constant", "exchanged", "column", "in", "between", "null"]
        form = rng.choice([*forms, "bare"] if kind == "truth" else forms)
        op, negated = rng.choice(COMPARE), rng.choice(("", "NOT "))
        if form == "bare":
            return f"a.{name}"
        if form == "null":
            return f"a.{name} IS {negated}NULL"
        if form == "column":
            others = [n for n, (k, _, _) in KINDS.items() if k == kind]
            return f"a.{name} {op} a.{rng.choice(others)}"
        if form == "in":
            # From eleven values on Spark would look them up by their bits.
            values = ", ".join(self.constant(name) for _ in range(rng.choice((1, 3, 20))))
            return f"a.{name} {negated}IN ({values})"
        if form == "between" and kind != "truth":
            return f"a.{name} {negated}BETWEEN {self.constant(name)} AND {self.constant(name)}"
        if kind == "integer" and op not in ("=", "!=") and rng.random() < 0.4:
            return f"a.{name} {op} {rng.choice(('0.5', '-0.5', '1.0', '1e10', '-127.5', '1.10'))}"
        if form == "exchanged":
            return f"{self.constant(name)} {op} a.{name}"
        return f"a.{name} {op} {self.constant(name)}"

    def constant(self, name: str) -> str:
        kind, _, held = KINDS[name]
        value = self.rng.choice(held)
        if kind == "integer":
            return str(value + self.rng.choice((0, 0, 1, -1)) if abs(value) < 2**62 else value)
        if kind == "double":
            return repr(value) if abs(value) < INF else "1"
        return str(value).upper() if kind == "truth" else "'" + value.replace("'", "''") + "'"

    def strange(self) -> str:
        """One that may mean something else in Spark."""
        return self.rng.choice(
            [
                "a.n = a.d", "a.n > a.r", "a.n < 9007199254740993.0", "a.d < 9007199254740993", "a.d = 0.1",
                "a.r = 0.1",
                "a.n = 1.5", "a.n != 0.5", "a.n > 1e300", "a.b < 128.5", "a.n + 1 > 0", "a.n * 2 = 2", "a.n / 0 > 1",
                "a.i % 0 = 1", "sqrt(a.n) > 1", "ln(a.d) < 0", "a.price > 0.5", "a.price = a.n", "a.price IS NULL",
                "regexp_like(a.s, '^a')", "NOT regexp_like(a.s, '(?i)A$')", "CAST(a.s AS integer) = 10",
                "CAST(a.d AS integer) = 1", "CAST(a.i AS boolean)", "CAST(a.n AS text) != '1'",
                "a.s LIKE 'a%'", "a.s LIKE '\\\\%'", "upper(a.s) = 'A'", "length(a.s) = 1", "a.s IN ('a', NULL)",
                "a.n NOT IN (1, NULL)", "a.n IN (1, 2.5)", "a.ts > 100", "a.type = 'A'", "coalesce(a.n, 1) = 1",
                "a.n = a.i + 1", "substring(a.s, 5) = ''", "-a.n > 0", "abs(a.n) = 1", "(1 = 2 OR a.n > 0)",
            ]
        )  # fmt: skip


def condition_of(seed: int) -> tuple[str, bool]:
    """A condition, and whether all of it is translated."""
    rng = random.Random(seed)
    exact = seed % 3 > 0
    return Conditions(rng).condition(rng.randint(0, 2), exact=exact), exact


def schema_in(frame: Any, **options: Any) -> InputSchema:
    """The columns of a DataFrame."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_spark_job(frame.schema, "PATTERN ANY a", id="id", **options)[0].schema


def column_of(frame: Any, schema: InputSchema, *queries: str) -> Any:
    """The column of events that some of the queries can use."""
    plans = tuple(compile_query(acep.parse(query), schema) for query in queries)
    return filter_column(frame.schema, uses_of(plans, ids=True), schema.type)


def asked(frame: Any, columns: list[Any], **settings: str) -> list[set[int]]:
    """Of each column the ids of the rows in which it is true; ``settings`` are those of Spark's code generation."""
    conf, settings = frame.sparkSession.conf, {f"spark.sql.codegen.{name}": value for name, value in settings.items()}
    for name, value in settings.items():
        conf.set(name, value)
    try:
        ids, *each = frame.select("id", *(column.alias(f"c{i}") for i, column in enumerate(columns))).toArrow().columns
    finally:
        for name in settings:
            conf.unset(name)
    assert not any(column.null_count for column in each)
    return [set(ids.filter(column).to_pylist()) for column in each]


def test_conditions_that_are_translated_whole_leave_a_third_of_the_events_behind() -> None:
    """At least: what they leave behind is what does not match."""
    table, exact = rows(240, random.Random(1)), [text for text, is_exact in map(condition_of, range(105)) if is_exact]
    n_matches = sum(len(acep.match(table, f"PATTERN A a WHERE {text}", id="id")) for text in exact)
    assert len(exact) == 70
    assert n_matches < 2 / 3 * 70 * table.column("type").to_pylist().count("A")


def test_what_stays_behind_no_query_can_use(spark: Any, tmp_path: Path, cases: CaseCounts) -> None:
    table, tried = rows(240, random.Random(1)), [condition_of(seed) for seed in range(cases(105))]
    pq.write_table(table, tmp_path / "events.parquet")
    frame = spark.read.parquet(str(tmp_path / "events.parquet"))
    queries, schema = [f"PATTERN A a WHERE {text}" for text, _ in tried], schema_in(frame)
    columns = [column_of(frame, schema, query) for query in queries]
    compiled = asked(frame, columns[:40], fallback="false")
    interpreted = asked(frame, columns, wholeStage="false", factoryMode="NO_CODEGEN")
    assert compiled == interpreted[:40]
    for (text, exact), query, travel in zip(tried, queries, interpreted, strict=True):
        for engine in ("auto", "reference"):
            used = {match.bindings["a"][0] for match in acep.match(table, query, id="id", engine=engine)}
            assert used <= travel, f"{text}: {sorted(used - travel)[:5]} stay behind"
            assert not exact or used == travel, f"{text}: {sorted(travel - used)[:5]} travel"


def test_negated_conditions_leave_behind_what_does_not_match(spark: Any) -> None:
    table = rows(240, random.Random(2))
    texts = ["NOT (a.i > 0 OR a.b > 1)", "NOT (a.i > 0 AND a.b > 1)", "NOT (NOT a.flag OR a.i = 2)"]
    frame, queries = spark.createDataFrame(table), [f"PATTERN A a WHERE {text}" for text in texts]
    schema = schema_in(frame)
    travelling = asked(frame, [column_of(frame, schema, query) for query in queries])
    used = [{match.bindings["a"][0] for match in acep.match(table, query, id="id")} for query in queries]
    assert travelling == used
    assert all(used)


def test_many_conditions_are_translated_in_part(spark: Any) -> None:
    frame = spark.range(10).selectExpr("id", "id AS ts", "id AS n", "if(id < 8, 'A', 'B') AS type")
    schema, many = schema_in(frame), " OR ".join(f"a.n = {n}" for n in range(3, MAX_COMPARISONS + 4))
    looked_up = ", ".join(map(str, range(3, 1_000)))
    wanted = {
        many: set(range(8)),  # too many comparisons
        f"({many}) AND a.n > 5": {6, 7},
        many.removesuffix(f" OR a.n = {MAX_COMPARISONS + 3}"): {3, 4, 5, 6, 7},
        f"a.n IN ({looked_up}) AND a.n != 5": {3, 4, 6, 7},
    }
    columns = [column_of(frame, schema, f"PATTERN A a WHERE {text}") for text in wanted]
    assert asked(frame, columns) == list(wanted.values())


def test_uses_of_several_queries_and_of_any_type(spark: Any) -> None:
    frame = spark.range(6).selectExpr("id", "id AS ts", "id AS n", "if(id % 2 = 0, 'A', 'B') AS type", "NULL AS no")
    one, other = "PATTERN SEQ(A a, B b) WHERE a.n > 3", "PATTERN SEQ(A a, A b) WHERE a.n = 0 AND b.n = 2"
    anything, all_of_it = "PATTERN SEQ(ANY a, ANY b) WHERE a.n > 3 AND b.n = 1", "PATTERN SEQ(ANY a, A b) WHERE a.n > 3"
    schema, without = schema_in(frame), schema_in(frame, type=None)
    columns = [
        column_of(frame, schema, one),
        column_of(frame, schema, one, other),
        column_of(frame, schema, other),
        column_of(frame, without, anything),
        column_of(frame, schema, all_of_it),
    ]
    assert asked(frame, columns) == [{1, 3, 4, 5}, {0, 1, 2, 3, 4, 5}, {0, 2}, {1, 4, 5}, {0, 2, 4, 5}]
    assert column_of(frame, schema, "PATTERN SEQ(ANY a, A b) WHERE b.n > 3") is None
    assert column_of(frame, schema_in(frame, type="no"), one) is None


def test_fields_of_structs_and_texts_of_fixed_length(spark: Any) -> None:
    dev = "named_struct('n', id, 'a.b', 'x ') AS dev"
    frame = spark.range(6).selectExpr("id", "id AS ts", "'A' AS type", dev, "if(id < 4, 'ab  ', 'c') AS code")
    frame = frame.withMetadata("code", {CHAR_KEY: "char(4)"})
    wide, schema = with_fields(frame, ["ts", "id", "type", "dev.n", "dev.a.b", "code"]), schema_in(frame)
    texts = ["a.dev.n > 1 AND a.code = 'ab'", "a.dev.n > 1 AND a.code = 'ab  '", "a.dev.n = 5 AND a.dev.n IS NOT NULL"]
    columns = [column_of(wide, schema, f"PATTERN A a WHERE {text}") for text in texts]
    assert asked(wide, columns) == [{2, 3}, set(), {5}]


def test_a_batch_leaves_behind_what_no_query_can_use_unless_it_is_counted(spark: Any) -> None:
    from pyspark.sql import Observation

    size = 3_000
    frame = spark.range(size).selectExpr(
        "id", "id AS ts", "substring('ABCDE', 1 + id % 5, 1) AS type", "id % 7 AS k", "id % 11 AS x"
    )
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [k] AND a.x > 3 AND b.x > a.x } WITHIN 100"
    observation = Observation()
    quiet = {"seq": "id", "id": "id"}
    left, counted = (acep.spark.match(frame, query, **quiet, **more) for more in ({}, {"observation": observation}))
    exact = acep.match(frame.toArrow(), query, **quiet)
    for found in (left, counted):
        assert same_rows(found) == sorted((one.key["k"], one.start, one.end) for one in exact)
    assert len(exact) > 20
    plans = [found._jdf.queryExecution().optimizedPlan().toString() for found in (left, counted)]
    assert ["> 3)" in plan for plan in plans] == [True, False]
    assert report_of(observation).events == size


def same_rows(found: Any) -> list[tuple[int, int, int]]:
    """Matches by their key and times."""
    return sorted((row["key"]["k"], row["start"], row["end"]) for row in found.collect())
