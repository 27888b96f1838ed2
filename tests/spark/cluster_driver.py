"""A driver of a cluster: a stream of files by several routes at once, whose executors may be killed meanwhile.

``python -m tests.spark.cluster_driver FOLDER`` reads ``FOLDER/options.json`` (master, settings, routes, query, columns)
and ``FOLDER/events``, one file a micro-batch, until it has taken as many files as the options say. Each route has a
folder of its own for its checkpoint and its matches. The place of the state, in words, is written to
``FOLDER/places.json``.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException

import acep
import acep.spark
from acep.spark.metrics import progress_of
from acep.spark.state_choice import CHECKPOINTS, SETTING, choose_state
from tests.spark.killed_schedules import write_batches

SCHEMA = "ts bigint, type string, k string, n bigint, sent bigint, op bigint"

PRIVATE = "/proc/self/cwd/state"
"""A folder of which each executor has its own: that in which it works."""


def start_route(spark: Any, folder: Path, route: str, options: dict[str, Any]) -> Any:
    """Start the stream by a route, and return its query."""
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))
    place = folder / route
    query, columns = acep.parse(options["query"]), {"seq": "sent", "id": "n", **options["columns"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if route == "each":
            step = acep.spark.for_each_batch(query, write_batches(spark, place), state=place / "state", **columns)
            writer = frame.writeStream.foreachBatch(step)
        else:
            state = {"unnamed": None, "folder": place / "state", "private": PRIVATE}[route]
            matches = acep.spark.match(frame, query, state=state, **columns)
            writer = matches.writeStream.format("parquet").option("path", str(place / "matches"))
    return (
        writer.option("checkpointLocation", str(place / "checkpoint"))
        .trigger(processingTime="200 milliseconds")
        .start()
    )


def choices(spark: Any, folder: Path, watermark: int) -> dict[str, str]:
    """Return where a stream without ``state=`` would keep its state, and why, by what the session sets."""
    frame = spark.readStream.schema(SCHEMA).parquet(str(folder / "events"))
    lines = {"nothing": str(choose_state(frame, None, watermark))}
    for setting, value in ((CHECKPOINTS, folder / "checkpoints"), (SETTING, folder / "state")):
        spark.conf.set(setting, str(value))
        lines[setting] = str(choose_state(frame, None, watermark))
        spark.conf.unset(setting)
    # A path without a scheme is one of the file system that Hadoop has, which Python does not reach here.
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    spark.conf.set(CHECKPOINTS, "/checkpoints")
    hadoop.set("fs.defaultFS", "hdfs://localhost:1")
    lines["hdfs"] = str(choose_state(frame, None, watermark))
    hadoop.set("fs.defaultFS", "file:///")
    spark.conf.unset(CHECKPOINTS)
    return lines


def main() -> None:
    """Take the stream by all routes to its end."""
    folder = Path(sys.argv[1])
    options = json.loads((folder / "options.json").read_text())
    spark = acep.spark.get_session(**{"spark.master": options["master"], **options["settings"]})
    queries = {route: start_route(spark, folder, route, options) for route in options["routes"]}
    lines = choices(spark, folder, options["columns"]["watermark"])
    while len(list((folder / "events").iterdir())) < options["files"]:
        time.sleep(0.1)
    for route, query in queries.items():
        try:
            query.processAllAvailable()
        except StreamingQueryException as failure:
            error = acep.spark.error_in(failure)
            lines[route] = str(failure) if error is None else f"{type(error).__name__}: {error}"
            continue
        query.stop()
        # The last progress may be that of a query which waits for rows, and has no buckets.
        routes = {progress.route for each in query.recentProgress if (progress := progress_of(each)) is not None}
        if route != "each":
            lines[route] = "; ".join(routes)
    (folder / "places.json").write_text(json.dumps(lines))
    spark.stop()


if __name__ == "__main__":
    main()
