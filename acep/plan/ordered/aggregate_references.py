"""Resolve aggregates of rows of the match, and what is computed of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from acep.errors import QueryError
from acep.functions.aggregates import AGGREGATES
from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.expressions import Span, error_at, locate_errors
from acep.pattern.walk import leaves_of
from acep.plan.ordered.aggregate_calls import AggregateCall, names_in_define, read_aggregate
from acep.plan.ordered.row_references import LABEL, NUMBER, RowAggregate
from acep.plan.ordered.sql_expressions import place_of
from acep.plan.schema import Kind

if TYPE_CHECKING:
    from acep.plan.ordered.clause_leaves import _Leaf
    from acep.plan.ordered.row_columns import ClauseColumns

__all__ = ["RowArgument", "column_of_argument", "integer_places", "reference_of", "resolve_aggregate"]


@dataclass(frozen=True)
class RowArgument:
    """The argument of a navigation or an aggregate: an expression over a row, the variables that its columns name
    (``None``: the universal one), and whether it has columns at all."""

    expr: ex.Expr
    variables: frozenset[str] | None
    has_columns: bool

    @property
    def reads_match(self) -> bool:
        """Return whether it reads labels or the number of the match."""
        return any(isinstance(leaf, ex.Attribute) and leaf.name in (LABEL, NUMBER) for leaf in leaves_of(self.expr))


def resolve_aggregate(leaf: _Leaf, node: Any, is_final: bool, span: Span) -> ex.Expr:
    """Return the expression of an aggregate; an average of doubles or durations is a sum divided by a count."""
    if leaf.defined is not None and type(node).__name__ != "Filter":
        call = read_aggregate(node, leaf.source)
        if AGGREGATES[call.function].as_number:
            return _condition_as_number(leaf, call, is_final, span)
        if call.function == "array_agg":
            hint = "compare it, as in array_agg(x) = ARRAY['A', 'B'], or ask cardinality, contains or element_at of it"
            raise error_at("array_agg on its own is not supported in DEFINE", span, hint, code="query_syntax")
    reference = reference_of(leaf, node, is_final)
    entry = AGGREGATES[reference.function]
    places = None if entry.clause_expression is None else integer_places(leaf.clause.columns, reference.column)
    if places is not None:
        return leaf.clause.add(replace(reference, texts=(str(places),)), span)
    composition = entry.clause_expression or entry.expression or reference.function
    return ex.compose(composition, lambda function: leaf.clause.add(replace(reference, function=function), span), span)


def reference_of(leaf: _Leaf, node: Any, is_final: bool) -> RowAggregate:
    """Return the reference that an aggregate is."""
    call, span = read_aggregate(node, leaf.source), place_of(node, leaf.source)
    function = call.function
    if leaf.defined is not None and call.order:
        hint = "the rows of a match are in the order of the clause"
        raise error_at(f"ORDER BY inside {function} is not supported in DEFINE", span, hint, code="query_syntax")
    if leaf.defined is not None and function not in (*names_in_define(), "array_agg"):
        raise error_at(f"{function} is not supported in DEFINE", span, f"there are {', '.join(names_in_define())}",
                       code="query_syntax")  # fmt: skip
    if call.rows is not None and call.condition is None:
        rows = leaf.clause.variable_set(call.rows, span) if call.rows else None
        return RowAggregate("count", None, rows, False, is_final)
    keys = [key.this for key in call.order]
    parts = [leaf.argument(part, function) for part in (call.value, call.key, *keys) if part is not None]
    named = [part.variables for part in parts if part.has_columns]  # constants belong to any variable
    if call.rows is not None:
        parts = [RowArgument(ex.Literal(1), None, False)]
        named = [leaf.clause.variable_set(call.rows, span)] if call.rows else []
    if call.condition is not None:
        # All these aggregates leave out nulls.
        condition = leaf.argument(call.condition, function)
        named += [condition.variables] if condition.has_columns else []
        value = ex.Call(CASE, (condition.expr, parts[0].expr, ex.Literal(None)), span)
        parts[0] = RowArgument(value, None, True)
    if len(set(named)) > 1:
        raise error_at(
            f"all columns inside {function} belong to one variable",
            span,
            f"as in {function}(A.x) and {function}(B.x)",
            code="query_invalid",
        )
    if function == "string_agg":
        parts[0] = replace(parts[0], expr=_as_text(leaf, parts[0]))
    if AGGREGATES[function].needs_float:
        with locate_errors(span):
            parts[0] = replace(parts[0], expr=_as_float(leaf, parts[0]))
    columns = [column_of_argument(leaf, part) for part in parts]
    variables = named[0] if named else None
    order = tuple((bool(key.args.get("desc")), bool(key.args.get("nulls_first"))) for key in call.order)
    arguments = tuple(columns[1:])
    return RowAggregate(function, columns[0], variables, call.is_distinct, is_final, arguments, call.texts, order)


def integer_places(columns: ClauseColumns, name: str | None) -> int | None:
    """Return the decimal places of a column that is summed in integers; ``None`` for another column."""
    if name is None or name == LABEL:
        return None
    try:
        typed = columns.typed_column(name)
    except QueryError:  # the sum of it is refused
        return None
    return typed.scale if typed.kind in ("int", "decimal") else None


def column_of_argument(leaf: _Leaf, argument: RowArgument) -> str:
    """Return the column that an aggregate reads."""
    if not argument.reads_match:
        return leaf.clause.columns.add(argument.expr)
    return leaf.clause.columns.add_mapped(argument.expr)


def _as_text(leaf: _Leaf, argument: RowArgument) -> ex.Expr:
    """Return the argument of an aggregate of texts: an integer is written as a text."""
    expr = argument.expr
    is_integer = isinstance(expr, ex.Attribute) and expr.name not in (LABEL, NUMBER) and (
        leaf.clause.columns.schema.kind(str(expr.name)) is Kind.INT
        and leaf.clause.columns.schema.scale(str(expr.name)) is None
    )  # fmt: skip
    return ex.Call("sql text", (expr,), expr.span) if is_integer else expr


def _as_float(leaf: _Leaf, argument: RowArgument) -> ex.Expr:
    """Return the argument of an aggregate of floats: a decimal is made one."""
    column = column_of_argument(leaf, argument)
    is_decimal = column != LABEL and leaf.clause.columns.typed_column(column).kind == "decimal"
    return ex.Call("cast float", (argument.expr,), argument.expr.span) if is_decimal else argument.expr


def _condition_as_number(leaf: _Leaf, call: AggregateCall, is_final: bool, span: Span) -> ex.Expr:
    """Return an aggregate of a condition in DEFINE: a count, a maximum or a minimum of numbers."""
    function = AGGREGATES[call.function].as_number
    assert function is not None
    argument = leaf.argument(call.value, function)
    no: tuple[ex.Expr, ...] = () if function == "count" else (ex.Unary("not", argument.expr), ex.Literal(0))
    number = ex.Call(CASE, (argument.expr, ex.Literal(1), *no, ex.Literal(None)), span)
    column = column_of_argument(leaf, replace(argument, expr=number))
    reference = leaf.clause.add(RowAggregate(function, column, argument.variables, False, is_final), span)
    return reference if function == "count" else ex.Binary("=", reference, ex.Literal(1), span)
