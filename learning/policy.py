"""The protocol of a policy: what decides which match nodes stay when the budget does not suffice for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from acep.learning.policy_context import Setting
from acep.learning.shedding_table import Orders
from acep.learning.trajectories.log import Log

__all__ = ["Epoch", "Policy"]


@dataclass(frozen=True)
class Epoch:
    """What happened between two looks of a policy: ``events`` came, with an allowance of ``allowance`` touches each
    (``None``: no bound); ``spent`` touches were made, deciding included, ``dropped`` nodes went because of the orders.
    ``log`` is what became of the nodes that were watched. ``fell``: far less was found for a touch than before."""

    events: int
    allowance: float | None
    spent: int
    dropped: int
    price: float
    log: Log
    fell: bool = False


class Policy(Protocol):
    """One policy serves one query over one stream; a copy of it on each bucket serves the partitions there.

    What it does must be a function of what it was told, so that the same stream has the same answer: whatever is random
    comes from ``seed``, which it is made with. ``state`` is plain data (numbers, texts, lists, dicts with
    texts as keys, NumPy arrays of numbers); a policy given the state of another of its kind goes on as that one would.
    """

    name: str

    def begin(self, setting: Setting, seed: int) -> Orders:
        """The query is known; orders for the first events."""

    def learn(self, epoch: Epoch) -> Orders:
        """What came of it; orders for the next ones."""

    def state(self) -> Mapping[str, Any]:
        """All that it has learned."""

    def restore(self, state: Mapping[str, Any]) -> Orders:
        """Goes on from a state, after ``begin``; the orders that were in force. Raises :class:`ValueError` for what is
        no state of such a policy."""
