"""Tell whether the matches that a query's OUTPUT chooses are found in their order, without making all matches."""

from __future__ import annotations

from dataclasses import dataclass

from acep.pattern.walk import components
from acep.plan.chosen.query_intervals import intervals_of, reason_against_intervals
from acep.plan.chosen.query_runs import reason_against_runs, runs_of
from acep.plan.compile import Plan

__all__ = ["QueryOrder", "order_of_query"]


@dataclass(frozen=True)
class QueryOrder:
    """Whether the ordered engine runs a query (``is_ordered``), and why. ``is_tied``: it follows each event with which
    a match may begin to the end of the window."""

    is_ordered: bool
    why: str
    is_tied: bool = False


def order_of_query(plan: Plan) -> QueryOrder:
    """Return whether the ordered engine of the native core finds the matches that a query chooses, and why.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> order_of_query(assumed_plan(acep.parse("PATTERN a+ x[] OUTPUT NON OVERLAP"))).why
    'matches are runs of one variable, taken one after another'
    >>> order_of_query(assumed_plan(acep.parse("PATTERN SEQ(a x, b y) HAVING y.v > x.v OUTPUT NON OVERLAP"))).why
    'HAVING looks at whole matches'
    """
    if runs_of(plan) is not None:
        return QueryOrder(True, "matches are runs of one variable, taken one after another")
    states = intervals_of(plan)
    if states is not None and states.is_tied:
        return QueryOrder(
            True,
            "conditions are functions of the row and of the first one of the match, so that the chosen matches are "
            "found by a pass over rows from each start, at most to the end of the window; on streams all matches are "
            "made",
            is_tied=True,
        )
    if states is not None:
        return QueryOrder(
            True, "conditions are functions of the row, so that the chosen matches are found by passes over rows"
        )
    is_single = plan.query.graph is None and len(components(plan.query.pattern)) == 1
    reason = reason_against_runs(plan) if is_single else reason_against_intervals(plan)
    return QueryOrder(False, reason or "")
