"""Evaluate conditions over whole bindings: HAVING, RETURN, and negations.

Predicates on arcs run on registers; these functions look at the events themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from acep.automaton.arcs import Crossing
from acep.functions.aggregates import AGGREGATES, present_values
from acep.pattern import expressions as ex
from acep.pattern.evaluation import Compiled
from acep.pattern.walk import indexes, means_each, steps_back
from acep.plan.compile import Plan
from acep.reference.engine import CrossingHistory, Event, bound_events, path_of

__all__ = ["count_breaks", "crossings_of", "failing_values", "having_holds", "return_values"]

Steps = list[tuple[Event, str]]


def having_holds(plan: Plan, steps: Steps, part: Compiled | None = None) -> bool:
    """Return whether a binding passes HAVING, or a ``part`` of it."""
    condition = part or plan.having
    return condition is None or _evaluate(plan, condition, steps) is True


def return_values(plan: Plan, steps: Steps) -> tuple[Any, ...]:
    """Return the values of RETURN for a binding."""
    return tuple(_evaluate(plan, c, steps) for _, c in plan.returns)


def _evaluate(plan: Plan, compiled: Compiled, steps: Steps) -> Any:
    bound = bound_events(steps)
    return compiled.run([_summary(plan, leaf, bound.get(leaf.var, [])) for leaf in compiled.leaves])


def _summary(plan: Plan, leaf: ex.Leaf, events: Sequence[Event]) -> Any:
    """Evaluate a reference to a variable as a whole; null if nothing is bound."""
    match leaf:
        case ex.Length():
            return len(events)
        case ex.Attribute(index=int() as n, name=name):
            return events[n - 1].row[plan.row.index(name)] if n <= len(events) else None
        case ex.Attribute(name=name):
            return events[-1].row[plan.row.index(name)] if events else None
        case ex.Aggregate(function="count", name=None):
            return len(events)
        case ex.Aggregate(function=function, name=name):
            assert name is not None
            column = plan.row.index(name)
            return aggregate(function, [e.row[column] for e in events], plan.schema.scale(name) or 0)


def aggregate(function: str, values: list[Any], scale: int) -> Any:
    """Aggregate values without the nulls; ``first`` and ``last`` may return a null.

    Values are units of 10**-``scale``, and so is the aggregate, except for the average, which is a plain number.
    """
    entry = AGGREGATES[function]
    assert entry.of_values is not None
    return entry.of_values(values if entry.keeps_nulls else present_values(values), scale)


def crossings_of(history: CrossingHistory | None) -> list[tuple[int, Crossing]]:
    """Return the negations walked past, each with the number of the next step."""
    return [(j, c) for j, (crossings, _) in enumerate(path_of(history)) for c in crossings]


def count_breaks(
    plan: Plan, steps: Steps, history: CrossingHistory | None, j: int, crossing: Crossing, events: Sequence[Event]
) -> int:
    """Count the ``events`` that break a negation walked past just before step ``j``.

    The events have the negation's types and positions where it forbids them.
    """
    negation = plan.automaton.negations[crossing.negation]
    conjuncts = plan.negated[crossing.negation]
    resets = [r for _, r in path_of(history)]
    views: dict[str, list[Event]] = {}
    for compiled in conjuncts:
        for leaf in compiled.leaves:
            if leaf.var != negation.var and leaf.var not in views:
                views[leaf.var] = _events_in_reach(plan, steps, resets, j, crossing, leaf.var)
    if any(not events_of_var for events_of_var in views.values()):
        return 0
    return sum(all(_holds(plan, c, {**views, negation.var: [event]}) for c in conjuncts) for event in events)


def _events_in_reach(
    plan: Plan, steps: Steps, resets: list[tuple[int, ...]], j: int, crossing: Crossing, var: str
) -> list[Event]:
    """Return the events of ``var`` that a negation's conjunct refers to (docs/reference/semantics.md, "Negation")."""
    groups = plan.automaton.groups
    around = plan.automaton.negations[crossing.negation].groups
    common = [g for g in around if var in groups[g]]
    first, last = 0, len(steps)
    if common:
        enclosing = set(around[: around.index(common[-1]) + 1])
        entered = enclosing.intersection(crossing.entered) or j == 0
        inside = j if entered else j - 1
        starts = [s for s in range(len(steps)) if s == 0 or enclosing.intersection(resets[s])]
        first = max(s for s in starts if s <= inside)
        last = min((s for s in starts if s > inside), default=len(steps))
    seen: list[Event] = []
    for s in range(first, last):
        if s > first and any(var in groups[g] for g in resets[s]):
            seen = []
        event, bound = steps[s]
        if bound == var:
            seen.append(event)
    return seen


def _holds(plan: Plan, compiled: Compiled, env: dict[str, list[Event]]) -> bool:
    """Return whether a conjunct holds over given events, for each event of the Kleene variables it ranges over."""
    _, numbered = indexes(compiled.leaves, plan.kleene)
    if any(number > len(env[var]) for var, number in numbered.items()):
        return False
    return failing_values(plan, compiled, env) is None


def failing_values(
    plan: Plan, compiled: Compiled, env: dict[str, list[Event]]
) -> tuple[list[Any], dict[str, int]] | None:
    """Return the first values for which a conjunct is not true, and the index of the event of each Kleene variable
    that it ranges over; ``None`` if there are none."""
    first_indexes, _ = indexes(compiled.leaves, plan.kleene)
    for combination in product(*(range(first, len(env.get(var, ()))) for var, first in first_indexes.items())):
        event_indexes = dict(zip(first_indexes, combination, strict=True))
        values = []
        for leaf in compiled.leaves:
            events = env.get(leaf.var, ())
            if leaf.var in first_indexes and means_each(leaf):
                values.append(_value_at(plan, leaf, events, event_indexes[leaf.var]))
            else:
                values.append(_summary(plan, leaf, events))
        if compiled.run(values) is not True:
            return values, event_indexes
    return None


def _value_at(plan: Plan, leaf: ex.Leaf, events: Sequence[Event], i: int) -> Any:
    match leaf:
        case ex.Attribute(index=index, name=name):
            return events[i - steps_back(index)].row[plan.row.index(name)]
        case _:
            return _summary(plan, leaf, events[:i])
