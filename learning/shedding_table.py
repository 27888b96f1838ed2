"""The shedding table of a policy, by which the native core keeps or drops partial matches
(docs/explanation/best_effort.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.learning.policy_context import PolicyContext
from acep.learning.trajectories.match_vectors import Grid

__all__ = [
    "AGES",
    "BUCKETS",
    "HIGHEST",
    "STEPS",
    "SheddingTable",
    "Term",
    "TermKind",
    "ThresholdTrial",
    "Ties",
    "as_utility_buckets",
    "finite",
]

STEPS = 8  # utility buckets per octave
HIGHEST = 254  # the highest utility bucket that may be shed
AGES = 16  # bins of the number of later partial matches in a partition and state: 0, 1, 2 to 3, 4 to 7, ...
BUCKETS = 1024  # bins of a hash

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
ThresholdTrial = tuple[float, float, float]
"""An allowance (touches per event), the utility threshold reached under it, and the match bundles found per touch."""


class TermKind(IntEnum):
    """The number that a term computes from registers: one value, a ratio or difference of two, or a hash."""

    HELD = 0
    RATIO = 1
    DIFFERENCE = 2
    HASHED = 3
    PARTITION = 4
    TEXT = 5


class Ties(IntEnum):
    """The order among partial matches of equal utility: by start, or at random."""

    NEWEST = 0
    OLDEST = 1
    RANDOM = 2


@dataclass(frozen=True)
class Term:
    """A number computed from the registers in slots ``a`` and ``b`` of a new partial match, with the bounds of its
    bins. ``worth`` is what each bin adds to the utility bucket; its last entry is for a missing number. With an empty
    ``worth`` the number is only logged."""

    kind: TermKind
    a: int = 0
    b: int = 0
    floats: bool = False
    bounds: Floats = field(default_factory=lambda: np.zeros(0))
    worth: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def hashed(self) -> bool:
        """Return whether its bins are the ``BUCKETS`` of a hash."""
        return self.kind >= TermKind.HASHED

    @property
    def bins(self) -> int:
        """Return the number of bins, without the one for a missing number."""
        return BUCKETS if self.hashed else len(self.bounds) + 1

    def to_data(self) -> list[Any]:
        """Return plain data, without ``worth``."""
        return [int(self.kind), self.a, self.b, int(self.floats), self.bounds]

    @classmethod
    def from_data(cls, kind: Any, a: Any, b: Any, floats: Any, bounds: Any, worth: Any = ()) -> Term:
        """Read :meth:`to_data`. Raises :class:`ValueError` or :class:`TypeError` for other data."""
        if not isinstance(floats, bool | int):
            raise ValueError("a term")
        return cls(TermKind(int(kind)), int(a), int(b), bool(floats), finite(bounds), finite(worth))

    def bin(self, numbers: Floats) -> npt.NDArray[np.int64]:
        """Return the bins of numbers (NaN: missing).

        >>> Term(TermKind.HELD, bounds=np.array([1.0, 5.0])).bin(np.array([0.0, 1.0, 7.0, np.nan])).tolist()
        [0, 1, 2, 3]
        """
        is_present = ~np.isnan(numbers)
        filled = np.where(is_present, numbers, 0.0)
        bins = filled.astype(np.int64) if self.hashed else np.searchsorted(self.bounds, filled, side="right")
        return np.where(is_present, bins, self.bins).astype(np.int64)


@dataclass(frozen=True)
class SheddingTable:
    """A shedding table, which the native core applies until it gets another one.

    A utility bucket is ``STEPS`` times the binary logarithm of utility per cost. That of a partial match is the entry
    of its match vector (``level``, uint8 by vector of ``grid``; 0: no utility), plus what its terms add, plus
    ``later[state, bin]`` by the number of later partial matches in its partition and state, plus a random part of
    ``noise`` buckets. In a partition and state, best first, number r stays if its bucket is at least the utility
    threshold plus ``decay[state]`` times r. The threshold follows the allowance. An event is admitted if the bucket of
    its best class, ``admit[class, place]``, is at least the threshold; its place is the position in the window since
    the oldest start in its partition (an empty array: admit all). ``clears``: a match point ends all partial matches of
    its partition that began before it. ``sample``: the share of starts whose trajectories are logged. ``shadow``: the
    share of sampling units that are shadow-sampled (a unit is eight windows of one partition). ``prices``: results of
    this table in trial runs, by rising allowance, which give the first threshold.
    """

    grid: Grid
    level: Bytes
    decay: Floats
    later: npt.NDArray[np.int8]
    terms: tuple[tuple[Term, ...], ...] = ()
    admit: Bytes = field(default_factory=lambda: np.zeros((0, 1), np.uint8))
    ties: Ties = Ties.NEWEST
    noise: int = 0
    clears: bool = False
    sample: float = 0.0
    shadow: float = 0.0
    prices: tuple[ThresholdTrial, ...] = ()

    @staticmethod
    def flat(context: PolicyContext, *, grid: Grid | None = None, level: int = HIGHEST // 2) -> SheddingTable:
        """Return a table with the same utility bucket for all partial matches.

        >>> context = PolicyContext(("", "a"), 1, 1, 9, False, ((), ()), (), (((0, 1),), ()), 1, True, "")
        >>> set(SheddingTable.flat(context, level=7).level.tolist())
        {7}
        """
        grid = grid or context.grid(windows=1, waits=1)
        later = np.zeros((context.states, AGES), np.int8)
        return SheddingTable(grid, np.full(grid.vectors, level, np.uint8), np.zeros(context.states), later)

    def watching(self, *, sample: float, shadow: float) -> SheddingTable:
        """Return the same table with other shares of logged starts and shadow-sampled units."""
        return replace(self, sample=float(min(max(sample, 0), 1)), shadow=float(min(max(shadow, 0), 1)))

    def price(self, rate: float) -> float:
        """Return the first utility threshold for an allowance of ``rate`` touches per event; 0 without ``prices``.

        >>> context = PolicyContext(("", "a"), 1, 1, 9, False, ((), ()), (), (((0, 1),), ()), 1, True, "")
        >>> replace(SheddingTable.flat(context), prices=((1.0, 100.0, 0.5), (4.0, 60.0, 0.2))).price(2.0)
        80.0
        """
        return self._interpolate_trials(rate, 1)

    def found(self, rate: float) -> float:
        """Return the expected number of match bundles per touch at this allowance; 0 without ``prices``."""
        return self._interpolate_trials(rate, 2)

    def _interpolate_trials(self, rate: float, column: int) -> float:
        if not self.prices:
            return 0.0
        rates, *columns = (np.array(numbers) for numbers in zip(*self.prices, strict=True))
        return float(np.interp(np.log2(max(rate, 1e-9)), np.log2(rates), columns[column - 1]))

    def to_arrays(self) -> dict[str, Any]:
        """Return plain data, without the grid and the sampling shares."""
        terms = [[[*term.to_data(), np.asarray(term.worth, np.float64)] for term in state] for state in self.terms]
        return {
            "level": self.level,
            "decay": self.decay,
            "later": self.later,
            "terms": terms,
            "admit": self.admit,
            "ties": int(self.ties),
            "noise": self.noise,
            "clears": self.clears,
            "prices": [list(trial) for trial in self.prices],
        }

    @classmethod
    def from_arrays(cls, grid: Grid, data: Mapping[str, Any]) -> SheddingTable:
        """Read the table of :meth:`to_arrays`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for
        other data."""
        terms = tuple(tuple(Term.from_data(*term_data) for term_data in state) for state in data["terms"])
        level, later = np.asarray(data["level"]), np.asarray(data["later"])
        decay, admit, noise = finite(data["decay"]), np.asarray(data["admit"]), int(data["noise"])
        if level.shape != (grid.vectors,) or level.dtype != np.uint8 or later.shape != (grid.states, AGES):
            raise ValueError("orders of another grid")
        good = later.dtype == np.int8 and len(terms) in (0, grid.states) and 0 <= noise <= HIGHEST
        good &= decay.shape == (grid.states,) and bool((decay >= 0).all())
        good &= admit.ndim == 2 and admit.dtype == np.uint8 and isinstance(data["clears"], bool)
        if not good:
            raise ValueError("orders")
        trials = tuple((float(rate), float(threshold), float(points)) for rate, threshold, points in data["prices"])
        numbers = np.array(trials, np.float64).reshape(-1, 3)
        rates, points = numbers[:, 0], numbers[:, 2]
        if not (
            np.isfinite(numbers).all() and (rates > 0).all() and (np.diff(rates) > 0).all() and (points >= 0).all()
        ):
            raise ValueError("prices")
        ties = Ties(int(data["ties"]))
        return cls(grid, level, decay, later, terms, admit, ties, noise, data["clears"], prices=trials)

    def for_native_core(self, context: PolicyContext, rate: float | None = None) -> dict[str, Any]:
        """Return the table in the form of the native core; ``rate``: the allowance in touches per event."""
        return {
            "price": 0.0 if rate is None else self.price(rate),
            **{name: getattr(self.grid, name) for name in ("errors", "windows", "waits", "features")},
            "error_step": self.grid.step,
            "level": np.ascontiguousarray(self.level, np.uint8),
            "later": np.ascontiguousarray(self.later, np.int8).ravel(),
            "decay": np.ascontiguousarray(self.decay, np.float64),
            "key_texts": context.text_keys,
            "terms": [
                [
                    (int(t.kind), t.a, t.b, t.floats, t.floats, t.bounds, np.ascontiguousarray(t.worth, np.float32))
                    for t in state
                ]
                for state in self.terms
            ],
            "places": self.admit.shape[1],
            "admit": np.ascontiguousarray(self.admit, np.uint8).ravel(),
            "ties": int(self.ties),
            "noise": self.noise,
            "clears": self.clears,
            "sample": round(self.sample * 2**32),
            "shadow": round(self.shadow * 2**32),
        }


def finite(values: Any) -> Floats:
    """Return numbers as an array. Raises :class:`ValueError` if one is not finite."""
    numbers = np.asarray(values, np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("numbers that are none")
    return numbers


def as_utility_buckets(worth: Floats, *, top: int = 200, best: float | None = None) -> Bytes:
    """Convert utilities per cost to utility buckets. The best utility (or ``best``) gets bucket ``top``, zero gets 0,
    and very small ones get 1.

    >>> as_utility_buckets(np.array([1.0, 0.5, 0.0, 1e-30])).tolist()
    [200, 192, 0, 1]
    """
    best = float(worth.max(initial=0.0)) if best is None else best
    if best <= 0:
        return np.full(worth.shape, 1, np.uint8)
    with np.errstate(divide="ignore"):
        levels = np.round(STEPS * np.log2(worth / best)) + top
    return np.where(worth > 0, np.clip(levels, 1, HIGHEST), 0).astype(np.uint8)
