"""Detect drift: test whether the learned utilities have become wrong, so that next to nothing is found.

A policy that keeps the best partial matches of the past sees little else, and its shadow samples (a fiftieth of the
budget) show drift only slowly. The match points found per touch show it at once (:class:`YieldMonitor`), but also fall
in a lull. So after such a fall many shadow samples are taken. If a far smaller share of their match points is found
than before, it is drift (:class:`Proof`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import numpy as np

from acep.learning.trajectories.match_vectors import Bools
from acep.storage.plain_data import restore_numbers

__all__ = ["Proof", "YieldMonitor"]

ENOUGH = 40.0  # match points, expected or found, needed for a decision
FALL = 8.0  # factor by which the yield must fall
SMOOTH = 0.75  # weight of the old mean against a new value
SHARE_FALL = 8.0  # factor by which the share found in shadow-sampled units falls under drift
PROVEN, REFUTED = 4.6, -2.3  # evidence that suffices for and against drift: one error in a hundred, one in ten
FADES = 0.9  # factor on older counts after each epoch
USUAL = (8.0, 2.0)  # prior: match points there, and found
STORED = ("there", "found", "doubt", "evidence")  # names of the fields of a proof in stored state


@dataclass(frozen=True)
class YieldMonitor:
    """The yield: ``mean`` match points found per touch (0: unknown yet), and ``points`` and ``touches`` since the last
    decision."""

    mean: float = 0.0
    points: int = 0
    touches: int = 0

    def add_counts(self, points: int, touches: int) -> tuple[YieldMonitor, bool]:
        """Add points and touches; return the new state, and whether the yield fell below an eighth of the expected.

        >>> usual, drifted = YieldMonitor().add_counts(100, 1000)
        >>> usual, drifted
        (YieldMonitor(mean=0.1, points=0, touches=0), False)
        >>> usual.add_counts(0, 200)  # twenty were to be expected: too few to say
        (YieldMonitor(mean=0.1, points=0, touches=200), False)
        >>> usual.add_counts(3, 400)
        (YieldMonitor(mean=0.0075, points=0, touches=0), True)
        """
        points, touches = self.points + points, self.touches + touches
        expected = self.mean * touches
        if max(expected, points) < ENOUGH:
            return replace(self, points=points, touches=touches), False
        now, drifted = points / max(touches, 1), points * FALL < expected
        mean = now if drifted or self.mean == 0 else SMOOTH * self.mean + (1 - SMOOTH) * now
        return YieldMonitor(mean), drifted

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> YieldMonitor:
        """Restore the fields. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for invalid data."""
        monitor = restore_numbers(cls(), data)
        if not (0 <= monitor.mean < np.inf and monitor.points >= 0 and monitor.touches >= 0):
            raise ValueError("what is found for a touch")
        return monitor


@dataclass(frozen=True)
class Proof:
    """A sequential test for drift. ``points`` counts the match points in shadow-sampled units, ``found_points`` those
    also found under shedding; older ones count less. ``doubt``: drift is suspected. ``evidence`` since then is the
    log likelihood ratio of an eighth of the old share against the old share (Wald, Sequential Tests of Statistical
    Hypotheses, 1945)."""

    points: float = USUAL[0]
    found_points: float = USUAL[1]
    doubt: bool = False
    evidence: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.points < np.inf and 0 <= self.found_points < np.inf and np.isfinite(self.evidence)):
            raise ValueError("shares of match points")

    def to_data(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return dict(zip(STORED, astuple(self), strict=True))

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Proof:
        """Restore the fields. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for invalid data."""
        names = [field.name for field in fields(cls)]
        return restore_numbers(cls(), {name: data[stored] for name, stored in zip(names, STORED, strict=True)})

    def add_epoch(self, is_found: Bools, *, drifted: bool) -> tuple[Proof, bool]:
        """Add an epoch; return the new state, and whether drift is proven. ``is_found`` says of each match point in
        shadow-sampled units whether it was found, ``drifted`` whether the yield fell, so that drift is suspected.

        >>> usual = Proof().add_epoch(np.arange(40) < 20, drifted=False)[0]
        >>> usual.add_epoch(np.arange(20) < 1, drifted=True)[1], usual.add_epoch(np.arange(20) < 8, drifted=True)[1]
        (True, False)
        >>> usual.add_epoch(np.arange(5) < 0, drifted=True)[0].doubt  # too few to say
        True
        """
        points, found_points = float(len(is_found)), float(np.count_nonzero(is_found))
        if not (self.doubt or drifted):
            return Proof(FADES * self.points + points, FADES * self.found_points + found_points), False
        usual = min(max(self.found_points / self.points, 0.01), 0.9)
        missed = float(np.log((1 - usual / SHARE_FALL) / (1 - usual)))
        evidence = self.evidence + (points - found_points) * missed - found_points * float(np.log(SHARE_FALL))
        if REFUTED < evidence < PROVEN:
            return replace(self, doubt=True, evidence=evidence), False
        return Proof(self.points, self.found_points) if evidence <= REFUTED else Proof(), evidence >= PROVEN
