"""Events that come late or are taken back under a budget: what is given under pressure, and what is refused."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.errors import EngineError, QueryError, SnapshotError
from tests.runtime.test_random_revised_budgets import beyond
from tests.runtime.test_revisions import UNUSED, by_id, net

OPTIONS: dict[str, Any] = {"lateness": 1000, "speculation": "inf"}
PAIRS = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { q.x > p.x } WITHIN 15")
FEW = acep.parse("PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { q.x > p.x AND r.x > q.x } WITHIN 60")


def some(size: int, late: float = 0.05, by: int = 60) -> list[dict[str, Any]]:
    """Events with their places in time, some of which come late."""
    rng = Random(7)
    rows = [{"ts": n, "n": n, "type": rng.choice("abc"), "x": rng.random()} for n in range(size)]
    return sorted(rows, key=lambda row: row["ts"] + rng.randrange(by) * (rng.random() < late))


def pushed(matcher: Any, rows: list[dict[str, Any]], size: int = 50) -> list[Any]:
    return [m for at in range(0, len(rows), size) for m in matcher.push(rows[at : at + size])]


@pytest.mark.long
def test_under_a_tight_budget_nearly_as_much_is_found_as_in_order() -> None:
    """Late events whose revision costs more than they bring are shed."""
    rows, budget = some(4000), acep.Budget(work=6)
    want = net(acep.match(rows, FEW, id="n"))
    in_order = len(acep.match(rows, FEW, id="n", budget=budget))
    matcher = acep.Matcher(FEW, id="n", budget=budget, lateness=100, speculation="inf")
    found = net([*pushed(matcher, rows), *matcher.finish()])
    assert not beyond(found, want)
    assert 0 < in_order < len(want)
    assert len(found) > 0.7 * in_order
    assert matcher.report.work <= 6 * 4000
    assert matcher.report.recall is None
    assert matcher.report.interval == (0, 1)
    assert "not estimated where matches may be taken back" in str(matcher.report)


def test_what_does_not_fit_into_the_memory_is_held_and_comes_later() -> None:
    rows = some(3000)
    matcher = acep.Matcher(PAIRS, id="n", budget=acep.Budget(memory="1 MB"), lateness="inf", speculation="inf")
    early = pushed(matcher, rows)
    held, report = matcher.held, matcher.report
    assert report.memory <= 2**20
    assert held == 3000  # those that were matched are kept, and the others wait
    later = [*matcher.advance(2000)]
    assert matcher.held < held
    rest = [*matcher.finish()]
    assert net(early + later + rest) == net(acep.match(rows, PAIRS, id="n"))
    assert min(map(len, (early, later))) > 0
    assert matcher.report.exact


@pytest.mark.long
def test_where_late_events_alone_do_not_fit_what_is_not_final_is_given_up() -> None:
    rng = Random(3)
    late = [{"ts": rng.randrange(4000), "n": n, "type": rng.choice("abc"), "x": rng.random()} for n in range(6000)]
    late[0]["ts"] = 4000  # all others come before it
    matcher = acep.Matcher(PAIRS, id="n", budget=acep.Budget(memory="1 MB"), lateness="inf", speculation="inf")
    given = pushed(matcher, late, 600)
    given += matcher.finish()
    report = matcher.report
    assert report.memory <= 2**20
    assert report.shed > 0
    assert report.retracted > 0
    assert not by_id(given)
    assert not beyond(net(given), net(acep.match(late, PAIRS, id="n")))


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { [k] AND q.x > p.x AND r.x > q.x + 0.8 } WITHIN 900",
        "SEQ(a p, b+ q[], c r) WHERE skip_till_next_match(p, q[], r) { [k] AND r.x > avg(q[].x) + 0.3 } WITHIN 700",
        "SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { q.x > p.x + 0.5 AND r.x > q.x } WITHIN 120 EVENTS",
        "SEQ(a p, b q, c r) WHERE skip_till_next_match(p, q, r) { [k] AND q.x > p.x AND r.x > q.x + 0.4 }",
    ],
)
def test_partial_matches_that_fill_the_memory_are_revised_too(text: str) -> None:
    rng, query = Random(text), acep.parse(f"PATTERN {text}")
    rows = [
        {"ts": n, "n": n, "type": rng.choice("abc"), "k": rng.randrange(40), "x": rng.random()} for n in range(2400)
    ]
    rows.sort(key=lambda row: row["ts"] + rng.randrange(200) * (rng.random() < 0.03))
    budget = acep.Budget(memory="1 MB", work=rng.choice((None, 20)))
    matcher = acep.Matcher(query, id="n", lateness=300, speculation="inf", budget=budget)
    given = list[Any]()
    for at in range(0, len(rows), 60):
        given += matcher.push(rows[at : at + 60])
        session = matcher._tables.revised._parts[0].stream._session
        assert session.bytes <= 2**19
        assert matcher.report.memory <= 2**20
    given += matcher.finish()
    assert not by_id(given)
    assert not beyond(net(given), net(acep.match(rows, query, id="n")))
    assert len(given) > 0


@pytest.mark.long
def test_several_queries_share_a_budget() -> None:
    rows = some(1000)
    queries = {"pairs": PAIRS, "few": FEW}
    for budget in (acep.Budget(work=2), acep.Budget(memory="2 MB"), acep.Budget(cpu=0.5), acep.Budget(latency=0.01)):
        matcher = acep.Matcher(queries, id="n", unit="ms", budget=budget, lateness=100, speculation="inf")
        given: dict[str, list[Any]] = {name: [] for name in queries}
        for at in range(0, 1000, 100):
            for name, found in matcher.push(rows[at : at + 100]).items():
                given[name] += found
        for name, found in matcher.finish().items():
            given[name] += found
            want = net(acep.match(rows, queries[name], id="n", unit="ms"))
            assert not beyond(net(given[name]), want)
            assert not found.report.exact or net(given[name]) == want
        assert matcher.report.memory <= 2 * 2**20
        assert matcher.report.exact == (matcher.report.shed == matcher.report.withheld == 0)


@pytest.mark.parametrize(
    ("query", "options", "error", "message"),
    [
        (PAIRS, {"budget": acep.Budget(work=3, recover=True)}, QueryError, "recover= gives matches later"),
        (PAIRS, {"budget": acep.Budget(work=3), "engine": "reference"}, EngineError, "only the native core keeps"),
        ("PATTERN SEQ(a p, b q) WITHIN 5 OUTPUT NON OVERLAP", {}, QueryError, "chosen among others"),
        ("PATTERN SEQ(a p, ~b q) WITHIN 5", {"budget": acep.Budget(memory="1 MB")}, QueryError, "a bound on memory"),
        (PAIRS, {"budget": acep.Budget(cpu=0.5)}, QueryError, "cpu= is a share"),
    ],
)
def test_budgets_that_are_not_kept_are_refused(query: Any, options: Any, error: Any, message: str) -> None:
    matcher = acep.Matcher(query, **OPTIONS | {"budget": acep.Budget(work=3)} | options)
    with pytest.raises(error, match=message):
        matcher.push({"ts": [1], "type": ["a"], "x": [1.0]})


@given(seed=st.integers(0, 2**20))
def test_a_state_that_was_spoilt_or_is_of_another_budget_is_refused(seed: int) -> None:
    rng, rows = Random(seed), some(40)
    budgets = [None, acep.Budget(work=1), acep.Budget(memory="1 MB"), acep.Budget(latency=1.0)]
    one, other = rng.sample(budgets, 2)
    matcher, asked = acep.Matcher(PAIRS, **OPTIONS, budget=one), {**OPTIONS, "budget": other}
    pushed(matcher, rows[: rng.randrange(1, 40)])
    state = bytearray(matcher.snapshot())
    with pytest.raises(SnapshotError):
        acep.Matcher(PAIRS, **asked).restore(bytes(state))
    state[rng.choice([n for n in range(len(state)) if n not in UNUSED])] ^= 1 << rng.randrange(8)
    with pytest.raises(SnapshotError):
        acep.Matcher(PAIRS, **OPTIONS, budget=one).restore(bytes(state))
