"""Load shedding in the native core: tables that are refused, events that are skipped, and sufficient allowances. Random
cases are in tests/native/test_budgets.py."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import acep
from acep.events.batch import Batch
from acep.learning.policies.baselines import Rule
from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.learning.trajectories.log import Log
from acep.plan.compile import Plan
from tests.native.harness import controlled, letters, plan_of, planned, push_all, session_of, stream, whole

pytest.importorskip("acep.native._native")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("level", np.zeros(3, np.uint8)),
        ("level", np.zeros(0, np.int64)),
        ("decay", np.full(4, -1.0)),
        ("decay", np.full(4, np.nan)),
        ("later", np.zeros(5, np.int8)),
        ("errors", 0),
        ("windows", 256),
        ("waits", 9),
        ("error_step", 0),
        ("ties", 3),
        ("noise", -1),
        ("sample", 2**32 + 1),
        ("admit", np.zeros(1, np.uint8)),
        ("terms", [[]]),
        ("terms", [[], [(0, 7, 0, False, False, np.zeros(0), np.zeros(2, np.float32))], [], []]),
        ("terms", [[], [(0, 0, 0, False, False, np.array([2.0, 1.0]), np.zeros(4, np.float32))], [], []]),
        ("terms", [[], [(9, 0, 0, False, False, np.zeros(0), np.zeros(2, np.float32))], [], []]),
        ("terms", [[], [(0, 0, 0, False, False, np.zeros(0), np.zeros(5, np.float32))], [], []]),
    ],
)
def test_shedding_tables_that_make_no_sense_are_refused(name: str, value: Any) -> None:
    session = controlled(plan_of("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 9"), "nodes", "random", 1.0)
    controller = session.budget.efforts[0]
    shedding_table = controller.shedding_table.for_native_core(controller.context)
    session._session.set_shedding_table(0, shedding_table)
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        session._session.set_shedding_table(0, shedding_table | {name: value})
    assert session.shed_counts(0)["spent"] == 0


@pytest.mark.parametrize("policy", ["random", "history"])
def test_a_restored_matcher_sheds_what_one_that_was_never_stopped_sheds(policy: str) -> None:
    query = acep.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 200")
    limits: dict[str, Any] = {"budget": acep.Budget(work=3), "policy": policy, "seed": 5}
    steady, stopped, restored = (acep.Matcher(query, **limits) for _ in range(3))
    table = stream(4_000, x=100)
    halves = table.slice(0, 2_000), table.slice(2_000)
    expected = [str(match.bindings) for half in halves for match in steady.push(half)]
    bindings = [str(match.bindings) for match in stopped.push(halves[0])]
    restored.restore(stopped.snapshot())
    bindings += [str(match.bindings) for match in restored.push(halves[1])]
    assert restored.report.shed == steady.report.shed > 0
    assert Counter(bindings) == Counter(expected)


class Doorkeeper(Rule):
    """Admits no event of type C, and logs what begins in shadow-sampled units."""

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        flat = super().begin(context, seed)
        takes = {taken for arcs in context.takes for taken, target in arcs if not context.takes[target]}
        admit = np.array([[1 if one in takes else 254] for one in range(context.classes)], np.uint8)
        self.logs: list[Log] = []
        self._shedding_table = replace(flat, level=np.full_like(flat.level, 254), admit=admit, noise=0, shadow=0.1)
        return self._shedding_table

    def learn(self, epoch: Epoch) -> SheddingTable:
        self.logs.append(epoch.log)
        return self._shedding_table.watching(sample=0.0, shadow=0.1)


def test_events_that_are_skipped_are_seen_in_shadow_sampled_units() -> None:
    keys, rounds, quiet = 40, 900, 200  # at first something is laid by, so that a utility threshold suffices
    word = [letter for n in range(rounds) for letter in keys * ["x" if n < quiet else "accccc"[n % 6]]]
    times, partitions = np.repeat(np.arange(rounds), keys), np.tile(np.arange(keys), rounds)
    plan = planned(acep.regex("ac", within=12, by="k"), table := letters(word, ts=times, k=partitions))
    found = []
    for rate in (1e9, 0.8):
        policy = Doorkeeper("random")
        session = controlled(plan, "nodes", policy, rate, length=5)
        session.push(whole(plan, table))
        session.finish()
        session.budget.learn()
        when, kept = (np.concatenate([getattr(log, name) for log in policy.logs]) for name in ("when", "kept"))
        found.append((Counter(when.tolist()), kept))
    (exact, all_kept), (points, kept) = found
    counts = session.shed_counts(0)
    assert counts["passed_over"] > 1000
    assert counts["dropped"] == counts["refused"] == 0, "nothing is lost but what was not admitted"
    assert all_kept.all()
    # In shadow-sampled units all is found; a partial match that is one with later ones is reported for a window longer.
    assert points <= exact
    assert points.total() > 0.97 * exact.total()
    assert 100 < np.count_nonzero(kept) < len(kept) - 100


@dataclass
class Asked(Rule):
    """Explores as much as can be, and counts how often it is asked to learn, and from how many trajectories."""

    asked: int = 0
    trajectories: int = 0

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        return super().begin(context, seed).watching(sample=1.0, shadow=0.05)

    def learn(self, epoch: Epoch) -> SheddingTable:
        self.asked += 1
        self.trajectories += len(epoch.log.trajectories.made)
        return super().learn(epoch).watching(sample=1.0, shadow=0.05)


@dataclass
class Costs(Rule):
    """Logs all partial matches; counts how often those that have ended were evaluated, by the time that they ended."""

    evaluated: int = 0
    ended: int = 0

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        return super().begin(context, seed).watching(sample=1.0, shadow=0.1)

    def learn(self, epoch: Epoch) -> SheddingTable:
        ended = epoch.log.trajectories.ended
        self.evaluated += int(np.sum(ended.touches))
        self.ended += len(ended)
        return super().learn(epoch).watching(sample=1.0, shadow=0.1)


@pytest.mark.parametrize("ways", [(0, 0), (1, 0), (2, 0)])
@pytest.mark.parametrize("condition", ["b.k = a.k", "abs(b.k - a.k) < 1", "b.k <= a.k AND b.k >= a.k"])
def test_partial_matches_are_charged_with_the_evaluations_made(
    condition: str, ways: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an arc finds partial matches by their registers, it evaluates few of a list; then their costs are few."""
    monkeypatch.setattr("acep.native.session.STRATEGIES", ways)
    n = 6_000
    table = stream(n, 3, "ab", k=40)
    plan = plan_of(f"PATTERN SEQ(a a, b b) WHERE skip_till_any_match(a, b) {{ {condition} }} WITHIN 200", table)
    session = controlled(plan, "nodes", policy := Costs("random"), 1e9, length=50)
    session.push(whole(plan, table))
    session.finish()
    session.budget.learn()
    begun = table.column("type").to_pylist().count("a")
    evaluated = session._session.work(0)[1] - begun
    assert policy.ended > 0.8 * begun, "nearly all are logged"
    assert policy.evaluated == pytest.approx(evaluated, rel=0.15)


