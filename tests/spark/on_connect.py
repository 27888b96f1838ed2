"""A script for a process of its own: the local server of Spark Connect, a batch and both streaming routes on it."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa

import acep
import acep.spark
from acep.spark.java import ensure_java
from acep.spark.metrics import Progress, progress_of, report_of
from tests.spark.by_hand import as_rows, same
from tests.spark.streams import as_dicts

QUERY = acep.parse(
    "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] AND q.x > p.x } WITHIN 9 RETURN q.x AS high"
)
SIZE = 120
TABLE = pa.table(
    {
        "ts": list(range(SIZE)),
        "type": ["abc"[i * 7 % 3] for i in range(SIZE)],
        "k": [i * 5 % 4 for i in range(SIZE)],
        "x": [i * 37 % 101 for i in range(SIZE)],
    }
)


def main(folder: Path) -> None:
    """Print what was told as JSON, once all answers were those of one process."""
    if (home := ensure_java()) is not None:
        os.environ["JAVA_HOME"] = home
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = acep.spark.get_session(**{"spark.remote": "local[2]"})
    assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    exact = as_rows(acep.match(TABLE, QUERY, id="ts"))
    events = spark.createDataFrame(TABLE.to_pylist(), "ts long, type string, k long, x long")
    told: dict[str, Any] = {"matches": len(exact), "batch": batch(events, exact)}
    events.where("ts < 60").coalesce(1).write.parquet(str(folder / "events"))
    events.where("ts >= 60").coalesce(1).write.mode("append").parquet(str(folder / "events"))
    acep.spark.punctuation(events).write.mode("append").parquet(str(folder / "events"))
    for name, state in (("own", None), ("files", folder / "state")):
        told[name] = stream(spark, events.schema, exact, folder, name, state)
    events.where("ts = 1").write.mode("append").parquet(str(folder / "events"))
    told["rows"] = row_patterns(spark, events)
    told["unable"] = unable(folder)
    told["refused"] = refused(spark, events.schema, folder)
    sys.stdout.write(json.dumps(told) + "\n")
    spark.stop()


def batch(events: Any, exact: list[dict[str, Any]]) -> float | None:
    """The recall of a batch under a budget that suffices."""
    from pyspark.sql import Observation

    assert same(as_dicts(acep.spark.match(events, QUERY, seq="ts", id="ts")), exact)
    capital = acep.spark.match(events, QUERY.text.replace("[k]", "[K]"), ts="TS", seq="TS", id="TS")
    assert sorted(row.key.K for row in capital.collect()) == sorted(row["key"]["k"] for row in exact)
    seen = Observation()
    found = acep.spark.match(
        events, QUERY, seq="ts", id="ts", buckets=2, observation=seen, budget=acep.Budget(work=10_000)
    )
    assert len(found.collect()) == len(exact)
    bound = acep.spark.events(acep.spark.match(events, QUERY, seq="ts", id="ts"), events, id="ts").collect()
    pairs = sorted((row.variable, row.ts) for row in bound)
    assert pairs == sorted((name, i) for row in exact for name, ids in row["bindings"].items() for i in ids)
    (beat,) = acep.spark.punctuation(events, until=59, watermark=200).collect()
    assert (beat.ts, beat.type, beat.k) == (260, "acep.punctuation", None)
    return report_of(seen).recall


def row_patterns(spark: Any, events: Any) -> list[int]:
    """How many rows a clause has by itself, in a statement and as a table function."""
    clause = "PARTITION BY k ORDER BY ts MEASURES LAST(x) AS high PATTERN (A B+) DEFINE B AS x > PREV(x)"
    events.createOrReplaceTempView("events")
    acep.spark.register_clause("rises", clause, events)
    results = (
        acep.spark.match_recognize(events, clause),
        acep.spark.sql(f"SELECT r.high FROM events MATCH_RECOGNIZE ({clause}) AS r", spark),  # noqa: S608 - ours
        spark.sql("SELECT * FROM rises(TABLE(events) PARTITION BY k)"),
    )
    return [acep.match_recognize(TABLE, clause).num_rows, *(len(result.collect()) for result in results)]


def stream(
    spark: Any, schema: Any, exact: list[dict[str, Any]], folder: Path, name: str, state: Path | None
) -> dict[str, Any]:
    """What the last micro-batch told, and how many a listener heard of."""
    heard: list[Progress] = []
    listener = acep.spark.listener(heard.append)
    spark.streams.addListener(listener)
    found = matched(spark, schema, folder, QUERY, state)
    running = write(found, folder, name)
    running.awaitTermination()
    every = [one for progress in running.recentProgress if (one := progress_of(progress)) is not None]
    until = time.monotonic() + 30
    while len(heard) < len(every) and time.monotonic() < until:
        time.sleep(0.1)
    spark.streams.removeListener(listener)
    assert same(as_dicts(spark.read.schema(found.schema).parquet(str(folder / name))), exact)
    assert heard == every, f"{heard}\n{every}"
    last = every[-1]
    spent = last.spent.spark + last.spent.transfer + last.spent.matching
    whole = abs(spent - last.seconds) < 1e-6
    return {"events": last.events, "matches": last.matches, "live": last.live, "whole": whole}


def unable(folder: Path) -> str:
    """What is said where a function is to be called in the driver."""
    try:
        acep.spark.for_each_batch(QUERY, lambda found, number: None, state=folder / "unable", seq="ts", id="ts")
    except acep.EngineError as error:
        return error.message
    return "it was not refused"


def refused(spark: Any, schema: Any, folder: Path) -> str:
    """What is said where another query goes on with a checkpoint."""
    found = matched(spark, schema, folder, acep.regex("ab", within=3, by="k"), folder / "state")
    try:
        write(found, folder, "files").awaitTermination()
    except Exception as failure:  # noqa: BLE001 - Connect has classes of its own
        error = acep.spark.error_in(failure)
        return "" if error is None else error.message
    return "it was not refused"


def matched(spark: Any, schema: Any, folder: Path, query: Any, state: Path | None) -> Any:
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(folder / "events"))
    options = {} if state is None else {"state": str(state)}
    return acep.spark.match(frame, query, seq="ts", id="ts", watermark=200, buckets=2, **options)


def write(found: Any, folder: Path, name: str) -> Any:
    writer = found.writeStream.format("parquet").option("path", str(folder / name)).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(folder / f"{name}-checkpoint")).start()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
