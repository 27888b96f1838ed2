"""Of a test's values, those for which it runs in ``make test`` or in CI; the others belong to a later tier."""

from __future__ import annotations

from collections.abc import Sequence
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
    values: Sequence[Sequence[Any]], every: int, mark: pytest.MarkDecorator = pytest.mark.long
) -> list[Any]:
    """Return combinations of the values of several parameters, thinned in the same way. If ``every`` has no divisor in
    common with the numbers of these values, nearly all values remain.

    >>> [value.values for value in thinned_pairs([("a", 1), ("a", 2), ("b", 1), ("b", 2)], 3) if not value.marks]
    [('a', 1), ('b', 2)]
    """
    return [pytest.param(*combination, marks=[mark] if n % every else []) for n, combination in enumerate(values)]
