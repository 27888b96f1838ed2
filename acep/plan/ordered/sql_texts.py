"""Convert operations of texts in SQL, as sqlglot gives them, to expressions that all engines run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.expressions import Span

if TYPE_CHECKING:
    from acep.plan.ordered.sql_expressions import SqlConverter

__all__ = ["TEXT_NODES"]


def _convert_like(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    operand, pattern, negated = converter.parts(node, "this", "expression", "negate")
    return ex.Like(converter.convert(operand), _like_pattern(converter, pattern, None), bool(negated), span)


def _convert_escape(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    like, sign = converter.parts(node, "this", "expression")
    if type(like).__name__ != "Like" or type(sign).__name__ != "Literal" or len(str(sign.this)) != 1:
        raise converter.refuse(node, "this ESCAPE", "one character, as in x LIKE '10!%' ESCAPE '!'")
    operand, pattern, negated = converter.parts(like, "this", "expression", "negate")
    return ex.Like(converter.convert(operand), _like_pattern(converter, pattern, str(sign.this)), bool(negated), span)


def _like_pattern(converter: SqlConverter, node: Any, escape: str | None) -> str:
    if type(node).__name__ != "Literal" or not node.args.get("is_string"):
        raise converter.refuse(node, "a pattern of LIKE that is no constant")
    # Ours takes a backslash as the escape; in SQL there is none unless ESCAPE names it.
    pattern: list[str] = []
    signs = iter(str(node.this))
    for sign in signs:
        if sign == escape:
            pattern.append("\\" + next(signs, ""))
        else:
            pattern.append("\\\\" if sign == "\\" else sign)
    return "".join(pattern)


def _convert_concat(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    (values,) = converter.parts(node, "expressions")
    return ex.Call("concat", tuple(_as_text(converter, value) for value in values), span)


def _convert_dpipe(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    left, right = converter.parts(node, "this", "expression")
    return ex.Call("concat", (_as_text(converter, left), _as_text(converter, right)), span)


def _as_text(converter: SqlConverter, node: Any) -> ex.Expr:
    """Return a value that is joined to texts: an integer is written as one."""
    value = converter.convert(node)
    is_text = isinstance(value, ex.Literal) and (value.value is None or isinstance(value.value, str))
    return value if is_text else ex.Call("sql text", (value,), value.span)


def _convert_trim(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    text, side, signs = converter.parts(node, "this", "position", "expression")
    names = {"LEADING": "sql ltrim", "TRAILING": "sql rtrim", None: "sql trim", "BOTH": "sql trim"}
    parts = tuple(converter.convert(part) for part in (text, signs) if part is not None)
    return ex.Call(names[None if side is None else str(side).upper()], parts, span)


def _convert_ilike(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    operand, pattern, negated = converter.parts(node, "this", "expression", "negate")
    lowered = ex.Call("lower", (converter.convert(operand),), span)
    return ex.Like(lowered, _like_pattern(converter, pattern, None).lower(), bool(negated), span)


def _convert_pad(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    parts = converter.parts(node, "this", "expression", "fill_pattern", "is_left")
    name = "sql lpad" if parts[3] else "sql rpad"
    return ex.Call(name, tuple(converter.convert(part) for part in parts[:3] if part is not None), span)


def _convert_concatws(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    separator, *values = converter.parts(node, "expressions")[0]
    if not values:
        raise converter.refuse(node, "CONCAT_WS without values")
    between = converter.convert(separator)
    nothing = ex.Literal("", span)
    # Each value that is not null comes with a separator before it; the first one is cut off.
    parts: list[ex.Expr] = []
    for value in values:
        text = converter.convert(value)
        with_separator = ex.Call("concat", (between, text), span)
        parts.append(ex.Call(CASE, (ex.IsNull(text, True, span), with_separator, nothing), span))
    size = ex.Binary("+", ex.Call("length", (between,), span), ex.Literal(1, span), span)
    return ex.Call("substring", (ex.Call("concat", tuple(parts), span), size), span)


def _convert_chr(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    """Convert CHR of a constant: engines differ above 255."""
    (codes,) = converter.parts(node, "expressions")
    text = str(codes[0].this) if len(codes) == 1 and type(codes[0]).__name__ == "Literal" else ""
    if not text.isdecimal() or not 0 < int(text) < 256:
        raise converter.refuse(node, "this CHR", "a constant from 1 to 255, as in CHR(10)")
    return ex.Literal(chr(int(text)), span)


TEXT_NODES: dict[str, Callable[[SqlConverter, Any, Span], ex.Expr]] = {
    "Chr": _convert_chr,
    "Like": _convert_like,
    "ILike": _convert_ilike,
    "Escape": _convert_escape,
    "Concat": _convert_concat,
    "DPipe": _convert_dpipe,
    "Trim": _convert_trim,
    "Pad": _convert_pad,
    "ConcatWs": _convert_concatws,
}
"""The conversions of sqlglot's nodes, by their names."""