def rising(events: int, crowd: int) -> tuple[Plan, Batch, Batch]:
    """A plan, a quiet stream, and the same with a crowded one after it."""
    times = np.concatenate([np.arange(0, 10 * events, 10), 10 * events + np.arange(events) * 10 // crowd])
    table = stream(2 * events, 5, "abcx", ts=times, x=100)
    text = "PATTERN SEQ(a a, b b, c c) WHERE skip_till_any_match(a, b, c) { a.x < b.x AND b.x < c.x } WITHIN 60"
    plan = plan_of(text)
    return plan, whole(plan, table.slice(0, events)), whole(plan, table)


def run(plan: Plan, batch: Batch, rate: float | None, policy: Asked | None) -> tuple[int, int, Counter[Any]]:
    """Touches, nodes, and what was found."""
    session = session_of(plan, "nodes") if policy is None else controlled(plan, "nodes", policy, rate)
    session.ignore_future()
    (matches,) = push_all(session, [batch])
    nodes, touches, _ = session._session.work(0)
    return touches, nodes, Counter((match.key, match.trail) for match in matches)


def test_a_sufficient_allowance_costs_nothing_and_nothing_is_explored_or_learned() -> None:
    plan, _, batch = rising(4_000, 2)
    policy = Asked("newest")
    assert run(plan, batch, 1e6, policy) == run(plan, batch, None, None)
    assert (policy.asked, policy.trajectories) == (0, 0)


@pytest.mark.long
def test_learning_begins_when_the_allowance_no_longer_suffices() -> None:
    size = 4_000
    plan, quiet, batch = rising(size, 30)
    exact, before = run(plan, batch, None, None), run(plan, quiet, None, None)
    rate = 8 * before[0] / size
    assert exact[0] > 1.2 * rate * 2 * size, "it does not suffice for the crowd"
    policy = Asked("newest")
    assert run(plan, quiet, rate, policy)[2] == before[2]
    assert policy.asked <= 1, "until something is left over"
    touches, _, found = run(plan, batch, rate, policy := Asked("newest"))
    assert before[2] <= found < exact[2]
    assert touches <= rate * 2 * size
    assert policy.asked >= 1
    assert policy.trajectories > 0
