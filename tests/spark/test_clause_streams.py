"""MATCH_RECOGNIZE over streaming DataFrames gives the rows of one process, on both routes, late and revised too."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError, DataError, QueryError
from tests.spark.streams import Folder, shuffled
from tests.thinned import in_turn, thinned

V_SHAPE = """PARTITION BY k ORDER BY ts
    MEASURES MATCH_NUMBER() AS n, FIRST(x) AS high, LAST(DOWN.x) AS low, count(*) AS size
    PATTERN (STRT DOWN+ UP+) DEFINE DOWN AS x < PREV(x), UP AS x > PREV(x)"""
CLAUSES = {
    "a V": V_SHAPE,
    "all rows, with others": """PARTITION BY k ORDER BY ts, x DESC MEASURES CLASSIFIER() AS label, part.u AS u
        ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B+?) WITHIN 40 DEFINE A AS x > 5, B AS x < PREV(x)""",
    "a key that is computed": """PARTITION BY upper(k), x % 2 ORDER BY ts MEASURES array_agg(x) AS xs
        AFTER MATCH SKIP TO NEXT ROW PATTERN (A B* C) DEFINE B AS x < A.x, C AS x > NEXT(x)""",
    "one partition": """ORDER BY ts MEASURES LAST(k) AS k, sum(x * 1.5) AS s
        PATTERN (^ A B* | C+ D | C $) DEFINE B AS x > 2, C AS x > 4""",
}


def rows_of(size: int = 300, disorder: float = 0.0) -> pa.Table:
    """Random rows; times are all different."""
    rng = random.Random(size)
    ticks = shuffled(range(0, 3 * size, 3), disorder, rng)
    return pa.table(
        {
            "ts": pa.array(ticks, pa.int64()),
            "k": rng.choices(["a", "B", "b", None], k=size),
            "x": rng.choices([*range(9), None], k=size),
            "part": [{"u": n % 3} for n in range(size)],
            "id": pa.array(range(size), pa.int64()),
        }
    )


def lines(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.long
@pytest.mark.parametrize(("name", "in_files"), in_turn([*CLAUSES], [False, True]))
def test_a_stream_gives_the_rows_of_one_process(spark: Any, name: str, in_files: bool) -> None:
    table = rows_of(disorder=60)
    folder = Folder(spark, table, 100)
    options = {"state": tempfile.mkdtemp() if in_files else "spark"}
    result = acep.spark.match_recognize(folder.frame(), CLAUSES[name], watermark=200, buckets=3, **options)
    rows, told = folder.run(result)
    expected = acep.match_recognize(table, CLAUSES[name])
    assert expected.num_rows > 1
    assert lines(rows) == lines(expected.to_pylist())
    assert sum(progress.report.late for progress in told[-1:]) == 0


def net(rows: list[dict[str, Any]]) -> list[str]:
    """The rows that came and were not taken back."""
    counts: Counter[str] = Counter()
    for row in rows:
        counts[repr({name: value for name, value in row.items() if name != "op"})] += row["op"]
    assert all(count >= 0 for count in counts.values())
    return sorted(counts.elements())


@pytest.mark.long
@pytest.mark.parametrize("in_files", [pytest.param(False, marks=pytest.mark.long), True])
def test_rows_that_are_taken_back(spark: Any, in_files: bool) -> None:
    """With a speculation rows come early; what corrections change is taken back."""
    rng = random.Random(3)
    table = rows_of(200, disorder=30)
    gone = sorted(rng.sample(range(table.num_rows), 40))
    everything = pa.concat_tables([table, table.take(pa.array(gone))])
    order = sorted(range(everything.num_rows), key=lambda n: n if n < table.num_rows else gone[n - table.num_rows] + 20)
    ops = [1] * table.num_rows + [-1] * len(gone)
    stream = everything.append_column("op", pa.array(ops, pa.int64())).take(pa.array(order))
    stream = stream.append_column("seq", pa.array(range(stream.num_rows), pa.int64()))
    folder = Folder(spark, stream, 100)
    options = {"state": tempfile.mkdtemp() if in_files else "spark"}
    options |= {"id": "id", "op": "op", "seq": "seq", "speculation": "inf", "watermark": 300, "buckets": 2}
    rows, _ = folder.run(acep.spark.match_recognize(folder.frame(), V_SHAPE, **options))
    stays = [n for n in range(table.num_rows) if n not in gone]
    assert any(row["op"] < 0 for row in rows)
    assert net(rows) == lines(acep.match_recognize(table.take(pa.array(stays)), V_SHAPE).to_pylist())


@pytest.mark.long
@pytest.mark.parametrize("state", ["spark", "files"])
def test_a_budget_of_work_gives_up_whole_partitions(spark: Any, state: str) -> None:
    rng = random.Random(5)
    size = 9_000
    table = pa.table({"ts": pa.array(range(size), pa.int64()), "k": [f"k{rng.randrange(60)}" for _ in range(size)],
                      "x": rng.choices(range(9), k=size)})  # fmt: skip
    folder = Folder(spark, table, 3_000)
    options = {"state": "spark" if state == "spark" else tempfile.mkdtemp(), "watermark": 5, "buckets": 1}
    budget = acep.Budget(work=3, estimate=0.2)
    rows, told = folder.run(acep.spark.match_recognize(folder.frame(), V_SHAPE, budget=budget, **options))
    exact = Counter(lines(acep.match_recognize(table, V_SHAPE).to_pylist()))
    assert 0 < len(rows) < exact.total()
    assert not Counter(lines(rows)) - exact
    assert told[-1].shed > 0
    assert not told[-1].report.exact
    with pytest.raises(QueryError, match="keeps to a budget of work or memory"):
        acep.spark.match_recognize(folder.frame(), V_SHAPE, budget=acep.Budget(latency=1), **options)


@pytest.mark.long
def test_a_statement_over_a_streaming_view(spark: Any) -> None:
    """Spark's own SQL stands around the clause, on a stream too."""
    table = rows_of(120)
    folder = Folder(spark, table, 60)
    folder.frame().createOrReplaceTempView("clause_ticks")
    try:
        text = f"SELECT k, high - low AS depth FROM clause_ticks MATCH_RECOGNIZE ({V_SHAPE}) WHERE size > 3"  # noqa: S608
        rows, _ = folder.run(acep.spark.sql(text, watermark=10, buckets=1))
    finally:
        spark.catalog.dropTempView("clause_ticks")
    expected = [row for row in acep.match_recognize(table, V_SHAPE).to_pylist() if row["size"] > 3]
    assert expected
    assert lines(rows) == lines([{"k": row["k"], "depth": row["high"] - row["low"]} for row in expected])


