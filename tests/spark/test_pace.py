"""The controller of a batch's time on a cluster that is not there: its clock goes by what the native core did."""

from __future__ import annotations

import random
from statistics import median
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.runtime.stream import Stream
from acep.streaming.buckets import Bucket
from acep.streaming.job import Job
from acep.streaming.step import BUCKET
from tests.spark.by_hand import numbered, the_job
from tests.thinned import thinned

pytestmark = pytest.mark.long

pytest.importorskip("acep.native._native")

QUERY = acep.parse(
    "PATTERN SEQ(a p, b q, a r, b s) WHERE skip_till_any_match(p, q, r, s) "
    "{ [k] AND q.x > p.x AND r.x < q.x AND s.x > 0.999 + r.x } WITHIN 400 ms"
)
SHORT_QUERY = acep.parse(
    "PATTERN SEQ(a p, b q, a r) WHERE skip_till_any_match(p, q, r) "
    "{ [k] AND q.x > p.x AND r.x > 0.9 + p.x } WITHIN 15 ms"
)
LATENCY = 0.1  # seconds
RATE = 60_000  # events a second
BATCHES = 24
SETTLED = 10


class Cluster:
    """Two cores, which step buckets in turn, and a driver that begins a batch as soon as the one before is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int, cores: int = 2) -> None:
        self.random, self.cores, self.now = random.Random(seed), cores, 0.0
        self.overhead, self.around = LATENCY * self.random.uniform(0.2, 0.5), LATENCY * self.random.uniform(0.005, 0.03)
        self.event, self.touch = self.random.uniform(5e-7, 2e-6), self.random.uniform(2e-8, 4e-8)
        self.learns = LATENCY * self.random.uniform(0.0, 0.05)
        monkeypatch.setattr("acep.streaming.pace._clocks", lambda: (self.now, self.now))
        monkeypatch.setattr("acep.streaming.pace.time", self)
        monkeypatch.setattr("acep.streaming.pace.os", self)
        monkeypatch.setattr("acep.shedding.controller.time", self)
        push = Stream.push

        def timed(stream: Stream, batch: Any) -> Any:
            before = stream.counts.touches
            found = push(stream, batch)
            self.passes(self.event * len(batch) + self.touch * (stream.counts.touches - before))
            return found

        monkeypatch.setattr(Stream, "push", timed)

    def passes(self, seconds: float) -> None:
        """Nothing takes as long twice."""
        self.now += seconds * self.random.uniform(0.8, 1.25)

    def time(self) -> float:
        return self.now

    def cpu_count(self) -> int:
        return self.cores

    def process_time(self) -> float:
        return self.perf_counter()

    def perf_counter(self) -> float:
        """Asked before and after a policy learns."""
        self.now += self.learns / 2
        return self.now

    def run(self, job: Job, events: pa.Table) -> tuple[list[float], list[int], int]:
        """Seconds and rows of each batch, and how much was shed. What has come when a batch begins is in it."""
        buckets = [Bucket(job, job.passes[0]) for _ in range(job.buckets)]
        wide, ts = evenly(job, events), events.column("ts").to_numpy()
        took, rows = [], []
        upto, began = 0, LATENCY  # what came before waits
        for _ in range(BATCHES):
            since, upto = upto, int(ts.searchsorted(began * 1000))
            new = wide.slice(since, upto - since)
            free = [began + self.overhead * self.random.uniform(0.5, 1.0)] * self.cores
            for bucket, one in enumerate(buckets):
                mine = new.filter(pa.compute.equal(new.column(f"{BUCKET}0"), bucket)).select(job.columns)
                self.now = min(free)
                core = free.index(self.now)
                one.begin(round(began * 1000))
                one.add(mine)
                one.advance(int(ts[max(upto, 1) - 1]))
                self.passes(self.around)
                one.end()
                free[core] = self.now
            end = max(free) + self.overhead * self.random.uniform(0.1, 0.4)
            took.append(end - began)
            rows.append(upto - since)
            began = end
        return took, rows, sum(one.totals.sum("shed") for one in buckets)

    def shares(self, job: Job, events: pa.Table, size: int) -> list[float]:
        """Of batches of so many events, seconds of the cores that all buckets took, over those that they are of."""
        buckets = [Bucket(job, job.passes[0]) for _ in range(job.buckets)]
        wide, ts = evenly(job, events), events.column("ts").to_numpy()
        found = []
        for at in range(0, len(ts) - size, size):
            new, began = wide.slice(at, size), self.now
            for bucket, one in enumerate(buckets):
                one.begin(0)
                one.add(new.filter(pa.compute.equal(new.column(f"{BUCKET}0"), bucket)).select(job.columns))
                one.advance(int(ts[at + size]))
                one.end()
            found.append((self.now - began) / (float(ts[at + size] - ts[at]) / 1000))
        return found


def evenly(job: Job, events: pa.Table) -> pa.Table:
    """As many keys in each bucket."""
    numbers = events.column("k").to_numpy() % job.buckets
    return events.select(job.columns).append_column(f"{BUCKET}0", pa.array(numbers, pa.int32()))


def events(seconds: float, seed: int) -> pa.Table:
    rng = random.Random(seed)
    size = int(RATE * seconds)
    columns = {
        "ts": sorted(rng.randrange(int(seconds * 1000)) for _ in range(size)),
        "type": rng.choices("ab", k=size),
        "k": rng.choices(range(8), k=size),
        "x": [rng.random() for _ in range(size)],
    }
    return numbered(pa.table(columns))


@pytest.mark.parametrize(
    ("policy", "seeds"),
    [
        pytest.param("newest", (0, 1), marks=pytest.mark.whole),
        pytest.param("history", (2, 3, 4), marks=pytest.mark.whole),
        ("random", (3,)),
    ],
)
def test_an_overloaded_stream_settles_at_its_latency(policy: str, seeds: tuple[int, ...]) -> None:
    late = []
    for seed in seeds:
        table = events(2 * BATCHES * LATENCY, seed)
        options: dict[str, Any] = {"policy": policy, "buckets": 4, "unit": "ms", "output": "count"}
        job = the_job(table, QUERY, budget=acep.Budget(latency=LATENCY), **options)
        with pytest.MonkeyPatch.context() as patch:
            took, rows, shed = Cluster(patch, seed).run(job, table)
        assert shed > 10_000
        assert median(rows[-5:]) < 1.25 * RATE * LATENCY, "it falls behind"
        late += took[SETTLED:]
    assert 0.9 * LATENCY <= median(late) <= 1.1 * LATENCY
    # Of what history keeps the work comes in bursts.
    assert max(late) < (1.8 if policy == "history" else 1.5) * LATENCY


@pytest.mark.parametrize("seed", thinned(range(3), 3, pytest.mark.whole))
def test_an_overloaded_stream_keeps_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    cluster, cpu = Cluster(monkeypatch, seed), 0.6
    table = events(BATCHES * LATENCY, seed)
    options: dict[str, Any] = {"policy": "newest", "buckets": 4, "unit": "ms", "output": "count"}
    job = the_job(table, QUERY, budget=acep.Budget(cpu=cpu), **options)
    used = cluster.shares(job, table, int(RATE * LATENCY))
    assert median(used[SETTLED:]) == pytest.approx(cpu, rel=0.1)


@pytest.mark.parametrize("policy", ["history", "newest"])
def test_a_bound_may_be_out_of_reach_after_partial_matches_were_shed(
    monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """The stream goes on, its state can be stored and read, and partial matches are shed again once that helps."""
    cluster, size = Cluster(monkeypatch, 3), 1500
    table = events(8 * size / RATE, 3)
    options: dict[str, Any] = {"policy": policy, "buckets": 1, "unit": "ms", "output": "count"}
    job = the_job(table, SHORT_QUERY, budget=acep.Budget(latency=LATENCY / 100), **options)
    bucket, rows, shed = Bucket(job, job.passes[0]), table.select(job.columns), [0]
    for number in range(8):
        assert bucket.pace is not None
        part = rows.slice(number * size, size)
        bucket.begin(round(cluster.now * 1000))
        bucket.pace.is_out_of_reach = number in (3, 4, 5)
        bucket.add(part)
        bucket.advance(part.column("ts")[-1].as_py())
        bucket.end()
        shed.append(bucket.totals.sum("shed"))
        bucket = Bucket.loads(job, job.passes[0], bucket.dumps())
    assert shed[3] > shed[0]
    assert shed[8] > shed[6]


def test_memory_is_divided_by_the_buckets() -> None:
    query = acep.parse("PATTERN SEQ(a x, b y) WHERE [k] WITHIN 9")
    rows = numbered(pa.table({"ts": [1], "type": ["a"], "k": [1]}))
    job = the_job(rows, query, budget=acep.Budget(memory="64 MB"), buckets=8)
    assert job.budget is not None
    assert job.budget.memory == 8 * 2**20
    with pytest.raises(acep.QueryError, match="too little for 8 buckets"):
        the_job(rows, query, budget=acep.Budget(memory="4 MB"), buckets=8)
