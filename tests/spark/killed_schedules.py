"""A driver that takes random schedules through Spark, one file a run; it may be killed at any time and begin again.

``python -m tests.spark.killed_schedules FOLDER [SETTINGS]`` goes on where the one before was killed; the settings are
those of its session, in JSON. Each folder of a schedule has
``options.json`` and ``pending/NUMBER.parquet``, the rows of each run. A run moves its file to ``events``, reads it with
a trigger that ends by itself, and then writes what has been written so far to ``rows/NUMBER.json``.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import acep.spark
from tests.spark.test_schedules import QUERIES

ROUTES = ("checkpoint", "folder", "store", "each", "driver")
"""The places of the state of :func:`acep.spark.match`, and for_each_batch on workers and on the driver."""


def take_schedule(spark: Any, folder: Path) -> None:
    """Take all runs of a schedule that are not done."""
    options = json.loads((folder / "options.json").read_text())
    numbers = sorted(int(path.stem) for name in ("pending", "events") for path in (folder / name).glob("*.parquet"))
    for number in numbers:
        if (folder / "rows" / f"{number}.json").exists():
            continue
        pending, events = (folder / name / f"{number:03}.parquet" for name in ("pending", "events"))
        if pending.exists():
            pending.rename(events)
        _run(spark, folder, options)
        rows = _rows(spark, folder)
        unfinished = folder / "rows" / f"{number}.unfinished"
        unfinished.write_text(json.dumps(rows))
        unfinished.rename(folder / "rows" / f"{number}.json")


def _run(spark: Any, folder: Path, options: dict[str, Any]) -> None:
    schema = "ts bigint, type string, k string, n bigint, sent bigint, op bigint"
    frame = spark.readStream.schema(schema).parquet(str(folder / "events"))
    query, route = QUERIES[options["query"]].query, options["route"]
    columns = {"seq": "sent", "id": "n", "watermark": options["delay"], "buckets": options["buckets"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if route in ("each", "driver"):
            step = acep.spark.for_each_batch(
                query, write_batches(spark, folder), state=folder / "state", on_driver=route == "driver", **columns
            )
            writer = frame.writeStream.foreachBatch(step)
        else:
            state = {"checkpoint": None, "folder": folder / "state", "store": "spark"}[route]
            matches = acep.spark.match(frame, query, state=state, **columns)
            writer = matches.writeStream.format("parquet").option("path", str(folder / "matches"))
        writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
        writer.start().awaitTermination()


def write_batches(spark: Any, folder: Path) -> Any:
    """Return a function for each micro-batch that writes its matches to a folder of its number."""

    def write(matches: Any, batch: int) -> None:
        frame = matches if hasattr(matches, "write") else spark.createDataFrame(matches)
        frame.write.mode("overwrite").parquet(str(folder / "matches" / f"batch={batch}"))

    return write


def _rows(spark: Any, folder: Path) -> list[dict[str, Any]]:
    """The rows that have been written: a sink of files says which are whole, and so does each folder of a batch."""
    if not any((folder / "matches").glob("**/*.parquet")):
        return []
    rows = spark.read.parquet(str(folder / "matches")).toArrow().to_pylist(maps_as_pydicts="strict")
    return [{name: row[name] for name in ("key", "bindings") if name in row} for row in rows]


def main() -> None:
    """Take all schedules in a folder, on this machine unless settings say otherwise."""
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "512m"}
    spark = acep.spark.get_session(**settings | json.loads("".join(sys.argv[2:]) or "{}"))
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        take_schedule(spark, folder)


if __name__ == "__main__":
    main()
