"""Engines that need not choose, under a budget: with an ample one they do what they do without one; with a small one no
match is invented, no allowance is exceeded, and batches and restarts make no difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import acep
from acep.events.batch import Batch
from acep.events.tables import batch_of, to_table
from acep.matches.report import Report
from acep.plan.choice import choose, with_allowance
from acep.plan.compile import Plan
from acep.plan.prefilter import necessary
from acep.shedding.partition_sampler import PartitionSampler
from tests.native.merged_cases import planned
from tests.native.test_every_engine import in_order

pytest.importorskip("acep.native._native")

from acep.native.session import NativeSession

CHUNKS = 5
SEEDS = 700
OUTPUTS = ("matches", "count", "points", "bundles")
LEAST = {"merged": 40, "count": 40, "points": 40, "bundles": 40, "windows+merged": 8, "windows+count": 8}
"""How many cases each engine must have run in a chunk, of so many seeds."""


class Run:
    """A plan on one engine, batch by batch: with an allowance, or without any."""

    def __init__(self, plan: Plan, engine: str, rate: float | None, seed: int = 0) -> None:
        self.plan, self.engine, self.rate, self.seed = plan, engine, rate, seed
        self.session = self._session()
        self.found: Counter[Any] = Counter()
        self.errors: dict[Any, Any] = {}
        self.total = 0

    def _session(self) -> NativeSession:
        efforts = {} if self.rate is None else {0: PartitionSampler(self.seed, self.rate)}
        return NativeSession([self.plan], [self.engine], efforts)

    def push(self, batch: Batch) -> None:
        self.session.push(batch)
        self._take()

    def restart(self) -> None:
        data = self.session.dump()
        self.session = self._session()
        self.session.load(data)

    def _take(self) -> None:
        """Matches; or of match points and bundles the key, the time and how many."""
        if self.engine.endswith("merged"):
            for one in self.session.take(0):
                self._note((one.key, one.trail), one.error, 1)
        elif self.engine.endswith("count"):
            self.total = self.session.total(0)
        else:
            for row in self.session.take_counts(0, last=True).rows():
                self._note(
                    (row.key, row.first if self.engine.endswith("points") else row.bundle), row.error, row.matches
                )

    def _note(self, found: Any, error: Any, many: int) -> None:
        self.found[found] += many
        self.errors[found] = min(self.errors.get(found, error), error)

    @property
    def touches(self) -> int:
        return self.session.counts(0).touches

    def all(self) -> Any:
        return self.found, self.errors, self.total


def given(chunk: int, seeds: int) -> Iterator[tuple[Plan, Batch, Random, str]]:
    """Of a chunk of so many seeds the plans that need not choose: with their events and each of their engines."""
    for seed in range(chunk * seeds // CHUNKS, (chunk + 1) * seeds // CHUNKS):
        case = in_order(seed * 7)  # one of seven has no predicate that ties its events together
        if case is None:
            continue
        plan = planned(case.query(), case.table(), **case.stream)
        for output in OUTPUTS:
            choice = choose(plan, output)
            if choice.engine == "reference" or with_allowance(choice) == choice.engine:
                continue
            batch = batch_of(case.table(), plan.schema, plan.columns, base=0)
            yield plan, batch, Random(seed), choice.alone
            if necessary(plan) is not None:
                yield plan, batch, Random(seed), f"windows+{choice.alone}"


def under(engine: str) -> str:
    return engine.replace("windows+", "windows+units+") if engine.startswith("windows+") else f"units+{engine}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_units_lose_matches_and_invent_none(chunk: int, cases: Callable[[int], int]) -> None:
    ran: Counter[str] = Counter()
    lost = 0
    for plan, batch, random, engine in given(chunk, cases(SEEDS)):
        rate, seed = random.choice((0.1, 0.3, 0.6, 1.0, 2.0, 5.0)), random.randrange(100)
        exact, sufficient = Run(plan, engine, None), Run(plan, under(engine), 1e9)
        run, cut = Run(plan, under(engine), rate, seed), Run(plan, under(engine), rate, seed)
        for one in (exact, sufficient, run):
            one.push(batch)
        events = 0
        for part in batch.parts(random.choice((1, 3, 7))):
            cut.push(part)
            events += len(part)
            assert cut.touches <= rate * events, engine
            if random.random() < 0.2:
                cut.restart()
        assert sufficient.all() == exact.all(), engine
        assert sufficient.touches == exact.touches, engine
        assert Report.of(sufficient.session.counts(0)).exact
        report = Report.of(run.session.counts(0))
        assert not report.exact or run.all() == exact.all(), engine
        assert run.total <= exact.total
        if not engine.endswith("bundles"):  # bundles may fall apart
            assert run.found <= exact.found, engine
            assert all(run.errors[one] >= exact.errors[one] for one in run.found), engine
            assert (cut.found, cut.errors, cut.total) == run.all(), engine
        else:
            assert run.found.total() <= exact.found.total()
            assert cut.found.total() == run.found.total()
        ran[engine] += 1
        lost += run.all() != exact.all()
    assert lost > 0 or cases(SEEDS) < SEEDS // 4
    few = {name: ran[name] for name, least in LEAST.items() if ran[name] * SEEDS < least * len(range(cases(SEEDS)))}
    assert not few, f"too few cases ran: {few}"


def events(seed: int, count: int, keys: int) -> Any:
    """Letters by key; some keys have many more than others."""
    rng = np.random.default_rng(seed)
    return to_table(
        {
            "ts": np.cumsum(rng.integers(0, 3, count)),
            "type": rng.choice(list("abcx"), count),
            "key": (rng.pareto(1.0, count) % keys).astype(np.int64),
        }
    )


QUERIES = (
    "PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { [key] } WITHIN 40",
    "PATTERN SEQ(a p, b q, c r) WHERE skip_till_next_match(p, q, r) { [key] } WITHIN 40",
    "PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) WITHIN 15 EVENTS",
)


def test_recall_is_near_the_share_of_the_work_and_its_interval_has_it() -> None:
    covered, missed = [], []
    for query in QUERIES:
        for seed in range(4):
            table = events(seed, 20_000, 30)
            exact = acep.match(table, acep.parse(query), output="points")
            need = acep.match(table, acep.parse(query)).report.work / table.num_rows
            for share in (0.2, 0.5, 0.8):
                matcher = acep.Matcher(acep.parse(query), budget=acep.Budget(work=share * need), seed=seed)
                found = matcher.push(table)
                matcher.finish()
                report = matcher.report
                recall = len(found.points()) / len(exact)
                assert 0.6 * share < recall < 1.15 * share, (query, share)
                low, high = report.interval
                covered.append(low <= recall <= high)
                assert (report.recall is None) == (high - low > 0.2)
                assert matcher._tables.stream is not None
                tally = matcher._tables.stream.counts_of(0).points
                estimate = None if tally is None else tally.estimate()
                assert estimate is not None
                missed.append(estimate.recall - recall)
                assert report.work <= share * need * table.num_rows
    assert np.mean(covered) >= 0.8
    assert abs(np.mean(missed)) < 0.01, missed
    assert np.sqrt(np.mean(np.square(missed))) < 0.05, missed


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_ample_budget_is_as_fast_as_none_where_very_many_matches_end(output: str) -> None:
    """On nodes each match would be made to be counted: here that would be millions."""
    table = events(1, 3_000 if output != "matches" else 300, 1)
    query = acep.parse("PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) WITHIN 3000")
    exact = acep.match(table, query, output=output)
    for budget in (acep.Budget(work=1e6), acep.Budget(latency=60), acep.Budget(cpu=1.0, speed=1e-6, work=1e6)):
        found = acep.match(table, query, output=output, budget=budget, unit="s")
        same = found.to_arrow().equals(exact.to_arrow()) if output == "matches" else found == exact
        assert same


def test_a_restored_matcher_goes_on_under_its_budget() -> None:
    table = events(2, 6_000, 20)
    query, budget = acep.parse(QUERIES[0]), acep.Budget(work=0.2)
    whole, parts = acep.Matcher(query, budget=budget), acep.Matcher(query, budget=budget)
    expected = [str(one.bindings) for one in whole.push(table)]
    found = [str(one.bindings) for one in parts.push(table.slice(0, 2_500))]
    again = acep.Matcher(query, budget=budget)
    again.restore(parts.snapshot())
    found += [str(one.bindings) for one in again.push(table.slice(2_500))]
    assert found == expected
    assert again.report.shed == whole.report.shed > 0
    assert again.report.interval == whole.report.interval != (0, 1)
    with pytest.raises(acep.SnapshotError):
        acep.Matcher(query).restore(parts.snapshot())


def test_what_is_too_much_for_a_while_is_passed_over_and_then_all_is_let_in_again() -> None:
    calm, burst = events(3, 20_000, 5), events(4, 4_000, 5)
    quiet = calm.set_column(1, "type", [["x"] * 20_000])
    query, last = acep.parse(QUERIES[0]), burst["ts"][-1].as_py()
    matcher = acep.Matcher(query, budget=acep.Budget(work=0.3))
    matcher.push(burst)
    shed = matcher.report.shed
    assert shed > 0
    matcher.push(quiet.set_column(0, "ts", [np.asarray(quiet["ts"]) + last]))
    then = np.asarray(quiet["ts"])[-1] + last
    later = burst.slice(0, 2_000)
    found = matcher.push(later.set_column(0, "ts", [np.asarray(later["ts"]) + then + 1000]))
    assert len(found) == len(acep.match(later, query))


def test_no_policy_is_asked_where_nothing_has_to_be_chosen() -> None:
    class Asked:
        name = "asked"

        def begin(self, *_: Any) -> Any:
            raise AssertionError

        learn = restore = begin

        def state(self) -> dict[str, Any]:
            raise AssertionError

    table = events(5, 2_000, 5)
    found = acep.match(table, acep.parse(QUERIES[0]), budget=acep.Budget(work=0.1), policy=Asked())
    assert not found.report.exact
    with pytest.raises(acep.QueryError, match="there is no policy"):
        acep.match(table, acep.parse(QUERIES[0]), budget=acep.Budget(work=0.1), policy="nobody")


def test_memory_is_bound_on_nodes() -> None:
    table = events(6, 2_000, 5)
    matcher = acep.Matcher(acep.parse(QUERIES[0]), budget=acep.Budget(memory="8 MB", work=100))
    matcher.push(table)
    assert 0 < matcher.report.memory <= 8 * 2**20
