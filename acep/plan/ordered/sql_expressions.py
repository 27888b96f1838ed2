"""Convert expressions of SQL, as sqlglot gives them, to expressions that all engines run.

A part of a tree that is not understood is refused by its name and place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from acep.errors import QueryError
from acep.functions.scalar_function import ScalarFunction
from acep.functions.scalars import SCALARS, called_scalar
from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.expressions import Span, error_at
from acep.pattern.scalar_calls import check_fixed, scalar_call
from acep.pattern.sql.clause_tree import SqlExpression
from acep.pattern.sql.scanner import exact_number
from acep.pattern.times import UNITS
from acep.plan.dates import gives_date
from acep.plan.ordered.sql_casts import CAST_NODES
from acep.plan.ordered.sql_choices import CHOICE_NODES
from acep.plan.ordered.sql_numbers import NUMBER_NODES
from acep.plan.ordered.sql_texts import TEXT_NODES
from acep.plan.ordered.sql_times import (
    TIME_FUNCTIONS,
    add_months_of,
    extract_part,
    length_of_time,
)

__all__ = ["MOST_NODES", "SqlConverter", "place_of", "refuse_other_parts"]

MOST_NODES = 5_000
_COMPARISONS = {"EQ": "=", "NEQ": "!=", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<="}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%"}
_JOINS = {"And": "and", "Or": "or"}
# sqlglot's names of scalar functions, with our entries.
_SCALAR_NODES = {node: entry for entry in SCALARS.values() for node in entry.nodes}
_NODES = {**TEXT_NODES, **NUMBER_NODES, **CAST_NODES, **CHOICE_NODES}
_COLUMN_HINT = "compute it before, as a column: FROM (SELECT *, f(x) AS y FROM t) MATCH_RECOGNIZE (...)"
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
            raise error_at(
                f"an expression has at most {MOST_NODES} parts",
                self.source.span,
                "compute parts of it as columns before",
                code="query_size",
            )
        reference = self.leaf(node)
        return self._operation(node) if reference is None else reference

    def span(self, node: Any) -> Span:
        """Return the place of a node, as exactly as sqlglot tells it."""
        return place_of(node, self.source)

    def refuse(self, node: Any, what: str, hint: str | None = None) -> QueryError:
        """Return the error for a node that is not understood."""
        return error_at(f"{what} is not supported here", self.span(node), hint or _COLUMN_HINT, code="query_syntax")

    def parts(self, node: Any, *names: str) -> list[Any]:
        """Return parts of a node by name, after a check that it has no others."""
        refuse_other_parts(node, names, self.source)
        return [node.args.get(name) for name in names]

    def _operation(self, node: Any) -> ex.Expr:
        kind, span = type(node).__name__, self.span(node)
        if kind in ("Add", "Sub") and (moved := add_months_of(self, node, span)) is not None:
            return moved
        if kind in _JOINS:
            return self._join_pairs(_JOINS[kind], self._operands(node), span)
        if kind in _COMPARISONS or kind in _ARITHMETIC:
            left, right = self.parts(node, "this", "expression")
            sign = _COMPARISONS.get(kind) or _ARITHMETIC[kind]
            return self._days_added(sign, self.convert(left), self.convert(right), span)
        if (entry := _SCALAR_NODES.get(kind)) is not None:
            return self._call(entry, self._arguments(node, entry.nodes[kind]), span)
        if (convert := _NODES.get(kind)) is not None:
            return convert(self, node, span)
        method = getattr(self, f"_convert_{kind.lower()}", None)
        if kind in ("Subquery", "Select", "Exists") or (kind == "In" and node.args.get("query") is not None):
            names = {"Exists": "EXISTS, a subquery,", "In": "IN with a subquery"}
            raise self.refuse(node, names.get(kind, "a subquery"), "join its table to the rows before")
        if method is None:
            name = node.sql_names()[0] if hasattr(node, "sql_names") else node.sql().split("(")[0][:40]
            raise self.refuse(node, f"`{name}`")
        converted: ex.Expr = method(node, span)
        return converted

    def _arguments(self, node: Any, names: tuple[str, ...]) -> list[Any]:
        """Return the parts of a node that are the arguments of a function; ``*`` stands before the name of several."""
        arguments: list[Any] = []
        for name, part in zip(names, self.parts(node, *(name.lstrip("*") for name in names)), strict=True):
            arguments += (part or ()) if name.startswith("*") else [part] if part is not None else []
        return arguments

    def _call(self, entry: ScalarFunction, arguments: list[Any], span: Span) -> ex.Expr:
        """Return the call of a scalar function; what is written as a constant of it is checked."""
        args = tuple(self.convert(argument) for argument in arguments)
        low, high = entry.counts
        if low <= len(args) <= high:  # else types say so
            check_fixed(entry, args, is_sql=True)
            return scalar_call(entry, args, span)
        return ex.Call(entry.name, args, span)

    def _operands(self, node: Any) -> list[ex.Expr]:
        """Return the converted operands of conditions that the same word joins, however many they are."""
        operands: list[ex.Expr] = []
        pending = [node]
        while pending:
            part = pending.pop()
            if type(part) is type(node):
                pending += self.parts(part, "this", "expression")[::-1]
                self.nodes += part is not node
            else:
                operands.append(self.convert(part))
        return operands

    def _join_pairs(self, sign: str, operands: list[ex.Expr], span: Span) -> ex.Expr:
        """Join conditions two by two, so that many of them are not nested deep."""
        while len(operands) > 1:
            pairs = zip(operands[::2], operands[1::2], strict=False)
            last = operands[-1:] if len(operands) % 2 else []
            operands = [*(ex.Binary(sign, left, right, span) for left, right in pairs), *last]
        return operands[0]

    def _days_added(self, sign: str, left: ex.Expr, right: ex.Expr, span: Span) -> ex.Expr:
        """Return an operation of two values; a whole number beside a date is a number of days."""
        if sign in "+-" and isinstance(right, ex.Literal) and type(right.value) is int and self.gives_date(left):
            right = _days(right)
        if sign in _COMPARISONS.values():
            left, right = self.in_days(left, right), self.in_days(right, left)
        return ex.Binary(sign, left, right, span)

    def in_days(self, value: ex.Expr, other: ex.Expr) -> ex.Expr:
        """Return a value that is compared: a whole number beside a difference of dates is a number of days."""
        is_number = isinstance(value, ex.Literal) and type(value.value) is int
        if not is_number or not isinstance(other, ex.Binary) or other.op != "-":
            return value
        return _days(value) if self.gives_date(other.left) and self.gives_date(other.right) else value

    # Constants ----------------------------------------------------------------------------------------

    def _convert_literal(self, node: Any, span: Span) -> ex.Expr:
        text, is_text = self.parts(node, "this", "is_string")
        if is_text:
            return ex.Literal(text, span)
        try:
            number = exact_number(text)
        except ValueError:
            raise error_at(
                f"{text[:40]} is no number that fits in a double",
                span,
                "write a number below 1.8e308",
                code="query_size",
            ) from None
        if text.isdecimal():
            if number >= 2**63:
                raise error_at(
                    f"{text[:40]} does not fit in 64 bits",
                    span,
                    "write it with a point, as a double",
                    code="query_size",
                )
            return ex.Literal(int(text), span)
        value = float(text)
        return ex.Literal(value, span, None if Fraction(value) == number else number)

    def _convert_boolean(self, node: Any, span: Span) -> ex.Expr:
        return ex.Literal(bool(self.parts(node, "this")[0]), span)

    def _convert_null(self, node: Any, span: Span) -> ex.Expr:  # noqa: ARG002 - one signature
        return ex.Literal(None, span)

    def _convert_interval(self, node: Any, span: Span) -> ex.Expr:
        return length_of_time(self, node, span)

    def gives_date(self, expr: ex.Expr) -> bool:
        """Return whether the value of an expression is a date."""
        return gives_date(expr, self.is_date)

    # Operations ---------------------------------------------------------------------------------------

    def _convert_paren(self, node: Any, span: Span) -> ex.Expr:  # noqa: ARG002 - one signature
        return self.convert(self.parts(node, "this")[0])

    def _convert_neg(self, node: Any, span: Span) -> ex.Expr:
        operand = self.convert(self.parts(node, "this")[0])
        if isinstance(operand, ex.Literal) and isinstance(operand.value, int | float):
            exact = None if operand.exact is None else -operand.exact
            return ex.Literal(-operand.value, span, exact)
        return ex.Unary("-", operand, span)

    def _convert_not(self, node: Any, span: Span) -> ex.Expr:
        operand = self.convert(self.parts(node, "this")[0])
        if isinstance(operand, ex.IsNull | ex.In | ex.Between | ex.Like) and not operand.negated:
            kind = type(operand)
            return kind(**{**operand.__dict__, "negated": True})
        return ex.Unary("not", operand, span)

    def _convert_is(self, node: Any, span: Span) -> ex.Expr:
        left, right = self.parts(node, "this", "expression")
        operand = self.convert(left)
        match type(right).__name__:
            case "Null":
                return ex.IsNull(operand, False, span)
            case "Boolean":
                is_equal = ex.Binary("=", operand, ex.Literal(bool(right.this), span), span)
                return ex.Call("coalesce", (is_equal, ex.Literal(False, span)), span)
        raise self.refuse(node, "this IS")

    def _convert_between(self, node: Any, span: Span) -> ex.Expr:
        operand, low, high = self.parts(node, "this", "low", "high")
        value = self.convert(operand)
        lower, upper = (self.in_days(self.convert(bound), value) for bound in (low, high))
        return ex.Between(value, lower, upper, False, span)

    def _convert_in(self, node: Any, span: Span) -> ex.Expr:
        operand, values = self.parts(node, "this", "expressions")
        if not values:
            raise self.refuse(node, "this IN", "a list of values, as in x IN (1, 2)")
        return ex.In(self.convert(operand), tuple(self.convert(value) for value in values), False, span)

    def _convert_extract(self, node: Any, span: Span) -> ex.Expr:
        part, moment = self.parts(node, "this", "expression")
        return extract_part(self, node, str(part.this).lower(), moment, span)

    def _convert_anonymous(self, node: Any, span: Span) -> ex.Expr:
        name, arguments = self.parts(node, "this", "expressions")
        called = str(name).lower()
        if called == "iff" and len(arguments or ()) == 3:
            return ex.Call(CASE, tuple(self.convert(argument) for argument in arguments), span)
        if called in TIME_FUNCTIONS:
            return TIME_FUNCTIONS[called](self, node, list(arguments or ()), span)
        if (entry := called_scalar(called)) is None:
            raise self.refuse(node, f"the function `{str(name)[:40]}`")
        return self._call(entry, list(arguments or ()), span)


def _days(number: ex.Expr) -> ex.Expr:
    """Return a constant number of days as a duration."""
    assert isinstance(number, ex.Literal)
    return ex.Duration(Fraction(int(str(number.value)) * UNITS["day"]), number.span)


def refuse_other_parts(node: Any, names: tuple[str, ...], source: SqlExpression) -> None:
    """Raise :class:`QueryError` if a node has a part that is not among ``names``."""
    for name, value in node.args.items():
        if name not in names and name not in _SILENT and value not in (None, False, []):
            node_text = node.sql()[:60] if hasattr(node, "sql") else type(node).__name__
            raise error_at(f"a part of `{node_text}` is not supported ({name})", place_of(node, source), _COLUMN_HINT,
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
