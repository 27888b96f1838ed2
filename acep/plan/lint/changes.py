"""Change a query as a hint proposes it, so that its matches can be counted beside those of the query as it is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction

from acep.pattern.expressions import Expr
from acep.pattern.tree import Choice, EventSet, Node, Query, Repeat, Sequence, Within
from acep.plan.lint.finding import ChangedQuery

__all__ = ["with_bound", "with_condition", "with_half_window", "with_infinite_weights"]

FEW_TIMES = 5


def with_bound(query: Query, repetition: Repeat) -> ChangedQuery:
    """Return the change that gives a repetition of the pattern a small upper bound; its name is the bounds.

    >>> from acep.pattern.text.letters import regex
    >>> change = with_bound(query := regex("ab*", within=5), query.pattern.items[1])
    >>> change.name, change.query.pattern.items[1].high
    ('{0,5}', 5)
    """
    high = max(FEW_TIMES, repetition.low)
    pattern = _replace_node(query.pattern, repetition, replace(repetition, high=high))
    return ChangedQuery(f"{{{repetition.low},{high}}}", replace(query, pattern=pattern))


def _replace_node(node: Node, old: Node, new: Node) -> Node:
    """Return a pattern with ``new`` in the place of its node ``old``."""
    if node is old:
        return new
    match node:
        case Repeat(item=item):
            return replace(node, item=_replace_node(item, old, new))
        case Sequence(items=items) | Choice(items=items):
            return replace(node, items=tuple(_replace_node(item, old, new) for item in items))
        case EventSet(items=items):
            return EventSet(tuple(_replace_node(item, old, new) for item in items))  # type: ignore[misc]
    return node


def with_infinite_weights(query: Query, names: Collection[str]) -> Query:
    """Return the query in which none of some variables may be missing.

    >>> from acep.pattern.text.letters import regex
    >>> with_infinite_weights(regex("ab", within=5, errors=1, weights={"a": 2}), ["a"]).weights
    (('a', None),)
    """
    return replace(
        query, weights=(*(pair for pair in query.weights if pair[0] not in names), *((n, None) for n in names))
    )


def with_condition(query: Query, condition: Expr) -> Query:
    """Return the query with one condition more."""
    return replace(query, where=(*query.where, condition))


def with_half_window(query: Query) -> tuple[ChangedQuery, ...]:
    """Return the change that makes the window half as long; none where there is no such window."""
    within = query.within
    if within is None or within.amount < 2:
        return ()
    amount = within.amount / 2 if within.unit == "ns" else within.amount // 2
    return (ChangedQuery("half the window", replace(query, within=Within(Fraction(amount), within.unit))),)
