"""A stream of files for a driver on a cluster (:mod:`tests.spark.cluster_driver`), and what it has to write."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

import acep
from acep.streaming.punctuation_rows import PUNCTUATION
from tests.complaints import difference
from tests.spark.by_hand import as_rows
from tests.spark.cluster_traces import count_batches, log_settings, read_steps, rows_by_batch
from tests.spark.schedules import net, table_of
from tests.spark.standalone_cluster import ROOT, SETTINGS, environment_of, kill_group

__all__ = ["ClusterStream", "prepare_stream"]

QUERY = "PATTERN SEQ(a x, b y, ~c z) WHERE skip_till_next_match(x, y) { [k] } WITHIN 40"
DELAY = 10
SIZE = 40
"""How many events a file has."""
END = {"ts": 2**63 - 1, "type": PUNCTUATION, "k": None}
"""The row that ends a stream of integers."""


@dataclass(frozen=True)
class ClusterStream:
    """A stream that a driver takes by several routes: its folder, its events, and the number of its files."""

    folder: Path
    routes: Sequence[str]
    events: pa.Table
    n_files: int

    @contextmanager
    def driving(self, home: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run the driver, in a session of processes of its own."""
        command = [sys.executable, "-m", "tests.spark.cluster_driver", str(self.folder)]
        with (self.folder / "errors").open("w") as file:
            driver = subprocess.Popen(
                command, stdout=file, stderr=file, start_new_session=True, env=environment_of(home), cwd=ROOT
            )
        try:
            yield driver
        finally:
            kill_group(driver)

    def wait_until(self, driver: subprocess.Popen[bytes], is_so: Callable[[], object], seconds: float = 300) -> None:
        """Wait until something is so, while the driver runs."""
        began = time.monotonic()
        while not is_so():
            assert driver.poll() is None, f"the driver has ended: {self.errors()}"
            assert time.monotonic() - began < seconds, f"it takes too long: {self.errors()}"
            time.sleep(0.1)

    def put_files(self, n_files: int) -> None:
        """Let the driver see so many files more. It ends once it has taken all."""
        for file in sorted((self.folder / "pending").iterdir())[:n_files]:
            file.rename(self.folder / "events" / file.name)

    def count_batches(self, kind: Literal["offsets", "commits"]) -> list[int]:
        """Return how many micro-batches each route has begun (``offsets``), or done (``commits``)."""
        return [count_batches(self.folder / route / "checkpoint", kind) for route in self.routes]

    def errors(self) -> str:
        """Return what the driver wrote last."""
        return (self.folder / "errors").read_text()[-3000:]

    def places(self) -> Mapping[str, str]:
        """Return what was said of the place of the state."""
        lines: dict[str, str] = json.loads((self.folder / "places.json").read_text())
        return lines

    def complaint(self, route: str) -> str:
        """Return how the matches that a route wrote differ from those of one process; "" if they do not."""
        batches = rows_by_batch(self.folder / route / "matches")
        exact = net(as_rows(acep.match(self.events, QUERY, seq="sent", id="n")))
        assert len(exact) > 10
        written = net([row for rows in batches.values() for row in rows])
        complaint = difference(written, exact, ("written", "exact"))
        return complaint and f"{route}, { ({batch: net(rows) for batch, rows in batches.items()}) }:\n{complaint}"

    def taken_over(self) -> list[tuple[str, int]]:
        """Return the partitions of queries whose buckets went from an executor that was lost to another one."""
        steps = read_steps(self.folder / "log")
        assert len({query for query, _ in steps.executors}) == len(self.routes)
        return steps.taken_over()


def prepare_stream(
    folder: Path,
    master: str,
    routes: Sequence[str],
    n_files: int,
    rng: random.Random,
    settings: Mapping[str, str] | None = None,
) -> ClusterStream:
    """Write the events of a stream down, with disorder within the delay, and the options of its driver."""
    for name in ("events", "pending"):
        (folder / name).mkdir(parents=True)
    numbers = range(n_files * SIZE)
    rows = [
        {
            "ts": number // 2 + rng.randrange(DELAY),
            "type": rng.choice("aabbc"),
            "k": rng.choice("pqrstuvw"),
            "n": number,
        }
        for number in numbers
    ]
    for i in range(n_files):
        file = folder / "pending" / f"{i:03}.parquet"
        part = rows[i * SIZE : (i + 1) * SIZE] + ([END | {"n": len(rows)}] if i == n_files - 1 else [])
        pq.write_table(table_of(part), file)
        os.utime(file, (1_000_000 + i, 1_000_000 + i))  # Spark takes the oldest file first
    options = {
        "master": master,
        "settings": SETTINGS | log_settings(folder / "log") | dict(settings or {}),
        "routes": routes,
        "files": n_files,
        "query": QUERY,
        "columns": {"watermark": DELAY, "buckets": 4},
    }
    (folder / "options.json").write_text(json.dumps(options))
    return ClusterStream(folder, routes, table_of(rows), n_files)
