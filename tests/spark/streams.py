"""Streams of files for tests on Spark, and queries over them that run to the end of what is there."""

from __future__ import annotations

import datetime as dt
import random
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from acep.events.tables import schema_of
from acep.spark import match
from acep.spark.chunks import ORDER, ROW, end_row, for_spark, with_order, write_chunks
from acep.spark.metrics import Progress, progress_of

__all__ = ["Folder", "as_dicts", "events_table", "quiet_match"]


class Folder:
    """A folder that a stream reads file by file, and the output and checkpoint of a query over it."""

    def __init__(self, spark: Any, table: pa.Table, size: int, *, end: bool = True, ts: str = "ts") -> None:
        self.spark = spark
        self.path = Path(tempfile.mkdtemp(prefix="acep-test-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        schema = schema_of(table.schema, ts=ts)
        last = end_row(schema, table.schema.field(ts).type)
        files = write_chunks(table, self.path / "events", size, last, {})
        self.last = self.path / "events" / f"{files - 1:06}.parquet"
        self.columns = spark.read.parquet(str(self.last)).schema
        if not end:
            self.last.rename(self.path / "end")

    def end(self) -> None:
        """Let the stream see its end."""
        (self.path / "end").rename(self.last)

    def frame(self) -> Any:
        """The stream."""
        reader = self.spark.readStream.schema(self.columns).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.path / "events"))

    def run(self, found: Any, name: str = "out") -> tuple[list[dict[str, Any]], list[Progress]]:
        """Run a query over what is there; all rows written so far, and what each micro-batch said."""
        out = str(self.path / name)
        writer = found.writeStream.format("parquet").option("path", out).trigger(availableNow=True)
        running = writer.option("checkpointLocation", str(self.path / f"{name}-checkpoint")).start()
        running.awaitTermination()
        for progress in running.recentProgress:
            assert all(operator["numRowsDroppedByWatermark"] == 0 for operator in progress["stateOperators"])
        told = [one for p in running.recentProgress if (one := progress_of(p)) is not None]
        return as_dicts(self.spark.read.schema(found.schema).parquet(out)), told


def as_dicts(frame: Any) -> list[dict[str, Any]]:
    """The rows of a DataFrame as plain data, in the form of :func:`tests.spark.by_hand.as_rows`."""
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist(maps_as_pydicts="strict")
    return rows


def quiet_match(frame: Any, query: Any, **options: Any) -> Any:
    """``acep.spark.match`` with ties and ids by row, without its warnings."""
    options = {"seq": ORDER, "id": ROW} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return match(frame, query, **options)


def events_table(size: int, seed: int = 1, *, disorder: float = 0.0, types: str = "abcd") -> pa.Table:
    """Random events, a second apart on average, ties among them; rows come up to ``disorder`` seconds too late."""
    rng = random.Random(seed)
    start = dt.datetime(2024, 3, 31, tzinfo=dt.UTC)
    seconds = sorted(rng.randrange(size) for _ in range(size))
    table = pa.table(
        {
            "ts": pa.array([start + dt.timedelta(seconds=s) for s in seconds], pa.timestamp("us", "UTC")),
            "type": pa.array(rng.choices(types, k=size)),
            "k": pa.array(rng.choices(["x", "y", "z", "w", None], k=size)),
            "l": pa.array(rng.choices([0.5, 1.5, float("nan"), None], k=size), pa.float64()),
            "x": pa.array(rng.choices([None, 1, 2, 2**60, 2**60 + 1], k=size), pa.int64()),
            "day": pa.array(rng.choices([None, dt.date(2024, 1, 2), dt.date(2024, 2, 3)], k=size), pa.date32()),
        }
    )
    table = with_order(for_spark(table), schema_of(table.schema), sort=False)
    return table.take(shuffled(seconds, disorder, rng)) if disorder else table


def shuffled(ticks: Iterable[int], disorder: float, rng: random.Random) -> pa.Array:
    """Rows in an order in which none comes later than ``disorder`` after a younger one."""
    times = [t + rng.uniform(0, disorder) for t in ticks]
    return pa.array(sorted(range(len(times)), key=times.__getitem__), pa.int64())
