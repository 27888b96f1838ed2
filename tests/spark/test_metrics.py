"""Progress, as Spark and as Spark Connect tell it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import Row

from acep.learning.estimation.recall import Tally
from acep.spark.metrics import Progress, progress_of
from acep.streaming.time_spent import Spent
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
BUCKET: dict[str, Any] = {
    "events": 9,
    "late": 1,
    "memory": 0,
    "allowance": 80,
    "held": 2,
    "state": 100,
    "live": 11,
    "reference": 3,
    "watermark": 7_000,
    "newest": 9_500,
    "instants": True,
    "ended": False,
    "pass": 0,
    "partition": 0,
    "spans": [[99.0, 99.25], [100.0, 100.5]],
    "matching": 0.5,
    "rows": 3,
    "queries": [QUERY],
}
NOTHING: dict[str, Any] = (
    dict.fromkeys(QUERY, 0) | {"unknown": ""} | dict.fromkeys(("points", "bundles"), [0.0] * len(SUMS))
)
NEVER_FED = {"watermark": 0, "newest": None, "partition": 1, "spans": [[100.25, 100.75]], "queries": [NOTHING]}
IDLE: dict[str, Any] = BUCKET | dict.fromkeys(("events", "late", "allowance", "held", "state", "live", "reference"), 0)
IDLE |= {"matching": 0.0, "rows": 1} | NEVER_FED


def lines(*buckets: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, buckets))


TOLD = lines(BUCKET, IDLE)
COUNTS: dict[str, Any] = {"told": TOLD, "names": '["one"]'}
CONNECT = Row(values=list(COUNTS.values()), schema={"fields": [{"name": name} for name in COUNTS]})


def told(**observed: Any) -> dict[str, Any]:
    return {
        "observedMetrics": observed,
        "batchId": 3,
        "eventTime": {"watermark": "2024-01-01T00:00:00.000Z"},
        "numInputRows": 5,
        "durationMs": {"triggerExecution": 1500},
        "timestamp": "1970-01-01T00:01:40.000Z",
    }


@pytest.mark.parametrize("row", [Row(**COUNTS), CONNECT], ids=["classic", "connect"])
def test_counts_of_a_progress(row: Row) -> None:
    one = progress_of(told(acep_1=row, others=Row(x=1)))
    assert one is not None
    (report,) = one.reports.values()
    counted = Progress(
        3, 9, 1, 4, 2, 100, "2024-01-01T00:00:00.000Z", 3, 5, 1.5, 30, 6, 70, 80, report, {"one": report}
    )
    # One second of the 1.5 some bucket was at work, 0.4 of it in the engine.
    assert one == replace(counted, live=11, lag=2.5, age=93.0, spent=Spent(0.5, 0.6, 0.4, 0.75), fullest=0.75)
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
    assert one.watermark == "1970-01-01T00:00:07.000Z"


def test_the_bucket_that_is_furthest_behind_tells_the_lag() -> None:
    ahead, ended = BUCKET | {"watermark": 9_000}, {"ended": True, "watermark": 0}
    cases = [
        ((BUCKET, ahead), 2.5, 93.0),
        ((BUCKET | ended, ahead), 0.5, 91.0),
        ((BUCKET | ended, IDLE | ended), 0.0, None),
        ((BUCKET | {"watermark": 0}, IDLE), None, None),
        ((BUCKET | {"instants": False}, IDLE), 2.5, None),
    ]
    for buckets, lag, age in cases:
        one = progress_of(told(acep_1=Row(**COUNTS | {"told": lines(*buckets)})))
        assert one is not None
        assert (one.lag, one.age) == (lag, age)


def test_a_line_for_each_micro_batch() -> None:
    one = progress_of(told(acep_1=Row(**COUNTS)))
    assert str(one) == (
        "9 events (3.33/s), 2 held, 11 live, 4 matches, 1 late, lag 2.5 s, state 0.00 MB, 6 shed, 88% of the allowance;"
        " 33 % Spark, 40 % transfer, 27 % matching"
    )
    for rows, says in ((7, True), (3, False)):
        text = lines(BUCKET | {"rows": rows}, IDLE)
        uneven = progress_of(told(acep_1=Row(**COUNTS | {"told": text})) | {"numInputRows": 1_000})
        assert ("one bucket has 88% of the rows" in str(uneven)) == says
    apart = progress_of(told(acep_1=Row(**COUNTS | {"told": lines(BUCKET, IDLE | {"pass": 1, "rows": 4})})))
    assert apart is not None
    assert apart.fullest == 1, "of the rows of its own query"


def test_connect_counts_the_rows_of_each_source() -> None:
    sources = {"numInputRows": None, "sources": [{"numInputRows": 4}, {"numInputRows": 3}]}
    one = progress_of(told(acep_1=CONNECT) | sources)
    assert one is not None
    assert one.rows == 7


def test_nothing_to_tell() -> None:
    assert progress_of(None) is None
    assert progress_of(told()) is None
    assert progress_of(told(acep_1=Row(**COUNTS | {"told": ""}))) is None
