"""Best effort on Spark: a budget has the same answer in one process, in a batch and in a stream, however often a
micro-batch is tried."""

from __future__ import annotations

import json
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
from acep.errors import QueryError, SnapshotError
from acep.events.tables import batch_of
from acep.learning.estimation.recall import Tally
from acep.matches.records import Counts
from acep.matches.report import SURE, Report
from acep.runtime.stream import Stream
from acep.shedding.limits import CREDIT, Limits
from acep.spark.job_run import bucket_number
from acep.spark.metrics import report_of, reports_of
from acep.spark.workers.spark_state_worker import pack, step
from acep.streaming import live_buckets
from acep.streaming.buckets import Bucket
from acep.streaming.job import Job
from acep.streaming.results import match_rows
from acep.streaming.totals import METRICS_COLUMN
from tests.spark.by_hand import (
    State,
    as_rows,
    batch,
    numbered,
    rows_of,
    rows_that_differ,
    same,
    spread,
    stream,
    the_job,
)
from tests.spark.streams import Folder, as_dicts, quiet_match
from tests.thinned import thinned

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _without_a_known_future(monkeypatch: pytest.MonkeyPatch) -> None:
    """The known future depends on how a stream is cut, and with it the result under a budget."""
    monkeypatch.setattr("acep.native.session.STRATEGIES", (0, 1))


pytest.importorskip("acep.native._native")

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
    plans = job.plans
    found: list[dict[str, Any]] = []
    counts = []
    for number in range(job.buckets):
        mine = buckets.filter(pa.compute.equal(buckets.column("bucket"), number))
        one = Stream(plans, "native", "matches", Limits(policy_of(job.policy), job.budget, job.seed))
        ids = mine.column(job.schema.id).to_numpy()
        whole = batch_of(mine, job.schema, plans[0].columns)
        given = [matches for part in whole.parts(999) for matches in one.push(part)] + one.finish()
        assert len(ids) == one.counts.events
        assert one.counts.touches <= job.budget.work * (one.counts.events + CREDIT)
        for matches in given:
            if len(matches):
                found += match_rows(job, plans, 0, matches).to_pylist(maps_as_pydicts="strict")
        counts.append(one.counts)
    return found, counts


@pytest.mark.parametrize("policy", thinned(["history", "random", "newest-per-state"], 2, pytest.mark.whole))
def test_a_batch_and_a_stream_give_what_one_process_gives(policy: str) -> None:
    table = events()
    job = the_job(table, QUERY, budget=BUDGET, policy=policy, seed=7, buckets=BUCKETS)
    wide = spread(job, table).rename_columns([*job.columns, "bucket"])
    ours, _ = in_one_process(job, wide)
    exact = as_rows(acep.match(table, QUERY, id="__row"))
    assert 0 < len(ours) < len(exact) / 2
    assert {repr(row) for row in map(without_bundle, ours)} <= {repr(row) for row in map(without_bundle, exact)}
    assert rows_that_differ(batch(job, table), ours) == ""
    sizes = [700, 1, 900, 1300, 400]
    # Some micro-batches are tried twice, and workers forget: what is learned is in the state.
    found, _, totals = stream(job, rows_of(table, range(len(table)), sizes), delay=2, rng=random.Random(3))
    assert rows_that_differ(found, ours) == ""
    assert totals["matches"] == len(ours)


def without_bundle(row: dict[str, Any]) -> list[Any]:
    return [row["start"], row["end"], sorted(row["bindings"].items())]


def test_one_bucket_gives_what_one_call_gives() -> None:
    table = events()
    ours = batch(the_job(table, QUERY, budget=BUDGET, policy="random", seed=1, buckets=1), table)
    whole = acep.match(table, QUERY, budget=BUDGET, policy="random", seed=1, seq="__order", id="__row")
    assert rows_that_differ(ours, as_rows(whole)) == ""


OUTPUTS = ("matches", "points", "bundles", "count")


