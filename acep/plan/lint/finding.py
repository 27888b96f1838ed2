"""Define the input and output of lint rules: a query with its plan and the places of its variables, and findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from acep.pattern.expressions import Span
from acep.pattern.text.lalr_parser import ReadingError, Token, parser
from acep.pattern.text.syntax import unquote
from acep.pattern.tree import Query
from acep.plan.compile import Plan

__all__ = [
    "ANOTHER",
    "EACH_ANOTHER",
    "ChangedQuery",
    "Declared",
    "Finding",
    "QueryView",
    "Remark",
    "declarations",
    "tokens_of",
]

ANOTHER = "that asks another question"
EACH_ANOTHER = "each asks another question"
"""A hint that proposes a change by which the matches may be others says so, at its end."""


class ChangedQuery(NamedTuple):
    """A changed ``query`` that a hint proposes, and its ``name``, as it is read after "with"."""

    name: str
    query: Query


class Remark(NamedTuple):
    """The remark of a rule on a costly construct: a message, a hint for a remedy, and the place in the text.
    ``changes``: the queries that the hint proposes, where it names them; their matches can be counted on events."""

    message: str
    hint: str
    span: Span | None = None
    changes: tuple[ChangedQuery, ...] = ()


@dataclass(frozen=True)
class Finding:
    """A costly construct: the name of the rule that found it, a message, a hint for a remedy, its place, the
    ``changes`` that the hint proposes, and the ``query`` that they are of (one of FROM, or the whole)."""

    rule: str
    message: str
    hint: str
    span: Span | None = None
    changes: tuple[ChangedQuery, ...] = ()
    query: Query | None = None

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}"


@dataclass(frozen=True)
class Declared:
    """The place where a variable is declared; ``bare`` if it is a name in a set without a type."""

    span: Span
    bare: bool


@dataclass(frozen=True)
class QueryView:
    """A query with its plan and the places of its variables."""

    plan: Plan
    places: dict[str, Declared]

    @property
    def query(self) -> Query:
        """Return the query."""
        return self.plan.query

    def place(self, var: str) -> Span | None:
        """Return the place where a variable is declared, or ``None`` if unknown."""
        return self.places[var].span if var in self.places else None


def tokens_of(query: Query) -> list[Token]:
    """Return the tokens of a query's text; none if the text does not parse.

    >>> from acep.pattern.text.letters import regex
    >>> [str(token) for token in tokens_of(regex("a(b|c)+", within=5))]
    ['a', '(', 'b', '|', 'c', ')', '+']
    """
    try:
        return parser("letters" if query.letters else "sase").tokens(query.text)
    except ReadingError:
        return []


def declarations(tokens: list[Token], number: int) -> dict[str, Declared]:
    """Return the declarations of the ``number``-th pattern of a text, by variable; inner queries come first."""
    starts = [i for i, token in enumerate(tokens) if token.type == "_PATTERN"]
    begin = starts[number] + 1 if number < len(starts) else 0
    declared: dict[str, Declared] = {}
    for i in range(begin, len(tokens)):
        token = tokens[i]
        if token.type == "_WHERE":
            break
        bare = i > 0 and tokens[i - 1] in ("{", ",")
        span = Span(token.start_pos, token.end_pos)
        declared.setdefault(unquote(token), Declared(span, bare))
    return declared
