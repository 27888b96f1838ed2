"""Tell whether HAVING, where it fails for a series of events, also fails for each part of it that ends with it.

Where the runs of one variable that end with an event lie within each other, the engine then asks the longest one first,
and none of those that lie within one for which HAVING failed.
"""

from __future__ import annotations

from acep.functions.aggregates import AGGREGATES
from acep.pattern import expressions as ex
from acep.pattern.tree import Strategy
from acep.pattern.walk import leaves_of
from acep.plan.compile import Plan

__all__ = ["having_rises"]

GREATER = (">", ">=")
LESS = ("<", "<=")


def having_rises(plan: Plan) -> bool:
    """Return whether of two runs that end with one event the later one has some of the events of the other and no more,
    and HAVING holds for the other one if it holds for that.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> series = "PATTERN a+ x[] WHERE partition_contiguity(x[]) { [k] } WITHIN 9 HAVING "
    >>> [having_rises(assumed_plan(acep.parse(series + f"{name}(x[].v) > 3"))) for name in ("max", "count", "sum")]
    [True, True, False]
    """
    if plan.having is None or len(plan.variables) != 1 or plan.automaton.negations or plan.automaton.costs.budget:
        return False
    checks = any(step.leaving or step.binding for steps in plan.program.steps[1:] for step in steps)
    nested = plan.query.strategy is Strategy.SKIP_TILL_NEXT_MATCH and not checks
    return (plan.query.strategy.contiguous or nested) and not plan.dynamic and _rises(plan.having.expr)


def _rises(expr: ex.Expr) -> bool:
    """Return whether a condition that is true stays true if events come before the first one."""
    match expr:
        case ex.Binary(op="and" | "or", left=left, right=right):
            return _rises(left) and _rises(right)
        case ex.Binary(op=op, left=left, right=right) if op in GREATER + LESS:
            less, more = (left, right) if op in LESS else (right, left)
            return (_stays(less) or _moves(less, down=True)) and (_stays(more) or _moves(more, down=False))
    return _stays(expr)


def _stays(expr: ex.Expr) -> bool:
    """Return whether an expression depends on the last event alone."""
    return all(isinstance(leaf, ex.Attribute) and leaf.index in (None, "last") for leaf in leaves_of(expr))


def _moves(expr: ex.Expr, *, down: bool) -> bool:
    """Return whether a value can only fall, or only rise, as events come before the first one."""
    match expr:
        case ex.Length():
            return not down
        case ex.Aggregate(function=function):
            return AGGREGATES[function].grows == (-1 if down else 1)
    return False