@pytest.mark.parametrize("output", thinned(OUTPUTS, 2, pytest.mark.whole))
def test_what_may_be_incomplete_says_so(output: str) -> None:
    whole = events(3_000)
    calm = [ts >= 1000 or row % 4 == 0 for row, ts in enumerate(whole.column("ts").to_pylist())]
    table = whole.filter(pa.array(calm))
    # A search for match points may spend the allowance of some thousand events ahead.
    works = (0.1 if output == "points" else 1.5, 1e6)
    some, sufficient = ({"budget": acep.Budget(work=work), "output": output} for work in works)
    unbounded = the_job(table, QUERY, output=output, buckets=BUCKETS)
    assert "exact" not in unbounded.result.names
    assert "exact" not in the_job(table, QUERY, output=output, budget=acep.Budget(errors=1)).result.names
    truth = batch(unbounded, table)
    enough = batch(the_job(table, QUERY, **sufficient, buckets=BUCKETS), table)
    assert rows_that_differ(enough, truth) == ""
    assert {row["exact"] for row in enough} == {True}
    # Of a batch all rows of a bucket say the same: whether anything was given up in it.
    job = the_job(table, QUERY, **some, buckets=BUCKETS)
    assert job.result.names[-1] == "exact"
    found = batch(job, table)
    if output != "count":
        by_key = {row["key"]["k"]: row["exact"] for row in found}
        assert all(row["exact"] == by_key[row["key"]["k"]] for row in found)
    assert any(not row["exact"] for row in found)
    assert not same(found, truth)
    # On a stream a row says what was known when it was given.
    one = the_job(table, QUERY, **some, buckets=1)
    rows, _, _ = stream(one, rows_of(table, range(len(table)), [10] * 30 + [300] * 5), delay=2)
    told = [row["exact"] for row in rows]
    assert 0 < sum(told) < len(told)
    assert told == sorted(told, reverse=True)
    if output == "count":
        assert sum(row["count"] for row in rows) == sum(row["count"] for row in batch(one, table))
        assert sum(row["count"] for row in rows) < sum(row["count"] for row in truth)
    else:
        # All that there was until then has been given, and is right.
        alone = batch(the_job(table, QUERY, output=output, buckets=1), table)
        when = "point" if output == "points" else "end"
        latest = max(row[when] for row in rows if row["exact"])
        assert rows_that_differ([r for r in rows if r["exact"]], [r for r in alone if r[when] <= latest]) == ""


def test_a_count_of_nothing_says_that_it_may_be_more() -> None:
    table = events(2_000)
    never = acep.parse(
        "PATTERN SEQ(a p, b q, a r, b s) WHERE skip_till_any_match(p, q, r, s) { [k] AND q.x > p.x AND s.x > p.x + 5 } "
        "WITHIN 200"
    )
    options = {"output": "count", "buckets": BUCKETS}
    job = the_job(table, never, budget=acep.Budget(work=0.5), **options)
    told = [{"count": 0, "exact": False}] * BUCKETS
    assert batch(job, table) == told
    rows, _, _ = stream(job, rows_of(table, range(len(table)), [99] * 20), delay=2, rng=random.Random(2))
    assert rows == told
    assert batch(the_job(table, never, budget=acep.Budget(work=1e6), **options), table) == []


# Texts come to each micro-batch in another order, so that their codes are others.
TEXTS = {
    "between": acep.parse(
        "PATTERN SEQ(a p, b q, a r) WHERE skip_till_any_match(p, q, r) { [k] AND q.c > p.c AND r.c < q.c } WITHIN 200"
    ),
    "other": acep.parse(
        "PATTERN SEQ(a p, b q, a r, b s) WHERE skip_till_any_match(p, q, r, s) "
        "{ [k] AND q.c != p.c AND r.c < q.c AND s.x > r.x } WITHIN 200"
    ),
}


@cache
def cities(size: int) -> pa.Table:
    rng = random.Random(3)
    columns = {
        "ts": sorted(rng.randrange(size) for _ in range(size)),
        "type": rng.choices("abc", k=size),
        "k": rng.choices([f"key {i}" for i in range(6)], k=size),
        "c": [f"city {rng.randrange(200)}" for _ in range(size)],
        "x": [rng.random() for _ in range(size)],
    }
    return numbered(pa.table(columns))


@pytest.mark.parametrize(
    ("output", "policy"), [("points", "history"), ("bundles", "newest"), ("matches", "random"), ("count", "history")]
)
def test_texts_in_micro_batches_of_any_size(output: str, policy: str) -> None:
    table = cities(1_500)
    rows = range(len(table))
    job = the_job(table, TEXTS, budget=acep.Budget(work=2), output=output, policy=policy, buckets=2, seed=1)
    cuts = [[], [500] * 3, [250] * 6, [7] * 50 + [90] * 5]
    runs = [batch(job, table), *(stream(job, rows_of(table, rows, sizes), delay=2)[0] for sizes in cuts)]
    if output == "count":
        sums = [sum(row["count"] for row in run) for run in runs]
        assert sums[0] > 0
        assert len(set(sums)) == 1
        return
    assert runs[0]
    for run in runs[1:]:
        assert rows_that_differ(run, runs[0]) == ""


