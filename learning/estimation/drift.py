"""Whether the pattern of success has changed, so that what was learned finds next to nothing.

Who keeps what was worth most until then sees little of anything else, and what is watched beside it (a fiftieth of the
allowance) takes long to say so. What is found for a touch says it at once (:class:`Yield`), but falls in a lull too. So
much is watched then, and if of the match points that are seen a far smaller share is found than before, it is no lull
(:class:`Proof`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from acep.learning.trajectories.match_vectors import Bools

__all__ = ["Proof", "Yield"]

ENOUGH = 40.0  # match points that there should be, to judge by
FALL = 8.0  # times less than before
SMOOTH = 0.75  # what is left of the mean after a new number
LESS = 8.0  # times less is found of match points in spared units, where the pattern of success has changed
SURE, NONE = 4.6, -2.3  # the evidence that suffices for and against it: one error in a hundred, one in ten
FADES = 0.9  # what is left of older ones after an epoch
USUAL = (8.0, 2.0)  # match points that are taken to have been there, and found, before any were seen


@dataclass(frozen=True)
class Yield:
    """The ``mean`` of match points found for a touch (0: not known yet), and ``points`` and ``touches`` since it was
    last judged."""

    mean: float = 0.0
    points: int = 0
    touches: int = 0

    def after(self, points: int, touches: int) -> tuple[Yield, bool]:
        """After more of both; and whether they have fallen below an eighth of what was to be expected.

        >>> usual, fell = Yield().after(100, 1000)
        >>> usual, fell
        (Yield(mean=0.1, points=0, touches=0), False)
        >>> usual.after(0, 200)  # twenty were to be expected: too few to say
        (Yield(mean=0.1, points=0, touches=200), False)
        >>> usual.after(3, 400)
        (Yield(mean=0.0075, points=0, touches=0), True)
        """
        points, touches = self.points + points, self.touches + touches
        expected = self.mean * touches
        if max(expected, points) < ENOUGH:
            return replace(self, points=points, touches=touches), False
        now, fell = points / max(touches, 1), points * FALL < expected
        mean = now if fell or self.mean == 0 else SMOOTH * self.mean + (1 - SMOOTH) * now
        return Yield(mean), fell

    def to_data(self) -> dict[str, float]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Yield:
        """Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for what makes no sense."""
        found = cls(float(data["mean"]), int(data["points"]), int(data["touches"]))
        if not (0 <= found.mean < np.inf and found.points >= 0 and found.touches >= 0):
            raise ValueError("what is found for a touch")
        return found


@dataclass(frozen=True)
class Proof:
    """Of match points in units that are spared, how many were ``there`` and ``found``, older ones less; whether there
    is a ``doubt``, and the ``evidence`` for it since it arose: the logarithm of how many times likelier what was seen
    is if an eighth is found of what was found before (Wald, Sequential Tests of Statistical Hypotheses, 1945).
    """

    there: float = USUAL[0]
    found: float = USUAL[1]
    doubt: bool = False
    evidence: float = 0.0

    def after(self, kept: Bools, *, fell: bool) -> tuple[Proof, bool]:
        """After an epoch in which ``kept`` (one a match point in spared units) were found; ``fell``: a doubt arises.
        And whether the pattern of success has changed.

        >>> usual = Proof().after(np.arange(40) < 20, fell=False)[0]
        >>> usual.after(np.arange(20) < 1, fell=True)[1], usual.after(np.arange(20) < 8, fell=True)[1]
        (True, False)
        >>> usual.after(np.arange(5) < 0, fell=True)[0].doubt  # too few to say
        True
        """
        there, found = float(len(kept)), float(np.count_nonzero(kept))
        if not (self.doubt or fell):
            return Proof(FADES * self.there + there, FADES * self.found + found), False
        usual = min(max(self.found / self.there, 0.01), 0.9)
        missed = float(np.log((1 - usual / LESS) / (1 - usual)))
        evidence = self.evidence + (there - found) * missed - found * float(np.log(LESS))
        if NONE < evidence < SURE:
            return replace(self, doubt=True, evidence=evidence), False
        return Proof(self.there, self.found) if evidence <= NONE else Proof(), evidence >= SURE

    def to_data(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Proof:
        """Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for what makes no sense."""
        proof = cls(float(data["there"]), float(data["found"]), data["doubt"], float(data["evidence"]))
        if not (0 < proof.there < np.inf and 0 <= proof.found < np.inf and isinstance(proof.doubt, bool)):
            raise ValueError("shares of match points")
        if not np.isfinite(proof.evidence):
            raise ValueError("evidence")
        return proof
