"""``check_policy`` passes for all policies of the project, and finds what is wrong with policies that are broken."""

# ruff: noqa: ARG002, D101

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from acep.budget.policies import POLICIES
from acep.checks import check_policy
from acep.errors import PolicyError, QueryError
from acep.learning.policies.counting import Counted
from acep.learning.policies.history_policy import Remembering
from acep.learning.policies.schemes import SCHEMES
from acep.learning.policy import Epoch, Policy
from acep.learning.policy_context import Setting
from acep.learning.shedding_table import Orders
from acep.native.compiled import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_keeps_its_contract(name: str) -> None:
    checked = check_policy(name)
    assert checked.policy == name
    assert checked.cases == 10 > checked.refused
    assert checked.runs > 50
    assert checked.epochs > 150
    assert str(checked).startswith(f"{name}: 10 queries")


@pytest.mark.parametrize(
    "policy", [Remembering(differences=True), Counted("state by differences", SCHEMES["state by differences"])]
)
def test_temporal_differences_keep_it_too(policy: Policy) -> None:
    assert check_policy(policy).refused == 0


@dataclass
class Sound:
    """A policy that counts, and prefers states that were seen more often."""

    name: str = "sound"
    counts: Any = field(default_factory=lambda: np.zeros(0))

    def begin(self, setting: Setting, seed: int) -> Orders:
        self.setting, self.seed = setting, seed
        self.counts = np.zeros(setting.states)
        return self.orders()

    def learn(self, epoch: Epoch) -> Orders:
        self.counts = 0.5 * self.counts + np.bincount(epoch.log.lives.made.state, minlength=self.setting.states)
        return self.orders()

    def orders(self) -> Orders:
        flat = Orders.flat(self.setting)
        states = flat.grid.parts(np.arange(flat.grid.vectors)).state
        return replace(flat, level=(10 + self.counts[states] % 100).astype(np.uint8), sample=0.5)

    def state(self) -> Mapping[str, Any]:
        return {"counts": self.counts}

    def restore(self, state: Mapping[str, Any]) -> Orders:
        self.counts = state["counts"]
        return self.orders()


def test_a_policy_of_a_user() -> None:
    assert check_policy(Sound()).refused == 0


class Misshapen(Sound):
    def orders(self) -> Orders:
        return replace(super().orders(), decay=np.zeros(self.setting.states + 1))


class NoNumbers(Sound):
    def orders(self) -> Orders:
        return replace(super().orders(), decay=np.full(self.setting.states, np.nan))


class Wide(Sound):
    def orders(self) -> Orders:
        return replace(super().orders(), level=super().orders().level.astype(np.int64))


class Greedy(Sound):
    def orders(self) -> Orders:
        return replace(super().orders(), spared=1.5)


class Doorkeeper(Sound):
    def orders(self) -> Orders:
        return replace(super().orders(), admit=np.full((self.setting.classes, 1), 9, np.uint8))


class Chancy(Sound):
    def learn(self, epoch: Epoch) -> Orders:
        self.counts = self.counts + random.randrange(9)
        return self.orders()


class ChancyArrays(Sound):
    def learn(self, epoch: Epoch) -> Orders:
        self.counts = self.counts + np.random.rand()
        return self.orders()


class Timed(Sound):
    def learn(self, epoch: Epoch) -> Orders:
        self.counts = self.counts + time.perf_counter_ns() % 97
        return self.orders()


class Forgetful(Sound):
    def restore(self, state: Mapping[str, Any]) -> Orders:
        return self.orders()


class Hidden(Sound):
    """Something of what it goes by is not in its state, and shows later."""

    hidden = 0

    def learn(self, epoch: Epoch) -> Orders:
        self.hidden += epoch.events
        self.counts = self.counts + self.hidden
        return self.orders()


class Growing(Sound):
    def begin(self, setting: Setting, seed: int) -> Orders:
        self.all: list[Any] = []
        return super().begin(setting, seed)

    def learn(self, epoch: Epoch) -> Orders:
        self.all.append(epoch.log.lives.made.start)
        return super().learn(epoch)

    def state(self) -> Mapping[str, Any]:
        return {**super().state(), "all": list(self.all)}

    def restore(self, state: Mapping[str, Any]) -> Orders:
        self.all = list(state["all"])
        return super().restore(state)


class Raising(Sound):
    def learn(self, epoch: Epoch) -> Orders:
        epoch.log.lives.made.life[0]
        return super().learn(epoch)


class Meddling(Sound):
    def learn(self, epoch: Epoch) -> Orders:
        epoch.log.lives.made.start[:] = 0
        return super().learn(epoch)


class Opaque(Sound):
    def state(self) -> Mapping[str, Any]:
        return {"counts": {1, 2}}


class Silent(Sound):
    def state(self) -> Mapping[str, Any]:
        return None  # type: ignore[return-value]


class Slow(Sound):
    def learn(self, epoch: Epoch) -> Orders:
        until = time.process_time() + 600e-6 * len(epoch.log.lives.made)
        while time.process_time() < until + 0.3 * (len(epoch.log.lives.made) > 2000):
            pass
        return super().learn(epoch)


class Choosy(Sound):
    def begin(self, setting: Setting, seed: int) -> Orders:
        raise QueryError("not this one")


BROKEN = {
    Misshapen: "cannot be followed: decay has the shape",
    NoNumbers: "cannot be followed: decay holds numbers that are not finite",
    Wide: "cannot be followed: level is of int64",
    Greedy: "cannot be followed: spared is 1.5",
    Doorkeeper: "may make matches",
    Chancy: "draws from a global random generator in `learn`",
    ChancyArrays: "draws from a global random generator in `learn`",
    Timed: "does another thing when it does the same again",
    Forgetful: "gives other orders after `restore`",
    Hidden: "goes on otherwise after `restore`",
    Growing: "has a state that grows with the stream",
    Raising: "raises IndexError in `learn`",
    Meddling: "changes the epoch's arrays",
    Opaque: "no plain data: set",
    Silent: "gives a NoneType as its state",
    Slow: "s from ",
    Choosy: "serves none of the queries",
}


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_what_is_broken_is_found(kind: type[Sound]) -> None:
    with pytest.raises(PolicyError, match=BROKEN[kind]) as caught:
        check_policy(kind())
    assert caught.value.hint
    if kind is not Choosy:
        assert "epochs)" in caught.value.message
