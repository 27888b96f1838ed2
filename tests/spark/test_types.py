"""Every type of Spark in every role: exact, or refused by name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf
from pyspark.sql import types as st

import acep
from acep.errors import AcepError, DataError
from acep.spark import punctuation
from acep.spark.chunks import for_spark
from acep.spark.columns.types import spark_schema
from acep.spark.job import make_spark_job
from tests.spark.by_hand import batch, numbered, rows_of, stream, the_job
from tests.spark.spark_types import BEGIN, END, EVERY, PAGE, SAMPLES, table_lines
from tests.spark.streams import Folder, as_dicts, quiet_match
from tests.spark.typed import QUERIES, RETURNED, expected, packed, plain
from tests.thinned import thinned

pytestmark = pytest.mark.long

Pairs = dict[str, list[tuple[int, int, tuple[Any, ...]]]]


def pairs(rows: Iterable[dict[str, Any]]) -> Pairs:
    """Rows of a result in the form of :func:`expected`."""
    found: Pairs = {name: [] for name in QUERIES}
    for row in rows:
        name, values = row["query"], row["values"] or {}
        given = tuple(plain(values[value]) for value in RETURNED) if name == "return" else ()
        found[name].append((row["bindings"]["x"][0], row["bindings"]["y"][0], given))
    return found


def differences(found: Pairs, truth: Pairs) -> dict[str, Any]:
    assert found.keys() == truth.keys()
    wrong = {}
    for name in truth:
        ours, exact = (sorted(map(repr, some[name])) for some in (found, truth))
        if ours != exact:
            wrong[name] = ([one for one in ours if one not in exact][:2], [one for one in exact if one not in ours][:2])
    return wrong


@pytest.mark.filterwarnings("ignore::acep.errors.DataWarning")
def test_every_type_in_every_role() -> None:
    lines = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].split("\n")[1:-1]
    lacking = tuple(f"| {name} |" for name in EVERY if name not in SAMPLES)  # by an older Spark
    assert [line for line in lines if not line.startswith(lacking)] == table_lines()
    assert len(lines) == 2 + len(EVERY)
    assert {cell for line in lines[2:] for cell in line.split(" | ")[1:]} <= {"yes", "no", "yes |", "no |"}


@pytest.mark.parametrize("name", [name for name, (_, sample) in SAMPLES.items() if sample is None])
def test_a_refusal_has_a_hint(name: str) -> None:
    held = SAMPLES[name][0]
    columns = st.StructType().add("ts", st.LongType()).add("type", st.StringType()).add("x", held)
    for query, names in (("[x]", {}), ("p.x = q.x", {}), ("p.ts < q.ts", {"seq": "x"}), ("p.ts < q.ts", {"ts": "x"})):
        with pytest.raises(AcepError) as told:
            make_spark_job(columns, acep.parse(f"PATTERN SEQ(a p, b q) WHERE {query} WITHIN 5 EVENTS"), **names)
        assert f"`x` is {held.simpleString()}" in told.value.message
        assert told.value.hint


@pytest.mark.parametrize(
    ("role", "column_type", "hint"),
    [
        ("ts", st.StringType(), 'parse it: to_timestamp(df["x"])'),
        (
            "ts",
            st.DoubleType(),
            'cast it to timestamps: df["x"].cast("timestamp"), or to integers: df["x"].cast("bigint")',
        ),
        ("ts", st.BooleanType(), 'cast it: df["x"].cast("bigint")'),
        ("type", st.LongType(), 'cast it: df["x"].cast("string")'),
        ("seq", st.StringType(), 'cast it: df["x"].cast("bigint")'),
        ("id", st.DoubleType(), 'cast it: df["x"].cast("string")'),
    ],
)
def test_a_hint_says_how_spark_casts(role: str, column_type: st.DataType, hint: str) -> None:
    columns = st.StructType().add("ts", st.LongType()).add("type", st.StringType()).add("x", column_type)
    with pytest.raises(DataError) as raised:
        make_spark_job(columns, "PATTERN SEQ(a p, b q) WITHIN 5 EVENTS", **{role: "x"})
    assert raised.value.hint == hint


def test_columns_that_only_spark_has(spark: Any, tmp_path: Path) -> None:
    """Fields of structs in every role, a name with a dot, CHAR, intervals, and ties broken by what no query can use."""
    frame = spark.sql(
        "select named_struct('at', timestamp_seconds(id), 'what', if(id % 2 = 0, 'a', 'b'), 'no', id, 'more', "
        "named_struct('sum', cast(90071992547409930 + (id % 4 div 2) / 100BD as decimal(19, 2)))) dev, "
        "'x' `odd.name`, rpad('ab', 5) c, make_dt_interval(0, 0, 0, id % 4 div 2) gap, parse_json('{\"a\": 1}') v, "
        "'A' collate UTF8_LCASE coll, interval '1' month month, array(id) l from range(8)"
    )
    if hasattr(st, "TimeType"):  # Spark 4.0 has none
        frame = frame.withColumn("clock", sf.expr("time'12:00:00'"))
    frame = frame.withColumn("c", sf.col("c").alias("c", metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}))
    assert frame.select("c").first().c == "ab   "
    query = acep.parse(
        "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [odd.name, c, gap, dev.more.sum] AND p.c = 'ab' "
        "AND p.gap = q.gap AND p.dev.no < q.dev.no } WITHIN 100 s RETURN q.dev.more.sum AS total, q.c AS c"
    )
    names = {"ts": "dev.at", "type": "dev.what", "id": "dev.no"}
    total = [Decimal(f"90071992547409930.0{i}") for i in range(2)]
    exact = [
        {"p": [p], "q": [q], "total": total[p % 4 // 2], "gap": dt.timedelta(seconds=p % 4 // 2)}
        for p, q in ((0, 1), (0, 5), (2, 3), (2, 7), (4, 5), (6, 7))
    ]

    def told(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for row in rows:
            assert (row["key"]["odd.name"], row["key"]["c"], row["values"]["c"]) == ("x", "ab", "ab")
            assert row["key"]["dev.more.sum"] == row["values"]["total"]
        found = [{**row["bindings"], "total": row["values"]["total"], "gap": row["key"]["gap"]} for row in rows]
        return sorted(found, key=lambda row: (row["p"], row["q"]))

    for buckets in (1, 8):  # without seq= every column travels
        assert told(as_dicts(quiet_match(frame, query, **names, seq=None, buckets=buckets))) == exact
    read = frame.select("dev", "`odd.name`", "c", "gap")  # as files of Parquet hold
    read.write.parquet(str(tmp_path / "in"))
    punctuation(read, ts="dev.at").write.mode("append").parquet(str(tmp_path / "in"))
    rows = spark.readStream.schema(read.schema).parquet(str(tmp_path / "in"))
    found = quiet_match(rows, query, **names, seq="dev.no", buckets=8, watermark="1 second")
    writer = found.writeStream.format("parquet").option("path", str(tmp_path / "out")).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert told(as_dicts(spark.read.schema(found.schema).parquet(str(tmp_path / "out")))) == exact
    for ts, said in (
        ("dev.att", "there is no column `dev.att`"),
        ("dev.what", "cannot end in a column of type string"),
    ):
        with pytest.raises(DataError, match=said):
            punctuation(read, ts=ts)


def test_types_that_spark_has_not_come_as_those_that_it_has() -> None:
    values = [Decimal("1.5"), Decimal("-2.25"), None]
    given = {held: pa.array(values, held) for held in (pa.decimal32(9, 2), pa.decimal64(18, 3), pa.decimal256(40, 4))}
    table = pa.table({str(held): column for held, column in given.items()})
    table = table.append_column("truth", pa.ExtensionArray.from_storage(pa.bool8(), pa.array([5, 0, None], pa.int8())))
    ours = for_spark(table)
    assert [*map(str, ours.schema.types)] == ["decimal128(9, 2)", "decimal128(18, 3)", "decimal128(38, 4)", "bool"]
    assert ours.to_pydict() == dict.fromkeys(map(str, given), values) | {"truth": [True, False, None]}
    with pytest.raises(DataError, match="holds values that Spark's"):
        for_spark(pa.table({"x": pa.array([Decimal(10**45)], pa.decimal256(50, 0))}))
    gap = pa.array([dt.timedelta(1)], pa.duration("s"))
    assert for_spark(pa.table({"t": pa.array([1], pa.timestamp("us")), "x": gap})).schema.field("x").type.unit == "us"
    with pytest.raises(DataError, match=r"`x` is duration\[s\]: on Spark durations are ticks of microseconds"):
        for_spark(pa.table({"t": pa.array([1], pa.timestamp("ms")), "x": gap}))


def test_random_typed_tables_by_hand() -> None:
    table = numbered(packed(25, seed=1))
    truth = expected(table)
    job = the_job(table, QUERIES, buckets=3)
    assert differences(pairs(batch(job, table)), truth) == {}
    rows, _, _ = stream(job, rows_of(table, range(len(table)), [150]), delay=2_000_000)
    assert differences(pairs(rows), truth) == {}
    one = acep.match(table, QUERIES, seq="__order", id="__row")
    rows = [
        {"query": name, "values": match.values, "bindings": {v: list(ids) for v, ids in match.bindings.items()}}
        for name, matches in one.items()
        for match in matches
    ]
    assert differences(pairs(rows), truth) == {}


TABLES = 300


def test_each_query_has_matches_in_the_random_typed_tables() -> None:
    n_matches = {name: len(matches) for name, matches in expected(numbered(packed(TABLES, seed=2))).items()}
    assert all(n_matches.values()), n_matches


@pytest.mark.parametrize("buckets", thinned([8, 1], 2, pytest.mark.whole))
def test_random_typed_tables_on_spark(spark: Any, cases: Callable[[int], int], buckets: int) -> None:
    """Batch and stream, with one bucket and with eight, find what exact arithmetic finds."""
    table = numbered(packed(cases(TABLES), seed=2))
    truth = expected(table)
    frame = spark.createDataFrame(table, spark_schema(table.schema))
    # Each key has buckets, and so state, of its own: on the stream only those that differ in how they are hashed.
    hashed = {f"[{key}]" for key in ("i64", "f64", "d19", "d38", "text", "zoned", "gap", "dev.id")}
    streamed = {name: query for name, query in QUERIES.items() if name in hashed or not name.startswith("[")}
    some = {name: truth[name] if name in streamed else [] for name in truth}
    found = as_dicts(quiet_match(frame, QUERIES, buckets=buckets))
    assert differences(pairs(found), truth) == {}, "batch"
    folder = Folder(spark, table, len(table) * 3 // 5)
    query = quiet_match(folder.frame(), streamed, buckets=buckets, watermark="3 seconds")
    found, _ = folder.run(query)
    assert differences(pairs(found), some) == {}, "stream"


def test_names_that_differ_only_in_case(spark: Any) -> None:
    rows = [(1, "a", 1, 2), (2, "b", 3, 4)]
    frame = spark.createDataFrame(rows, "ts long, type string, `user` long, `User` long")
    with pytest.raises(DataError, match=r"the columns `User` and `user` differ only in case") as refused:
        acep.spark.match(frame, acep.regex("ab", within=5, by="user"), seq="ts", id="ts")
    assert "caseSensitive" in (refused.value.hint or "")
    structs = [(ts, kind, (one, other)) for ts, kind, one, other in rows]
    inner = spark.createDataFrame(structs, "ts long, type string, dev struct<user: long, User: long>")
    with pytest.raises(DataError, match=r"`dev\.User` and `dev\.user`"):
        acep.spark.match(inner, acep.regex("ab", within=5, by="dev.User"), seq="ts", id="ts")
    unused = acep.spark.match(frame.withColumn("n", sf.lit(1)), acep.regex("ab", within=5, by="n"), seq="ts", id="ts")
    assert unused.count() == 1
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert acep.spark.match(frame, acep.regex("ab", within=5, by="User"), seq="ts", id="ts").count() == 0
        one = frame.withColumn("User", sf.lit(7))
        (found,) = acep.spark.match(one, acep.regex("ab", within=5, by="User"), seq="ts", id="ts").collect()
        assert found.key.User == 7
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
