"""Decide which events the answer of some queries can depend on, by what they look at in one event alone: no Spark."""

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
    """One use of events: a variable binds, or a negation is broken by, events of ``types`` (empty: of any type) for
    which all ``conditions`` are true. These look at nothing but the event."""

    types: tuple[str, ...]
    conditions: tuple[Compiled, ...]


def uses_of(plans: Sequence[Plan], *, ids: bool, budget: Budget | None = None) -> tuple[Use, ...] | None:
    """Give the uses that queries have for events; without any event that has none, the answer is the same.

    ``None`` where each event bears on the answer. That is where events are numbered or counted: there is no column of
    ``ids``, or a query has a window of events, contiguity, or other queries' matches as its events. It is also under a
    ``budget`` of work or memory: work is allowed by the event, and what both keep follows from all events that came.

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
        bound = [(one.types, one.var, plan.predicates) for one in plan.automaton.letters]
        broken = zip(plan.automaton.negations, plan.negated, strict=True)
        bound += [(one.types, one.var, conditions) for one, conditions in broken]
        for types, var, conditions in bound:
            own = tuple(one for one in conditions if _is_own(one, var))
            uses.setdefault((types, *(one.expr for one in own)), Use(types, own))
    return tuple(uses.values())


def _is_own(condition: Compiled, var: str) -> bool:
    """Whether a condition looks at each event that ``var`` stands for, and at nothing else."""
    each = (isinstance(leaf, Attribute) and leaf.var == var and leaf.index in (None, "i") for leaf in condition.leaves)
    return bool(condition.leaves) and all(each)
