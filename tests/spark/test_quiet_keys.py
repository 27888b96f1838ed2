"""On Spark itself: a run with one micro-batch gives all that it makes certain, also of keys that have no rows in it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import acep
from acep.spark import for_each_batch
from tests.spark.schedules import table_of
from tests.spark.streams import as_dicts, quiet_match
from tests.thinned import thinned, thinned_product

pytestmark = pytest.mark.long

DAY, MINUTE = 86_400, 60
QUERIES = {
    "pair": acep.parse("PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { [k] } WITHIN 1 hour"),
    "silent": acep.parse("PATTERN SEQ(c x, ~b y) WHERE [k] WITHIN 10 minutes"),
}
SCHEMA = "ts long, type string, k string, n long"
DAYS = (
    [(DAY + MINUTE * (u + 9 * j), "ab"[j], f"user {u}") for u in range(20) for j in range(2)] + [(DAY, "c", "ann")],
    [(2 * DAY, "c", "user 3")],
    [(3 * DAY, None, None)],
    [(3 * DAY + 5 * MINUTE, "a", "user 4"), (3 * DAY + 6 * MINUTE, "b", "user 4")],
    [(4 * DAY, "heartbeat", None)],
)
"""The file of each day: 20 users and one who falls silent; one event; a heartbeat without type; two; a heartbeat."""
CERTAIN = [
    {},
    {"pair": 20, "silent": 1},
    {"pair": 20, "silent": 2},
    {"pair": 20, "silent": 2},
    {"pair": 21, "silent": 2},
]


def runs(spark: Any, folder: Path, run: Callable[[Any], None], counted: Callable[[], Counter[str]]) -> list[Any]:
    """How many matches of each query there are after each run; each is an ``availableNow`` with one file."""
    (folder / "events").mkdir()
    numbers, counts = iter(range(1_000)), []
    for day, rows in enumerate(DAYS):
        table = table_of([{"ts": t, "type": kind, "k": key, "n": next(numbers)} for t, kind, key in rows])
        pq.write_table(table.select(["ts", "type", "k", "n"]), folder / "events" / f"{day}.parquet")
        run(spark.readStream.schema(SCHEMA).parquet(str(folder / "events")))
        counts.append(dict(counted()))
    return counts


OPTIONS: dict[str, Any] = {"id": "n", "seq": "n", "unit": "s", "watermark": "1 hour", "buckets": 8}


@pytest.mark.parametrize(("state", "has_watermark"), thinned_product(["files", "own"], [False, True], every=3))
def test_each_run_of_match_gives_what_is_certain(spark: Any, state: str, has_watermark: bool, tmp_path: Path) -> None:
    def run(frame: Any) -> None:
        options = OPTIONS | {"state": tmp_path / "state" if state == "files" else "spark"}
        if has_watermark:
            frame = frame.selectExpr("timestamp_seconds(ts) AS ts", "type", "k", "n").withWatermark("ts", "1 hour")
            options = {name: value for name, value in options.items() if name not in ("watermark", "unit")}
        found = quiet_match(frame, QUERIES, **options)
        writer = found.writeStream.format("parquet").option("path", str(tmp_path / "found")).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    def counted() -> Counter[str]:
        return Counter(row["query"] for row in as_dicts(spark.read.parquet(str(tmp_path / "found"))))

    schema = quiet_match(spark.createDataFrame([], SCHEMA), QUERIES, id="n", seq="n", unit="s").schema
    spark.createDataFrame([], schema).write.parquet(str(tmp_path / "found" / "none"))  # so that there is a file
    assert runs(spark, tmp_path, run, counted) == CERTAIN


@pytest.mark.parametrize("on_driver", thinned([False, True], 2, pytest.mark.whole))
def test_each_run_of_for_each_batch_gives_what_is_certain(spark: Any, on_driver: bool, tmp_path: Path) -> None:
    counts = Counter[str]()

    def sink(found: Any, _: int) -> None:
        counts.update(row["query"] for row in (found.to_pylist() if on_driver else as_dicts(found)))

    def run(frame: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step = for_each_batch(QUERIES, sink, on_driver=on_driver, state=tmp_path / "state", **OPTIONS)
        writer = frame.writeStream.foreachBatch(step).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    assert runs(spark, tmp_path, run, lambda: counts) == CERTAIN
