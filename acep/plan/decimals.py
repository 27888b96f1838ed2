"""Rewrite expressions over decimals to exact expressions over integers, which both engines can run.

A decimal is an integer that counts units of 10**-scale. Decimals of one scale are compared as integers. Other cases
use a few exact functions (:data:`acep.pattern.evaluation.EXACT`). A number literal is exact beside integers and
decimals, and a float beside floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from acep.pattern import expressions as ex
from acep.pattern.evaluation import compile_expression

if TYPE_CHECKING:
    from acep.functions.scalar_function import ScalarFunction

__all__ = [
    "DECIMAL",
    "EXCHANGED",
    "HIGHEST",
    "LOWEST",
    "MOST_SCALE",
    "Typed",
    "are_directly_comparable",
    "arithmetic",
    "article",
    "as_float",
    "call",
    "compare",
    "exact_value",
    "is_between",
    "is_one_of",
    "of_one_scale",
]

DECIMAL: Final = "decimal"
MOST_SCALE: Final = 18
LOWEST: Final = -(2**63)
HIGHEST: Final = 2**63 - 1
NARROWER: Final = "cast a column to a decimal of fewer places, or to double"


@dataclass(frozen=True)
class Typed:
    """An expression over a stream's columns with its type.

    ``kind``: bool, int, float, string, timestamp, duration, decimal or null. ``scale``: that of a decimal, else 0.
    ``exact``: the exact value of a number literal, else ``None``.
    """

    expr: ex.Expr
    kind: str
    scale: int = 0
    exact: Fraction | None = None

    @property
    def named(self) -> str:
        """Return the name of the type with its article, for messages."""
        return f"{article(self.kind)} {self.bare}"

    @property
    def bare(self) -> str:
        """Return the name of the type, for messages."""
        return f"decimal of scale {self.scale}" if self.kind == DECIMAL else self.kind

    @property
    def is_whole(self) -> bool:
        """Return whether it is an integer or a decimal, and no literal."""
        return self.kind in ("int", DECIMAL) and self.exact is None


def article(word: str) -> str:
    """Return the article of a word.

    >>> article("int"), article("string")
    ('an', 'a')
    """
    return "an" if word[0] in "aeiou" else "a"


def exact_value(literal: ex.Literal) -> Fraction | None:
    """Return the exact value of a number literal, or ``None`` for other literals.

    >>> exact_value(ex.Literal(1.1)), exact_value(ex.Literal("a"))
    (Fraction(11, 10), None)
    """
    value = literal.value
    if literal.exact is not None:
        return literal.exact
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return Fraction(repr(value))


# Comparisons ------------------------------------------------------------------------------------


def compare(op: str, x: Typed, y: Typed, span: ex.Span | None = None) -> ex.Expr:
    """Return ``x op y``, exact for all kinds of numbers.

    >>> from acep.pattern.spelling import expression_text
    >>> price = Typed(ex.Attribute("a", None, "price"), DECIMAL, 2)
    >>> expression_text(compare("<", price, Typed(ex.Literal(1.105), "float", exact=Fraction("1.105"))))
    'a.price < 111'
    """
    if x.is_whole and y.exact is not None and _rounds(x, y):
        return _compare_bound(op, x, y.exact, span)
    if y.is_whole and x.exact is not None and _rounds(y, x):
        return _compare_bound(EXCHANGED[op], y, x.exact, span)
    if DECIMAL not in (x.kind, y.kind) or "null" in (x.kind, y.kind):
        return ex.Binary(op, x.expr, y.expr, span)
    if x.kind in ("int", DECIMAL) and y.kind in ("int", DECIMAL) and x.scale == y.scale:
        return ex.Binary(op, x.expr, y.expr, span)
    if x.kind not in ("int", DECIMAL):  # the function takes a float or a time as its second argument
        op, x, y = EXCHANGED[op], y, x
    order = ex.Call("decimal order", (x.expr, y.expr, ex.Literal(x.scale), ex.Literal(y.scale)), span)
    return ex.Binary(op, order, ex.Literal(0), span)


EXCHANGED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Each comparison, and the same one with its sides exchanged."""


