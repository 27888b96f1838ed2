"""Growth by keys: ``python -m experiments.spark.keys [--keys N,..] [--batches N] [--rows N] [--output FOLDER]``.

How long a micro-batch takes and how much state there is by the number of live keys, with state in files, and what is
left of both when all these keys are idle.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import acep
from acep.spark import get_session
from acep.spark.metrics import Progress, progress_of
from experiments.machine import describe_machine
from experiments.results import RESULTS, shorten, table, write_page
from experiments.spark.routes import DELAY, QUERIES
from experiments.spark.running import RETAINED_PROGRESS, SCHEMA, START, STEP, events, steady, write_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Growth", "main", "measure_growth"]

KEYS = (1, 100, 10_000, 1_000_000)
FEWEST = {"seq": 1, "rise": 10_000}
"""Keys of a query; with fewer ones it is matching that takes the time."""
WINDOWS = 600_000_000  # microseconds, longer than the windows of the queries
IDLE = 3
"""Micro-batches of another key alone, after all windows of the others have passed."""
CORES = 2


@dataclass(frozen=True)
class Growth:
    """One run: so many ``keys`` and ``rows`` a micro-batch; the median of its ``seconds`` in the steady part; the
    ``live`` partial matches and the ``state`` in bytes at its end, and the same when all keys are idle."""

    query: str
    keys: int
    rows: int
    seconds: float
    matches: int
    live: int
    state: int
    idle_live: int
    idle_state: int


def measure_growth(spark: SparkSession, name: str, keys: int, rows: int, batches: int, work: Path) -> Growth:
    """Run a query over so many keys, then over one other key alone.

    Raises :class:`AssertionError` if it finds other matches than one process does.
    """
    table = _of_keys(events(rows * batches), keys)
    later = _later_events(table, rows // 100, keys)
    query, folder = acep.parse(QUERIES[name]), Path(tempfile.mkdtemp(prefix="keys-", dir=work))
    exact = int(acep.match(pa.concat_tables([table, later]), query, seq="n", id="n", output="count"))
    write_events(table, folder / "events", rows, end=False)
    write_events(later, folder / "later", later.num_rows // IDLE, end=True)
    file_time = max(file.stat().st_mtime for file in (folder / "events").iterdir())
    for file in sorted((folder / "later").glob("*.parquet")):  # Spark takes files by their times
        file_time += 1
        os.utime(file, (file_time, file_time))
        file.rename(folder / "events" / f"later-{file.name}")
    spark.conf.set(RETAINED_PROGRESS, str(batches + IDLE + 10))
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))
    matches = acep.spark.match(frame, query, seq="n", id="n", watermark=DELAY, state=folder / "state")
    writer = matches.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    batch_progress: list[Progress] = [parsed for p in running.recentProgress if (parsed := progress_of(p)) is not None]
    shutil.rmtree(folder)
    last, idle = batch_progress[batches - 1], batch_progress[batches + IDLE - 1]
    assert batch_progress[-1].matches == exact, (
        f"{batch_progress[-1].matches:,} matches, but one process finds {exact:,}"
    )
    seconds = median(batch_progress[batch].seconds for batch in steady(batches))
    sizes = (last.matches, last.live, last.state, idle.live, idle.state)
    return Growth(name, keys, rows, round(seconds, 3), *sizes)


def _of_keys(table: pa.Table, keys: int) -> pa.Table:
    """Return the same events with so many keys."""
    drawn = np.random.default_rng([13, keys]).integers(0, keys, table.num_rows)
    return table.set_column(table.schema.get_field_index("k"), "k", pa.array(drawn))


def _later_events(table: pa.Table, rows: int, key: int) -> pa.Table:
    """Return events of one other key, after all windows of those in ``table``."""
    rows = max(rows, IDLE) // IDLE * IDLE
    begins = START + STEP * table.num_rows + WINDOWS
    times = pa.array(begins + STEP * np.arange(rows)).cast(pa.timestamp("us", tz="UTC"))
    new_columns = {"ts": times, "k": pa.array(np.full(rows, key)), "n": pa.array(table.num_rows + np.arange(rows))}
    return pa.table({name: new_columns.get(name, table.column(name).slice(0, rows)) for name in table.column_names})


WORDS = """Written by `python -m experiments.spark.keys`. Micro-batches of a stream with its state in files
(`state=`), on two cores, into a sink that drops the matches. All events fall on so many keys, alike. The time is the
median of the micro-batches but for the first quarter. Then only one other key has events, later than every window:
what is left is in the last two columns. Each run found as many matches as one process."""


def write_body(runs: Sequence[Growth]) -> str:
    """Return the tables of the page."""
    head = ("keys", "seconds", "matches", "live partial matches", "state", "live when idle", "state when idle")
    parts = []
    for name in dict.fromkeys(run.query for run in runs):
        query_runs = [run for run in runs if run.query == name]
        lines = [
            (
                f"{run.keys:,}",
                f"{run.seconds:.2f}",
                *map(shorten, (run.matches, run.live)),
                shorten(run.state, "B"),
                shorten(run.idle_live),
                shorten(run.idle_state, "B"),
            )
            for run in query_runs
        ]
        parts.append(
            f"## {name}\n\n`{QUERIES[name]}`, {query_runs[0].rows:,} rows a micro-batch.\n\n{table(head, lines)}"
        )
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    """Run the command, in ``session`` if one is given."""
    parser = argparse.ArgumentParser(prog="python -m experiments.spark.keys", description=(__doc__ or "")[:14])
    parser.add_argument("--keys", default=",".join(map(str, KEYS)), help="numbers of keys, with commas")
    parser.add_argument("--batches", type=int, default=12, help="micro-batches (12)")
    parser.add_argument("--rows", type=int, default=200_000, help="rows of each (200000)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for keys.csv and keys.md")
    options = parser.parse_args(arguments)
    spark = session or get_session(
        **{"spark.master": f"local[{CORES}]", "spark.sql.shuffle.partitions": str(CORES), "spark.driver.memory": "4g"}
    )
    work, runs = Path(tempfile.mkdtemp(prefix="acep-bench-")), list[Growth]()
    try:
        for name, keys in ((name, int(keys)) for name in QUERIES for keys in options.keys.split(",")):
            if keys >= FEWEST[name]:
                runs.append(measure_growth(spark, name, keys, options.rows, options.batches, work))
                print(runs[-1], flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if session is None:
            spark.stop()
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "keys.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Growth)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, runs))
    title = "Growth by keys on Spark"
    print(
        write_page(options.output, "keys", title=title, words=WORDS, machine=describe_machine(), body=write_body(runs))
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
