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
from acep.learning.policies.counting import CountingPolicy
from acep.learning.policies.history_policy import HistoryPolicy
from acep.learning.policies.schemes import SCHEMES
from acep.learning.policy import Epoch, Policy
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.native.compiled import why_not
from tests.thinned import thinned

pytestmark = [pytest.mark.long, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]


@pytest.mark.parametrize("name", thinned([*POLICIES], 3, pytest.mark.whole))
def test_every_policy_keeps_its_contract(name: str) -> None:
    checked = check_policy(name)
    assert checked.policy == name
    assert checked.cases == 10 > checked.refused
    assert checked.runs > 50
    assert checked.epochs > 150
    assert str(checked).startswith(f"{name}: 10 queries")


@pytest.mark.parametrize(
    "policy", [HistoryPolicy(differences=True), CountingPolicy("state by differences", SCHEMES["state by differences"])]
)
@pytest.mark.whole
def test_temporal_differences_keep_it_too(policy: Policy) -> None:
    assert check_policy(policy).refused == 0


@dataclass
class Sound:
    """A policy that counts, and prefers states that were seen more often."""

    name: str = "sound"
    counts: Any = field(default_factory=lambda: np.zeros(0))

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        self.context, self.seed = context, seed
        self.counts = np.zeros(context.states)
        return self.shedding_table()

    def learn(self, epoch: Epoch) -> SheddingTable:
        self.counts = 0.5 * self.counts + np.bincount(epoch.log.trajectories.made.state, minlength=self.context.states)
        return self.shedding_table()

    def shedding_table(self) -> SheddingTable:
        flat = SheddingTable.flat(self.context)
        states = flat.grid.parts(np.arange(flat.grid.vectors)).state
        return replace(flat, level=(10 + self.counts[states] % 100).astype(np.uint8), sample=0.5)

    def state(self) -> Mapping[str, Any]:
        return {"counts": self.counts}

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        self.counts = state["counts"]
        return self.shedding_table()


def test_a_policy_of_a_user() -> None:
    assert check_policy(Sound()).refused == 0


class Misshapen(Sound):
    def shedding_table(self) -> SheddingTable:
        return replace(super().shedding_table(), decay=np.zeros(self.context.states + 1))


class NoNumbers(Sound):
    def shedding_table(self) -> SheddingTable:
        return replace(super().shedding_table(), decay=np.full(self.context.states, np.nan))


class Wide(Sound):
    def shedding_table(self) -> SheddingTable:
        return replace(super().shedding_table(), level=super().shedding_table().level.astype(np.int64))


class Greedy(Sound):
    def shedding_table(self) -> SheddingTable:
        return replace(super().shedding_table(), shadow=1.5)


class Doorkeeper(Sound):
    def shedding_table(self) -> SheddingTable:
        return replace(super().shedding_table(), admit=np.full((self.context.classes, 1), 9, np.uint8))


class Chancy(Sound):
    def learn(self, epoch: Epoch) -> SheddingTable:
        self.counts = self.counts + random.randrange(9)
        return self.shedding_table()


class ChancyArrays(Sound):
    def learn(self, epoch: Epoch) -> SheddingTable:
        self.counts = self.counts + np.random.rand()
        return self.shedding_table()


class Timed(Sound):
    def learn(self, epoch: Epoch) -> SheddingTable:
        self.counts = self.counts + time.perf_counter_ns() % 97
        return self.shedding_table()


class Forgetful(Sound):
    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        return self.shedding_table()


class Hidden(Sound):
    """Something of what it goes by is not in its state, and shows later."""

    hidden = 0

    def learn(self, epoch: Epoch) -> SheddingTable:
        self.hidden += epoch.events
        self.counts = self.counts + self.hidden
        return self.shedding_table()


class Growing(Sound):
    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        self.all: list[Any] = []
        return super().begin(context, seed)

    def learn(self, epoch: Epoch) -> SheddingTable:
        self.all.append(epoch.log.trajectories.made.start)
        return super().learn(epoch)

    def state(self) -> Mapping[str, Any]:
        return {**super().state(), "all": list(self.all)}

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        self.all = list(state["all"])
        return super().restore(state)


class Raising(Sound):
    def learn(self, epoch: Epoch) -> SheddingTable:
        epoch.log.trajectories.made.trajectory[0]
        return super().learn(epoch)


class Meddling(Sound):
    def learn(self, epoch: Epoch) -> SheddingTable:
        epoch.log.trajectories.made.start[:] = 0
        return super().learn(epoch)


class Opaque(Sound):
    def state(self) -> Mapping[str, Any]:
        return {"counts": {1, 2}}


class Silent(Sound):
    def state(self) -> Mapping[str, Any]:
        return None  # type: ignore[return-value]


class Slow(Sound):
    def learn(self, epoch: Epoch) -> SheddingTable:
        until = time.process_time() + 600e-6 * len(epoch.log.trajectories.made)
        while time.process_time() < until + 0.3 * (len(epoch.log.trajectories.made) > 2000):
            pass
        return super().learn(epoch)


class Choosy(Sound):
    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        raise QueryError("not this one")


BROKEN = {
    Misshapen: "cannot be followed: decay has the shape",
    NoNumbers: "cannot be followed: decay holds numbers that are not finite",
    Wide: "cannot be followed: level is of int64",
    Greedy: "cannot be followed: shadow is 1.5",
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
