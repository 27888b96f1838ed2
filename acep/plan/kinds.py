"""Check a query's expressions against the columns of a stream: their names, and the kinds of operands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING

from acep.errors import QueryError, suggest
from acep.functions.aggregates import AGGREGATES
from acep.functions.lookup import find_scalar, get_scalar
from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE, EXACT
from acep.pattern.list_parts import list_part, text_name
from acep.pattern.operands import CAST_HINTS, TIME_ARITHMETIC
from acep.pattern.scalars.casts import DECIMAL_TEXT, TIMESTAMP_TEXT, TO_DECIMAL, cast_type
from acep.pattern.times import ns_of
from acep.pattern.user_functions import Function
from acep.pattern.walk import attributes
from acep.plan import decimals
from acep.plan.decimals import DECIMAL, Typed, article
from acep.plan.schema import Kind, Schema

if TYPE_CHECKING:
    from acep.functions.scalar_function import ScalarFunction

__all__ = ["RESULT_KINDS", "column", "is_difference_of_ticks", "is_whole_ticks", "order_error",
           "ordered_categories", "resolve"]  # fmt: skip

NUMBERS = ("int", "float", DECIMAL)
LENGTHS = ("duration", *NUMBERS)
_VALUES = {type(None): "null", bool: "bool", int: "int", float: "float", str: "string"}


def resolve(expr: ex.Expr, schema: Schema, *, condition: bool = False) -> Typed:
    """Return the expression with real column names and literals of the right kind, and the kind of its result.

    Decimals become integers (:mod:`acep.plan.decimals`). With ``condition`` the result must be a truth value. Raise
    :class:`QueryError` with the position of the wrong part.
    """
    typed = _resolve(expr, schema)
    if condition and typed.kind not in ("bool", "null"):
        raise ex.error_at(
            f"a condition is needed here, not {typed.named}",
            typed.expr,
            "compare it with something",
            code="query_type",
        )
    return typed


def column(name: str, expr: ex.Expr, schema: Schema) -> tuple[str, str]:
    """Return the real column of an attribute name, and its kind. ``ts`` and ``type`` are aliases of these columns."""
    name = schema.column_name(name)
    role_kinds = {schema.type: Kind.STRING, schema.ts: Kind.TIMESTAMP if schema.instants else Kind.INT}
    kind = schema.kind(name) or role_kinds.get(name)
    if kind is None:
        if (why := dict(schema.unusable).get(name)) is not None:
            what, _, hint = why.partition("; ")
            raise ex.error_at(f"column `{name}` {what}", expr, hint or None, code="query_name")
        if (wrong := _no_part(name, schema)) is not None:
            raise ex.error_at(wrong[0], expr, wrong[1] or None, code="query_type")
        # Columns that acep adds to tell rows apart are not the user's.
        added = {role for role in (schema.seq, schema.id) if role is not None and role.startswith((" ", "__"))}
        names = [label for label, _ in schema.kinds if label not in added]
        if (reason := _without_fields(name, schema)) is not None:
            raise ex.error_at(f"unknown column `{name}`: {reason[0]}", expr, reason[1], code="query_name")
        raise ex.error_at(f"unknown column `{name}`", expr, suggest(name, names), code="query_name")
    return name, kind.value


def _without_fields(name: str, schema: Schema) -> tuple[str, str | None] | None:
    """Say why the column of which a field is named cannot be used, and what to do; ``None`` if that is not so, or if it
    has fields."""
    unusable = dict(schema.unusable)
    root = next((name[:i] for i, sign in enumerate(name) if sign == "." and name[:i] in unusable), None)
    if root is None or unusable[root].startswith("is struct"):
        return None
    what, _, hint = unusable[root].partition("; ")
    return f"column `{root}` {what}", hint or None


def _no_part(name: str, schema: Schema) -> tuple[str, str] | None:
    """Say why a column has no such part, and what to do; ``None`` if no part is named, or of no column."""
    from acep.pattern.key_calls import key_call

    if (call := key_call(name)) is not None:
        source_kind = schema.kind(call.name)
        if source_kind is not None:
            return f"`{call.function}` takes a text, and column `{call.name}` holds {source_kind.value} values", ""
        return f"unknown column `{call.name}`, of which the key is `{name}`", ""
    part = list_part(name)
    base = part.name if part is not None else name[: name.rindex("[")] if "[" in name else ""
    kind = schema.kind(base)
    if kind is not None:
        hint = "a part of a text is found by LIKE '%x%'" if kind is Kind.STRING else "take the column itself"
        return f"column `{base}` holds {kind.value} values, and no lists", hint
    why = dict(schema.unusable).get(base)
    if why is None:
        return None
    what = f"column `{base}` {why.partition(', and ')[0]}"
    if part is None:
        return (
            f"{what}: no element of it can be used",
            "name a field of an element, as in a.x[1].id, or make it a column",
        )
    if part.value is None:
        return f"{what}: it has no text", "name an element, as in a.x[1]"
    return f"{what}: it cannot contain {part.constant}", "look for a value of the type of its elements"


def _of_column(expr: ex.Expr, name: str, schema: Schema) -> Typed:
    name, kind = column(name, expr, schema)
    scale = schema.scale(name)
    assert isinstance(expr, ex.Attribute | ex.Aggregate)
    if schema.counts_ticks(name):
        return Typed(replace(expr, name=name), "duration")
    return Typed(replace(expr, name=name), kind if scale is None else DECIMAL, scale or 0)


def _resolve(expr: ex.Expr, schema: Schema) -> Typed:
    match expr:
        case ex.Literal(value=value):
            return Typed(expr, _VALUES[type(value)], exact=decimals.exact_value(expr))
        case ex.Duration():
            return Typed(expr, "duration")
        case ex.Timestamp():
            return Typed(expr, "timestamp")
        case ex.Attribute(name=name):
            return _of_column(expr, name, schema)
        case ex.Length():
            return Typed(expr, "int")
        case ex.Aggregate():
            return _aggregate(expr, schema)
        case ex.Unary(op=op, operand=operand):
            x = _resolve(operand, schema)
            operand_kinds = ("bool",) if op == "not" else LENGTHS
            _need(x, operand_kinds, "NOT" if op == "not" else "a minus sign")
            exact = None if x.exact is None else -x.exact
            return Typed(replace(expr, operand=x.expr), "bool" if op == "not" else x.kind, x.scale, exact)
        case ex.Binary():
            return _binary(expr, schema)
        case ex.Call():
            return _call(expr, schema)
        case ex.In(operand=operand, values=values, negated=negated):
            x = _resolve(operand, schema)
            parts = [_comparable(x, _resolve(part, schema), schema)[1] for part in values]
            if not decimals.are_directly_comparable([x, *parts]):
                return Typed(decimals.is_one_of(x, parts, negated, expr.span), "bool")
            return Typed(replace(expr, operand=x.expr, values=tuple(part.expr for part in parts)), "bool")
        case ex.Between(operand=operand, low=lower, high=upper, negated=negated):
            x = _resolve(operand, schema)
            low, high = (_comparable(x, _resolve(bound, schema), schema)[1] for bound in (lower, upper))
            _check_order((x, low, high), schema)
            if not decimals.are_directly_comparable([x, low, high]):
                return Typed(decimals.is_between(x, low, high, negated, expr.span), "bool")
            return Typed(replace(expr, operand=x.expr, low=low.expr, high=high.expr), "bool")
        case ex.Like(operand=operand):
            x = _resolve(operand, schema)
            _need(x, ("string",), "LIKE")
            return Typed(replace(expr, operand=x.expr), "bool")
        case ex.IsNull(operand=operand):
            return Typed(replace(expr, operand=_resolve(operand, schema).expr), "bool")


def _need(x: Typed, kinds: tuple[str, ...], what: str) -> None:
    if x.kind != "null" and x.kind not in kinds:
        raise ex.error_at(
            f"{what} needs {_list_kinds(kinds)}, not {x.named}",
            x.expr,
            "CAST(x AS type) gives another type",
            code="query_type",
        )


def _list_kinds(kinds: tuple[str, ...]) -> str:
    if kinds == ("int",):
        return "an integer"
    words = {"bool": "a condition", "string": "text", **dict.fromkeys(NUMBERS, "a number")}
    named = dict.fromkeys(words.get(k, f"{article(k)} {k}") for k in kinds)
    return " or ".join(named)


def _aggregate(expr: ex.Aggregate, schema: Schema) -> Typed:
    if expr.name is None:
        return Typed(expr, "int")
    x = _of_column(expr, expr.name, schema)
    entry = AGGREGATES[expr.function]
    if entry.gives == "integer":
        return Typed(x.expr, "int")
    if entry.takes == "number" and x.kind not in (*LENGTHS, "null"):
        raise ex.error_at(
            f"{expr.function} needs a number, and `{expr.name}` is {x.named}",
            expr,
            "CAST(x AS double) makes a number of a text",
            code="query_type",
        )
    if entry.takes == "ordered" and x.kind == "bool":
        raise ex.error_at(
            f"{expr.function} needs a number, text or a timestamp, and `{expr.name}` is a bool",
            expr,
            "count_if(x) counts the rows in which a condition holds",
            code="query_type",
        )
    if entry.takes == "ordered":
        _check_order((x,), schema)
    if entry.gives == "argument":
        return x
    return Typed(decimals.as_float(x) if entry.needs_float else x.expr, "duration" if x.kind == "duration" else "float")


def _comparable(left: Typed, right: Typed, schema: Schema) -> tuple[Typed, Typed]:
    """Return both sides, made comparable: a text literal beside a timestamp is read as a timestamp."""
    k1, k2 = left.kind, right.kind
    _check_unit(left, right, schema)
    if "null" in (k1, k2) or k1 == k2 or (k1 in LENGTHS and k2 in LENGTHS):
        return left, right
    for side, kind, other in ((right, k1, k2), (left, k2, k1)):
        if kind == "timestamp" and other == "string" and isinstance(side.expr, ex.Literal):
            moment = Typed(ex.Timestamp(_instant(side.expr), side.expr.span), "timestamp")
            return (left, moment) if side is right else (moment, right)
    hint = "write a timestamp as TIMESTAMP '2024-01-31 10:00:00'"
    message = f"{left.named} cannot be compared with {right.named}"
    timed = "timestamp" in (k1, k2) and set(LENGTHS) & {k1, k2}
    raise ex.error_at(message, right.expr.span or left.expr.span, hint if timed else None, code="query_type")


def _check_unit(left: Typed, right: Typed, schema: Schema) -> None:
    """Refuse a number beside a duration: it would count ticks, whose length depends on what columns there are. Zero
    needs no unit. Of an integer ``ts`` the user knows the ticks, but those of a column of durations have another unit
    there."""
    for length, number in ((left, right), (right, left)):
        if number.kind not in NUMBERS or number.exact == 0:
            continue
        if length.kind != "duration":
            continue
        bare = all(schema.counts_ticks(name) is False for name in attributes(number.expr))
        if (schema.instants and bare) or (_is_length(length, schema) and number.exact is not None):
            raise ex.error_at(
                "a number beside a duration has no unit of time",
                number.expr.span or length.expr.span,
                "give it one, as in 30 min or a.n * 1 s, or make a number of the duration, as in (b.ts - a.ts) / 1 s",
                code="query_type",
            )


def _check_order(compared: Iterable[Typed], schema: Schema) -> None:
    """Refuse to compare categories in an order as texts."""
    for x in compared:
        if (column_name := ordered_categories(x.expr, schema)) is not None:
            raise order_error(column_name, x.expr)


def order_error(column_name: str, place: ex.Expr | None) -> QueryError:
    """Return the error for categories in an order, at a place where texts have another one."""
    message = f"the categories of `{column_name}` have an order of their own, and would be compared as texts"
    hint = "compare a column of their codes, as pandas' `.cat.codes` gives"
    return ex.error_at(message, place, hint, code="query_type")


def ordered_categories(expr: ex.Expr, schema: Schema) -> str | None:
    """Return the column of categories in an order of which an expression may be a value; ``None`` if there is none."""
    match expr:
        case ex.Aggregate(function=function) if AGGREGATES[function].gives != "argument":
            return None
        case ex.Attribute(name=str(name)) | ex.Aggregate(name=str(name)):
            return schema.ordered_categories(name)
        case ex.Call(name=name, args=args) if name in (CASE, "coalesce"):
            values = (*args[1::2], args[-1]) if name == CASE else args
            columns = (ordered_categories(value, schema) for value in values)
            return next((name for name in columns if name is not None), None)
    return None


def _is_length(x: Typed, schema: Schema) -> bool:
    """Return whether it is a value of a column of durations."""
    match x.expr:
        case ex.Aggregate(function=function) if AGGREGATES[function].gives == "integer":
            return False
        case ex.Attribute(name=str(name)) | ex.Aggregate(name=str(name)):
            return x.kind == "duration" and schema.counts_ticks(name) is True
    return False


def _instant(literal: ex.Literal) -> int:
    try:
        return ns_of(datetime.fromisoformat(str(literal.value).strip()))
    except ValueError:
        raise ex.error_at(
            f"`{literal.value}` is not a timestamp", literal, "write '2024-01-31 10:00:00'", code="query_type"
        ) from None


def _binary(expr: ex.Binary, schema: Schema) -> Typed:
    x, y = _resolve(expr.left, schema), _resolve(expr.right, schema)
    op = expr.op
    if op in ("and", "or"):
        _need(x, ("bool",), op.upper())
        _need(y, ("bool",), op.upper())
        return Typed(replace(expr, left=x.expr, right=y.expr), "bool")
    if op in ("<", "<=", ">", ">="):
        _check_order((x, y), schema)
    if op in ("=", "!=", "<", "<=", ">", ">="):
        return Typed(decimals.compare(op, *_comparable(x, y, schema), expr.span), "bool")
    both = replace(expr, left=x.expr, right=y.expr)
    if "null" in (x.kind, y.kind):
        other = y if x.kind == "null" else x
        return Typed(both, other.kind, other.scale)
    kind = ARITHMETIC.get((op, _sort(x.kind), _sort(y.kind)))
    if kind is None:
        signs = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "take the remainder of"}
        raise ex.error_at(
            f"cannot {signs[op]} {x.named} and {y.named}",
            y.expr.span or x.expr.span,
            "CAST(x AS type) gives another type",
            code="query_type",
        )
    if DECIMAL in (x.kind, y.kind):
        if x.kind in NUMBERS and y.kind in NUMBERS:
            return decimals.arithmetic(op, x, y, expr.span)
        x, y = (Typed(decimals.as_float(side), "float" if side.kind == DECIMAL else side.kind) for side in (x, y))
        both = replace(expr, left=x.expr, right=y.expr)
    if op in "+-" or (op == "/" and y.kind == "duration"):
        _check_unit(x, y, schema)
    exact = None
    if x.exact is not None and y.exact is not None and op in "+-*":
        exact = {"+": x.exact + y.exact, "-": x.exact - y.exact, "*": x.exact * y.exact}[op]
    if "duration" in (x.kind, y.kind) and kind != "timestamp":
        kind = _kind_of_duration(op, x, y, schema)
    if kind == "number":
        kind = "int" if op != "/" and all(_is_whole(side, schema) for side in (x, y)) else "float"
    return Typed(both, kind, exact=exact)


def _kind_of_duration(op: str, x: Typed, y: Typed, schema: Schema) -> str:
    """Return the kind of an operation of a duration and a duration or a number. With an integer ``ts``, numbers that
    are not written in the query may be ticks, such as those of ``b.ts - a.ts``; what is made of them is a number."""
    if x.kind == y.kind:
        return "number" if op == "/" else "duration"
    number = y if x.kind == "duration" else x
    if op == "/" and number is x:
        return "number"
    if op in "+-":
        return "duration" if schema.instants else "number"
    return "duration" if schema.instants or number.exact is not None else "number"


def _is_whole(x: Typed, schema: Schema) -> bool:
    return x.kind == "int" or (x.kind == "duration" and is_whole_ticks(x.expr, schema))


def is_difference_of_ticks(expr: ex.Expr, schema: Schema) -> bool:
    """Return whether a number would be a duration if the integer time column, of known unit, were one of timestamps."""
    if schema.instants or schema.tick_ns is None or schema.ts not in map(schema.column_name, attributes(expr)):
        return False
    kinds = tuple((name, Kind.TIMESTAMP if name == schema.ts else kind) for name, kind in schema.kinds)
    try:
        return resolve(expr, replace(schema, kinds=kinds, instants=True)).kind == "duration"
    except QueryError:  # such as a difference and a number
        return False


def is_whole_ticks(expr: ex.Expr, schema: Schema) -> bool:
    """Return whether a time, a duration or a number beside them is an integer in every match."""
    match expr:
        case ex.Duration(ns=ns) | ex.Timestamp(ns=ns):
            return schema.tick_ns is not None and (Fraction(ns) / schema.tick_ns).denominator == 1
        case ex.Binary(op="/"):
            return False
        case ex.Aggregate(function=function) if AGGREGATES[function].gives == "float":
            return False
        case ex.Binary(left=left, right=right):
            return is_whole_ticks(left, schema) and is_whole_ticks(right, schema)
        case ex.Unary(operand=operand):
            return is_whole_ticks(operand, schema)
        case ex.Call(name=name, args=args) if _gives_length(name):
            return all(is_whole_ticks(arg, schema) for arg in args)
        case ex.Call(name=name, args=args) if name == CASE:
            return all(is_whole_ticks(arg, schema) for arg in (*args[1::2], args[-1]))
        case ex.Literal(value=value):
            return not isinstance(value, float)
        case ex.Attribute(name=str(name)) | ex.Aggregate(name=str(name)) if schema.counts_ticks(name):
            return schema.kind(name) is Kind.INT
    return _resolve(expr, schema).kind in ("int", "timestamp")


def _gives_length(name: str) -> bool:
    """Return whether a call is of a function that gives a length of time for lengths of time."""
    entry = find_scalar(name)
    return entry is not None and entry.gives == "argument" and entry.takes[0] in ("length", "value")


def _sort(kind: str) -> str:
    return "number" if kind in NUMBERS else kind


ARITHMETIC = {
    **TIME_ARITHMETIC,
    **{(op, "number", "number"): "number" for op in "+-*/%"},
    # An integer ts counts ticks, so a duration beside it is a number of ticks.
    **{(op, *kinds): "number" for op in "+-" for kinds in (("number", "duration"), ("duration", "number"))},
    ("/", "number", "duration"): "number",
}
"""The kind of each arithmetic operation that is possible, by its operator and the kinds of its operands."""


def _case(expr: ex.Call, schema: Schema) -> Typed:
    """Resolve CASE: conditions and values in turn, and the value of ELSE. The values get one kind."""
    conditions = [_resolve(arg, schema) for arg in expr.args[:-1:2]]
    for condition in conditions:
        _need(condition, ("bool",), "WHEN")
    values = [_resolve(arg, schema) for arg in (*expr.args[1::2], expr.args[-1])]
    values = _unify(values, schema)
    not_null = [value for value in values if value.kind != "null"]
    kind, scale = not_null[0].kind if not_null else "null", 0
    numbers = {value.kind for value in not_null if value.kind in NUMBERS}
    if any(value.kind == "duration" for value in not_null):
        kind = "duration"
    elif DECIMAL in numbers:
        kind, scale, values = decimals.of_one_scale(values, expr.span)
    elif "float" in numbers:
        kind, values = "float", [_written_as_float(value) for value in values]
    pairs = zip(conditions, values, strict=False)
    args = [part.expr for pair in pairs for part in pair]
    return Typed(replace(expr, args=(*args, values[-1].expr)), kind, scale)


def _unify(values: list[Typed], schema: Schema) -> list[Typed]:
    """Return values that one choice is made among: text literals beside timestamps are read as timestamps."""
    typed = [value for value in values if value.kind not in ("null", "string")] or values
    return [_comparable(typed[0], value, schema)[1] for value in values]


def _written_as_float(value: Typed) -> Typed:
    """Return a literal integer as a float if that is the same number; other values as they are."""
    if value.kind == "int" and value.exact is not None and value.exact == float(value.exact):
        return Typed(ex.Literal(float(value.exact), value.expr.span), "float", exact=value.exact)
    return value


_OF_EXACT = {"decimal quotient": "float", DECIMAL_TEXT: "string", TIMESTAMP_TEXT: "string"}
RESULT_KINDS = {"integer": "int", "float": "float", "text": "string", "boolean": "bool"}


def _user_call(expr: ex.Call, user_function: Function, schema: Schema) -> Typed:
    """Resolve a call of the user's own function."""
    args = [_resolve(arg, schema) for arg in expr.args]
    for arg in args:
        if arg.kind not in ("bool", "int", "float", "string", "null"):
            hint = "cast it, as in CAST(a.price AS float)" if arg.kind == DECIMAL else CAST_HINTS.get(arg.kind)
            raise ex.error_at(f"`{user_function.name}` takes no {arg.bare}", arg.expr.span or expr.span, hint)
    return Typed(replace(expr, args=tuple(arg.expr for arg in args)), RESULT_KINDS[user_function.returns])


