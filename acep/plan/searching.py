"""Find the plans whose match points can be searched for from the last event of a match back, without partial matches.

The search engine keeps events. When one comes that may be the last of a match, it looks for the others (lazy evaluation,
Kolchinsky, Sharfman and Schuster 2015). That is possible where a run may pass over any event, so that only the events
bound decide, and these are a fixed number, one for each variable. docs/internals/search.md has the rest.
"""

from __future__ import annotations

from acep.automaton.registers import Check
from acep.pattern.tree import Strategy
from acep.plan import dominance
from acep.plan.compile import Plan

__all__ = ["reason_against"]

MOST_VARIABLES = 16  # acep/native/src/search/search_plan.cpp has the same
MOST_COLUMNS = 64


def reason_against(plan: Plan) -> str | None:
    """Return why the match points of a plan cannot be searched for; ``None`` if they can.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> reason_against(assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9")))
    >>> reason_against(assumed_plan(acep.parse("PATTERN SEQ(A+ a[], B b) WHERE b.x > a[1].x WITHIN 9")))
    'its matches have no fixed number of events'
    """
    if against := dominance.reason_against(plan):
        return against
    if plan.query.strategy is not Strategy.SKIP_TILL_ANY_MATCH:
        return "the strategy decides which events a run must take"
    if plan.automaton.costs.budget:
        return "events may be missing"
    if plan.window.span is None or plan.window.counted:
        return "its window is not one of time"
    states, steps = plan.arcs.states, plan.program.steps
    if any(len(step) > 1 for step in steps) or any(bool(state.accepts) == bool(steps[state.number]) for state in states):
        return "its matches have no fixed number of events"
    checks = [check for here in steps for step in here for check in (*step.leaving, *step.binding)]
    endings = [check for here in plan.program.ending for check in here]
    if plan.kleene or endings or not all(map(_is_of_single_events, checks)):
        return "its matches have no fixed number of events"
    if not 2 <= len(plan.variables) <= MOST_VARIABLES or len(plan.columns) > MOST_COLUMNS:
        return f"it has a single event, or more than {MOST_VARIABLES} variables or {MOST_COLUMNS} attributes"
    return None


def _is_of_single_events(check: Check) -> bool:
    """Return whether a check reads the current event and single events before it."""
    single = all(source.kind in ("event", "one", "register") for source in check.sources)
    return single and not check.loops and check.only is None
