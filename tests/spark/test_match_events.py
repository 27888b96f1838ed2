"""Back from matches to rows on Spark: the rows that one process gives, in a batch, in micro-batches and on a stream."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
import acep.spark
from acep.errors import AcepError, DataError
from acep.spark.chunks import ORDER, ROW
from tests.case_counts import CaseCounts
from tests.spark.streams import Folder, as_dicts, events_table, quiet_match

pytestmark = pytest.mark.long

QUERIES: dict[str, Any] = {
    "kleene": acep.parse(
        "PATTERN SEQ(a p, b+ q[], c? r) WHERE skip_till_next_match(p, q[], r) { [k] } WITHIN 6 seconds", errors=1
    ),
    "group": acep.parse("PATTERN SEQ((a p, b q)+) WITHIN 5 seconds OUTPUT NON OVERLAP"),
    "set": acep.parse("PATTERN {a p, d q, c r} WHERE [k] WITHIN 9 seconds", errors=2),
}
QUERY = QUERIES["kleene"]
TABLE = events_table(60)

Rows = list[tuple[Any, ...]]


def plain(row: Mapping[str, Any], besides: Iterable[str] = ()) -> tuple[Any, ...]:
    """The values of a row in the order of names; NaN, which equals nothing, as a text."""
    return tuple(repr(row[name]) for name in sorted(row) if name not in besides)


def one_process(table: pa.Table, query: Any) -> list[Rows]:
    """The rows of each match, with their variables, sorted."""
    rows_of = defaultdict[int, Rows](list)
    for row in acep.match(table, query, seq=ORDER, id=ROW).events().to_pylist():
        rows_of[row["match"]].append(plain(row, ["match"]))
    return sorted(sorted(rows) for rows in rows_of.values())


def by_match(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    rows_of = defaultdict[str, list[dict[str, Any]]](list)
    for row in rows:
        rows_of[row["match"]].append(row)
    return dict(rows_of)


def in_order(rows: Iterable[dict[str, Any]]) -> dict[str, Rows]:
    """The rows of each match as plain values, in the order of time, then of position."""
    rows_of = by_match(sorted(rows, key=lambda row: (row["ts"], row["position"])))
    return {match: [plain(row) for row in rows_of_match] for match, rows_of_match in rows_of.items()}


def as_one_process(rows: Iterable[dict[str, Any]]) -> list[Rows]:
    own = ("match", "position", "query")
    return sorted(sorted(plain(row, own) for row in rows_of_match) for rows_of_match in by_match(rows).values())


def assert_in_order(rows: list[dict[str, Any]]) -> None:
    """The rows of a match stand together, in the order of time, then of position; no position is left out."""
    ids = [row["match"] for row in rows]
    assert sum(one != other for one, other in pairwise(ids)) == len({*ids}) - 1
    for rows_of_match in by_match(rows).values():
        places = [(row["ts"], row["position"]) for row in rows_of_match]
        assert places == sorted(places)
        assert sorted(row["position"] for row in rows_of_match) == [*range(len(rows_of_match))]


def test_a_batch_gives_the_rows_of_one_process(spark: Any, cases: CaseCounts) -> None:
    for seed in range(cases(8)):
        table = events_table(60, seed + 1)
        frame = spark.createDataFrame(table)
        together = as_dicts(acep.spark.events(quiet_match(frame, QUERIES), frame, id=ROW))
        assert list(together[0]) == ["match", "query", "variable", "position", *table.column_names]
        for name, query in QUERIES.items():
            expected = one_process(table, query)
            assert expected, name
            assert as_one_process(row for row in together if row["query"] == name) == expected
        name = random.Random(seed).choice([*QUERIES])
        alone = as_dicts(acep.spark.events(quiet_match(frame, QUERIES[name]), frame, id=ROW))
        assert_in_order(alone)
        assert as_one_process(alone) == one_process(table, QUERIES[name])
        assert any(row["x"] is None for row in alone)


def test_a_match_has_the_same_id_on_each_route_and_in_each_run(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(TABLE)
    expected = in_order(as_dicts(acep.spark.events(quiet_match(frame, QUERY), frame, id=ROW)))
    assert all(len(match_id) == 32 for match_id in expected)
    again = acep.spark.events(quiet_match(frame.repartition(7), QUERY, buckets=3), frame, id=ROW)
    assert in_order(as_dicts(again)) == expected
    stream = Folder(spark, TABLE, 20)
    found = quiet_match(stream.frame(), QUERY, watermark="1 second", buckets=2, state=str(tmp_path / "state"))
    rows, _ = stream.run(acep.spark.events(found, frame, id=ROW))
    assert in_order(rows) == expected


@pytest.mark.parametrize("route", ["store", "each"])
def test_micro_batches_are_joined(spark: Any, route: str, tmp_path: Path) -> None:
    stream = Folder(spark, TABLE, 20)
    rows: list[dict[str, Any]] = []

    def sink(found: Any, _: int) -> None:
        batch = as_dicts(acep.spark.events(found, spark.createDataFrame(TABLE), id=ROW))
        if batch:
            assert_in_order(batch)
        rows.extend(batch)

    options: dict[str, Any] = {"watermark": "1 second", "buckets": 2, "seq": ORDER, "id": ROW}
    if route == "store":
        writer = quiet_match(stream.frame(), QUERY, state="spark", **options).writeStream.foreachBatch(sink)
    else:
        step = acep.spark.for_each_batch(QUERY, sink, state=tmp_path / "state", **options)
        writer = stream.frame().writeStream.foreachBatch(step)
    writer.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "points")).start().awaitTermination()
    assert as_one_process(rows) == one_process(TABLE, QUERY)


ROWS = [(1, "a", "x", 7), (2, "b", "y", 8), (3, "b", "z", 8), (4, "c", None, 9)]
COLUMNS = "ts long, type string, note string, n int"
PAIR = "PATTERN SEQ(a p, b+ q[]) WHERE skip_till_next_match(p, q[]) WITHIN 9 OUTPUT LONGEST NON OVERLAP"


def test_each_row_with_an_id_comes_and_none_that_is_missing(spark: Any) -> None:
    events = spark.createDataFrame([*ROWS[:2], (3, "b", "z", 10)], COLUMNS)
    found = quiet_match(events, PAIR, seq=None, id="n")
    places = [(row.variable, row.position, row.note) for row in acep.spark.events(found, events, id="n").collect()]
    assert places == [("p", 0, "x"), ("q", 1, "y"), ("q", 2, "z")]
    twice = spark.createDataFrame([(1, "a", "x", 7), (3, "b", "z", 8), (2, "b", "y", 8), (2, "b", "-", None)], COLUMNS)
    places = [(row.variable, row.position, row.note) for row in acep.spark.events(found, twice, id="n").collect()]
    assert places == [("p", 0, "x"), ("q", 1, "y"), ("q", 1, "z")]


def test_ids_of_texts_and_of_fields(spark: Any) -> None:
    events = spark.createDataFrame(ROWS, COLUMNS).selectExpr(
        "struct(ts AS at, CAST(n + ts AS char(4)) AS id) AS dev", "type", "note"
    )
    found = quiet_match(events, PAIR, ts="dev.at", seq="dev.at", id="dev.id")
    rows = acep.spark.events(found, events, id="dev.id", ts="dev.at")
    assert rows.columns == ["match", "variable", "position", "dev", "type", "note"]
    assert [(row.variable, row.note) for row in rows.collect()] == [("p", "x"), ("q", "y"), ("q", "z")]


def test_names_that_are_there_get_a_word_before_them(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS, COLUMNS).withColumnRenamed("note", "Variable")
    found = quiet_match(frame, {"one": PAIR}, seq="ts", id="n")
    rows = acep.spark.events(found, frame.withColumn("match", frame.n), id="n")
    assert rows.columns[:4] == ["match_match", "query", "match_variable", "position"]
    assert rows.columns[4:] == ["ts", "type", "Variable", "n", "match"]
    with pytest.raises(acep.DataError, match="have columns `match` and `match_match` already"):
        acep.spark.events(found, rows, id="n")


def test_text_ids_that_are_names_of_variables_do_not_confuse_matches(spark: Any) -> None:
    kind = "start long, bindings map<string, array<string>>"
    entries = [{"a": ["b", "x"], "c": ["y"]}, {"a": ["b"], "x": ["c", "y"]}, {"c": ["y"], "a": ["b", "x"]}]
    found = spark.createDataFrame([(1, bindings) for bindings in entries], kind)
    events = spark.createDataFrame([(1, name) for name in "bcxy"], "ts long, name string")
    ids = {(row.match, row.variable, row.name) for row in acep.spark.events(found, events, id="name").collect()}
    assert len({match for match, _, _ in ids}) == 2
    assert len(ids) == 6


def test_matches_that_are_taken_back_give_their_rows_again(spark: Any, tmp_path: Path) -> None:
    changes = [(1, "a", "x", 0, 1), (2, "b", "x", 1, 1), (9, "z", "x", 2, 1), (2, "b", "x", 1, -1)]
    sent = [(*row, number) for number, row in enumerate(changes)]
    columns = "ts long, type string, k string, n long, op int, sent long"
    for number, row in enumerate(sent):
        spark.createDataFrame([row], columns).coalesce(1).write.parquet(str(tmp_path / "in" / str(number)))
    reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
    frame = reader.parquet(str(tmp_path / "in" / "*"))
    found = quiet_match(
        frame, "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 5", seq="sent", id="n", op="op", speculation="inf", watermark=50,
        buckets=2,
    )  # fmt: skip
    rows: list[dict[str, Any]] = []

    def sink(matches: Any, _: int) -> None:
        own = spark.createDataFrame(sent[:3], columns)
        ids = {row.id for row in matches.collect()}
        batch = as_dicts(acep.spark.events(matches, own, id="n"))
        assert {row["match"] for row in batch} == ids
        rows.extend(batch)

    writer = found.writeStream.foreachBatch(sink).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "points")).start().awaitTermination()
    assert [(row["match_op"], row["variable"], row["n"]) for row in rows] == [
        (1, "p", 0), (1, "q", 1), (-1, "p", 0), (-1, "q", 1)
    ]  # fmt: skip


def test_what_has_no_rows_is_refused(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS, COLUMNS)
    found = quiet_match(frame, PAIR, seq=None, id="n")

    def complaint_of(matches: Any, df: Any = frame, **options: Any) -> str:
        with pytest.raises(AcepError) as caught:
            acep.spark.events(matches, df, **options)
        assert "\n" not in caught.value.message
        return caught.value.message

    for options in ({"flat": True}, {"output": "points"}):
        other = quiet_match(frame, PAIR, seq=None, id="n", **options)
        assert complaint_of(other, id="n") == "events() takes matches with the column `bindings`, which these have not"
    assert complaint_of(found) == "events() needs id=, the column of ids of the events"
    numbered = quiet_match(frame, PAIR, seq=None, id=None)
    assert "made without id=, so their ids are numbers in a partition" in complaint_of(numbered, id="n")
    composed = f"FROM ({PAIR.replace(' OUTPUT LONGEST NON OVERLAP', '')}) AS T PATTERN SEQ(T t, T u) WITHIN 9"
    inner = quiet_match(frame, composed, seq=None, id="n")
    assert "binds matches of its inner queries" in complaint_of(inner, id="n")
    assert complaint_of(found, id="note") == "the ids in `note` are string, and those of the matches bigint"
    assert complaint_of(found, id="m") == "there is no column `m`"
    assert complaint_of(found, id="n", ts="at") == "there is no column `at`"
    with pytest.raises(DataError) as unnamed:
        acep.spark.events(found, frame.withColumnRenamed("ts", "at"), id="n")
    assert str(unnamed.value.hint).startswith("name the column with ts=; ")
    stream = spark.readStream.format("rate").load().selectExpr("value AS n", "timestamp AS ts")
    assert (
        complaint_of(found, stream, id="n") == "the events are a stream, and matches are joined with a batch DataFrame"
    )
