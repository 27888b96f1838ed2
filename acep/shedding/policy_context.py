"""Describe a plan for policies, and say whether its recall can be estimated."""

from __future__ import annotations

from acep.learning.policy_context import PolicyContext, RegisterFeature
from acep.pattern.tree import Output, Strategy
from acep.plan.compile import Plan
from acep.plan.lower.tables import PlanTables
from acep.plan.schema import Kind

__all__ = ["context_of", "no_recall"]

MOST_ERRORS = 16  # error levels


def context_of(plan: Plan, tables: PlanTables, classes: int) -> PolicyContext:
    """Return the description of a plan for a policy; ``classes`` is the number of event classes of its session."""
    costs, schema = plan.automaton.costs, plan.schema
    names = [""] * len(plan.arcs.states)
    for arcs in plan.arcs.arcs:
        for arc in arcs:
            names[arc.target] = arc.var
    weights = [weight for arcs in plan.arcs.arcs for arc in arcs for weight, _ in arc.gaps if weight > 0]
    if costs.surplus is not None:
        weights.append(costs.surplus)
    step = min(weights, default=costs.scale)
    negated = bool(plan.automaton.negations)
    return PolicyContext(
        names=tuple(names),
        errors=min(costs.budget // step + 1, MOST_ERRORS),
        step=step,
        span=plan.window.span,
        counted=plan.window.counted,
        registers=tuple(tuple(RegisterFeature(*feature) for feature in state) for state in tables.registers),
        key_texts=tuple((schema.kind(k) or Kind.STRING) is Kind.STRING for k in plan.keys),
        takes=tables.takes,
        classes=classes,
        loses_only=plan.query.strategy is Strategy.SKIP_TILL_ANY_MATCH and not negated,
        fingerprint=plan.fingerprint,
    )


def no_recall(plan: Plan) -> str:
    """Say why the recall of a plan is not estimated: its output is not every complete run; "" if it is estimated."""
    if plan.query.output is not Output.ALL:
        return "how many is not estimated where matches are chosen by others"
    if plan.having is not None or plan.automaton.negations:
        return "how many is not estimated with HAVING or a negation"
    return ""
