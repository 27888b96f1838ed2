"""Derive, for dominance, how each register of a predicate must change so that the predicate is easier to pass.

For each register that a predicate reads, this derives a demand on two of its values, `mine` and `other`. If the demands
hold, the predicate passes with `mine` whenever it passes with `other`. docs/internals/dominance.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from acep.functions.aggregates import AGGREGATES
from acep.pattern import expressions as ex
from acep.pattern.evaluation import in_ticks
from acep.pattern.walk import leaves_of
from acep.plan.schema import Kind

__all__ = ["EQUAL", "Demand", "Scene", "demands_on", "unite_demands"]

MAX_INTEGER = 2**63 - 1
LEAST_BOUND = 2**32  # integers are seldom larger, and a demand with a smaller bound would rarely hold
NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}
WORDS = (Kind.INT, Kind.TIMESTAMP)


@dataclass(frozen=True)
class Demand:
    """A demand on two values of a register. ``sign`` 0: they are equal; 1: mine is not less; -1: mine is not greater.
    ``bound``: mine is in [-bound, bound]. Outside of it, arithmetic could overflow to null for mine but not for the
    other value."""

    sign: int
    bound: int = MAX_INTEGER


EQUAL = Demand(0)


def unite_demands(demand: Demand | None, other: Demand) -> Demand:
    """Return a demand that implies both; ``None`` demands nothing.

    >>> unite_demands(Demand(1), Demand(1, 9)), unite_demands(Demand(1), Demand(-1)) == EQUAL
    (Demand(sign=1, bound=9), True)
    """
    if demand is None:
        return other
    return Demand(demand.sign, min(demand.bound, other.bound)) if demand.sign == other.sign else EQUAL


@dataclass(frozen=True)
class Scene:
    """The context of a predicate. ``kind`` returns the kind of a column. ``numbers`` are the references to single
    numeric registers, with their kinds. ``fixed`` references are the same for both partial matches; all others must be
    equal. ``time``: the time column, in which any two bound events differ by ``span`` at most."""

    kind: Callable[[str], Kind]
    tick_ns: Fraction | None
    numbers: Mapping[ex.Leaf, Kind]
    fixed: frozenset[ex.Leaf]
    time: str | None = None
    span: int = 0


@dataclass(frozen=True)
class _Side:
    """A side of a comparison: a function of fixed values and one register, rising (``sign`` 1) or falling in it.

    ``is_integer``: an integer of magnitude at most ``|factor * register| + |term|``, within 64 bits while the register
    is in [-bound, bound]. ``mixed``: a float sum with a fixed value, so it may be null for some register values
    only."""

    leaf: ex.Leaf
    sign: int
    is_integer: bool
    factor: int = 1
    term: int = 0
    bound: int = MAX_INTEGER
    mixed: bool = False


def demands_on(expr: ex.Expr, scene: Scene) -> Iterator[tuple[ex.Leaf, Demand]]:
    """Yield the demand on each reference that is not fixed, under which ``expr`` still holds.

    >>> price, last = ex.Attribute("b", None, "price"), ex.Attribute("a", "last", "price")
    >>> scene = Scene(lambda name: Kind.FLOAT, None, {last: Kind.FLOAT}, frozenset([price]))
    >>> [d for _, d in demands_on(ex.Binary(">", price, last), scene)]
    [Demand(sign=-1, bound=9223372036854775807)]
    """
    yield from _demands_for_truth(expr, scene, True)


def _demands_for_truth(expr: ex.Expr, scene: Scene, truth: bool) -> Iterator[tuple[ex.Leaf, Demand]]:
    """Yield demands that keep ``expr`` true, or false if ``truth`` is false. NOT is moved inwards; a formula of AND
    and OR stays true if every comparison in it that was true stays true."""
    match expr:
        case ex.Unary(op="not", operand=x):
            yield from _demands_for_truth(x, scene, not truth)
        case ex.Binary(op="and" | "or", left=left, right=right):
            yield from _demands_for_truth(left, scene, truth)
            yield from _demands_for_truth(right, scene, truth)
        case ex.Between(operand=x, low=low, high=high, negated=negated):
            for part in (ex.Binary(">=", x, low), ex.Binary("<=", x, high)):
                yield from _demands_for_truth(part, scene, truth is not negated)
        case ex.Binary(op=op, left=left, right=right) if op in NEGATED:
            yield from _comparison(op if truth else NEGATED[op], left, right, scene)
        case _:
            yield from _demands_for_equality(expr, scene)


def _demands_for_equality(expr: ex.Expr, scene: Scene) -> Iterator[tuple[ex.Leaf, Demand]]:
    yield from ((leaf, EQUAL) for leaf in leaves_of(expr) if leaf not in scene.fixed)


def _comparison(op: str, left: ex.Expr, right: ex.Expr, scene: Scene) -> Iterator[tuple[ex.Leaf, Demand]]:
    if op[0] == "<":
        left, right = right, left  # now left > right, or >=
    demands: list[tuple[ex.Leaf, Demand]] = []
    for part, other, sign in ((left, right, 1), (right, left, -1)):
        if scene.fixed.issuperset(leaves_of(part)):
            continue
        side = _side(part, scene)
        # With infinite values a sum could be null for mine only. This matters only for >= and <=, where infinities can
        # be equal (docs/internals/dominance.md).
        if side is None or (side.mixed and len(op) == 2 and not _finite(other, scene)):
            yield from _demands_for_equality(left, scene)
            yield from _demands_for_equality(right, scene)
            return
        demands.append((side.leaf, Demand(sign * side.sign, side.bound)))
    yield from demands


def _side(expr: ex.Expr, scene: Scene) -> _Side | None:
    """Return the side of a comparison, or ``None`` if monotonicity cannot be derived."""
    match expr:
        case ex.Attribute() | ex.Length() | ex.Aggregate():
            kind = scene.numbers.get(expr)
            return None if kind is None else _Side(expr, 1, kind in WORDS)
        case ex.Unary(op="-", operand=x):
            return _multiply(_side(x, scene), -1)
        case ex.Binary(op="+" | "-" | "*" | "/" as op, left=left, right=right):
            return _time_difference(op, left, right, scene) or _arithmetic(op, left, right, scene)
    return None


def _arithmetic(op: str, left: ex.Expr, right: ex.Expr, scene: Scene) -> _Side | None:
    on_left = not scene.fixed.issuperset(leaves_of(left))
    moving, still = (left, right) if on_left else (right, left)
    if not scene.fixed.issuperset(leaves_of(still)):
        return None
    side, constant = _side(moving, scene), _constant(still, scene)
    if op == "/" and not on_left:
        return None
    if op in "*/":
        if constant is None:
            return None
        return _multiply(side, constant) if op == "*" else _divide(side, constant)
    if op == "-" and not on_left:
        side = _multiply(side, -1)
    if constant is not None:
        return _add(side, -constant if op == "-" and on_left else constant)
    if side is None or side.mixed:
        return None
    kind = _number_kind(still, scene)
    if kind is None or (side.is_integer and kind in WORDS):
        return None  # an integer sum may overflow 64 bits for some register values only
    return replace(side, is_integer=False, mixed=True)


def _time_difference(op: str, left: ex.Expr, right: ex.Expr, scene: Scene) -> _Side | None:
    """Return the difference of two times as a side; it is at most the window for both partial matches."""
    parts = (left, right)
    if op != "-" or not all(isinstance(x, ex.Attribute) and x.name == scene.time for x in parts):
        return None
    for register, event, sign in ((left, right, 1), (right, left, -1)):
        if event in scene.fixed and isinstance(register, ex.Attribute) and register in scene.numbers:
            return _Side(register, sign, True, factor=0, term=scene.span)
    return None


def _multiply(side: _Side | None, constant: float) -> _Side | None:
    if side is None or constant == 0:
        return None
    sign = side.sign if constant > 0 else -side.sign
    if side.is_integer and isinstance(constant, int):
        return _with_bound(side, sign, side.factor * constant, side.term * constant)
    return replace(side, sign=sign, is_integer=False)


def _add(side: _Side | None, constant: float) -> _Side | None:
    if side is None:
        return None
    if side.is_integer and isinstance(constant, int):
        return _with_bound(side, side.sign, side.factor, side.term + constant)
    return replace(side, is_integer=False)


def _with_bound(side: _Side, sign: int, factor: int, term: int) -> _Side | None:
    """Return an integer side with the bound that keeps it within 64 bits, or ``None`` if that is too small."""
    room = MAX_INTEGER - abs(term)
    if room < 0:
        return None
    bound = min(side.bound, MAX_INTEGER - 1, room // abs(factor)) if factor else side.bound
    return None if bound < LEAST_BOUND else replace(side, sign=sign, factor=factor, term=term, bound=bound)


def _divide(side: _Side | None, constant: float) -> _Side | None:
    if side is None or constant == 0:
        return None
    return replace(side, sign=side.sign if constant > 0 else -side.sign, is_integer=False)


def _constant(expr: ex.Expr, scene: Scene) -> int | float | None:
    """Return the value of a numeric constant, or ``None`` for other expressions and values out of range."""
    number: int | float | None = None
    match expr:
        case ex.Literal(value=value) if isinstance(value, (int, float)) and not isinstance(value, bool):
            number = value
        case ex.Duration(ns=ns) | ex.Timestamp(ns=ns):
            number = in_ticks(ns, scene.tick_ns, expr)
        case ex.Unary(op="-", operand=x):
            inner = _constant(x, scene)
            number = None if inner is None else -inner
    if number is None or not math.isfinite(number) or abs(number) > MAX_INTEGER:
        return None
    return number


def _number_kind(expr: ex.Expr, scene: Scene) -> Kind | None:
    """Return INT or FLOAT if the expression is certainly a number, else ``None``."""
    constant = _constant(expr, scene)
    if constant is not None:
        return Kind.INT if isinstance(constant, int) else Kind.FLOAT
    match expr:
        case ex.Attribute(name=name):
            return _of_column(name, scene)
        case ex.Length():
            return Kind.INT
        case ex.Aggregate(function=function) if AGGREGATES[function].gives in ("integer", "float"):
            return Kind.INT if AGGREGATES[function].gives == "integer" else Kind.FLOAT
        case ex.Aggregate(name=str() as name):
            return _of_column(name, scene)
        case ex.Unary(op="-", operand=x):
            return _number_kind(x, scene)
        case ex.Binary(op="+" | "-" | "*" | "/" | "%" as op, left=left, right=right):
            kinds = (_number_kind(left, scene), _number_kind(right, scene))
            if None in kinds:
                return None
            return Kind.INT if kinds == (Kind.INT, Kind.INT) and op != "/" else Kind.FLOAT
    return None


def _of_column(name: str, scene: Scene) -> Kind | None:
    kind = scene.kind(name)
    return Kind.INT if kind in WORDS else kind if kind is Kind.FLOAT else None


def _finite(expr: ex.Expr, scene: Scene) -> bool:
    """Return whether the expression is certainly not infinite."""
    return _constant(expr, scene) is not None or _number_kind(expr, scene) is Kind.INT