def _cast(expr: ex.Call, target: str, x: Typed) -> Typed:
    """Resolve CAST. All casts but those from texts and to texts become operations of numbers."""
    kind, span = RESULT_KINDS[target], expr.span
    if x.kind == "null" or x.kind == kind != "float":
        return Typed(x.expr, kind if x.kind != "null" else "null")
    allowed = {"text": ("bool", "timestamp", *NUMBERS), "boolean": ("int", "string")}
    if x.kind not in allowed.get(target, ("bool", "string", *NUMBERS)):
        hint = CAST_HINTS.get(x.kind) or "compare it with a number, as in x != 0"
        raise ex.error_at(f"{x.named} cannot be cast to {target}", x.expr.span or span, hint, code="query_type")
    if x.kind == "string" or (target == "text" and x.kind in ("bool", "int")):
        return Typed(replace(expr, args=(x.expr,)), kind)
    number = decimals.as_float(x) if x.kind == DECIMAL else ex.Binary("/", x.expr, ex.Literal(1), span)
    match target, x.kind:
        case "text", "timestamp":
            return Typed(ex.Call(TIMESTAMP_TEXT, (x.expr,), span), kind)
        case "text", "decimal":
            return Typed(ex.Call(DECIMAL_TEXT, (x.expr, ex.Literal(x.scale)), span), kind)
        case "text", _:
            return Typed(replace(expr, args=(number,)), kind)
        case "boolean", _:
            return Typed(ex.Binary("!=", x.expr, ex.Literal(0), span), kind)
        case _, "bool":
            true_value, false_value = (
                (ex.Literal(1), ex.Literal(0)) if target == "integer" else (ex.Literal(1.0), ex.Literal(0.0))
            )
            no = ex.Unary("not", x.expr, span)
            return Typed(ex.Call(CASE, (x.expr, true_value, no, false_value, ex.Literal(None)), span), kind)
        case "float", _:
            return Typed(number, kind)
    places = (ex.Literal(x.scale),) if x.kind == DECIMAL else ()
    up, down = ("decimal ceil", "decimal floor") if places else ("ceil", "floor")
    below = ex.Binary("<", x.expr, ex.Literal(0), span)
    towards_zero = (ex.Call(up, (x.expr, *places), span), ex.Call(down, (x.expr, *places), span))
    return Typed(ex.Call(CASE, (below, *towards_zero), span), kind)


