"""Tell of which queries the matches that OUTPUT chooses are runs of one variable, and what bounds such a run.

A *run* is a stretch of the rows that fit the variable. Where matches are runs, or lie in runs that come before them,
those that OUTPUT chooses are taken in the order of their starts or ends, and no other match is made
(docs/internals/row_patterns.md, "SASE+ queries").
"""

from __future__ import annotations

from dataclasses import dataclass

from acep.pattern import expressions as ex
from acep.pattern.tree import Component, Output, Repeat, Sequence, SkipTarget, Strategy
from acep.pattern.walk import leaves_of, steps_back
from acep.plan.chosen.run_conditions import (
    AT_FIRST,
    AT_LAST,
    LatestStart,
    NotRunsError,
    StartKind,
    event_condition,
    fails_for_good,
    is_of_first,
    latest_start,
    parts_of_and,
)
from acep.plan.compile import Plan

__all__ = ["RunsPlan", "reason_against_runs", "runs_of"]


@dataclass(frozen=True)
class RunsPlan:
    """Say how far runs reach, and which one is a match.

    ``fitting``: the conditions of each event, which read its attributes; ``starting``: those of the first one.
    ``linking``: conditions of an event and the one ``steps`` before it, as (condition, steps); they are asked of the
    events after the first ``steps``. Attributes of the earlier event have names that :func:`earlier` gives.
    ``adjacent``: the events follow each other in their partition. ``low``, ``high``: the least and the most events of a
    match. ``ends``: the condition of the whole run. ``output`` and ``skip`` are those of the query. ``needs_order``:
    the ids must rise in the order of the stream, ``"all"`` or only those of one ``"time"``, or need not (``""``).
    """

    types: tuple[str, ...]
    fitting: tuple[ex.Expr, ...]
    starting: tuple[ex.Expr, ...]
    linking: tuple[tuple[ex.Expr, int], ...]
    adjacent: bool
    low: int
    high: int | None
    ends: LatestStart | None
    output: Output
    skip: SkipTarget | None
    needs_order: str


def reason_against_runs(plan: Plan) -> str | None:
    """Return why the matches that OUTPUT chooses are not runs of one variable, or ``None`` if they are.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> series = "PATTERN a+ x[] WHERE skip_till_next_match(x[]) { [k] } HAVING sum(x[].v) > 3 OUTPUT NON OVERLAP"
    >>> reason_against_runs(assumed_plan(acep.parse(series)))
    'its HAVING may fail for a run and hold for a part of it'
    >>> reason_against_runs(assumed_plan(acep.parse(series.replace("sum", "max"))))
    """
    try:
        _runs_of(plan)
    except NotRunsError as reason:
        return str(reason)
    return None


def runs_of(plan: Plan) -> RunsPlan | None:
    """Return what the runs of a plan are; ``None`` if its matches are not runs."""
    try:
        return _runs_of(plan)
    except NotRunsError:
        return None


def _runs_of(plan: Plan) -> RunsPlan:
    types, low, high = _repetition(plan)
    strategy = plan.query.strategy
    if strategy is Strategy.SKIP_TILL_ANY_MATCH and high not in (None, 1):
        raise NotRunsError("a longer run has more matches of the most events")
    if strategy is Strategy.STRICT_CONTIGUITY and plan.keys:
        raise NotRunsError("events of other partitions break its runs")
    fitting: list[ex.Expr] = []
    starting: list[ex.Expr] = []
    linking: list[tuple[ex.Expr, int]] = []
    ends: list[LatestStart] = []
    for predicate in plan.predicates:
        kind, steps = _scope_of(predicate.expr)
        if kind == "each":
            fitting.append(event_condition(predicate.expr))
        elif kind == AT_FIRST:
            starting.append(event_condition(predicate.expr))
        elif kind == "pair":
            _check_pair(predicate.expr, steps, plan)
            linking.append((event_condition(predicate.expr), steps))
        else:
            ends.append(latest_start(predicate.expr, plan))
    for part in [] if plan.having is None else parts_of_and(plan.having.expr):
        if is_of_first(part):
            starting.append(event_condition(part))
        else:
            ends.append(latest_start(part, plan))
    output = plan.query.output
    order = "time" if output is Output.NON_OVERLAP else ""
    if strategy is Strategy.SKIP_TILL_ANY_MATCH and not output.is_longest:
        order = "all"
    return RunsPlan(
        types=types,
        fitting=tuple(fitting),
        starting=tuple(starting),
        linking=tuple(linking),
        adjacent=strategy.contiguous,
        low=max(low, 1),
        high=high,
        ends=LatestStart(StartKind.BOTH, parts=tuple(ends)) if ends else None,
        output=output,
        skip=plan.query.skip,
        needs_order=order,
    )


def _repetition(plan: Plan) -> tuple[tuple[str, ...], int, int | None]:
    """Return the types of the only variable, and how often it is repeated."""
    query, automaton = plan.query, plan.automaton
    if not query.output.is_sequential:
        raise NotRunsError("all of its matches are given")
    if query.graph is not None or plan.dynamic or plan.parts:
        raise NotRunsError("its automaton is written by hand, or may change")
    if plan.sources:
        raise NotRunsError("its events are matches")
    if automaton.costs.budget:
        raise NotRunsError("events may be missing")
    if automaton.negations:
        raise NotRunsError("it has negations")
    pattern = query.pattern
    while isinstance(pattern, Sequence) and len(pattern.items) == 1:
        (pattern,) = pattern.items
    if isinstance(pattern, Component):
        return pattern.types, 1, 1
    if isinstance(pattern, Repeat) and isinstance(pattern.item, Component):
        return pattern.item.types, pattern.low, pattern.high
    raise NotRunsError("it has more than one variable")


def _scope_of(expr: ex.Expr) -> tuple[str, int]:
    """Return what a condition of WHERE is about: each event, the first one, a pair of events and how far they are
    apart, or the whole run."""
    leaves = leaves_of(expr)
    if not leaves:
        raise NotRunsError("a condition reads no event")
    indexes = {leaf.index for leaf in leaves if isinstance(leaf, ex.Attribute)}
    if all(isinstance(leaf, ex.Attribute) for leaf in leaves):
        if indexes <= {None, "i"}:
            return "each", 0
        if indexes == {1}:
            return AT_FIRST, 0
        distances = {steps_back(index) for index in indexes if steps_back(index)}
        if len(distances) == 1 and all(index in (None, "i") or steps_back(index) for index in indexes):
            return "pair", distances.pop()
    if any(isinstance(leaf, ex.Aggregate) and leaf.scope == "before" for leaf in leaves):
        raise NotRunsError("a condition reads an aggregate of the events before each")
    if indexes <= {AT_LAST, 1}:
        return "whole", 0
    raise NotRunsError("a condition ties each event to one that is not at a fixed distance")


def _check_pair(expr: ex.Expr, steps: int, plan: Plan) -> None:
    """Refuse a condition of a pair for which a run that skips events may go on where it fails."""
    strategy = plan.query.strategy
    if strategy.contiguous:
        return
    if not fails_for_good(expr, plan):
        raise NotRunsError("a run may skip an event that fails a condition, and go on")
    if strategy is Strategy.SKIP_TILL_ANY_MATCH and steps > 1:
        raise NotRunsError("a condition of events that are not neighbours is not asked of a shorter run")
