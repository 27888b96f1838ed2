"""Of a test's values, those for which it runs in ``make test`` or in CI; the others belong to a later tier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

__all__ = ["thinned"]


def thinned(values: Sequence[Any], every: int, mark: pytest.MarkDecorator = pytest.mark.long) -> list[Any]:
    """Return the values, all but each ``every``-th of which have a mark, beginning behind the first.

    >>> [bool(value.marks) for value in thinned("abcde", 3)]
    [False, True, True, False, True]
    """
    return [pytest.param(value, marks=[mark] if n % every else []) for n, value in enumerate(values)]
