"""Of a test's values, those for which it runs in ``make test`` or in CI; the others belong to a later tier."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

__all__ = ["thinned", "thinned_pairs"]


def thinned(values: Sequence[Any], every: int, mark: pytest.MarkDecorator = pytest.mark.long) -> list[Any]:
    """Return the values, all but each ``every``-th of which have a mark, beginning behind the first.

    >>> [bool(value.marks) for value in thinned("abcde", 3)]
    [False, True, True, False, True]
    """
    return [pytest.param(value, marks=[mark] if n % every else []) for n, value in enumerate(values)]


def thinned_pairs(
    firsts: Sequence[Any], seconds: Sequence[Any], every: int, mark: pytest.MarkDecorator = pytest.mark.long
) -> list[Any]:
    """Return all pairs of two parameters, thinned likewise. Each value of either must be in a pair without a mark.

    >>> [pair.values for pair in thinned_pairs("ab", [1, 2, 3], 2) if not pair.marks]
    [('a', 1), ('a', 3), ('b', 2)]
    """
    pairs = [*product(firsts, seconds)]
    for place, values in enumerate((firsts, seconds)):
        for value in values:
            if not any(pair[place] is value for pair in pairs[::every]):
                raise ValueError(f"no pair without a mark has {value}")
    return [pytest.param(*pair, marks=[mark] if n % every else []) for n, pair in enumerate(pairs)]