def _to_decimal(expr: ex.Call, schema: Schema) -> Typed:
    """Resolve CAST to a decimal: rounded half away from zero, null if it has more digits than the precision."""
    value, precision, scale = expr.args
    assert isinstance(precision, ex.Literal)
    assert isinstance(scale, ex.Literal)
    x = _resolve(value, schema)
    _need(x, NUMBERS, "CAST to a decimal")
    places = int(str(scale.value))
    if x.scale > places:
        raise ex.error_at(
            f"{x.named} cannot be cast to fewer places",
            x.expr.span or expr.span,
            "round(x, n) rounds it",
            code="query_type",
        )
    units: ex.Expr = ex.Binary("*", x.expr, ex.Literal(10 ** (places - x.scale)), expr.span)
    if x.kind == "float":
        units = _cast(ex.Call("cast integer", (units,)), "integer", Typed(ex.Call("round", (units,)), "float")).expr
    fits = ex.Binary("<", ex.Call("abs", (units,)), ex.Literal(10 ** int(str(precision.value))), expr.span)
    return Typed(ex.Call(CASE, (fits, units, ex.Literal(None)), expr.span), DECIMAL, places)


def _trunc(expr: ex.Call, x: Typed) -> ex.Expr:
    """Return TRUNC of one argument in other calls: a time is cut off to its day, a number towards zero."""
    (value,) = expr.args
    if x.kind == "timestamp":
        return ex.Call("sql date_trunc", (value, ex.Literal("day")), expr.span)
    is_below = ex.Binary("<", value, ex.Literal(0), expr.span)
    towards_zero = (ex.Call("ceil", (value,), expr.span), ex.Call("floor", (value,), expr.span))
    return ex.Call(CASE, (is_below, *towards_zero), expr.span)


