"""Real-Time Mode: Spark refuses operators of Python and foreachBatch there, so streams of acep too, in words that the
documentation repeats (docs/reference/spark_sessions.md)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import acep.spark
from tests.spark.streams import quiet_match

QUERY = "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 5"
OPTIONS: dict[str, Any] = {"seq": "ts", "id": "ts", "watermark": 1, "buckets": 2}
REFUSED = r"STREAMING_REAL_TIME_MODE\.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"


def has_real_time_mode() -> bool:
    """Return whether this PySpark has the trigger of Real-Time Mode."""
    from pyspark.sql.streaming import DataStreamWriter

    return "realTime" in inspect.signature(DataStreamWriter.trigger).parameters


@pytest.fixture
def events(spark: Any) -> Iterator[Any]:
    """A stream from the source in memory that Spark admits to Real-Time Mode."""
    if not has_real_time_mode():
        pytest.skip("this PySpark has no Real-Time Mode")
    from pyspark.sql import DataFrame

    jvm = spark._jvm
    source = jvm.org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream.singlePartition(
        spark._jsparkSession, jvm.org.apache.spark.sql.Encoders.STRING()
    )
    source.addData(jvm.org.apache.spark.api.python.PythonUtils.toSeq(["1 a 1", "2 b 1"]))
    words = "split(value, ' ')"
    yield DataFrame(source.toDF(), spark).selectExpr(
        f"cast({words}[0] AS long) AS ts", f"{words}[1] AS type", f"cast({words}[2] AS long) AS k"
    )
    source.stop()


def run_in_real_time(writer: Any, checkpoint: Path) -> None:
    """Run a stream in Real-Time Mode, for some seconds if Spark admits it."""
    writer = writer.outputMode("update").option("checkpointLocation", str(checkpoint))
    running = writer.trigger(realTime="5 seconds").start()
    try:
        running.awaitTermination(3)
    finally:
        running.stop()


@pytest.mark.long
def test_a_stream_without_python_is_admitted(events: Any, tmp_path: Path) -> None:
    """Nothing but the operators of acep is in the way."""
    run_in_real_time(events.writeStream.format("console"), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("place", ["checkpoint", "folder"])
def test_spark_refuses_match(events: Any, tmp_path: Path, place: str) -> None:
    state = "checkpoint" if place == "checkpoint" else str(tmp_path / "state")
    matches = quiet_match(events, QUERY, **OPTIONS, state=state)
    with pytest.raises(Exception, match=f"{REFUSED}.*MapInArrowExec.* not in the operator allowlist"):
        run_in_real_time(matches.writeStream.format("console"), tmp_path / "checkpoint")
    assert not [path for path in tmp_path.rglob("*-all") if path.is_file()], "nothing was stepped"


def test_spark_refuses_for_each_batch(events: Any, tmp_path: Path) -> None:
    batches: list[int] = []
    step = acep.spark.for_each_batch(
        QUERY, lambda _, batch: batches.append(batch), state=str(tmp_path / "state"), **OPTIONS
    )
    with pytest.raises(Exception, match=f"{REFUSED}.*ForeachBatchSink.* not in the sink allowlist"):
        run_in_real_time(events.writeStream.foreachBatch(step), tmp_path / "checkpoint")
    assert batches == []


def test_a_pyspark_without_real_time_mode_says_so(spark: Any) -> None:
    """The lowest PySpark that acep supports has no such trigger."""
    frame = spark.readStream.format("rate").load()
    if has_real_time_mode():
        assert frame.writeStream.trigger(realTime="5 seconds") is not None
    else:
        with pytest.raises(TypeError, match="realTime"):
            frame.writeStream.trigger(realTime="5 seconds")
