"""Of a test's values, those for which it runs in ``make test``; the others belong to the long tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

__all__ = ["thinned"]


def thinned(values: Sequence[Any], every: int) -> list[Any]:
    """The values, all but each ``every``-th of which are marked as long, beginning behind the first.

    >>> [bool(one.marks) for one in thinned("abcde", 3)]
    [False, True, True, False, True]
    """
    return [pytest.param(one, marks=[pytest.mark.long] if n % every else []) for n, one in enumerate(values)]
