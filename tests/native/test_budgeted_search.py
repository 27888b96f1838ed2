"""A search for match points under a budget: exact while the allowance suffices, then with limits on single searches
(docs/internals/search.md)."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.matches.report import Report
from acep.native.session import NativeSession, SessionBounds
from acep.plan import searching
from acep.plan.compile import Plan
from acep.shedding.search_sampler import AHEAD, SearchSampler
from tests.binomial import not_less
from tests.case_counts import CaseCounts
from tests.native.harness import Run, letters, pieces, plan_of, session_of, shown, whole
from tests.native.test_search import drawn, drawn_query

pytest.importorskip("acep.native._native")

TIED = "PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.y < b.y AND c.y > a.y WITHIN 200"
ENOUGH = 1e9  # touches an event


def limited(plan: Plan, rate: float, *, seed: int = 0, ahead: int = 0, sampling: float = 1 / 32) -> NativeSession:
    """A session that searches within an allowance."""
    return session_of(plan, "units+search", bounds=SessionBounds({0: SearchSampler(seed, rate, sampling, ahead=ahead)}))


def tied_stream(n: int, seed: int = 1) -> pa.Table:
    """Events A and B with numbers."""
    rng = np.random.default_rng(seed)
    types = rng.choice(["A", "B"], n, p=[0.7, 0.3]).tolist()
    return letters(types, x=rng.integers(0, 1000, n), y=rng.random(n), k=rng.integers(0, 9, n))


def ends_of(found: list[Any]) -> set[Any]:
    """The match points among rows."""
    return {(row.key, row.last, row.error) for row in found}


@pytest.mark.long
def test_random_queries_lose_points_and_invent_none(cases: CaseCounts) -> None:
    """At once, in batches, and after restarts; with an allowance that suffices nothing is lost."""
    seen = Counter[str]()
    for seed in range(cases(500)):
        rng = Random(f"budgeted search {seed}")
        text, errors = drawn_query(rng)
        plan = plan_of(text, drawn(Random(0), 40), errors=errors)
        if searching.reason_against(plan) is not None:
            continue
        batch, rate = whole(plan, drawn(rng, rng.randrange(5, 400))), rng.choice((0.05, 0.3, 1.0, 3.0))
        size, number, sampling = rng.choice((1, 7, 50)), rng.randrange(99), rng.choice((0.0, 1 / 32, 0.5))

        def begin(rate: float, plan: Plan = plan, seed: int = number, sampling: float = sampling) -> NativeSession:
            return limited(plan, rate, seed=seed, sampling=sampling)

        exact = Run(lambda plan=plan: session_of(plan, "search")).all([batch])
        enough = Run(lambda: begin(ENOUGH)).all([batch])
        assert shown(enough.found) == shown(exact.found), text
        assert enough.session.counts(0).touches == exact.session.counts(0).touches
        assert Report.of(enough.session.counts(0)).exact
        run = Run(lambda rate=rate: begin(rate)).all([batch])
        parts = Run(lambda rate=rate: begin(rate)).all(pieces(batch, size))
        assert shown(run.found) == shown(parts.found), (text, seed)
        assert run.session.counts(0) == parts.session.counts(0)
        again = Run(lambda rate=rate: begin(rate))
        for part in pieces(batch, size):
            again.push(part)
            if rng.random() < 0.2:
                again.restart()
        again.finish()
        assert shown(run.found) == shown(again.found), (text, seed)
        for trial in (run, again):
            report = Report.of(trial.session.counts(0))
            assert ends_of(trial.found) <= ends_of(exact.found), (text, seed)
            assert not report.exact or len(trial.found) == len(exact.found)
            seen["some lose points"] += len(trial.found) < len(exact.found)
        seen["runs"] += 1
    cases.expect(seen, "runs")
    cases.expect(seen, "some lose points")


def points(table: pa.Table, query: Any, **options: Any) -> acep.Points:
    return acep.match(table, query, output="points", **options)


@pytest.mark.parametrize("share", [1.05, 1.3, 3.0])
def test_a_budget_that_suffices_is_the_exact_run(share: float) -> None:
    table, query = tied_stream(30_000), acep.parse(TIED)
    exact = points(table, query)
    rate = share * exact.report.work / table.num_rows
    found = points(table, query, budget=acep.Budget(work=rate))
    assert found == exact
    assert found.report.exact
    assert (found.report.work, found.report.made) == (exact.report.work, exact.report.made)


def test_half_of_the_work_is_kept_to() -> None:
    """But for what may be spent ahead, and the last search."""
    table, query = tied_stream(60_000), acep.parse(TIED)
    exact = points(table, query)
    for share in (0.5, 0.1):
        rate = share * exact.report.work / table.num_rows
        found = points(table, query, budget=acep.Budget(work=rate))
        low, high = found.report.interval
        assert 0.85 * share < found.report.work / exact.report.work < 1.05 * share + rate * AHEAD / exact.report.work
        assert low <= len(found) / len(exact) <= high
        assert len(found) > share * len(exact)
        assert {(point.point, point.best) for point in found} < {(point.point, point.best) for point in exact}


def test_a_very_small_budget_is_exceeded_by_a_few_searches_at_most() -> None:
    table, query = tied_stream(60_000), acep.parse(TIED)
    exact = points(table, query)
    each = exact.report.work / table.column("type").to_pylist().count("B")
    found = points(table, query, budget=acep.Budget(work=0.01))
    assert found.report.work <= 0.01 * (table.num_rows + AHEAD) + 16 * each
    low, high = found.report.interval
    assert low <= len(found) / len(exact) <= high


def test_what_searches_bring_is_learned_by_an_attribute() -> None:
    """Only events with a small k end matches, and the others cost much; a tenth of the work finds most of them."""
    n = 60_000
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 16, n)
    types = np.where(rng.random(n) < 0.5, "A", "B")
    # An event of another kind asks for what no event has, and the search looks at all of the window.
    x = np.where((types == "B") & (kind > 0), 10**6, rng.integers(0, 50, n))
    table = letters(types.tolist(), x=x, k=kind, y=rng.random(n))
    query = acep.parse("PATTERN SEQ(A a, A b, B c) WHERE a.x + b.x > c.x AND a.y < b.y AND c.k >= 0 WITHIN 40")
    exact = points(table, query)
    rate = 0.2 * exact.report.work / n
    found = points(table, query, budget=acep.Budget(work=rate))
    assert len(exact) > 1000
    assert len(found) > 0.75 * len(exact)


def test_intervals_hold_the_recall(cases: CaseCounts) -> None:
    """In about nine of ten runs."""
    query, inside, runs = acep.parse(TIED), 0, 0
    for seed in range(cases(100)):
        table = tied_stream(12_000, seed)
        exact = points(table, query)
        share = (0.7, 0.4, 0.15)[seed % 3]
        rate = share * exact.report.work / table.num_rows
        found = points(table, query, budget=acep.Budget(work=rate, estimate=0.1), seed=seed)
        low, high = found.report.interval
        runs += 1
        inside += low <= len(found) / len(exact) <= high
        assert found.report.bundle_interval == (0, 1)
    assert not_less(inside, runs, 0.9), (inside, runs)


@pytest.mark.parametrize("share", [0.5, 0.15])
def test_events_of_one_time_are_one_match_point_in_the_estimate(share: float, cases: CaseCounts) -> None:
    query = acep.parse("PATTERN SEQ(A a, A b, B c) WHERE a.x + b.x > c.x + 900 AND a.y + b.y < c.y WITHIN 100")
    inside, runs = 0, cases(30)
    for seed in range(runs):
        table = tied_stream(12_000, seed)
        table = table.set_column(0, "ts", pa.array([20 * (n // 20) for n in range(table.num_rows)]))
        exact = points(table, query)
        budget = acep.Budget(work=share * exact.report.work / table.num_rows, estimate=0.1)
        found = points(table, query, budget=budget, seed=seed)
        low, high = found.report.interval
        inside += low <= len(found) / len(exact) <= high
    assert not_less(inside, runs, 0.9), (inside, runs)


def test_without_an_estimate_the_recall_is_unknown() -> None:
    table, query = tied_stream(20_000), acep.parse(TIED)
    found = points(table, query, budget=acep.Budget(work=0.5, estimate=0))
    assert found.report.interval == (0, 1)
    assert not found.report.exact
    assert "searches" in found.report.unknown


@pytest.mark.parametrize(
    ("options", "engine"),
    [
        ({"budget": acep.Budget(work=5)}, "units+search"),
        ({"budget": acep.Budget(cpu=0.5)}, "units+search"),
        ({"budget": acep.Budget(work=5), "policy": "newest"}, "windows+dominance"),
        ({"budget": acep.Budget(memory="8 MB")}, "dominance"),
        ({"budget": acep.Budget(work=5, recover=True)}, "windows+nodes"),
    ],
)
def test_partial_matches_are_followed_where_something_is_asked_of_them(
    options: dict[str, Any], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    init = NativeSession.__init__

    def watched(self: NativeSession, plans: Any, engines: Any, *more: Any, **others: Any) -> None:
        made.extend(engines)
        init(self, plans, engines, *more, **others)

    monkeypatch.setattr(NativeSession, "__init__", watched)
    points(tied_stream(100), acep.parse(TIED), unit="ms", **options)
    assert made == [engine]


@pytest.mark.long
def test_a_history_is_used_by_partial_matches() -> None:
    table, query = tied_stream(4000), acep.parse(TIED)
    history = acep.learn(table, query)
    found = points(table, query, budget=acep.Budget(work=2), history=history)
    assert found.report.deciding > 0
