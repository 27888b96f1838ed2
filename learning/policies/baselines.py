"""Baseline policies: fixed rules for which partial matches to keep, which never learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acep.learning.policy import Epoch
from acep.learning.policy_context import Setting
from acep.learning.shedding_table import HIGHEST, Orders, Ties

__all__ = ["RULES", "Rule"]

BINS = 64  # bins of the remaining window, for rules on ages


def _random(setting: Setting) -> Orders:
    return replace(Orders.flat(setting, level=1), noise=HIGHEST - 1, ties=Ties.RANDOM)


def _newest(setting: Setting) -> Orders:
    return _by_age(setting, np.arange(1, BINS + 1))


def _oldest(setting: Setting) -> Orders:
    return replace(_by_age(setting, np.arange(BINS, 0, -1)), ties=Ties.OLDEST)


def _by_age(setting: Setting, rank: np.ndarray[Any, Any]) -> Orders:
    flat = Orders.flat(setting, grid=setting.grid(windows=BINS, waits=1))
    parts = flat.grid.parts(np.arange(flat.grid.vectors))
    return replace(flat, level=(rank[parts.remaining] * (HIGHEST // BINS)).astype(np.uint8))


def _newest_per_state(setting: Setting) -> Orders:
    return replace(Orders.flat(setting), decay=np.full(setting.states, 4.0))


def _clear(setting: Setting) -> Orders:
    return replace(_newest_per_state(setting), clears=True)


RULES = {
    "random": _random,
    "newest": _newest,
    "oldest": _oldest,
    "newest-per-state": _newest_per_state,
    "clear": _clear,
}
"""The rules by name. ``random``: keep at random. ``newest``, ``oldest``: keep by start time, over all partitions.
``newest-per-state``: keep as many of the newest starts of each partition and state as the allowance permits. ``clear``:
the same, but a match point also ends all that began before it; this loses no bundle, but other match points."""


@dataclass
class Rule:
    """One of ``RULES`` as a policy (:class:`acep.learning.policy.Policy`)."""

    name: str

    def begin(self, setting: Setting, seed: int) -> Orders:  # noqa: ARG002 - chance is the core's
        """Return the shedding table, which never changes."""
        self._orders = RULES[self.name](setting)
        return self._orders

    def learn(self, epoch: Epoch) -> Orders:  # noqa: ARG002
        """Return the same table; nothing is learned."""
        return self._orders

    def state(self) -> Mapping[str, Any]:
        """Return an empty state."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> Orders:
        """Return the same table. Raises :class:`ValueError` for another policy's state."""
        if state:
            raise ValueError("a rule has no state")
        return self._orders
