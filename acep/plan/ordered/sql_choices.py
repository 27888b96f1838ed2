"""Convert choices among values in SQL (CASE, NULLIF, DECODE) to expressions that all engines run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.expressions import Span

if TYPE_CHECKING:
    from acep.plan.ordered.sql_expressions import SqlConverter

__all__ = ["CHOICE_NODES"]


def _convert_nullsafeeq(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    return _convert_sides(converter, node, span)


def _convert_nullsafeneq(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    return ex.Unary("not", _convert_sides(converter, node, span), span)


def _convert_sides(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    left, right = (converter.convert(part) for part in converter.parts(node, "this", "expression"))
    return _is_same(left, right, span)


def _convert_case(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    operand, ifs, default = converter.parts(node, "this", "ifs", "default")
    arguments: list[ex.Expr] = []
    for branch in ifs:
        condition, value = converter.parts(branch, "this", "true")
        test = converter.convert(condition)
        if operand is not None:
            test = ex.Binary("=", converter.convert(operand), test, span)
        arguments += [test, converter.convert(value)]
    otherwise = ex.Literal(None, span) if default is None else converter.convert(default)
    return ex.Call(CASE, (*arguments, otherwise), span)


def _convert_if(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    condition, value, default = converter.parts(node, "this", "true", "false")
    otherwise = ex.Literal(None, span) if default is None else converter.convert(default)
    return ex.Call(CASE, (converter.convert(condition), converter.convert(value), otherwise), span)


def _convert_nullif(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    value, other = (converter.convert(part) for part in converter.parts(node, "this", "expression"))
    return ex.Call(CASE, (ex.Binary("=", value, other, span), ex.Literal(None, span), value), span)


def _convert_nvl2(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    value, result, default = (converter.convert(part) for part in converter.parts(node, "this", "true", "false"))
    return ex.Call(CASE, (ex.IsNull(value, True, span), result, default), span)


def _convert_decodecase(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    """Convert DECODE of Oracle: pairs of a value and a result; nulls are equal."""
    value, *parts = (converter.convert(part) for part in converter.parts(node, "expressions")[0])
    arguments: list[ex.Expr] = []
    for searched, result in zip(parts[::2], parts[1::2], strict=False):
        arguments += [_is_same(value, searched, span), result]
    default = parts[-1] if len(parts) % 2 else ex.Literal(None, span)
    return ex.Call(CASE, (*arguments, default), span)


def _is_same(left: ex.Expr, right: ex.Expr, span: Span) -> ex.Expr:
    """Return whether two values are equal, or both null; never null."""
    equal = ex.Call("coalesce", (ex.Binary("=", left, right, span), ex.Literal(False, span)), span)
    nulls = ex.Binary("and", ex.IsNull(left, False, span), ex.IsNull(right, False, span), span)
    return ex.Binary("or", equal, nulls, span)


CHOICE_NODES: dict[str, Callable[[SqlConverter, Any, Span], ex.Expr]] = {
    "Case": _convert_case,
    "DecodeCase": _convert_decodecase,
    "If": _convert_if,
    "NullSafeEQ": _convert_nullsafeeq,
    "NullSafeNEQ": _convert_nullsafeneq,
    "Nullif": _convert_nullif,
    "Nvl2": _convert_nvl2,
}
"""The conversions of sqlglot's nodes, by their names."""
