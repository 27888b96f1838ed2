"""Tell of conditions how they bound a run: of its events by one, of neighbours in time, and of the whole run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from acep.pattern import expressions as ex
from acep.pattern.walk import children, leaves_of, steps_back, with_children
from acep.plan.compile import Plan

__all__ = [
    "AT_FIRST",
    "AT_LAST",
    "LatestStart",
    "NotRunsError",
    "StartKind",
    "can_only_fail",
    "earlier",
    "event_condition",
    "fails_for_good",
    "is_of_first",
    "latest_start",
    "parts_of_and",
]

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
AT_FIRST, AT_LAST = "first", "last"

GrowthOf = Callable[[ex.Attribute], int | None]


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


class NotRunsError(Exception):
    """The matches of a query are not runs, for the reason that the error names."""


def earlier(name: str) -> str:
    """Return the name of an attribute of the earlier one of two events."""
    return f"{name} before"


def fails_for_good(expr: ex.Expr, plan: Plan) -> bool:
    """Return whether a condition of two events can only fail, and not come true, as the time between them grows."""

    def growth_of(attribute: ex.Attribute) -> int | None:
        if attribute.name != plan.schema.ts:
            return None
        return -1 if steps_back(attribute.index) else 1

    return can_only_fail(expr, growth_of)


def can_only_fail(expr: ex.Expr, growth_of: GrowthOf) -> bool:
    """Return whether a condition can only fail, and not come true, as time passes. ``growth_of``: see ``_growth``."""
    if not isinstance(expr, ex.Binary) or expr.op not in MIRRORED:
        return False
    less, more = (expr.left, expr.right) if expr.op in ("<", "<=") else (expr.right, expr.left)
    return _growth(less, growth_of) in (0, 1) and _growth(more, growth_of) in (0, -1)


def _growth(expr: ex.Expr, growth_of: GrowthOf) -> int | None:
    """Return 1 if a value can only rise as time passes, -1 if it can only fall, 0 if it stays, ``None`` if it may do
    anything. ``growth_of`` returns the same of an attribute."""
    match expr:
        case ex.Literal(value=bool() | int() | float()) | ex.Duration() | ex.Timestamp():
            return 0
        case ex.Attribute():
            return growth_of(expr)
        case ex.Unary(op="-", operand=operand):
            growth = _growth(operand, growth_of)
            return None if growth is None else -growth
        case ex.Binary(op="+" | "-" as op, left=left, right=right):
            growths = _growth(left, growth_of), _growth(right, growth_of)
            if None in growths:
                return None
            x, y = int(growths[0] or 0), int(growths[1] or 0) * (1 if op == "+" else -1)
            return x + y if 0 in (x, y) else x if x == y else None
        case ex.Binary(op="/", left=left, right=ex.Duration(ns=amount) | ex.Literal(value=int() | float() as amount)):
            return _growth(left, growth_of) if amount > 0 else None
    return None


def parts_of_and(expr: ex.Expr) -> list[ex.Expr]:
    """Return the conditions that AND joins at the top."""
    if isinstance(expr, ex.Binary) and expr.op == "and":
        return [*parts_of_and(expr.left), *parts_of_and(expr.right)]
    return [expr]


def is_of_first(expr: ex.Expr) -> bool:
    """Return whether a condition of HAVING is about the first event alone."""
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


def latest_start(expr: ex.Expr, plan: Plan) -> LatestStart:
    """Return a condition of a whole run as one that stays true if events come before the first one."""
    leaves = leaves_of(expr)
    if all(_place_of(leaf) == AT_LAST for leaf in leaves):
        return LatestStart(StartKind.END, event_condition(expr))
    if isinstance(expr, ex.Binary) and expr.op in ("and", "or"):
        parts = latest_start(expr.left, plan), latest_start(expr.right, plan)
        return LatestStart(StartKind.BOTH if expr.op == "and" else StartKind.EITHER, parts=parts)
    if isinstance(expr, ex.Binary) and expr.op in MIRRORED:
        for op, side, bound in (
            (expr.op, expr.left, expr.right),
            (MIRRORED[expr.op], expr.right, expr.left),
        ):
            if not leaves_of(bound) and (condition := _start_for_bound(op, side, bound)) is not None:
                return condition
        if _grows_with_run(expr, plan):
            return LatestStart(StartKind.SPAN, _of_ends(expr))
    raise NotRunsError("its HAVING may fail for a run and hold for a part of it")


def _start_for_bound(op: str, side: ex.Expr, bound: ex.Expr) -> LatestStart | None:
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
    return fails_for_good(replace(pair, op=MIRRORED[expr.op]), plan)


def _as_pair(expr: ex.Expr) -> ex.Expr:
    """Return an expression over the ends of a run as one over an event and an earlier one."""
    place = _place_of(expr) if isinstance(expr, ex.Attribute | ex.Aggregate) else None
    if place is not None:
        assert isinstance(expr, ex.Attribute | ex.Aggregate)
        assert expr.name is not None
        return ex.Attribute(expr.var, "i-1" if place == AT_FIRST else "i", expr.name)
    return with_children(expr, [_as_pair(part) for part in children(expr)])


def _of_ends(expr: ex.Expr) -> ex.Expr:
    return event_condition(_as_pair(expr))


def event_condition(expr: ex.Expr) -> ex.Expr:
    """Return an expression whose references are attributes of one event, or of an earlier one, by name."""
    match expr:
        case ex.Attribute(name=name, index=index):
            return ex.Attribute("", None, earlier(name) if steps_back(index) else name)
        case ex.Aggregate(name=str(name)):
            return ex.Attribute("", None, name)
    return with_children(expr, [event_condition(part) for part in children(expr)])
