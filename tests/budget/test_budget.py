"""What a budget and a policy may be: what is none is told in a line with a hint."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import acep
from acep.budget import pace
from acep.budget.policies import policy_of
from acep.errors import PolicyError, QueryError
from acep.learning.policies.baselines import Rule
from acep.learning.shedding_table import SheddingTable
from acep.shedding.limits import CREDIT

NO_NUMBERS: list[Any] = [0, -1, True, "20 ms", "", b"1", [], 10**400, float("nan"), float("inf"), float("-inf"), 1j]
NO_NUMBERS += [Decimal("NaN"), Decimal("sNaN"), Decimal("1e400"), np.array([1, 2]), np.array(3.0), object()]
GOOD = {
    "memory": [repr(10**400)],
    "estimate": ["0"],
    "recover": ["0", "True"],
    "errors": ["0", repr(10**400), "Decimal('1E+400')"],
}
EVENTS = {"ts": [*range(300)], "type": [*"abc"] * 100, "v": [i % 7 for i in range(300)]}
QUERY = "PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match { q.v > p.v } WITHIN 20 ms"
PLAIN = "PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match WITHIN 20 ms"


@pytest.mark.parametrize("wrong", NO_NUMBERS, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("name", ["cpu", "latency", "work", "speed", "estimate", "recover", "memory", "errors"])
def test_what_is_no_number_is_told_in_a_line(name: str, wrong: Any) -> None:
    if repr(wrong) in GOOD.get(name, ()):
        return
    with pytest.raises(QueryError) as told:
        acep.match(EVENTS, acep.parse(QUERY), budget=acep.Budget(**{"work": 5, name: wrong}), unit="ms")
    assert f"{name}=" in told.value.args[0]
    assert len(str(told.value)) < 200
    assert told.value.hint


@pytest.mark.parametrize("name", ["speed", "estimate"])
def test_what_has_to_be_there_cannot_be_none(name: str) -> None:
    with pytest.raises(QueryError, match=f"{name}=None"):
        acep.Budget(**{"cpu": 0.5, name: None})  # type: ignore[arg-type]


@pytest.mark.parametrize("query", [QUERY, PLAIN], ids=["nodes", "units"])
@pytest.mark.parametrize("beyond", [1e308, 1e17, 1e-308, 5e-324, 2**70, np.float32(3e38)], ids=repr)
@pytest.mark.parametrize("name", ["cpu", "latency", "work", "speed"])
def test_bounds_beyond_all_measure_are_kept_over_a_restart(name: str, beyond: Any, query: str) -> None:
    pytest.importorskip("acep.native._native")
    budget = acep.Budget(**({name: beyond} if name != "speed" else {"cpu": 0.5, name: beyond}))
    matcher, other = (acep.Matcher(acep.parse(query), budget=budget, unit="ms") for _ in range(2))
    matcher.push(EVENTS)
    other.restore(matcher.snapshot())
    other.push(EVENTS | {"ts": [*range(300, 600)]})
    if beyond > 1 and name != "speed":
        assert other.report.exact


class Kept(Rule):
    """A policy that may not be copied."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("one of its kind")


class Empty(Rule):
    """A policy that gives no orders."""

    def begin(self, context: Any, seed: int) -> Any:  # noqa: ARG002
        return None


def test_what_is_no_policy_is_told_in_a_line() -> None:
    nameless, deaf = Rule("newest"), Rule("newest")
    nameless.name = None  # type: ignore[assignment]
    deaf.learn = 5  # type: ignore[assignment, method-assign]
    for policy, text in ((Kept("newest"), "cannot be copied"), (nameless, "name"), (deaf, "learn"), (Rule, "itself")):
        with pytest.raises(QueryError, match=text) as told:
            policy_of(policy)
        assert told.value.hint
    pytest.importorskip("acep.native._native")
    with pytest.raises(PolicyError, match="NoneType") as found:
        acep.match(EVENTS, acep.parse(QUERY), budget=acep.Budget(work=5), policy=Empty("newest"), unit="ms")
    assert "check_policy" in str(found.value)


