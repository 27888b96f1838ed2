"""Tell of which queries the matches that OUTPUT chooses are runs of one variable, and what bounds such a run.

A *run* is a stretch of the rows that fit the variable. Where matches are runs, or lie in runs that come before them,
those of NON OVERLAP and LONGEST NON OVERLAP are taken in the order of their starts or ends, and no other match is made
(docs/internals/row_patterns.md, "SASE+ queries").
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from acep.pattern import expressions as ex
from acep.pattern.tree import Component, Output, Repeat, Sequence, Strategy
from acep.pattern.walk import children, leaves_of, steps_back, with_children
from acep.plan.compile import Plan

__all__ = ["LatestStart", "RunsPlan", "StartKind", "earlier", "reason_against_runs", "runs_of"]

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
AT_FIRST, AT_LAST = "first", "last"


class StartKind:
    """How the latest start for which a condition holds is computed for each end of a run."""

    LENGTH = "length"
    """The run has at least ``threshold`` events."""
    ANY = "any"
    """The condition holds for an event of the run."""
    VALUES = "values"
    """At least ``threshold`` events of the run have a value of a column."""
    DISTINCT = "distinct"
    """The run has at least ``threshold`` different values of a column."""
    SPAN = "span"
    """The condition holds for the times of the first and the last event."""
    END = "end"
    """The condition holds for the last event."""
    BOTH = "and"
    EITHER = "or"


@dataclass(frozen=True)
class LatestStart:
    """A condition of a whole run that stays true if events come before its first one.

    ``expr`` is asked of single events, whose attributes it reads without a variable; ``column`` is the one that is
    counted; ``parts`` are those that AND or OR joins."""

    kind: str
    expr: ex.Expr | None = None
    threshold: int = 0
    column: str | None = None
    parts: tuple[LatestStart, ...] = ()


@dataclass(frozen=True)
class RunsPlan:
    """What a run is, and which one is a match.

    ``fitting``: the conditions of each event, which read its attributes; ``starting``: those of the first one.
    ``linking``: conditions of an event and the one ``steps`` before it, as (condition, steps); they are asked of the
    events after the first ``steps``. Attributes of the earlier event have names that :func:`earlier` gives.
    ``adjacent``: the events follow each other in their partition. ``low``, ``high``: the least and the most events of a
    match. ``ends``: the condition of the whole run. ``is_longest``: the first match is the longest one from the first
    start; else it is the longest one to the first end. ``needs_order``: the ids must rise in the order of the stream,
    ``"all"`` or only those of one ``"time"``, or need not (``""``).
    """

    types: tuple[str, ...]
    fitting: tuple[ex.Expr, ...]
    starting: tuple[ex.Expr, ...]
    linking: tuple[tuple[ex.Expr, int], ...]
    adjacent: bool
    low: int
    high: int | None
    ends: LatestStart | None
    is_longest: bool
    needs_order: str


class _NotRunsError(Exception):
    """The matches of a query are not runs, for the reason that the error names."""


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
    except _NotRunsError as reason:
        return str(reason)
    return None


def runs_of(plan: Plan) -> RunsPlan | None:
    """Return what the runs of a plan are; ``None`` if its matches are not runs."""
    try:
        return _runs_of(plan)
    except _NotRunsError:
        return None


def earlier(name: str) -> str:
    """Return the name of an attribute of the earlier one of two events."""
    return f"{name} before"


def _runs_of(plan: Plan) -> RunsPlan:
    types, low, high = _repetition(plan)
    strategy = plan.query.strategy
    if strategy is Strategy.SKIP_TILL_ANY_MATCH and high not in (None, 1):
        raise _NotRunsError("a longer run has more matches of the most events")
    if strategy is Strategy.STRICT_CONTIGUITY and plan.keys:
        raise _NotRunsError("events of other partitions break its runs")
    fitting: list[ex.Expr] = []
    starting: list[ex.Expr] = []
    linking: list[tuple[ex.Expr, int]] = []
    ends: list[LatestStart] = []
    for predicate in plan.predicates:
        kind, steps = _scope_of(predicate.expr)
        if kind == "each":
            fitting.append(_of_event(predicate.expr))
        elif kind == AT_FIRST:
            starting.append(_of_event(predicate.expr))
        elif kind == "pair":
            _check_pair(predicate.expr, steps, plan)
            linking.append((_of_event(predicate.expr), steps))
        else:
            ends.append(_latest_start(predicate.expr, plan))
    for part in [] if plan.having is None else _joined_by_and(plan.having.expr):
        if _is_of_first(part):
            starting.append(_of_event(part))
        else:
            ends.append(_latest_start(part, plan))
    is_longest = plan.query.output is Output.LONGEST_NON_OVERLAP
    order = "all" if strategy is Strategy.SKIP_TILL_ANY_MATCH else "time"
    return RunsPlan(
        types=types,
        fitting=tuple(fitting),
        starting=tuple(starting),
        linking=tuple(linking),
        adjacent=strategy.contiguous,
        low=max(low, 1),
        high=high,
        ends=LatestStart(StartKind.BOTH, parts=tuple(ends)) if ends else None,
        is_longest=is_longest,
        needs_order="" if is_longest else order,
    )


def _repetition(plan: Plan) -> tuple[tuple[str, ...], int, int | None]:
    """Return the types of the only variable, and how often it is repeated."""
    query, automaton = plan.query, plan.automaton
    if not query.output.apart:
        raise _NotRunsError("all of its matches are given")
    if query.graph is not None or plan.dynamic or plan.parts:
        raise _NotRunsError("its automaton is written by hand, or may change")
    if plan.sources:
        raise _NotRunsError("its events are matches")
    if automaton.costs.budget:
        raise _NotRunsError("events may be missing")
    if automaton.negations:
        raise _NotRunsError("it has negations")
    pattern = query.pattern
    while isinstance(pattern, Sequence) and len(pattern.items) == 1:
        (pattern,) = pattern.items
    if isinstance(pattern, Component):
        return pattern.types, 1, 1
    if isinstance(pattern, Repeat) and isinstance(pattern.item, Component):
        return pattern.item.types, pattern.low, pattern.high
    raise _NotRunsError("it has more than one variable")


def _scope_of(expr: ex.Expr) -> tuple[str, int]:
    """Return what a condition of WHERE is about: each event, the first one, a pair of events and how far they are
    apart, or the whole run."""
    leaves = leaves_of(expr)
    if not leaves:
        raise _NotRunsError("a condition reads no event")
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
        raise _NotRunsError("a condition reads an aggregate of the events before each")
    if indexes <= {AT_LAST, 1}:
        return "whole", 0
    raise _NotRunsError("a condition ties each event to one that is not at a fixed distance")


def _check_pair(expr: ex.Expr, steps: int, plan: Plan) -> None:
    """Refuse a condition of a pair for which a run that skips events may go on where it fails."""
    strategy = plan.query.strategy
    if strategy.contiguous:
        return
    if not _fails_for_good(expr, plan):
        raise _NotRunsError("a run may skip an event that fails a condition, and go on")
    if strategy is Strategy.SKIP_TILL_ANY_MATCH and steps > 1:
        raise _NotRunsError("a condition of events that are not neighbours is not asked of a shorter run")


def _fails_for_good(expr: ex.Expr, plan: Plan) -> bool:
    """Return whether a condition of two events can only fail, and not come true, as the time between them grows."""
    if not isinstance(expr, ex.Binary) or expr.op not in MIRRORED:
        return False
    less, more = (expr.left, expr.right) if expr.op in ("<", "<=") else (expr.right, expr.left)
    return _growth(less, plan) in (0, 1) and _growth(more, plan) in (0, -1)


def _growth(expr: ex.Expr, plan: Plan) -> int | None:
    """Return 1 if a value can only rise as the time between two events grows, -1 if it can only fall, 0 if it stays,
    ``None`` if it may do anything."""
    match expr:
        case ex.Literal(value=bool() | int() | float()) | ex.Duration() | ex.Timestamp():
            return 0
        case ex.Attribute(name=name, index=index) if name == plan.schema.ts:
            return -1 if steps_back(index) else 1
        case ex.Unary(op="-", operand=operand):
            growth = _growth(operand, plan)
            return None if growth is None else -growth
        case ex.Binary(op="+" | "-" as op, left=left, right=right):
            growths = _growth(left, plan), _growth(right, plan)
            if None in growths:
                return None
            x, y = int(growths[0] or 0), int(growths[1] or 0) * (1 if op == "+" else -1)
            return x + y if 0 in (x, y) else x if x == y else None
        case ex.Binary(op="/", left=left, right=ex.Duration(ns=amount) | ex.Literal(value=int() | float() as amount)):
            return _growth(left, plan) if amount > 0 else None
    return None


# ---- conditions of the whole run


def _joined_by_and(expr: ex.Expr) -> list[ex.Expr]:
    if isinstance(expr, ex.Binary) and expr.op == "and":
        return [*_joined_by_and(expr.left), *_joined_by_and(expr.right)]
    return [expr]


def _is_of_first(expr: ex.Expr) -> bool:
    leaves = leaves_of(expr)
    return bool(leaves) and all(_place_of(leaf) == AT_FIRST for leaf in leaves)


def _place_of(leaf: ex.Leaf) -> str | None:
    """Return at which end of the run a reference of HAVING reads."""
    match leaf:
        case ex.Attribute(index=1) | ex.Aggregate(function="first", scope="all"):
            return AT_FIRST
        case ex.Attribute(index=None | "last") | ex.Aggregate(function="last", scope="all"):
            return AT_LAST
    return None


def _latest_start(expr: ex.Expr, plan: Plan) -> LatestStart:
    """Return a condition of a whole run as one that stays true if events come before the first one."""
    leaves = leaves_of(expr)
    if all(_place_of(leaf) == AT_LAST for leaf in leaves):
        return LatestStart(StartKind.END, _of_event(expr))
    if isinstance(expr, ex.Binary) and expr.op in ("and", "or"):
        parts = _latest_start(expr.left, plan), _latest_start(expr.right, plan)
        return LatestStart(StartKind.BOTH if expr.op == "and" else StartKind.EITHER, parts=parts)
    if isinstance(expr, ex.Binary) and expr.op in MIRRORED:
        for op, side, bound in (
            (expr.op, expr.left, expr.right),
            (MIRRORED[expr.op], expr.right, expr.left),
        ):
            if not leaves_of(bound) and (condition := _bounded(op, side, bound)) is not None:
                return condition
        if _grows_with_run(expr, plan):
            return LatestStart(StartKind.SPAN, _of_ends(expr))
    raise _NotRunsError("its HAVING may fail for a run and hold for a part of it")


def _bounded(op: str, side: ex.Expr, bound: ex.Expr) -> LatestStart | None:
    """Return an aggregate that is compared with a constant as a condition; ``None`` if it may fail for a longer run."""
    up = op in (">", ">=")
    match side:
        case ex.Aggregate(function="max", scope="all", name=str(name)) if up:
            return LatestStart(StartKind.ANY, ex.Binary(op, ex.Attribute("", None, name), bound))
        case ex.Aggregate(function="min", scope="all", name=str(name)) if not up:
            return LatestStart(StartKind.ANY, ex.Binary(op, ex.Attribute("", None, name), bound))
    if not up or not isinstance(bound, ex.Literal) or type(bound.value) is not int:
        return None
    threshold = bound.value + (op == ">")
    match side:
        case ex.Length() | ex.Aggregate(function="count", scope="all", name=None):
            return LatestStart(StartKind.LENGTH, threshold=threshold)
        case ex.Aggregate(function="count", scope="all", name=str(name)):
            return LatestStart(StartKind.VALUES, threshold=threshold, column=name)
        case ex.Aggregate(function=ex.COUNT_DISTINCT, scope="all", name=str(name)):
            return LatestStart(StartKind.DISTINCT, threshold=threshold, column=name)
    return None


def _grows_with_run(expr: ex.Expr, plan: Plan) -> bool:
    """Return whether a comparison reads only the times of the ends of a run, and stays true as these move apart."""
    if any(_place_of(leaf) is None for leaf in leaves_of(expr)):
        return False
    assert isinstance(expr, ex.Binary)
    pair = _as_pair(expr)
    assert isinstance(pair, ex.Binary)
    return _fails_for_good(replace(pair, op=MIRRORED[expr.op]), plan)


def _as_pair(expr: ex.Expr) -> ex.Expr:
    """Return an expression over the ends of a run as one over an event and an earlier one."""
    place = _place_of(expr) if isinstance(expr, ex.Attribute | ex.Aggregate) else None
    if place is not None:
        assert isinstance(expr, ex.Attribute | ex.Aggregate)
        assert expr.name is not None
        return ex.Attribute(expr.var, "i-1" if place == AT_FIRST else "i", expr.name)
    return with_children(expr, [_as_pair(part) for part in children(expr)])


def _of_ends(expr: ex.Expr) -> ex.Expr:
    return _of_event(_as_pair(expr))


def _of_event(expr: ex.Expr) -> ex.Expr:
    """Return an expression whose references are attributes of one event, or of an earlier one, by name."""
    match expr:
        case ex.Attribute(name=name, index=index):
            return ex.Attribute("", None, earlier(name) if steps_back(index) else name)
        case ex.Aggregate(name=str(name)):
            return ex.Attribute("", None, name)
    return with_children(expr, [_of_event(part) for part in children(expr)])