def _rounds(x: Typed, y: Typed) -> bool:
    """Return whether the literal ``y``, rounded to a float, could change a comparison with ``x``."""
    if x.kind == DECIMAL:
        return True
    if y.kind != "float":
        return False
    assert y.exact is not None
    near = compile_expression(y.expr).run(())
    if near is None or math.isinf(near):
        return True
    return (math.floor(near), math.ceil(near)) != (math.floor(y.exact), math.ceil(y.exact))


def _compare_bound(op: str, x: Typed, value: Fraction, span: ex.Span | None) -> ex.Expr:
    """Return the comparison of ``x`` with a literal of this value as a comparison of integers."""
    scaled = value * 10**x.scale
    if op in ("=", "!="):
        if scaled.denominator == 1 and LOWEST <= scaled <= HIGHEST:
            return ex.Binary(op, x.expr, ex.Literal(int(scaled)), span)
        # No integer equals the value. Use a comparison that is always false (or true), and null for null.
        return ex.Binary("<" if op == "=" else ">=", x.expr, ex.Literal(LOWEST), span)
    bound = math.ceil(scaled) if op in ("<", ">=") else math.floor(scaled)
    if LOWEST <= bound <= HIGHEST:
        return ex.Binary(op, x.expr, ex.Literal(bound), span)
    below = op in ("<", "<=")
    return ex.Binary(">=" if below == (bound > 0) else "<", x.expr, ex.Literal(LOWEST), span)


def is_between(x: Typed, low: Typed, high: Typed, negated: bool, span: ex.Span | None) -> ex.Expr:
    """Return ``x [NOT] BETWEEN low AND high`` as two comparisons."""
    inside = ex.Binary("and", compare(">=", x, low, span), compare("<=", x, high, span), span)
    return ex.Unary("not", inside, span) if negated else inside