def _sql_call(expr: ex.Call, schema: Schema) -> Typed:
    """Resolve a function that only SQL has."""
    from acep.plan.time_calls import TIME_CALLS, expand_time_call

    if expr.name == TO_DECIMAL:
        return _to_decimal(expr, schema)
    resolved = [_resolve(arg, schema) for arg in expr.args]
    if expr.name == "sql text":
        is_integer = resolved[0].kind == "int"
        return _cast(ex.Call("cast text", expr.args, expr.span), "text", resolved[0]) if is_integer else resolved[0]
    if expr.name == "sql trunc":
        return _resolve(_trunc(expr, resolved[0]), schema)
    if expr.name in TIME_CALLS:
        return expand_time_call(expr, resolved)
    entry = get_scalar(expr.name)
    _check_number_of_arguments(expr, entry)
    return _scalar(expr, entry, resolved, schema)


def _check_number_of_arguments(expr: ex.Call, entry: ScalarFunction) -> None:
    low, high = entry.counts
    if not low <= len(expr.args) <= high:
        count = f"{low} argument{'s' if low > 1 else ''}" if low == high else f"{low} to {high} arguments"
        name = expr.name.removeprefix("sql ")
        hint = "the page of the functions shows an example of each: docs/reference/language.md, docs/reference/sql.md"
        raise ex.error_at(f"{name} takes {count}, not {len(expr.args)}", expr, hint, code="query_type")


