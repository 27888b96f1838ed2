"""Online learners that weight experts, with a bounded regret against the best expert.

Hedge (Freund and Schapire 1997) learns from the rewards of all experts; Exp3 (Auer, Cesa-Bianchi, Freund and Schapire
2002) learns from that of the one it chose. With ``share`` above 0 both forget (fixed share: Herbster and Warmuth 1998;
Exp3.S) and follow an expert that is best only for a while. docs/explanation/choice.md derives the bounds. States are
plain data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from acep.errors import SnapshotError

__all__ = ["Exp3", "Hedge", "importance_weighted", "path_cost"]

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


def _mixed(logs: Floats, share: float) -> tuple[float, ...]:
    """Return log weights normalised to sum 1, with ``share`` of the total spread evenly over all."""
    logs = logs - logs.max()
    logs = logs - np.log(np.exp(logs).sum())
    if share:
        logs = np.logaddexp(logs + np.log1p(-share), np.log(share / len(logs)))
    return tuple(logs.tolist())


def _drift(rounds: int, switches: int) -> float:
    """Return the share with the least cost for a path with this many switches, at most 0.5."""
    return min(0.5, switches / (rounds - 1)) if switches else 0.0


def _check(experts: int, rate: float, share: float, largest: float) -> None:
    if experts < 1 or not (0 < rate < math.inf and 0 <= share < 1 and 0 < largest < math.inf):
        raise ValueError("a learner has experts, a positive rate and largest reward, and a share from 0 to below 1")


def _rewards(found: Floats, shape: tuple[int, ...], largest: float) -> Floats:
    found = np.asarray(found, dtype=np.float64)
    if found.shape != shape or not np.all((found >= 0) & (found <= largest)):
        raise ValueError(f"rewards are {shape} numbers from 0 to {largest}")
    return found


@dataclass(frozen=True)
class Hedge:
    """Weights of experts where the rewards of all are seen. Rewards are from 0 to ``largest``.

    >>> hedge = Hedge.tuned(experts=2, rounds=100)
    >>> for _ in range(100):
    ...     hedge = hedge.update(np.array([1.0, 0.0]))
    >>> hedge.weights.round(6).tolist(), Hedge.from_data(hedge.to_data()) == hedge
    ([1.0, 0.0], True)
    """

    log_weights: tuple[float, ...]
    """Logarithms of weights that add up to 1; so the weight of a poor expert does not become 0."""
    rate: float
    share: float = 0.0
    largest: float = 1.0

    def __post_init__(self) -> None:
        _check(len(self.log_weights), self.rate, self.share, self.largest)

    @classmethod
    def start(cls, experts: int, rate: float, share: float = 0.0, largest: float = 1.0) -> Hedge:
        """Return a learner with equal weights; ``ValueError`` for invalid settings."""
        _check(experts, rate, share, largest)
        return cls((-math.log(experts),) * experts, rate, share, largest)

    @classmethod
    def tuned(cls, experts: int, rounds: int, switches: int = 0, largest: float = 1.0) -> Hedge:
        """Return a learner with the rate and share that minimise the bound for this many rounds and switches."""
        share = _drift(rounds, switches)
        cost = max(path_cost(experts, rounds, switches, share), 1e-9)
        return cls.start(experts, math.sqrt(8 * cost / rounds), share, largest)

    @property
    def weights(self) -> Floats:
        """Return the experts' weights, float64[experts], which add up to 1."""
        weights: Floats = np.exp(np.array(self.log_weights))
        return weights

    def update(self, rewards: Floats) -> Hedge:
        """Return the learner after a round with these rewards (float64[experts]); ``ValueError`` if invalid."""
        found = _rewards(rewards, (len(self.log_weights),), self.largest)
        logs = np.array(self.log_weights) + self.rate / self.largest * found
        return replace(self, log_weights=_mixed(logs, self.share))

    def bound(self, rounds: int, switches: int = 0) -> float:
        """Return the regret bound over all rounds, against any sequence of experts with this many switches."""
        cost = path_cost(len(self.log_weights), rounds, switches, self.share)
        return self.largest * (cost / self.rate + self.rate * rounds / 8)

    def to_data(self) -> dict[str, object]:
        """Return plain data, for JSON."""
        return {"log_weights": list(self.log_weights), "rate": self.rate, "share": self.share, "largest": self.largest}

    @classmethod
    def from_data(cls, data: object) -> Hedge:
        """Read the learner of :meth:`to_data`; :class:`acep.errors.SnapshotError` for invalid data."""
        match data:
            case {"log_weights": list(logs), "rate": float(rate), "share": float(share), "largest": float(largest)}:
                return cls(_logs(logs, rate, share, largest), rate, share, largest)
        raise SnapshotError("the learner is damaged: its content makes no sense")


