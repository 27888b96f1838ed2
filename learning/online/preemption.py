"""Choose partial matches online under a cap on their number: preemptive submodular maximisation.

This is the online algorithm with the proved ratio. No module of the product imports it yet.

A new partial match replaces the kept one of least recorded gain if its own gain is at least twice as large. A gain is
recorded once, on arrival, on top of all that is kept then. For a fixed monotone submodular f the result has at least
a quarter of the best utility (Chakrabarti and Kale, IPCO 2014; Buchbinder, Feldman and Schwartz, SODA 2015).
docs/explanation/choice.md has the proof, and shows that the bound is tight for this rule.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["OnlineCoverage", "Preemption"]

Floats = NDArray[np.float64]


class Preemption:
    """The replacement rule alone: places with recorded gains. The caller computes each gain.

    >>> rule = Preemption(cap=2)
    >>> [rule.offer(gain) for gain in (3.0, 1.0, 1.9, 2.0, 3.9)]
    [0, 1, None, 1, None]
    >>> rule.recorded.tolist()
    [3.0, 2.0]
    """

    def __init__(self, cap: int, factor: float = 2.0) -> None:
        if cap < 1 or not factor > 1:
            raise ValueError("at least one node is kept, and a newcomer must gain more than the node it replaces")
        self.factor = factor
        self.recorded: Floats = np.full(cap, np.nan)
        """The recorded gain in each place; NaN: a free place."""
        self._age = np.zeros(cap, dtype=np.int64)
        self._offers = 0

    def offer(self, gain: float) -> int | None:
        """Return the place that a new partial match of this gain takes, or ``None`` if it is not kept.

        Among equal recorded gains the oldest is replaced. ``ValueError`` for a gain that is negative or not finite.
        """
        if not (gain >= 0 and np.isfinite(gain)):
            raise ValueError(f"a gain is a number from 0 up, not {gain}")
        empty = np.isnan(self.recorded)
        if empty.any():
            place = int(np.argmax(empty))
        else:
            place = int(np.lexsort((self._age, self.recorded))[0])
            if gain < self.factor * self.recorded[place] or not gain:
                return None
        self._offers += 1
        self.recorded[place], self._age[place] = gain, self._offers
        return place

    def leave(self, place: int) -> None:
        """Free the place of a partial match that ended. (The bound of a quarter holds only for those that stay.)"""
        self.recorded[place] = np.nan


class OnlineCoverage:
    """The rule for coverage (:mod:`acep.learning.online.coverage`); a partial match is a row of probabilities by
    bundle.

    >>> choice = OnlineCoverage(np.array([0.5, 0.5]), cap=1)
    >>> choice.offer(np.array([0.4, 0.0])), choice.offer(np.array([0.5, 0.0])), choice.offer(np.array([0.0, 0.8]))
    (0, None, 0)
    >>> choice.value
    0.4
    """

    def __init__(self, share: Floats, cap: int, factor: float = 2.0) -> None:
        self.rule = Preemption(cap, factor)
        self._share = np.asarray(share, dtype=np.float64)
        if self._share.ndim != 1 or not np.all((self._share >= 0) & np.isfinite(self._share)):
            raise ValueError("shares are numbers from 0 up, one for each bundle")
        self._rows: Floats = np.zeros((cap, len(self._share)))
        self._missed = np.ones(len(self._share))

    @property
    def value(self) -> float:
        """Return the utility of those kept."""
        return float(self._share @ (1 - self._missed))

    def gain(self, row: Floats) -> float:
        """Return what a row adds to the utility of those kept."""
        return float((self._share * self._missed) @ row)

    def offer(self, row: Floats) -> int | None:
        """Return the place that a row (float64[B]) takes, or ``None``; ``ValueError`` for an invalid row."""
        row = np.asarray(row, dtype=np.float64)
        if row.shape != self._share.shape or not np.all((row >= 0) & (row <= 1)):
            raise ValueError("a node has a probability from 0 to 1 for each bundle")
        place = self.rule.offer(self.gain(row))
        if place is not None:
            self._put(place, row)
        return place

    def leave(self, place: int) -> None:
        """Remove a partial match that ended."""
        self.rule.leave(place)
        self._put(place, np.zeros_like(self._share))

    def _put(self, place: int, row: Floats) -> None:
        self._rows[place] = row
        # Computed again, since division would fail where a removed row had probability 1.
        self._missed = np.prod(1 - self._rows, axis=0)
