"""Short ways to write patterns, expressions and tables for cases by hand.

>>> seq("A", plus("B"))
Concatenation(items=(Variable(name='A'), Quantified(item=Variable(name='B'), low=1, high=None, is_reluctant=False)))
>>> eq("A.v", 3)
Comparison(operator='=', left=Column(variable='A', name='v'), right=Literal(value=3))
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.row_patterns import expressions as x
from tests.row_patterns import tree
from tests.row_patterns.evaluate import Row
from tests.row_patterns.expressions import Expression, Value
from tests.row_patterns.tree import Pattern

__all__ = [
    "EMPTY",
    "HandCase",
    "agg",
    "alt",
    "col",
    "compare",
    "eq",
    "exclude",
    "first",
    "last",
    "measure",
    "next_",
    "opt",
    "permute",
    "plus",
    "prev",
    "seq",
    "star",
    "table",
    "text",
    "times",
]

EMPTY = tree.Empty()
Table = tuple[tuple[str, ...], tuple[Row, ...]]


@dataclass(frozen=True)
class HandCase:
    """A clause over a table, and its rows, or the kind of an error, written by hand."""

    name: str
    clause: tree.Clause
    table: Table
    expected: tuple[tuple[Value, ...], ...] | str

    def __repr__(self) -> str:
        return self.name


def _pattern(item: Pattern | str) -> Pattern:
    """Return a pattern; a text is the name of a variable, ``^`` or ``$``."""
    if not isinstance(item, str):
        return item
    return tree.Anchor(item == "^") if item in "^$" else tree.Variable(item)


def seq(*items: Pattern | str) -> Pattern:
    """Return patterns one after the other."""
    return tree.Concatenation(tuple(map(_pattern, items)))


def alt(*items: Pattern | str) -> Pattern:
    """Return an alternation."""
    return tree.Alternation(tuple(map(_pattern, items)))


def permute(*items: Pattern | str) -> Pattern:
    """Return PERMUTE of patterns."""
    return tree.Permute(tuple(map(_pattern, items)))


def exclude(item: Pattern | str) -> Pattern:
    """Return a pattern whose rows are left out."""
    return tree.Exclusion(_pattern(item))


def times(item: Pattern | str, low: int, high: int | None, is_reluctant: bool = False) -> Pattern:
    """Return a pattern so many times."""
    return tree.Quantified(_pattern(item), low, high, is_reluctant)


def star(item: Pattern | str, is_reluctant: bool = False) -> Pattern:
    """Return a pattern any number of times."""
    return times(item, 0, None, is_reluctant)


def plus(item: Pattern | str, is_reluctant: bool = False) -> Pattern:
    """Return a pattern at least once."""
    return times(item, 1, None, is_reluctant)


def opt(item: Pattern | str, is_reluctant: bool = False) -> Pattern:
    """Return a pattern once or not at all."""
    return times(item, 0, 1, is_reluctant)


def col(value: Expression | Value) -> Expression:
    """Return an expression: a text is a column, ``A.v`` or ``v``, another value a constant."""
    if isinstance(value, str):
        variable, _, name = value.rpartition(".")
        return x.Column(variable or None, name)
    return x.Literal(value) if value is None or isinstance(value, (bool, int, float)) else value


def text(value: str) -> Expression:
    """Return a constant text."""
    return x.Literal(value)


def compare(left: Expression | Value, operator: str, right: Expression | Value) -> Expression:
    """Return a comparison, or ``+``, ``-``, ``*``, AND, OR."""
    if operator in ("AND", "OR"):
        return x.Junction(operator, col(left), col(right))
    return (x.Arithmetic if operator in "+-*" else x.Comparison)(operator, col(left), col(right))


def eq(left: Expression | Value, right: Expression | Value) -> Expression:
    """Return an equality."""
    return compare(left, "=", right)


def first(argument: Expression | str, offset: int | None = None, semantics: str | None = None) -> x.Logical:
    """Return FIRST."""
    return x.Logical("FIRST", col(argument), offset, semantics)


def last(argument: Expression | str, offset: int | None = None, semantics: str | None = None) -> x.Logical:
    """Return LAST."""
    return x.Logical("LAST", col(argument), offset, semantics)


def prev(argument: Expression | str, offset: int | None = None) -> x.Physical:
    """Return PREV."""
    return x.Physical("PREV", col(argument), offset)


def next_(argument: Expression | str, offset: int | None = None) -> x.Physical:
    """Return NEXT."""
    return x.Physical("NEXT", col(argument), offset)


def agg(call: str, semantics: str | None = None) -> x.Aggregate:
    """Return an aggregate from its text: ``count(*)``, ``count(A.*)``, ``sum(A.v)``, ``count(DISTINCT v)``."""
    function, is_distinct, name = re.fullmatch(r"(\w+)\((DISTINCT )?(.*)\)", call).groups()  # type: ignore[union-attr]
    if name.endswith("*"):
        return x.Aggregate(function, x.Rows(name.removesuffix("*").removesuffix(".") or None), semantics=semantics)
    return x.Aggregate(function, col(name), bool(is_distinct), semantics)


def measure(**measures: Expression | Value) -> tuple[tree.Measure, ...]:
    """Return measures by their names."""
    return tuple(tree.Measure(col(expression), name) for name, expression in measures.items())


def table(names: str, *rows: tuple[Value, ...]) -> Table:
    """Return a table: the names of its columns, and its rows."""
    columns = tuple(names.split())
    return columns, tuple(dict(zip(columns, row, strict=True)) for row in rows)
