"""Choose the share of the events that a micro-batch carries, from what earlier ones took: plain data, no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Load", "Measured"]

MOST = 24  # micro-batches that are remembered
FORGET = 0.9  # the weight of one beside the next
COLD = 2  # micro-batches of a run that tell nothing: Spark and its workers are just starting
# What is believed before anything else is measured: parts of the time that are fixed, for reading, for carrying.
PRIOR = (0.1, 0.15, 0.75)
BELIEF = 0.05  # weight of that beside one micro-batch
LEAST = 1 / 64  # of the events that are carried, where there is any time
WORTH = 0.1  # of the time, what shedding all must save to be done at all
SAME = 0.01  # a share that differs by less is the same
NEAR = 0.05  # of the target, by which it may be missed before the share is changed: Spark then compiles anew
FEW = 8  # micro-batches whose median tells whether the workers keep their time
WIDE = 0.2  # of the target, by which that median misses it if they do not


@dataclass(frozen=True)
class Measured:
    """A micro-batch: ``rows`` read, of which the queries can use ``needed`` and ``carried`` went to the workers, in
    ``seconds``, Spark's own work included."""

    rows: int
    needed: int
    carried: int
    seconds: float


@dataclass(frozen=True)
class Load:
    """The last micro-batches, oldest first, and how many of this ``run`` there were.

    The time of a micro-batch is taken for ``fixed + read * rows + carry * carried``: least squares with forgetting,
    none of the three negative.

    >>> load = Load()
    >>> for share in (1, 1, 1, 0.25, 0.3, 0.28):
    ...     load = load.after(Measured(2000, 1000, int(1000 * share), 0.2 + 0.8 * share))
    >>> load.share(target=0.6, now=0.28)
    0.5055
    """

    run: int = 0
    last: tuple[Measured, ...] = ()
    took: tuple[float, ...] = ()  # seconds of the last few micro-batches, where the workers keep the time of matching

    def after(self, one: Measured) -> Load:
        """Remember a micro-batch."""
        if self.run < COLD or one.rows == 0:
            return replace(self, run=self.run + 1)
        return replace(self, run=self.run + 1, last=(*self.last, one)[-MOST:])

    def restarted(self) -> Load:
        """Begin a run: its first micro-batches tell nothing."""
        return replace(self, run=0)

    def changed(self) -> Load:
        """Carry another share from now on: the next micro-batch tells nothing, as Spark compiles anew.

        The one after that does, whatever happens.

        >>> once = Load(run=9).changed().after(Measured(10, 10, 5, 1.0))
        >>> once.last, len(once.changed().after(Measured(10, 10, 5, 1.0)).last)
        ((), 1)
        """
        return replace(self, run=COLD - 1) if self.run > COLD else self

    def costs(self) -> tuple[float, float, float]:
        """Give the seconds that are fixed, and those for each row that is read, and that is carried."""
        if not self.last:
            return (0.0, 0.0, 0.0)
        names = ("rows", "needed", "carried", "seconds")
        rows, needed, carried, seconds = (np.array([float(getattr(one, name)) for one in self.last]) for name in names)
        weights = np.sqrt(FORGET ** np.arange(len(seconds))[::-1])
        # In units of what is believed, so that all three count alike.
        scale = seconds.mean() * np.array([PRIOR[0], PRIOR[1] / rows.mean(), PRIOR[2] / max(needed.mean(), 1)])
        known = np.stack([np.ones_like(rows), rows, carried], axis=1) * scale * weights[:, None]
        belief = np.sqrt(BELIEF) * seconds.mean() * np.diag(PRIOR)
        left = np.vstack([known, belief])
        right = np.concatenate([seconds * weights, belief.sum(axis=1)])
        found = _not_negative(left, right)
        fixed, read, carry = (found * scale).tolist()
        return fixed, read, carry

    def share(self, target: float, now: float) -> float:
        """Give the share of the needed events to carry so that a micro-batch takes ``target`` seconds.

        ``now`` is the last share.
        """
        if not self.last:
            return now
        fixed, read, carry = self.costs()
        last = self.last[-1]
        floor, every = fixed + read * last.rows, carry * last.needed
        if floor + every <= target or every < WORTH * (floor + every):
            return 1.0
        if now < 1 and abs(floor + every * now - target) <= NEAR * target:
            return now
        wanted = max((target - floor) / every, LEAST)
        return now if abs(wanted - now) <= SAME * now else round(wanted, 4)

    def paced(self, seconds: float) -> Load:
        """Remember how long a micro-batch took, where the workers keep the time of matching.

        >>> load = Load(run=COLD)
        >>> for _ in range(FEW):
        ...     load = load.paced(seconds=1.5)
        >>> load.behind(1.0), load.behind(1.4)
        (True, False)
        """
        return self if self.run < COLD else replace(self, took=(*self.took, seconds)[-FEW:])

    def behind(self, target: float) -> bool:
        """Tell whether a micro-batch takes longer than ``target`` seconds though next to nothing is carried, though
        shedding saves next to nothing, or though the workers shed, too."""
        if len(self.took) == FEW and median(self.took) > (1 + WIDE) * target:
            return True
        if not self.last:
            return False
        fixed, read, carry = self.costs()
        last = self.last[-1]
        floor, every = fixed + read * last.rows, carry * last.needed
        return floor + every > target and (floor + LEAST * every > target or every < WORTH * (floor + every))

    def dump(self) -> dict[str, Any]:
        """As JSON-like data."""
        last = [[one.rows, one.needed, one.carried, one.seconds] for one in self.last]
        return {"run": self.run, "last": last, "took": list(self.took)}

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Load:
        """Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for what is none."""
        # The first versions did not tell what was needed.
        every = (one if len(one) == 4 else [one[0], *one] for one in data["last"])
        last = tuple(Measured(int(rows), int(needed), int(went), float(took)) for rows, needed, went, took in every)
        if not all(one.rows > 0 and min(one.needed, one.carried) >= 0 and 0 <= one.seconds < 1e9 for one in last):
            raise ValueError("measurements")
        took = tuple(map(float, data.get("took", ())))  # the first versions had none
        if len(took) > FEW or not all(0 <= one < 1e9 for one in took):
            raise ValueError("measurements")
        return cls(int(data["run"]), last, took)


def _not_negative(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve least squares with no negative unknown: of all choices of unknowns that are 0, the best that is allowed.

    >>> _not_negative(np.array([[1.0, 1.0], [1.0, 2.0]]), np.array([2.0, 1.0])).round(2)
    array([1.5, 0. ])
    """
    width = left.shape[1]
    best, least = np.zeros(width), float(right @ right)
    for size in range(1, width + 1):
        for some in map(list, combinations(range(width), size)):
            found = np.linalg.lstsq(left[:, some], right, rcond=None)[0]
            rest = left[:, some] @ found - right
            if (found >= 0).all() and float(rest @ rest) < least:
                best, least = np.zeros(width), float(rest @ rest)
                best[some] = found
    return best
