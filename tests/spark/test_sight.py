"""A stream tells after each micro-batch how far it is, how far behind, and where the time went, on both routes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from pyspark.sql import Row

import acep
import acep.spark
from acep.spark.metrics import Progress, progress_of
from acep.streaming.job import Job
from acep.streaming.time_spent import Spent
from tests.spark.by_hand import numbered, the_job
from tests.spark.by_hand_files import FileStream
from tests.spark.streams import Folder, events_table, quiet_match
from tests.thinned import thinned

QUERY = acep.parse(
    "PATTERN SEQ(a p, ~d n, b q) WHERE skip_till_any_match(p, q) { [k] AND q.x >= p.x } WITHIN 30 seconds"
)


@pytest.mark.long
@pytest.mark.parametrize("way", thinned(["files", "own state"], 2, pytest.mark.whole))
def test_a_stream_tells_where_it_is_and_where_the_time_goes(spark: Any, tmp_path: Path, way: str) -> None:
    table = events_table(240, 4)
    folder = Folder(spark, table, 120)
    state = {"state": tmp_path / "state" if way == "files" else "spark"}
    heard: list[Progress] = []
    listener = acep.spark.listener(heard.append)
    spark.streams.addListener(listener)
    try:
        found = quiet_match(folder.frame(), QUERY, watermark="10 seconds", buckets=3, **state)
        rows, told = folder.run(found)
        until = time.monotonic() + 60
        while len(heard) < len(told) and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        spark.streams.removeListener(listener)
    assert heard == told
    assert len(rows) == told[-1].matches > 0
    fed = [one for one in told if one.rows > 1]
    assert len(fed) == 2
    for one in told:
        parts = (one.spent.spark, one.spent.transfer, one.spent.matching)
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(one.seconds)
    for one in fed:
        assert one.spent.matching > 0 < one.spent.transfer
        assert one.live > 0 < one.held
        assert one.lag is not None
        assert one.lag >= 10
        assert one.age is not None
        assert one.age > 365 * 24 * 3600, "the events are of 2024"
        assert 1 / 3 <= one.fullest < 1
    assert (told[-1].lag, told[-1].live, told[-1].held) == (0, 0, 0)


def test_a_key_with_most_of_the_events_is_told(tmp_path: Path) -> None:
    size = 2_000
    keys = {"uneven": [0 if i % 10 else i for i in range(size)], "even": list(range(size))}
    for name, own in keys.items():
        columns = {"ts": range(size), "type": ["ab"[i % 2] for i in range(size)], "k": own}
        stream = FileStream(job_of(pa.table(columns)), tmp_path / name, 0)
        stream.push(numbered(pa.table(columns)))
        told = "\n".join(map(json.dumps, stream.told.values()))
        one = progress_of(
            {
                "observedMetrics": {"acep_": Row(told=told, names='[""]')},
                "batchId": 0,
                "eventTime": {},
                "numInputRows": size,
                "durationMs": {"triggerExecution": 1000},
            }
        )
        assert one is not None
        assert one.skewed == (name == "uneven")
        assert 0.9 <= one.fullest < 1 if name == "uneven" else one.fullest < 0.2
        assert one.fullest == max(bucket["rows"] for bucket in stream.told.values()) / size


def job_of(table: pa.Table) -> Job:
    return the_job(numbered(table), acep.regex("ab", within=5, by="k"), buckets=8)


def test_no_time_is_part_of_a_state(tmp_path: Path) -> None:
    table = events_table(120, 5)
    job = the_job(table, QUERY, buckets=2)
    written = []
    for name, moment in (("one", 1e9), ("two", 2e9)):
        with mock.patch("time.time", return_value=moment):
            FileStream(job, tmp_path / name, 5_000).stream([table.slice(0, 60), table.slice(60)])
        files = [file for file in sorted((tmp_path / name).rglob("*")) if file.is_file()]
        written.append([(str(file.relative_to(tmp_path / name)), file.read_bytes()) for file in files])
    assert len(written[0]) > 6
    assert written[0] == written[1]


def test_a_listener_without_a_function_writes_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    one = Progress(3, 1200, 0, 7, 5, 2_000_000, "", 0, 600, 0.5, live=4, spent=Spent(0.25, 0.125, 0.125))
    with mock.patch("acep.spark.listening.progress_of", return_value=one):
        listener = acep.spark.listener()
        listener.onQueryProgress(mock.Mock(progress=mock.Mock(name="q", id="the id")))
    line = capsys.readouterr().err
    counts = " 3: 1,200 events (1,200/s), 5 held, 4 live, 7 matches, state 2.00 MB"
    assert line.endswith(f"{counts}; 50 % Spark, 25 % transfer, 25 % matching\n")
