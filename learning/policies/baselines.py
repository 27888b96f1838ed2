"""Baseline policies: fixed rules for which partial matches to keep, which never learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import HIGHEST, SheddingTable, Ties

__all__ = ["RULES", "Rule"]

BINS = 64  # bins of the remaining window, for rules on ages


def _random(context: PolicyContext) -> SheddingTable:
    return replace(SheddingTable.flat(context, level=1), noise=HIGHEST - 1, ties=Ties.RANDOM)


def _newest(context: PolicyContext) -> SheddingTable:
    return _by_age(context, np.arange(1, BINS + 1))


def _oldest(context: PolicyContext) -> SheddingTable:
    return replace(_by_age(context, np.arange(BINS, 0, -1)), ties=Ties.OLDEST)


def _by_age(context: PolicyContext, rank: np.ndarray[Any, Any]) -> SheddingTable:
    flat = SheddingTable.flat(context, grid=context.grid(windows=BINS, waits=1))
    parts = flat.grid.parts(np.arange(flat.grid.vectors))
    return replace(flat, level=(rank[parts.remaining] * (HIGHEST // BINS)).astype(np.uint8))


def _newest_per_state(context: PolicyContext) -> SheddingTable:
    return replace(SheddingTable.flat(context), decay=np.full(context.states, 4.0))


def _clear(context: PolicyContext) -> SheddingTable:
    return replace(_newest_per_state(context), clears=True)


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

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:  # noqa: ARG002 - chance is the core's
        """Return the shedding table, which never changes."""
        self.shedding_table = RULES[self.name](context)
        return self.shedding_table

    def learn(self, epoch: Epoch) -> SheddingTable:  # noqa: ARG002
        """Return the same table; nothing is learned."""
        return self.shedding_table

    def state(self) -> Mapping[str, Any]:
        """Return an empty state."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Return the same table. Raises :class:`ValueError` for another policy's state."""
        if state:
            raise ValueError("a rule has no state")
        return self.shedding_table
