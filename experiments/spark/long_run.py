"""A long stream on Spark: ``python -m experiments.spark.long_run [--batches N] [--versions N] [--output FOLDER]``.

Do memory, state and files stay flat over thousands of micro-batches, and over hundreds of thousands of versions of the
state of one bucket, which are written without Spark? The command says so, and returns 1 if something has grown.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

import acep
from acep.bucket_state.state_files import StateFiles
from acep.spark import get_session
from experiments.machine import describe_machine, find_started, memory
from experiments.results import RESULTS, shorten, table, write_csv, write_page
from experiments.spark.first_batch import WORKER
from experiments.spark.routes import DELAY, QUERIES
from experiments.spark.running import SCHEMA, WrongMatchesError, events, write_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Growth", "Streamed", "Written", "growths", "main", "stream", "write_versions"]

POINTS = 20
FLAT = 1.1
"""The greatest ratio, of the last quarter to the second one, that counts as flat."""
ROWS = 400
"""Rows of a micro-batch; 250 micro-batches are one window of the query."""
CORES = 2
STATE = 4_096
"""Bytes of the state of a bucket that is written without Spark."""
RETAINED = 100
"""The number of micro-batches that can be begun again, which is Spark's default."""
SETTINGS = {
    "spark.master": f"local[{CORES}]",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.ui.retainedJobs": str(RETAINED),
    "spark.ui.retainedStages": str(RETAINED),
    "spark.sql.ui.retainedExecutions": str(RETAINED),
}
"""The settings of the session; the last three say how many jobs Spark remembers for its user interface."""
GROWS = "grows"
ALLOWED = {"done", "seconds", "log_files", "log_bytes"}
"""Columns that are not judged."""


@dataclass(frozen=True)
class Streamed:
    """After so many micro-batches (``done``): the resident memory of the driver, of its JVM and of the Python workers,
    and the ``heap`` of the JVM in use; files and bytes of the state, of the checkpoint, and of Spark's log of the
    files read; the mean ``seconds`` of a micro-batch since the point before."""

    done: int
    driver: int
    jvm: int
    heap: int
    workers: int
    state_files: int
    state_bytes: int
    checkpoint_files: int
    checkpoint_bytes: int
    log_files: int
    log_bytes: int
    seconds: float


@dataclass(frozen=True)
class Written:
    """After so many versions (``done``): the resident memory of the ``process``, files and bytes on disk, and the mean
    ``seconds`` of a version since the point before."""

    done: int
    process: int
    files: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Growth:
    """The mean of a column over the ``second`` quarter of the points and over the ``last`` one."""

    name: str
    second: float
    last: float

    @property
    def ratio(self) -> float:
        """Return the last quarter divided by the second one."""
        return self.last / self.second if self.second else 1.0

    @property
    def verdict(self) -> str:
        """Return whether the column is flat; nothing if it is not judged."""
        return "" if self.name in ALLOWED else "flat" if self.ratio <= FLAT else GROWS


