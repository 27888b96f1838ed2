"""From the grammar's tree to constants: numbers, texts, truth values, durations, points in time."""

from __future__ import annotations

import math

from acep.errors import QueryError
from acep.pattern.expressions import Duration, Expr, Literal, Timestamp
from acep.pattern.reading import Token
from acep.pattern.syntax import Branch, fail, span, tokens, unquote
from acep.pattern.times import exact_number, read_timestamp, unit_ns

__all__ = ["LITERALS"]

_INT_LIMIT = 2**63


def _at(leaf: Branch | Token, error: QueryError) -> QueryError:
    """An error that had no place, at its place."""
    return fail(error.message, leaf, error.hint)


def _number(branch: Branch) -> Expr:
    (token,) = tokens(branch)
    if token.isdecimal() and len(token) < 40:
        value = int(token)
        if value > _INT_LIMIT:  # 2**63 itself is allowed: -2**63 is a 64-bit integer
            raise fail("this integer does not fit into 64 bits", token, "write it with a decimal point")
        return Literal(value, span(branch))
    return Literal(_float(token), span(branch))


def _float(token: Token) -> float:
    try:
        value = float(exact_number(token.rstrip("%"))) / (100 if token.endswith("%") else 1)
    except OverflowError:
        value = math.inf
    except QueryError as error:
        raise _at(token, error) from None
    if math.isinf(value):
        raise fail("this number is too large", token)
    return value


def _percent(branch: Branch) -> Expr:
    (token,) = tokens(branch)
    try:
        return Literal(float(exact_number(token.rstrip("%")) / 100), span(branch))
    except QueryError as error:
        raise _at(token, error) from None


def _string(branch: Branch) -> Expr:
    return Literal(unquote(tokens(branch)[0]), span(branch))


def _constant(branch: Branch) -> Expr:
    return Literal({"TRUE": True, "FALSE": False, "NULL": None}[tokens(branch)[0].type], span(branch))


def _duration(branch: Branch) -> Expr:
    number, unit = tokens(branch)
    try:
        return Duration(exact_number(number) * unit_ns(unit), span(branch))
    except QueryError as error:
        raise _at(branch, error) from None


def _timestamp(branch: Branch) -> Expr:
    (token,) = tokens(branch)
    try:
        return Timestamp(read_timestamp(unquote(token)), span(branch))
    except QueryError as error:
        raise _at(token, error) from None


LITERALS = {
    "number": _number,
    "percent": _percent,
    "string": _string,
    "constant": _constant,
    "duration": _duration,
    "timestamp": _timestamp,
}
"""What builds the expression of each kind of constant in the grammar."""