def _call(expr: ex.Call, schema: Schema) -> Typed:
    if expr.name == CASE:
        return _case(expr, schema)
    if expr.user_function is not None:
        return _user_call(expr, expr.user_function, schema)
    if (target := cast_type(expr.name)) is not None:
        (operand,) = expr.args
        if target == "text" and isinstance(operand, ex.Attribute):
            text = text_name(operand.name)  # of a list
            if schema.kind(text) is Kind.STRING:
                return Typed(replace(operand, name=text), "string")
        return _cast(expr, target, _resolve(operand, schema))
    if expr.name.startswith("sql "):
        return _sql_call(expr, schema)
    if expr.name in EXACT:  # in an expression that was resolved before
        return Typed(expr, _OF_EXACT.get(expr.name, "int"))
    entry = get_scalar(expr.name)
    _check_number_of_arguments(expr, entry)
    args = [_resolve(arg, schema) for arg in expr.args]
    return _choice(expr, entry, args, schema) if entry.is_choice else _scalar(expr, entry, args, schema)


_ARGUMENTS = {
    "text": ("string",), "integer": ("int",), "number": NUMBERS, "length": LENGTHS, "condition": ("bool",),
}  # fmt: skip
_RESULTS = {"text": "string", "integer": "int", "float": "float", "condition": "bool"}


