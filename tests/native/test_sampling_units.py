"""Engines that need not choose, under a budget: the recall and its interval, speed, restarts, and what comes after too
much. Random cases are in tests/native/test_budgets.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from tests.native.harness import ANY, NEXT, stream

pytest.importorskip("acep.native._native")

QUERIES = (
    f"PATTERN SEQ(a p, b q, c r) WHERE {ANY}(p, q, r) {{ [key] }} WITHIN 40",
    f"PATTERN SEQ(a p, b q, c r) WHERE {NEXT}(p, q, r) {{ [key] }} WITHIN 40",
    f"PATTERN SEQ(a p, b q, c r) WHERE {ANY}(p, q, r) WITHIN 15 EVENTS",
)


def events(seed: int, count: int, keys: int) -> pa.Table:
    """Letters by key; some keys have many more than others."""
    rng = np.random.default_rng(seed)
    times, key = np.cumsum(rng.integers(0, 3, count)), (rng.pareto(1.0, count) % keys).astype(np.int64)
    return stream(count, seed, "abcx", ts=times, key=key)


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


@pytest.mark.parametrize("output", ["matches", "count", "points", "bundles"])
def test_a_sufficient_budget_is_as_fast_as_none_where_very_many_matches_end(output: str) -> None:
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


def test_no_partial_match_goes_on_past_an_event_that_was_skipped() -> None:
    """Under skip till next match it would have had to take the event. The window is longer than the engine pauses."""
    query = acep.parse(f"PATTERN SEQ(a p, b q) WHERE {NEXT}(p, q) {{ [key] }} WITHIN 2000")
    table = events(2, 4_000, 100)
    exact = {str(match.bindings) for match in acep.match(table, query)}
    for work in (0.05, 0.1, 0.2):
        bindings = {str(match.bindings) for match in acep.match(table, query, budget=acep.Budget(work=work))}
        assert 0 < len(bindings) < len(exact)
        assert bindings - exact == set()


def test_all_is_admitted_again_after_a_burst_of_which_units_were_skipped() -> None:
    calm, burst = events(3, 20_000, 5), events(4, 4_000, 5)
    quiet = calm.set_column(1, "type", [["x"] * 20_000])
    query, last = acep.parse(QUERIES[0]), burst["ts"][-1].as_py()
    matcher = acep.Matcher(query, budget=acep.Budget(work=0.3))
    matcher.push(burst)
    shed = matcher.report.shed
    # Events that are skipped are no partial matches that were given up.
    assert 0 < matcher.report.skipped <= shed
    assert matcher.report.kept == matcher.report.made - (shed - matcher.report.skipped)
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
