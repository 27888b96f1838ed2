"""Convert functions of numbers in SQL, as sqlglot gives them, to expressions that all engines run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acep.pattern import expressions as ex
from acep.pattern.expressions import Span

if TYPE_CHECKING:
    from acep.plan.ordered.sql_expressions import SqlConverter

__all__ = ["NUMBER_NODES"]

_LOGARITHMS = {"2": "sql log2", "10": "log10"}


def _convert_round(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    parts = converter.parts(node, "this", "decimals")
    return ex.Call("round", tuple(converter.convert(part) for part in parts if part is not None), span)


def _convert_pow(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    return _call_of_two(converter, node, "power", span)


def _convert_atan2(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    return _call_of_two(converter, node, "sql atan2", span)


def _call_of_two(converter: SqlConverter, node: Any, name: str, span: Span) -> ex.Expr:
    parts = converter.parts(node, "this", "expression")
    return ex.Call(name, tuple(converter.convert(part) for part in parts), span)


def _convert_log(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    base, value = converter.parts(node, "this", "expression")
    if value is None or type(base).__name__ != "Literal" or base.this not in _LOGARITHMS:
        raise converter.refuse(node, "this LOG", "LN(x), LOG2(x) and LOG10(x) are")
    return ex.Call(_LOGARITHMS[base.this], (converter.convert(value),), span)


def _convert_pi(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    converter.parts(node)
    return ex.Literal(math.pi, span)


def _function_of(name: str) -> Callable[[SqlConverter, Any, Span], ex.Expr]:
    def convert(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
        (argument,) = converter.parts(node, "this")
        return ex.Call(name, (converter.convert(argument),), span)

    return convert


NUMBER_NODES: dict[str, Callable[[SqlConverter, Any, Span], ex.Expr]] = {
    "Atan2": _convert_atan2,
    "Log": _convert_log,
    "Pi": _convert_pi,
    "Pow": _convert_pow,
    "Round": _convert_round,
    **{
        name: _function_of(f"sql {name.lower()}")
        for name in ("Acos", "Asin", "Atan", "Cos", "Degrees", "Radians", "Sin", "Tan")
    },
}
"""The conversions of sqlglot's nodes, by their names."""
