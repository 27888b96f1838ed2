"""From the grammar's tree to expressions: references, literals, operators and functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lark import Token, Tree

from acep.errors import QueryError, suggest
from acep.pattern.evaluation import FUNCTIONS
from acep.pattern.expressions import (
    Aggregate,
    Attribute,
    Between,
    Binary,
    Call,
    Duration,
    Expr,
    In,
    Index,
    IsNull,
    Length,
    Like,
    Literal,
    Span,
    Timestamp,
    Unary,
)
from acep.pattern.syntax import Branch, Leaf, branches, fail, quoted, span, tokens, unquote
from acep.pattern.times import exact_number, read_timestamp, unit_ns

__all__ = ["AGGREGATES", "conjuncts", "expression", "label", "name"]

AGGREGATES = ("avg", "sum", "min", "max", "count", "first", "last")
_SCALAR = {"min": "least", "max": "greatest"}
_ALIASES = {"average": "avg", "mean": "avg", "pow": "power", "ceiling": "ceil", "substr": "substring"}
_ELSEWHERE = {"log": "write ln(x) or log10(x)", "if": "write the alternatives with AND and OR"}
_COMPARE = {"==": "=", "<>": "!="}
_INT_LIMIT = 2**63


@dataclass(frozen=True)
class Reference:
    """``a``, ``a[]``, ``a[..i-1]``, ``a[1].x``: not yet known to be an attribute or what an aggregate is over."""

    var: str
    index: Index
    scope: str | None  # "before", "all", or None where an index or nothing stands
    name: str | None
    span: Span


def name(branch: Branch) -> str:
    """The text of a ``name``, ``label`` or ``type``."""
    return unquote(tokens(branch)[0])


label = name


def conjuncts(branch: Branch) -> tuple[list[Expr], list[str]]:
    """The conjuncts of a condition, split at its top-level ANDs, and the attributes of its ``[attr]``."""
    found: list[Expr] = []
    ties: list[str] = []
    stack: list[Leaf] = [branch]
    while stack:
        leaf = stack.pop()
        if isinstance(leaf, Tree) and leaf.data == "and":
            stack.extend(reversed(leaf.children))
        elif isinstance(leaf, Tree) and leaf.data == "tie":
            ties.extend(label(b) for b in branches(leaf))
        else:
            found.append(expression(leaf))
    return found, ties


def expression(leaf: Leaf) -> Expr:
    """The expression of a part of the tree. Raises :class:`QueryError` (without the text)."""
    assert isinstance(leaf, Tree)
    return _BUILD[leaf.data](leaf)


def _at(leaf: Leaf, error: QueryError) -> QueryError:
    """An error that had no place, at its place."""
    return fail(error.message, leaf, error.hint)


# ---- operators


def _balanced(op: str, operands: Sequence[Expr], where: Span) -> Expr:
    """A chain of ANDs or ORs as a balanced tree, so that a long chain is not a deep one."""
    if len(operands) == 1:
        return operands[0]
    half = (len(operands) + 1) // 2
    return Binary(op, _balanced(op, operands[:half], where), _balanced(op, operands[half:], where), where)


def _logical(branch: Branch) -> Expr:
    return _balanced(branch.data, [expression(c) for c in branch.children], span(branch))


def _chain(branch: Branch) -> Expr:
    """``a - b + c`` from the left."""
    start = span(branch).start
    result = expression(branch.children[0])
    for op, leaf in zip(branch.children[1::2], branch.children[2::2], strict=True):
        result = Binary(str(op), result, expression(leaf), Span(start, span(leaf).end))
    return result


def _comparison(branch: Branch) -> Expr:
    left, op, right = branch.children
    return Binary(_COMPARE.get(str(op), str(op)), expression(left), expression(right), span(branch))


def _negated(branch: Branch) -> Expr:
    return Unary("not", expression(branch.children[0]), span(branch))


def _signed(branch: Branch) -> Expr:
    sign, operand = branch.children
    value = expression(operand)
    if sign == "+":
        return value
    if isinstance(value, Literal) and isinstance(value.value, (int, float)) and not isinstance(value.value, bool):
        return Literal(-value.value, span(branch))
    if isinstance(value, Duration):
        return Duration(-value.ns, span(branch))
    return Unary("-", value, span(branch))


def _in(branch: Branch) -> Expr:
    operand, *values = (expression(c) for c in branch.children)
    return In(operand, tuple(values), branch.data == "not_in", span(branch))


def _between(branch: Branch) -> Expr:
    operand, low, high = (expression(c) for c in branch.children)
    return Between(operand, low, high, branch.data == "not_between", span(branch))


def _like(branch: Branch) -> Expr:
    operand, pattern = (expression(c) for c in branch.children)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise fail("LIKE needs a text in quotes", branch.children[1], "x LIKE 'A%'")
    return Like(operand, pattern.value, branch.data == "not_like", span(branch))


def _is_null(branch: Branch) -> Expr:
    return IsNull(expression(branch.children[0]), branch.data == "is_not_null", span(branch))


# ---- literals


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
    (token,), (unit,) = tokens(branch), branches(branch)
    word = tokens(unit)[0]
    if word.type == "EVENTS":
        raise fail("a number of events is no value", branch, "`n EVENTS` stands after WITHIN only")
    try:
        return Duration(exact_number(token) * unit_ns(word), span(branch))
    except QueryError as error:
        raise _at(branch, error) from None


def _timestamp(branch: Branch) -> Expr:
    (token,) = tokens(branch)
    try:
        return Timestamp(read_timestamp(unquote(token)), span(branch))
    except QueryError as error:
        raise _at(token, error) from None


# ---- references


def _reference(branch: Branch) -> Reference:
    var = name(branches(branch, "name")[0])
    index: Index = None
    scope: str | None = None
    for part in branches(branch, "index"):
        index, scope = _index(part, var)
    attribute = None
    for part in branches(branch, "attribute"):
        attribute = label(branches(part)[0])
    return Reference(var, index, scope, attribute, span(branch))


def _index(branch: Branch, var: str) -> tuple[Index, str | None]:
    """The index in brackets, or the scope of an aggregate."""
    ranged = bool(tokens(branch))
    places = branches(branch)
    if not places:
        if ranged:
            raise fail("`a[..]` needs an end", branch, f"write {var}[..i-1] or {var}[]")
        return None, "all"
    words = [str(t) for t in tokens(places[0])]
    types = [t.type for t in tokens(places[0])]
    match words:
        case ["i"] if not ranged:
            return "i", None
        case ["i", "-", "1"]:
            return (None, "before") if ranged else ("i-1", None)
        case [owner, length] if length.upper() == "LEN" and types == ["NAME", "NAME"]:
            if owner != var:
                raise fail(f"{quoted(f'{var}[{owner}.LEN]')}: the index speaks of another variable", places[0], f"write {var}[{var}.LEN]")
            return (None, "all") if ranged else ("last", None)
        case [number] if types == ["NUMBER"] and number.isdecimal() and not ranged and len(number) < 19:
            if int(number) < 1:
                raise fail("the first event is number 1", places[0], f"write {var}[1]")
            return int(number), None
        case ["-", "1"]:
            hint = f"write {var}[{var}.LEN] for the last event, {var}[i-1] for the one before {var}[i]"
        case ["i", _, _]:
            hint = f"only {var}[i] and {var}[i-1] can be compared"
        case [word] if word.upper() == "LEN":
            hint = f"write {var}[{var}.LEN]"
        case _:
            hint = f"an index is a number, i, i-1 or {var}.LEN; a range is ..i-1"
    raise fail("this is not an index", places[0], hint)


def _scalar(branch: Branch) -> Expr:
    """A reference where a value is needed."""
    ref = _reference(branch)
    if ref.scope is not None:
        shown = f"{ref.var}[]" if ref.scope == "all" else f"{ref.var}[..i-1]"
        hint = f"use it in an aggregate, such as avg({shown}.{ref.name or 'x'})"
        raise fail(f"{quoted(shown)} stands for many events", branch, hint)
    if ref.name is None:
        hint = f"write {quoted(ref.var + '.attribute')}; an attribute needs its variable before it"
        raise fail(f"{quoted(ref.var)} is not a value", branch, hint)
    if ref.index is None and ref.name == "LEN" and _plain(branch):
        return Length(ref.var, ref.span)
    return Attribute(ref.var, ref.index, ref.name, ref.span)


def _plain(branch: Branch) -> bool:
    """Whether the attribute is written without quotes: ``a."LEN"`` is an attribute."""
    return tokens(branches(branches(branch, "attribute")[0])[0])[0].type == "NAME"


def _tie(branch: Branch) -> Expr:
    raise fail("`[attribute]` stands alone, joined by AND", branch, "compare the attributes instead: a.x = b.x")


# ---- functions


def _call(branch: Branch) -> Expr:
    (token,) = tokens(branch)
    args = branches(branch)
    function = _ALIASES.get(token.lower(), token.lower())
    if function == "prev":
        return _previous(branch, args)
    if function in AGGREGATES and (function not in _SCALAR or len(args) < 2):
        return _aggregate(branch, function, args)
    function = _SCALAR.get(function, function)
    if function not in FUNCTIONS:
        hint = _ELSEWHERE.get(function) or suggest(function[:60], [*FUNCTIONS, *AGGREGATES, "prev"])
        raise fail(f"unknown function {quoted(token)}", token, hint)
    least, most, _, _ = FUNCTIONS[function]
    if not least <= len(args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise fail(f"`{function}` takes {wanted} argument{'s' if wanted != '1' else ''}, not {len(args)}", branch)
    return Call(function, tuple(expression(a) for a in args), span(branch))


def _previous(branch: Branch, args: list[Branch]) -> Expr:
    """``prev(a.x)`` is ``a[i-1].x`` (the 2012 paper, section 3)."""
    ref = _reference(args[0]) if len(args) == 1 and args[0].data == "reference" else None
    if ref is None or ref.name is None or ref.scope is not None or ref.index not in (None, "i"):
        raise fail("`prev` takes one attribute", branch, "prev(a.x), the same as a[i-1].x")
    return Attribute(ref.var, "i-1", ref.name, span(branch))


def _aggregate(branch: Branch, function: str, args: list[Branch]) -> Expr:
    if len(args) != 1 or args[0].data != "reference":
        raise fail(f"`{function}` goes over the events of one variable", branch, f"{function}(a[].x) or {function}(a[..i-1].x)")
    ref = _reference(args[0])
    if ref.index is not None:
        hint = f"write {ref.var}[..i-1] for the events before it, {ref.var}[] for all"
        raise fail(f"`{function}` goes over many events, not one", args[0], hint)
    if ref.name is None and function != "count":
        raise fail(f"`{function}` needs an attribute", args[0], f"{function}({ref.var}[].x)")
    return Aggregate(function, ref.var, "before" if ref.scope == "before" else "all", ref.name, span(branch))


_BUILD: dict[str, Callable[[Branch], Expr]] = {
    "or": _logical,
    "and": _logical,
    "negated": _negated,
    "comparison": _comparison,
    "in": _in,
    "not_in": _in,
    "between": _between,
    "not_between": _between,
    "like": _like,
    "not_like": _like,
    "is_null": _is_null,
    "is_not_null": _is_null,
    "sum": _chain,
    "product": _chain,
    "sign_of": _signed,
    "number": _number,
    "percent": _percent,
    "string": _string,
    "constant": _constant,
    "duration": _duration,
    "timestamp": _timestamp,
    "reference": _scalar,
    "tie": _tie,
    "call": _call,
}
