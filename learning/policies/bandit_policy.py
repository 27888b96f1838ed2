"""The policy ``experts``: several policies learn side by side, and a bandit with a regret bound chooses among them.

The bandit is :class:`acep.learning.policies.experts.Exp3` (docs/explanation/choice.md). The shedding table of the
chosen expert is used until enough is seen to judge it. The reward is the share of the match points in shadow-sampled
units that it found, reduced where it spent more than its allowance. All experts learn from every epoch, because
trajectories in shadow-sampled units are complete. The native core has one utility threshold for all experts. When
another expert takes over, its utility buckets are shifted by the difference to its own last threshold, so its work is
about right at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from acep.errors import SnapshotError
from acep.learning.policies.baselines import Rule
from acep.learning.policies.counting import CountingPolicy
from acep.learning.policies.experts import Exp3
from acep.learning.policies.history_policy import HistoryPolicy
from acep.learning.policies.schemes import SCHEMES
from acep.learning.policy import Epoch, Policy
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import HIGHEST, Bytes, SheddingTable
from acep.storage.plain_data import restored

__all__ = ["EXPERTS", "BanditPolicy", "ExpertScore"]

ROUNDS = 64  # the learner is tuned for this many
LEAST = 10  # match points in shadow-sampled units that it takes to judge an expert

EXPERTS: Mapping[str, Callable[[], Policy]] = {
    "history": HistoryPolicy,
    "hybrid": lambda: CountingPolicy("hybrid", SCHEMES["hybrid"]),
    "newest-per-state": lambda: Rule("newest-per-state"),
}
"""The experts by name. The first one sets the sampling rates and the logged terms."""


@dataclass(frozen=True)
class ExpertScore:
    """Success of a shedding table: ``kept`` of ``points`` in shadow-sampled units, work ``spent`` and ``allowed``."""

    points: int = 0
    kept: int = 0
    spent: int = 0
    allowed: float = 0.0

    def then(self, epoch: Epoch) -> ExpertScore:
        """Add an epoch, if it was subject to shedding."""
        if epoch.allowance is None or epoch.price <= 0:
            return self
        kept = epoch.log.kept
        allowed = self.allowed + epoch.allowance * epoch.events
        return ExpertScore(self.points + len(kept), self.kept + int(kept.sum()), self.spent + epoch.spent, allowed)

    @property
    def reward(self) -> float | None:
        """Return the reward, from 0 to 1, or ``None`` if too little was seen.

        >>> ExpertScore(20, 15, 200, 100.0).reward, ExpertScore(2, 1, 200, 100.0).reward
        (0.375, None)
        """
        if self.points < LEAST:
            return None
        return self.kept / self.points * min(1.0, self.allowed / max(self.spent, 1))


@dataclass
class BanditPolicy:
    """The policy ``experts``; ``made`` has the constructors of its experts by name."""

    made: Mapping[str, Callable[[], Policy]] = field(default_factory=lambda: EXPERTS)
    name: str = "experts"

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        """Begin all experts, with equal weights."""
        self.experts = {name: make() for name, make in self.made.items()}
        self.learner = Exp3.tuned(len(self.experts), ROUNDS, seed=seed % 2**64)
        self.prices: dict[str, float] = {}
        self.raised = 0
        self.seen = ExpertScore()
        return self._shedding_table({name: one.begin(context, seed) for name, one in self.experts.items()})

    def learn(self, epoch: Epoch) -> SheddingTable:
        """Let all experts learn, and judge the one in use once enough was seen."""
        self.seen = self.seen.then(epoch)
        found, names, before = self.seen.reward, list(self.experts), self.learner.choice
        if found is not None:
            self.seen = ExpertScore()
            self.prices[names[before]] = epoch.price - self.raised
            self.learner = self.learner.update(found)
            if self.learner.choice != before:
                self.raised = round(epoch.price - self.prices.get(names[self.learner.choice], epoch.price))
        return self._shedding_table({name: one.learn(epoch) for name, one in self.experts.items()})

    def _shedding_table(self, given: Mapping[str, SheddingTable]) -> SheddingTable:
        shedding_table = list(given.values())
        first, chosen = shedding_table[0], shedding_table[self.learner.choice]
        # The register terms of the first expert are logged whichever expert is in use.
        logged = tuple(tuple(replace(term, worth=term.worth[:0]) for term in state) for state in first.terms)
        chosen = chosen if chosen.terms else replace(chosen, terms=logged)
        chosen = replace(chosen, level=_raised(chosen.level, self.raised), admit=_raised(chosen.admit, self.raised))
        return chosen.watching(sample=first.sample, shadow=first.shadow)

    def state(self) -> Mapping[str, Any]:
        """Return the state of all experts and of the learner."""
        return self._state({name: one.state() for name, one in self.experts.items()})

    def learned(self) -> Mapping[str, Any]:
        """Return the state for another stream."""
        states = {name: getattr(one, "learned", one.state)() for name, one in self.experts.items()}
        return {**self._state(states), "prices": {}, "raised": 0, "seen": asdict(ExpertScore())}

    def _state(self, states: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
        own = {"seen": asdict(self.seen), "prices": self.prices, "raised": self.raised}
        return {"experts": dict(states), "learner": self.learner.to_data(), **own}

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Restore :meth:`state`. Raises :class:`ValueError` for other data."""
        try:
            states, learner = state["experts"], Exp3.from_data(state["learner"])
            prices, raised = {str(name): float(price) for name, price in state["prices"].items()}, int(state["raised"])
            seen = restored(ExpertScore(), state["seen"])
            if set(states) != set(self.experts) or len(learner.log_weights) != len(self.experts):
                raise ValueError("other experts")
            given = {name: one.restore(states[name]) for name, one in self.experts.items()}
        except (SnapshotError, AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"no state of this policy: {error}") from None
        self.learner, self.prices, self.raised, self.seen = learner, prices, raised, seen
        return self._shedding_table(given)


def _raised(levels: Bytes, by: int) -> Bytes:
    """Shift utility buckets; bucket 0 (no utility) stays 0."""
    return np.where(levels > 0, np.clip(levels.astype(np.int64) + by, 1, HIGHEST), 0).astype(np.uint8)
