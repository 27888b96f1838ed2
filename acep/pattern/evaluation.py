"""Evaluate expressions: compile an expression tree once into a function of the values of its leaves.

Logic is three-valued: ``None`` is null and unknown. Arithmetic without a result (division by zero, an integer beyond
64 bits, a square root of a negative number) gives null. ``/`` is true division. ``%`` takes the sign of the dividend,
as in SQL.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from acep.functions.lookup import get_scalar, is_time_part
from acep.pattern import expressions as ex
from acep.pattern.scalars.casts import CASTS, TIMESTAMP_TEXT
from acep.pattern.walk import leaves_of

__all__ = ["CASE", "EXACT", "Compiled", "compile_expression"]

Values = Sequence[Any]
Run = Callable[[Values], Any]

INT_LIMIT = 2**63


@dataclass(frozen=True)
class Compiled:
    """A compiled expression: ``run(values)`` takes one value for each of ``leaves``.

    ``original`` is the expression as the user wrote it, if ``expr`` is an equivalent form.
    """

    expr: ex.Expr
    leaves: tuple[ex.Leaf, ...]
    run: Run
    original: ex.Expr | None = None

    @property
    def written(self) -> ex.Expr:
        """Return the expression to show to people."""
        return self.original or self.expr


def compile_expression(expr: ex.Expr, tick_ns: Fraction | None = None, original: ex.Expr | None = None) -> Compiled:
    """Compile an expression; durations and timestamps become ticks of ``tick_ns`` nanoseconds.

    Raises :class:`QueryError` for a duration or timestamp if ``tick_ns`` is unknown.

    >>> c = compile_expression(ex.Binary(">", ex.Attribute("a", None, "x"), ex.Literal(2)))
    >>> c.run([3]), c.run([2]), c.run([None])
    (True, False, None)
    """
    leaves = leaves_of(expr)
    index = {leaf: i for i, leaf in enumerate(leaves)}
    return Compiled(expr, leaves, _build(expr, index, tick_ns), original)


def in_ticks(ns: Fraction | int, tick_ns: Fraction | None, expr: ex.Duration | ex.Timestamp) -> int | float:
    """Return a time in ticks, as an integer if it is whole."""
    if tick_ns is None:
        hint = 'name the unit of an integer ts: unit="s" (ns, us, ms, s, min, h, d)'
        raise ex.error_at("a time needs to know how long a tick of `ts` is", expr, hint, code="query_type")
    ticks = Fraction(ns) / tick_ns
    return int(ticks) if ticks.denominator == 1 else float(ticks)


def _build(expr: ex.Expr, index: dict[ex.Leaf, int], tick_ns: Fraction | None) -> Run:
    def sub(e: ex.Expr) -> Run:
        return _build(e, index, tick_ns)

    match expr:
        case ex.Attribute() | ex.Length() | ex.Aggregate():
            i = index[expr]
            return lambda v: v[i]
        case ex.Literal(value=value):
            return lambda v: value
        case ex.Duration(ns=ns) | ex.Timestamp(ns=ns):
            ticks = in_ticks(ns, tick_ns, expr)
            return lambda v: ticks
        case ex.Unary(op="-", operand=x):
            return _null_if_any_null(operator.neg, (sub(x),))
        case ex.Unary(operand=x):
            return _negate_if(sub(x), True)
        case ex.Binary(op="and" | "or" as op, left=left, right=right):
            return _join_conditions(sub(left), sub(right), op == "or")
        case ex.Binary(op=op, left=left, right=right):
            return _null_if_any_null(BINARY[op], (sub(left), sub(right)))
        case ex.Call(name=name, args=args):
            function, strict = _function(name)
            runs = tuple(sub(a) for a in args)
            if name == TIMESTAMP_TEXT or is_time_part(name):
                in_ticks(0, tick_ns, ex.Timestamp(0, expr.span))
                assert tick_ns is not None
                ns = tick_ns
                return _null_if_any_null(lambda t: function(t, ns), runs)
            return _null_if_any_null(function, runs) if strict else lambda v: function(*[r(v) for r in runs])
        case ex.In(operand=x, values=values, negated=negated):
            return _negate_if(_is_among(sub(x), tuple(sub(e) for e in values)), negated)
        case ex.Between(operand=x, low=low, high=high, negated=negated):
            f, lo, hi = sub(x), sub(low), sub(high)
            return _negate_if(
                _join_conditions(
                    _null_if_any_null(BINARY[">="], (f, lo)), _null_if_any_null(BINARY["<="], (f, hi)), False
                ),
                negated,
            )
        case ex.Like(operand=x, pattern=pattern, negated=negated):
            from acep.functions.like_patterns import compile_like  # few queries have LIKE

            return _negate_if(_null_if_any_null(compile_like(pattern), (sub(x),)), negated)
        case ex.IsNull(operand=x, negated=negated):
            f = sub(x)
            return (lambda v: f(v) is not None) if negated else (lambda v: f(v) is None)


def _function(name: str) -> tuple[Callable[..., Any], bool]:
    """Return the function that a call names, and whether its result is null if an argument is null."""
    if name in EXACT:
        return EXACT[name]
    entry = get_scalar(name)
    assert entry.of_values is not None
    return entry.of_values, not entry.takes_nulls


def _negate_if(f: Run, negated: bool) -> Run:
    if not negated:
        return f
    return lambda v: None if (a := f(v)) is None else not a


def _join_conditions(f: Run, g: Run, decisive: bool) -> Run:
    """Return AND or OR of two conditions. ``decisive`` is the value of one that decides: false for AND, true for OR."""

    def run(v: Values) -> Any:
        a = f(v)
        if a is decisive:
            return decisive
        b = g(v)
        if b is decisive:
            return decisive
        return None if a is None or b is None else not decisive

    return run


def _is_among(f: Run, runs: tuple[Run, ...]) -> Run:
    def run(v: Values) -> Any:
        a = f(v)
        if a is None:
            return None
        values = [r(v) for r in runs]
        if any(b is not None and a == b for b in values):
            return True
        return None if any(b is None for b in values) else False

    return run


def _null_if_any_null(function: Callable[..., Any], runs: tuple[Run, ...]) -> Run:
    """Apply a function; the result is null if any argument is null or there is no result."""

    def run(v: Values) -> Any:
        args = []
        for r in runs:
            a = r(v)
            if a is None:
                return None
            args.append(a)
        try:
            return _number(function(*args))
        except (ArithmeticError, ValueError):
            return None

    return run


def _number(x: Any) -> Any:
    if isinstance(x, float):
        return None if x != x else x
    if isinstance(x, int) and not isinstance(x, bool) and not -INT_LIMIT <= x < INT_LIMIT:
        return None
    return x


def _modulo(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        r = abs(a) % abs(b)
        return -r if a < 0 else r
    return math.fmod(a, b)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": _modulo,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _order(x: int, y: float, places: int, other_places: int) -> int:
    if isinstance(y, float) and math.isinf(y):
        return -1 if y > 0 else 1
    left, right = Fraction(x) * 10**other_places, Fraction(y) * 10**places
    return int(left > right) - int(left < right)


def _quotient(x: int, y: int, places: int) -> float:
    factor = int(10 ** abs(places))
    return x * factor / y if places >= 0 else x / (y * factor)


def _case(*args: Any) -> Any:
    for condition, value in zip(args[:-1:2], args[1::2], strict=True):
        if condition is True:
            return value
    return args[-1]


CASE = "case"
"""The name of the call that CASE is: conditions and values in turn, and the value of ELSE."""

# CASE, CAST, and functions for decimals (acep.plan.decimals), none of which a query can name, each with whether its
# result is null if an argument is null. A decimal is an integer that counts units of 10**-places.
EXACT: dict[str, tuple[Callable[..., Any], bool]] = {
    # -1, 0 or 1 as x / 10**places is below, equal to or above y / 10**others; y may be a float
    "decimal order": (_order, True),
    # x * 10**places / y, rounded once
    "decimal quotient": (_quotient, True),
    "decimal floor": (lambda x, places: x // 10**places, True),
    CASE: (_case, False),
    "decimal ceil": (lambda x, places: -(-x // 10**places), True),
    **CASTS,
}
