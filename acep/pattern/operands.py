"""Check the types of operands and arguments, as far as this is possible without the columns of a stream.

An attribute may have any type, so this module rejects only what is wrong for all columns. :mod:`acep.plan` checks the
rest with the schema.
"""

from __future__ import annotations

from acep.functions.aggregates import AGGREGATES
from acep.functions.lookup import get_scalar, is_choice
from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.scalars.casts import cast_type

__all__ = ["CAST_HINTS", "TIME_ARITHMETIC", "check_condition", "kind_of"]

ANY = "any"
QUANTITY = "quantity"
_QUANTITIES = {"number", "duration", "timestamp", QUANTITY}
_UNIT = "give the number a unit, as in 5 min"

TIME_ARITHMETIC = {
    ("+", "timestamp", "duration"): "timestamp",
    ("+", "duration", "timestamp"): "timestamp",
    ("+", "duration", "duration"): "duration",
    ("-", "timestamp", "timestamp"): "duration",
    ("-", "timestamp", "duration"): "timestamp",
    ("-", "duration", "duration"): "duration",
    ("*", "duration", "number"): "duration",
    ("*", "number", "duration"): "duration",
    ("/", "duration", "number"): "duration",
    ("/", "duration", "duration"): "number",
    ("%", "duration", "duration"): "duration",
}
"""The kind of each operation on times that is possible, by its operator and the kinds of its operands."""


CAST_HINTS = {
    "duration": "divide it by one: (b.ts - a.ts) / 1 s is a number of seconds",
    "timestamp": "subtract another one: (b.ts - TIMESTAMP '1970-01-01') / 1 s is a number of seconds",
}
"""The ways to get a number from each kind of time."""


def check_condition(expr: ex.Expr) -> None:
    """Raise :class:`QueryError` (without the text) if the expression cannot be true or false."""
    kind = kind_of(expr)
    if kind not in ("boolean", ANY):
        hint = "write an attribute, as in a.x" if isinstance(expr, ex.Literal) else "compare it with something"
        raise ex.error_at(f"a condition is needed here, not a {kind}", expr, hint, code="query_type")


def kind_of(expr: ex.Expr) -> str:
    """Return the kind of an expression's value: ``number``, ``text``, ``boolean``, ``timestamp``, ``duration`` or
    ``null``; or ``quantity`` (a number or a time) or ``any`` if it depends on the columns.

    Raises :class:`QueryError` (without the text) if the operands are incompatible for all columns.

    >>> kind_of(ex.Binary("<", ex.Attribute("a", None, "x"), ex.Literal(3)))
    'boolean'
    """
    match expr:
        case ex.Literal(value=value):
            return "null" if value is None else {bool: "boolean", str: "text"}.get(type(value), "number")
        case ex.Duration():
            return "duration"
        case ex.Timestamp():
            return "timestamp"
        case ex.Length():
            return "number"
        case ex.Aggregate(function=function):
            entry = AGGREGATES[function]
            return "number" if entry.gives == "integer" else QUANTITY if entry.takes == "number" else ANY
        case ex.Attribute():
            return ANY
        case ex.Unary(op="not", operand=operand):
            check_condition(operand)
        case ex.Unary(operand=operand):
            return _minus(operand)
        case ex.Binary(op="and" | "or", left=left, right=right):
            check_condition(left)
            check_condition(right)
        case ex.Binary(op="+" | "-" | "*" | "/" | "%" as op, left=left, right=right):
            return _arithmetic(expr, op, kind_of(left), kind_of(right))
        case ex.Binary(left=left, right=right):
            _comparable(expr, left, right)
        case ex.In(operand=operand, values=values):
            for item in values:
                _comparable(item, operand, item, null=True)
        case ex.Between(operand=operand, low=low, high=high):
            _comparable(low, operand, low)
            _comparable(high, operand, high)
        case ex.Like(operand=operand):
            if kind_of(operand) not in ("text", ANY):
                raise ex.error_at(f"LIKE looks at texts, not at a {kind_of(operand)}", operand, code="query_type")
        case ex.IsNull(operand=operand):
            kind_of(operand)
        case ex.Call():
            return _call(expr)
    return "boolean"


def _minus(operand: ex.Expr) -> str:
    kind = kind_of(operand)
    if kind not in ("number", "duration", QUANTITY, ANY):
        raise ex.error_at(f"a {kind} has no sign", operand, code="query_type")
    return QUANTITY if kind == ANY else kind


