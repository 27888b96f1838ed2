"""``acep.spark.serve``: the live page of a query of Spark shows its progress, its end and its failure."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
import acep.spark
from acep.errors import DataError
from acep.spark.listening import _LISTENING
from acep.spark.replay import replay
from tests.spark.streams import events_table

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:the query must see the whole stream")]

QUERY = acep.regex("ab", within=5)
SCHEMA = "ts long, type string, n long"


def state_of(url: str) -> dict[str, Any]:
    with urlopen(url.replace("/?", "/state?"), timeout=10) as answer:  # noqa: S310
        state: dict[str, Any] = json.load(answer)
    return state


def await_state(url: str, holds: Callable[[dict[str, Any]], bool], seconds: float = 90.0) -> dict[str, Any]:
    until = time.monotonic() + seconds
    while not holds(state := state_of(url)):
        assert time.monotonic() < until, state
        time.sleep(0.1)
    return state


def add_rows(folder: Path, name: str, first: int, *, kind: pa.DataType | None = None) -> None:
    folder.mkdir(exist_ok=True)
    numbers = list(range(first, first + 20))
    table = pa.table({"ts": numbers, "type": ["a", "b"] * 10, "n": pa.array(numbers, kind or pa.int64())})
    pq.write_table(table, folder / f".{name}")
    (folder / f".{name}").rename(folder / name)


def start(spark: Any, folder: Path, **options: Any) -> Any:
    add_rows(folder / "in", "1.parquet", 0)
    stream = spark.readStream.schema(SCHEMA).parquet(str(folder / "in"))
    matches = acep.spark.match(stream, QUERY, seq="n", id="n", watermark=1, **options)
    writer = matches.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.queryName("served").start()


def test_a_running_query_is_served_and_stopped(spark: Any, tmp_path: Path) -> None:
    running = start(spark, tmp_path)
    try:
        with acep.spark.serve(running) as page:
            state = await_state(page.url, lambda state: state["points"] != [])
            assert "served" in state["query"]
            assert dict(state["facts"])["events"].startswith("20")
            assert "counted together" in state["partials"]["queries"][0][2]
            assert "sink" in state["matches"]["note"]
            add_rows(tmp_path / "in", "2.parquet", 20)
            await_state(page.url, lambda state: dict(state["facts"])["events"].startswith("40"))
            running.stop()
            assert await_state(page.url, lambda state: state["status"]["name"] == "ended")
        with pytest.raises(URLError):
            state_of(page.url)
    finally:
        running.stop()


def test_a_query_is_served_after_its_first_micro_batches_and_goes_on(spark: Any, tmp_path: Path) -> None:
    running = start(spark, tmp_path)
    try:
        running.processAllAvailable()
        page = acep.spark.serve(running)
        assert dict(await_state(page.url, lambda state: state["facts"] != [])["facts"])["events"].startswith("20")
        page.close()
        assert running.isActive
        assert not _LISTENING.get(str(running.runId))
    finally:
        running.stop()


def test_a_query_that_has_ended_is_served_as_it_was(spark: Any, tmp_path: Path) -> None:
    running = start(spark, tmp_path)
    running.processAllAvailable()
    running.stop()
    with acep.spark.serve(running) as page:
        state = state_of(page.url)
    assert state["status"]["name"] == "ended"
    assert dict(state["facts"])["events"].startswith("20")


def test_a_failure_is_shown_in_one_line(spark: Any, tmp_path: Path) -> None:
    running = start(spark, tmp_path)
    try:
        running.processAllAvailable()
        with acep.spark.serve(running) as page:
            add_rows(tmp_path / "in", "2.parquet", 0)  # with ids that came before, beyond the watermark
            null = pa.table({"ts": pa.array([None], pa.int64()), "type": ["a"], "n": [99]})
            pq.write_table(null, tmp_path / "in/3.parquet")
            state = await_state(page.url, lambda state: state["status"]["name"] in ("failed", "ended"))
            assert state["status"]["name"] == "failed"
            assert "null" in state["status"]["note"]
            assert "\n" not in state["status"]["note"]
    finally:
        running.stop()


def test_for_each_batch_is_served(spark: Any, tmp_path: Path) -> None:
    add_rows(tmp_path / "in", "1.parquet", 0)
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    options: dict[str, Any] = {"seq": "n", "id": "n", "watermark": 1, "state": tmp_path / "s"}
    step = acep.spark.for_each_batch(QUERY, lambda matches, batch: None, **options)
    running = stream.writeStream.foreachBatch(step).option("checkpointLocation", str(tmp_path / "c")).start()
    try:
        with acep.spark.serve(running) as page:
            running.processAllAvailable()
            add_rows(tmp_path / "in", "2.parquet", 20)
            state = await_state(page.url, lambda state: state["facts"] != [])
            assert dict(state["facts"])["events"].startswith(("20", "40"))
    finally:
        running.stop()


def test_a_replay_on_spark_is_served(spark: Any) -> None:
    table = events_table(300).drop_columns(["__order", "__row"])
    query = acep.regex("a(b|c)d", within="20 seconds", by="k", errors=1)
    with acep.LivePage() as page:
        done = replay(query, table, chunk=100, page=page, session=spark)
        state = state_of(page.url)
    assert state["status"]["name"] == "ended"
    assert f"{done.events} events" in state["status"]["note"]
    assert state["status"]["can_pause"] is False
    assert "in the result of the replay" in state["matches"]["note"]


@pytest.mark.parametrize("thing", [None, "query", 5])
def test_what_is_no_query_is_refused(thing: Any) -> None:
    with pytest.raises(DataError, match="takes a running query"):
        acep.spark.serve(thing)
