"""Equalities of negations: what is always bound, and which of them say again what others say."""

from __future__ import annotations

from collections.abc import Iterable

from acep.pattern import expressions as ex
from acep.pattern.closure import as_equality, equality_classes
from acep.pattern.tree import Query
from acep.pattern.walk import (
    group_variables,
    kleene_variables,
    min_bound_counts,
    negated_variables,
    variables,
    without_places,
)

__all__ = ["always_bound", "repeated_equalities"]


def always_bound(query: Query) -> frozenset[str]:
    """Return the variables outside repeated groups of which every match binds an event, whatever is missing.

    >>> from acep.pattern.text.sase import parse
    >>> text = "PATTERN SEQ(A a, B? b, C c) WITHIN 9"
    >>> sorted(always_bound(parse(text))), sorted(always_bound(parse(text, errors=1, weights={"c": float("inf")})))
    (['a', 'c'], ['c'])
    """
    never_missing = {var for var, weight in query.weights if weight is None}
    mandatory = {var for var, number in min_bound_counts(query.pattern).items() if number}
    return frozenset(var for var in mandatory if not query.errors or var in never_missing) - group_variables(
        query.pattern
    )


def repeated_equalities(query: Query, conjuncts: Iterable[ex.Expr]) -> frozenset[int]:
    """Return the indices of equalities of negations that need not be asked, among conjuncts that are closed.

    ``n.x = c.x`` says nothing new beside ``n.x = a.x`` where ``a.x = c.x``, if a and c are always bound. The equality
    with the constant or the first variable stays, so that the negation is decided as soon as it can be.

    >>> from acep.pattern.closure import close_equalities
    >>> from acep.pattern.text.sase import parse
    >>> query = parse("PATTERN SEQ(A a, ~N n, C c) WHERE n.x = a.x AND c.x = a.x")
    >>> from acep.pattern.printing import expression_text
    >>> [expression_text(conjunct) for conjunct in close_equalities(query)]
    ['n.x = a.x', 'c.x = a.x', 'n.x = c.x']
    >>> repeated_equalities(query, close_equalities(query))
    frozenset({2})
    """
    order = {var: position for position, var in enumerate(variables(query.pattern))}
    negated = negated_variables(query.pattern)
    if not negated:
        return frozenset()
    bound = always_bound(query) - kleene_variables(query.pattern) - negated
    # Of what is equal in every match: the class by its number, and when the value is there.
    equal: dict[ex.Expr, tuple[int, int]] = {}
    for number, group in enumerate(equality_classes(query, among=frozenset(order) - negated)):
        for member in group.members:
            if not isinstance(member, ex.Attribute):
                equal[member] = number, -1
            elif member.var in bound:
                equal[member] = number, order[member.var]
    comparisons: dict[tuple[ex.Expr, int], list[tuple[int, int]]] = {}
    for index, conjunct in enumerate(conjuncts):
        equality = as_equality(conjunct)
        if equality is None:
            continue
        left, right = without_places(equality.left), without_places(equality.right)
        for side, partner in ((left, right), (right, left)):
            if isinstance(side, ex.Attribute) and side.var in negated and partner in equal:
                number, when = equal[partner]
                comparisons.setdefault((side, number), []).append((when, index))
    return frozenset(index for same_values in comparisons.values() for _, index in sorted(same_values)[1:])
