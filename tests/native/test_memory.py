"""Budgets of memory: what is held is never more, nothing is invented, batches make no difference, and ample memory
changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.plan.lower.tables import NotNativeError
from tests.native.merged_cases import planned
from tests.native.test_shedding import CHUNKS, POLICIES, Run, given

pytest.importorskip("acep.native._native")

SEEDS = 2_000
SUFFICIENT = 1 << 26


class Bound(Run):
    """A plan whose core may hold some bytes more than it needs to run at all."""

    more = SUFFICIENT

    def bind(self, more: int) -> Bound:
        self.more = more
        core = self.session._session
        self.most = core.least_memory(0) * 2 + more
        core.bound_memory(0, self.most)
        return self

    @property
    def held(self) -> int:
        return self.session._session.bytes

    def restart(self) -> None:
        super().restart()
        self.bind(self.more)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_memory_is_never_exceeded_and_nothing_is_invented(chunk: int, cases: Callable[[int], int]) -> None:
    ran: Counter[str] = Counter()
    lost = 0
    for seed, plan, batch, random, engine in given(chunk, cases(SEEDS)):
        maker, rate = random.choice(POLICIES), random.choice((None, None, 3.0))
        more = random.choice((0, 2_000, 4_000, 8_000))
        if engine.startswith("windows"):
            continue
        try:
            exact = Run(plan, engine, maker, None)
            run, cut, sufficient = (Bound(plan, engine, maker, rate) for _ in range(3))
            run.bind(more)
        except (NotNativeError, ValueError):  # not native; or more than nodes waits
            continue
        cut.bind(more)
        sufficient.bind(SUFFICIENT)
        for one in (exact, sufficient):
            one.push(batch)
            one.finish()
        for part in batch.parts(1):
            run.push(part)
            assert run.held <= run.most, (seed, engine)
        for part in batch.parts(random.choice((3, 7, 50))):
            cut.push(part)
            assert cut.held <= cut.most, (seed, engine)
        assert cut.found == run.found, (seed, engine)
        cut.finish()
        run.finish()
        peak = run.session._session.shedding_counts(0)["peak"]
        assert 0 < peak <= run.most, (seed, engine)
        assert cut.found == run.found, (seed, engine)
        assert set(run.found) <= set(exact.found), (seed, engine)
        if rate is None:
            assert (sufficient.found, sufficient.errors) == (exact.found, exact.errors), (seed, engine)
        ran[engine] += 1
        lost += run.found != exact.found
    assert lost > 0 or cases(SEEDS) < SEEDS  # of few cases, none may lose anything
    for engine in ("nodes", "dominance"):
        assert ran[engine] >= 50 * cases(SEEDS) / SEEDS, ran


def test_behind_match_windows_there_is_no_bound() -> None:
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2]})
    query = acep.parse("PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { b.x > a.x } WITHIN 5")
    plan = planned(query, table, ts="ts", type="type", seq=None, id=None, unit=None)
    run = Run(plan, "windows+nodes", POLICIES[0], None)
    with pytest.raises(ValueError, match="not the node engine"):
        run.session._session.bound_memory(0, 1 << 20)


SHORT_LIVED = "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] AND q.x > p.x }"


def short_lived(events: int) -> pa.Table:
    """Each key has ten events."""
    random = np.random.default_rng(1)
    return pa.table(
        {
            "ts": np.arange(events),
            "type": pa.array(random.choice(["a", "b"], events)),
            "k": np.arange(events) // 10,
            "x": random.random(events),
        }
    )


@pytest.mark.parametrize("window", ["WITHIN 40 EVENTS", ""])
def test_keys_that_come_no_more_make_way_for_others(window: str) -> None:
    """Without a window in time nothing says that a key is done with."""
    events = 60_000
    stream, query = short_lived(events), acep.parse(f"{SHORT_LIVED} {window}")
    exact = acep.match(stream, query, output="count")
    runs = []
    for size in (10_000, 700):
        matcher = acep.Matcher(query, budget=acep.Budget(memory="1 MB"), policy="newest")
        found = [match for at in range(0, events, size) for match in matcher.push(stream.slice(at, size))]
        runs.append([(match.key, match.end) for match in found])
    assert runs[0] == runs[1]
    late = sum(end >= events * 3 // 4 for _, end in runs[0])
    assert exact / 8 < late < exact / 4
    assert 0 < matcher.report.memory <= 2**20
    assert matcher.report.shed > 0


def test_of_keys_that_take_the_place_of_others_the_recall_is_estimated_too() -> None:
    events, budget = 60_000, acep.Budget(memory="1 MB", work=0.3, estimate=0.3)
    matcher, units = acep.Matcher(acep.parse(SHORT_LIVED), budget=budget, policy="newest"), []
    for at in range(0, events, 10_000):
        matcher.push(short_lived(events).slice(at, 10_000))
        seen = matcher._tables.stream.counts_of(0).points if matcher._tables.stream else None
        units.append(seen.units if seen else 0.0)
    assert units[-1] > 1.5 * units[1] > 0, units
