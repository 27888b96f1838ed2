"""Batches: columns of every type, what travels, outputs, names, mistakes."""

from __future__ import annotations

import datetime as dt
import re
import warnings
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import DataError, EngineError, QueryError
from acep.spark import match
from acep.streaming.job import OUTPUTS
from tests.corpus import load_all
from tests.runner.streams import final
from tests.spark.by_hand import as_rows, numbered, rows_that_differ, the_job
from tests.spark.streams import as_dicts, quiet_match
from tests.thinned import thinned

SAMPLE = (
    "composition",
    "contiguity_errors",
    "groups",
    "having_return",
    "negation",
    "nulls",
    "output",
    "weights",
)


@pytest.mark.parametrize("file", thinned(SAMPLE, 3))
def test_a_case_of_the_corpus(spark: Any, file: str) -> None:
    case = max((c for c in load_all() if c.file == file and c.matches), key=lambda c: len(c.matches or ()))
    query = (acep.regex if case.letters else acep.parse)(case.text, **case.query_options)
    options = dict(case.stream_options)
    table = numbered(case.table(), **options)
    found = quiet_match(spark.createDataFrame(table), query, **{k: v for k, v in options.items() if k != "seq"})
    assert rows_that_differ(as_dicts(found), as_rows(acep.match(case.table(), query, **options))) == ""


