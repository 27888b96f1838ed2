"""Batch and streaming DataFrames give what one process gives; disorder, late events, state and restarts."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import DataError, SnapshotError
from acep.spark import error_in, match, punctuation
from acep.spark.listening import listener
from acep.spark.metrics import Progress
from tests.spark.by_hand import as_rows, numbered, rows_that_differ
from tests.spark.streams import Folder, as_dicts, events_table, quiet_match
from tests.thinned import thinned

QUERIES = {
    "kleene": acep.parse(
        "PATTERN SEQ(a+ p[], b q) WHERE skip_till_next_match(p[], q) { [k] AND p[i].x >= p[i-1].x } "
        "WITHIN 30 seconds RETURN count(p[]) AS n, avg(p[].x) AS mean, q.ts AS t, q.type AS y"
    ),
    "errors": acep.regex("a(b|c)db", within="1 minute", by="k", errors=1, weights={"d": 0.5}),
    "trailing": acep.parse("PATTERN SEQ(a p, b q, ~c r) WHERE skip_till_any_match(p, q) { [k, l] } WITHIN 9 seconds"),
    "day": acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [day] } WITHIN 9 seconds"),
    "strict": acep.regex("ab", within="1 hour", strategy="strict_contiguity"),
    "alone": acep.parse("PATTERN SEQ(c p, d q, c r) WHERE skip_till_next_match(p, q, r) WITHIN 4 seconds NON OVERLAP"),
    "composed": acep.parse(
        "FROM (PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 5 seconds RETURN q.x AS x) AS up "
        "PATTERN SEQ(up u, up v) WHERE skip_till_next_match(u, v) { [k] AND v.x > u.x } WITHIN 1 minute"
    ),
}


@pytest.fixture(params=thinned(["files", "store"], 2, pytest.mark.whole))
def route(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Options of match for each of the two ways of a stream."""
    return {"state": "spark" if request.param == "store" else tmp_path / "state"}


