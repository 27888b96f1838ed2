"""The policy ``trained-on-test``: what ``history`` learned from the very events that are to come, and nothing else. It
has seen the future: what it finds is what ``history`` may hope for if its past is like the future; for experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from acep.learning.policies.history_policy import Remembering
from acep.learning.policy import Epoch
from acep.learning.policy_context import Setting
from acep.learning.shedding_table import Orders, Price

__all__ = ["Foreseeing"]


@dataclass
class Foreseeing:
    """Begins with a history of the events to come, and keeps to it: nothing is explored, nothing learned under a
    budget. Without a bound it learns, as :func:`acep.learn` asks it to."""

    inner: Remembering = field(default_factory=Remembering)
    name: str = "trained-on-test"
    learned_by: str = "history"
    """Whose states it takes; it does not run without one."""

    def begin(self, setting: Setting, seed: int) -> Orders:
        """Those of ``history`` before it has learned."""
        return replace(self.inner.begin(setting, seed), spared=0.0)

    def learn(self, epoch: Epoch) -> Orders:
        """What it learned stays."""
        if epoch.allowance is None:
            return self.inner.learn(epoch)
        return self._orders()

    def ways(self) -> list[Orders]:
        """Those of ``history``."""
        return self.inner.ways()

    def rules(self) -> list[int]:
        """As it does."""
        return self.inner.rules()

    def choose(self, number: int, prices: Sequence[Price]) -> None:
        """As ``history``."""
        self.inner.choose(number, prices)

    def _orders(self) -> Orders:
        return self.inner.chosen.watching(sample=0.0, spared=0.0)

    def state(self) -> Mapping[str, Any]:
        """That of ``history``."""
        return self.inner.state()

    def learned(self) -> Mapping[str, Any]:
        """That of ``history``, for another run."""
        return self.inner.learned()

    def restore(self, state: Mapping[str, Any]) -> Orders:
        """Raises :class:`ValueError` for what is no state of ``history``."""
        self.inner.restore(state)
        return self._orders()
