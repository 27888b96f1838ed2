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
from dataclasses import astuple, dataclass, field, fields, replace
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
from acep.storage.plain_data import restore_numbers

__all__ = ["EXPERTS", "BanditPolicy", "ExpertScore"]

ROUNDS = 64  # the learner is tuned for this many
MIN_POINTS = 10  # match points in shadow-sampled units that it takes to judge an expert
STORED = ("points", "kept", "spent", "allowed")  # names of the fields of a score in stored state

EXPERTS: Mapping[str, Callable[[], Policy]] = {
    "history": HistoryPolicy,
    "hybrid": lambda: CountingPolicy("hybrid", SCHEMES["hybrid"]),
    "newest-per-state": lambda: Rule("newest-per-state"),
}
"""The experts by name. The first one sets the sampling rates and the logged terms."""


@dataclass(frozen=True)
class ExpertScore:
    """Success of a shedding table: ``found_points`` of ``points`` in shadow-sampled units, work ``spent`` and
    ``allowed``."""

    points: int = 0
    found_points: int = 0
    spent: int = 0
    allowed: float = 0.0

    def to_data(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return dict(zip(STORED, astuple(self), strict=True))

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ExpertScore:
        """Restore the fields. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for invalid data."""
        names = [attribute.name for attribute in fields(cls)]
        return restore_numbers(cls(), {name: data[stored] for name, stored in zip(names, STORED, strict=True)})

    def add_epoch(self, epoch: Epoch) -> ExpertScore:
        """Add an epoch, if it was subject to shedding."""
        if epoch.allowance is None or epoch.price <= 0:
            return self
        is_found = epoch.log.kept
        points, found_points = self.points + len(is_found), self.found_points + int(is_found.sum())
        allowed = self.allowed + epoch.allowance * epoch.events
        return ExpertScore(points, found_points, self.spent + epoch.spent, allowed)

    @property
    def reward(self) -> float | None:
        """Return the reward, from 0 to 1, or ``None`` if too little was seen.

        >>> ExpertScore(20, 15, 200, 100.0).reward, ExpertScore(2, 1, 200, 100.0).reward
        (0.375, None)
        """
        if self.points < MIN_POINTS:
            return None
        return self.found_points / self.points * min(1.0, self.allowed / max(self.spent, 1))


@dataclass
class BanditPolicy:
    """The policy ``experts``; ``makers`` has the constructors of its experts by name."""

    makers: Mapping[str, Callable[[], Policy]] = field(default_factory=lambda: EXPERTS)
    name: str = "experts"

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        """Begin all experts, with equal weights."""
        self.experts = {name: make() for name, make in self.makers.items()}
        self.learner = Exp3.for_rounds(len(self.experts), ROUNDS, seed=seed % 2**64)
        self.thresholds: dict[str, float] = {}
        self.raised = 0
        self.score = ExpertScore()
        return self._shedding_table({name: expert.begin(context, seed) for name, expert in self.experts.items()})

    def learn(self, epoch: Epoch) -> SheddingTable:
        """Let all experts learn, and judge the one in use once enough was seen."""
        self.score = self.score.add_epoch(epoch)
        reward, names, choice = self.score.reward, list(self.experts), self.learner.choice
        if reward is not None:
            self.score = ExpertScore()
            self.thresholds[names[choice]] = epoch.price - self.raised
            self.learner = self.learner.update(reward)
            if self.learner.choice != choice:
                self.raised = round(epoch.price - self.thresholds.get(names[self.learner.choice], epoch.price))
        return self._shedding_table({name: expert.learn(epoch) for name, expert in self.experts.items()})

    def _shedding_table(self, tables: Mapping[str, SheddingTable]) -> SheddingTable:
        shedding_table = list(tables.values())
        first, table = shedding_table[0], shedding_table[self.learner.choice]
        # The register terms of the first expert are logged whichever expert is in use.
        logged = tuple(tuple(replace(term, worth=term.worth[:0]) for term in state) for state in first.terms)
        table = table if table.terms else replace(table, terms=logged)
        table = replace(
            table, level=_raise_buckets(table.level, self.raised), admit=_raise_buckets(table.admit, self.raised)
        )
        return table.watching(sample=first.sample, shadow=first.shadow)

    def state(self) -> Mapping[str, Any]:
        """Return the state of all experts and of the learner."""
        return self._state({name: expert.state() for name, expert in self.experts.items()})

    def learned(self) -> Mapping[str, Any]:
        """Return the state for another stream."""
        states = {name: getattr(expert, "learned", expert.state)() for name, expert in self.experts.items()}
        return {**self._state(states), "prices": {}, "raised": 0, "seen": ExpertScore().to_data()}

    def _state(self, states: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
        settings = {"seen": self.score.to_data(), "prices": self.thresholds, "raised": self.raised}
        return {"experts": dict(states), "learner": self.learner.to_data(), **settings}

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Restore :meth:`state`. Raises :class:`ValueError` for other data."""
        try:
            states, learner = state["experts"], Exp3.from_data(state["learner"])
            thresholds, raised = (
                {str(name): float(threshold) for name, threshold in state["prices"].items()},
                int(state["raised"]),
            )
            score = ExpertScore.from_data(state["seen"])
            if set(states) != set(self.experts) or len(learner.log_weights) != len(self.experts):
                raise ValueError("other experts")
            tables = {name: expert.restore(states[name]) for name, expert in self.experts.items()}
        except (SnapshotError, AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"no state of this policy: {error}") from None
        self.learner, self.thresholds, self.raised, self.score = learner, thresholds, raised, score
        return self._shedding_table(tables)


def _raise_buckets(levels: Bytes, shift: int) -> Bytes:
    """Shift utility buckets; bucket 0 (no utility) stays 0."""
    return np.where(levels > 0, np.clip(levels.astype(np.int64) + shift, 1, HIGHEST), 0).astype(np.uint8)