def of_query(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The rows of one query among several, without what only others have."""
    out = []
    for row in rows:
        if row["query"] == name:
            own = {column: value for column, value in row.items() if column != "query"}
            own["key"] = {n: v for n, v in row["key"].items() if v is not None}
            own["values"] = {n: v for n, v in (row["values"] or {}).items() if v is not None}
            out.append({column: value for column, value in own.items() if value or column not in ("key", "values")})
    return out


def without_nulls(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for row in rows:
        row["values"] = {n: v for n, v in row.get("values", {}).items() if v is not None}
    return [{column: value for column, value in row.items() if value or column != "values"} for row in rows]


@pytest.mark.long
def test_several_queries_over_batch_and_stream_in_disorder(spark: Any, route: dict[str, Any]) -> None:
    table = events_table(400)
    exact = {name: without_nulls(as_rows(acep.match(table, query))) for name, query in QUERIES.items()}
    assert all(exact.values())
    batch = quiet_match(spark.createDataFrame(table), QUERIES)
    assert [f.name for f in batch.schema["key"].dataType.fields] == ["k", "l", "day"]
    assert batch.schema["error"].dataType.typeName() == "double"
    assert batch.schema["start"].dataType.typeName() == "timestamp"
    folder = Folder(spark, events_table(400, disorder=25), 100)
    stream = quiet_match(folder.frame(), QUERIES, watermark="25 seconds", **route)
    assert stream.isStreaming
    assert stream.schema == batch.schema
    streamed, told = folder.run(stream)
    for rows in (as_dicts(batch), streamed):
        for name, expected in exact.items():
            assert rows_that_differ(of_query(rows, name), expected) == "", name
    assert told[-1].late == 0
    assert told[-1].held == 0
    assert told[-1].matches == sum(map(len, exact.values()))
    # Three passes take the events: those with k (or with l and k), those with the day, and the whole stream.
    assert told[0].events < 3 * 100


@pytest.mark.long
@pytest.mark.parametrize("route", thinned(["store", "files"], 2, pytest.mark.whole), indirect=True)
def test_late_events_are_counted(spark: Any, route: dict[str, Any]) -> None:
    table = events_table(200)
    early, late = table.slice(0, 180), table.slice(0, 20)
    folder = Folder(spark, pa.concat_tables([early, late, table.slice(180)]), 90)
    told: list[Progress] = []
    listens = listener(told.append)
    spark.streams.addListener(listens)
    try:
        rows, progress = folder.run(quiet_match(folder.frame(), QUERIES["alone"], watermark="10 seconds", **route))
        # Listeners are told in a thread of their own, which may be behind the query.
        patience = time.monotonic() + 60
        while len(told) < len(progress) and time.monotonic() < patience:
            time.sleep(0.05)
    finally:
        spark.streams.removeListener(listens)
    # The second file lets go what is older than the watermark of the first; of that, all comes too late in the third.
    assert progress[-1].late == 20
    assert progress[-1].events == 200
    assert rows_that_differ(rows, as_rows(acep.match(table, QUERIES["alone"]))) == ""
    assert [one.batch for one in told] == [one.batch for one in progress]
    assert told[-1] == progress[-1]


def times(kind: str) -> tuple[pa.Array, dict[str, Any], Any, str]:
    """A time column, options of the query, the delay of the watermark and the window's text."""
    steps = [0, 1, 1, 2, 5, 6, 8, 9]
    day = dt.datetime(2024, 10, 26)
    if kind == "ticks":
        return pa.array([2 * 10**15 + s for s in steps], pa.int64()), {}, 2, "3"
    if kind == "seconds":
        return pa.array([1_700_000_000 + s for s in steps], pa.int32()), {"unit": "s"}, "2 seconds", "3 seconds"
    if kind == "nanoseconds":
        moments = [1_700_000_000_000_000_001 + s * 1_000_000 for s in steps]
        return pa.array(moments, pa.int64()), {"unit": "ns"}, 2_000_000, "3 ms"
    if kind == "date":
        return pa.array([(day + dt.timedelta(days=s)).date() for s in steps]), {}, "2 days", "3 days"
    return pa.array([day + dt.timedelta(hours=s) for s in steps], pa.timestamp("us")), {}, "2 hours", "3 hours"


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", thinned(["ticks", "seconds", "nanoseconds", "date", "without zone"], 4, pytest.mark.whole)
)
def test_times_of_every_kind(spark: Any, kind: str) -> None:
    column, options, delay, within = times(kind)
    table = numbered(pa.table({"ts": column, "type": list("aabbabab"), "k": list("uvuvuuvv")}), **options)
    query = acep.parse(f"PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) {{ [k] }} WITHIN {within}")
    exact = as_rows(acep.match(table, query, **options))
    assert exact
    # A zone whose clocks are put back in the middle of the stream must not bear on anything.
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    try:
        assert rows_that_differ(as_dicts(quiet_match(table, query, **options)), exact) == ""
        folder = Folder(spark, table.take([1, 0, 2, 3, 4, 6, 5, 7]), 4)
        ways = [{"state": "spark"}, {"state": folder.path / "state"}]
        runs = [
            folder.run(quiet_match(folder.frame(), query, watermark=delay, **options, **way), f"out{i}")
            for i, way in enumerate(ways)
        ]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    for rows, told in runs:
        assert rows_that_differ(rows, exact) == ""
        assert told[-1].late == 0
        assert told[-2].held < len(table), "events are let go before the end"


@pytest.mark.long
def test_a_watermark_of_ones_own(spark: Any) -> None:
    table = events_table(60)
    folder = Folder(spark, table, 30)
    stream = folder.frame().withWatermark("ts", "5 seconds").filter("x is null or x > 0")
    rows, told = folder.run(quiet_match(stream, QUERIES["kleene"], buckets=2))
    assert rows_that_differ(without_nulls(rows), without_nulls(as_rows(acep.match(table, QUERIES["kleene"])))) == ""
    assert told[0].matches < told[-1].matches
    with pytest.raises(DataError, match="has a watermark already"):
        quiet_match(stream, QUERIES["kleene"], watermark="5 seconds")