def _scalar(expr: ex.Call, entry: ScalarFunction, args: list[Typed], schema: Schema) -> Typed:
    """Resolve a call of a scalar function, with arguments that are resolved."""
    name = entry.name.removeprefix("sql ")
    for i, arg in enumerate(args):
        takes = entry.kind_at(i)
        if takes == "time":
            _need(arg, ("timestamp",) if schema.instants else ("timestamp", "int"), name)
        elif takes != "value":
            is_number_of_another = i > 0 and takes == "integer" and entry.takes[0] == "number"
            _need(arg, _ARGUMENTS[takes], f"the second argument of {name}" if is_number_of_another else name)
    result = replace(expr, args=tuple(arg.expr for arg in args))
    if any(arg.kind == DECIMAL for arg in args):
        return decimals.call(result, entry, args)
    return Typed(result, args[0].kind if entry.gives == "argument" else _RESULTS[entry.gives])


def _choice(expr: ex.Call, entry: ScalarFunction, args: list[Typed], schema: Schema) -> Typed:
    """Resolve a call that gives one of its arguments."""
    args = _unify(args, schema)
    if entry.name != "coalesce":
        _check_order(args, schema)
    result = replace(expr, args=tuple(arg.expr for arg in args))
    kinds = [arg.kind for arg in args]
    if "duration" in kinds:
        return Typed(result, "duration")
    if DECIMAL in kinds:
        return decimals.call(result, entry, args)
    not_null = [kind for kind in kinds if kind != "null"]
    return Typed(result, ("float" if "float" in not_null else not_null[0]) if not_null else "null")
