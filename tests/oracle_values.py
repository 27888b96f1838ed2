"""What an expression is worth, for the oracle: a small evaluator of its own, sharing nothing with acep's.

``value(expr, look)`` asks ``look`` for the worth of each reference to an event. ``None`` is null and
unknown. Times (durations, TIMESTAMP, ``hour(...)``) are left out: the oracle knows integer times only.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from acep.pattern import expressions as x

__all__ = ["Leaf", "aggregate", "leaves", "part_of", "value"]

Leaf = x.Attribute | x.Length | x.Aggregate
Look = Callable[[Leaf], Any]


def parts(expr: x.Expr) -> tuple[x.Expr, ...]:
    """The direct parts of an expression."""
    match expr:
        case x.Unary() | x.IsNull() | x.Like():
            return (expr.operand,)
        case x.Binary():
            return (expr.left, expr.right)
        case x.Call():
            return expr.args
        case x.In():
            return (expr.operand, *expr.values)
        case x.Between():
            return (expr.operand, expr.low, expr.high)
        case _:
            return ()


def leaves(expr: x.Expr) -> Iterator[Leaf]:
    """The references to events in an expression."""
    if isinstance(expr, (x.Attribute, x.Length, x.Aggregate)):
        yield expr
    for part in parts(expr):
        yield from leaves(part)


def value(expr: x.Expr, look: Look) -> Any:
    """The worth of ``expr``: three-valued logic, and null wherever there is no answer."""
    match expr:
        case x.Attribute() | x.Length() | x.Aggregate():
            return look(expr)
        case x.Literal():
            return expr.value
        case x.Unary(op="not"):
            return negate(value(expr.operand, look))
        case x.Unary():
            operand = value(expr.operand, look)
            return None if operand is None else -operand
        case x.Binary(op="and"):
            return both(value(expr.left, look), value(expr.right, look))
        case x.Binary(op="or"):
            # De Morgan holds in three-valued logic too.
            return negate(both(negate(value(expr.left, look)), negate(value(expr.right, look))))
        case x.Binary():
            return binary(expr.op, value(expr.left, look), value(expr.right, look))
        case x.Call(name="case"):
            *pairs, other = expr.args
            for n in range(0, len(pairs), 2):
                if value(pairs[n], look) is True:
                    return value(pairs[n + 1], look)
            return value(other, look)
        case x.Call(name="cast integer" | "cast float" | "cast text" | "cast boolean"):
            operand = value(expr.args[0], look)
            return None if operand is None else cast(expr.name.split()[1], operand)
        case x.Call():
            return call(expr.name, [value(arg, look) for arg in expr.args])
        case x.In():
            operand = value(expr.operand, look)
            equal = [binary("=", operand, value(v, look)) for v in expr.values]
            found = True if True in equal else None if None in equal else False
            return negate(found) if expr.negated else found
        case x.Between():
            operand = value(expr.operand, look)
            above = binary(">=", operand, value(expr.low, look))
            below = binary("<=", operand, value(expr.high, look))
            inside = both(above, below)
            return negate(inside) if expr.negated else inside
        case x.Like():
            operand = value(expr.operand, look)
            if operand is None:
                return None
            like = re.fullmatch(like_pattern(expr.pattern), operand, re.DOTALL) is not None
            return like is not expr.negated
        case x.IsNull():
            return (value(expr.operand, look) is None) is not expr.negated
        case _:
            raise NotImplementedError(type(expr).__name__)


def negate(a: bool | None) -> bool | None:
    return None if a is None else not a


def both(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def binary(op: str, a: Any, b: Any) -> Any:
    """Comparison or arithmetic."""
    if a is None or b is None:
        return None
    match op:
        case "=":
            return a == b
        case "!=":
            return a != b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case ">=":
            return a >= b
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return None if b == 0 else a / b
        case "%":
            if b == 0:
                return None
            # The sign of the dividend, as in SQL; Python's own has that of the divisor.
            return math.fmod(a, b) if isinstance(a, float) or isinstance(b, float) else a - b * int(Fraction(a, b))
    raise NotImplementedError(op)


def call(name: str, args: list[Any]) -> Any:
    """The scalar functions that need no clock."""
    if name == "coalesce":
        return next((a for a in args if a is not None), None)
    if name in ("least", "greatest"):
        known = [a for a in args if a is not None]
        return (min if name == "least" else max)(known) if known else None
    if any(a is None for a in args):
        return None
    match name:
        case "abs":
            return abs(args[0])
        case "sign":
            return (args[0] > 0) - (args[0] < 0)
        case "floor":
            return math.floor(args[0])
        case "ceil":
            return math.ceil(args[0])
        case "sqrt":
            return math.sqrt(args[0]) if args[0] >= 0 else None
        case "power":
            return math.pow(args[0], args[1])
        case "lower":
            return args[0].lower()
        case "upper":
            return args[0].upper()
        case "length":
            return len(args[0])
        case "concat":
            return "".join(args)
        case "regexp_like":
            return re.search(args[1].replace("$", r"\Z"), args[0], re.ASCII) is not None
        case "regexp_extract":
            hit = re.search(args[1].replace("$", r"\Z"), args[0], re.ASCII)
            return None if hit is None else hit[args[2]]
        case "ip_in":
            return in_network(*args)
    raise NotImplementedError(name)


def in_network(text: str, network: str) -> bool | None:
    """Whether the first bits of an address of IPv4 are those of a network, by arithmetic."""
    if not re.fullmatch(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})", text):
        return None
    first, _, length = network.partition("/")
    numbers = [[int(part) for part in address.split(".")] for address in (text, first)]
    if max(map(max, numbers)) > 255:
        return None
    of_text, of_network = (sum(part << 8 * (3 - i) for i, part in enumerate(parts)) for parts in numbers)
    return of_text >> (32 - int(length)) == of_network >> (32 - int(length))


def cast(target: str, a: Any) -> Any:
    """CAST of what is no null."""
    text = a.strip(" \t\r\n") if isinstance(a, str) else ""
    match target:
        case "integer" if isinstance(a, str):
            number = int(text) if re.fullmatch("[+-]?[0-9]+", text) else None
            return number if number is not None and -(2**63) <= number < 2**63 else None
        case "integer":
            return int(a)
        case "float" if isinstance(a, str):
            number = re.fullmatch(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?", text)
            return None if number is None else float(text)
        case "float":
            return float(a)
        case "boolean" if isinstance(a, str):
            return {"true": True, "false": False}.get(text.lower())
        case "boolean":
            return a != 0
    if isinstance(a, list):
        return json.dumps(a, ensure_ascii=False, separators=(",", ":"))
    return str(a).lower() if isinstance(a, bool) else str(a)


def part_of(name: str, row: dict[str, Any]) -> Any:
    """The field of an object or the part of a list that an attribute names, in a row of Python values."""
    if name.startswith("contains("):
        path, _, constant = name.removeprefix("contains(").removesuffix(")").partition(", ")
        items = part_of(path, row)
        wanted = constant[1:-1] if constant.startswith("'") else float(constant) if "." in constant else int(constant)
        if items is None or wanted in items:
            return None if items is None else True
        return None if any(item is None or item != item for item in items) else False  # NaN is null
    found: Any = row
    for step in re.findall(r"[^.\[\]]+", name):
        if found is None:
            return None
        if isinstance(found, list):
            found = found[int(step) - 1] if int(step) <= len(found) else None
        else:
            found = found.get(step)
    return found


def like_pattern(pattern: str) -> str:
    """A LIKE pattern as a regular expression."""
    out = []
    rest = iter(pattern)
    for c in rest:
        if c == "\\":
            out.append(re.escape(next(rest, "\\")))
        else:
            out.append({"%": ".*", "_": "."}.get(c) or re.escape(c))
    return "".join(out)


def aggregate(function: str, events: list[Any]) -> Any:
    """``function`` over what the events hold: nulls do not count, but the first event may hold one."""
    if function in ("first", "last"):
        return events[0 if function == "first" else -1] if events else None
    known = [e for e in events if e is not None]
    if function == "count":
        return len(known)
    if function == "count distinct":
        return len(dict.fromkeys(known))
    if function in ("stddev", "stddev_pop"):
        by = len(known) - (function == "stddev")
        if by <= 0:
            return None
        mean = Fraction(sum(map(Fraction, known)), len(known))
        return math.sqrt(sum((one - mean) ** 2 for one in map(Fraction, known)) / by)
    if not known:
        return None
    match function:
        case "sum":
            return sum(known)
        case "avg":
            return sum(known) / len(known)
        case "min":
            return min(known)
        case "max":
            return max(known)
    raise NotImplementedError(function)
