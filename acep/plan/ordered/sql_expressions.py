"""Convert expressions of SQL, as sqlglot gives them, to expressions that all engines run.

A part of a tree that is not understood is refused by its name and place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from acep.errors import QueryError
from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE, FUNCTIONS
from acep.pattern.expressions import Span, error_at
from acep.pattern.sql.clause_tree import SqlExpression
from acep.pattern.sql.scanner import exact_number
from acep.pattern.text_functions import TO_DECIMAL
from acep.pattern.times import UNITS
from acep.plan.decimals import MOST_SCALE
from acep.plan.ordered.dates import gives_date
from acep.plan.ordered.sql_times import (
    TIME_FUNCTIONS,
    add_months_of,
    extract_part,
    length_of_time,
    moment_of,
)

__all__ = ["MOST_NODES", "SqlConverter", "place_of", "refuse_other_parts"]

MOST_NODES = 5_000
_COMPARISONS = {"EQ": "=", "NEQ": "!=", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<="}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%"}
_JOINS = {"And": "and", "Or": "or"}
# sqlglot's names of functions of one argument, and ours.
_OF_ONE = {
    "Abs": "abs", "Sqrt": "sqrt", "Floor": "floor", "Ceil": "ceil", "Exp": "exp", "Ln": "ln", "Sign": "sign",
    "Lower": "lower", "Upper": "upper", "Length": "length", "Year": "year", "Month": "month",
    "Day": "day", "DayOfMonth": "day", "Hour": "hour", "Minute": "minute", "Second": "second",
}  # fmt: skip
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
# sqlglot's names of functions of texts, ours, and the parts that are their arguments.
_OF_TEXTS = {
    "Contains": ("sql contains", ("this", "expression")), "EndsWith": ("sql ends_with", ("this", "expression")),
    "Left": ("sql left", ("this", "expression")), "Right": ("sql right", ("this", "expression")),
    "Repeat": ("sql repeat", ("this", "times")), "Replace": ("sql replace", ("this", "expression", "replacement")),
    "Reverse": ("sql reverse", ("this",)), "StartsWith": ("sql starts_with", ("this", "expression")),
    "StrPosition": ("sql strpos", ("this", "substr")),
}  # fmt: skip
# Parts of sqlglot's nodes that say nothing about the meaning.
_SILENT = {"big_int", "typed", "safe", "_type", "ignore_nulls", "coalesce", "copy"}


@dataclass
class SqlConverter:
    """Convert one expression. ``leaf`` gives the attribute for a column, an aggregate or a call of row patterns, or
    ``None`` for anything else; ``is_date`` says whether an expression is a column of dates."""

    source: SqlExpression
    leaf: Callable[[Any], ex.Expr | None]
    is_date: Callable[[ex.Expr], bool] = lambda expr: False
    nodes: int = 0

    def convert(self, node: Any | None = None) -> ex.Expr:
        """Return the expression of a node (by default of the whole tree).

        Raises :class:`QueryError` with the place of what is not understood."""
        node = self.source.tree if node is None else node
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise error_at(f"an expression has at most {MOST_NODES} parts", self.source.span, code="query_size")
        reference = self.leaf(node)
        return self._operation(node) if reference is None else reference

    def span(self, node: Any) -> Span:
        """Return the place of a node, as exactly as sqlglot tells it."""
        return place_of(node, self.source)

    def refuse(self, node: Any, what: str, hint: str | None = None) -> QueryError:
        """Return the error for a node that is not understood."""
        return error_at(f"{what} is not supported here", self.span(node), hint, code="query_syntax")

    def parts(self, node: Any, *names: str) -> list[Any]:
        """Return parts of a node by name, after a check that it has no others."""
        refuse_other_parts(node, names, self.source)
        return [node.args.get(name) for name in names]

    def _operation(self, node: Any) -> ex.Expr:
        kind, span = type(node).__name__, self.span(node)
        if kind in ("Add", "Sub") and (moved := add_months_of(self, node, span)) is not None:
            return moved
        if kind in _COMPARISONS or kind in _ARITHMETIC or kind in _JOINS:
            left, right = self.parts(node, "this", "expression")
            sign = _COMPARISONS.get(kind) or _ARITHMETIC.get(kind) or _JOINS[kind]
            return self._days_added(sign, self.convert(left), self.convert(right), span)
        if kind in _OF_ONE:
            (argument,) = self.parts(node, "this")
            return ex.Call(_OF_ONE[kind], (self.convert(argument),), span)
        if kind in _OF_TEXTS:
            name, parts = _OF_TEXTS[kind]
            arguments = [part for part in self.parts(node, *parts) if part is not None]
            return ex.Call(name, tuple(self.convert(argument) for argument in arguments), span)
        method = getattr(self, f"_{kind.lower()}", None)
        if kind in ("Subquery", "Select", "Exists") or (kind == "In" and node.args.get("query") is not None):
            names = {"Exists": "EXISTS, a subquery,", "In": "IN with a subquery"}
            raise self.refuse(node, names.get(kind, "a subquery"), "join its table to the rows before")
        if method is None:
            name = node.sql().split("(")[0][:40] if hasattr(node, "sql") else kind
            raise self.refuse(node, f"`{name}`")
        converted: ex.Expr = method(node, span)
        return converted

    def _days_added(self, sign: str, left: ex.Expr, right: ex.Expr, span: Span) -> ex.Expr:
        """Return an operation of two values; a whole number beside a date is a number of days."""
        if sign in "+-" and isinstance(right, ex.Literal) and type(right.value) is int and self.gives_date(left):
            right = ex.Duration(Fraction(right.value * UNITS["day"]), right.span)
        return ex.Binary(sign, left, right, span)

    # Constants ----------------------------------------------------------------------------------------

    def _literal(self, node: Any, span: Span) -> ex.Expr:
        text, is_text = self.parts(node, "this", "is_string")
        if is_text:
            return ex.Literal(text, span)
        try:
            number = exact_number(text)
        except ValueError:
            raise error_at(f"{text[:40]} is no number that fits in a double", span, code="query_size") from None
        if text.isdecimal():
            if number >= 2**63:
                raise error_at(f"{text[:40]} does not fit in 64 bits", span, code="query_size")
            return ex.Literal(int(text), span)
        value = float(text)
        return ex.Literal(value, span, None if Fraction(value) == number else number)

    def _boolean(self, node: Any, span: Span) -> ex.Expr:
        return ex.Literal(bool(self.parts(node, "this")[0]), span)

    def _null(self, node: Any, span: Span) -> ex.Expr:  # noqa: ARG002 - one signature
        return ex.Literal(None, span)

    def _interval(self, node: Any, span: Span) -> ex.Expr:
        return length_of_time(self, node, span)

    def gives_date(self, expr: ex.Expr) -> bool:
        """Return whether the value of an expression is a date."""
        return gives_date(expr, self.is_date)

    # Operations ---------------------------------------------------------------------------------------

    def _paren(self, node: Any, span: Span) -> ex.Expr:  # noqa: ARG002 - one signature
        return self.convert(self.parts(node, "this")[0])

    def _neg(self, node: Any, span: Span) -> ex.Expr:
        operand = self.convert(self.parts(node, "this")[0])
        if isinstance(operand, ex.Literal) and isinstance(operand.value, int | float):
            exact = None if operand.exact is None else -operand.exact
            return ex.Literal(-operand.value, span, exact)
        return ex.Unary("-", operand, span)

    def _not(self, node: Any, span: Span) -> ex.Expr:
        operand = self.convert(self.parts(node, "this")[0])
        if isinstance(operand, ex.IsNull | ex.In | ex.Between | ex.Like) and not operand.negated:
            kind = type(operand)
            return kind(**{**operand.__dict__, "negated": True})
        return ex.Unary("not", operand, span)

    def _is(self, node: Any, span: Span) -> ex.Expr:
        left, right = self.parts(node, "this", "expression")
        operand = self.convert(left)
        match type(right).__name__:
            case "Null":
                return ex.IsNull(operand, False, span)
            case "Boolean":
                same = ex.Binary("=", operand, ex.Literal(bool(right.this), span), span)
                return ex.Call("coalesce", (same, ex.Literal(False, span)), span)
        raise self.refuse(node, "this IS")

    def _nullsafeeq(self, node: Any, span: Span) -> ex.Expr:
        return self._same(node, span)

    def _nullsafeneq(self, node: Any, span: Span) -> ex.Expr:
        return ex.Unary("not", self._same(node, span), span)

    def _same(self, node: Any, span: Span) -> ex.Expr:
        left, right = (self.convert(part) for part in self.parts(node, "this", "expression"))
        return _is_same(left, right, span)

    def _between(self, node: Any, span: Span) -> ex.Expr:
        operand, low, high = self.parts(node, "this", "low", "high")
        return ex.Between(self.convert(operand), self.convert(low), self.convert(high), False, span)

    def _in(self, node: Any, span: Span) -> ex.Expr:
        operand, values = self.parts(node, "this", "expressions")
        if not values:
            raise self.refuse(node, "this IN", "a list of values, as in x IN (1, 2)")
        return ex.In(self.convert(operand), tuple(self.convert(value) for value in values), False, span)

    def _like(self, node: Any, span: Span) -> ex.Expr:
        operand, pattern, negated = self.parts(node, "this", "expression", "negate")
        return ex.Like(self.convert(operand), self._like_pattern(pattern, None), bool(negated), span)

    def _escape(self, node: Any, span: Span) -> ex.Expr:
        like, sign = self.parts(node, "this", "expression")
        if type(like).__name__ != "Like" or type(sign).__name__ != "Literal" or len(str(sign.this)) != 1:
            raise self.refuse(node, "this ESCAPE", "one character, as in x LIKE '10!%' ESCAPE '!'")
        operand, pattern, negated = self.parts(like, "this", "expression", "negate")
        return ex.Like(self.convert(operand), self._like_pattern(pattern, str(sign.this)), bool(negated), span)

    def _like_pattern(self, node: Any, escape: str | None) -> str:
        if type(node).__name__ != "Literal" or not node.args.get("is_string"):
            raise self.refuse(node, "a pattern of LIKE that is no constant")
        # Ours takes a backslash as the escape; in SQL there is none unless ESCAPE names it.
        pattern: list[str] = []
        signs = iter(str(node.this))
        for sign in signs:
            if sign == escape:
                pattern.append("\\" + next(signs, ""))
            else:
                pattern.append("\\\\" if sign == "\\" else sign)
        return "".join(pattern)

    def _case(self, node: Any, span: Span) -> ex.Expr:
        operand, ifs, default = self.parts(node, "this", "ifs", "default")
        arguments: list[ex.Expr] = []
        for way in ifs:
            condition, value = self.parts(way, "this", "true")
            test = self.convert(condition)
            if operand is not None:
                test = ex.Binary("=", self.convert(operand), test, span)
            arguments += [test, self.convert(value)]
        otherwise = ex.Literal(None, span) if default is None else self.convert(default)
        return ex.Call(CASE, (*arguments, otherwise), span)

    def _if(self, node: Any, span: Span) -> ex.Expr:
        condition, value, default = self.parts(node, "this", "true", "false")
        otherwise = ex.Literal(None, span) if default is None else self.convert(default)
        return ex.Call(CASE, (self.convert(condition), self.convert(value), otherwise), span)

    def _nullif(self, node: Any, span: Span) -> ex.Expr:
        value, other = (self.convert(part) for part in self.parts(node, "this", "expression"))
        return ex.Call(CASE, (ex.Binary("=", value, other, span), ex.Literal(None, span), value), span)

    def _coalesce(self, node: Any, span: Span) -> ex.Expr:
        return self._of_several(node, "coalesce", span)

    def _least(self, node: Any, span: Span) -> ex.Expr:
        return self._of_several(node, "least", span)

    def _greatest(self, node: Any, span: Span) -> ex.Expr:
        return self._of_several(node, "greatest", span)

    def _of_several(self, node: Any, name: str, span: Span) -> ex.Expr:
        first, following = self.parts(node, "this", "expressions")
        return ex.Call(name, tuple(self.convert(part) for part in (first, *(following or ()))), span)

    def _concat(self, node: Any, span: Span) -> ex.Expr:
        (values,) = self.parts(node, "expressions")
        return ex.Call("concat", tuple(self.as_text(value) for value in values), span)

    def _dpipe(self, node: Any, span: Span) -> ex.Expr:
        left, right = self.parts(node, "this", "expression")
        return ex.Call("concat", (self.as_text(left), self.as_text(right)), span)

    def as_text(self, node: Any) -> ex.Expr:
        """Return a value that is joined to texts: an integer is written as one."""
        value = self.convert(node)
        is_text = isinstance(value, ex.Literal) and (value.value is None or isinstance(value.value, str))
        return value if is_text else ex.Call("sql text", (value,), value.span)

    def _round(self, node: Any, span: Span) -> ex.Expr:
        value, places = self.parts(node, "this", "decimals")
        return ex.Call("round", tuple(self.convert(part) for part in (value, places) if part is not None), span)

    def _pow(self, node: Any, span: Span) -> ex.Expr:
        return ex.Call("power", tuple(self.convert(part) for part in self.parts(node, "this", "expression")), span)

    def _log(self, node: Any, span: Span) -> ex.Expr:
        base, value = self.parts(node, "this", "expression")
        if value is None or type(base).__name__ != "Literal" or base.this != "10":
            raise self.refuse(node, "this LOG", "LN(x) and LOG10(x) are")
        return ex.Call("log10", (self.convert(value),), span)

    def _substring(self, node: Any, span: Span) -> ex.Expr:
        parts = [part for part in self.parts(node, "this", "start", "length") if part is not None]
        return ex.Call("substring", tuple(self.convert(part) for part in parts), span)

    def _trim(self, node: Any, span: Span) -> ex.Expr:
        text, side, signs = self.parts(node, "this", "position", "expression")
        names = {"LEADING": "sql ltrim", "TRAILING": "sql rtrim", None: "sql trim", "BOTH": "sql trim"}
        parts = tuple(self.convert(part) for part in (text, signs) if part is not None)
        return ex.Call(names[None if side is None else str(side).upper()], parts, span)

    def _ilike(self, node: Any, span: Span) -> ex.Expr:
        operand, pattern, negated = self.parts(node, "this", "expression", "negate")
        lowered = ex.Call("lower", (self.convert(operand),), span)
        return ex.Like(lowered, self._like_pattern(pattern, None).lower(), bool(negated), span)

    def _nvl2(self, node: Any, span: Span) -> ex.Expr:
        value, there, missing = (self.convert(part) for part in self.parts(node, "this", "true", "false"))
        return ex.Call(CASE, (ex.IsNull(value, True, span), there, missing), span)

    def _decodecase(self, node: Any, span: Span) -> ex.Expr:
        """Convert DECODE of Oracle: pairs of a value and a result; nulls are equal."""
        value, *parts = (self.convert(part) for part in self.parts(node, "expressions")[0])
        arguments: list[ex.Expr] = []
        for searched, result in zip(parts[::2], parts[1::2], strict=False):
            arguments += [_is_same(value, searched, span), result]
        default = parts[-1] if len(parts) % 2 else ex.Literal(None, span)
        return ex.Call(CASE, (*arguments, default), span)

    def _pad(self, node: Any, span: Span) -> ex.Expr:
        parts = self.parts(node, "this", "expression", "fill_pattern", "is_left")
        name = "sql lpad" if parts[3] else "sql rpad"
        return ex.Call(name, tuple(self.convert(part) for part in parts[:3] if part is not None), span)

    def _concatws(self, node: Any, span: Span) -> ex.Expr:
        separator, *values = self.parts(node, "expressions")[0]
        if not values:
            raise self.refuse(node, "CONCAT_WS without values")
        between = self.convert(separator)
        nothing = ex.Literal("", span)
        # Each value that is not null comes with a separator before it; the first one is cut off.
        parts: list[ex.Expr] = []
        for value in values:
            text = self.convert(value)
            with_separator = ex.Call("concat", (between, text), span)
            parts.append(ex.Call(CASE, (ex.IsNull(text, True, span), with_separator, nothing), span))
        size = ex.Binary("+", ex.Call("length", (between,), span), ex.Literal(1, span), span)
        return ex.Call("substring", (ex.Call("concat", tuple(parts), span), size), span)

    def _regexplike(self, node: Any, span: Span) -> ex.Expr:
        parts = self.parts(node, "this", "expression")
        return ex.Call("regexp_like", tuple(self.convert(part) for part in parts), span)

    def _extract(self, node: Any, span: Span) -> ex.Expr:
        part, moment = self.parts(node, "this", "expression")
        return extract_part(self, node, str(part.this).lower(), moment, span)

    def _cast(self, node: Any, span: Span) -> ex.Expr:
        value, target = self.parts(node, "this", "to")
        name = target.this.name if hasattr(target.this, "name") else str(target.this)
        is_text = type(value).__name__ == "Literal" and bool(value.args.get("is_string"))
        if name in _MOMENTS:
            moment = ex.Timestamp(moment_of(str(value.this), self.span(node)), span) if is_text else self.convert(value)
            return moment if is_text and name != "DATE" else ex.Call(_MOMENTS[name], (moment,), span)
        if name == "DECIMAL":
            return self._to_decimal(value, target, node, span)
        sizes = target.args.get("expressions")
        if name not in _CASTS or (sizes and name not in ("VARCHAR", "NVARCHAR")):
            raise self.refuse(node, f"CAST to `{target.sql()[:40]}`")
        operand = self.convert(value)
        cast = ex.Call(f"cast {_CASTS[name]}", (operand,), span)
        if _CASTS[name] == "text" and self.gives_date(operand):
            cast = ex.Call("substring", (cast, ex.Literal(1), ex.Literal(len("2026-01-31"))), span)
        if sizes:  # the standard cuts off what is longer
            return ex.Call("substring", (cast, ex.Literal(1), ex.Literal(int(str(sizes[0].this.this)))), span)
        if name in _BITS:
            limit = 1 << (_BITS[name] - 1)
            fits = ex.Between(cast, ex.Literal(-limit), ex.Literal(limit - 1), False, span)
            return ex.Call(CASE, (fits, cast, ex.Literal(None)), span)
        return cast

    def _to_decimal(self, value: Any, target: Any, node: Any, span: Span) -> ex.Expr:
        sizes = [str(size.this.this) for size in target.expressions] or ["18", "3"]
        precision, scale = (int(size) for size in (*sizes, "0")[:2])
        if not 0 <= scale <= precision <= MOST_SCALE:
            raise self.refuse(node, f"CAST to `{target.sql()[:40]}`", f"at most {MOST_SCALE} digits are possible")
        return ex.Call(TO_DECIMAL, (self.convert(value), ex.Literal(precision), ex.Literal(scale)), span)

    def _trycast(self, node: Any, span: Span) -> ex.Expr:
        return self._cast(node, span)

    def _anonymous(self, node: Any, span: Span) -> ex.Expr:
        name, arguments = self.parts(node, "this", "expressions")
        called = str(name).lower()
        if called == "iff" and len(arguments or ()) == 3:
            return ex.Call(CASE, tuple(self.convert(argument) for argument in arguments), span)
        if called in TIME_FUNCTIONS:
            return TIME_FUNCTIONS[called](self, node, list(arguments or ()), span)
        if called not in FUNCTIONS:
            raise self.refuse(node, f"the function `{str(name)[:40]}`")
        return ex.Call(called, tuple(self.convert(argument) for argument in arguments or ()), span)


def _is_same(left: ex.Expr, right: ex.Expr, span: Span) -> ex.Expr:
    """Return whether two values are equal, or both null; never null."""
    equal = ex.Call("coalesce", (ex.Binary("=", left, right, span), ex.Literal(False, span)), span)
    nulls = ex.Binary("and", ex.IsNull(left, False, span), ex.IsNull(right, False, span), span)
    return ex.Binary("or", equal, nulls, span)


def refuse_other_parts(node: Any, names: tuple[str, ...], source: SqlExpression) -> None:
    """Raise :class:`QueryError` if a node has a part that is not among ``names``."""
    for name, value in node.args.items():
        if name not in names and name not in _SILENT and value not in (None, False, []):
            shown = node.sql()[:60] if hasattr(node, "sql") else type(node).__name__
            raise error_at(f"a part of `{shown}` is not supported ({name})", place_of(node, source), None,
                           code="query_syntax")  # fmt: skip


def place_of(node: Any, source: SqlExpression) -> Span:
    """Return the place of a node in the text of the clause: that of the names in it up to the end of the calls that
    begin there, or of the whole expression."""
    if id(node) not in source.name_places:
        return source.span
    start, end = source.name_places[id(node)]
    depth = source.text.count("(", start, end) - source.text.count(")", start, end)
    if type(node).__name__ == "Anonymous" and source.text[end:].lstrip().startswith("("):  # a call without arguments
        end = source.text.index("(", end) + 1
        depth += 1
    while depth > 0 and end < len(source.text):
        depth += (source.text[end] == "(") - (source.text[end] == ")")
        end += 1
    return Span(source.span.start + start, source.span.start + end)
