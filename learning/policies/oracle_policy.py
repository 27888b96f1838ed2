"""The policy ``trained-on-test``, for experiments: ``history``, trained beforehand on the very events it then runs on.
It shows the recall that ``history`` can reach if the past is like the future."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from acep.learning.policies.history_policy import HistoryPolicy
from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable, ThresholdTrial

__all__ = ["OraclePolicy"]


@dataclass
class OraclePolicy:
    """A policy that uses a history of the same events: under a budget it explores nothing and learns nothing. Without
    a bound it learns, for :func:`acep.learn`."""

    inner: HistoryPolicy = field(default_factory=HistoryPolicy)
    name: str = "trained-on-test"
    learned_by: str = "history"
    """The policy whose learned states it takes; it does not run without one."""

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        """Begin ``history``, without shadow samples."""
        return replace(self.inner.begin(context, seed), shadow=0.0)

    def learn(self, epoch: Epoch) -> SheddingTable:
        """Learn from an epoch without a bound; ignore any other."""
        if epoch.allowance is None:
            return self.inner.learn(epoch)
        return self._shedding_table()

    def ways(self) -> list[SheddingTable]:
        """Return the shedding tables of ``history``, one per scoring configuration."""
        return self.inner.ways()

    def rules(self) -> list[int]:
        """Return the numbers of those that are fixed rules."""
        return self.inner.rules()

    def choose(self, number: int, prices: Sequence[ThresholdTrial]) -> None:
        """Choose a scoring configuration, as ``history`` does."""
        self.inner.choose(number, prices)

    def _shedding_table(self) -> SheddingTable:
        return self.inner.chosen.watching(sample=0.0, shadow=0.0)

    def state(self) -> Mapping[str, Any]:
        """Return the state of ``history``."""
        return self.inner.state()

    def learned(self) -> Mapping[str, Any]:
        """Return the state of ``history`` for another run."""
        return self.inner.learned()

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Restore a state of ``history``. Raises :class:`ValueError` for other data."""
        self.inner.restore(state)
        return self._shedding_table()
