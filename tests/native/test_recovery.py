"""Recovery of match bundles under a budget, on random cases: a bundle that is recovered is that of the exact run, no
match is invented or given twice, no allowance is exceeded, and batches and restarts make no difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

import acep
from acep.budget import Budget
from acep.budget.policies import POLICIES, policy_of
from acep.errors import QueryError, SnapshotError
from acep.events.batch import Batch
from acep.events.tables import batch_of, schema_of, to_table
from acep.plan.compile import Plan, compile_query
from acep.plan.lower.tables import NotNativeError
from acep.shedding.controller import SheddingController
from acep.shedding.limits import Limits
from acep.shedding.recovery import bundles as recovery
from acep.shedding.recovery import rematch as recovery_again
from tests.binomial import not_less
from tests.native.test_recall import estimates, known, taken
from tests.native.test_shedding import CHUNKS, given

pytest.importorskip("acep.native._native")

from acep.native.session import NativeSession

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
        efforts = {0: SheddingController(policy_of(policy)(), 0, rate, length=EPOCH)}
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
    monkeypatch.setattr(recovery_again, "PART", PART)


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
    wanted: dict[str, int] = {"nodes": 100, "windows+nodes": 10, "more": 25, "less": 10}  # of all seeds
    assert all(not_less(ran[name], seeds // CHUNKS, number / SEEDS) for name, number in wanted.items()), ran
    assert ran["unrecovered"] <= ran["nodes"] / 10, ran


EVENTS = 20_000
QUERY = """PATTERN SEQ(A p, B q, A r, B s) WHERE skip_till_any_match(p, q, r, s) {
    [k] AND q.x > p.x AND r.x < q.x AND s.x > 0.9 + r.x } WITHIN 40"""


@cache
def stream(events: int = EVENTS) -> dict[str, list[Any]]:
    """Three partitions, ids that are texts."""
    random = Random(7)
    rows: dict[str, list[Any]] = {"ts": sorted(random.choices(range(events), k=events))}
    rows |= {"type": random.choices("AB", k=events), "k": random.choices(["x", "y", None], [4, 4, 1], k=events)}
    return rows | {"x": [random.random() for _ in range(events)], "name": [f"e{i}" for i in range(events)]}


@cache
def found_exactly() -> Any:
    return acep.match(stream(), acep.parse(QUERY), id="name")


@cache
def exact() -> tuple[Any, dict[Any, Counter[str]]]:
    return found_exactly().report, by_bundle(found_exactly())


@cache
def in_order() -> list[str]:
    return [str((one.key, one.bindings)) for one in found_exactly()]


def by_bundle(found: Iterable[Any]) -> dict[Any, Counter[str]]:
    all_found: dict[Any, Counter[str]] = {}
    for one in found:
        all_found.setdefault((str(one.key), one.bundle), Counter())[str(one.bindings)] += 1
    return all_found


def rate(share: float) -> float:
    return share * int(exact()[0].work) / EVENTS


@pytest.mark.parametrize("share", [0.5, 0.75])
@pytest.mark.parametrize("policy", ["history", "newest-per-state", "random"])
def test_what_a_match_stands_for_is_found(share: float, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    query, every = acep.parse(QUERY), exact()[1]
    alone = acep.match(stream(), query, id="name", budget=acep.Budget(work=rate(share)), policy=policy)
    budget = acep.Budget(work=rate(share), recover=0.3)
    found = acep.match(stream(), query, id="name", budget=budget, policy=policy)
    bundles = by_bundle(found)
    whole = [one for one, matches in bundles.items() if matches == every.get(one)]
    before = [one for one, matches in by_bundle(alone).items() if matches == every.get(one)]
    report = found.report
    # Neither more than there is nor twice.
    assert sum(bundles.values(), Counter()) <= sum(every.values(), Counter())
    assert report.matches == len(found) == sum(map(Counter.total, bundles.values()))
    assert report.recovered > 5
    assert len(whole) >= report.recovered
    assert len(whole) > len(before)
    assert 0 < report.recovering < report.work <= rate(share) * EVENTS
    assert f"{report.recovered:,} bundles recovered" in str(report)
    assert f", {report.unrecovered:,} not" in str(report)
    told = {str((one.key, one.bindings)) for one in found}
    assert [str((one.key, one.bindings)) for one in found] == [one for one in in_order() if one in told]
    for output, wanted in (("points", found.points()), ("bundles", found.bundles()), ("count", len(found))):
        assert acep.match(stream(), query, id="name", budget=budget, policy=policy, output=output) == wanted


def test_a_stream_that_is_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    query, budget = (
        {"q": acep.parse(QUERY), "other": acep.regex("AAB", within=9, by="k")},
        acep.Budget(work=9, recover=0.3),
    )
    table = to_table(stream())
    how: dict[str, Any] = {"budget": budget, "id": "name", "policy": "newest", "seed": 3}

    def given(*sizes: int) -> dict[str, list[Any]]:
        out: dict[str, list[Any]] = {name: [] for name in query}
        matcher, at, turn = acep.Matcher(query, **how), 0, 0
        while at < EVENTS:
            size = sizes[turn % len(sizes)]
            for name, found in matcher.push(table.slice(at, size)).items():
                out[name] += found
            at, turn = at + size, turn + 1
            if len(sizes) > 1 and turn % 3 == 0:
                data, matcher = matcher.snapshot(), acep.Matcher(query, **how)
                matcher.restore(data)
        for name, found in matcher.finish().items():
            out[name] += found
        reports.append(replace(matcher.report, seconds=0))
        return {name: sorted(map(repr, found)) for name, found in out.items()}

    reports: list[Any] = []
    assert given(EVENTS) == given(700, 1, 3000, 1024)
    assert reports[0] == reports[1]
    assert reports[0].recovered > 10

    matcher = acep.Matcher(query, **how)
    matcher.push(table.slice(0, 9000))
    data = matcher.snapshot()
    without = acep.Matcher(query, **how | {"budget": acep.Budget(work=9)})
    with pytest.raises(SnapshotError):
        without.restore(data)
    with pytest.raises(SnapshotError):
        matcher.restore(without.snapshot()[:-40])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bank", -1.0),
        ("bank", float("nan")),
        ("lent", 3),
        ("spent", "x"),
        ("marks", [[1]]),
        ("areas", [[[1, 2, 3], ["", None, 0, None, False, True, None]]]),
        ("areas", [[[0], ["", None, 0, None, True, True, None]]]),
        ("areas", [[[0], ["", None, 0, None, False, True, {}]]]),
        ("areas", 4),
        ("recent", {"floor": None, "pieces": [[1, 2]], "open": []}),
        ("recent", {"floor": "a", "pieces": [], "open": []}),
        ("worth", [1.0]),
        ("settling", {"rows": [], "keys": [], "recovered": [], "ended": False}),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(name: str, value: Any) -> None:
    query = acep.parse(QUERY)
    plan = compile_query(
        query, schema_of(to_table(stream()).schema, ts="ts", type="type", seq=None, id="name", unit=None)
    )
    run = Run(plan, "nodes", "newest", 1.0, 1.0)
    run.push(batch_of(to_table(stream()).slice(0, 300), plan.schema, plan.columns, base=0))
    data = run.session.dump()
    data["recoveries"]["0"][name] = value
    with pytest.raises((ArithmeticError, LookupError, TypeError, ValueError, AttributeError)):
        run._session().load(data)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PATTERN SEQ(A a, ~C c, B b) WITHIN 9", "negations"),
        ("PATTERN SEQ(A a, B b) WITHIN 9 HAVING b.x > 0", "HAVING"),
        ("PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT NON OVERLAP", "OUTPUT"),
        ("PATTERN SEQ(A a, B b)", "window of time"),
        ("PATTERN SEQ(A a, B b) WITHIN 9 EVENTS", "window of time"),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity { [k] } WITHIN 9", "strict contiguity"),
        ("FROM (PATTERN SEQ(A a, B b) WITHIN 9) AS T PATTERN SEQ(T t, T u) WITHIN 9", "composed"),
    ],
)
def test_where_bundles_cannot_be_recovered_that_is_said(text: str, why: str) -> None:
    with pytest.raises(QueryError, match=f"recover= is not for .*{why}"):
        acep.match(stream(), acep.parse(text), budget=acep.Budget(work=3, recover=True))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"work": 3, "memory": "4 MB"}, "no bound on memory"),
        ({}, "there is none"),
        ({"memory": "4 MB"}, "no bound on memory"),
        ({"work": 3, "recover": 1.0}, "no share"),
        ({"work": 3, "recover": -0.5}, "positive"),
        ({"work": 3, "recover": "yes"}, "not a number"),
    ],
)
def test_a_budget_that_cannot_recover_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(QueryError, match=why):
        acep.Budget(**{"recover": True} | given)


@pytest.mark.parametrize("bound", [{"latency": 0.05}, {"cpu": 0.001}, {"cpu": 0.5, "work": 3.0}])
def test_a_budget_of_time_recovers_too(bound: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    matcher = acep.Matcher(acep.parse(QUERY), id="name", unit="ms", budget=acep.Budget(**bound, recover=True))
    table, found = to_table(stream()), []
    for at in range(0, EVENTS, 2000):
        found += matcher.push(table.slice(at, 2000))
    found += matcher.finish()
    assert sum(by_bundle(found).values(), Counter()) <= sum(exact()[1].values(), Counter())
    assert matcher.report.matches == len(found)
    if "work" in bound:
        assert 0 < matcher.report.work <= bound["work"] * EVENTS


def test_where_nothing_is_shed_nothing_is_looked_at_again() -> None:
    found = acep.match(stream(), acep.parse(QUERY), id="name", budget=acep.Budget(work=1e6, recover=True))
    assert by_bundle(found) == exact()[1]
    assert found.report.exact
    assert found.report.recovering == found.report.recovered == 0
    other = acep.match(stream(), acep.parse(QUERY), id="name", budget=acep.Budget(work=1e6))
    assert found.report.work == other.report.work


def test_the_recall_that_is_estimated_is_that_with_what_was_recovered(
    cases: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    errors: dict[bool, list[float]] = {True: [], False: []}
    hits = 0
    for seed in range(max(cases(8), 5)):
        case = known(seed, "nodes")
        for policy, share in product(("random", "newest", "history"), (0.75, 0.5)):
            for settles in (True, False):
                rate = share * case.exact[1]
                effort = SheddingController(policy_of(policy)(), seed, rate * 3 / 4, estimate=1 / 4)
                recoveries = {0: recovery.Recovery(1 / 4, rate / 4)}
                session = NativeSession([case.plan], ["nodes"], {0: effort}, recoveries=recoveries)
                if not settles:  # as if nothing were known of what was recovered
                    effort.reconciliation = None
                session.push(case.batch)
                session.finish()
                true, _ = case.recall(taken(session, "nodes"))
                one, _ = estimates(session)
                if one is not None:
                    errors[settles].append(one.recall - true)
                    hits += settles and one.low <= true <= one.high
    assert len(errors[True]) >= 25
    assert hits >= 0.8 * len(errors[True])
    assert abs(np.mean(errors[True])) < 0.06
    assert np.mean(errors[False]) < np.mean(errors[True]) - 0.02


def test_what_is_cleared_is_given_up() -> None:
    query = acep.parse(QUERY)
    found = [
        acep.match(stream(), query, id="name", budget=acep.Budget(work=rate(share)), policy="clear")
        for share in (1.05, 1.1, 1.2, 4.0)
    ]
    assert [one.report.exact for one in found] == [one.count() == exact()[0].matches for one in found]
    assert [one.report.exact for one in found].count(False) >= 2
