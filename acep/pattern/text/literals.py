"""Convert parts of the grammar's tree to constants: numbers, texts, booleans, durations, timestamps."""

from __future__ import annotations

from fractions import Fraction

from acep.pattern import expressions as ex
from acep.pattern.text.lalr_parser import Token
from acep.pattern.text.syntax import Branch, amounts, fail, span, tokens, unquote
from acep.pattern.times import exact_number, read_duration, read_timestamp

__all__ = ["LITERALS", "number_literal"]

_INT_LIMIT = 2**63
_MAX_DENOMINATOR = 10**300  # numbers with a greater denominator are kept as floats only


def _number(branch: Branch) -> ex.Expr:
    (token,) = tokens(branch)
    if token.isdecimal() and len(token) < 40:
        value = int(token)
        if value > _INT_LIMIT:  # 2**63 itself is allowed: -2**63 is a 64-bit integer
            raise fail(
                "this integer does not fit into 64 bits", token, "write it with a decimal point", code="query_size"
            )
        return ex.Literal(value, span(branch))
    return _float(branch, token, 1)


def _float(branch: Branch, token: Token, divisor: int) -> ex.Literal:
    try:
        with ex.locate_errors(span(token)):
            return number_literal(exact_number(token.rstrip("%")) / divisor, span(branch))
    except OverflowError:
        raise fail("this number is too large", token, code="query_size") from None


def number_literal(exact: Fraction, where: ex.Span | None) -> ex.Literal:
    """Return the constant of a number that is not written as an integer. Raises :class:`OverflowError` beyond floats.

    >>> number_literal(Fraction(1, 10), None)
    Literal(value=0.1, span=None, exact=None)
    """
    value = float(exact)
    is_exact = Fraction(repr(value)) == exact or exact.denominator > _MAX_DENOMINATOR
    return ex.Literal(value, where, None if is_exact else exact)


def _percent(branch: Branch) -> ex.Expr:
    (token,) = tokens(branch)
    return _float(branch, token, 100)


def _string(branch: Branch) -> ex.Expr:
    return ex.Literal(unquote(tokens(branch)[0]), span(branch))


def _constant(branch: Branch) -> ex.Expr:
    return ex.Literal({"TRUE": True, "FALSE": False, "NULL": None}[tokens(branch)[0].type], span(branch))


def _duration(branch: Branch) -> ex.Expr:
    with ex.locate_errors(span(branch)):
        return ex.Duration(read_duration(amounts(branch)), span(branch))


def _timestamp(branch: Branch) -> ex.Expr:
    (token,) = tokens(branch)
    with ex.locate_errors(span(token)):
        return ex.Timestamp(read_timestamp(unquote(token)), span(branch))


LITERALS = {
    "number": _number,
    "percent": _percent,
    "string": _string,
    "constant": _constant,
    "duration": _duration,
    "timestamp": _timestamp,
}
"""The functions that build the expression of each kind of constant in the grammar."""
