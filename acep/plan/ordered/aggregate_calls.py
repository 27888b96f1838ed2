"""Read the calls of aggregates in sqlglot's trees: the function, its arguments, DISTINCT and FILTER."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from acep.functions.aggregates import AGGREGATES
from acep.pattern.expressions import error_at
from acep.pattern.sql.clause_tree import SqlExpression
from acep.plan.ordered.sql_expressions import place_of, refuse_other_parts

__all__ = ["AggregateCall", "is_aggregate", "names_in_define", "read_aggregate"]

# sqlglot's names of aggregates, and ours.
_NAME_OF_NODE = {node: name for name, entry in AGGREGATES.items() for node in entry.nodes}


def names_in_define() -> tuple[str, ...]:
    """Return the aggregates that DEFINE may have."""
    return tuple(name for name, entry in AGGREGATES.items() if entry.in_define)


@dataclass(frozen=True)
class AggregateCall:
    """A call of an aggregate. ``value`` and ``key`` are its arguments (``key``: the second one of max_by and min_by);
    ``rows`` instead of a value: the variable of ``count(A.*)``, or an empty text for ``count(*)``. ``condition``: that
    of FILTER. ``texts``: constants. ``order``: the keys of an ORDER BY inside."""

    function: str
    value: Any | None
    key: Any | None = None
    rows: str | None = None
    is_distinct: bool = False
    condition: Any | None = None
    texts: tuple[str, ...] = ()
    order: tuple[Any, ...] = ()


def is_aggregate(node: Any) -> bool:
    """Return whether a node is a call of an aggregate, with FILTER or without."""
    if type(node).__name__ in ("Filter", "WithinGroup"):
        return is_aggregate(node.this)
    return _function_of(node) is not None


def _function_of(node: Any) -> str | None:
    kind = type(node).__name__
    if kind != "Anonymous":
        return _NAME_OF_NODE.get(kind)
    sql_name = str(node.this).upper()
    return next((name for name, entry in AGGREGATES.items() if sql_name in entry.sql_names), None)


def read_aggregate(node: Any, source: SqlExpression) -> AggregateCall:
    """Read a call. Raises :class:`QueryError` for parts that are not supported."""
    span = place_of(node, source)
    if type(node).__name__ == "Filter":
        return _with_filter(node, source)
    if type(node).__name__ == "WithinGroup":
        return _within_group(node, source)
    function = _function_of(node)
    assert function is not None
    values = _arguments(node, function, source)
    value = values[0] if values else None
    order: tuple[Any, ...] = ()
    if type(value).__name__ == "Order" and AGGREGATES[function].takes_order:
        refuse_other_parts(value, ("this", "expressions"), source)
        order, value = tuple(value.expressions), value.this  # type: ignore[union-attr]
        values = [value, *values[1:]]
    is_distinct = type(value).__name__ == "Distinct"
    if is_distinct:
        values = _different_values(function, values, has_order=bool(order), source=source, node=node)
        value, is_distinct = values[0], AGGREGATES[function].counts_each
    if any(type(part).__name__ in ("Order", "Limit", "HavingMax", "IgnoreNulls") for part in (value, *values)):
        raise error_at(
            f"ORDER BY and the like inside {function} are not supported",
            span,
            "array_agg and string_agg take ORDER BY",
            code="query_syntax",
        )
    texts: tuple[str, ...] = ()
    if function == "string_agg":
        texts = (_constant_text(values[1], source) if len(values) > 1 else ",",)
        values = values[:1]
    if len(values) > AGGREGATES[function].n_arguments:
        raise error_at(
            f"{function} has too many arguments",
            span,
            "it takes those that docs/reference/sql.md shows",
            code="query_syntax",
        )
    is_star = type(value).__name__ == "Star"
    is_star_of_variable = type(value).__name__ == "Column" and type(value.this).__name__ == "Star"  # type: ignore[union-attr]
    if (is_star and is_distinct) or (is_star_of_variable and (is_distinct or function != "count")):
        hint = "count(*) counts rows, and count(DISTINCT x) the values of a column"
        raise error_at(f"{function} of all columns has no meaning", span, hint, code="query_invalid")
    if function == "count" and (value is None or is_star):
        return AggregateCall(function, None, rows="")
    if is_star_of_variable:
        return AggregateCall(function, None, rows=value.args["table"].this)  # type: ignore[union-attr]
    if value is None or len(values) < AGGREGATES[function].n_arguments:
        raise error_at(
            f"{function} needs {'two arguments' if value is not None else 'an argument'}",
            span,
            f"as in {function}(x, y)" if value is not None else f"as in {function}(x)",
            code="query_syntax",
        )
    key = values[1] if len(values) > 1 else None
    return AggregateCall(function, value, key, None, is_distinct, None, texts, order)


def _with_filter(node: Any, source: SqlExpression) -> AggregateCall:
    """Read a call with FILTER (WHERE ...)."""
    refuse_other_parts(node, ("this", "expression"), source)
    call = read_aggregate(node.this, source)
    if call.function == "array_agg":
        raise error_at(
            "FILTER of array_agg is not supported",
            place_of(node, source),
            "its rows are those of a variable, as in array_agg(A.x)",
            code="query_syntax",
        )
    return replace(call, condition=node.expression.this)


def _different_values(
    function: str, values: list[Any], *, has_order: bool, source: SqlExpression, node: Any
) -> list[Any]:
    """Return the arguments of a call whose first one is DISTINCT, without it."""
    refuse_other_parts(values[0], ("expressions",), source)
    parts = values[0].expressions
    if function == "string_agg" and len(parts) == 2 and len(values) == 1:  # the separator stands behind DISTINCT
        values, parts = [values[0], parts[1]], parts[:1]
    if has_order or len(parts) != 1 or function == "count_if":
        raise error_at(
            f"DISTINCT is not supported in this {function}",
            place_of(node, source),
            "it takes one expression, and no ORDER BY; count_if(x) counts rows, count(DISTINCT x) values",
            code="query_syntax",
        )
    return [parts[0], *values[1:]]


def _within_group(node: Any, source: SqlExpression) -> AggregateCall:
    """Read a call with WITHIN GROUP (ORDER BY ...)."""
    refuse_other_parts(node, ("this", "expression"), source)
    call, order = read_aggregate(node.this, source), node.expression
    if not AGGREGATES[call.function].takes_order or call.order or call.is_distinct or type(order).__name__ != "Order":
        raise error_at(
            f"WITHIN GROUP of this {call.function} is not supported",
            place_of(node, source),
            "array_agg(x) and string_agg(x, ',') take WITHIN GROUP (ORDER BY y), without DISTINCT",
            code="query_syntax",
        )
    refuse_other_parts(order, ("expressions",), source)
    return replace(call, order=tuple(order.expressions))


def _arguments(node: Any, function: str, source: SqlExpression) -> list[Any]:
    kind = type(node).__name__
    if kind in ("Anonymous", "List"):
        names: tuple[str, ...] = ("this", "expressions") if kind == "Anonymous" else ("expressions",)
        refuse_other_parts(node, names, source)
        return list(node.expressions)
    names = ("this",)
    if AGGREGATES[function].n_arguments == 2:
        names = ("this", "expression")
    elif function == "string_agg":
        names = ("this", "separator")
    refuse_other_parts(node, names, source)
    return [part for name in names if (part := node.args.get(name)) is not None]


def _constant_text(node: Any, source: SqlExpression) -> str:
    if type(node).__name__ != "Literal" or not node.args.get("is_string"):
        raise error_at(
            "the separator is a constant text", place_of(node, source), "as in string_agg(x, ', ')", code="query_syntax"
        )
    return str(node.this)
