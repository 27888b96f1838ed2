"""Define the tree of a MATCH_RECOGNIZE clause (ISO/IEC 19075-5), which knows no columns yet.

Expressions are trees of sqlglot; all other parts are trees of ours, since sqlglot keeps them as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from acep.pattern.expressions import Span

__all__ = [
    "FINAL",
    "RUNNING",
    "Alternation",
    "Anchor",
    "Clause",
    "Concatenation",
    "Definition",
    "Empty",
    "Exclusion",
    "MatchSpan",
    "Measure",
    "OrderKey",
    "Permutation",
    "Quantified",
    "RowPattern",
    "RowVariable",
    "RowsMode",
    "Skip",
    "SkipMode",
    "SqlExpression",
    "Subset",
    "first_exclusion",
    "variables_of",
]

RUNNING = "$running"
FINAL = "$final"
"""The names of the calls that stand for the prefixes RUNNING and FINAL; their only argument is the call behind them."""


@dataclass(frozen=True)
class SqlExpression:
    """An expression: sqlglot's tree, whose positions count from the start of ``span``, its place in the text of the
    clause, and its own text."""

    tree: Any
    span: Span
    text: str = ""

    @cached_property
    def name_places(self) -> dict[int, tuple[int, int]]:
        """Return for each node, by its identity, from where to where the names in it stand, counted from the start of
        ``span``; a node without names has no place."""
        places: dict[int, tuple[int, int]] = {}
        for node in reversed(list(self.tree.walk())):
            start, end = places.get(id(node), (len(self.text), -1))
            if "start" in node.meta and "end" in node.meta:
                start, end = min(start, node.meta["start"]), max(end, node.meta["end"] + 1)
            if end < 0:
                continue
            places[id(node)] = start, end
            if node.parent is not None:
                low, high = places.get(id(node.parent), (start, end))
                places[id(node.parent)] = min(low, start), max(high, end)
        return places


@dataclass(frozen=True)
class RowVariable:
    """A primary pattern variable, which one row is mapped to. ``name`` is in capitals, as the standard has it, unless
    it stands in quotation marks."""

    name: str
    span: Span


@dataclass(frozen=True)
class Empty:
    """The empty pattern ``()``, which matches no row."""


@dataclass(frozen=True)
class Anchor:
    """``^`` (``is_start``) or ``$``: the start or the end of the partition."""

    is_start: bool


@dataclass(frozen=True)
class Concatenation:
    """``items`` one after another."""

    items: tuple[RowPattern, ...]


@dataclass(frozen=True)
class Alternation:
    """One of ``items``, the earlier preferred."""

    items: tuple[RowPattern, ...]


@dataclass(frozen=True)
class Permutation:
    """``PERMUTE``: all of ``items`` in any order; orders are preferred as the list has them, lexicographically."""

    items: tuple[RowPattern, ...]


@dataclass(frozen=True)
class Quantified:
    """``item`` at least ``low`` and at most ``high`` times (``None``: no limit); more are preferred, unless
    ``is_reluctant``."""

    item: RowPattern
    low: int
    high: int | None
    is_reluctant: bool = False


@dataclass(frozen=True)
class Exclusion:
    """``{- item -}``: its rows are matched, and left out of ALL ROWS PER MATCH."""

    item: RowPattern
    span: Span | None = None


RowPattern: TypeAlias = (
    RowVariable | Empty | Anchor | Concatenation | Alternation | Permutation | Quantified | Exclusion
)


class RowsMode(Enum):
    """Which rows are given for a match."""

    ONE_ROW = "ONE ROW PER MATCH"
    SHOW = "ALL ROWS PER MATCH SHOW EMPTY MATCHES"
    OMIT = "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    UNMATCHED = "ALL ROWS PER MATCH WITH UNMATCHED ROWS"


class SkipMode(Enum):
    """Where the search goes on after a match."""

    PAST_LAST = "PAST LAST ROW"
    TO_NEXT = "TO NEXT ROW"
    TO_FIRST = "TO FIRST"
    TO_LAST = "TO LAST"
    TO_VARIABLE = "TO"
    """The same as TO LAST, written without LAST."""


@dataclass(frozen=True)
class Skip:
    """AFTER MATCH SKIP; ``variable`` is that of TO FIRST, TO LAST and TO."""

    mode: SkipMode
    variable: str | None = None
    span: Span | None = None


@dataclass(frozen=True)
class OrderKey:
    """A key of ORDER BY. ``nulls_first`` is ``None`` where the text does not say."""

    expression: SqlExpression
    is_descending: bool
    nulls_first: bool | None


@dataclass(frozen=True)
class Measure:
    """An expression of MEASURES with its name."""

    expression: SqlExpression
    name: str
    span: Span


@dataclass(frozen=True)
class Definition:
    """The condition of a variable."""

    variable: str
    condition: SqlExpression
    span: Span


@dataclass(frozen=True)
class Subset:
    """A union variable, which stands for the rows of several ``variables``."""

    name: str
    variables: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class MatchSpan:
    """WITHIN: the first and the last row of a match differ by at most this in the first key of ORDER BY: nanoseconds
    of an interval, or a number of that column (``is_interval`` false)."""

    amount: Fraction
    is_interval: bool
    span: Span


@dataclass(frozen=True)
class Clause:
    """A MATCH_RECOGNIZE clause as it is written; ``errors``: how many rows of the pattern may be missing."""

    text: str
    partition: tuple[SqlExpression, ...]
    order: tuple[OrderKey, ...]
    measures: tuple[Measure, ...]
    rows: RowsMode
    skip: Skip
    pattern: RowPattern
    window: MatchSpan | None
    subsets: tuple[Subset, ...]
    definitions: tuple[Definition, ...]
    errors: int = 0


def first_exclusion(pattern: RowPattern) -> Exclusion | None:
    """Return the first part of a pattern that is excluded, if there is one.

    >>> first_exclusion(Concatenation((Empty(), Exclusion(Empty()))))
    Exclusion(item=Empty(), span=None)
    """
    match pattern:
        case Exclusion():
            return pattern
        case Concatenation(items=items) | Alternation(items=items) | Permutation(items=items):
            return next((inside for item in items if (inside := first_exclusion(item)) is not None), None)
        case Quantified(item=inner):
            return first_exclusion(inner)
    return None


def variables_of(pattern: RowPattern) -> tuple[RowVariable, ...]:
    """Return the variables of a pattern in the order in which they are first named, each once.

    >>> a, b = RowVariable("A", Span(0, 1)), RowVariable("b", Span(2, 3))
    >>> [v.name for v in variables_of(Concatenation((a, b, RowVariable("A", Span(4, 5)))))]
    ['A', 'b']
    """
    variables: dict[str, RowVariable] = {}
    pending: list[RowPattern] = [pattern]
    while pending:
        item = pending.pop()
        match item:
            case RowVariable(name=name):
                variables.setdefault(name, item)
            case Concatenation(items=items) | Alternation(items=items) | Permutation(items=items):
                pending.extend(reversed(items))
            case Quantified(item=inner) | Exclusion(item=inner):
                pending.append(inner)
            case Empty() | Anchor():
                pass
    return tuple(variables.values())
