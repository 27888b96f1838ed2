"""The recall that is estimated on Spark: what buckets saw adds up to it, however often a micro-batch is tried."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import Row

import acep
from acep.errors import QueryError, SnapshotError
from acep.matches.records import Counts
from acep.matches.report import Report
from acep.spark.metrics import progress_of
from acep.spark.workers.spark_state_worker import match_partition, pack, step
from acep.streaming import live_buckets
from acep.streaming.buckets import Bucket
from acep.streaming.job import Job
from acep.streaming.step import BUCKET
from acep.streaming.totals import METRICS_COLUMN, SUMS, TALLIES
from tests.spark.by_hand import FRAME, State, the_job
from tests.spark.streams import quiet_match
from tests.spark.test_budget import BUCKETS, QUERY, events, in_one_process

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _without_a_known_future(monkeypatch: pytest.MonkeyPatch) -> None:
    """The known future depends on how a stream is cut, and with it the result under a budget."""
    monkeypatch.setattr("acep.native.session.STRATEGIES", (0, 1))


pytest.importorskip("acep.native._native")

SIZE, WORK, SEEDS = 30_000, 2, 6  # half of the exact work


def job_of(table: pa.Table, query: Any = QUERY, **options: Any) -> Job:
    budget = acep.Budget(work=WORK, estimate=0.25)
    return the_job(table, query, **{"budget": budget, "seed": 1, "buckets": BUCKETS} | options)


def wide(job: Job, table: pa.Table, column: str = BUCKET) -> pa.Table:
    """Spread evenly, and always in the same way."""
    numbers = [int(key.split()[1]) % job.buckets for key in table.column("k").to_pylist()]
    return table.select(job.columns).append_column(column, pa.array(numbers, pa.int32()))


def in_a_batch(job: Job, table: pa.Table) -> tuple[list[dict[str, Any]], pa.Table]:
    """What each bucket tells, and the result."""
    rows = wide(job, table).sort_by([(BUCKET, "ascending"), ("ts", "ascending")])
    found = pa.Table.from_batches(match_partition(job, rows.to_batches(1000), tells=True, at_once=3000))
    told = found.column(METRICS_COLUMN)
    return [json.loads(text) for text in told.drop_null().to_pylist()], found.filter(told.is_null())


def on_a_stream(job: Job, table: pa.Table, rng: random.Random) -> list[dict[str, Any]]:
    """The same of micro-batches some of which are tried twice, by workers that forget."""
    states = {number: State() for number in range(job.buckets)}
    told: dict[int, dict[str, Any]] = {}
    cuts = sorted(rng.randrange(len(table)) for _ in range(5))
    for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
        (packed,) = pack(job, wide(job, table.slice(begin, end - begin), f"{BUCKET}0").to_batches(), announces=False)
        for row in packed.to_pylist():
            state, before = states[row["bucket"]], states[row["bucket"]].data
            state.watermark = table["ts"][begin - 1].as_py() if begin else 0
            for _ in range(rng.choice((1, 2))):
                state.data = before
                if rng.random() < 0.5:
                    live_buckets.forget_live()
                frames = iter([pd.DataFrame({n: [row[n]] for n in FRAME}).assign(ended=end == len(table))])
                (stepped,) = step(job, 0, (row["bucket"],), frames, state)  # type: ignore[arg-type]
            told[row["bucket"]] = json.loads(stepped[METRICS_COLUMN][0])
    return [told[number] for number in sorted(told)]


def added(told: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """As Spark collects it."""
    return {"told": "\n".join(json.dumps(one) for one in told), "names": json.dumps(names)}


def reports(told: list[dict[str, Any]], names: list[str]) -> tuple[Report, dict[str, Report]]:
    progress = {
        "observedMetrics": {"acep_": Row(**added(told, names))},
        "batchId": 0,
        "eventTime": {},
        "durationMs": {},
    }
    found = progress_of({"numInputRows": 0} | progress)
    assert found is not None
    return found.report, dict(found.reports)


def numbers(counts: Counts) -> list[float]:
    assert counts.points is not None
    assert counts.bundles is not None
    return [*counts.points.to_arrays().values(), *counts.bundles.to_arrays().values()]


@pytest.mark.parametrize("policy", ["random", "history"])
def test_what_buckets_saw_is_what_one_process_sees_of_them(policy: str) -> None:
    table = events(SIZE, 2)
    job = job_of(table, policy=policy)
    _, ours = in_one_process(job, wide(job, table, "bucket"))
    assert sum(numbers(one)[0] for one in ours) > 5
    for told in (in_a_batch(job, table)[0], on_a_stream(job, table, random.Random(3))):
        for here, one in zip(told, ours, strict=True):
            (query,) = here["queries"]
            assert [number for tally in TALLIES for number in query[tally]] == numbers(one)
            assert len(query["points"]) == len(SUMS)
            names = ("nodes", "deciding", "shed", "touches")
            assert [query[name] for name in names] == [getattr(one, name) for name in names]
            assert here["events"] == one.events
    report, _ = reports(told, [""])
    assert report.deciding > 0
    assert 0 < report.interval[0] < report.interval[1] < 1
    assert report.recall is None or report.interval[0] <= report.recall <= report.interval[1]


def test_the_interval_has_the_exact_recall() -> None:
    hits = []
    for seed in range(SEEDS):
        table = events(SIZE, seed)
        every = {(match.key["k"], match.end) for match in acep.match(table, QUERY, seq="__order", id="__row")}
        for policy in ("random", "history"):
            told, rows = in_a_batch(job_of(table, policy=policy, seed=seed), table)
            report, _ = reports(told, [""])
            found = set(
                zip(pa.compute.struct_field(rows["key"], "k").to_pylist(), rows["end"].to_pylist(), strict=True)
            )
            assert found <= every
            assert report.interval[1] - report.interval[0] < 0.6
            hits.append(report.interval[0] <= len(found) / len(every) <= report.interval[1])
    assert np.mean(hits) >= 0.8


def test_each_query_has_a_recall_of_its_own() -> None:
    table = events(SIZE, 2)
    other = acep.parse("PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { [k] } WITHIN 80")
    queries = {"deep": QUERY, "first": acep.parse(f"{other.text} OUTPUT LONGEST NON OVERLAP"), "wide": other}
    job = job_of(table, queries)
    report, each = reports(in_a_batch(job, table)[0], list(queries))
    assert not report.exact
    assert report.recall is None
    assert "each query has a recall of its own" in str(report)
    assert report.shed == sum(one.shed for one in each.values())
    assert each["deep"].interval != (0, 1)
    assert each["first"].recall is None
    assert "chosen" in each["first"].unknown
    told, _ = in_a_batch(job_of(table, queries, budget=acep.Budget(work=1e5)), table)
    _, sufficient = reports(told, list(queries))
    assert all(one.exact and one.recall == one.bundle_recall == 1 for one in sufficient.values())


def test_what_is_no_sum_is_told() -> None:
    table = events(200)
    job = job_of(table)
    bucket = Bucket(job, job.passes[0])
    for wrong in ({"units": -1.0}, {"x": float("inf")}, {"y": None}):
        changed = Bucket.loads(job, job.passes[0], bucket.dumps())
        tally: Any = changed.totals.queries[0].points
        changed.totals.queries[0].tallies = type(tally)(**tally.to_arrays() | wrong), None
        with pytest.raises(SnapshotError, match="does not hold what it should"):
            Bucket.loads(job, job.passes[0], dumped(changed))


def dumped(bucket: Bucket) -> bytes:
    bucket._count = lambda: None  # type: ignore[method-assign]
    return bucket.dumps()


def test_an_observation_is_of_a_batch(spark: Any) -> None:
    from pyspark.sql import Observation

    frame = spark.readStream.format("rate").load().selectExpr("timestamp ts", "'a' type", "value k", "1.0 x", "value n")
    with pytest.raises(QueryError, match="observation= is of a batch"):
        quiet_match(frame, acep.regex("ab", within="1 s"), seq="n", id="n", watermark="1 s", observation=Observation())
