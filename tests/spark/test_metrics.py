"""Progress, as Spark and as Spark Connect tell it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import Row

from acep.learning.recall import Tally
from acep.spark.metrics import Progress, progress_of
from acep.streaming.totals import SUMS

# Two hundred units, in which half of the match points were found, and of no bundle is it known.
POINTS = Tally(units=200.0, x=400.0, y=200.0, whole=800.0)
QUERY: dict[str, Any] = {
    "matches": 4,
    "nodes": 30,
    "deciding": 5,
    "shed": 6,
    "touches": 70,
    "unknown": "no bundle was seen",
}
QUERY |= {"points": [getattr(POINTS, name) for name in SUMS], "bundles": [0.0] * len(SUMS)}
BUCKET: dict[str, Any] = {"events": 9, "late": 1, "memory": 0, "allowance": 80, "held": 2, "state": 100, "reference": 3}
IDLE: dict[str, Any] = dict.fromkeys(BUCKET, 0) | {
    "queries": [dict.fromkeys(QUERY, 0) | {"unknown": ""}],
    "watermark": 5,
}
IDLE["queries"][0] |= {"points": [0.0] * len(SUMS), "bundles": [0.0] * len(SUMS)}
TOLD = "\n".join(json.dumps(one) for one in (BUCKET | {"queries": [QUERY], "watermark": 7}, IDLE))
COUNTS: dict[str, Any] = {"told": TOLD, "names": '["one"]'}
CONNECT = Row(values=list(COUNTS.values()), schema={"fields": [{"name": name} for name in COUNTS]})


def told(**observed: Any) -> dict[str, Any]:
    return {
        "observedMetrics": observed,
        "batchId": 3,
        "eventTime": {"watermark": "2024-01-01T00:00:00.000Z"},
        "numInputRows": 5,
        "durationMs": {"triggerExecution": 1500},
    }


@pytest.mark.parametrize("row", [Row(**COUNTS), CONNECT], ids=["classic", "connect"])
def test_counts_of_a_progress(row: Row) -> None:
    one = progress_of(told(acep_1=row, others=Row(x=1)))
    assert one is not None
    (report,) = one.reports.values()
    progress = Progress(
        3, 9, 1, 4, 2, 100, "2024-01-01T00:00:00.000Z", 3, 5, 1.5, 30, 6, 70, 80, report, {"one": report}
    )
    assert one == progress
    assert (report.events, report.made, report.kept, report.work, report.deciding) == (9, 30, 24, 70, 5)
    assert report.recall == 0.5
    assert 0.4 < report.interval[0] < 0.5 < report.interval[1] < 0.6
    assert report.bundle_recall is None
    two = progress_of(told(acep_1=row, acep_2=row))
    assert two is not None
    assert (two.events, two.matches, two.work) == (18, 8, 140)
    assert (two.report.recall, two.report.interval) == (None, (0, 1))
    assert "a recall of its own" in two.report.unknown


def test_the_watermark_of_a_stream_whose_state_is_in_files() -> None:
    one = progress_of(told(acep_1=Row(**COUNTS)) | {"eventTime": {}})
    assert one is not None
    assert one.watermark == "1970-01-01T00:00:00.007Z"


def test_nothing_to_tell() -> None:
    assert progress_of(None) is None
    assert progress_of(told()) is None
    assert progress_of(told(acep_1=Row(**COUNTS | {"told": ""}))) is None
