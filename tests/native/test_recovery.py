"""Recovery of match bundles under a budget, on random cases: a bundle that is recovered is that of the exact run, no
match is invented or given twice, no allowance is exceeded, and batches and restarts make no difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from acep.budget import Budget
from acep.budget.policies import POLICIES, policy_of
from acep.engine import recovery
from acep.engine.batch import Batch
from acep.engine.best_effort import BestEffort, Limits
from acep.errors import QueryError
from acep.plan.compile import Plan
from acep.plan.tables import NotNativeError
from tests.native.test_shedding import CHUNKS, given

pytest.importorskip("acep.engine._native")

from acep.engine.native_session import NativeSession

SEEDS = 2_400
EPOCH = 5  # events: the first one
CUT, PART = 4, 3
ENGINES = ("nodes", "windows+nodes")
MOST = 1e9


class Run:
    """A plan on one engine, ``rate`` touches an event for what is not recovered, and ``more`` for what is."""

    def __init__(self, plan: Plan, engine: str, policy: str, rate: float | None, more: float = 0.0) -> None:
        self.how = plan, engine, policy, rate, more
        self.session = self._session()
        self.found: Counter[str] = Counter()
        self.bundles: dict[Any, Counter[Any]] = {}

    def _session(self) -> NativeSession:
        plan, engine, policy, rate, more = self.how
        efforts = {0: BestEffort(policy_of(policy)(), 0, rate, length=EPOCH)}
        return NativeSession([plan], [engine], efforts, recoveries={0: recovery.Recovery(0.5, more)} if more else None)

    def all(self, batch: Batch) -> Run:
        self.push(batch)
        self.finish()
        return self

    def push(self, batch: Batch) -> None:
        self.session.push(batch)
        self._take()

    def finish(self) -> None:
        self.session.finish()
        self._take()

    def restart(self) -> None:
        data = self.session.dump()
        self.session = self._session()
        self.session.load(data)

    @property
    def counts(self) -> Any:
        return self.session.counts(0)

    def _take(self) -> None:
        for one in self.session.take(0):
            match = repr((one.key, one.start, one.end, one.trail, one.values))  # its error may be too great
            self.found[match] += 1
            self.bundles.setdefault((one.key, one.bundle), Counter())[match, one.error] += 1


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "CUT", CUT)
    monkeypatch.setattr(recovery, "PART", PART)


def recoverable(plan: Plan) -> bool:
    try:
        Limits(POLICIES["newest"], Budget(work=1, recover=True)).recovery(plan)
    except QueryError:
        return False
    return True


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_of_a_bundle_that_is_recovered_all_is_there(chunk: int, cases: Callable[[int], int]) -> None:
    ran: Counter[str] = Counter()
    seeds = cases(SEEDS)
    for seed, plan, batch, random, engine in given(chunk, seeds):
        if engine not in ENGINES or not recoverable(plan):
            continue
        policy, rate = random.choice(tuple(POLICIES)), random.choice((0.3, 1.0, 2.0, 5.0))
        if policy == "trained-on-test":
            policy = "newest"
        try:
            exact = Run(plan, engine, policy, None).all(batch)
        except NotNativeError:
            continue
        alone = Run(plan, engine, policy, rate).all(batch)
        run = Run(plan, engine, policy, rate, MOST).all(batch)
        if run.counts.unrecovered == 0:
            assert run.bundles == {one: exact.bundles[one] for one in run.bundles}, (seed, engine)
            assert alone.found <= run.found, (seed, engine)
            ran[engine] += 1
            ran["more"] += run.found > alone.found
        else:
            ran["unrecovered"] += 1

        # With less than enough no match is invented, the allowance is kept, and how the events come is of no matter.
        more = random.choice((0.5, 3.0, 10.0))
        run, cut = (Run(plan, engine, policy, rate, more) for _ in range(2))
        run.all(batch)
        events = 0
        for part in batch.parts(random.choice((1, 3, 7))):
            cut.push(part)
            events += len(part)
            assert cut.counts.touches <= (rate + more) * events, (seed, engine)
            if random.random() < 0.3:
                cut.restart()
        cut.finish()
        assert run.found <= exact.found, (seed, engine)
        assert cut.bundles == run.bundles, (seed, engine)
        assert cut.counts.touches <= (rate + more) * events
        ran["less"] += run.counts.unrecovered
    least = seeds / SEEDS / CHUNKS
    wanted: dict[str, int] = {"nodes": 200, "windows+nodes": 20, "more": 50, "less": 20}
    assert all(ran[name] >= int(number * least / 2) for name, number in wanted.items()), ran
    assert ran["unrecovered"] < ran["nodes"] / 10, ran