@pytest.mark.long
def test_a_source_that_delivers_events_twice_is_cleared_before(spark: Any, route: dict[str, Any]) -> None:
    table = events_table(60)
    table = table.append_column("number", pa.array(range(60)))
    twice = pa.concat_tables([table.slice(0, 40), table.slice(30)])
    stream = Folder(spark, twice, 35)
    once = stream.frame().withWatermark("ts", "30 seconds").dropDuplicatesWithinWatermark(["number"])
    rows, _ = stream.run(quiet_match(once, QUERIES["kleene"], id="number", buckets=2, **route))
    assert rows
    exact = as_rows(acep.match(table, QUERIES["kleene"], id="number"))
    assert rows_that_differ(without_nulls(rows), without_nulls(exact)) == ""


@pytest.mark.long
def test_a_stream_without_an_end_holds_the_last_events_until_it_goes_on(spark: Any, route: dict[str, Any]) -> None:
    table = events_table(100)
    query = QUERIES["alone"]
    folder = Folder(spark, table, 50, end=False)
    exact = as_rows(acep.match(table, query))
    first, told = folder.run(quiet_match(folder.frame(), query, watermark="10 seconds", **route))
    assert len(first) < len(exact)
    assert told[-1].held
    # What ends a stream can be written as a DataFrame, too.
    punctuation(folder.spark.read.schema(folder.columns).parquet(str(folder.path / "events"))).coalesce(1).write.mode(
        "append"
    ).parquet(str(folder.path / "events"))
    rows, told = folder.run(quiet_match(folder.frame(), query, watermark="10 seconds", **route))
    assert rows_that_differ(rows, exact) == ""
    assert (told[-1].held, told[-1].events) == (0, 100)


@pytest.mark.long
@pytest.mark.parametrize(
    ("state", "message", "hint"),
    [
        ("spark", "the checkpoint was made by another query", "nothing was lost"),
        (None, "there is that of another query, or of other options", "go on with the query and the options"),
    ],
)
def test_another_query_on_an_old_checkpoint(spark: Any, state: str | None, message: str, hint: str) -> None:
    table = events_table(90)
    query = acep.regex("ab", within="10 seconds", by="k")
    folder = Folder(spark, table, 45, end=False)
    folder.run(quiet_match(folder.frame(), query, watermark="5 seconds", state=state))
    folder.end()
    other = acep.regex("ab", within="11 seconds", by="k")
    with pytest.raises(Exception, match="STREAM_FAILED") as failed:
        folder.run(quiet_match(folder.frame(), other, watermark="5 seconds", state=state))
    told = error_in(failed.value)
    assert isinstance(told, SnapshotError)
    assert message in told.message
    assert len(told.render().splitlines()) == 2
    assert told.hint is not None
    assert hint in told.hint
    rows, _ = folder.run(quiet_match(folder.frame(), query, watermark="5 seconds", state=state))
    assert rows_that_differ(rows, as_rows(acep.match(table, query))) == ""


@pytest.mark.long
def test_a_batch_that_is_run_again_gives_the_same(spark: Any, route: dict[str, Any]) -> None:
    folder = Folder(spark, events_table(120), 40)
    stream = quiet_match(folder.frame(), QUERIES["kleene"], watermark="1 minute", **route)
    checkpoint = folder.path / "checkpoint"
    given: dict[int, list[list[dict[str, Any]]]] = {}

    def keep(rows: Any, number: int) -> None:
        given.setdefault(number, []).append(as_dicts(rows))

    def run() -> None:
        writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    run()
    # With its own state Spark adds a micro-batch without rows.
    last = max(number for number, (rows,) in given.items() if rows)
    for folder_name in ("commits", "offsets"):
        for number in range(last + (folder_name == "offsets"), max(given) + 1):
            for name in (f"{number}", f".{number}.crc"):
                (checkpoint / folder_name / name).unlink(missing_ok=True)
    run()
    assert len(given[last]) == 2
    first, again = given[last]
    assert first
    assert rows_that_differ(first, again) == ""


