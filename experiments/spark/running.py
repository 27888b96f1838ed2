"""One run of a route: events as files, a stream over them or a DataFrame of them, and what it took."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import acep
from acep.events.tables import schema_of
from acep.spark.chunks import end_row, write_chunks
from acep.spark.metrics import Progress, progress_of
from acep.spark.session import SIZES, UNBOUNDED
from experiments.spark.routes import QUERIES, Route, Setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "SCHEMA",
    "START",
    "STEP",
    "Run",
    "WrongMatchesError",
    "count_expected",
    "events",
    "run_static",
    "run_stream",
    "steady",
    "write_events",
]

SCHEMA = "ts timestamp, type string, k long, x double, n long"
KEYS, TYPES = 10_000, "ABCDE"
STEP = 1_000  # microseconds from one event to the next
START = 1_600_000_000_000_000
TRIGGER_TIME = "triggerExecution"
RETAINED_PROGRESS = "spark.sql.streaming.numRecentProgressUpdates"


class WrongMatchesError(Exception):
    """A route has found other matches than there are, so its time means nothing."""


@dataclass(frozen=True)
class Run:
    """A ``route`` with micro-batches of ``rows`` rows (of a static DataFrame: all rows) in one ``repetition``.
    ``durations``: the ``durationMs`` of each micro-batch that counts. ``events`` and ``matches`` in all, ``state`` in
    bytes after the last of those micro-batches (``None``: there is none)."""

    route: str
    rows: int
    repetition: int
    durations: tuple[Mapping[str, float], ...]
    events: int
    matches: int
    state: int | None = None

    @property
    def trigger_times(self) -> tuple[float, ...]:
        """Return the time of each micro-batch, in milliseconds."""
        return tuple(batch[TRIGGER_TIME] for batch in self.durations)


def events(rows: int, seed: int = 13) -> pa.Table:
    """Return the stream: ``ts`` (one event a millisecond), ``type`` (A .. E), ``k`` (10,000 keys), ``x`` (0 .. 1), all
    uniform, and ``n`` (0, 1, 2, ...). A shorter stream is a prefix of a longer one.

    >>> events(3).column_names, events(3)["n"].to_pylist()
    (['ts', 'type', 'k', 'x', 'n'], [0, 1, 2])
    """
    types, keys, values = (np.random.default_rng([seed, column]) for column in range(3))
    letters = pa.DictionaryArray.from_arrays(pa.array(types.integers(0, len(TYPES), rows)), list(TYPES))
    return pa.table(
        {
            "ts": pa.array(START + STEP * np.arange(rows)).cast(pa.timestamp("us", tz="UTC")),
            "type": letters.cast(pa.string()),
            "k": pa.array(keys.integers(0, KEYS, rows)),
            "x": pa.array(values.random(rows)),
            "n": pa.array(np.arange(rows)),
        }
    )


@cache
def count_expected(query: str, rows: int) -> int:
    """Return the number of matches of a query in :func:`events`, found in this process."""
    return int(acep.match(events(rows), acep.parse(QUERIES[query]), seq="n", id="n", output="count"))


def write_events(table: pa.Table, folder: Path, rows: int, *, end: bool) -> int:
    """Write ``table`` as Parquet files of ``rows`` rows and, if it is to ``end``, a row that ends a stream as a file of
    its own; how many files of events there are."""
    number = write_chunks(table, folder, rows, end_row(schema_of(table.schema), table.schema.field("ts").type), {}) - 1
    if not end:
        (folder / f"{number:06}.parquet").unlink()
    return number


def steady(batches: int) -> range:
    """Return the micro-batches that count: the first quarter is left out.

    >>> steady(20), steady(2)
    (range(5, 20), range(1, 2))
    """
    return range(max(1, batches // 4), batches)


def run_stream(
    spark: SparkSession,
    route: Route,
    source: Path,
    rows: int,
    batches: int,
    repetition: int,
    *,
    partitions: int,
    buckets: int | None = None,
) -> Run:
    """Run a route over a stream of ``batches`` files of ``rows`` rows, one a micro-batch, into a sink that drops them.

    Raises :class:`WrongMatchesError` if the number of matches is not that of one process, by what acep tells or, but
    for foreachBatch, by the rows that reached the sink.
    """
    work, reported = Path(tempfile.mkdtemp(prefix="acep-bench-")), list[Progress]()
    context = Setting(partitions, buckets, str(work / "state"))
    try:
        frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))
        result = route.build(frame, context)
        writer = result.writeStream.format("noop")
        if route.each is not None:
            writer = result.writeStream.foreachBatch(route.each(context, reported.append))
        writer = writer.option("checkpointLocation", str(work / "checkpoint"))
        with _configure(spark, {RETAINED_PROGRESS: str(batches + 10), SIZES: None if route.plain else UNBOUNDED}):
            running = writer.trigger(availableNow=True).start()
            try:
                running.awaitTermination()
                recent: list[Any] = list(running.recentProgress)
            finally:
                running.stop()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    by_number = {progress["batchId"]: progress for progress in recent}
    counted = [by_number[number] for number in steady(batches)]
    durations = tuple({name: float(value) for name, value in progress["durationMs"].items()} for progress in counted)
    matches, state = 0, None
    if route.query:
        batch_progress = reported or [parsed for progress in recent if (parsed := progress_of(progress)) is not None]
        last = next((progress for progress in batch_progress if progress.batch == counted[-1]["batchId"]), None)
        matches, state = batch_progress[-1].matches if batch_progress else 0, None if last is None else last.state
        _check(route, rows * batches, matches, "told")
    if route.query and route.each is None:
        _check(
            route, rows * batches, sum(max(progress["sink"]["numOutputRows"], 0) for progress in recent), "in the sink"
        )
    return Run(route.name, rows, repetition, durations, rows * batches, matches, state)


def run_static(
    spark: SparkSession,
    route: Route,
    source: Path,
    rows: int,
    repetition: int,
    *,
    partitions: int,
    buckets: int | None = None,
) -> Run:
    """Run a route over a DataFrame of ``rows`` rows, from the plan to the last row of the result.

    Before the first repetition the rows of the result are counted, which warms up. Raises :class:`WrongMatchesError` as
    :func:`run_stream` does.
    """
    frame = spark.read.schema(SCHEMA).parquet(str(source))
    context = Setting(partitions, buckets, "")
    with _configure(spark, {SIZES: None if route.plain else UNBOUNDED}):
        if repetition == 0:
            number = route.build(frame, context).count()
            if route.query:
                _check(route, rows, number, "in the result")
        began = time.perf_counter()
        route.build(frame, context).write.format("noop").mode("overwrite").save()
    durations = {TRIGGER_TIME: (time.perf_counter() - began) * 1000}
    return Run(
        route.name, rows, repetition, (durations,), rows, count_expected(route.query, rows) if route.query else 0
    )


@contextmanager
def _configure(spark: SparkSession, settings: Mapping[str, str | None]) -> Iterator[None]:
    """Give settings to a session for a while; ``None`` is Spark's own value."""

    def set_values(values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)

    before = {name: spark.conf.getAll.get(name) for name in settings}
    set_values(settings)
    try:
        yield
    finally:
        set_values(before)


def _check(route: Route, rows: int, n_matches: int, where: str) -> None:
    if n_matches != (n_expected := count_expected(route.query, rows)):
        raise WrongMatchesError(
            f"{route.name}: {n_matches:,} matches {where}, but one process finds {n_expected:,} in {rows:,} events"
        )