@pytest.mark.whole
def test_texts_in_micro_batches_on_spark(spark: Any) -> None:
    table = cities(1_000)
    options: dict[str, Any] = {"budget": acep.Budget(work=0.05), "output": "points", "buckets": 2}
    exact = as_dicts(quiet_match(spark.createDataFrame(table), TEXTS, **options))
    assert {row["query"] for row in exact} == set(TEXTS)
    assert not all(row["exact"] for row in exact)
    for size in (1_000, 500, 250):
        folder = Folder(spark, table, size)
        rows, told = folder.run(quiet_match(folder.frame(), TEXTS, watermark=1, **options))
        assert len(told) > 1_000 // size
        assert rows_that_differ(rows, exact) == "", size


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
    with pytest.raises(QueryError, match="recover= is not for streams in buckets"):
        the_job(table, QUERY, budget=acep.Budget(work=10, recover=True))


@pytest.mark.whole
def test_on_spark_too(spark: Any) -> None:
    table = events(20_000)
    frame = spark.createDataFrame(table)
    options: dict[str, Any] = {"budget": acep.Budget(work=1.5, estimate=0.25), "seed": 7, "buckets": BUCKETS}
    job = the_job(table, QUERY, **options)
    wide = frame.select("*", bucket_number(frame, job, job.passes[0]).alias("bucket")).orderBy("__order").toArrow()
    ours, counts = in_one_process(job, wide)
    assert ours
    seen = Observation()
    assert rows_that_differ(as_dicts(quiet_match(frame, QUERY, **options, observation=seen)), ours) == ""
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
    assert rows_that_differ(rows, ours) == ""
    assert told[-1].matches == len(ours)
    # Of the last bundles more is known there: the watermark has passed the last event of each bucket.
    streamed = told[-1].report
    assert streamed.bundle_interval == pytest.approx(report.bundle_interval, abs=0.05)
    bundles = {"bundle_recall": report.bundle_recall, "bundle_interval": report.bundle_interval}
    assert replace(streamed, **bundles, recall=report.recall, interval=report.interval) == report
    assert streamed.interval == pytest.approx(report.interval)
    assert {row["exact"] for row in as_dicts(quiet_match(frame, QUERY, **options))} == {False}
    (number,) = as_dicts(quiet_match(frame, QUERY, **options, output="count"))
    assert number == {"count": len(ours), "exact": False}
    both = {"free": acep.regex("ab", within=5, by="k"), "none": acep.regex("zz", within=5, by="k"), "lossy": QUERY}
    counted = as_dicts(quiet_match(frame, both, **options | {"budget": acep.Budget(work=4)}, output="count"))
    assert {row["query"]: row["exact"] for row in counted} == {"free": True, "none": True, "lossy": False}
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
        assert interval == pytest.approx((found.low, found.high))
        assert recall == (None if found.high - found.low > SURE else pytest.approx(found.recall))
    assert (report.made, report.work) == (sum(one.nodes for one in counts), sum(one.touches for one in counts))


@pytest.mark.parametrize("seed", range(3))
def test_an_allowance_goes_on_after_a_restart(seed: int) -> None:
    """Whoever gives each batch an allowance gets the same, whether the stream was restored before it or not."""
    table, rng = events(), random.Random(seed)
    (plan,) = the_job(table, QUERY, budget=BUDGET).plans
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
        (packed_rows,) = (row for packed in pack(job, rows, announces=True) for row in packed.to_pylist())
        state.began, state.watermark = n // 10, n
        tries = []
        before = state.data
        for pace in (0.01, rng.uniform(0.02, 0.05)):
            monkeypatch.setattr("acep.streaming.pace.time", Clock(pace))
            live_buckets.forget_live()
            state.data, state.timeout = before, None
            frame = pd.DataFrame({name: [packed_rows[name]] for name in ("rows", "newest")})
            frame = frame.assign(ended=False)
            (out,) = step(job, 0, (0,), iter([frame]), state)  # type: ignore[arg-type]
            told = json.loads(out[METRICS_COLUMN][0])
            tries.append((bytes(out["rows"][0]), state.get[0], told["allowance"], told["queries"][-1]["touches"]))
        assert (tries[0][0], *tries[0][2:]) == (tries[1][0], *tries[1][2:])
        assert tries[0][1] != tries[1][1], "what was measured is not in the state"
        after = Bucket.loads(job, job.pass_of(0), state.get[0]).pace
        assert after is not None
        paces.add(after.seconds)
        works.add(tries[0][3])
    assert len(paces) > 3
    assert len(works) > 3
