"""Read a query once: many tests ask for that of a case again and again, and to read it takes as long as to match it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import acep
from acep.pattern.tree import Query

__all__ = ["read_query"]


def read_query(text: str, options: Mapping[str, Any], *, letters: bool = False) -> Query:
    """Return the query of a text, or of a letter expression, with the options of its front end.

    >>> read_query("ab", {"within": 5}, letters=True) is read_query("ab", {"within": 5}, letters=True)
    True
    >>> read_query("ab", {"within": 5}, letters=True) is read_query("ab", {"within": 5.0}, letters=True)
    False
    """
    return _read_once(text, letters, _Options(options))


class _Options(dict[str, Any]):
    """Options that are compared by how they are written: 5 is not 5.0, and weights may be a dictionary."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(self))

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)


@lru_cache(maxsize=2_000)
def _read_once(text: str, letters: bool, options: _Options) -> Query:
    return (acep.regex if letters else acep.parse)(text, **options)
