"""A budget that suffices costs what no budget costs: while tokens are left, partial matches are not watched. They are
watched where tokens run short, and no longer once they suffice again."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.native.session import NEVER, NativeSession
from acep.shedding.limits import CREDIT
from tests.native.harness import ANY, controlled, pieces, plan_of, push_all, session_of, stream, whole
from tests.thinned import thinned_product

pytest.importorskip("acep.native._native")

EVENTS = 4_000
SIZES = {1: 1_000, 20: 3_000, 2_000: 12_000, 16_000: 16_000}  # of batches, and how many events there are
QUERIES = {
    "any": f"PATTERN SEQ(A a, B b, C c) WHERE {ANY} {{ a.x < b.x AND b.x < c.x }} WITHIN 20",
    "next": "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { a.x < b.x AND c.k = a.k } WITHIN 60",
    "contiguous": "PATTERN SEQ(A a, B+ b[], C c) WHERE strict_contiguity(a, b[], c) { b[i].x > a.x } WITHIN 60",
    "positions": f"PATTERN SEQ(A a, B b, C c) WHERE {ANY} {{ [k] AND a.x < b.x AND b.x < c.x }} WITHIN 30 EVENTS",
}


FORESEEN = f"PATTERN SEQ(A a, B b, C c) WHERE {ANY} {{ a.x < b.x AND c.x > 90 AND c.k = a.k }} WITHIN 60"


def table(events: int = EVENTS, seed: int = 3) -> pa.Table:
    """Events of three types with a key and a number."""
    return stream(events, seed, "ABC", k=8, x=100)


def run(session: NativeSession, batch: Any, size: int) -> tuple[Counter[Any], tuple[int, int]]:
    """The matches of a session in batches of a size, and the partial matches and touches that it takes."""
    *parts, last_part = pieces(batch, size)
    matches = [match for part in parts for match in session.push(part)[0]]
    session.is_last = True
    matches += push_all(session, [last_part])[0]
    nodes, touches, _ = session._session.work(0)
    return Counter((match.key, match.trail) for match in matches), (nodes, touches)


@cache
def exact_run(name: str, size: int) -> tuple[Counter[Any], tuple[int, int]]:
    """The matches and the work without a budget."""
    plan = plan_of(QUERIES[name], table(SIZES[size]))
    return run(session_of(plan, "nodes"), whole(plan, table(SIZES[size])), size)


@pytest.mark.parametrize(("name", "size", "share"), thinned_product([*QUERIES], [*SIZES], [1.3, 4.0], every=3))
def test_a_budget_that_suffices_does_the_work_of_none(name: str, size: int, share: float) -> None:
    events = SIZES[size]
    plan = plan_of(QUERIES[name], table(events))
    batch = whole(plan, table(events))
    expected, work = exact_run(name, size)
    assert expected
    bound = controlled(plan, "nodes", "history", share * work[1] / events, future=True, credit=CREDIT, estimate=1 / 32)
    found, bound_work = run(bound, batch, size)
    assert bound_work == work
    is_same = found == expected
    assert is_same
    counts = bound.shed_counts(0)
    assert counts["calm"]
    assert not counts["logged"]
    assert counts["decided"] == counts["watching"] == counts["weighed"] == counts["refused"] == counts["dropped"] == 0


def steps_of(budget: acep.Budget | None, size: int) -> tuple[list[list[str]], acep.Report]:
    """What each push of so many events gives, and the report."""
    matcher, events = acep.Matcher(acep.parse(QUERIES["any"]), unit="s", budget=budget), table()
    steps = [[*map(repr, matcher.push(events.slice(at, size)))] for at in range(0, EVENTS, size)]
    return [*steps, [*map(repr, matcher.finish())]], matcher.report


@cache
def exact_steps(size: int) -> tuple[list[list[str]], acep.Report]:
    """The steps and the report without a budget."""
    return steps_of(None, size)


@pytest.mark.parametrize("bound", [{"work": 1e6}, {"latency": 60.0}, {"cpu": 1e3}, {"work": 1e6, "latency": 60.0}])
@pytest.mark.parametrize("size", [20, 2_000, EVENTS])
def test_a_matcher_under_a_budget_that_suffices_is_exact(bound: dict[str, float], size: int) -> None:
    exact, exact_report = exact_steps(size)
    steps, report = steps_of(acep.Budget(**bound), size)
    assert steps == exact
    assert (report.exact, report.recall, report.shed, report.deciding) == (True, 1, 0, 0)
    if "work" in bound and len(bound) == 1:
        assert (report.work, report.made) == (exact_report.work, exact_report.made)
    else:  # the clock is read between stretches, and the known future begins at one
        assert report.work == pytest.approx(exact_report.work, rel=0.01)


def test_the_known_future_is_used_under_a_budget_that_does_not_suffice() -> None:
    plan = plan_of(FORESEEN, table(20_000))
    batch = whole(plan, table(20_000))
    ignoring = session_of(plan, "nodes")
    ignoring.ignore_future()
    every, (_, touches) = run(ignoring, batch, len(batch))
    found = []
    for future in (False, True):
        session = controlled(plan, "nodes", "newest", touches / len(batch) / 5, future=future)
        session._session.choose_search_ways(0, 2 if future else NEVER)
        own, _ = run(session, batch, len(batch))
        assert own <= every
        assert session.shed_counts(0)["spent"] <= touches / 5
        found.append(own.total())
    assert found[0] < found[1]


def phases(quiet: int, crowd: int) -> pa.Table:
    """Quiet, crowded, and quiet events for long."""
    step = np.concatenate([np.full(quiet, 10), np.full(crowd, 0), np.full(6 * quiet, 10)])
    return stream(len(step), 5, "ABC", ts=np.cumsum(step) + np.arange(len(step)) // 40, k=8, x=100)


@pytest.mark.long
def test_it_rests_again_once_the_allowance_suffices_again() -> None:
    events = phases(3_000, 1_000)
    text = f"PATTERN SEQ(A a, B b, C c) WHERE {ANY} {{ a.x < b.x AND b.x < c.x }} WITHIN 60"
    plan = plan_of(text, events)
    batch = whole(plan, events)
    session, exact = controlled(plan, "nodes", "newest", 12.0, estimate=1 / 8), session_of(plan, "nodes")
    rests, kept = [], []
    for part in pieces(batch, 500):
        found, expected = (Counter((m.key, m.trail) for m in one.push(part)[0]) for one in (session, exact))
        rests.append(session._session.is_shedding_idle(0))
        assert found <= expected
        kept.append(found == expected)
    assert rests[:5] == [True] * 5
    assert not all(rests)
    assert rests[-1]
    again = len(rests) - rests[::-1].index(False)
    assert all(kept[again + 1 :]), "all is found after it rests again"
    assert not all(kept)
    counts = session.shed_counts(0)
    assert counts["spent"] <= 12 * len(batch)
    assert session.counts(0).touches <= 12 * len(batch)


@pytest.mark.parametrize("future", [False, True])
def test_a_restart_makes_no_difference_whether_it_rests_or_not(future: bool) -> None:
    events = phases(2_000, 400)
    text = f"PATTERN SEQ(A a, B b, C c) WHERE {ANY} {{ a.x < b.x AND b.x < c.x AND c.k = a.k }} WITHIN 60"
    plan = plan_of(text, events)

    def begin() -> NativeSession:
        return controlled(plan, "nodes", "history", 4.0 if future else 8.0, estimate=1 / 8, future=future, seed=3)

    steady, stopped, states = begin(), begin(), set[bool]()
    for number, part in enumerate(pieces(whole(plan, events), 700)):
        assert list(map(repr, steady.push(part)[0])) == list(map(repr, stopped.push(part)[0]))
        states.add(steady._session.is_shedding_idle(0))
        if number % 2:
            state, stopped = stopped.dump(), begin()
            stopped.load(state)
        assert steady.shed_counts(0)["spent"] == stopped.shed_counts(0)["spent"]
    assert states == {True, False}


def test_the_credit_is_there_before_the_first_event() -> None:
    query = acep.parse(f"PATTERN SEQ(A a, A b) WHERE {ANY} {{ a.x < b.x }} WITHIN 10")
    events = stream(200, 1, "A", x=100)
    bound = acep.match(events, query, budget=acep.Budget(work=0.5))
    assert 0.5 * 200 < bound.report.work <= 0.5 * (200 + CREDIT)
    assert not bound.exact
