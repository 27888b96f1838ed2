"""Whether hits among tries fit a stated chance: a statistical test is wrong once in a million."""

from __future__ import annotations

from math import exp, lgamma, log

RARE = 1e-6


def _term(hits: int, tries: int, chance: float) -> float:
    """The probability of exactly so many hits."""
    ways = lgamma(tries + 1) - lgamma(hits + 1) - lgamma(tries - hits + 1)
    return exp(ways + hits * log(chance) + (tries - hits) * log(1 - chance))


def not_more(hits: int, tries: int, chance: float) -> bool:
    """Whether hits may have this chance, or a smaller one."""
    return sum(_term(k, tries, chance) for k in range(hits, tries + 1)) > RARE


def not_less(hits: int, tries: int, chance: float) -> bool:
    """Whether hits may have this chance, or a larger one."""
    return sum(_term(k, tries, chance) for k in range(hits + 1)) > RARE
