"""The policies after eSPICE, pSPICE and Zhao et al.: what they count, and that it is of use."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.budget.policies import POLICIES
from acep.learning.policies.counting import CountingPolicy
from acep.learning.policies.schemes import SCHEMES
from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import HIGHEST, SheddingTable
from acep.learning.trajectories.log import Ages, Extra, Log
from acep.learning.trajectories.trajectories import EXPIRED, Trajectories
from acep.native.compiled import why_not

NONE = np.zeros(0, np.int64)
# a, then b or c, then d: classes 0 to 3; no node waits in state 4.
SETTING = PolicyContext(
    ("", "a", "b", "c", "d"), 1, 1, 31, False, ((),) * 5, (), (((0, 1),), ((1, 2), (2, 3)), ((3, 4),), ((3, 4),), ()),
    4, True, "",
)  # fmt: skip


def log(count: int) -> Log:
    """Of as many starts, each in a partition of its own: b comes 4 later, c 8; both wait, and for b d comes 20 after
    every other start."""
    made, ended, found = [], [], []
    for n in range(count):
        start = 100 * n
        trajectory = 3 * n
        made += [(trajectory, -1, n, 1, start, start), (trajectory + 1, trajectory, n, 2, start, start + 4)]
        made.append((trajectory + 2, trajectory, n, 3, start, start + 8))
        ended += [
            (trajectory, start + 31, EXPIRED, 2),
            (trajectory + 1, start + 31, EXPIRED, 1),
            (trajectory + 2, start + 31, EXPIRED, 9),
        ]
        if n % 2 == 0:
            found.append((trajectory + 1, n, start + 20, 0))
    m, e, f = (np.array(rows, np.int64) for rows in (made, ended, found))
    rows = {"trajectory": m[:, 0], "parent": m[:, 1], "partition": m[:, 2], "state": m[:, 3], "start": m[:, 4]}
    zeros = np.zeros(len(m), np.int64)
    trajectories = Trajectories.from_columns(
        {**rows, "made": m[:, 5], "error": zeros, "feature": zeros, "weight": zeros + 1.0},
        dict(zip(("trajectory", "when", "how", "touches"), e.T, strict=True)),
        dict(zip(("parent", "partition", "when", "error"), f.T, strict=True)),
    )
    extra = Extra(m[:, 0], zeros, np.zeros((len(m), 0)))
    return Log(trajectories, extra, Ages(), NONE, NONE, NONE.astype(np.bool_))


def told(name: str, context: PolicyContext = SETTING, count: int = 200) -> tuple[CountingPolicy, SheddingTable]:
    """A policy that was told of all lives, and its orders."""
    policy = CountingPolicy(name, SCHEMES[name])
    policy.begin(context, 0)
    return policy, policy.learn(Epoch(1000, None, 0, 0, 0.0, log(count)))


def at(shedding_table: SheddingTable, state: int, age: int, waited: int = 0) -> int:
    """The level of a node."""
    return int(shedding_table.level[shedding_table.grid.number(state, 0, 0, age - waited, age)])


def test_before_enough_is_known_the_newest_of_each_state_stay() -> None:
    for name in SCHEMES:
        _, shedding_table = told(name, count=1)
        assert len(set(shedding_table.level.tolist())) == 1
        assert (shedding_table.decay > 0).all()
        assert not len(shedding_table.admit)


def test_input_counts_what_events_led_to_by_class_and_place() -> None:
    policy, shedding_table = told("input")
    a, b, c, d = range(4)
    made, useful = policy.sums["made"], policy.sums["useful"]
    assert (made[a, 0], made[b, 2], made[c, 4], made[d, 10]) == (200, 200, 200, 100)
    assert (useful[a, 0], useful[b, 2], useful[c, 4], useful[d, 10]) == (100, 100, 0, 100)
    assert made.sum() == 700
    # What comes in is as good as at the best of the places that it has; c is of use nowhere.
    assert shedding_table.admit[d, 10] > shedding_table.admit[b, 2] > shedding_table.admit[c, 4]
    assert (np.diff(shedding_table.admit.astype(int), axis=1) >= 0).all()
    # New nodes by their event, and those that have stayed stay.
    assert at(shedding_table, 2, age=4) > at(shedding_table, 3, age=8)
    assert at(shedding_table, 3, age=20, waited=12) == HIGHEST


@pytest.mark.parametrize("name", ["input", "hybrid"])
def test_no_event_is_kept_out_where_that_could_make_matches(name: str) -> None:
    assert len(told(name)[1].admit) == SETTING.classes
    assert not len(told(name, replace(SETTING, loses_only=False))[1].admit)


def test_state_weighs_chances_against_what_is_still_to_be_paid() -> None:
    policy, shedding_table = told("state")
    first = int(policy.grid.number(2, 0, 0, 4, 4))
    assert policy.sums["visits"][first] == 200
    assert policy.sums["won"][first] == 100
    # Half of those of b succeed, none of c; after its match at 20 one of b has no more to hope for.
    assert at(shedding_table, 2, age=4) > at(shedding_table, 3, age=8)
    assert at(shedding_table, 2, age=18) > at(shedding_table, 2, age=28)
    # A start pays for all that comes of it: as likely, and dearer.
    assert at(shedding_table, 2, age=4) > at(shedding_table, 1, age=0)
    start = int(policy.grid.number(1, 0, 0, 0, 0))
    assert policy.sums["consumed"][start] == 200 * (2 + 1 + 9)


def test_differences_tell_what_counts_tell() -> None:
    counts, _ = told("state")
    differences, shedding_table = told("state by differences")
    seen = counts.sums["visits"] > 0
    chances = counts.sums["won"][seen] / counts.sums["visits"][seen]
    assert differences.sums["value"][seen] == pytest.approx(chances, abs=0.02)
    assert at(shedding_table, 2, age=4) > at(shedding_table, 3, age=8)


def test_hybrid_weighs_events_and_nodes_on_one_scale() -> None:
    policy, shedding_table = told("hybrid")
    _, b, c, d = range(4)
    assert policy.sums["won"][b].sum() == 100
    assert policy.sums["won"][c].sum() == 0
    assert policy.sums["won"][d].sum() == 100
    assert shedding_table.admit[b, 1] > shedding_table.admit[c, 2] == 1
    assert at(shedding_table, 2, age=4) > at(shedding_table, 3, age=8)
    # d looks at the nodes of b and of c: what it wins is as much as those of b win, and it pays for both.
    assert shedding_table.admit[d, 5] < at(shedding_table, 2, age=4)


def test_a_state_of_another_policy_is_refused() -> None:
    state = told("state")[0].state()
    for name, wrong in (
        ("hybrid", state),
        ("state", {**state, "sums": {}}),
        ("state", {**state, "sums": {n: held[:-1] for n, held in state["sums"].items()}}),
        ("state", {**state, "sums": {n: held + np.nan for n, held in state["sums"].items()}}),
        ("state", {**state, "watch": {"epochs": 0, "sample": 2.0, "spared": 0.0}}),
        ("state", {"sums": state["sums"]}),
    ):
        policy = CountingPolicy(name, SCHEMES[name])
        policy.begin(SETTING, 0)
        with pytest.raises(ValueError, match=r"stat|sums|shares"):
            policy.restore(wrong)


# On a stream --------------------------------------------------------------------------------------


@cache
def stream(seed: int) -> pa.Table:
    """Of 24 keys by turns: an a, then b and many c, then d, whose number no c has."""
    rng = np.random.default_rng(seed)
    rows = []
    for n in range(20_000):
        phase = n // 24 % 12
        kind = "a" if phase == 0 else "d" if phase == 11 else str(rng.choice(["b", "c", "c", "c"]))
        rows.append((n, kind, n % 24, 9 if kind == "c" else int(rng.integers(2))))
    return pa.table(dict(zip(("ts", "type", "k", "u"), map(list, zip(*rows, strict=True)), strict=True)))


BY_TURNS = acep.parse(
    "PATTERN SEQ(a a, (b x|c y), d d) WHERE skip_till_any_match(a, x, y, d) "
    "{ [k] AND d.u - x.u = 0 AND d.u - y.u = 0 } WITHIN 280"
)


def found_by(**policy: Any) -> int:
    """Return how many match points a policy finds under a budget of one touch an event."""
    return len(acep.match(stream(2), BY_TURNS, budget=acep.Budget(work=1.0), output="points", **policy))


@cache
def by_chance() -> list[int]:
    """Return how many match points are found by chance."""
    return [found_by(policy="random", seed=seed) for seed in range(4)]


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
@pytest.mark.parametrize("name", ["input", "state", "hybrid", "trained-on-test"])
def test_learned_they_find_more_than_by_chance(name: str) -> None:
    learned = acep.learn(stream(1), BY_TURNS, policy=name)
    found, chance = found_by(policy=name, history=learned), by_chance()
    assert max(chance) < 0.9 * len(acep.match(stream(2), BY_TURNS, output="points"))
    assert found > sum(chance) / len(chance)


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_who_has_seen_the_future_wants_to_be_told_of_it() -> None:
    query = acep.parse("PATTERN SEQ(a x, b y) WHERE skip_till_any_match(x, y) { y.v > x.v } WITHIN 5")
    events = {"ts": list(range(200)), "type": list("ab" * 100), "v": list(range(200))}
    with pytest.raises(acep.QueryError, match="learns nothing itself") as refused:
        acep.match(events, query, budget=acep.Budget(work=1), policy="trained-on-test")
    assert "acep.learn" in str(refused.value.hint)
    for policy in ("history", "trained-on-test"):
        learned = acep.learn(events, query, policy=policy)
        acep.match(events, query, budget=acep.Budget(work=1), policy="trained-on-test", history=learned)
    assert POLICIES["trained-on-test"]().name == "trained-on-test"
