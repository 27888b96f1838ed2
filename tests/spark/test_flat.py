"""Flat results on Spark: a CSV sink takes them from a batch and from both routes of a stream."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.spark import for_each_batch
from acep.spark.chunks import ORDER, ROW
from tests.spark.streams import Folder, as_dicts, events_table, quiet_match
from tests.thinned import thinned

pytestmark = pytest.mark.long

QUERY = acep.parse(
    "PATTERN SEQ(a p, b+ q[], c? r) WHERE skip_till_next_match(p, q[], r) { [k] } WITHIN 4 seconds "
    "RETURN count(q[]) AS many, p.x AS K",
    errors=1,
    weights={"p": 0.5},
)
TABLE = events_table(60)
HEADS = ["k", "start", "end", "error", "p", "q_first", "q_last", "r", "bundle", "many", "value_K"]


def expected() -> list[dict[str, Any]]:
    found = acep.match(TABLE, QUERY, seq=ORDER, id=ROW)
    rows = found.to_arrow(flat=True).to_pylist()
    assert len(rows) > 20
    assert {row["p"] is None for row in rows} == {row["r"] is None for row in rows} == {False, True}
    assert any(row["q_first"] != row["q_last"] for row in rows)
    return rows


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def written(folder: Path) -> list[dict[str, str]]:
    rows = []
    for file in sorted(folder.glob("*.csv")):
        with file.open(newline="") as lines:
            rows += list(csv.DictReader(lines))
    return rows


def as_text(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as they are in CSV, without their times, which Spark writes in a form of its own."""
    times = {"start", "end", "bundle"}
    return in_order([{n: "" if v is None else str(v) for n, v in row.items() if n not in times} for row in rows])


def test_a_batch_goes_to_csv(spark: Any, tmp_path: Path) -> None:
    found = quiet_match(spark.createDataFrame(TABLE), QUERY, flat=True)
    assert found.columns == HEADS
    assert in_order(as_dicts(found)) == in_order(expected())
    found.write.option("header", True).csv(str(tmp_path / "out"))
    assert as_text(list(written(tmp_path / "out"))) == as_text(expected())


@pytest.mark.parametrize("route", thinned(["files", "state"], 2, pytest.mark.whole))
def test_a_stream_goes_to_csv(spark: Any, route: str, tmp_path: Path) -> None:
    stream = Folder(spark, TABLE, 20)
    options = {"state": str(tmp_path / "state") if route == "files" else "spark"}
    found = quiet_match(stream.frame(), QUERY, watermark="1 second", buckets=2, flat=True, **options)
    writer = found.writeStream.format("csv").option("header", True).option("path", str(tmp_path / "out"))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert as_text(list(written(tmp_path / "out"))) == as_text(expected())


@pytest.mark.parametrize("on_driver", [False, True])
def test_each_batch_is_flat(spark: Any, on_driver: bool, tmp_path: Path) -> None:
    stream = Folder(spark, TABLE, 20)
    rows: list[dict[str, Any]] = []

    def sink(found: Any, _: int) -> None:
        rows.extend(found.to_pylist() if isinstance(found, pa.Table) else as_dicts(found))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = for_each_batch(
            QUERY, sink, state=tmp_path / "state", watermark="1 second", buckets=2, seq=ORDER, id=ROW,
            on_driver=on_driver, flat=True,
        )  # fmt: skip
    writer = stream.frame().writeStream.foreachBatch(step).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert in_order(rows) == in_order(expected())


def test_other_outputs_and_mistakes(spark: Any) -> None:
    frame = spark.createDataFrame(TABLE)
    points = quiet_match(frame, QUERY, output="points", flat=True)
    assert points.columns == ["k", "point", "best"]
    with pytest.raises(acep.QueryError, match="which a new version may change"):
        quiet_match(frame, QUERY, flat=True, versions=frame)
    with pytest.raises(acep.QueryError, match="flat= is True or False"):
        quiet_match(frame, QUERY, flat="csv")
    odd = pa.table({"ts": [1], "type": ["a"], "dev": [{"i d": 1}], "no`x": [3]})
    query = "PATTERN SEQ(a p) WHERE [`dev.i d`] RETURN p.`no``x` AS `y.z`"
    found = quiet_match(spark.createDataFrame(odd), query, seq=None, id=None, flat=True)
    assert found.columns == ["dev.i d", "start", "end", "error", "p", "bundle", "y.z"]
    assert as_dicts(found)[0]["y.z"] == 3
