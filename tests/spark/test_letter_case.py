"""Names of columns on Spark are found without regard to case, unless the session has it, as Spark itself finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import acep
import acep.spark
from acep.errors import DataError, QueryError
from acep.spark.columns.letter_case import SETTING
from tests.spark.by_hand import as_rows, same
from tests.spark.streams import Folder, as_dicts, events_table, quiet_match

COLUMNS = "TS long, Type string, Dev struct<ID: string, Tags: array<struct<Name: string>>>, N long"
ROWS = [
    (1, "a", ("x", [("s",)]), 0),
    (2, "a", ("y", [("t",)]), 1),
    (3, "b", ("x", [("s",)]), 2),
    (4, "b", ("y", [("s",)]), 3),
]
ROLES = {"seq": "n", "id": "n"}


@pytest.fixture
def events(spark: Any) -> Any:
    return spark.createDataFrame(ROWS, COLUMNS)


@pytest.fixture
def exact_case(spark: Any) -> Iterator[None]:
    spark.conf.set(SETTING, "true")
    yield
    spark.conf.unset(SETTING)


def bindings(result: Any) -> list[dict[str, list[int]]]:
    return sorted((row["bindings"] for row in as_dicts(result)), key=repr)


@pytest.mark.long
def test_options_and_queries_name_columns_in_any_case(events: Any) -> None:
    query = "PATTERN SEQ(a p, b q) WHERE [dev.Id] AND q.dev.tags[1].NAME = 's' AND q.N > 0 WITHIN 5 RETURN p.n AS m"
    with pytest.raises(QueryError, match="the queries write one column as `N` and as `n`"):
        acep.spark.match(events, query, **ROLES)
    result = acep.spark.match(events, query.replace("q.N", "q.n"), **ROLES)
    assert [field.name for field in result.schema["key"].dataType] == ["dev.Id"]
    assert bindings(result) == [{"p": [0], "q": [2]}, {"p": [1], "q": [3]}]
    assert acep.spark.match(events, query.replace("q.N", "q.n"), **ROLES, ts="ts", type="TYPE").count() == 2


@pytest.mark.long
def test_a_result_is_called_as_the_query_writes_it(events: Any) -> None:
    query = "PATTERN SEQ(a p, b q) WHERE [dev.id] WITHIN 5 RETURN p.TS, q.n"
    result = acep.spark.match(events, query, **ROLES, flat=True)
    assert result.columns == ["dev.id", "start", "end", "error", "p", "q", "bundle", "p_TS", "q_n"]
    assert [(row["dev.id"], row.p_TS, row.q_n) for row in result.collect()] == [("x", 1, 2), ("y", 2, 3)]


def test_an_exact_name_comes_first_and_a_doubtful_one_is_refused(spark: Any) -> None:
    frame = spark.createDataFrame([(1, "a", 1, 2), (2, "b", 3, 2)], "ts long, type string, `user` long, `USER` long")
    with pytest.raises(DataError, match="`User` may be `USER` and `user`, which differ only in case") as refused:
        quiet_match(frame, "PATTERN SEQ(a a, b b) WHERE [User] WITHIN 5", seq="ts", id="ts")
    assert SETTING in str(refused.value.hint)
    assert "\n" not in refused.value.message


@pytest.mark.long
@pytest.mark.usefixtures("exact_case")
def test_a_session_with_regard_to_case_keeps_to_it(events: Any) -> None:
    query = "PATTERN SEQ(a p, b q) WHERE [Dev.ID] WITHIN 5"
    with pytest.raises(DataError, match="there is no column `ts`"):
        acep.spark.match(events, query, seq="N", id="N", type="Type")
    with pytest.raises(QueryError, match=r"unknown column `dev\.id`"):
        acep.spark.match(events, query.replace("Dev.ID", "dev.id"), ts="TS", seq="N", id="N", type="Type")
    assert acep.spark.match(events, query, ts="TS", seq="N", id="N", type="Type").count() == 2


@pytest.mark.long
def test_a_query_of_any_type_sees_no_types_in_another_column(spark: Any) -> None:
    """It never did, and its stored states go on."""
    frame = spark.createDataFrame([(1, 7, 1), (2, 8, 1)], "ts long, TYPE int, k long")
    query = "PATTERN SEQ(ANY a, ANY b) WHERE [K] WITHIN 5"
    assert quiet_match(frame, query, seq="ts", id="ts").count() == 1
    with pytest.raises(DataError, match=r"`type`|`TYPE`"):
        quiet_match(frame, query.replace("ANY b", "b b"), seq="ts", id="ts")


@pytest.mark.long
def test_an_automaton_finds_columns_in_any_case(events: Any) -> None:
    arcs = [
        acep.arc("begin", "open", "e.type = 'a'", bind="p"),
        acep.arc("open", "open", "e.type = 'a' OR e.n < 2", ignorable=True),
        acep.arc("open", "end", "e.type = 'b'", bind="q"),
    ]
    automaton = acep.Automaton(arcs, final="end", keys=["dev.id"], window=9)
    assert bindings(acep.spark.match(events, automaton, **ROLES)) == [{"p": [0], "q": [2]}, {"p": [1], "q": [3]}]


@pytest.mark.long
def test_matches_of_matches_have_names_of_their_own(events: Any) -> None:
    """``n`` of the outer query is a value of the inner one, and not the column ``N``."""
    query = (
        "FROM (PATTERN SEQ(a p, b q) WHERE [dev.id] WITHIN 5 RETURN q.N AS n) AS pair"
        " PATTERN SEQ(pair x, pair y) WHERE y.n > x.n WITHIN 9"
    )
    with pytest.warns(UserWarning, match="one bucket"):
        assert acep.spark.match(events, query, **ROLES).count() == 1


@pytest.mark.long
def test_other_functions_find_columns_alike(events: Any) -> None:
    matches = acep.spark.match(events, "PATTERN SEQ(a p, b q) WHERE [dev.id] WITHIN 5", **ROLES)
    bound = acep.spark.events(matches, events, id="n", ts="ts")
    assert sorted(row.N for row in bound.collect()) == [0, 1, 2, 3]
    (row,) = acep.spark.punctuation(events, until=9, watermark=1, type="TYPE").collect()
    assert (row.TS, row.Type) == (11, "acep.punctuation")
    with pytest.raises(DataError, match="there is no column `type`"):  # queries of any type would take it for an event
        acep.spark.punctuation(events, until=9, watermark=1)


TABLE = events_table(100, seed=11)
QUERY = "PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [K] } WITHIN 30 seconds"


def renamed(table: pa.Table) -> pa.Table:
    return table.rename_columns([{"ts": "Ts", "type": "Type"}.get(name, name) for name in table.column_names])


@pytest.mark.long
@pytest.mark.parametrize("state", [None, pytest.param("spark", marks=pytest.mark.long)])
def test_a_stream_finds_columns_in_any_case(spark: Any, state: str | None) -> None:
    folder = Folder(spark, renamed(TABLE), 100, ts="Ts")
    result = quiet_match(folder.frame(), QUERY, watermark="5 seconds", state=state)
    rows, _ = folder.run(result)
    expected = acep.match(TABLE, QUERY.replace("[K]", "[k]"), seq="__order", id="__row")
    assert same([row | {"key": {"k": row["key"]["K"]}} for row in rows], as_rows(expected))
    assert rows


@pytest.mark.long
@pytest.mark.parametrize("on_driver", [True, pytest.param(False, marks=pytest.mark.long)])
def test_for_each_batch_finds_columns_in_any_case(spark: Any, on_driver: bool) -> None:
    """Also where the query writes the time column, which has a watermark, in another case."""
    folder = Folder(spark, renamed(TABLE), 100, ts="Ts")
    rows: list[dict[str, Any]] = []

    def sink(matches: Any, _: int) -> None:
        rows.extend((matches if on_driver else matches.toArrow()).to_pylist(maps_as_pydicts="strict"))

    options: dict[str, Any] = {"seq": "__ORDER", "id": "__row", "state": folder.path / "state"}
    step = acep.spark.for_each_batch(f"{QUERY} RETURN q.TS AS at", sink, on_driver=on_driver, **options)
    writer = folder.frame().withWatermark("ts", "5 seconds").writeStream.foreachBatch(step)
    writer = writer.option("checkpointLocation", str(folder.path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    expected = acep.match(TABLE, QUERY.replace("[K]", "[k]"), seq="__order", id="__row")
    assert sorted(row["key"]["K"] for row in rows) == sorted(str(match.key["k"]) for match in expected)
    assert all(row["values"]["at"] == row["end"] for row in rows)
    assert rows


@pytest.mark.long
def test_a_clause_over_a_stream_takes_options_in_any_case(spark: Any) -> None:
    folder = Folder(spark, renamed(TABLE), 100, ts="Ts")
    clause = "PARTITION BY K ORDER BY TS MEASURES A.__ROW AS r PATTERN (A B) DEFINE A AS TYPE = 'a', B AS Type = 'b'"
    result = acep.spark.match_recognize(
        folder.frame(), clause, ts="ts", seq="__ORDER", id="__ROW", watermark="5 seconds"
    )
    rows, _ = folder.run(result)
    expected = acep.match_recognize(TABLE.sort_by("__order"), clause.replace("ORDER BY TS", "ORDER BY TS, __order"))
    assert sorted(row["r"] for row in rows) == sorted(expected["r"].to_pylist())
    assert rows
