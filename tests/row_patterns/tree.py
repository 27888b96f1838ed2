"""The tree of a MATCH_RECOGNIZE clause: plain frozen data; its expressions are in tests/row_patterns/expressions.py."""

from __future__ import annotations

from dataclasses import dataclass

from tests.row_patterns.expressions import Expression

__all__ = [
    "ALL_ROWS",
    "OMIT_EMPTY",
    "ONE_ROW",
    "PAST_LAST",
    "SHOW_EMPTY",
    "TO_FIRST",
    "TO_LAST",
    "TO_NEXT",
    "UNMATCHED",
    "Alternation",
    "Anchor",
    "Clause",
    "Concatenation",
    "Definition",
    "Empty",
    "Exclusion",
    "Measure",
    "OrderKey",
    "Pattern",
    "Permute",
    "Quantified",
    "Skip",
    "Subset",
    "Variable",
    "Within",
    "variables_of",
]

ONE_ROW = "one row"
SHOW_EMPTY = "all rows, show empty matches"
OMIT_EMPTY = "all rows, omit empty matches"
UNMATCHED = "all rows with unmatched rows"
ALL_ROWS = (SHOW_EMPTY, OMIT_EMPTY, UNMATCHED)

PAST_LAST = "past last row"
TO_NEXT = "to next row"
TO_FIRST = "to first"
TO_LAST = "to last"


@dataclass(frozen=True)
class Variable:
    """A row of a variable."""

    name: str


@dataclass(frozen=True)
class Concatenation:
    """Patterns one after the other."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True)
class Alternation:
    """One of several patterns, the first preferred."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True)
class Quantified:
    """A pattern ``low`` to ``high`` times (None: without end), more preferred unless it is reluctant."""

    item: Pattern
    low: int
    high: int | None
    is_reluctant: bool = False


@dataclass(frozen=True)
class Anchor:
    """The start of the partition, or its end."""

    at_start: bool


@dataclass(frozen=True)
class Permute:
    """Patterns in any order, the order that is first in the dictionary preferred."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True)
class Exclusion:
    """A pattern whose rows are not shown."""

    item: Pattern


@dataclass(frozen=True)
class Empty:
    """The pattern that matches no row."""


Pattern = Variable | Concatenation | Alternation | Quantified | Anchor | Permute | Exclusion | Empty


@dataclass(frozen=True)
class OrderKey:
    """A column to order by; ``nulls_first`` None: nulls come last."""

    name: str
    is_descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True)
class Measure:
    """A column of the output."""

    expression: Expression
    name: str


@dataclass(frozen=True)
class Skip:
    """Where the next match may begin; a variable or a subset for ``TO_FIRST`` and ``TO_LAST``."""

    mode: str = PAST_LAST
    variable: str | None = None


@dataclass(frozen=True)
class Subset:
    """A name for several variables."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class Definition:
    """The condition of a variable."""

    variable: str
    condition: Expression


@dataclass(frozen=True)
class Within:
    """The width of a match on the first order key; ``unit`` is that of an INTERVAL, None for a plain number."""

    width: int
    unit: str | None = None


@dataclass(frozen=True)
class Clause:
    """A MATCH_RECOGNIZE clause."""

    pattern: Pattern
    definitions: tuple[Definition, ...]
    measures: tuple[Measure, ...] = ()
    partition: tuple[str, ...] = ()
    order: tuple[OrderKey, ...] = ()
    rows: str = ONE_ROW
    skip: Skip = Skip()
    subsets: tuple[Subset, ...] = ()
    within: Within | None = None

    def members_of(self, name: str | None) -> frozenset[str] | None:
        """Return the variables that a name stands for; None, the universal variable, stands for every one."""
        if name is None:
            return None
        return next((frozenset(subset.members) for subset in self.subsets if subset.name == name), frozenset({name}))


def variables_of(pattern: Pattern) -> tuple[str, ...]:
    """Return the variables of a pattern, each once, in the order of their first occurrence."""
    match pattern:
        case Variable(name):
            return (name,)
        case Concatenation(items) | Alternation(items) | Permute(items):
            return tuple(dict.fromkeys(name for item in items for name in variables_of(item)))
        case Quantified(item=item) | Exclusion(item):
            return variables_of(item)
        case _:
            return ()