@pytest.mark.parametrize(
    ("clause", "options", "message"),
    [
        (V_SHAPE.replace("ORDER BY ts", "ORDER BY ts DESC"), {"watermark": 5}, "the first key of ORDER BY"),
        (V_SHAPE.replace("ORDER BY ts", ""), {"watermark": 5}, "has no ORDER BY"),
        (V_SHAPE, {}, "a stream needs a watermark"),
        (V_SHAPE, {"watermark": 5, "op": "id"}, "op="),
        (V_SHAPE, {"watermark": 5, "op": "id", "id": "id"}, "op= takes back rows by their ids"),
        (V_SHAPE, {"watermark": 5, "ts": "id"}, "the clause has the times in `ts`"),
        (V_SHAPE, {"watermark": 5, "buckets": 0}, "buckets=0"),
        (V_SHAPE.replace("STRT", "A{100000}"), {"watermark": 5}, "more than 200000 states on a stream"),
        (V_SHAPE.replace("AS n,", "AS op,"), {"watermark": 5, "speculation": "inf"}, "`op` tells rows that come"),
    ],
)
def test_what_a_stream_refuses(spark: Any, clause: str, options: dict[str, Any], message: str) -> None:
    folder = Folder(spark, rows_of(3), 3)
    with pytest.raises(AcepError, match=message):
        acep.spark.match_recognize(folder.frame(), clause, **options)


