"""Of a test's values, those for which it runs in ``make test`` or in CI; the others belong to a later tier."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

__all__ = ["in_turn", "thinned", "thinned_product"]


def thinned(values: Sequence[Any], every: int, mark: pytest.MarkDecorator = pytest.mark.long) -> list[Any]:
    """Return the values, all but each ``every``-th of which have a mark, beginning behind the first.

    >>> [bool(value.marks) for value in thinned("abcde", 3)]
    [False, True, True, False, True]
    """
    return [pytest.param(value, marks=[mark] if n % every else []) for n, value in enumerate(values)]


def thinned_product(
    *dimensions: Sequence[Any], every: int, mark: pytest.MarkDecorator = pytest.mark.whole
) -> list[Any]:
    """Return all combinations of the values of several parameters, all but each ``every``-th of which have a mark.

    Each value of each dimension stays without one; else this is an assertion that fails.

    >>> [param.values for param in thinned_product("ab", (1, 2, 3), every=2) if not param.marks]
    [('a', 1), ('a', 3), ('b', 2)]
    """
    combinations = [*product(*dimensions)]
    for number, values in enumerate(dimensions):
        assert {repr(combination[number]) for combination in combinations[::every]} == {*map(repr, values)}
    return [pytest.param(*values, marks=[mark] if n % every else []) for n, values in enumerate(combinations)]


def in_turn(first: Sequence[Any], second: Sequence[Any], mark: pytest.MarkDecorator = pytest.mark.whole) -> list[Any]:
    """Return all pairs of the values of two parameters; but of each of the first, one of the second in turn, all have
    a mark.

    >>> [param.values for param in in_turn("abc", (1, 2)) if not param.marks]
    [('a', 1), ('b', 2), ('c', 1)]
    """
    return [
        pytest.param(value, other, marks=[mark] if n % len(second) != m else [])
        for n, value in enumerate(first)
        for m, other in enumerate(second)
    ]