@pytest.mark.long
def test_columns_of_every_type(spark: Any) -> None:
    frame = spark.sql(
        "select id ts, case when id % 2 = 0 then 'a' else 'b' end type, 1.50BD dec, 2.5F f, -0.0D zero, 7Y small, "
        "true flag, binary('x') bin, map('a', 1) m, array(1, 2) arr, named_struct('x', 1) st, interval '1' day gap, "
        "interval '1' year long_gap, date'2024-01-02' d, timestamp'2024-01-02 03:04:05Z' z, "
        "timestamp_ntz'2024-01-02 03:04:05' n, cast(null as string) nothing from range(4)"
    )
    query = acep.parse(
        "PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [dec, f, zero, small, flag, d, z, n] } WITHIN 2 "
        "RETURN p.dec AS dec, p.flag AS flag, q.z AS z, q.nothing AS nothing"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = match(frame, query)
    keys = {field.name: field.dataType.typeName() for field in found.schema["key"].dataType.fields}
    assert keys["dec"] == "decimal"
    assert (keys["f"], keys["small"], keys["d"], keys["n"]) == ("float", "byte", "date", "timestamp_ntz")
    first, second = sorted(as_dicts(found), key=lambda row: row["start"])
    assert (first["bindings"], second["bindings"]) == ({"p": [0], "q": [1]}, {"p": [2], "q": [3]})
    assert (first["start"], first["end"], first["bundle"], first["error"]) == (0, 1, 1, 0)
    key = first["key"]
    assert (key["dec"], key["f"], key["small"], key["flag"]) == (Decimal("1.50"), 2.5, 7, True)
    assert key["d"] == dt.date(2024, 1, 2)
    assert key["n"] == dt.datetime(2024, 1, 2, 3, 4, 5)
    assert first["values"]["dec"] == Decimal("1.50")
    assert first["values"]["flag"] is True


def test_only_what_is_read_travels(spark: Any) -> None:
    table = numbered(pa.table({"ts": [1, 2], "type": ["a", "b"], "k": [1, 1], "x": [1, 2], "heavy": ["h", "h"]}))
    query = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 5")
    found = quiet_match(spark.createDataFrame(table), query)
    plan = found._jdf.queryExecution().optimizedPlan().toString()
    assert "heavy" not in plan
    assert len(found.collect()) == 1


@pytest.mark.long
def test_outputs(spark: Any) -> None:
    table = numbered(pa.table({"ts": list(range(20)), "type": list("ab") * 10, "k": ["x", "x", "y", "y"] * 5}))
    frame = spark.createDataFrame(table)
    query = acep.regex("ab", within=5, by="k")
    for output in ("points", "bundles"):
        exact = [final(one) for one in acep.match(table, query, output=output)]
        assert rows_that_differ(as_dicts(quiet_match(frame, query, output=output)), exact) == ""
    exact_count = acep.match(table, query, output="count")
    assert as_dicts(quiet_match(frame, query, output="count")) == [{"count": exact_count}]
    none = acep.regex("zz", within=5, by="k")
    counted = quiet_match(frame, {"some": query, "none": none}, output="count")
    assert sorted(map(repr, as_dicts(counted))) == sorted(
        map(repr, [{"query": "some", "count": exact_count}, {"query": "none", "count": 0}])
    )
    assert as_dicts(quiet_match(frame.limit(0), query, output="count")) == [{"count": 0}]
    assert as_dicts(quiet_match(frame.limit(0), query)) == []


@pytest.mark.parametrize(
    "output", ["compressed", "exists", "batches", "compresed", "bundels", "graph", None, ["count"]]
)
def test_only_what_spark_gives_can_be_asked_for(output: Any) -> None:
    table = numbered(pa.table({"ts": [1, 2], "type": ["a", "b"]}))
    with pytest.raises(QueryError) as told:
        the_job(table, acep.regex("ab", within=5), output=output)
    named = f"output='{output}'" if output in ("compressed", "exists", "batches") else repr(output)
    assert named in told.value.message
    recommended = re.findall(r"[`\"](\w+)[`\"]", told.value.hint or "")
    assert recommended
    assert set(recommended) <= set(OUTPUTS)
    for one in recommended:
        assert the_job(table, acep.regex("ab", within=5), output=one).result.names


def test_a_list_of_queries_is_numbered_and_text_ids_stay_text(spark: Any) -> None:
    table = pa.table({"t": [1, 2], "what": ["a", "b"], "n": [1, 2], "name": ["first", "second"]})
    queries = [acep.regex("ab", within=5), acep.regex("ba", within=5, errors=1)]
    options: dict[str, Any] = {"ts": "t", "type": "what", "seq": "n", "id": "name"}
    rows = as_dicts(quiet_match(spark.createDataFrame(table), queries, **options))
    assert {row["query"] for row in rows} == {"0", "1"}
    assert [row["bindings"] for row in rows if row["query"] == "0"] == [{"a": ["first"], "b": ["second"]}]


def test_a_table_starts_a_session_of_its_own(spark: Any) -> None:
    rows = [{"ts": 1, "type": "a", "k": 1, "l": [{"x": 1.5}]}, {"ts": 2, "type": "b", "k": 1, "l": None}]
    found = quiet_match(rows, acep.regex("ab", within=5, by="k"), seq="ts", id="ts")
    assert found.sparkSession is spark
    assert as_dicts(found) == [
        {"key": {"k": 1}, "start": 1, "end": 2, "error": 0, "bindings": {"a": [1], "b": [2]}, "bundle": 2}
    ]


@pytest.mark.long
def test_a_budget_and_other_arguments(spark: Any) -> None:
    frame = spark.createDataFrame(pa.table({"ts": [1, 2], "type": ["a", "c"], "n": [0, 1]}))
    query = acep.regex("abc", within=5)
    assert as_dicts(quiet_match(frame, query, seq="n", id="n")) == []
    budget = acep.Budget(errors=Decimal("0.5"), weights={"b": 0.5})
    (row,) = as_dicts(quiet_match(frame, query, seq="n", id="n", budget=budget))
    assert row["error"] == 0.5
    calls: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (QueryError, "unknown output", {"output": "graph"}),
        (EngineError, "no engine", {"engine": "fast"}),
        (DataError, "not a positive number", {"buckets": 0}),
        (DataError, "there is no column `when`", {"ts": "when"}),
        (QueryError, "the query ends too early", {"query": "PATTERN"}),
        (QueryError, "a query is ", {"query": 5}),
        (QueryError, "there is no query", {"query": []}),
        (QueryError, "two queries give `v`", {"query": [returning("p.ts"), returning("p.type")]}),
    ]
    for kind, said, options in calls:
        given = {"query": query, "seq": "n", "id": "n"} | options
        with pytest.raises(kind, match=said):
            quiet_match(frame, given.pop("query"), **given)


def returning(value: str) -> Any:
    return acep.parse(f"PATTERN SEQ(a p, c q) WHERE skip_till_next_match(p, q) WITHIN 5 RETURN {value} AS v")