@dataclass(frozen=True)
class Exp3:
    """Weights of experts where only the reward of the chosen one is seen. Rewards are from 0 to ``largest``.

    The same seed gives the same choices. A share ``explore`` of the choices is made uniformly at random.

    >>> learner = Exp3.tuned(experts=3, rounds=2000, seed=1)
    >>> for _ in range(2000):
    ...     chosen = learner.choice
    ...     learner = learner.update(1.0 if chosen == 2 else 0.2)
    >>> int(np.argmax(learner.weights)), Exp3.from_data(learner.to_data()) == learner
    (2, True)
    """

    log_weights: tuple[float, ...]
    explore: float
    share: float = 0.0
    largest: float = 1.0
    seed: int = 0
    round: int = 0

    def __post_init__(self) -> None:
        _check(len(self.log_weights), self.explore, self.share, self.largest)
        if not (self.explore <= 1 and 0 <= self.seed < 2**64 and 0 <= self.round < 2**63):
            raise ValueError("a share of 1 at most is explored; seed and round are not negative, and of 64 bits")

    @classmethod
    def start(cls, experts: int, explore: float, share: float = 0.0, largest: float = 1.0, seed: int = 0) -> Exp3:
        """Return a learner with equal weights; ``ValueError`` for invalid settings."""
        _check(experts, explore, share, largest)
        return cls((-math.log(experts),) * experts, explore, share, largest, seed)

    @classmethod
    def tuned(cls, experts: int, rounds: int, switches: int = 0, largest: float = 1.0, seed: int = 0) -> Exp3:
        """Return a learner whose exploration and share minimise the bound for this many rounds and switches."""
        share = _drift(rounds, switches)
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
        (found,) = _rewards(np.array([reward]), (1,), self.largest)
        chosen, experts = self.choice, len(self.log_weights)
        logs = np.array(self.log_weights)
        estimate = importance_weighted(float(found) / self.largest, float(self.weights[chosen]))
        logs[chosen] += self.explore / experts * estimate
        return replace(self, log_weights=_mixed(logs, self.share), round=self.round + 1)

    def bound(self, rounds: int, switches: int = 0) -> float:
        """Return the bound on the mean regret, against any sequence fixed beforehand with this many switches."""
        experts = len(self.log_weights)
        cost = path_cost(experts, rounds, switches, self.share)
        return self.largest * ((math.e - 1) * self.explore * rounds + experts * cost / self.explore)

    def to_data(self) -> dict[str, object]:
        """Return plain data, for JSON."""
        own = {"explore": self.explore, "share": self.share, "largest": self.largest}
        return own | {"log_weights": list(self.log_weights), "seed": self.seed, "round": self.round}

    @classmethod
    def from_data(cls, data: object) -> Exp3:
        """Read the learner of :meth:`to_data`; :class:`acep.errors.SnapshotError` for invalid data."""
        match data:
            case {
                "log_weights": list(logs),
                "explore": float(explore),
                "share": float(share),
                "largest": float(largest),
                "seed": int(seed),
                "round": int(round_),
            } if explore <= 1 and 0 <= seed < 2**64 and 0 <= round_ < 2**63:
                return cls(_logs(logs, explore, share, largest), explore, share, largest, seed, round_)
        raise SnapshotError("the learner is damaged: its content makes no sense")


def _logs(logs: list[object], rate: float, share: float, largest: float) -> tuple[float, ...]:
    """Return the log weights of a state, after checking them and the settings."""
    try:
        _check(len(logs), rate, share, largest)
        found = tuple(log for log in logs if isinstance(log, float) and -math.inf < log < 1e-6)
        if len(found) == len(logs) and abs(math.fsum(map(math.exp, found)) - 1) < 1e-6:
            return found
    except ValueError:
        pass
    raise SnapshotError("the learner is damaged: its content makes no sense")
