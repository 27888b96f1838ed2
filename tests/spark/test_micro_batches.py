"""A micro-batch of ``foreachBatch``: one that is matched by itself says so, and one of which nothing is read counts."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import acep.spark

pytestmark = pytest.mark.long

COLUMNS = "ts long, type string, n long"
PAIR = "PATTERN SEQ(a p, b q) WITHIN 5"
CLAUSE = "ORDER BY ts MEASURES count(*) AS size PATTERN (A B) DEFINE A AS type = 'a', B AS type = 'b'"
OPTIONS: dict[str, Any] = {"seq": "n", "id": "n", "watermark": 0}
SAID = "a micro-batch of foreachBatch is matched by itself, so no match goes from one to the next"


def match_it(batch: Any) -> Any:
    return acep.spark.match(batch, PAIR, **OPTIONS)


def match_its_part(batch: Any) -> Any:
    return acep.spark.match(batch.where("n >= 0").union(batch.limit(0)), PAIR, **OPTIONS)


def match_a_clause(batch: Any) -> Any:
    return acep.spark.match_recognize(batch, CLAUSE)


def match_a_table(batch: Any) -> Any:
    return acep.spark.match(
        batch.sparkSession.range(3).selectExpr("id AS ts", "'a' AS type", "id AS n"), PAIR, **OPTIONS
    )


@pytest.mark.parametrize(
    ("function", "expected"),
    [(match_it, True), (match_its_part, True), (match_a_clause, True), (match_a_table, False)],
)
def test_a_micro_batch_that_is_matched_by_itself(
    spark: Any, function: Callable[[Any], Any], expected: bool, tmp_path: Path
) -> None:
    folder = str(tmp_path / "events")
    for row in ((1, "a", 0), (2, "b", 1)):
        spark.createDataFrame([row], COLUMNS).coalesce(1).write.mode("append").parquet(folder)
    messages: list[str] = []

    def look(batch: Any, _: int) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(batch)
        messages.extend(str(warning.message) for warning in caught)

    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(folder)
    writer = stream.writeStream.foreachBatch(look).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert sum(message.startswith(SAID) for message in messages) == (2 if expected else 0)


def test_a_stream_that_is_matched_says_nothing(spark: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "events")
    for row in ((1, "a", 0), (2, "b", 1), (3, "c", 2)):
        spark.createDataFrame([row], COLUMNS).coalesce(1).write.mode("append").parquet(folder)
    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(folder)
    ends: list[int] = []

    def keep(matches: Any, _: int) -> None:
        ends.extend(row.end for row in matches.collect())

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        step = acep.spark.for_each_batch(
            PAIR, lambda found, _: ends.extend(row.end for row in found.collect()), **OPTIONS
        )
        writer = stream.writeStream.foreachBatch(step).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    assert ends == [2]
    assert not [warning for warning in caught if SAID in str(warning.message)]


def test_the_state_goes_on_where_a_sink_reads_nothing(spark: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "events")
    ends: list[int] = []

    def run(sink: Callable[[Any, int], None]) -> None:
        stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the query sees the whole stream in one place
            matches = acep.spark.match(stream, PAIR, state=str(tmp_path / "state"), **OPTIONS)
        writer = matches.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    for rows, sink in (
        ([(1, "a", 0), (2, "b", 1), (9, "a", 2)], lambda *_: None),
        ([(10, "b", 3), (20, "c", 4)], lambda matches, _: ends.extend(row.end for row in matches.collect())),
    ):
        for row in rows:
            spark.createDataFrame([row], COLUMNS).coalesce(1).write.mode("append").parquet(folder)
        run(sink)
    # The match that ends at 2 went to the first sink, and the partial match of 9 goes on.
    assert ends == [10]


def test_modules_for_users_are_attributes() -> None:
    program = "import acep.spark; print(acep.spark.metrics.progress_of.__name__, acep.spark.replay.replay.__name__)"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout == "progress_of replay\n"
