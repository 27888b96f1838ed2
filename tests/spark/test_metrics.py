"""Progress, as Spark and as Spark Connect tell it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row

from acep.spark.metrics import Progress, progress_of

COUNTS = {"events": 9, "late": 1, "matches": 4, "held": 2, "state": 100, "reference": 3}
COUNTS |= {"made": 30, "shed": 6, "work": 70, "allowance": 80, "buckets": 8}
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
    assert one == Progress(3, 9, 1, 4, 2, 100, "2024-01-01T00:00:00.000Z", 3, 5, 1.5, 30, 6, 70, 80)
    two = progress_of(told(acep_1=row, acep_2=row))
    assert two is not None
    assert (two.events, two.matches, two.work) == (18, 8, 140)


def test_nothing_to_tell() -> None:
    assert progress_of(None) is None
    assert progress_of(told()) is None
    assert progress_of(told(acep_1=Row(**dict.fromkeys(COUNTS, 0)))) is None