@pytest.mark.long
def test_a_match_is_given_by_the_micro_batch_that_makes_it_certain(spark: Any, route: dict[str, Any]) -> None:
    table = numbered(pa.table({"ts": [10, 11, 13, 20, 21, 30], "type": list("abcabc"), "k": list("xxxxxx")}))
    folder = Folder(spark, table, 3)
    query = acep.parse("PATTERN SEQ(a p, b q, ~d r) WHERE skip_till_next_match(p, q) { [k] } WITHIN 2")
    _, told = folder.run(quiet_match(folder.frame(), query, watermark=1, **route))
    given = {one.batch: one.matches for one in told}
    assert (given[0], given[1], told[-1].matches) == (0, 2, 2)
    plain = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 2")
    _, told = folder.run(quiet_match(folder.frame(), plain, watermark=1, **route), "plain")
    given = {one.batch: one.matches for one in told}
    assert (given[0], given[1], told[-1].matches) == (1, 2, 2)


# State in files --------------------------------------------------------------------------------


@pytest.mark.long
def test_another_query_or_another_folder_is_refused(spark: Any, tmp_path: Path) -> None:
    table = events_table(90)
    query = acep.regex("ab", within="10 seconds", by="k")
    folder = Folder(spark, table, 45, end=False)
    options: dict[str, Any] = {"watermark": "5 seconds", "state": tmp_path / "state"}
    folder.run(quiet_match(folder.frame(), query, **options))
    folder.end()
    for other, hint in (
        (
            quiet_match(folder.frame(), acep.regex("ab", within="11 seconds", by="k"), **options),
            "go on with the query and the options",
        ),
        (
            quiet_match(folder.frame(), query, **options | {"state": tmp_path / "other"}),
            "use the state= folder and the query",
        ),
    ):
        with pytest.raises(Exception, match="STREAM_FAILED") as failed:
            folder.run(other)
        told = error_in(failed.value)
        assert isinstance(told, SnapshotError)
        assert "has not the state of all 8 buckets after micro-batch 1" in told.message
        assert hint in (told.hint or "")
    rows, _ = folder.run(quiet_match(folder.frame(), query, **options))
    assert rows_that_differ(rows, as_rows(acep.match(table, query))) == ""


@pytest.mark.long
def test_what_stands_behind_the_match(spark: Any, tmp_path: Path) -> None:
    table = events_table(120)
    query = acep.regex("ab", within="10 seconds", by="k")
    exact = as_rows(acep.match(table, query))
    folder = Folder(spark, table, 60)

    def found(name: str) -> Any:
        return quiet_match(folder.frame(), query, watermark="5 seconds", state=tmp_path / name, buckets=4)

    rows, _ = folder.run(found("one").repartition(1), "one")
    assert rows_that_differ(rows, exact) == ""
    rows, _ = folder.run(found("two").where("error = 0").select("*"), "two")
    assert rows_that_differ(rows, exact) == ""
    rows, _ = folder.run(found("three").coalesce(1), "three")
    assert rows_that_differ(rows, exact) == ""
    turned = acep.regex("ba", within="9 seconds", by="k")
    other = quiet_match(folder.frame(), turned, watermark="5 seconds", buckets=4)
    rows, _ = folder.run(other.select("start", "end").union(found("four").select("start", "end")), "four")
    both = [*exact, *as_rows(acep.match(table, turned))]
    assert Counter((row["start"], row["end"]) for row in rows) == Counter((row["start"], row["end"]) for row in both)


