"""The memory of a large first micro-batch: ``python -m experiments.spark.first_batch [--rows N,..] [--output FOLDER]``.

All rows come in one micro-batch, as when a stream begins with the files of a year. How much memory do the Python
workers take for it, by the number of buckets?
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import acep
from acep.spark import get_session
from acep.spark.metrics import progress_of
from experiments.machine import describe_machine, find_started
from experiments.results import RESULTS, shorten, table, write_page
from experiments.spark.routes import DELAY, QUERIES
from experiments.spark.running import SCHEMA, count_expected, events, write_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["First", "main", "measure_first_batch"]

ROWS = (1_000_000, 10_000_000, 50_000_000)
BUCKETS = (64, 8)
"""The greater number first: a worker keeps memory that it had, and needs more of it for fewer buckets."""
FILE = 500_000
"""Rows of a file."""
CORES = 2
WORKER = b"pyspark.daemon"


@dataclass(frozen=True)
class First:
    """One run: so many ``rows`` in one micro-batch, for so many ``buckets``; its ``matches``, the bytes of ``events``
    as an Arrow table, and those that one Python worker held at most (``worker``)."""

    rows: int
    buckets: int
    matches: int
    events: int
    worker: int


def measure_first_batch(spark: SparkSession, source: Path, rows: int, size: int, buckets: int, work: Path) -> First:
    """Match all rows of a folder of events, which take ``size`` bytes, in one micro-batch.

    Raises :class:`AssertionError` if it finds other matches than one process does, or if there were more micro-batches.
    """
    folder = Path(tempfile.mkdtemp(prefix="first-", dir=work))
    frame = spark.readStream.schema(SCHEMA).parquet(str(source))
    query = acep.parse(QUERIES["seq"])
    matches = acep.spark.match(frame, query, seq="n", id="n", watermark=DELAY, state=folder / "state", buckets=buckets)
    writer = matches.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    for pid in find_started(WORKER):
        (pid / "clear_refs").write_text("5")  # its most memory so far is forgotten
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    batch_progress = [parsed for progress in running.recentProgress if (parsed := progress_of(progress)) is not None]
    shutil.rmtree(folder)
    assert len(batch_progress) == 1, f"{len(batch_progress)} micro-batches"
    assert batch_progress[0].matches == count_expected("seq", rows), f"{batch_progress[0].matches:,} matches"
    peak_kilobytes = max(
        int(re.findall(r"VmHWM:\s+(\d+)", (pid / "status").read_text())[0]) for pid in find_started(WORKER)
    )
    return First(rows, buckets, batch_progress[0].matches, size, peak_kilobytes * 1024)


WORDS = """Written by `python -m experiments.spark.first_batch`. All rows come in one micro-batch, with the state in
files (`state=`), on two cores. *events* are the bytes of all rows as an Arrow table; *worker* is the most memory that
one of the two Python workers held, with the interpreter and its libraries. A worker sorts its rows by bucket, and
writes them to temporary files where they are more than 128 MB; it then holds one bucket at a time. Each run found as
many matches as one process."""


def write_body(runs: Sequence[First]) -> str:
    """Return the table of the page."""
    head = ("rows", "buckets", "matches", "events", "worker")
    lines = [
        (
            f"{run.rows:,}",
            str(run.buckets),
            f"{run.matches:,}",
            shorten(run.events, "B"),
            shorten(run.worker, "B"),
        )
        for run in runs
    ]
    return table(head, lines)


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    """Run the command, in ``session`` if one is given."""
    parser = argparse.ArgumentParser(prog="python -m experiments.spark.first_batch", description=(__doc__ or "")[:42])
    parser.add_argument("--rows", default=",".join(map(str, ROWS)), help="numbers of rows, with commas")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for first_batch.csv and first_batch.md")
    options = parser.parse_args(arguments)
    spark = session or get_session(
        **{"spark.master": f"local[{CORES}]", "spark.sql.shuffle.partitions": str(CORES), "spark.driver.memory": "4g"}
    )
    work, runs = Path(tempfile.mkdtemp(prefix="acep-bench-")), list[First]()
    try:
        for rows in map(int, options.rows.split(",")):
            written = events(rows)
            size = written.nbytes
            write_events(written, work / str(rows), min(rows, FILE), end=True)
            del written
            for buckets in BUCKETS:
                runs.append(measure_first_batch(spark, work / str(rows), rows, size, buckets, work))
                print(runs[-1], flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if session is None:
            spark.stop()
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "first_batch.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(First)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, runs))
    title = "The memory of a large first micro-batch"
    print(
        write_page(
            options.output, "first_batch", title=title, words=WORDS, machine=describe_machine(), body=write_body(runs)
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
