"""Define the protocol of a policy, which decides the partial matches to keep when the budget is insufficient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.learning.trajectories.log import Log

__all__ = ["Epoch", "Policy"]


@dataclass(frozen=True)
class Epoch:
    """A stretch of ``events`` events between two calls of a policy, with ``allowance`` touches per event (``None``: no
    bound). ``spent`` counts touches, shedding decisions included; ``dropped`` the partial matches that were shed.
    ``log`` has the outcomes of the sampled ones. ``drifted``: drift detected (far fewer match points per touch)."""

    events: int
    allowance: float | None
    spent: int
    dropped: int
    price: float
    log: Log
    drifted: bool = False


class Policy(Protocol):
    """A policy serves one query over one stream; each bucket of partitions has a copy of it.

    It must be deterministic, so that the same stream gives the same answer: randomness may come only from the ``seed``
    of ``begin``. ``state`` is plain data (numbers, texts, lists, dicts with texts as keys, NumPy arrays of numbers). A
    policy with the restored state of another of its kind continues as that one would.
    """

    name: str

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        """Begin a query, and return the shedding table for its first events."""

    def learn(self, epoch: Epoch) -> SheddingTable:
        """Learn from an epoch, and return the shedding table for the next events."""

    def state(self) -> Mapping[str, Any]:
        """Return all that was learned."""

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Continue from a state, after ``begin``, and return the shedding table in use. Raises :class:`ValueError` for
        data that is no state of such a policy."""
