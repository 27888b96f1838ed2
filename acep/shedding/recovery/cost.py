"""Estimate the cost of recovering a match bundle, from the touches that similar bundles took and their new matches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RecoveryCost"]

Floats = npt.NDArray[np.float64]

EVENTS, MATCHES = 32, 8  # bins, by binary logarithm
FADE = 0.98  # factor of old sums with each new bundle
PRIOR = 1.0  # bundles with missing matches that are assumed at first
CUT_OFF = 2.0  # times the touches spent: assumed cost where they did not suffice
RELIABLE = 3.0  # bundles from which on a bin is relied on


@dataclass
class RecoveryCost:
    """Sums by the number of events to match and the number of matches found before: how many bundles were tried,
    the touches spent, and how many bundles had further matches; float64[3, EVENTS, MATCHES]."""

    sums: Floats = field(default_factory=lambda: np.zeros((3, EVENTS, MATCHES)))

    def cost(self, events: int, matches: int) -> float:
        """Return the touches likely to be needed for one bundle that has further matches: the mean of similar bundles,
        divided by the share of them that had more.

        >>> costs = RecoveryCost()
        >>> costs.learn(100, 1, 50, enough=True, found_more=False)
        >>> costs.cost(100, 1), costs.cost(1000, 1)
        (100.0, 800.0)
        """
        row, column = _bins(events, matches)
        tried, spent, gained = self.sums[:, row, column]
        if tried < RELIABLE:
            tried, spent, gained = self.sums[:, row].sum(axis=1)
        if tried < 1:
            tried, spent, gained = self.sums.sum(axis=(1, 2))
            if tried == 0:
                return 0.0
            sizes = self.sums[0].sum(axis=1) * 2.0 ** np.arange(EVENTS)
            spent *= tried * 2.0**row / float(sizes.sum())
        likely = (gained + PRIOR) / (tried + PRIOR)
        return float(spent / tried / likely)

    def learn(self, events: int, matches: int, spent: float, *, enough: bool, found_more: bool) -> None:
        """Add a bundle that was tried; ``enough``: it was recovered; ``found_more``: more matches than were known."""
        row, column = _bins(events, matches)
        self.sums[:, row, column] *= FADE
        self.sums[:, row, column] += (1.0, spent if enough else CUT_OFF * spent, float(found_more or not enough))

    def with_sums(self, sums: Any) -> RecoveryCost:
        """Return a copy with these sums. Raises :class:`ValueError` for invalid ones."""
        if sums.shape != self.sums.shape or sums.dtype != np.float64 or not (np.isfinite(sums) & (sums >= 0)).all():
            raise ValueError("what bundles cost")
        return RecoveryCost(sums)


def _bins(events: int, matches: int) -> tuple[int, int]:
    return min(events.bit_length(), EVENTS - 1), min(matches.bit_length(), MATCHES - 1)
