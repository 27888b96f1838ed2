"""Expressions over decimals as expressions over integers, exact, which both engines run.

A decimal is an integer that counts units of 10**-scale. Two of one scale meet as integers do; all else becomes a
few exact functions (:data:`acep.pattern.evaluation.EXACT`). A number that is written down is exact beside integers
and decimals, and a float beside floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from acep.errors import QueryError
from acep.pattern.evaluation import compile_expression
from acep.pattern.expressions import Binary, Call, Expr, Literal, Span, Unary

__all__ = [
    "DECIMAL",
    "EXCHANGED",
    "HIGHEST",
    "LOWEST",
    "MOST_SCALE",
    "Typed",
    "alike",
    "arithmetic",
    "as_float",
    "between",
    "call",
    "compare",
    "exact_value",
    "is_one_of",
]

DECIMAL: Final = "decimal"
MOST_SCALE: Final = 18
LOWEST: Final = -(2**63)
HIGHEST: Final = 2**63 - 1
NARROWER: Final = "cast a column to a decimal of fewer places, or to double"


@dataclass(frozen=True)
class Typed:
    """An expression over a stream's columns, and what it gives.

    ``kind``: bool, int, float, string, timestamp, duration, decimal or null; ``scale``: of a decimal, else 0.
    ``exact``: the value of a number that is written down.
    """

    expr: Expr
    kind: str
    scale: int = 0
    exact: Fraction | None = None

    @property
    def named(self) -> str:
        """What it is, for a message."""
        return f"decimal of scale {self.scale}" if self.kind == DECIMAL else self.kind

    @property
    def whole(self) -> bool:
        """Whether it is an integer or a decimal that is not written down."""
        return self.kind in ("int", DECIMAL) and self.exact is None


def fail(span: Span | None, message: str, hint: str | None = None) -> QueryError:
    return QueryError(message, start=span.start if span else None, end=span.end if span else None, hint=hint)


def exact_value(literal: Literal) -> Fraction | None:
    """The value of a number as it is written.

    >>> exact_value(Literal(1.1)), exact_value(Literal("a"))
    (Fraction(11, 10), None)
    """
    value = literal.value
    if literal.exact is not None:
        return literal.exact
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return Fraction(repr(value))


# Comparisons ------------------------------------------------------------------------------------


def compare(op: str, x: Typed, y: Typed, span: Span | None = None) -> Expr:
    """``x op y``, exact whatever kinds of numbers meet.

    >>> from acep.pattern.expressions import Attribute
    >>> from acep.pattern.spelling import expression_text
    >>> price = Typed(Attribute("a", None, "price"), DECIMAL, 2)
    >>> expression_text(compare("<", price, Typed(Literal(1.105), "float", exact=Fraction("1.105"))))
    'a.price < 111'
    """
    if x.whole and y.exact is not None and _rounds(x, y):
        return _bounded(op, x, y.exact, span)
    if y.whole and x.exact is not None and _rounds(y, x):
        return _bounded(EXCHANGED[op], y, x.exact, span)
    if DECIMAL not in (x.kind, y.kind) or "null" in (x.kind, y.kind):
        return Binary(op, x.expr, y.expr, span)
    if x.kind in ("int", DECIMAL) and y.kind in ("int", DECIMAL) and x.scale == y.scale:
        return Binary(op, x.expr, y.expr, span)
    if x.kind not in ("int", DECIMAL):  # the function takes a float, or a time, second
        op, x, y = EXCHANGED[op], y, x
    order = Call("decimal order", (x.expr, y.expr, Literal(x.scale), Literal(y.scale)), span)
    return Binary(op, order, Literal(0), span)


EXCHANGED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _rounds(x: Typed, y: Typed) -> bool:
    """Whether ``y``, which is written down, does not mean the same beside ``x`` as the float that it is."""
    if x.kind == DECIMAL:
        return True
    if y.kind != "float":
        return False
    assert y.exact is not None
    near = compile_expression(y.expr).run(())
    if near is None or math.isinf(near):
        return True
    return (math.floor(near), math.ceil(near)) != (math.floor(y.exact), math.ceil(y.exact))


def _bounded(op: str, x: Typed, value: Fraction, span: Span | None) -> Expr:
    """A comparison with a number that is written down, as one of integers."""
    scaled = value * 10**x.scale
    if op in ("=", "!="):
        if scaled.denominator == 1 and LOWEST <= scaled <= HIGHEST:
            return Binary(op, x.expr, Literal(int(scaled)), span)
        # Equal to none of the integers: false, or true, where there is no null.
        return Binary("<" if op == "=" else ">=", x.expr, Literal(LOWEST), span)
    bound = math.ceil(scaled) if op in ("<", ">=") else math.floor(scaled)
    if LOWEST <= bound <= HIGHEST:
        return Binary(op, x.expr, Literal(bound), span)
    below = op in ("<", "<=")
    return Binary(">=" if below == (bound > 0) else "<", x.expr, Literal(LOWEST), span)


def between(x: Typed, low: Typed, high: Typed, negated: bool, span: Span | None) -> Expr:
    """``x [NOT] BETWEEN low AND high`` as two comparisons."""
    inside = Binary("and", compare(">=", x, low, span), compare("<=", x, high, span), span)
    return Unary("not", inside, span) if negated else inside


def is_one_of(x: Typed, values: list[Typed], negated: bool, span: Span | None) -> Expr:
    """``x [NOT] IN (values)`` as comparisons."""
    found = compare("=", x, values[0], span)
    for value in values[1:]:
        found = Binary("or", found, compare("=", x, value, span), span)
    return Unary("not", found, span) if negated else found


def alike(parts: list[Typed]) -> bool:
    """Whether values can be compared as they are, without this module."""
    if any(part.kind == DECIMAL for part in parts):
        return False
    wholes = [part for part in parts if part.whole]
    return not any(part.exact is not None and _rounds(one, part) for one in wholes[:1] for part in parts)


# Arithmetic -------------------------------------------------------------------------------------


def arithmetic(op: str, x: Typed, y: Typed, span: Span | None) -> Typed:
    """``x op y`` of numbers of which one is a decimal: exact, but with a float, and for ``/``, a float."""
    if not all(part.kind in ("int", DECIMAL) or part.exact is not None for part in (x, y)):
        return Typed(Binary(op, as_float(x), as_float(y), span), "float")
    if op == "/":
        x, y = _scaled(x, _places(x), span), _scaled(y, _places(y), span)
        if x.scale == y.scale:
            return Typed(Binary("/", x.expr, y.expr, span), "float")
        return Typed(Call("decimal quotient", (x.expr, y.expr, Literal(y.scale - x.scale)), span), "float")
    if op == "*":
        scale = _places(x) + _places(y)
        _check(scale, span)
        x, y = _scaled(x, _places(x), span), _scaled(y, _places(y), span)
    else:
        scale = max(_places(x), _places(y))
        x, y = _scaled(x, scale, span), _scaled(y, scale, span)
    return Typed(Binary(op, x.expr, y.expr, span), DECIMAL, scale)


def _places(x: Typed) -> int:
    """The scale of an operand; that of a number that is written down is the least that holds it."""
    if x.exact is None:
        return x.scale
    places = 0
    while (x.exact * 10**places).denominator > 1:
        places += 1
        _check(places, x.expr.span)
    return places


def _check(scale: int, span: Span | None) -> None:
    if scale > MOST_SCALE:
        raise fail(span, f"the exact result would have more than {MOST_SCALE} decimal places", NARROWER)


def _scaled(x: Typed, scale: int, span: Span | None) -> Typed:
    """The same number as an integer of units of 10**-scale, where ``scale`` is no less than its own."""
    if x.exact is not None:
        number = int(x.exact * 10**scale)
        if not LOWEST <= number <= HIGHEST:
            message = f"this number does not fit into 64 bits beside a decimal with {scale} places"
            raise fail(x.expr.span or span, message, "cast the column to double")
        return Typed(Literal(number, x.expr.span), DECIMAL, scale)
    if x.scale == scale:
        return x
    return Typed(Binary("*", x.expr, Literal(10 ** (scale - x.scale)), span), DECIMAL, scale)


def as_float(x: Typed) -> Expr:
    """A number as a float, rounded once.

    >>> from acep.pattern.expressions import Attribute
    >>> as_float(Typed(Attribute("a", None, "x"), DECIMAL, 2)).op
    '/'
    """
    return Binary("/", x.expr, Literal(10**x.scale), x.expr.span) if x.kind == DECIMAL else x.expr


# Functions --------------------------------------------------------------------------------------


def call(expr: Call, args: list[Typed]) -> Typed:
    """A function of numbers, the first of which, or one of several alike, is a decimal."""
    name, span, first = expr.name, expr.span, args[0]
    if name in ("least", "greatest", "coalesce"):
        return _same(expr, args)
    if name == "sign":
        return Typed(Call("sign", (first.expr,), span), "int")
    if name == "abs":
        return Typed(Call("abs", (first.expr,), span), DECIMAL, first.scale)
    if name in ("floor", "ceil"):
        return Typed(Call(f"decimal {name}", (first.expr, Literal(first.scale)), span), "int")
    if name == "round" and first.kind == DECIMAL:
        digits: Expr = Literal(-first.scale)
        if len(args) > 1:
            if args[1].kind not in ("int", "null"):
                raise fail(args[1].expr.span or span, "the digits of a decimal to round to are an integer")
            digits = Binary("-", args[1].expr, Literal(first.scale))
            if isinstance(args[1].expr, Literal) and isinstance(args[1].expr.value, int):
                digits = Literal(args[1].expr.value - first.scale)
        return Typed(Call("round", (first.expr, digits), span), DECIMAL, first.scale)
    if name == "round":
        raise fail(span, "the number of digits to round to is an integer", "write it without decimal places")
    return Typed(Call(name, tuple(as_float(arg) for arg in args), span), "float")


def _same(expr: Call, args: list[Typed]) -> Typed:
    """One of several values: with a float all as floats, else decimals of the greatest scale."""
    if any(arg.kind not in ("int", DECIMAL, "null") and arg.exact is None for arg in args):
        return Typed(Call(expr.name, tuple(as_float(arg) for arg in args), expr.span), "float")
    scale = max(_places(arg) for arg in args if arg.kind != "null")
    parts = [arg if arg.kind == "null" else _scaled(arg, scale, expr.span) for arg in args]
    result: Expr = Call(expr.name, tuple(part.expr for part in parts), expr.span)
    for arg in args:
        if arg.whole and arg.scale < scale:
            # These functions pass over nulls; one that is beyond 64 bits on the way to the scale must not be.
            known = Typed(Call("coalesce", (arg.expr, Literal(0)), expr.span), DECIMAL, arg.scale)
            zero = Binary("*", _scaled(known, scale, expr.span).expr, Literal(0), expr.span)
            result = Binary("+", result, zero, expr.span)
    return Typed(result, DECIMAL, scale)