def is_one_of(x: Typed, values: list[Typed], negated: bool, span: ex.Span | None) -> ex.Expr:
    """Return ``x [NOT] IN (values)`` as comparisons."""
    comparisons = [compare("=", x, value, span) for value in values]
    while len(comparisons) > 1:  # a balanced tree, as later stages walk it recursively
        odd = comparisons[len(comparisons) // 2 * 2 :]
        comparisons = [
            ex.Binary("or", *sides, span=span) for sides in zip(comparisons[::2], comparisons[1::2], strict=False)
        ] + odd
    return ex.Unary("not", comparisons[0], span) if negated else comparisons[0]


def are_directly_comparable(parts: list[Typed]) -> bool:
    """Return whether values can be compared directly, without a rewrite."""
    if any(part.kind == DECIMAL for part in parts):
        return False
    integers = [part for part in parts if part.is_whole]
    return not any(part.exact is not None and _rounds(integer, part) for integer in integers[:1] for part in parts)


# Arithmetic -------------------------------------------------------------------------------------


def arithmetic(op: str, x: Typed, y: Typed, span: ex.Span | None) -> Typed:
    """Return ``x op y`` of numbers, one of them a decimal. It is exact, except that floats and ``/`` give a float."""
    if not all(part.kind in ("int", DECIMAL) or part.exact is not None for part in (x, y)):
        return Typed(ex.Binary(op, as_float(x), as_float(y), span), "float")
    if op == "/":
        x, y = _rescale(x, _places(x), span), _rescale(y, _places(y), span)
        if x.scale == y.scale:
            return Typed(ex.Binary("/", x.expr, y.expr, span), "float")
        return Typed(ex.Call("decimal quotient", (x.expr, y.expr, ex.Literal(y.scale - x.scale)), span), "float")
    if op == "*":
        scale = _places(x) + _places(y)
        _check(scale, span)
        x, y = _rescale(x, _places(x), span), _rescale(y, _places(y), span)
    else:
        scale = max(_places(x), _places(y))
        x, y = _rescale(x, scale, span), _rescale(y, scale, span)
    return Typed(ex.Binary(op, x.expr, y.expr, span), DECIMAL, scale)


def _places(x: Typed) -> int:
    """Return the scale of an operand. For a literal, this is the least scale that represents it exactly."""
    if x.exact is None:
        return x.scale
    places = 0
    while (x.exact * 10**places).denominator > 1:
        places += 1
        _check(places, x.expr.span)
    return places


def _check(scale: int, span: ex.Span | None) -> None:
    if scale > MOST_SCALE:
        raise ex.error_at(
            f"the exact result would have more than {MOST_SCALE} decimal places", span, NARROWER, code="query_type"
        )


def _rescale(x: Typed, scale: int, span: ex.Span | None) -> Typed:
    """Return the same number as an integer of units of 10**-scale; ``scale`` is at least its own scale."""
    if x.exact is not None:
        number = int(x.exact * 10**scale)
        if not LOWEST <= number <= HIGHEST:
            message = f"this number does not fit into 64 bits beside a decimal with {scale} places"
            raise ex.error_at(message, x.expr.span or span, "cast the column to double", code="query_type")
        return Typed(ex.Literal(number, x.expr.span), DECIMAL, scale)
    if x.scale == scale:
        return x
    return Typed(ex.Binary("*", x.expr, ex.Literal(10 ** (scale - x.scale)), span), DECIMAL, scale)


def as_float(x: Typed) -> ex.Expr:
    """Return a number as a float, rounded once.

    >>> as_float(Typed(ex.Attribute("a", None, "x"), DECIMAL, 2)).op
    '/'
    """
    return ex.Binary("/", x.expr, ex.Literal(10**x.scale), x.expr.span) if x.kind == DECIMAL else x.expr


# Functions --------------------------------------------------------------------------------------


def call(expr: ex.Call, entry: ScalarFunction, args: list[Typed]) -> Typed:
    """Return a function call on numbers that include a decimal, rewritten to integers or floats."""
    name, span, first = expr.name, expr.span, args[0]
    if entry.is_choice:
        return _of_same_scale(expr, args)
    if entry.of_decimals == "units":
        units = ex.Call(name, (first.expr,), span)
        return Typed(units, DECIMAL, first.scale) if entry.gives == "argument" else Typed(units, "int")
    if entry.of_decimals == "places":
        return Typed(ex.Call(f"decimal {name}", (first.expr, ex.Literal(first.scale)), span), "int")
    if entry.of_decimals == "digits" and first.kind == DECIMAL:
        digits: ex.Expr = ex.Literal(-first.scale)
        if len(args) > 1:
            digits = ex.Binary("-", args[1].expr, ex.Literal(first.scale))
            if isinstance(args[1].expr, ex.Literal) and isinstance(args[1].expr.value, int):
                digits = ex.Literal(args[1].expr.value - first.scale)
        return Typed(ex.Call(name, (first.expr, digits), span), DECIMAL, first.scale)
    kind = {"text": "string", "integer": "int", "condition": "bool"}.get(entry.gives, "float")
    return Typed(ex.Call(name, tuple(as_float(arg) for arg in args), span), kind)


def of_one_scale(values: list[Typed], span: ex.Span | None) -> tuple[str, int, list[Typed]]:
    """Return the kind, the scale and the values of a choice among values, one of them a decimal: floats if any is a
    float, else decimals of the greatest scale."""
    if any(value.kind not in ("int", DECIMAL, "null") and value.exact is None for value in values):
        return "float", 0, [Typed(as_float(value), "float") for value in values]
    scale = max(_places(value) for value in values if value.kind != "null")
    return DECIMAL, scale, [value if value.kind == "null" else _rescale(value, scale, span) for value in values]


def _of_same_scale(expr: ex.Call, args: list[Typed]) -> Typed:
    """Rewrite ``least``, ``greatest`` or ``coalesce``: to floats if any is a float, else to the greatest scale."""
    if any(arg.kind not in ("int", DECIMAL, "null") and arg.exact is None for arg in args):
        return Typed(ex.Call(expr.name, tuple(as_float(arg) for arg in args), expr.span), "float")
    scale = max(_places(arg) for arg in args if arg.kind != "null")
    parts = [arg if arg.kind == "null" else _rescale(arg, scale, expr.span) for arg in args]
    result: ex.Expr = ex.Call(expr.name, tuple(part.expr for part in parts), expr.span)
    for arg in args:
        if arg.is_whole and arg.scale < scale:
            # These functions skip nulls. A null from overflow in the rescaling must make the result null instead.
            not_null = Typed(ex.Call("coalesce", (arg.expr, ex.Literal(0)), expr.span), DECIMAL, arg.scale)
            zero = ex.Binary("*", _rescale(not_null, scale, expr.span).expr, ex.Literal(0), expr.span)
            result = ex.Binary("+", result, zero, expr.span)
    return Typed(result, DECIMAL, scale)