def test_a_statement_has_one_clause_over_a_stream(spark: Any) -> None:
    """Spark refuses most others, in many lines and when the stream starts; others would share their state."""
    Folder(spark, rows_of(3), 3).frame().createOrReplaceTempView("clause_ticks")
    one = f"SELECT k, high AS ts, size AS x FROM clause_ticks MATCH_RECOGNIZE ({V_SHAPE})"  # noqa: S608
    two = f"{one} UNION ALL {one}"
    nested = f"SELECT * FROM ({one}) MATCH_RECOGNIZE ({V_SHAPE})"  # noqa: S608
    try:
        for text in (two, nested):
            with pytest.raises(QueryError, match="one clause over a stream") as caught:
                acep.spark.sql(text, watermark=10)
            assert caught.value.start is not None
            assert caught.value.hint
    finally:
        spark.catalog.dropTempView("clause_ticks")


OF_SHAPES = """PARTITION BY k ORDER BY ts MEASURES FIRST(ts) AS a, LAST(ts) AS b
    PATTERN (A B) DEFINE B AS x >= A.x"""
SHAPES = """PARTITION BY k ORDER BY ts MEASURES LAST(ts) AS ts, FIRST(x) AS x
    PATTERN (S DOWN+ UP) DEFINE DOWN AS x < PREV(x), UP AS x > PREV(x)"""


def test_a_clause_over_the_rows_of_another_one_needs_a_state_of_its_own(spark: Any) -> None:
    folder = Folder(spark, rows_of(3), 3)
    first = acep.spark.match_recognize(folder.frame(), SHAPES, watermark=10, state="spark").where("x > 1")
    with pytest.raises(DataError, match="Spark allows one such state") as caught:
        acep.spark.match_recognize(first, OF_SHAPES, watermark=10, state="spark")
    assert "state=" in str(caught.value.hint)


@pytest.mark.long
@pytest.mark.parametrize("in_files", thinned([(True, True), (True, False), (False, True)], 3, pytest.mark.whole))
def test_a_clause_over_the_rows_of_another_one(spark: Any, in_files: tuple[bool, bool]) -> None:
    """The second clause has no end of its stream: it gives what its watermark has passed."""
    table = rows_of(400)  # up to the time 400
    first_state, second_state = (
        {"state": tempfile.mkdtemp()} if is_file else {"state": "spark"} for is_file in in_files
    )
    folder = Folder(spark, table, 50, end=False)
    first = acep.spark.match_recognize(folder.frame(), SHAPES, watermark=1, buckets=2, **first_state)
    both = acep.spark.match_recognize(first, OF_SHAPES, watermark=200, buckets=2, **second_state)
    rows, _ = folder.run(both)
    expected = acep.match_recognize(acep.match_recognize(table, SHAPES), OF_SHAPES).to_pylist()
    assert len(rows) > 10
    assert Counter(lines(rows)) <= Counter(lines(expected))
    passed = [row for row in expected if row["b"] < 400 - 200 - 40]
    assert Counter(lines(passed)) <= Counter(lines(rows))


def test_options_of_a_stream_are_refused_for_a_batch(spark: Any) -> None:
    frame = spark.createDataFrame(rows_of(3))
    with pytest.raises(QueryError, match="watermark= is of a stream"):
        acep.spark.match_recognize(frame, V_SHAPE, watermark=5)
    with pytest.raises(QueryError, match="budget= is of a stream"):
        acep.spark.match_recognize(frame, V_SHAPE, budget=acep.Budget(work=5))
    with pytest.raises(TypeError, match="threads"):
        acep.spark.match_recognize(frame, V_SHAPE, threads=2)
