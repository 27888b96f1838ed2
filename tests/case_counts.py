"""How many cases a random test tries, and which kinds of case must occur among all of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CASES", "CaseCounts"]


@dataclass(frozen=True)
class CaseCounts:
    """The share of its cases that each random test tries: ``ACEP_CASES``.

    >>> CaseCounts(0.05)(100), CaseCounts(0.05)(3)
    (5, 1)
    """

    share: float

    def __call__(self, whole: int) -> int:
        """Return how many cases to try, of so many that the test has."""
        return max(1, round(whole * self.share))

    def expect(self, seen: Mapping[str, float], *kinds: str, least: float = 1) -> None:
        """Assert that each kind of case occurred at least so often, if all cases were tried.

        With fewer cases nothing is asserted: that the generators draw each kind is what tests/test_census.py holds.

        >>> CaseCounts(1).expect({"matches": 3, "errors": 0}, "matches")
        >>> CaseCounts(0.05).expect({"matches": 3, "errors": 0}, "errors")
        >>> CaseCounts(1).expect({"matches": 3, "errors": 0}, "errors")
        Traceback (most recent call last):
        AssertionError: fewer than 1 of ['errors'] among {'matches': 3, 'errors': 0}
        """
        if self.share >= 1:
            rare = [kind for kind in kinds if seen.get(kind, 0) < least]
            assert not rare, f"fewer than {least} of {rare} among {dict(seen)}"


CASES = CaseCounts(float(os.environ.get("ACEP_CASES") or 1))
"""The number that the fixture ``cases`` gives, for the values of a parameter: ``range(CASES(20))``."""
