"""A run of a stream tells of itself: counts of the run, and one warning for each cause."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import acep
from acep.errors import DataWarning
from acep.spark import for_each_batch, listener
from acep.spark.metrics import Progress
from acep.streaming.progress import RunCounts
from tests.spark.streams import Folder, events_table, quiet_match
from tests.thinned import thinned

QUERY = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 30 seconds")
COLUMNS = {"seq": "__order", "id": "__row", "watermark": "5 seconds"}


def wait_until(condition: Callable[[], Any]) -> None:
    """Wait for what a thread of Spark's does after a run has ended."""
    until = time.monotonic() + 60
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)


def own_warnings(caught: list[warnings.WarningMessage], folder: Folder) -> list[str]:
    """The warnings about the stream of a folder. Spark's thread may still be telling of the runs of earlier tests."""
    texts = [str(warning.message) for warning in caught if issubclass(warning.category, DataWarning)]
    return [text for text in texts if text.startswith(f"stream {folder.path.name}: ")]


def run_by(route: str, folder: Folder) -> None:
    """Run the query over what is there, by match with its state in files or in Spark, or in foreachBatch."""
    frame, writer = folder.frame(), None
    if route == "for_each_batch":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step = for_each_batch(QUERY, lambda found, batch: None, state=folder.path / "state", **COLUMNS)
        writer = frame.writeStream.foreachBatch(step)
    else:
        state = "spark" if route == "spark" else None
        writer = quiet_match(frame, QUERY, **COLUMNS, state=state).writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(folder.path / "checkpoint")).queryName(folder.path.name)
    writer.trigger(availableNow=True).start().awaitTermination()


@pytest.mark.long
@pytest.mark.parametrize("route", thinned(["files", "spark", "for_each_batch"], 3))
def test_listeners_have_the_counts_of_the_run(spark: Any, route: str) -> None:
    """The second run counts from 0, also where the counts since the stream began go on."""
    table = events_table(240, seed=5)
    # The rows of a minute come again after all others, much too late.
    late = table.filter(pc.less(table["ts"], pa.scalar(table["ts"][60].as_py(), table["ts"].type)))
    renumbered = late.set_column(late.column_names.index("__row"), "__row", pc.add(late["__row"], 10_000))
    folder = Folder(spark, pa.concat_tables([table, renumbered]), 80, end=False)
    last = folder.path / "events" / "000003.parquet"
    last.rename(folder.path / "later")
    reports: list[Progress] = []
    listening = listener(reports.append)
    spark.streams.addListener(listening)
    try:
        run_by(route, folder)
        wait_until(lambda: reports and reports[-1].run is not None and reports[-1].run.rows == 240)
        first = reports[-1]
        (folder.path / "later").rename(last)
        run_by(route, folder)
        wait_until(lambda: reports[-1].run is not None and reports[-1].run.rows == late.num_rows)
    finally:
        spark.streams.removeListener(listening)
    null_keys = table["k"].null_count
    assert first.run == RunCounts(rows=240, null_keys=null_keys, held_back=first.held)
    assert first.held > 0
    second = reports[-1]
    assert second.run is not None
    assert second.run.rows == late.num_rows
    assert second.run.late == second.late == late.num_rows - late["k"].null_count
    assert second.run.null_keys == late["k"].null_count


@pytest.mark.long
@pytest.mark.parametrize("route", thinned(["for_each_batch", "files", "spark"], 3))
def test_a_run_that_leaves_events_held_says_so_once(spark: Any, route: str) -> None:
    table = events_table(120, seed=6)
    folder = Folder(spark, table, 60, end=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_by(route, folder)
        wait_until(lambda: own_warnings(caught, folder))
    (text,) = own_warnings(caught, folder)
    assert ": the run has ended with " in text
    (shown,) = (warning for warning in caught if str(warning.message) == text)
    line = warnings.formatwarning(shown.message, shown.category, shown.filename, shown.lineno)
    assert line == f"<acep.spark>:1: DataWarning: {text}\n"  # no line of the source of acep
    assert "2024-03-31T00:01:5" in text
    assert "acep.spark.punctuation(df, until=...)" in text
    assert text.endswith(f"; of 120 rows {table['k'].null_count} have no partition attribute")
    folder.end()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_by(route, folder)
        time.sleep(0.5)
    assert not own_warnings(caught, folder)


@pytest.mark.long
def test_a_stream_whose_rows_come_late_warns_once_and_not_once_a_bucket(spark: Any) -> None:
    table = events_table(300, seed=7)
    folder = Folder(spark, pa.concat_tables([table.slice(260), table.slice(0, 260)]), 100)
    matches = quiet_match(folder.frame(), QUERY, **COLUMNS | {"id": None}, buckets=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        writer = matches.writeStream.format("noop").option("checkpointLocation", str(folder.path / "checkpoint"))
        writer.queryName(folder.path.name).trigger(availableNow=True).start().awaitTermination()
        wait_until(lambda: own_warnings(caught, folder))
    texts = [text for text in own_warnings(caught, folder) if "most events come too late" in text]
    assert len(texts) == 1
    assert "latest=" in texts[0]
