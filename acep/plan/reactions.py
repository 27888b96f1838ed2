"""Derive the events that can change a query's matches: their types, and the attributes that part them."""

from __future__ import annotations

from collections.abc import Iterable

from acep.plan.compile import Plan

__all__ = ["attributes_of_input", "reacting_types", "types_of_all"]


def reacting_types(plan: Plan) -> frozenset[str] | None:
    """Return the types of the events that a plan binds, or that break its negations; events of other types change none
    of its matches. ``None``: events of every type may.

    That is so where an event counts without being bound: where positions are counted, under contiguity, and in a
    hand-written automaton. It is also so in a query that may change, as its next version may bind other types.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> sorted(reacting_types(assumed_plan(acep.parse("PATTERN SEQ(A a, ~B b, C c) WITHIN 9"))))
    ['A', 'B', 'C']
    >>> reacting_types(assumed_plan(acep.parse("PATTERN SEQ(A a, ~B b, C c) WITHIN 9 EVENTS"))) is None
    True
    """
    if plan.sources:
        return types_of_all(source for source, _ in plan.sources)
    query = plan.query
    # A hand-written automaton has the strategy of contiguity.
    if plan.dynamic or plan.parts or query.strategy.contiguous or plan.window.counted:
        return None
    types = [step.types for step in plan.automaton.letters] + [step.types for step in plan.automaton.negations]
    return frozenset(name for alternatives in types for name in alternatives) if all(types) else None


def types_of_all(plans: Iterable[Plan]) -> frozenset[str] | None:
    """Return the types of the events that change matches of any of the plans; ``None``: events of every type may."""
    types = [reacting_types(plan) for plan in plans]
    return (
        None
        if None in types
        else frozenset(name for alternatives in types if alternatives is not None for name in alternatives)
    )


def attributes_of_input(plans: Iterable[Plan]) -> tuple[str, ...]:
    """Return the partition attributes of any of the plans, or of their sources, that are columns of the stream."""
    names: set[str] = set()
    for plan in plans:
        names |= {*attributes_of_input(source for source, _ in plan.sources)} if plan.sources else {*plan.keys}
    return tuple(sorted(names))
