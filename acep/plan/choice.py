"""Which engine runs a plan, by its pattern and by what is asked of it, and why; never another result."""

from __future__ import annotations

from dataclasses import dataclass

from acep.pattern.tree import Output
from acep.plan.compile import Plan
from acep.plan.tables import NotNativeError, SharedTables, lower

__all__ = ["Choice", "choose", "decides_at_once"]


@dataclass(frozen=True)
class Choice:
    """``engine``: ``"reference"``, or one of the native core's: ``"nodes"``."""

    engine: str
    why: str


def choose(plan: Plan, output: str = "matches") -> Choice:
    """The engine for a plan where the native core is there; ``output`` is what :func:`acep.match` is asked for.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> choose(assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9")))
    Choice(engine='nodes', why='its predicates tie events together')
    """
    del output
    try:
        tables = lower(plan, SharedTables(), lambda text: 0)
    except NotNativeError as reason:
        return Choice("reference", str(reason))
    if tables.mergeable:
        return Choice("nodes", "no predicate ties events together beyond the partition")
    return Choice("nodes", "its predicates tie events together")


def decides_at_once(plan: Plan) -> bool:
    """Whether a match is given with its last event: nothing has to pass first."""
    return plan.query.output is Output.ALL and not any(n.trailing for n in plan.automaton.negations)
