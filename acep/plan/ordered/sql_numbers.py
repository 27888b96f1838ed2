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


def _convert_log(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    base, value = converter.parts(node, "this", "expression")
    if value is None or type(base).__name__ != "Literal" or base.this not in _LOGARITHMS:
        raise converter.refuse(node, "this LOG", "LN(x), LOG2(x) and LOG10(x) are")
    return ex.Call(_LOGARITHMS[base.this], (converter.convert(value),), span)


def _convert_pi(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    converter.parts(node)
    return ex.Literal(math.pi, span)


NUMBER_NODES: dict[str, Callable[[SqlConverter, Any, Span], ex.Expr]] = {"Log": _convert_log, "Pi": _convert_pi}
"""The conversions of sqlglot's nodes, by their names."""
