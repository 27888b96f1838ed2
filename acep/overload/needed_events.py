"""Find the events that queries can use, from types and conditions on a single event; the rest need not travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acep.budget.budget import Budget
from acep.pattern.evaluation import Compiled
from acep.pattern.expressions import Attribute
from acep.plan.compile import Plan

__all__ = ["Use", "uses_of"]


@dataclass(frozen=True)
class Use:
    """Events that a variable can bind or that can break a negation: events of ``types`` (empty: of any type) for which
    all ``conditions`` are true. The conditions depend on that event alone."""

    types: tuple[str, ...]
    conditions: tuple[Compiled, ...]


def uses_of(plans: Sequence[Plan], *, ids: bool, budget: Budget | None = None) -> tuple[Use, ...] | None:
    """Return the uses that queries have for events. Events without a use can be left out; the result stays the same.

    Returns ``None`` where every event affects the result. This is so if events are numbered or counted: there is no
    column of ``ids``, or a query has a count window, contiguity, or other queries' matches as its events. It is also so
    under a ``budget`` of work or memory: work is allowed per event, and shedding depends on all events that came.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> plan = assumed_plan(acep.parse("PATTERN SEQ(A a, B b, ~C c, D d) WHERE a.x > 5 AND b.x > a.x AND c.x = 0"))
    >>> [(use.types, len(use.conditions)) for use in uses_of([plan], ids=True)]
    [(('A',), 1), (('B',), 0), (('D',), 0), (('C',), 1)]
    >>> uses_of([plan], ids=False)
    """
    if not ids or (budget is not None and not (budget.work is None and budget.memory is None)):
        return None
    uses: dict[tuple[object, ...], Use] = {}
    for plan in plans:
        if plan.window.counted or plan.sources or plan.query.strategy.contiguous:
            return None
        bound = [(letter.types, letter.var, plan.predicates) for letter in plan.automaton.letters]
        broken = zip(plan.automaton.negations, plan.negated, strict=True)
        bound += [(negation.types, negation.var, conditions) for negation, conditions in broken]
        for types, var, conditions in bound:
            own_conditions = tuple(condition for condition in conditions if _is_own(condition, var))
            uses.setdefault(
                (types, *(own_condition.expr for own_condition in own_conditions)), Use(types, own_conditions)
            )
    return tuple(uses.values())


def _is_own(condition: Compiled, var: str) -> bool:
    """Return whether a condition depends on nothing but single events of ``var``."""
    own_leaves = (
        isinstance(leaf, Attribute) and leaf.var == var and leaf.index in (None, "i") for leaf in condition.leaves
    )
    return bool(condition.leaves) and all(own_leaves)
