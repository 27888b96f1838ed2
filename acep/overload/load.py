"""Choose the share of the events that a micro-batch carries, from the seconds that earlier ones took (no Spark)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SENT", "Load", "Measured"]

SENT = "carried"
"""The name of the count of rows that went to the workers, among those of a micro-batch."""

MAX_REMEMBERED = 24  # micro-batches that are remembered
FORGET = 0.9  # the weight of a micro-batch relative to the next one
COLD = 2  # first micro-batches of a run, which are not used: Spark and its workers are just starting
# Prior of the shares of the time that are fixed, for reading, and for carrying.
PRIOR = (0.1, 0.15, 0.75)
BELIEF = 0.05  # weight of the prior relative to one micro-batch
SHED = 0.9  # share of the events below which a micro-batch tells what carrying costs
MIN_SHARE = 1 / 64  # least share of the events that is carried
MIN_SAVING = 0.1  # share of the time that shedding all events must save, or nothing is shed
ANCHORS = 6  # micro-batches with shed events that are remembered beyond the others: without one, costs cannot be told
SAME = 0.01  # relative difference below which two shares count as the same
NEAR = 0.05  # deviation from the target, relative to it, that is tolerated: a new share makes Spark compile anew
FEW = 8  # micro-batches whose median decides whether the workers keep the target
WIDE = 0.2  # excess of that median over the target, relative to it, above which they do not


@dataclass(frozen=True)
class Measured:
    """The cost of a micro-batch: of ``rows`` read, the queries can use ``needed``, and ``carried`` went to the workers.
    It took ``seconds``, including Spark's own work."""

    rows: int
    needed: int
    carried: int
    seconds: float


