"""A budget of work through acep.match: what was given up is said, and what keeps to no budget is refused."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep import Budget, QueryError
from acep.learning.estimation.recall import SampledUnits

pytest.importorskip("acep.native._native")

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { b.x - a.x = 0 AND c.y - b.y = 0 } WITHIN 400"


def rows(events: int = 4_000) -> dict[str, list[Any]]:
    random = Random(5)
    columns: dict[str, list[Any]] = {"ts": list(range(events)), "type": random.choices("ABC", k=events)}
    return columns | {name: [random.randrange(20) for _ in range(events)] for name in "xy"}


@pytest.mark.parametrize("output", ["matches", "points", "bundles", "count"])
def test_what_was_shed_is_said(output: str) -> None:
    query, events = acep.parse(QUERY), rows()
    exact = acep.match(events, query, output=output)
    given = acep.match(events, query, output=output, budget=Budget(work=5))
    many, few = (int(x) if output == "count" else len(x) for x in (exact, given))
    assert (exact.exact, given.exact) == (True, False)
    assert 0 < few < many or output == "bundles"
    matcher = acep.Matcher(query, budget=Budget(work=5))
    matcher.push(events)
    report = matcher.report
    assert report.shed > 0
    assert report.work <= 5 * report.events
    assert 0 < report.deciding < report.work
    assert report.recall is None or 0 <= report.interval[0] <= report.recall <= report.interval[1] <= 1
    assert "exact: nothing was shed" not in str(report)
    assert "not exact: " in str(report)


@pytest.mark.long
def test_an_ample_budget_is_exact_and_says_so() -> None:
    query, events = acep.parse(QUERY), rows()
    found = acep.match(events, query, budget=Budget(work=1e6))
    assert list(found) == list(acep.match(events, query))
    assert found.report.exact
    assert found.report.recall == 1


def test_recall_is_counted_when_a_report_is_read_and_is_what_it_was_then(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, tallies = [0], SampledUnits.tallies

    def counting(*args: Any) -> Any:
        counted[0] += 1
        return tallies(*args)

    monkeypatch.setattr(SampledUnits, "tallies", counting)
    query, events = acep.parse(QUERY.replace("b.x - a.x = 0", "[x]")), pa.table(rows(16_000))
    how: dict[str, Any] = {"budget": Budget(work=1, estimate=0.3), "seed": 2}
    later, at_once, told = acep.Matcher(query, **how), acep.Matcher(query, **how), []
    for matcher in (later, at_once):
        matcher.push(events.slice(0, 15_000))
    for begin in range(15_000, 16_000, 20):  # over the end of an epoch
        given, part = later.push(events.slice(begin, 20)), at_once.push(events.slice(begin, 20))
        told.append((given, replace(part.report, seconds=0)))
    assert 0 < counted[0] <= len(told)
    before = counted[0]
    assert [replace(given[:0].report, seconds=0) for given, _ in told] == [report for _, report in told]
    assert counted[0] == 2 * before
    assert [given.report.interval for given, _ in told] == [report.interval for _, report in told]
    assert counted[0] == 2 * before
    assert len({report.interval for _, report in told}) > 3


def test_the_inner_queries_of_a_composed_one_keep_to_the_work() -> None:
    """What the outer one does comes on top, and is told."""
    text = (
        "FROM (PATTERN SEQ(A a, B b) WHERE { b.x = a.x } WITHIN 90 RETURN b.y AS y) AS T PATTERN SEQ(T t, T u) WHERE "
    )
    query = acep.parse(text + "skip_till_any_match(t, u) { u.y > t.y } WITHIN 90")
    matcher = acep.Matcher(query, budget=Budget(work=0.2))
    events = rows(2_000)
    assert len(matcher.push(events)) + len(matcher.finish()) > 0
    assert matcher._tables.stream is not None
    outer, inner = matcher._tables.stream._executors[0].all_counts()
    assert 0 < inner.touches <= 0.2 * 2_000
    assert inner.shed > 0
    assert matcher.report.work == inner.touches + outer.touches
    assert "matches of matches" in matcher.report.unknown


@pytest.mark.parametrize("output", ["batches", "exists", "compressed"])
def test_what_keeps_to_no_budget_is_refused(output: str) -> None:
    with pytest.raises(QueryError, match="keeps to no budget"):
        acep.match(rows(10), acep.parse(QUERY), output=output, budget=Budget(work=5))


@pytest.mark.parametrize("budget", [Budget(work=9), Budget(memory="4 MB"), Budget(latency=0.5)])
@pytest.mark.parametrize("output", ["matches", "points", "bundles", "count"])
def test_columns_of_nothing_but_nulls_and_empty_tables_are_as_without_a_budget(budget: Budget, output: str) -> None:
    query = acep.parse(
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { a.y <= c.y AND coalesce(b.x, a.y) = a.y "
        "AND c.x IS NULL } WITHIN 400"
    )
    events = rows(40) | {"x": [None] * 40}
    table: Any
    for table in (events, {name: [] for name in events}, {}):
        given = acep.match(table, query, output=output, budget=budget)
        wanted = acep.match(table, query, output=output, engine="reference")
        assert given == wanted if output == "count" else list(given) == list(wanted)
        assert bool(wanted) == (table is events)


@pytest.mark.long
def test_memory_that_suffices_changes_nothing_and_is_reported() -> None:
    query, events = acep.parse(QUERY), rows()
    found = acep.match(events, query, budget=Budget(memory="64 MB"))
    assert list(found) == list(acep.match(events, query))
    assert found.report.exact
    assert 0 < found.report.memory <= 64 * 2**20
    assert " MB held" in str(found.report)


@pytest.mark.parametrize("policy", ["history", "random"])
def test_what_never_began_is_said_too(policy: str) -> None:
    """No touch is allowed, so that not one node is made."""
    events = {"ts": list(range(3000)), "type": Random(1).choices("abc", k=3000)}
    query = acep.regex("abc", within=30)
    assert acep.match(events, query, output="count") > 0
    report = acep.match(events, query, budget=Budget(work=1e-6), policy=policy).report
    assert (report.made, report.exact, report.recall) == (0, False, None)
    assert report.shed > 0


@pytest.mark.parametrize("how", [{"budget": 5}, {"budget": "5"}, *({"seed": seed} for seed in ("7", 1.5, None, True))])
def test_what_is_no_budget_and_no_seed_is_said(how: dict[str, Any]) -> None:
    query = acep.regex("ab", within=5)
    with pytest.raises(QueryError, match=r"budget=|seed="):
        acep.match({"ts": [1], "type": ["a"]}, query, **({"budget": Budget(work=1)} | how))


def test_numbers_of_numpy_and_more_memory_than_there_is_are_taken() -> None:
    query = acep.parse("PATTERN SEQ(a p, b q) WHERE q.x > p.x WITHIN 9")
    events = {"ts": [1, 2], "type": ["a", "b"], "x": [1, 2]}
    bounds: dict[str, Any] = {"work": np.float32(5), "memory": np.int64(1 << 21)}
    seed: Any = np.int64(3)
    assert acep.match(events, query, budget=Budget(**bounds), seed=seed, output="count") == 1
    assert acep.match(events, query, budget=Budget(memory="99999999999 T"), output="count") == 1
