"""A declarative pipeline: matches are a table or a streaming table of it, if they are defined outside of its query
functions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep

pytestmark = [pytest.mark.long, pytest.mark.spark]

QUERY = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5"
SPECIFICATION = "name: trial\nstorage: file://{folder}/storage\nlibraries: [{{glob: {{include: 'definitions/**'}}}}]\n"
DEFINITIONS = f"""
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

import acep.spark

spark = SparkSession.active()
letters = spark.range(20).selectExpr("id AS ts", "IF(id % 2 = 0, 'A', 'B') AS type", "id % 3 AS k")
batch_matches = acep.spark.match(letters, {QUERY!r}, id="ts", seq="ts", buckets=2, flat=True)
arriving = spark.readStream.schema("ts long, type string, k long").parquet("arriving")
stream_matches = acep.spark.match(
    arriving, {QUERY!r}, id="ts", seq="ts", buckets=2, flat=True, watermark=9, state=Path("acep-state").resolve()
)


@dp.materialized_view
def matches():
    return batch_matches


@dp.table
def streamed_matches():
    return stream_matches


@dp.materialized_view
def refusals():
    for frame in (letters, spark.read.table("matches")):
        try:
            acep.spark.match(frame, {QUERY!r}, id="ts", seq="ts", buckets=2)
        except acep.EngineError as error:
            print(error.render())
    return letters
"""


def test_matches_are_a_table_of_a_pipeline(tmp_path: Path) -> None:
    pytest.importorskip("pyspark.pipelines")
    (tmp_path / "definitions").mkdir()
    (tmp_path / "definitions/matches.py").write_text(DEFINITIONS, encoding="utf-8")
    (tmp_path / "spark-pipeline.yml").write_text(SPECIFICATION.format(folder=tmp_path), encoding="utf-8")
    columns = {"ts": [*range(20)], "type": ["A", "B"] * 10, "k": [number % 3 for number in range(20)]}
    (tmp_path / "arriving").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "arriving/letters.parquet")
    last = {"ts": [99], "type": ["acep.punctuation"], "k": pa.array([None], pa.int64())}
    pq.write_table(pa.table(last), tmp_path / "arriving/time.parquet")
    command = [str(Path(sys.executable).with_name("spark-pipelines")), "run"]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    process = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    refusal = "a query function of a declarative pipeline may not ask for the columns of a DataFrame"
    assert process.stdout.count(refusal) == 2
    expected = acep.match(columns, QUERY).to_arrow(flat=True).select(["k", "start", "end"]).to_pylist()
    assert expected
    for table in ("matches", "streamed_matches"):
        rows = pq.read_table(tmp_path / "spark-warehouse" / table).select(["k", "start", "end"]).to_pylist()
        assert sorted(rows, key=str) == sorted(expected, key=str), table
    assert any((tmp_path / "acep-state").rglob("job")), "the state of the streaming table is in its folder"
