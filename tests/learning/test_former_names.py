"""Policies written with the former names still work, and are warned."""

from __future__ import annotations

import importlib
import random
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import acep
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable

RNG = random.Random(1)
EVENTS = {"ts": list(range(20_000)), "type": RNG.choices("abc", k=20_000), "x": [RNG.random() for _ in range(20_000)]}
QUERY = acep.parse(
    "PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { q.x > p.x AND r.x > q.x } WITHIN 40"
)


def former() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("acep.learning.orders")


class LikelyStates:
    """The example of acep 0.1.0.dev0."""

    name = "likely-states"

    def begin(self, setting: Any, seed: int) -> Any:  # noqa: ARG002
        self.setting = setting
        self.made = np.ones(setting.states)
        self.found = np.ones(setting.states)
        return self.orders()

    def learn(self, epoch: Any) -> Any:
        assert epoch.fell in (False, True)
        lives = epoch.log.lives
        here = lives.made.find(lives.found.parent)
        self.made = 0.9 * self.made + np.bincount(lives.made.state, minlength=self.setting.states)
        self.found = 0.9 * self.found + np.bincount(lives.made.state[here[here >= 0]], minlength=self.setting.states)
        return self.orders()

    def orders(self) -> Any:
        flat = former().Orders.flat(self.setting)
        states = flat.grid.parts(np.arange(flat.grid.vectors)).state
        levels = former().as_levels((self.found / self.made)[states])
        return replace(flat, level=levels, decay=np.full(self.setting.states, 4.0), sample=0.1, spared=0.05)

    def state(self) -> dict[str, Any]:
        return {"made": self.made, "found": self.found}

    def restore(self, state: Any) -> Any:
        self.made, self.found = state["made"], state["found"]
        return self.orders()


def test_a_policy_with_former_names_runs() -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated: use") as warned:
        counted = acep.match(EVENTS, QUERY, budget=acep.Budget(work=5), policy=LikelyStates(), output="count")
    assert {str(one.message).partition(":")[0] for one in warned} >= {
        "Log.lives is deprecated",
        "Epoch.fell is deprecated",
    }
    assert 0 < counted < acep.match(EVENTS, QUERY, output="count")


def test_the_former_module_warns() -> None:
    module = former()
    with pytest.warns(DeprecationWarning, match="acep.learning.orders is deprecated"):
        importlib.reload(module)


def test_former_fields_become_present_ones() -> None:
    context = PolicyContext(("", "a"), 1, 1, 9, False, ((), ()), (), (((0, 1),), ()), 1, True, "")
    table = replace(former().Orders.flat(context, level=7), spared=0.25).shedding_table()
    assert isinstance(table, SheddingTable)
    assert (table.shadow, set(table.level.tolist())) == (0.25, {7})
