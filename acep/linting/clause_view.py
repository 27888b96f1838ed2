"""Hold a MATCH_RECOGNIZE clause as the rules of its lint see it: its tree, and its plan and rows if there are any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from acep.pattern.expressions import Span
from acep.pattern.sql.clause_tree import (
    Alternation,
    Clause,
    Concatenation,
    Exclusion,
    Permutation,
    Quantified,
    RowPattern,
    RowVariable,
    SqlExpression,
    variables_of,
)
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.plan.ordered.sql_expressions import place_of

__all__ = ["ClauseView", "is_bounded", "may_be_empty", "own_column", "texts_beside_labels", "variable_read"]

_BESIDE = ("EQ", "NEQ", "In", "Contains", "ArrayContains", "ArrayPosition", "Case")
"""The nodes that compare their first part with others."""
_OF_LABEL = ("Paren", "ArrayAgg", "PREV", "NEXT", "LAG", "LEAD", "FIRST", "LAST", "$running", "$final")
_NAVIGATION = ("FIRST", "LAST", "PREV", "NEXT", "$RUNNING")
_COMPARISONS = ("EQ", "NEQ", "GT", "GTE", "LT", "LTE")


@dataclass(frozen=True)
class ClauseView:
    """A clause. ``plan`` and ``table`` are missing where no table was given."""

    clause: Clause
    plan: OrderedPlan | None = None
    table: pa.Table | None = None

    def undefined_variables(self) -> list[RowVariable]:
        """Return the variables of the pattern that DEFINE does not name."""
        defined = {definition.variable.casefold() for definition in self.clause.definitions}
        return [v for v in variables_of(self.clause.pattern) if v.name.casefold() not in defined]

    def comparisons(self) -> Iterator[tuple[str, SqlExpression, Any]]:
        """Yield the comparisons of conditions: the variable that is defined, the source, and the node."""
        for definition in self.clause.definitions:
            for node in definition.condition.tree.walk():
                if type(node).__name__ in _COMPARISONS:
                    yield definition.variable, definition.condition, node

    @staticmethod
    def place(node: Any, source: SqlExpression) -> Span:
        """Return the place of a node."""
        return place_of(node, source)


def own_column(node: Any, variable: str) -> str | None:
    """Return the column of the tested row that a part of the condition of ``variable`` is; ``None`` for another part.

    The row that is tested is the last one of its variable, and of the match."""
    while type(node).__name__ == "Paren":
        node = node.this
    if type(node).__name__ == "Anonymous" and str(node.this) == "$running":
        (node,) = node.expressions
    if type(node).__name__ == "Anonymous" and str(node.this).upper() == "LAST":
        if len(node.expressions) > 1 and str(node.expressions[1]) != "0":
            return None
        node = node.expressions[0] if node.expressions else None
    if type(node).__name__ != "Column" or type(node.this).__name__ != "Identifier" or node.args.get("db"):
        return None
    table = node.args.get("table")
    return str(node.name).casefold() if table is None or str(table.name).casefold() == variable.casefold() else None


def variable_read(node: Any) -> str | None:
    """Return the variable one row of which a part of a condition reads; ``None`` where it reads anything else."""
    while type(node).__name__ == "Paren":
        node = node.this
    while type(node).__name__ == "Anonymous" and str(node.this).upper() in _NAVIGATION and node.expressions:
        node = node.expressions[0]
    table = node.args.get("table") if type(node).__name__ == "Column" and not node.args.get("db") else None
    return None if table is None else str(table.name)


def texts_beside_labels(tree: Any) -> Iterator[Any]:
    """Yield the nodes of constant texts that are compared with the label of a row, or with several of them."""
    for node in tree.walk():
        if type(node).__name__ not in _BESIDE:
            continue
        parts = [node.this, *node.args.get("expressions", ()), *node.args.get("ifs", ()), node.args.get("expression")]
        if any(part is not None and _is_label(part) for part in parts):
            for part in parts:
                of_array = part.expressions if type(part).__name__ == "Array" else [part]
                constants = [item.this if type(item).__name__ == "If" else item for item in of_array]
                yield from (item for item in constants if type(item).__name__ == "Literal" and item.is_string)


def _is_label(node: Any) -> bool:
    """Return whether a part of an expression is the label of a row, or a list of labels."""
    name = str(node.this).upper() if type(node).__name__ == "Anonymous" else type(node).__name__
    if name == "CLASSIFIER":
        return True
    inner = node.expressions[0] if type(node).__name__ == "Anonymous" and node.expressions else node.this
    return (name in _OF_LABEL or name.lower() in _OF_LABEL) and hasattr(inner, "this") and _is_label(inner)


def may_be_empty(pattern: RowPattern) -> bool:
    """Return whether a pattern may match without a row.

    >>> a = RowVariable("A", Span(0, 1))
    >>> may_be_empty(a), may_be_empty(Quantified(a, 0, None))
    (False, True)
    """
    match pattern:
        case RowVariable():
            return False
        case Concatenation(items=items) | Permutation(items=items):
            return all(map(may_be_empty, items))
        case Alternation(items=items):
            return any(map(may_be_empty, items))
        case Quantified(item=item, low=low):
            return low == 0 or may_be_empty(item)
        case Exclusion(item=item):
            return may_be_empty(item)
    return True


def is_bounded(pattern: RowPattern) -> bool:
    """Return whether no match of a pattern can have more rows than a number that the pattern sets."""
    match pattern:
        case Concatenation(items=items) | Permutation(items=items) | Alternation(items=items):
            return all(map(is_bounded, items))
        case Quantified(item=item, high=high):
            return high is not None and is_bounded(item)
        case Exclusion(item=item):
            return is_bounded(item)
    return True
