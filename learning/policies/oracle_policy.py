"""The policy ``trained-on-test``, for experiments: ``history``, trained beforehand on the very events it then runs on.
It shows the recall that ``history`` can reach if the past is like the future."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from acep.learning.policies.history_policy import HistoryPolicy
from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable

__all__ = ["OraclePolicy"]


@dataclass
class OraclePolicy(HistoryPolicy):
    """A policy that uses a history of the same events: under a budget it explores nothing and learns nothing. Without
    a bound it learns, for :func:`acep.learn`."""

    name: str = "trained-on-test"
    learned_by: str = "history"
    """The policy whose learned states it takes; it does not run without one."""

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        """Begin ``history``, without shadow samples."""
        return replace(super().begin(context, seed), shadow=0.0)

    def learn(self, epoch: Epoch) -> SheddingTable:
        """Learn from an epoch without a bound; ignore any other."""
        return super().learn(epoch) if epoch.allowance is None else self._table_without_samples()

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Restore a state of ``history``. Raises :class:`ValueError` for other data."""
        super().restore(state)
        return self._table_without_samples()

    def _table_without_samples(self) -> SheddingTable:
        return self.table.watching(sample=0.0, shadow=0.0)
