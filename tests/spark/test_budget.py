"""Best effort on Spark: a budget has the same answer in one process, in a batch and in a stream, however often a
micro-batch is tried."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import Observation

import acep
from acep.budget.policies import policy_of
from acep.engine.found import Counts
from acep.engine.limits import Limits
from acep.engine.report import Report
from acep.engine.stream import Stream
from acep.engine.tables import batch_of
from acep.errors import QueryError, SnapshotError
from acep.learning.recall import Tally
from acep.spark import workers
from acep.spark.buckets import Bucket
from acep.spark.job import Job, plans_of
from acep.spark.metrics import report_of, reports_of
from acep.spark.results import match_rows
from acep.spark.running import _bucket
from acep.spark.workers import pack, step
from tests.spark.by_hand import State, as_rows, batch, numbered, rows_of, same, spread, stream, the_job
from tests.spark.streams import Folder, as_dicts, quiet_match

pytest.importorskip("acep.engine._native")

QUERY = acep.parse(
    "PATTERN SEQ(a p, b q, a r, b s) WHERE skip_till_any_match(p, q, r, s) "
    "{ [k] AND q.x > p.x AND r.x < q.x AND s.x > r.x } WITHIN 200"
)
BUDGET = acep.Budget(work=1.5)
BUCKETS = 3


@cache
def events(size: int = 6_000, seed: int = 1) -> pa.Table:
    """Events of a dozen keys, in order, ties among them; a window holds more partial matches than the budget allows."""
    rng = random.Random(seed)
    columns = {
        "ts": sorted(rng.randrange(size) for _ in range(size)),
        "type": rng.choices("abc", k=size),
        "k": rng.choices([f"key {i}" for i in range(12)], k=size),
        "x": [rng.random() for _ in range(size)],
    }
    return numbered(pa.table(columns))


def in_one_process(job: Job, buckets: pa.Table) -> tuple[list[dict[str, Any]], list[Counts]]:
    """Each bucket's rows through a stream of its own, in batches that have nothing to do with Spark's; and what each
    counts."""
    assert job.budget is not None
    plans = plans_of(job.queries, job.schema)
    found: list[dict[str, Any]] = []
    counts = []
    for number in range(job.buckets):
        mine = buckets.filter(pa.compute.equal(buckets.column("bucket"), number))
        one = Stream(plans, "native", "matches", Limits(policy_of(job.policy), job.budget, job.seed))
        ids = mine.column(job.schema.id).to_numpy()
        whole = batch_of(mine, job.schema, plans[0].columns)
        given = [matches for part in whole.parts(999) for matches in one.push(part)] + one.finish()
        assert len(ids) == one.counts.events
        assert one.counts.touches <= job.budget.work * one.counts.events
        for matches in given:
            if len(matches):
                found += match_rows(job, plans, 0, matches).to_pylist(maps_as_pydicts="strict")
        counts.append(one.counts)
    return found, counts


@pytest.mark.parametrize("policy", ["history", "random", "newest-per-state"])
def test_a_batch_and_a_stream_give_what_one_process_gives(policy: str) -> None:
    table = events()
    job = the_job(table, QUERY, budget=BUDGET, policy=policy, seed=7, buckets=BUCKETS)
    wide = spread(job, table).rename_columns([*job.columns, "bucket"])
    ours, _ = in_one_process(job, wide)
    exact = as_rows(acep.match(table, QUERY, id="__row"))
    assert 0 < len(ours) < len(exact) / 2
    assert {repr(row) for row in map(without_bundle, ours)} <= {repr(row) for row in map(without_bundle, exact)}
    assert same(batch(job, table), ours)
    sizes = [700, 1, 900, 1300, 400]
    # Some micro-batches are tried twice, and workers forget: what is learned is in the state.
    found, _, totals = stream(job, rows_of(table, range(len(table)), sizes), delay=2, rng=random.Random(3))
    assert same(found, ours)
    assert totals["matches"] == len(ours)


def without_bundle(row: dict[str, Any]) -> list[Any]:
    return [row["start"], row["end"], sorted(row["bindings"].items())]


def test_one_bucket_gives_what_one_call_gives() -> None:
    table = events()
    ours = batch(the_job(table, QUERY, budget=BUDGET, policy="random", seed=1, buckets=1), table)
    whole = acep.match(table, QUERY, budget=BUDGET, policy="random", seed=1, seq="__order", id="__row")
    assert same(ours, as_rows(whole))


def test_a_checkpoint_belongs_to_its_work_and_its_policy() -> None:
    table = events(200)
    given = {"budget": BUDGET, "policy": "random", "seed": 1, "buckets": 1}
    job = the_job(table, QUERY, **given)
    data = Bucket(job, job.pass_of(0)).dumps()
    unbound: dict[str, Any] = {"budget": None, "policy": "history"}
    for other in (unbound, {"budget": acep.Budget(work=11)}, {"policy": "newest"}, {"seed": 2}):
        changed = the_job(table, QUERY, **given | other)
        with pytest.raises(SnapshotError, match="made by another query"):
            Bucket.loads(changed, changed.pass_of(0), data)


def test_mistakes_are_told() -> None:
    table = events(200)
    with pytest.raises(QueryError, match="there is no policy 'hsitory'"):
        the_job(table, QUERY, budget=BUDGET, policy="hsitory")
    with pytest.raises(QueryError, match="goes by its name"):
        the_job(table, QUERY, budget=BUDGET, policy=policy_of("random")())
    with pytest.raises(acep.EngineError, match="only the native core keeps to a budget"):
        the_job(table, QUERY, budget=BUDGET, engine="reference")
    with pytest.raises(QueryError, match="recover= is not for Spark"):
        the_job(table, QUERY, budget=acep.Budget(work=10, recover=True))


def test_on_spark_too(spark: Any) -> None:
    table = events(20_000)
    frame = spark.createDataFrame(table)
    options: dict[str, Any] = {"budget": acep.Budget(work=1.5, estimate=0.25), "seed": 7, "buckets": BUCKETS}
    job = the_job(table, QUERY, **options)
    wide = frame.select("*", _bucket(frame, job.passes[0]).alias("bucket")).orderBy("__order").toArrow()
    ours, counts = in_one_process(job, wide)
    assert ours
    seen = Observation()
    assert same(as_dicts(quiet_match(frame, QUERY, **options, observation=seen)), ours)
    report = report_of(seen)
    assert_told(report, counts)
    # The stream stops in its middle and is taken up again.
    folder = Folder(spark, table, 7_000, end=False)
    last = max((folder.path / "events").glob("*.parquet"))
    last.rename(folder.path / "later")
    found = quiet_match(folder.frame(), QUERY, watermark=1, **options)
    some, _ = folder.run(found)
    assert 0 < len(some) < len(ours)
    (folder.path / "later").rename(last)
    folder.end()
    rows, told = folder.run(quiet_match(folder.frame(), QUERY, watermark=1, **options))
    assert same(rows, ours)
    assert told[-1].matches == len(ours)
    # Of the last bundles more is known there: the watermark has passed the last event of each bucket.
    streamed = told[-1].report
    assert streamed.bundle_recall == pytest.approx(report.bundle_recall, abs=0.02)
    bundles = {"bundle_recall": report.bundle_recall, "bundle_interval": report.bundle_interval}
    assert replace(streamed, **bundles, recall=report.recall, interval=report.interval) == report
    assert (streamed.recall, *streamed.interval) == pytest.approx((report.recall, *report.interval))
    # Nothing is given up, and nothing is estimated.
    seen = Observation()
    assert quiet_match(frame, QUERY, seq="__order", output="count", observation=seen).collect()[0]["count"] > len(ours)
    (exact,) = reports_of(seen).values()
    assert exact.exact
    assert (exact.recall, exact.interval, exact.bundle_recall) == (1, (1, 1), 1)


def assert_told(report: Report, counts: Sequence[Counts]) -> None:
    """It is that of all buckets together."""
    for part, recall, interval in (
        ("points", report.recall, report.interval),
        ("bundles", report.bundle_recall, report.bundle_interval),
    ):
        found = sum((getattr(one, part) for one in counts), Tally()).estimate()
        assert found is not None
        assert (recall, *interval) == pytest.approx((found.recall, found.low, found.high))
    assert (report.made, report.work) == (sum(one.nodes for one in counts), sum(one.touches for one in counts))


@pytest.mark.parametrize("seed", range(3))
def test_an_allowance_goes_on_after_a_restart(seed: int) -> None:
    """Whoever gives each batch an allowance gets the same, whether the stream was restored before it or not."""
    table, rng = events(), random.Random(seed)
    (plan,) = plans_of((QUERY,), the_job(table, QUERY, budget=BUDGET).schema)
    limits = Limits(policy_of("newest"), acep.Budget())
    one, other = (Stream([plan], "native", "matches", limits) for _ in range(2))
    whole = batch_of(table, the_job(table, QUERY).schema, plan.columns)
    used = 0
    for part in whole.parts(500):
        rate = rng.uniform(0.2, 3)
        before = one.counts.touches
        found = []
        for each in (one, other):
            each.allow(rate, len(part), math.inf)
            found.append([(match.end, match.bindings) for match in each.push(part)[0]])
        assert found[0] == found[1]
        assert one.counts == other.counts
        assert (one.counts.points, one.counts.bundles) == (other.counts.points, other.counts.bundles)
        assert one.counts.touches - before <= rate * len(part) * 9 / 8 + 1
        used += one.counts.touches - before > rate * len(part) / 2
        other = Stream.restore([plan], other.snapshot(), "native", "matches", limits)
    assert used > 3


# Time ---------------------------------------------------------------------------------------------


class Clock:
    """In place of ``time``: as fast as is said."""

    def __init__(self, pace: float) -> None:
        self.pace, self.now = pace, 0.0

    def tick(self) -> float:
        self.now += self.pace
        return self.now

    perf_counter = thread_time = time = tick


def test_a_batch_that_is_tried_again_is_given_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    table = events()
    budget, rng = acep.Budget(latency=0.2, cpu=0.05), random.Random(4)
    job = the_job(table, QUERY, budget=budget, seed=1, buckets=1, unit="ms")
    state, paces, works = State(), set(), set()
    for n in range(0, len(table), 500):
        rows = spread(job, table.slice(n, 500)).to_batches()
        (blob,) = (one["rows"] for packed in pack(job, rows) for one in packed.to_pylist())
        state.began, state.watermark = n // 10, n
        tries = []
        before = state.data
        for pace in (0.01, rng.uniform(0.02, 0.05)):
            monkeypatch.setattr("acep.spark.pace.time", Clock(pace))
            workers._LIVE.clear()
            state.data, state.timeout = before, None
            (out,) = step(job, (0,), iter([pd.DataFrame({"rows": [blob]})]), state)  # type: ignore[arg-type]
            tries.append((bytes(out["rows"][0]), state.get[0], *map(int, (out["allowance"][0], out["counts"][0][-1]))))
        assert (tries[0][0], *tries[0][2:]) == (tries[1][0], *tries[1][2:])
        assert tries[0][1] != tries[1][1], "what was measured is not in the state"
        after = Bucket.loads(job, job.pass_of(0), state.get[0]).pace
        assert after is not None
        paces.add(after.seconds)
        works.add(tries[0][3])
    assert len(paces) > 3
    assert len(works) > 3
