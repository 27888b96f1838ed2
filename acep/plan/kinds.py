"""Checks the expressions of a query against the columns of a stream: names, and what may meet what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from acep.errors import QueryError, suggest
from acep.pattern.evaluation import FUNCTIONS, TIME_PARTS
from acep.pattern.expressions import (
    Aggregate,
    Attribute,
    Between,
    Binary,
    Call,
    Duration,
    Expr,
    In,
    IsNull,
    Length,
    Like,
    Literal,
    Timestamp,
    Unary,
)
from acep.plan.schema import Kind, Schema

__all__ = ["resolve"]

NUMBERS = ("int", "float")
LENGTHS = ("duration", "int", "float")


def resolve(expr: Expr, schema: Schema, *, condition: bool = False) -> tuple[Expr, str]:
    """The expression with its columns' real names and literals of the right kind, and what it gives.

    The kind is one of bool, int, float, string, timestamp, duration, null. With ``condition`` it must be
    a truth value. Raises :class:`QueryError` at the part that is wrong.
    """
    expr, kind = _resolve(expr, schema)
    if condition and kind not in ("bool", "null"):
        raise _error(expr, f"a condition is needed here, not a {kind}", "compare it with something")
    return expr, kind


def _error(expr: Expr, message: str, hint: str | None = None) -> QueryError:
    span = expr.span
    return QueryError(message, start=span.start if span else None, end=span.end if span else None, hint=hint)


def column(name: str, expr: Expr, schema: Schema) -> tuple[str, str]:
    """The real column behind an attribute name, and its kind; ``ts`` and ``type`` may stand for theirs."""
    kind = schema.kind(name)
    if kind is None and name == "ts":
        name, kind = schema.ts, schema.kind(schema.ts) or (Kind.TIMESTAMP if schema.instants else Kind.INT)
    if kind is None and name == "type" and schema.type is not None:
        name, kind = schema.type, schema.kind(schema.type) or Kind.STRING
    if kind is None and name == schema.ts:
        kind = Kind.TIMESTAMP if schema.instants else Kind.INT
    if kind is None and name == schema.type:
        kind = Kind.STRING
    if kind is None:
        known = [n for n, _ in schema.kinds]
        raise _error(expr, f"unknown column `{name}`", suggest(name, known))
    return name, kind.value


def _resolve(expr: Expr, schema: Schema) -> tuple[Expr, str]:
    match expr:
        case Literal(value=value):
            return expr, _kind_of_value(value)
        case Duration():
            return expr, "duration"
        case Timestamp():
            return expr, "timestamp"
        case Attribute(name=name):
            name, kind = column(name, expr, schema)
            return replace(expr, name=name), kind
        case Length():
            return expr, "int"
        case Aggregate():
            return _aggregate(expr, schema)
        case Unary(op=op, operand=x):
            x, kind = _resolve(x, schema)
            wanted = ("bool",) if op == "not" else LENGTHS
            _need(x, kind, wanted, "NOT" if op == "not" else "a minus sign")
            return replace(expr, operand=x), kind
        case Binary():
            return _binary(expr, schema)
        case Call():
            return _call(expr, schema)
        case In(operand=x, values=values):
            x, kind = _resolve(x, schema)
            parts = []
            for part in values:
                v, other = _resolve(part, schema)
                _, v = _comparable(x, kind, v, other)
                parts.append(v)
            return replace(expr, operand=x, values=tuple(parts)), "bool"
        case Between(operand=x, low=low, high=high):
            x, kind = _resolve(x, schema)
            low, k1 = _resolve(low, schema)
            high, k2 = _resolve(high, schema)
            _, low = _comparable(x, kind, low, k1)
            _, high = _comparable(x, kind, high, k2)
            return replace(expr, operand=x, low=low, high=high), "bool"
        case Like(operand=x):
            x, kind = _resolve(x, schema)
            _need(x, kind, ("string",), "LIKE")
            return replace(expr, operand=x), "bool"
        case IsNull(operand=x):
            x, _ = _resolve(x, schema)
            return replace(expr, operand=x), "bool"


def _kind_of_value(value: object) -> str:
    if value is None:
        return "null"
    return {bool: "bool", int: "int", float: "float", str: "string"}[type(value)]


def _need(expr: Expr, kind: str, wanted: tuple[str, ...], what: str) -> None:
    if kind != "null" and kind not in wanted:
        raise _error(expr, f"{what} needs {_listed(wanted)}, not a {kind}")


def _listed(kinds: tuple[str, ...]) -> str:
    words = {"bool": "a condition", "int": "a number", "float": "a number", "string": "text"}
    named = dict.fromkeys(words.get(k, f"a {k}") for k in kinds)
    return " or ".join(named)


def _aggregate(expr: Aggregate, schema: Schema) -> tuple[Expr, str]:
    if expr.name is None:
        return expr, "int"
    name, kind = column(expr.name, expr, schema)
    expr = replace(expr, name=name)
    if expr.function == "count":
        return expr, "int"
    if expr.function in ("avg", "sum") and kind not in (*NUMBERS, "null"):
        raise _error(expr, f"{expr.function} needs a number, not a {kind}")
    if expr.function in ("min", "max") and kind == "bool":
        raise _error(expr, f"{expr.function} needs a number, text or a timestamp, not a bool")
    return expr, "float" if expr.function == "avg" else kind


def _comparable(left: Expr, k1: str, right: Expr, k2: str) -> tuple[Expr, Expr]:
    """Both sides, once they can be compared: a text next to a timestamp is read as one."""
    if "null" in (k1, k2) or k1 == k2 or (k1 in LENGTHS and k2 in LENGTHS):
        return left, right
    for that, kind, other in ((right, k1, k2), (left, k2, k1)):
        if kind == "timestamp" and other == "string" and isinstance(that, Literal):
            moment = Timestamp(_instant(that), that.span)
            return (left, moment) if that is right else (moment, right)
    hint = None
    if "timestamp" in (k1, k2) and set(LENGTHS) & {k1, k2}:
        hint = "write a timestamp as TIMESTAMP '2024-01-31 10:00:00'"
    raise _error(right if right.span else left, f"a {k1} cannot be compared with a {k2}", hint)


def _instant(literal: Literal) -> int:
    try:
        moment = datetime.fromisoformat(str(literal.value).strip())
    except ValueError:
        raise _error(literal, f"`{literal.value}` is not a timestamp", "write '2024-01-31 10:00:00'") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    span = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return ((span.days * 86400 + span.seconds) * 1_000_000 + span.microseconds) * 1000


def _binary(expr: Binary, schema: Schema) -> tuple[Expr, str]:
    left, k1 = _resolve(expr.left, schema)
    right, k2 = _resolve(expr.right, schema)
    op = expr.op
    if op in ("and", "or"):
        _need(left, k1, ("bool",), op.upper())
        _need(right, k2, ("bool",), op.upper())
        return replace(expr, left=left, right=right), "bool"
    if op in ("=", "!=", "<", "<=", ">", ">="):
        left, right = _comparable(left, k1, right, k2)
        return replace(expr, left=left, right=right), "bool"
    both = replace(expr, left=left, right=right)
    if "null" in (k1, k2):
        return both, k2 if k1 == "null" else k1
    rule = ARITHMETIC.get((op, _sort(k1), _sort(k2)))
    if rule is None:
        signs = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "take the remainder of"}
        raise _error(right if right.span else left, f"cannot {signs[op]} a {k1} and a {k2}")
    return both, rule(k1, k2)


def _sort(kind: str) -> str:
    return "number" if kind in NUMBERS else kind


def _wider(a: str, b: str) -> str:
    return "int" if a == b == "int" else "float"


def _always(kind: str) -> Callable[[str, str], str]:
    return lambda a, b: kind


ARITHMETIC: dict[tuple[str, str, str], Callable[[str, str], str]] = {
    ("+", "number", "number"): _wider,
    ("-", "number", "number"): _wider,
    ("*", "number", "number"): _wider,
    ("/", "number", "number"): _always("float"),
    ("%", "number", "number"): _wider,
    ("-", "timestamp", "timestamp"): _always("duration"),
    ("+", "timestamp", "duration"): _always("timestamp"),
    ("-", "timestamp", "duration"): _always("timestamp"),
    ("+", "duration", "timestamp"): _always("timestamp"),
    ("+", "duration", "duration"): _always("duration"),
    ("-", "duration", "duration"): _always("duration"),
    # An integer ts counts ticks, so that a duration meets it as a number of ticks.
    ("+", "number", "duration"): _always("float"),
    ("-", "number", "duration"): _always("float"),
    ("+", "duration", "number"): _always("float"),
    ("-", "duration", "number"): _always("float"),
    ("*", "duration", "number"): _always("duration"),
    ("*", "number", "duration"): _always("duration"),
    ("/", "duration", "number"): _always("duration"),
    ("/", "duration", "duration"): _always("float"),
    ("/", "number", "duration"): _always("float"),
    ("%", "duration", "duration"): _always("duration"),
}

TEXT = ("lower", "upper", "length", "trim", "concat")
KEEPS = ("abs", "floor", "ceil", "round", "sign", "least", "greatest", "coalesce")


def _call(expr: Call, schema: Schema) -> tuple[Expr, str]:
    low, high, _, _ = FUNCTIONS[expr.name]
    if not low <= len(expr.args) <= high:
        wanted = str(low) if low == high else f"{low} to {high}"
        raise _error(expr, f"{expr.name} takes {wanted} arguments, not {len(expr.args)}")
    args, kinds = [], []
    for arg in expr.args:
        a, kind = _resolve(arg, schema)
        args.append(a)
        kinds.append(kind)
    result = replace(expr, args=tuple(args))
    name = expr.name
    if name in TEXT:
        for a, k in zip(args, kinds, strict=True):
            _need(a, k, ("string",), name)
        return result, "int" if name == "length" else "string"
    if name == "substring":
        _need(args[0], kinds[0], ("string",), name)
        for a, k in zip(args[1:], kinds[1:], strict=True):
            _need(a, k, ("int",), name)
        return result, "string"
    if name in TIME_PARTS:
        _need(args[0], kinds[0], ("timestamp",) if schema.instants else ("timestamp", "int"), name)
        return result, "int"
    if name in ("least", "greatest", "coalesce"):
        known = [k for k in kinds if k != "null"]
        first = kinds.index(known[0]) if known else 0
        for a, k in zip(args[first + 1 :], kinds[first + 1 :], strict=True):
            _comparable(args[first], kinds[first], a, k)
        numbers = [k for k in known if k in NUMBERS]
        return result, ("float" if "float" in numbers else known[0]) if known else "null"
    for a, k in zip(args, kinds, strict=True):
        _need(a, k, LENGTHS if name in KEEPS else NUMBERS, name)
    if name in ("floor", "ceil", "sign"):
        return result, "int"
    return result, kinds[0] if name in KEEPS else "float"