def growths(points: Sequence[Streamed] | Sequence[Written]) -> list[Growth]:
    """Return the growth of each column."""
    rows = [asdict(point) for point in points]
    second, last = (rows[len(rows) * quarter // 4 : len(rows) * (quarter + 1) // 4] or rows[-1:] for quarter in (1, 3))
    return [
        Growth(name, fmean(row[name] for row in second), fmean(row[name] for row in last))
        for name in rows[0]
        if name != "done"
    ]


def stream(spark: SparkSession, batches: int, work: Path) -> tuple[list[Streamed], int]:
    """Match a stream of so many micro-batches with its state in files; return what was seen at times, and the number of
    matches.

    Raises :class:`WrongMatchesError` if it finds other matches than one process does.
    """
    query, stream_events = acep.parse(QUERIES["seq"]), events(ROWS * batches)
    exact = sorted(_line(match.bindings) for match in acep.match(stream_events, query, seq="n", id="n"))
    write_events(stream_events, work / "events", ROWS, end=True)
    del stream_events
    points, wanted, clock = list[Streamed](), _choose_stops(batches), _Clock()

    def keep(rows: DataFrame, batch: int) -> None:
        with (work / "found").open("a", encoding="utf-8") as file:
            file.writelines(_line(row.bindings) for row in rows.collect())
        if batch + 1 in wanted:
            seconds = clock.mean(batch + 1)
            points.append(_take_point(spark, work, batch + 1, seconds))
            print(points[-1], flush=True)
            clock.go_on(batch + 1)

    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(work / "events"))
    matches = acep.spark.match(frame, query, seq="n", id="n", watermark=DELAY, state=work / "state", buckets=CORES)
    writer = matches.writeStream.foreachBatch(keep).option("checkpointLocation", str(work / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    lines = sorted((work / "found").read_text(encoding="utf-8").splitlines(keepends=True))
    if lines != exact:
        raise WrongMatchesError(f"{len(lines):,} matches, but one process finds {len(exact):,}; or they differ")
    assert [point.done for point in points] == wanted, "a micro-batch has not one file"
    return points, len(lines)


def write_versions(versions: int, work: Path) -> list[Written]:
    """Write so many versions of one bucket as tasks do, each of which begins with the one before."""
    block = np.random.default_rng(13).bytes(STATE)
    query, run = str(UUID(int=7)), str(UUID(int=1))
    points, wanted, clock = list[Written](), set(_choose_stops(versions)), _Clock()
    for batch in range(versions):
        task = StateFiles(str(work / "versions"), query=query, call="c0ffee", run=run, buckets=1, keep=RETAINED)
        before = task.begin_batch(batch)
        if before:
            assert task.read(before[0]) == block + str(batch - 1).encode(), f"another state before {batch}"
        task.write(batch, 0, batch, f"{batch:032x}", block + str(batch).encode())
        task.clean(batch)
        if batch + 1 in wanted:
            seconds = clock.mean(batch + 1)
            gc.collect()
            points.append(Written(batch + 1, memory() or 0, *_files(work / "versions"), seconds))
            print(points[-1], flush=True)
            clock.go_on(batch + 1)
    return points


class _Clock:
    """The mean time of a step, without the time that it takes to look."""

    def __init__(self) -> None:
        self.go_on(0)

    def go_on(self, done: int) -> None:
        self.done, self.began = done, time.perf_counter()

    def mean(self, done: int) -> float:
        return (time.perf_counter() - self.began) / (done - self.done)


def _choose_stops(steps: int) -> list[int]:
    """Return after how many steps to look."""
    return sorted({-(-steps * number // POINTS) for number in range(1, POINTS + 1)})


def _line(bindings: Mapping[str, Iterable[int | str]]) -> str:
    return f"{sorted((name, *ids) for name, ids in bindings.items())}\n"


def _take_point(spark: SparkSession, work: Path, done: int, seconds: float) -> Streamed:
    gc.collect()
    java: Any = spark._jvm
    java.System.gc()  # garbage would be counted, too
    runtime = java.Runtime.getRuntime()
    jvm, workers = (sum(memory(process) or 0 for process in find_started(part)) for part in (b"java", WORKER))
    state, checkpoint, log = (_files(work / name) for name in ("state", "checkpoint", "checkpoint/sources"))
    return Streamed(
        done,
        driver=memory() or 0,
        jvm=jvm,
        heap=runtime.totalMemory() - runtime.freeMemory(),
        workers=workers,
        state_files=state[0],
        state_bytes=state[1],
        checkpoint_files=checkpoint[0] - log[0],
        checkpoint_bytes=checkpoint[1] - log[1],
        log_files=log[0],
        log_bytes=log[1],
        seconds=seconds,
    )


def _files(folder: Path) -> tuple[int, int]:
    """Return the number of files and folders below a folder, and their bytes on disk."""
    number = size = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # Spark removes old ones at any time
            size += path.stat().st_blocks * 512
            number += 1
    return number, size


WORDS = f"""Written by `python -m experiments.spark.long_run`. The first part is a stream on Spark with its state in
files (`state=`): micro-batches of {ROWS} rows, one Parquet file each, in {CORES} buckets on {CORES} cores. The second
part writes the versions of the state of one bucket, {STATE:,} bytes and more each, as tasks do, without Spark. Each of
the last {RETAINED} micro-batches can be begun again, which is Spark's default.

Means of the last quarter of the points are compared with those of the second one; flat is a ratio of at most {FLAT}.
Memory is resident, after a garbage collection; *heap* is what the JVM uses of it, and *workers* is the sum over the
Python workers and their daemon. Spark remembers its last {RETAINED} jobs, stages and executions, fewer than by default.
Files are counted with folders, and their bytes are those on disk. *log* is Spark's own record of the files that it has
read. It grows with their number, so it is not judged, and it is not in *checkpoint*. Nor is the time judged, as other
work on the machine changes it."""


def write_body(streamed: Sequence[Streamed], matches: int, written: Sequence[Written]) -> str:
    """Return the verdicts and the tables of the page."""
    parts = []
    for title, points, note in (
        ("Micro-batches on Spark", streamed, f" The matches, {matches:,}, are exactly those of one process."),
        ("StateFiles without Spark", written, ""),
    ):
        column_growths = growths(points)
        grown = ", ".join(_spell_out(growth.name) for growth in column_growths if growth.verdict == GROWS)
        verdict = f"These grow: {grown}." if grown else "Memory, state and files are flat."
        quarters = [
            (
                _spell_out(growth.name),
                *(_format_value(growth.name, x) for x in (growth.second, growth.last)),
                f"{growth.ratio:.3f}",
                growth.verdict,
            )
            for growth in column_growths
        ]
        rows = [[_format_value(name, value) for name, value in asdict(point).items()] for point in points]
        parts.append(
            f"## {title}\n\nAfter {points[-1].done:,}: {verdict}{note}\n\n"
            f"{table(('', 'second quarter', 'last quarter', 'ratio', ''), quarters)}\n\n"
            f"{table([_spell_out(name) for name in asdict(points[0])], rows)}"
        )
    return "\n\n".join(parts)


def _spell_out(name: str) -> str:
    return name.replace("_", " ")


def _format_value(name: str, value: float) -> str:
    if name == "seconds":
        return shorten(value * 1000, " ms")
    return f"{value:,.0f}" if name == "done" or name.endswith("files") else shorten(value, "B")


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    """Run the command, in ``session`` if one is given; 1 if something has grown."""
    parser = argparse.ArgumentParser(prog="python -m experiments.spark.long_run", description=(__doc__ or "")[:23])
    parser.add_argument("--batches", type=int, default=2_000, help="micro-batches on Spark (2000)")
    parser.add_argument("--versions", type=int, default=200_000, help="versions without Spark (200000)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for long_run.csv and long_run.md")
    options = parser.parse_args(arguments)
    work = Path(tempfile.mkdtemp(prefix="acep-bench-"))
    try:
        written = write_versions(options.versions, work)
        spark = session or get_session(**SETTINGS)
        try:
            streamed, matches = stream(spark, options.batches, work)
        finally:
            if session is None:
                spark.stop()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    text = write_body(streamed, matches, written)
    page = write_page(
        options.output, "long_run", title="A long stream on Spark", words=WORDS, machine=describe_machine(), body=text
    )
    write_csv(options.output / "long_run.csv", {"batches": map(asdict, streamed), "versions": map(asdict, written)})
    print(f"{text}\n\n{page}")
    return int(any(growth.verdict == GROWS for growth in growths(streamed) + growths(written)))


if __name__ == "__main__":
    sys.exit(main())
