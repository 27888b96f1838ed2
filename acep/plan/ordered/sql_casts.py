"""Convert CAST in SQL to expressions that all engines run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.expressions import Span
from acep.pattern.scalars.casts import TO_DECIMAL
from acep.plan.decimals import MOST_SCALE
from acep.plan.ordered.sql_times import moment_of

if TYPE_CHECKING:
    from acep.plan.ordered.sql_expressions import SqlConverter

__all__ = ["CAST_NODES"]


_CASTS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "MEDIUMINT"), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "float"),
    **dict.fromkeys(("VARCHAR", "TEXT", "CHAR", "NVARCHAR", "NCHAR"), "text"),
    "BOOLEAN": "boolean",
}
# The bits of integers that are shorter than ours: what does not fit is null, as after any cast that fails.
_BITS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32}
_MOMENTS = {
    "DATE": "sql date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "TIMESTAMPLTZ", "DATETIME"), "sql timestamp"),
}


def cast(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    value, target = converter.parts(node, "this", "to")
    name = target.this.name if hasattr(target.this, "name") else str(target.this)
    is_text = type(value).__name__ == "Literal" and bool(value.args.get("is_string"))
    if name in _MOMENTS:
        moment = (
            ex.Timestamp(moment_of(str(value.this), converter.span(node)), span)
            if is_text
            else converter.convert(value)
        )
        return moment if is_text and name != "DATE" else ex.Call(_MOMENTS[name], (moment,), span)
    if name == "DECIMAL":
        return _to_decimal(converter, value, target, node, span)
    sizes = target.args.get("expressions")
    if name not in _CASTS or (sizes and name not in ("VARCHAR", "NVARCHAR")):
        raise converter.refuse(node, f"CAST to `{target.sql()[:40]}`")
    operand = converter.convert(value)
    cast = ex.Call(f"cast {_CASTS[name]}", (operand,), span)
    if _CASTS[name] == "text" and converter.gives_date(operand):
        cast = ex.Call("substring", (cast, ex.Literal(1), ex.Literal(len("2026-01-31"))), span)
    if sizes:  # the standard cuts off what is longer
        return ex.Call("substring", (cast, ex.Literal(1), ex.Literal(int(str(sizes[0].this.this)))), span)
    if name in _BITS:
        limit = 1 << (_BITS[name] - 1)
        fits = ex.Between(cast, ex.Literal(-limit), ex.Literal(limit - 1), False, span)
        return ex.Call(CASE, (fits, cast, ex.Literal(None)), span)
    return cast


def _to_decimal(converter: SqlConverter, value: Any, target: Any, node: Any, span: Span) -> ex.Expr:
    sizes = [str(size.this.this) for size in target.expressions] or ["18", "3"]
    precision, scale = (int(size) for size in (*sizes, "0")[:2])
    if not 0 <= scale <= precision <= MOST_SCALE:
        raise converter.refuse(node, f"CAST to `{target.sql()[:40]}`", f"at most {MOST_SCALE} digits are possible")
    return ex.Call(TO_DECIMAL, (converter.convert(value), ex.Literal(precision), ex.Literal(scale)), span)


def _convert_trycast(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    return cast(converter, node, span)


CAST_NODES: dict[str, Callable[[SqlConverter, Any, Span], ex.Expr]] = {"Cast": cast, "TryCast": _convert_trycast}
"""The conversions of sqlglot's nodes, by their names."""
