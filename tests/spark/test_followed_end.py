"""What `acep.spark.punctuation` writes is the end of a folder that `acep follow` follows, in each format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import acep
from acep.spark import punctuation
from tests.runner.streams import fast_disk

pytestmark = pytest.mark.long

WRITES = "spark.sql.parquet.outputTimestampType"
TIMES = {
    "timestamp": "timestamp_micros(n * 1000000)",
    "date": "date_from_unix_date(int(n))",
    "long": "n",
    "int": "int(n)",
}


@pytest.fixture(autouse=True)
def _microseconds(spark: Any) -> Iterator[None]:
    spark.conf.set(WRITES, "TIMESTAMP_MICROS")
    yield
    spark.conf.unset(WRITES)


@pytest.mark.parametrize("form", ["parquet", "json", "csv"])
def test_the_row_that_spark_writes_ends_a_folder_that_is_followed(spark: Any, form: str, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, "a", "u", 7), (2, "b", "u", 8)], "n long, type string, k string, v long")
    for name, time in TIMES.items():
        if name == "int" and form != "parquet":
            continue  # a text does not say of how many bits its number is
        events = rows.selectExpr(
            f"{time} AS ts", "type", "k", "named_struct('v', v) AS inner" if form != "csv" else "v"
        )
        folder = tmp_path / name
        for frame in (events, punctuation(events)):
            frame.coalesce(1).write.mode("append").format(form).option("header", True).save(str(folder))
        unit = {"timestamp": " seconds", "date": " days"}.get(name, "")
        query = acep.parse(f"PATTERN SEQ(a x, b y, ~c z) WHERE [k] WITHIN 5{unit}")
        places = {"state": tmp_path / f"{name}-state", "into": tmp_path / f"{name}-found"}
        options = {"format": "jsonl"} if form == "json" else {}
        with fast_disk():
            done = acep.follow(folder, query, once=True, max_files=1, end_marker=True, **places, **options)
        assert (done.ended, done.report.events, done.report.matches) == (True, 2, 1), name
