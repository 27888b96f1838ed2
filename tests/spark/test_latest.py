"""``latest=`` on Spark: an event from far ahead is counted, and the stream goes on for all others."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import DataError, QueryError
from acep.spark import for_each_batch
from acep.spark.chunks import ORDER, ROW
from acep.spark.metrics import Progress
from acep.spark.replay import replay
from tests.spark.by_hand import as_rows, rows_that_differ
from tests.spark.streams import Folder, as_dicts, events_table, quiet_match
from tests.thinned import thinned

pytestmark = pytest.mark.long

QUERY = acep.regex("ab", within="20 seconds", by="k")
SIZE = 240
OPTIONS: dict[str, Any] = {"watermark": "3 seconds", "buckets": 4}


def with_far_events(at: dt.datetime) -> pa.Table:
    """Random events of 2024. Two of the second file come from far ahead: of a type that the query has, and of
    another."""
    table = events_table(SIZE, disorder=2)
    times = table.schema.field("ts").type
    own = {"ts": pa.array([at] * 2, times), "type": pa.array(["a", "d"]), "k": pa.array(["x", "y"])}
    own |= dict.fromkeys((ORDER, ROW), pa.array([SIZE, SIZE + 1], pa.int64()))
    far = pa.table({name: own.get(name, table.column(name).slice(0, 2)) for name in table.column_names})
    return pa.concat_tables([table.slice(0, 80), far, table.slice(80)]).combine_chunks()


def run(stream: Folder, route: str, **options: Any) -> tuple[list[dict[str, Any]], list[Progress]]:
    options = OPTIONS | options
    if route == "store":
        return stream.run(quiet_match(stream.frame(), QUERY, state="spark", **options))
    if route == "files":
        return stream.run(quiet_match(stream.frame(), QUERY, state=stream.path / "state", **options))
    found, told = list[dict[str, Any]](), list[Progress]()
    step = for_each_batch(
        QUERY,
        lambda frame, batch: found.extend(as_dicts(frame)),
        state=stream.path / "state",
        progress=told.append,
        **{"seq": ORDER, "id": ROW} | options,
    )
    writer = stream.frame().writeStream.foreachBatch(step).trigger(availableNow=True)
    writer.option("checkpointLocation", str(stream.path / "each")).start().awaitTermination()
    return found, told


@pytest.mark.parametrize(
    ("route", "latest"),
    [("store", "1 hour"), pytest.param("files", "1 hour", marks=pytest.mark.whole), ("each", "2024-06-01")],
)
def test_an_event_from_far_ahead_does_not_end_the_stream_for_others(spark: Any, route: str, latest: str) -> None:
    table = with_far_events(dt.datetime.now(dt.UTC) + dt.timedelta(days=400))
    exact = as_rows(acep.match(events_table(SIZE), QUERY, seq=ORDER, id=ROW))
    found, told = run(Folder(spark, table, 80), route, latest=latest)
    assert rows_that_differ(found, exact) == ""
    keyed = sum(k is not None for k in table.column("k").to_pylist())
    assert (told[-1].late, told[-1].ahead, told[-1].events) == (0, 2, keyed - 2)
    assert "2 too far ahead" in told[-1].line
    assert told[-1].report.refused == "2 events were too far ahead"
    assert not told[-1].report.exact


@pytest.mark.parametrize("route", thinned(["store", "each"], 2, pytest.mark.whole))
def test_without_a_bound_progress_says_that_most_rows_are_late(spark: Any, route: str) -> None:
    table = with_far_events(dt.datetime(2090, 1, 1, tzinfo=dt.UTC))
    _, told = run(Folder(spark, table, 80), route)
    assert told[-1].ahead == 0
    assert told[-1].late > 50
    assert any("most rows are late: did one come from far ahead? (latest=)" in one.line for one in told)


def test_a_micro_batch_that_is_tried_again_has_the_bound_that_it_had(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = dt.datetime.now(dt.UTC)
    table = with_far_events(now + dt.timedelta(hours=2))
    stream, found, fails = Folder(spark, table, 80), list[dict[str, Any]](), [1]

    def sink(frame: Any, batch: int) -> None:
        rows = as_dicts(frame)
        if batch in fails:
            fails.remove(batch)
            raise RuntimeError("the sink fails")
        found.extend(rows)

    told = list[Progress]()
    options = {"seq": ORDER, "id": ROW, "state": stream.path / "state", "latest": "1 hour"} | OPTIONS

    def go() -> None:
        step = for_each_batch(QUERY, sink, progress=told.append, **options)
        writer = stream.frame().writeStream.foreachBatch(step).trigger(availableNow=True)
        writer.option("checkpointLocation", str(stream.path / "each")).start().awaitTermination()

    with pytest.raises(Exception, match="the sink fails"):
        go()
    clock = time.time
    monkeypatch.setattr("acep.spark.foreach.foreach_batch_run.time.time", lambda: clock() + 86_400)
    go()
    assert told[-1].ahead == 2
    assert rows_that_differ(found, as_rows(acep.match(events_table(SIZE), QUERY, seq=ORDER, id=ROW))) == ""


def test_a_watermark_that_the_frame_has_cannot_be_bounded_in_sparks_own_state(spark: Any, tmp_path: Path) -> None:
    frame = Folder(spark, events_table(9), 9).frame().withWatermark("ts", "3 seconds")
    with pytest.raises(DataError, match="which every row moves"):
        quiet_match(frame, QUERY, latest="1 hour", state="spark")
    assert quiet_match(frame, QUERY, latest="1 hour", state=tmp_path).isStreaming


def test_a_batch_takes_no_bound(spark: Any) -> None:
    frame = spark.createDataFrame([(1, "a")], "ts long, type string")
    with pytest.raises(QueryError, match="latest= is of a stream, and this is no stream"):
        quiet_match(frame, acep.regex("ab", within=5), latest=5, seq="ts", id=None)


def test_a_replay_takes_one(spark: Any) -> None:
    table = pa.table({"ts": [1, 10**9, 2, 3], "type": list("axba")})
    done = replay(acep.regex("ab", within=5), table, watermark=1, latest=1000, chunk=2, session=spark)
    assert (done.matches, done.late, done.report.ahead) == (1, 0, 1)
    assert "1 event was too far ahead" in str(done)
