"""The policy of experts: what a reward is, that the learner comes to trust who earns it, and prices on taking over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from acep.learning.policies.bandit_policy import BanditPolicy, ExpertScore
from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.learning.trajectories.log import Ages, Extra, Log
from acep.learning.trajectories.trajectories import Trajectories

SETTING = PolicyContext(("", "a"), 1, 1, 9, False, ((), ()), (), (((0, 1),), ()), 1, True, "")


@dataclass
class Fixed:
    """Always the same level."""

    level: int
    name: str = "fixed"
    epochs: int = 0

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:  # noqa: ARG002
        return SheddingTable.flat(context, level=self.level)

    def learn(self, epoch: Epoch) -> SheddingTable:  # noqa: ARG002
        self.epochs += 1
        return SheddingTable.flat(SETTING, level=self.level)

    def state(self) -> dict[str, Any]:
        return {"epochs": self.epochs}

    def restore(self, state: Any) -> SheddingTable:
        self.epochs = state["epochs"]
        return SheddingTable.flat(SETTING, level=self.level)


def epoch(kept: int, of: int = 20, *, price: float = 9.0, spent: int = 100, allowance: float | None = 1.0) -> Epoch:
    points = np.arange(of)
    log = Log(Trajectories(), Extra(), Ages(), points, points, points < kept)
    return Epoch(100, allowance, spent, 1, price, log)


def advised(seed: int = 0) -> BanditPolicy:
    found = BanditPolicy({"good": lambda: Fixed(120), "poor": lambda: Fixed(60)})
    found.begin(SETTING, seed)
    return found


def test_a_reward_is_what_was_kept_for_the_work_that_was_allowed() -> None:
    none = ExpertScore()
    assert none.add_epoch(epoch(15)).reward == 0.75
    assert none.add_epoch(epoch(15, spent=50)).reward == 0.75
    assert none.add_epoch(epoch(15, spent=200)).reward == 0.375
    assert none.add_epoch(epoch(15, price=0.0)) == none.add_epoch(epoch(15, allowance=None)) == none
    few = none.add_epoch(epoch(3, of=6))
    assert few.reward is None
    assert few.add_epoch(epoch(6, of=6)).reward == 0.75


def test_who_is_in_force_stays_until_enough_is_seen() -> None:
    policy = advised()
    for _ in range(30):
        before = policy.learner.round
        policy.learn(epoch(2, of=6))
        assert policy.learner.round == before
        policy.learn(epoch(2, of=6))
        assert policy.learner.round == before + 1


def test_who_finds_more_is_in_force_more_often() -> None:
    policy, chosen = advised(), []
    for _ in range(400):
        chosen.append(policy.learner.choice)
        policy.learn(epoch(18 if chosen[-1] == 0 else 4))
    assert np.mean(chosen[:40]) > 0.2, "both are tried"
    assert np.mean(chosen[-100:]) < 0.2
    assert [one.epochs for one in policy.experts.values()] == [400, 400], "all learn, whoever is in force"


def test_who_takes_over_pays_its_own_price() -> None:
    """Its levels are moved so that the price now is to them what its own last price was."""
    policy = advised()
    last: dict[str, float] = {}
    switches = 0
    for number in range(60):
        name = list(policy.experts)[policy.learner.choice]
        price = 40.0 + number % 7
        last[name] = price - policy.raised
        shedding_table = policy.learn(epoch(10, price=price))
        after = list(policy.experts)[policy.learner.choice]
        own = {"good": 120, "poor": 60}[after]
        assert set(shedding_table.level.tolist()) == {min(254, max(1, own + policy.raised))}
        if after != name:
            switches += 1
            assert policy.raised == round(price - last.get(after, price))
    assert switches > 5


def test_it_goes_on_from_its_state() -> None:
    policy = advised(seed=3)
    for number in range(20):
        policy.learn(epoch(number))
    other = advised(seed=3)
    shedding_table = other.restore(policy.state())
    assert other.state() == policy.state()
    assert (shedding_table.level == policy.learn(replace(epoch(0), price=0.0)).level).all()
    state = dict(policy.state())
    for wrong in (
        {},
        {**state, "experts": {}},
        {**state, "learner": {}},
        {**state, "prices": 3},
        {**state, "seen": {}},
    ):
        with pytest.raises(ValueError, match=r"state|experts"):
            other.restore(wrong)
