"""Read one query or several as users may give them, and return results in the same form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from acep.errors import QueryError, naming_query
from acep.pattern.automata import Automaton
from acep.pattern.several_results import NamedResults, ResultList
from acep.pattern.tree import Output, Query

__all__ = [
    "Queries",
    "QuerySet",
    "columns_read",
    "is_clause",
    "is_swapped",
    "query_of",
    "read_queries",
    "reduce_to_existence",
]

QueryLike = Query | Automaton | str
Queries = QueryLike | Sequence[QueryLike] | Mapping[str, QueryLike]
"""One query or its text, a list, or a dict of names and queries."""

LETTERS = "re:"
_FILE = re.compile(r"\S{1,200}\.(csv|tsv|json|jsonl|ndjson|parquet|arrow|gz|zst|acep|sase)", re.IGNORECASE)
_BEGINS = re.compile(r"\s*(pattern\b|from\s*\(|re:)", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(\s+|--[^\n]*\n|/\*.*?\*/)*+"
    r"(partition|order|measures|match_recognize|select|with|define|subset|after|one|all|within)\b",
    re.IGNORECASE | re.DOTALL,
)


def query_of(query: object) -> Query:
    """Return the query itself, or parse a text in SASE+.

    Raises :class:`QueryError` for anything that is not a query.

    >>> query_of("PATTERN SEQ(A a, B b) WITHIN 5").pattern.items[1].types
    ('B',)
    """
    if isinstance(query, Query):
        return query
    if isinstance(query, Automaton):
        return query.query
    if not isinstance(query, str):
        raise QueryError(
            f"a query is a text, or what acep.parse, acep.regex or acep.Automaton gives, not {type(query).__name__}",
            hint='the query comes after the events: acep.match(events, "PATTERN SEQ(A a, B b) WITHIN 5")',
            code="option_invalid",
        )
    if query.startswith(LETTERS):
        raise QueryError(
            "a letter expression needs a window", hint=f"acep.regex({query[len(LETTERS) :][:40]!r}, within=5), or None"
        )
    if _FILE.fullmatch(query):
        raise QueryError(
            f"`{query}` is the name of a file, not a query",
            hint="of a query, give its text; of events, give them first",
            code="file_read",
        )
    if is_clause(query):
        raise QueryError(
            "this is a clause of SQL, and no query of acep",
            hint="acep.match_recognize(events, clause), or acep.Matcher(clause) for a stream",
            code="query_syntax",
        )
    from acep.pattern.text.sase import parse

    return parse(query)


def is_swapped(events: object) -> bool:
    """Return whether the argument for the events is a query.

    >>> is_swapped("PATTERN A a"), is_swapped("events.csv")
    (True, False)
    """
    return isinstance(events, Query | Automaton) or (isinstance(events, str) and _BEGINS.match(events) is not None)


def is_clause(query: object) -> bool:
    r"""Return whether a text is a row pattern of SQL, and no query of acep: these begin with PATTERN.

    >>> is_clause("-- runs\norder by ts PATTERN (a)"), is_clause("PATTERN SEQ(A a) WITHIN 5"), is_clause(None)
    (True, False, False)
    """
    return isinstance(query, str) and _CLAUSE.match(query) is not None


@dataclass(frozen=True)
class QuerySet:
    """The queries of a user with their ``names``: those of a list are "0", "1", ..., that of a single query is "".
    ``is_several``: a list or a dict was given; ``is_named``: a dict."""

    names: tuple[str, ...]
    queries: tuple[Query, ...]
    is_several: bool
    is_named: bool

    def arrange(self, results: Sequence[Any]) -> Any:
        """Return the results, one for each query, in the form in which the queries were given.

        >>> from acep.pattern.text.letters import regex
        >>> read_queries({"up": regex("ab", within=5)}).arrange([3]) == {"up": 3}
        True
        >>> read_queries(regex("ab", within=5)).arrange([3])
        3
        """
        if self.is_named:
            return NamedResults(zip(self.names, results, strict=True))
        return ResultList(results) if self.is_several else results[0]


def read_queries(query: object) -> QuerySet:
    """Return the queries that a user gave.

    Raises :class:`QueryError` if there is none, or if something else is among them; of several it is named.
    """
    is_named = isinstance(query, Mapping)
    if isinstance(query, Mapping):
        unread_queries = [(str(name), unread_query) for name, unread_query in query.items()]
    elif isinstance(query, Sequence) and not isinstance(query, str):
        unread_queries = [(str(number), unread_query) for number, unread_query in enumerate(query)]
    else:
        unread_queries = [("", query)]
    if not unread_queries:
        raise QueryError(
            "there is no query", hint="give one query, a list of them, or a dict of name to query", code="query_name"
        )
    queries = []
    # Without a query they may be the events.
    has_query = any(isinstance(unread_query, str | Query | Automaton) for _, unread_query in unread_queries)
    for name, unread_query in unread_queries:
        with naming_query(name if has_query else ""):
            queries.append(query_of(unread_query))
    is_several = isinstance(query, Mapping | Sequence) and not isinstance(query, str)
    return QuerySet(tuple(name for name, _ in unread_queries), tuple(queries), is_several, is_named)


def reduce_to_existence(query: Query) -> Query:
    """Return a query that has matches if this one has, of which fewest have to be made.

    Each output chooses some match if there is one. Among those that do not overlap, one for which HAVING holds makes
    all longer ones needless; without HAVING the first match of all ends the search.
    """
    return replace(query, output=Output.ALL if query.having is None else Output.NON_OVERLAP, skip=None)


def columns_read(query: Query) -> Iterator[str]:
    """Yield the attributes that a query mentions, including those of its sources."""
    from acep.pattern.expressions import Attribute
    from acep.pattern.walk import attributes, leaves_of

    yield from query.ties
    for expr in (*query.where, *query.results):
        yield from attributes(expr)
    for arc in query.graph.arcs if query.graph is not None else ():
        for expr in (*([] if arc.fence is None else [arc.fence]), *(value for _, value in arc.transfer)):
            yield from (leaf.name for leaf in leaves_of(expr) if isinstance(leaf, Attribute) and leaf.var == "e")
    for source in query.sources:
        yield from columns_read(source.query)
