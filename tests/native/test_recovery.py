"""Recovery of match bundles under a budget: what is found and reported, restarts, states and queries that are refused.
Random cases are in tests/native/test_budgets.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.errors import QueryError, SnapshotError
from acep.native.session import NEVER
from tests.binomial import not_less
from tests.case_counts import CaseCounts
from tests.native import harness
from tests.native.harness import ANY, controlled, planned, whole
from tests.native.test_recall import estimates, known, run
from tests.thinned import thinned_product

pytest.importorskip("acep.native._native")

EVENTS = 20_000
SEEDS = 8
POLICY_NAMES = ("random", "newest", "history")
SHARES = (0.75, 0.5)  # of the exact work
QUERY = acep.parse(f"""PATTERN SEQ(A p, B q, A r, B s) WHERE {ANY}(p, q, r, s) {{
    [k] AND q.x > p.x AND r.x < q.x AND s.x > 0.9 + r.x }} WITHIN 40""")


@cache
def stream() -> pa.Table:
    """Three partitions, ids that are texts."""
    times = np.sort(np.random.default_rng(7).integers(0, EVENTS, EVENTS))
    columns: dict[str, Any] = {"ts": times, "k": (*"xxxxyyyy", None), "x": float}
    return harness.stream(EVENTS, 7, "AB", **columns, name=[f"e{i}" for i in range(EVENTS)])


@cache
def exact() -> Any:
    return match()


def match(share: float | None = None, **options: Any) -> Any:
    """The matches in the stream, exactly or with a share of the exact work."""
    if share is not None:
        options["budget"] = acep.Budget(work=share * exact().report.work / EVENTS, **options.pop("more", {}))
    return acep.match(stream(), QUERY, id="name", **options)


def by_bundle(found: Iterable[Any]) -> dict[Any, Counter[str]]:
    """The matches of each bundle."""
    bundles: dict[Any, Counter[str]] = {}
    for one in found:
        bundles.setdefault((str(one.key), one.bundle), Counter())[str(one.bindings)] += 1
    return bundles


@pytest.mark.long
@pytest.mark.parametrize(
    ("share", "policy"), thinned_product([0.5, 0.75], ["history", "newest-per-state", "random"], every=2)
)
def test_whole_bundles_are_found(share: float, policy: str) -> None:
    alone, every = match(share, policy=policy), by_bundle(exact())
    found = match(share, policy=policy, more={"recover": 0.3})
    bundles, report = by_bundle(found), found.report
    complete = [one for one, matches in bundles.items() if matches == every.get(one)]
    before = [one for one, matches in by_bundle(alone).items() if matches == every.get(one)]
    # Neither more than there is nor twice.
    assert sum(bundles.values(), Counter()) <= sum(every.values(), Counter())
    assert report.matches == len(found) == sum(map(Counter.total, bundles.values()))
    assert report.recovered > 5
    assert len(complete) >= report.recovered
    assert len(complete) > len(before)
    assert 0 < report.recovering < report.work <= share * exact().report.work
    assert f"{report.recovered:,} bundles recovered" in str(report)
    assert f", {report.unrecovered:,} not" in str(report)
    matches, in_order = ([(str(one.key), str(one.bindings)) for one in several] for several in (found, exact()))
    assert matches == sorted(matches, key=dict(zip(in_order, range(len(in_order)), strict=True)).__getitem__)
    for output, wanted in (("points", found.points()), ("bundles", found.bundles()), ("count", len(found))):
        assert match(share, policy=policy, more={"recover": 0.3}, output=output) == wanted


@pytest.mark.long
def test_a_matcher_that_recovers_bundles_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "acep.native.session.STRATEGIES", (0, NEVER)
    )  # what a batch tells depends on how the stream is cut
    query = {"q": QUERY, "other": acep.regex("AAB", within=9, by="k")}
    budget, table = acep.Budget(work=9, recover=0.3), stream()
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
    plan = planned(QUERY, stream(), id="name")
    session, other = (controlled(plan, "nodes", "newest", 1.0, recovery=(0.5, 1.0), length=5) for _ in range(2))
    session.push(whole(plan, stream().slice(0, 300)))
    data = session.dump()
    data["recoveries"]["0"][name] = value
    with pytest.raises((ArithmeticError, LookupError, TypeError, ValueError, AttributeError)):
        other.load(data)


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
def test_queries_whose_bundles_cannot_be_recovered_are_refused(text: str, why: str) -> None:
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
def test_a_budget_of_time_recovers_too(bound: dict[str, Any]) -> None:
    matcher = acep.Matcher(QUERY, id="name", unit="ms", budget=acep.Budget(**bound, recover=True))
    found = [one for at in range(0, EVENTS, 2000) for one in matcher.push(stream().slice(at, 2000))]
    found += matcher.finish()
    assert sum(by_bundle(found).values(), Counter()) <= sum(by_bundle(exact()).values(), Counter())
    assert matcher.report.matches == len(found)
    if "work" in bound:
        assert 0 < matcher.report.work <= bound["work"] * EVENTS


def test_where_nothing_is_shed_nothing_is_matched_again() -> None:
    found, other = (match(budget=acep.Budget(work=1e6, recover=recover)) for recover in (True, False))
    assert by_bundle(found) == by_bundle(exact())
    assert found.report.exact
    assert found.report.recovering == found.report.recovered == 0
    assert found.report.work == other.report.work


@pytest.mark.long
def test_the_estimated_recall_includes_what_was_recovered(cases: CaseCounts) -> None:
    errors: dict[bool, list[float]] = {True: [], False: []}
    seen = Counter[str]()
    for seed in range(cases(SEEDS)):
        case = known(seed, "nodes")
        for policy, share, reconciled in product(POLICY_NAMES, SHARES, (True, False)):
            rate = share * case.rate
            recovery, options = (1 / 4, rate / 4), {"seed": seed, "estimate": 1 / 4}
            session = controlled(case.plan, "nodes", policy, rate * 3 / 4, recovery=recovery, **options)
            if not reconciled:  # as if nothing were known of what was recovered
                session.budget.efforts[0].reconciliation = None
            true, _ = case.recall(run(session, case.batch))
            one, _ = estimates(session)
            if one is not None:
                errors[reconciled].append(one.recall - true)
                seen["estimated"] += reconciled
                seen["in the interval"] += reconciled and one.low <= true <= one.high
    cases.expect(seen, "estimated", least=25)
    cases.expect(seen, "in the interval", least=0.8 * seen["estimated"])
    assert not_less(seen["in the interval"], seen["estimated"], 0.9)
    # The mean of fewer runs strays farther, by the root of how many they are.
    bound = 0.06 * max(1.0, SEEDS * len(POLICY_NAMES) * len(SHARES) / len(errors[True])) ** 0.5
    assert abs(np.mean(errors[True])) < bound
    assert np.mean(errors[False]) < np.mean(errors[True]) - 0.02


def test_under_the_policy_clear_a_report_is_exact_only_if_all_is_found() -> None:
    found = [match(share, policy="clear") for share in (0.8, 0.95, 1.2, 4.0)]
    assert [one.report.exact for one in found] == [one.count() == len(exact()) for one in found]
    assert [one.report.exact for one in found].count(False) >= 2
