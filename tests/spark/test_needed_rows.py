"""Events of a stream that no query can use stay behind the shuffle, and are counted all the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.spark.listening import METRICS, observations
from acep.spark.workers.needed_worker import NEWEST, count_in, mark_rows_before
from acep.spark.workers.state_place import StatePlace
from tests.spark.by_hand import same
from tests.spark.streams import Folder, as_dicts, events_table, quiet_match

QUERY = acep.parse("PATTERN SEQ(a p, b q) WHERE [k] AND p.x > 1 WITHIN 20 seconds")
OTHER = acep.parse("PATTERN SEQ(b p, b q) WHERE [l] WITHIN 9 seconds")
COUNTED = ("events", "late", "matches", "late_now", "null_keys_now", "lag")


@given(
    st.lists(st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 3)), max_size=9), max_size=5),
    st.none() | st.integers(-20, 20),
    st.integers(1, 5),
)
def test_marks_carry_the_newest_time_and_all_counts(
    rows_by_part: list[list[tuple[int, int]]], final: int | None, partitions: int
) -> None:
    place = StatePlace(None, 1, 0, partitions, first_count=-(-8 // partitions) * partitions)
    parts = [
        (np.array([t for t, _ in rows], np.int64), np.array([w for _, w in rows], np.int64)) for rows in rows_by_part
    ]
    marks = [mark for part in mark_rows_before(final, parts, 4) for mark in part.tolist()]
    rows = [row for part in rows_by_part for row in part]
    counts = [count_in(place.first_count + partitions * (mark >> 1), place) for mark in marks if mark >> 1]
    assert all(0 < count <= 4 for count, _ in counts)
    for kind in (False, True):
        expected = sum(weight for tick, weight in rows if (final is not None and tick < final) is kind)
        assert sum(count for count, is_late in counts if is_late is kind) == expected
    announced = [tick for mark, (tick, _) in zip(marks, rows, strict=True) if mark & NEWEST]
    assert max(announced, default=None) == max((tick for tick, _ in rows), default=None)


def counts_and_rows(folder: Folder, query: Any, name: str, **options: Any) -> tuple[list[Any], list[Any], int]:
    """Run a stream: the rows of its result, what was counted of each micro-batch, and the rows that travelled."""
    from acep.spark.metrics import progress_of

    matches = quiet_match(folder.frame(), query, watermark="1 second", buckets=4, **options)
    writer = matches.writeStream.format("parquet").option("path", str(folder.path / name)).trigger(availableNow=True)
    running = writer.option("checkpointLocation", str(folder.path / f"{name}-checkpoint")).start()
    running.awaitTermination()
    n_travelled = 0
    for progress in running.recentProgress:
        for row in observations(progress["observedMetrics"], METRICS).values():
            n_travelled += sum(json.loads(line)["rows"] for line in row["told"].splitlines())
    progresses = [progress for p in running.recentProgress if (progress := progress_of(p)) is not None]
    rows = as_dicts(folder.spark.read.schema(matches.schema).parquet(str(folder.path / name)))
    return rows, [[getattr(progress, column) for column in COUNTED] for progress in progresses], n_travelled


@pytest.mark.long
@pytest.mark.parametrize(
    ("query", "partitions"),
    [
        (QUERY, "2"),
        pytest.param({"first": QUERY, "other": OTHER}, "2", marks=pytest.mark.long),
        pytest.param(QUERY, "1", marks=pytest.mark.whole),
    ],
)
def test_events_without_a_use_do_not_travel_and_are_counted(spark: Any, query: Any, partitions: str) -> None:
    """Spark's own store gets all events; so it says what the counts are. Some rows come late, some have no key."""
    folder = Folder(spark, events_table(600, disorder=20, types="abcccc"), 200)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    try:
        rows, counts, n_travelled = counts_and_rows(folder, query, "files")
        all_rows, all_counts, n_all = counts_and_rows(folder, query, "spark", state="spark")
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert counts == all_counts[: len(counts)]  # Spark's store needs another micro-batch to end
    assert counts[-1][1] > 1, "no row came late"
    assert same(rows, all_rows)
    assert len(rows) > 5
    assert n_travelled < 0.5 * n_all


@pytest.mark.long
@pytest.mark.parametrize("options", [{"id": None}, {"late": True}])
def test_all_events_travel_where_each_affects_the_result(spark: Any, options: dict[str, Any]) -> None:
    folder = Folder(spark, events_table(200, types="abcccc"), 100)
    _, counts, n_travelled = counts_and_rows(folder, QUERY, "files", **options)
    assert n_travelled == counts[-1][0] + counts[-1][1]