@dataclass(frozen=True)
class Load:
    """The ``last`` micro-batches, oldest first, and the number of micro-batches in this ``run``.

    The time of a micro-batch is modelled as ``fixed + read * rows + carry * carried``, fitted by least squares with
    forgetting; none of the three is negative.

    >>> load = Load()
    >>> for share in (1, 1, 1, 0.25, 0.3, 0.28):
    ...     load = load.add_batch(Measured(2000, 1000, int(1000 * share), 0.2 + 0.8 * share))
    >>> load.share(target=0.6, now=0.28)
    0.5055
    """

    run: int = 0
    last: tuple[Measured, ...] = ()
    took: tuple[float, ...] = ()  # seconds of the last ones, where the workers bound the time of matching

    def add_batch(self, measured: Measured) -> Load:
        """Remember a micro-batch."""
        if self.run < COLD or measured.rows == 0:
            return replace(self, run=self.run + 1)
        last = [*self.last, measured]
        if len(last) > MAX_REMEMBERED:
            shed_numbers = [number for number, old in enumerate(last) if old.carried < SHED * old.needed]
            other_numbers = [number for number, old in enumerate(last) if old.carried >= SHED * old.needed]
            del last[other_numbers[0] if other_numbers and len(shed_numbers) <= ANCHORS else 0]
        return replace(self, run=self.run + 1, last=tuple(last))

    def begin_run(self) -> Load:
        """Begin a run; its first micro-batches are not used."""
        return replace(self, run=0)

    def skip_next(self) -> Load:
        """Carry another share from now on. The next micro-batch is not used, because Spark compiles anew.

        The one after it is used in any case.

        >>> once = Load(run=9).skip_next().add_batch(Measured(10, 10, 5, 1.0))
        >>> once.last, len(once.skip_next().add_batch(Measured(10, 10, 5, 1.0)).last)
        ((), 1)
        """
        return replace(self, run=COLD - 1) if self.run > COLD else self

    def costs(self) -> tuple[float, float, float]:
        """Return the fixed seconds, the seconds per row read, and the seconds per row carried."""
        if not self.last:
            return (0.0, 0.0, 0.0)
        names = ("rows", "needed", "carried", "seconds")
        rows, needed, carried, seconds = (
            np.array([float(getattr(measured, name)) for measured in self.last]) for name in names
        )
        weights = np.sqrt(FORGET ** np.arange(len(seconds))[::-1])
        # In units of the prior, so that all three have the same scale.
        scale = seconds.mean() * np.array([PRIOR[0], PRIOR[1] / rows.mean(), PRIOR[2] / max(needed.mean(), 1)])
        design = np.stack([np.ones_like(rows), rows, carried], axis=1) * scale * weights[:, None]
        belief = np.sqrt(BELIEF) * seconds.mean() * np.diag(PRIOR)
        left = np.vstack([design, belief])
        right = np.concatenate([seconds * weights, belief.sum(axis=1)])
        coefficients = _solve_non_negative(left, right)
        fixed, read, carry = (coefficients * scale).tolist()
        return fixed, read, carry

    def share(self, target: float, now: float, min_share: float = MIN_SHARE) -> float:
        """Return the share of the needed events to carry so that a micro-batch takes ``target`` seconds: at least
        ``min_share``, and all of them if shedding saves too little, or if Spark alone takes longer than the target.

        ``now`` is the last share.
        """
        if not self.last:
            return now
        fixed_seconds, carrying = self._seconds()
        if fixed_seconds + carrying <= target or not _saves_enough(fixed_seconds, carrying):
            return 1.0
        # Once nothing is shed, the target must be within reach before something is: no back and forth.
        if self.is_out_of_reach(target * (1 + NEAR if now < 1 else 1)):
            return 1.0
        if now < 1 and abs(fixed_seconds + carrying * now - target) <= NEAR * target:
            return max(now, min_share)
        wanted_share = max((target - fixed_seconds) / carrying, MIN_SHARE, min_share)
        return now if abs(wanted_share - now) <= SAME * now else round(wanted_share, 4)

    def _certain_seconds(self) -> float:
        """Return the seconds that a micro-batch takes in any case: those of recent ones that have shed a good part of
        their events, less the most that carrying can have taken. 0 if there are none: costs are then but assumed."""
        longest = max(measured.seconds for measured in self.last)
        shed = [measured for measured in self.last if measured.carried < SHED * measured.needed][-3:]
        return median(old.seconds - old.carried / old.needed * longest for old in shed) if shed else 0.0

    def _seconds(self) -> tuple[float, float]:
        """Return the seconds of a micro-batch like the last one without carrying, and those for carrying all."""
        fixed, read, carry = self.costs()
        return fixed + read * self.last[-1].rows, carry * self.last[-1].needed

    def add_seconds(self, seconds: float) -> Load:
        """Remember how long a micro-batch took, where the workers bound the time of matching.

        >>> load = Load(run=COLD)
        >>> for _ in range(FEW):
        ...     load = load.add_seconds(seconds=1.5)
        >>> load.is_behind(1.0), load.is_behind(1.4)
        (True, False)
        """
        return self if self.run < COLD else replace(self, took=(*self.took, seconds)[-FEW:])

    def is_behind(self, target: float, min_share: float = MIN_SHARE) -> bool:
        """Return whether micro-batches take longer than ``target`` seconds although only a ``min_share`` is
        carried, although shedding saves too little, or although the workers shed, too."""
        if len(self.took) == FEW and median(self.took) > (1 + WIDE) * target:
            return True
        if not self.last:
            return False
        fixed_seconds, carrying = self._seconds()
        if fixed_seconds + carrying <= target:
            return False
        sheds_most = self.last[-1].carried <= (1 + NEAR) * min_share * self.last[-1].needed
        return (
            not _saves_enough(fixed_seconds, carrying)
            or self.is_out_of_reach(target)
            or (sheds_most and fixed_seconds + min_share * carrying > target)
        )

    def is_out_of_reach(self, target: float) -> bool:
        """Return whether micro-batches certainly take longer than ``target`` seconds, whatever is shed."""
        return bool(self.last) and min(self._certain_seconds(), self._seconds()[0]) > target

    def behind_reason(self, target: float) -> str:
        """Say what keeps micro-batches from the ``target``, as the end of a sentence on the time that one took."""
        if self.last:
            fixed_seconds, carrying = self._seconds()
            if self.is_out_of_reach(target):
                return f", of which Spark alone takes {fixed_seconds:.2g} s, so nothing is shed"
            if not _saves_enough(fixed_seconds, carrying):
                return ", of which shedding would save next to nothing, so nothing is shed"
        return " though no more may be shed"

    def dump(self) -> dict[str, Any]:
        """Return the measurements as JSON-like data."""
        last = [[measured.rows, measured.needed, measured.carried, measured.seconds] for measured in self.last]
        return {"run": self.run, "last": last, "took": list(self.took)}

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Load:
        """Read the data of :meth:`dump`. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError`."""
        # The first versions did not record `needed`.
        measurements = (figures if len(figures) == 4 else [figures[0], *figures] for figures in data["last"])
        last = tuple(
            Measured(int(rows), int(needed), int(carried), float(took)) for rows, needed, carried, took in measurements
        )
        if not all(
            measured.rows > 0 and min(measured.needed, measured.carried) >= 0 and 0 <= measured.seconds < 1e9
            for measured in last
        ):
            raise ValueError("measurements")
        took = tuple(map(float, data.get("took", ())))  # the first versions had none
        if len(took) > FEW or not all(0 <= seconds < 1e9 for seconds in took):
            raise ValueError("measurements")
        return cls(int(data["run"]), last, took)


def _saves_enough(fixed_seconds: float, carrying: float) -> bool:
    return carrying >= MIN_SAVING * (fixed_seconds + carrying)


def _solve_non_negative(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve non-negative least squares: try every subset of unknowns as the non-zero ones, and return the best fit.

    >>> _solve_non_negative(np.array([[1.0, 1.0], [1.0, 2.0]]), np.array([2.0, 1.0])).round(2)
    array([1.5, 0. ])
    """
    width = left.shape[1]
    best, best_error = np.zeros(width), float(right @ right)
    for size in range(1, width + 1):
        for columns in map(list, combinations(range(width), size)):
            solution = np.linalg.lstsq(left[:, columns], right, rcond=None)[0]
            residual = left[:, columns] @ solution - right
            if (solution >= 0).all() and float(residual @ residual) < best_error:
                best, best_error = np.zeros(width), float(residual @ residual)
                best[columns] = solution
    return best
