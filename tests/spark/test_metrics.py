"""Progress, as Spark and as Spark Connect tell it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row

from acep.spark.metrics import Progress, progress_of
from acep.spark.totals import SUMS, TALLIES

COUNTS: dict[str, Any] = {"events": 9, "late": 1, "memory": 0, "held": 2, "state": 100, "reference": 3, "allowance": 80}
COUNTS |= {"matches_0": 4, "nodes_0": 30, "deciding_0": 5, "shed_0": 6, "touches_0": 70}
# Two hundred units, in which half of the match points were found, and of no bundle is it known.
COUNTS |= {f"{tally}_{name}_0": 0.0 for tally in TALLIES for name in SUMS}
COUNTS |= {"points_units_0": 200.0, "points_x_0": 400.0, "points_y_0": 200.0, "points_whole_0": 800.0}
COUNTS |= {"unknown_0": "no bundle was seen", "buckets": 8, "names": '["one"]'}
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


def test_nothing_to_tell() -> None:
    assert progress_of(None) is None
    assert progress_of(told()) is None
    assert progress_of(told(acep_1=Row(**COUNTS | {"buckets": 0}))) is None