def test_a_snapshot_of_another_policy_or_budget_is_another_state() -> None:
    def matcher(**options: Any) -> acep.Matcher[acep.Matches]:
        return acep.Matcher(acep.parse(QUERY), unit="ms", **options)

    first = matcher(budget=acep.Budget(work=1))
    first.push(EVENTS)
    data = first.snapshot()
    with pytest.raises(acep.SnapshotError, match="of the policy 'history', and here is 'random'") as caught:
        matcher(budget=acep.Budget(work=1), policy="random").restore(data)
    assert caught.value.code == "state_other"
    with pytest.raises(acep.SnapshotError, match="under a budget that bounds work, and here it bounds nothing"):
        matcher().restore(data)
    matcher(budget=acep.Budget(work=1)).restore(data)


def test_events_without_any_time_widen_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream whose first stretches have no time at all, so that no sample has them."""
    monkeypatch.setattr(pace, "PART", 0.0)
    rng = np.random.default_rng(2)
    rows = 60_000
    events = {"ts": np.arange(rows) * 400, "k": rng.integers(0, 20, rows), "type": rng.choice(["a", "b", "c"], rows)}
    query = "PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { [k] } WITHIN 2 min"
    whole = len(acep.match(events, query, output="points", unit="ms"))
    for seed in range(3):
        found = acep.match(events, query, output="points", unit="ms", budget=acep.Budget(cpu=1e-9), seed=seed)
        low, high = found.report.interval
        assert low <= len(found) / whole <= high


def test_the_events_without_any_time_are_part_of_the_state() -> None:
    first = acep.Matcher(acep.parse(QUERY), unit="ms", budget=acep.Budget(cpu=1e-12))
    for _ in range(3):
        first.push({"ts": [1, 1, 1], "type": [*"abc"], "v": [1, 2, 3]})
    second = acep.Matcher(acep.parse(QUERY), unit="ms", budget=acep.Budget(cpu=1e-12))
    second.restore(first.snapshot())
    assert first.report.interval == second.report.interval


class Flat:
    """A policy that keeps what is newest, and fails where ``fails`` says so."""

    name = "flat"

    def __init__(self, fails: str) -> None:
        self.fails = fails

    def begin(self, context: Any, _: int) -> SheddingTable:
        self.context = context
        return self.given("begin")

    def learn(self, _: Any) -> SheddingTable:
        return self.given("learn")

    def restore(self, _: Any) -> SheddingTable:
        return SheddingTable.flat(self.context)

    def state(self) -> dict[str, Any]:
        return {"odd": object()} if self.fails == "state" else {}

    def given(self, step: str) -> SheddingTable:
        table = SheddingTable.flat(self.context)
        if self.fails == step:
            return replace(table, level=np.zeros(1 + len(table.level), np.int64))
        return table if self.fails != f"{step} raises" else replace(table, level=1 // 0)


@pytest.mark.parametrize("fails", ["begin", "learn", "state", "begin raises", "learn raises"])
def test_an_error_of_a_policy_names_it(fails: str) -> None:
    many = {name: [*values] * 40 for name, values in EVENTS.items()}
    many["ts"] = list(range(len(many["type"])))
    step = fails.removesuffix(" raises")

    def run() -> None:
        matcher = acep.Matcher(acep.parse(QUERY), unit="ms", budget=acep.Budget(work=1), policy=Flat(fails))
        for at in range(0, len(many["ts"]), 1000):
            matcher.push({name: values[at : at + 1000] for name, values in many.items()})
        matcher.snapshot()

    with pytest.raises(PolicyError, match=rf"the policy `flat` failed in {step}\(\): \w+: ") as caught:
        run()
    assert caught.value.__cause__ is not None


def test_each_of_several_queries_has_all_of_the_work() -> None:
    both = acep.match(EVENTS, {"one": QUERY, "two": QUERY}, unit="ms", budget=acep.Budget(work=1))
    work = [found.report.work or 0 for found in both.values()]
    assert max(work) <= len(EVENTS["ts"]) + CREDIT < sum(work)
