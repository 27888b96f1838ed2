"""Put the values of parameters (``:name``) into a grammar's tree, as constants and never as text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TypeAlias

from acep.errors import QueryError, suggest
from acep.pattern import expressions as ex
from acep.pattern.text.lalr_parser import Tree
from acep.pattern.text.literals import number_literal
from acep.pattern.text.syntax import Branch, fail, span, tokens
from acep.pattern.times import UNITS, checked_window, exact_number, ns_of, read_duration, read_timestamp, window_of
from acep.pattern.tree import Within

__all__ = ["Given", "Parameters", "fill", "list_of_parameter", "parameter_of_text", "window_of_parameter"]

Constant: TypeAlias = ex.Literal | ex.Duration | ex.Timestamp
Parameters: TypeAlias = Mapping[str, object]
"""The values of parameters by name: numbers, texts, truth values, times, durations, ``None``, and lists of these."""

_LARGEST = 2**63
_DIGITS = 400
_HINT = "a number, a text, True, False, None, a datetime, a timedelta, or a list of these"
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"([+-]?)((?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?)", re.IGNORECASE)
_LENGTH = re.compile(r"((?:\d+(?:\.\d+)?|\.\d+))\s*([^\W\d]+)")
_TEXT = re.compile(r"'((?:[^']|'')*)'|\"((?:[^\"]|\"\")*)\"")
_MOMENT = re.compile(r"timestamp\s*(?:'([^']*)'|\"([^\"]*)\")", re.IGNORECASE)
_ITEM = re.compile(r"(?:'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^,'\"])+")
_WORDS = {"true": True, "false": False, "null": None}


class Given(Tree):
    """A parameter in a tree with its ``value``: a constant, or a tuple of constants for ``IN``."""

    __slots__ = ("value",)

    def __init__(self, branch: Branch, value: Constant | tuple[Constant, ...]) -> None:
        super().__init__(branch.data, branch.children)
        self.span, self.outer = branch.span, branch.outer
        self.value = value


def fill(tree: Branch, parameters: object) -> None:
    """Give each parameter of a tree its value.

    Raises :class:`QueryError` for a parameter without a value, a value without a parameter, and a value of a type
    that no constant has.
    """
    if not isinstance(parameters, Mapping):
        raise QueryError(
            f"parameters={parameters!r} is not a mapping", hint='parameters={"threshold": 3}', code="option_invalid"
        )
    for name in parameters:
        if not isinstance(name, str):
            raise QueryError(
                f"parameters: {name!r} is no name", hint='parameters={"threshold": 3}', code="option_invalid"
            )
    used_names: set[str] = set()
    stack = [(tree, index) for index in reversed(range(len(tree.children)))]
    while stack:  # in the order of the text, so that the first mistake is told
        parent, index = stack.pop()
        branch = parent.children[index]
        if not isinstance(branch, Tree):
            continue
        if branch.data != "parameter":
            stack += [(branch, inner) for inner in reversed(range(len(branch.children)))]
            continue
        name = tokens(branch)[0][1:]
        if name not in parameters:
            raise missing_value(branch, suggest(name, list(parameters)) if parameters else None)
        used_names.add(name)
        with ex.locate_errors(span(branch)):
            parent.children[index] = Given(branch, _with_span(_constants(name, parameters[name]), span(branch)))
    for name in parameters:
        if name not in used_names:
            hint = (
                suggest(name, sorted(used_names))
                if used_names
                else "a parameter is written with a colon: a.x > :threshold"
            )
            raise QueryError(f"the query has no parameter `:{name[:40]}`", hint=hint, code="query_name")


def missing_value(branch: Branch, hint: str | None = None) -> QueryError:
    """Return the error for a parameter without a value."""
    name = tokens(branch)[0][1:]
    return fail(
        f"`:{name}` has no value", branch, hint or f'give it one: parameters={{"{name}": 3}}', code="query_name"
    )


def list_of_parameter(branch: Branch) -> tuple[Constant, ...]:
    """Return the constants of a parameter in ``IN``: one, or those of a list."""
    if not isinstance(branch, Given):
        raise missing_value(branch)
    return branch.value if isinstance(branch.value, tuple) else (branch.value,)


def constant(branch: Branch) -> Constant:
    """Return the constant of a parameter. Raises :class:`QueryError` for a list."""
    if not isinstance(branch, Given):
        raise missing_value(branch)
    if isinstance(branch.value, tuple):
        raise fail("a list belongs behind IN", branch, f"x IN {tokens(branch)[0]}", code="query_type")
    return branch.value


def window_of_parameter(branch: Branch, events: bool) -> Within:
    """Return the window of ``WITHIN :name``, or of ``WITHIN :name EVENTS``.

    The value is a length of time, a number, or a text such as ``"1 hour"``.
    """
    match constant(branch):
        case ex.Duration(ns=ns) if not events:
            return checked_window(Within(ns, "ns"))
        case ex.Literal(value=str() as text) if not events:
            window = window_of(text)
            assert window is not None
            return window
        case ex.Literal(value=bool() | None):
            pass
        case ex.Literal(value=int() | float() as value, exact=exact):
            number = exact if exact is not None else Fraction(repr(value))
            return checked_window(Within(number, "events" if events else "ticks"))
    hint = "a number of events" if events else "a timedelta, a text such as '1 hour', or a number"
    raise fail(f"`{tokens(branch)[0]}` is no window", branch, hint, code="query_type")


def _with_span(value: Constant | tuple[Constant, ...], where: ex.Span) -> Constant | tuple[Constant, ...]:
    if isinstance(value, tuple):
        return tuple(replace(constant, span=where) for constant in value)
    return replace(value, span=where)


def _constants(name: str, value: object) -> Constant | tuple[Constant, ...]:
    # An array of NumPy or Arrow, or a column of pandas or polars.
    as_list = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    if as_list is not None and getattr(value, "ndim", 1) == 1 and not isinstance(value, memoryview):
        value = as_list()
    if isinstance(value, Sequence | AbstractSet) and not isinstance(value, str | bytes | bytearray | memoryview):
        several = [*value] if isinstance(value, Sequence) else sorted(value, key=repr)
        if not several:
            raise QueryError(f"`:{name}` is an empty list", hint="a list for IN has one value or more")
        return tuple(_constant(name, element) for element in several)
    return _constant(name, value)


def _constant(name: str, value: object) -> Constant:
    match value:
        case None | bool():
            return ex.Literal(value)
        case ex.Literal() | ex.Duration() | ex.Timestamp():
            return value
        case str():
            if _SURROGATE.search(value):
                raise QueryError(f"`:{name}`: the text has half a character in it")
            return ex.Literal(str.__str__(value))
        case datetime():
            return ex.Timestamp(ns_of(value) + _extra_nanoseconds(value, "nanosecond"))
        case date():
            return ex.Timestamp(ns_of(datetime(value.year, value.month, value.day)))
        case timedelta():
            return ex.Duration(
                Fraction(value // timedelta(microseconds=1) * 1000 + _extra_nanoseconds(value, "nanoseconds"))
            )
    number = _number(name, value)
    if number is None:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        raise QueryError(f"`:{name}` cannot be a value of type {kind}", hint=_HINT, code="query_type")
    return number


def _extra_nanoseconds(value: object, name: str) -> int:
    """Return the nanoseconds beyond microseconds that times of pandas have."""
    nanoseconds = getattr(value, name, 0)
    return int(nanoseconds) if isinstance(nanoseconds, int) else 0


def _number(name: str, value: object) -> ex.Literal | None:
    if isinstance(value, Integral):
        exact = Fraction(int(value))
    elif isinstance(value, Decimal):
        if not value.is_finite():
            raise QueryError(f"`:{name}` is {value}, not a finite number", hint="None is null")
        _, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        if max(len(digits), abs(exponent)) > _DIGITS:
            raise QueryError(f"`:{name}` has too many digits", hint=f"at most {_DIGITS}", code="query_size")
        exact = Fraction(value)
        if exponent != 0:
            return _decimal(name, exact)
    elif isinstance(value, Rational):
        exact = Fraction(value)
        if exact.denominator != 1:
            return _decimal(name, exact)
    elif isinstance(value, Real):
        double = float(value)
        if not math.isfinite(double):
            raise QueryError(f"`:{name}` is {double}, not a finite number", hint="None is null")
        return ex.Literal(double)
    else:
        return None
    if not -_LARGEST <= exact < _LARGEST:
        raise QueryError(
            f"`:{name}` does not fit into 64 bits", hint="give it as a float or a Decimal", code="query_type"
        )
    return ex.Literal(int(exact))


def _decimal(name: str, exact: Fraction) -> ex.Literal:
    factor = exact.denominator
    for prime in (2, 5):
        while factor % prime == 0:
            factor //= prime
    if factor != 1:
        raise QueryError(f"`:{name}` is {exact}, which no decimal number equals", hint="round it, as float(...) does")
    try:
        return number_literal(exact, None)
    except OverflowError:
        raise QueryError(f"`:{name}` is too large a number", code="query_size") from None


def parameter_of_text(text: str) -> object:
    """Return the value of a parameter as it is typed on a command line: a constant of the language, a list of these in
    parentheses, or else a text as it is.

    >>> parameter_of_text("3"), parameter_of_text("'3'"), parameter_of_text("ACME")
    (Literal(value=3, span=None, exact=None), Literal(value='3', span=None, exact=None), 'ACME')
    >>> parameter_of_text("1 h 30 min")
    Duration(ns=Fraction(5400000000000, 1), span=None)
    >>> parameter_of_text("(A, 'B, C')")
    ['A', Literal(value='B, C', span=None, exact=None)]
    """
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        inner = text[1:-1]
        return [parameter_of_text(item) for item in _ITEM.findall(inner)] if inner.strip() else []
    if text.lower() in _WORDS:
        return ex.Literal(_WORDS[text.lower()])
    if token := _NUMBER.fullmatch(text):
        sign = -1 if token[1] == "-" else 1
        exact = exact_number(token[2]) * sign
        if token[2].isdecimal() and -_LARGEST <= exact < _LARGEST:
            return ex.Literal(int(exact))
        try:
            return number_literal(exact, None)
        except OverflowError:
            raise QueryError(f"{text} is too large a number", code="query_size") from None
    if token := _TEXT.fullmatch(text):
        return ex.Literal(text[1:-1].replace(text[0] * 2, text[0]))
    if token := _MOMENT.fullmatch(text):
        return ex.Timestamp(read_timestamp(token[1] or token[2] or ""))
    lengths = _LENGTH.findall(text)
    if lengths and not _LENGTH.sub("", text).strip() and all(unit.lower() in UNITS for _, unit in lengths):
        return ex.Duration(read_duration(lengths))
    return text
