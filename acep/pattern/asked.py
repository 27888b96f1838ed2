"""One query or several: what users may hand over, and the form in which they get the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acep.errors import QueryError
from acep.pattern.check import checked_query
from acep.pattern.tree import Query

__all__ = ["Asked", "Queries", "asked_for"]

Queries = Query | Sequence[Query] | Mapping[str, Query]
"""One query, a list, or a dict of names and queries."""


@dataclass(frozen=True)
class Asked:
    """``names`` and ``queries`` go together (a list's names are "0", "1", ...; that of a single query is "")."""

    names: tuple[str, ...]
    queries: tuple[Query, ...]
    several: bool
    named: bool

    def give(self, results: Sequence[Any]) -> Any:
        """What is one for each query, in the form in which the queries came.

        >>> from acep.pattern.letters import regex
        >>> asked_for({"up": regex("ab", within=5)}).give([3])
        {'up': 3}
        >>> asked_for(regex("ab", within=5)).give([3])
        3
        """
        if self.named:
            return dict(zip(self.names, results, strict=True))
        return list(results) if self.several else results[0]


def asked_for(query: object) -> Asked:
    """The queries that a user gave.

    Raises :class:`QueryError` where there is none, or something else among them.
    """
    named = isinstance(query, Mapping)
    if isinstance(query, Mapping):
        items = [(str(name), one) for name, one in query.items()]
    elif isinstance(query, Sequence) and not isinstance(query, str):
        items = [(str(number), one) for number, one in enumerate(query)]
    else:
        items = [("", query)]
    if not items:
        raise QueryError("there is no query", hint="give one query, a list of them, or a dict of name to query")
    queries = tuple(checked_query(one) for _, one in items)
    return Asked(tuple(name for name, _ in items), queries, isinstance(query, Mapping | Sequence), named)