def _arithmetic(expr: ex.Expr, op: str, left: str, right: str) -> str:
    """Return the kind of ``left op right``, with the usual arithmetic of timestamps and durations."""
    kinds = {left, right}
    for kind in ("text", "boolean", "null"):
        if kind in kinds:
            hint = "join texts by concat(a.x, b.x)" if kind == "text" and op == "+" else None
            message = f"`{op}` with NULL is always NULL" if kind == "null" else f"`{op}` cannot take a {kind}"
            raise ex.error_at(message, expr, hint, code="query_type")
    if kinds & {ANY, QUANTITY}:
        return QUANTITY
    if kinds == {"number"}:
        return "number"
    if (op, left, right) not in TIME_ARITHMETIC:
        times = "number" in kinds and kinds <= {"number", "duration", "timestamp"}
        raise ex.error_at(
            f"`{op}` cannot take a {left} and a {right}", expr, _UNIT if times else None, code="query_type"
        )
    return TIME_ARITHMETIC[op, left, right]


def _comparable(part: ex.Expr, left: ex.Expr, right: ex.Expr, *, null: bool = False) -> None:
    kinds = (kind_of(left), kind_of(right))
    if "null" in kinds and not null:
        raise ex.error_at(
            "a comparison with NULL is never true", part, "write x IS NULL or x IS NOT NULL", code="query_type"
        )
    value_kinds = {k for k in kinds if k not in (ANY, "null")}
    if len(value_kinds) > 1 and not (QUANTITY in value_kinds and value_kinds <= _QUANTITIES):
        hint = _UNIT if value_kinds == {"number", "duration"} else None
        raise ex.error_at(f"a {kinds[0]} cannot be compared with a {kinds[1]}", part, hint, code="query_type")


def _call(expr: ex.Call) -> str:
    if expr.name == CASE:
        for condition in expr.args[:-1:2]:
            check_condition(condition)
    if expr.user_function is not None:
        for arg in expr.args:
            if (kind := kind_of(arg)) in ("duration", "timestamp"):
                raise ex.error_at(f"`{expr.name}` takes no {kind}", arg, "a number, a text or a truth value")
        return "number" if expr.user_function.returns in ("integer", "float") else expr.user_function.returns
    if (target := cast_type(expr.name)) is not None:
        return _cast(expr.args[0], target)
    name = expr.name
    kinds = [kind_of(a) for a in (expr.args if name != CASE else (*expr.args[1::2], expr.args[-1]))]
    return _choice(expr, kinds) if name == CASE or is_choice(name) else _scalar(expr, kinds)


def _choice(expr: ex.Call, kinds: list[str]) -> str:
    """Return the kind of a call that gives one of its values, which are of ``kinds``."""
    value_kinds = {k for k in kinds if k not in (ANY, "null")}
    if QUANTITY in value_kinds and value_kinds <= _QUANTITIES:
        return QUANTITY
    if len(value_kinds) > 1:
        what = "CASE needs values" if expr.name == CASE else f"`{expr.name}` needs arguments"
        raise ex.error_at(f"{what} of one kind, not a {' and a '.join(sorted(value_kinds))}", expr, code="query_type")
    return ANY if ANY in kinds or not value_kinds else value_kinds.pop()


_ARGUMENTS = {"text": "text", "integer": "number", "number": "number", "time": "timestamp", "condition": "boolean"}
_RESULTS = {"text": "text", "integer": "number", "float": "number", "condition": "boolean"}


def _scalar(expr: ex.Call, kinds: list[str]) -> str:
    """Return the kind of a call of a function whose arguments are of ``kinds``."""
    entry = get_scalar(expr.name)
    for i, (arg, kind) in enumerate(zip(expr.args, kinds, strict=True)):
        takes = entry.kind_at(i)
        if takes == "value":
            continue
        needed_kind = _ARGUMENTS.get(takes) or ("duration" if kind == "duration" else "number")
        if kind not in (needed_kind, ANY, "null") and not (kind == QUANTITY and needed_kind in _QUANTITIES):
            raise ex.error_at(f"`{entry.name}` needs a {needed_kind} here, not a {kind}", arg, code="query_type")
    if entry.gives != "argument":
        return _RESULTS[entry.gives]
    if entry.takes[0] == "length":
        return "duration" if kinds[0] == "duration" else QUANTITY
    return _ARGUMENTS[entry.takes[0]]


def _cast(arg: ex.Expr, target: str) -> str:
    kind = kind_of(arg)
    refused = ("duration",) if target == "text" else ("duration", "timestamp")
    if kind in refused:
        raise ex.error_at(f"a {kind} cannot be cast to {target}", arg, CAST_HINTS[kind], code="query_type")
    return "number" if target in ("integer", "float") else target
