"""An online learner that chooses among experts, with a bounded regret against the best expert.

Exp3 (Auer, Cesa-Bianchi, Freund and Schapire 2002) learns from the reward of the expert that it chose. It can forget
(fixed share: Herbster and Warmuth 1998; Exp3.S), and then follows an expert that is best only for a while.
docs/explanation/choice.md derives the bound. The policy ``experts`` uses it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acep.errors import SnapshotError

__all__ = ["Exp3", "importance_weighted", "path_cost"]

Floats = NDArray[np.float64]


def importance_weighted(reward: float, probability: float) -> float:
    """Return reward / probability, an unbiased estimate of a reward that was seen with this probability."""
    if not 0 < probability <= 1:
        raise ValueError(f"what was seen had a probability above 0 and at most 1, not {probability}")
    return reward / probability


def path_cost(experts: int, rounds: int, switches: int, share: float) -> float:
    """Return -log of the least weight that fixed share gives a sequence of experts with this many switches.

    >>> path_cost(experts=4, rounds=100, switches=0, share=0.0) == math.log(4)
    True
    """
    if not 0 <= switches < max(rounds, 1):
        raise ValueError("switches happen between rounds")
    if switches and not share:
        return math.inf
    cost = math.log(experts) + (switches * math.log(experts / share) if switches else 0.0)
    return cost - (max(rounds, 1) - 1 - switches) * math.log1p(-share)


def _mix_weights(logs: Floats, share: float) -> tuple[float, ...]:
    """Return log weights normalised to sum 1, with ``share`` of the total spread evenly over all."""
    logs = logs - logs.max()
    logs = logs - np.log(np.exp(logs).sum())
    if share:
        logs = np.logaddexp(logs + np.log1p(-share), np.log(share / len(logs)))
    return tuple(logs.tolist())


@dataclass(frozen=True)
class Exp3:
    """Weights of experts where only the reward of the chosen one is seen. Rewards are from 0 to ``largest``.

    The same seed gives the same choices. A share ``explore`` of the choices is made uniformly at random. With ``share``
    above 0 it forgets. ``ValueError`` for settings that make no sense.

    >>> learner = Exp3.for_rounds(experts=3, rounds=2000, seed=1)
    >>> for _ in range(2000):
    ...     chosen = learner.choice
    ...     learner = learner.update(1.0 if chosen == 2 else 0.2)
    >>> int(np.argmax(learner.weights)), Exp3.from_data(learner.to_data()) == learner
    (2, True)
    """

    log_weights: tuple[float, ...]
    """Logarithms of weights that add up to 1; so the weight of a poor expert does not become 0."""
    explore: float
    share: float = 0.0
    largest: float = 1.0
    seed: int = 0
    round: int = 0

    def __post_init__(self) -> None:
        positive = 0 < self.explore < math.inf and 0 < self.largest < math.inf
        if not (self.log_weights and positive and 0 <= self.share < 1):
            raise ValueError("a learner has experts, a positive rate and largest reward, and a share from 0 to below 1")
        is_integral = isinstance(self.seed, int) and isinstance(self.round, int)
        if not (self.explore <= 1 and is_integral and 0 <= self.seed < 2**64 and 0 <= self.round < 2**63):
            raise ValueError("a share of 1 at most is explored; seed and round are not negative, and of 64 bits")
        total = math.fsum(map(math.exp, self.log_weights))
        if not all(-math.inf < log < 1e-6 for log in self.log_weights) or abs(total - 1) >= 1e-6:
            raise ValueError("weights add up to 1")

    @classmethod
    def start(cls, experts: int, explore: float, share: float = 0.0, largest: float = 1.0, seed: int = 0) -> Exp3:
        """Return a learner with equal weights."""
        return cls((-math.log(max(experts, 1)),) * experts, explore, share, largest, seed)

    @classmethod
    def for_rounds(cls, experts: int, rounds: int, switches: int = 0, largest: float = 1.0, seed: int = 0) -> Exp3:
        """Return a learner whose exploration and share minimise the bound for this many rounds and switches."""
        share = min(0.5, switches / (rounds - 1)) if switches else 0.0  # it costs such a path the least
        cost = max(path_cost(experts, rounds, switches, share), 1e-9)
        return cls.start(experts, min(1.0, math.sqrt(experts * cost / ((math.e - 1) * rounds))), share, largest, seed)

    @property
    def weights(self) -> Floats:
        """Return the probability of choosing each expert, float64[experts]; none is below explore / experts."""
        weights: Floats = np.exp(np.array(self.log_weights))
        return (1 - self.explore) * weights + self.explore / len(weights)

    @property
    def choice(self) -> int:
        """Return the expert of this round. Repeated calls return the same one."""
        # The draw depends only on the seed and the round, so no generator state has to be kept.
        draw = np.random.Generator(np.random.Philox(key=self.seed, counter=self.round)).random()
        return min(int(np.searchsorted(np.cumsum(self.weights), draw, side="right")), len(self.log_weights) - 1)

    def update(self, reward: float) -> Exp3:
        """Return the learner after a round in which its choice had this reward; ``ValueError`` if it is invalid."""
        if not 0 <= reward <= self.largest:
            raise ValueError(f"rewards are numbers from 0 to {self.largest}")
        choice, logs = self.choice, np.array(self.log_weights)
        estimate = importance_weighted(reward / self.largest, float(self.weights[choice]))
        logs[choice] += self.explore / len(logs) * estimate
        return replace(self, log_weights=_mix_weights(logs, self.share), round=self.round + 1)

    def regret_bound(self, rounds: int, switches: int = 0) -> float:
        """Return the bound on the mean regret, against any sequence fixed beforehand with this many switches."""
        experts = len(self.log_weights)
        cost = path_cost(experts, rounds, switches, self.share)
        return self.largest * ((math.e - 1) * self.explore * rounds + experts * cost / self.explore)

    def to_data(self) -> dict[str, object]:
        """Return plain data, for JSON."""
        settings = {"explore": self.explore, "share": self.share, "largest": self.largest}
        return settings | {"log_weights": list(self.log_weights), "seed": self.seed, "round": self.round}

    @classmethod
    def from_data(cls, data: Any) -> Exp3:
        """Read the learner of :meth:`to_data`; :class:`acep.errors.SnapshotError` for invalid data."""
        try:
            values = {name: data[name] for name in cls.__dataclass_fields__}
            return cls(**values | {"log_weights": tuple(values["log_weights"])})
        except (KeyError, OverflowError, TypeError, ValueError):
            raise SnapshotError("the learner is damaged: its content makes no sense", code="state_damaged") from None
