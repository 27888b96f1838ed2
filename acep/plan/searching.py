"""Find the plans whose match points can be searched for from the last event of a match back, without partial matches.

The search engine keeps events. When one comes that may be the last of a match, it looks for the others (lazy
evaluation, Kolchinsky, Sharfman and Schuster 2015). That is possible where a run may pass over any event, so that only
the bound events decide, and where matches have a small number of forms: sequences of single events, of which an error
budget may leave some out. docs/internals/search.md has the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from acep.automaton.registers import Check
from acep.pattern.tree import Strategy
from acep.plan import dominance
from acep.plan.compile import Plan

__all__ = ["reason_against"]

# acep/native/src/search/search_plan.cpp has the same.
MOST_EVENTS = 16
MOST_PATHS = 64
MOST_COLUMNS = 64
MOST_CLASSES = 31


def reason_against(plan: Plan) -> str | None:
    """Return why the match points of a plan cannot be searched for; ``None`` if they can.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> reason_against(assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9")))
    >>> reason_against(assumed_plan(acep.parse("PATTERN SEQ(A+ a[], B b) WHERE b.x > a[1].x WITHIN 9")))
    'its matches have no small number of forms'
    """
    if against := dominance.reason_against(plan):
        return against
    if plan.query.strategy is not Strategy.SKIP_TILL_ANY_MATCH:
        return "the strategy decides which events a run must take"
    if plan.window.span is None or plan.window.counted:
        return "its window is not one of time"
    forms = "its matches have no small number of forms"
    # A predicate may derive a column.
    if plan.kleene or any(plan.program.ending) or len(plan.columns) + len(plan.predicates) > MOST_COLUMNS:
        return forms
    steps = [step for outgoing in plan.program.steps for step in outgoing]
    checks = [check for step in steps for check in (*step.leaving, *step.binding)]
    if len(steps) > MOST_CLASSES or not all(map(_is_of_single_events, checks)):
        return forms
    lengths = [*islice(_lengths(plan, 0, 0, 0), MOST_PATHS + 1)]
    return forms if len(lengths) > MOST_PATHS or max(lengths) > MOST_EVENTS else None


def _is_of_single_events(check: Check) -> bool:
    """Return whether a check reads the current event and single events before it."""
    single = all(source.kind in ("event", "one", "register") for source in check.sources)
    return single and not check.loops and check.only is None


def _lengths(plan: Plan, state: int, error: int, length: int) -> Iterator[int]:
    """Yield the numbers of events on the paths through the automaton from a state on that keep to the error budget."""
    budget = plan.automaton.costs.budget
    if length > MOST_EVENTS:
        yield length
        return
    if length and any(error + accept.cost <= budget for accept in plan.arcs.states[state].accepts):
        yield length
    for step in plan.program.steps[state]:
        to_come = plan.arcs.states[step.arc.target].cost_to_end
        if to_come is not None and error + step.arc.weight + to_come <= budget:
            yield from _lengths(plan, step.arc.target, error + step.arc.weight, length + 1)
