"""Many micro-batches: memory, state and files do not grow. ``ACEP_CASES=34`` makes it 2,040 of them on each route."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.spark import for_each_batch, listener
from acep.spark.metrics import Progress
from tests.spark.streams import quiet_match

pytestmark = pytest.mark.long

ROWS, KEYS = 50, 5
FIRST = 1_700_000_000
QUERY = acep.regex("ab", within=40, by="k")
OPTIONS: dict[str, Any] = {"seq": "n", "id": "n", "watermark": 2, "buckets": 2}
RETAINED = "spark.sql.streaming.minBatchesToRetain"
KEPT = 5


def held() -> int:
    """Megabytes that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells no memory")
@pytest.mark.parametrize("route", ["files", "each", "driver"])
@pytest.mark.whole
def test_nothing_grows(spark: Any, route: str, cases: Callable[[int], int], tmp_path: Path) -> None:
    batches = cases(60)
    (tmp_path / "events").mkdir()
    for batch in range(batches):
        numbers = range(batch * ROWS, (batch + 1) * ROWS)
        types, keys = (
            pa.array([text(n) for n in numbers]) for text in (lambda n: "ab"[n // KEYS % 2], lambda n: n % KEYS)
        )
        table = pa.table({"ts": numbers, "type": types, "k": keys, "n": numbers})
        file = tmp_path / "events" / f"{batch:06}.parquet"
        pq.write_table(table, file)
        os.utime(file, (FIRST + batch, FIRST + batch))  # Spark takes files by their times
    memory, files, told = list[int](), list[int](), list[Progress]()

    def tell(progress: Progress) -> None:
        memory.append(held())
        files.append(sum(1 for _ in (tmp_path / "state").rglob("*")))
        told.append(progress)

    stream = spark.readStream.schema("ts long, type string, k long, n long").option("maxFilesPerTrigger", 1)
    frame = stream.parquet(str(tmp_path / "events"))
    before = spark.conf.get(RETAINED)
    spark.conf.set(RETAINED, KEPT)
    listening = listener(tell)
    try:
        if route == "files":
            found = quiet_match(frame, QUERY, state=tmp_path / "state", **OPTIONS)
            writer = found.writeStream.format("noop")
            spark.streams.addListener(listening)
        else:
            step = for_each_batch(
                QUERY,
                lambda *_: None,
                on_driver=route == "driver",
                state=tmp_path / "state",
                progress=tell,
                **OPTIONS,
            )
            writer = frame.writeStream.foreachBatch(step)
        running = writer.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        running.awaitTermination()
        until = time.monotonic() + 60
        while told[-1].batch < batches - 1 and time.monotonic() < until:  # a listener is told a little later
            time.sleep(0.02)
    finally:
        spark.conf.set(RETAINED, before)
        spark.streams.removeListener(listening)
    steady, last = told[len(told) // 2 :], told[-1]
    assert last.events == last.report.events == batches * ROWS
    assert last.matches > batches
    assert max(one.state for one in steady) <= 1.1 * max(one.state for one in told[2 : len(told) // 2])
    assert max(one.live for one in steady) <= max(one.live for one in told[2 : len(told) // 2])
    assert memory[-1] - memory[len(memory) // 2] < 16
    # Of each micro-batch that can be begun again: a folder, the states of two buckets, and what the driver decided.
    assert files[-1] <= (KEPT + 3) * 5 + 10