@pytest.mark.long
def test_a_windowed_aggregation_behind_the_match(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as sf

    table = events_table(400)
    query = acep.regex("ab", within="10 seconds", by="k")
    ends = [row["end"] for row in as_rows(acep.match(table, query))]
    folder = Folder(spark, table, 100)
    found = quiet_match(folder.frame(), query, watermark="5 seconds", state=tmp_path / "state")
    minutes = found.withWatermark("end", "30 seconds").groupBy(sf.window("end", "1 minute")).count()
    minutes = minutes.select(sf.col("window.start").alias("at"), "count")
    rows, _ = folder.run(minutes)
    given = {row["at"].replace(tzinfo=None): row["count"] for row in rows}
    exact = Counter(end.replace(second=0, tzinfo=None) for end in ends)
    # The last windows stay open, as no match comes that would close them.
    assert len(given) >= 4
    assert given.items() <= exact.items()


def test_state_is_of_a_stream(spark: Any, tmp_path: Path) -> None:
    query = acep.regex("ab", within=5, by="k")
    with pytest.raises(acep.QueryError, match="state= is of a stream"):
        quiet_match(numbered(pa.table({"ts": [1], "type": ["a"], "k": [1]})), query, state=tmp_path)
    stream = spark.readStream.schema("ts long, type string, k long, n long").parquet(str(tmp_path))
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file", 5, ""):
        with pytest.raises(DataError, match="state"):
            quiet_match(stream, query, seq="n", id="n", watermark=1, state=bad)


# Mistakes ---------------------------------------------------------------------------------------


def test_mistakes_in_the_events_are_told(spark: Any) -> None:
    table = numbered(pa.table({"ts": [1, 2, 3], "type": list("abc")}))
    broken = table.set_column(0, "ts", pa.array([1, None, 3], pa.int64()))
    query = acep.regex("ab", within=5)
    with pytest.raises(Exception, match="Python worker") as failed:
        quiet_match(spark.createDataFrame(broken), query).collect()
    told = error_in(failed.value)
    assert isinstance(told, DataError)
    assert told.message == "column `ts` is null in some event"
    assert told.hint == "fill it in, or drop the row"
    far = Folder(spark, numbered(pa.table({"ts": [10**17], "type": ["a"]})), 5)
    with pytest.raises(Exception, match="STREAM_FAILED") as failed:
        far.run(quiet_match(far.frame(), query, watermark=1, state="spark"))
    told = error_in(failed.value)
    assert isinstance(told, DataError)
    assert "needs unit=" in told.message
    assert error_in(ValueError("something else")) is None


def test_a_stream_needs_a_watermark(spark: Any, tmp_path: Path) -> None:
    stream = spark.readStream.schema("ts timestamp, type string, n bigint").parquet(str(tmp_path))
    query = acep.regex("ab", within="1 minute")
    with pytest.raises(DataError, match="a stream needs a watermark"):
        quiet_match(stream, query, seq="n", id="n")
    for bad, said in (("10", "has no unit"), (5, "needs a unit of time"), (1.5, "takes a text")):
        with pytest.raises(DataError, match=said):
            quiet_match(stream, query, seq="n", id="n", watermark=bad)
    numbers = spark.readStream.schema("ts bigint, type string").parquet(str(tmp_path))
    with pytest.raises(DataError, match="how long a tick"):
        quiet_match(numbers, acep.regex("ab", within=5), seq=None, id=None, watermark="5 seconds")


def test_warnings(spark: Any) -> None:
    frame = spark.createDataFrame(pa.table({"ts": [1], "type": ["a"], "k": [1]}))
    with pytest.warns(UserWarning, match="ties in `ts` are broken by the other columns") as told:
        match(frame, acep.regex("ab", within=5, by="k"))
    assert len(told) == 1
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="one bucket") as told:
        match(frame, acep.regex("ab", within=5), seq="k")
    assert len(told) == 1
