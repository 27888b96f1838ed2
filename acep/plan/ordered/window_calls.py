"""Resolve aggregates OVER all rows of the partition, which Snowflake has in DEFINE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acep.pattern import expressions as ex
from acep.pattern.expressions import Span, error_at, locate_errors
from acep.plan.ordered.aggregate_calls import is_aggregate, names_in_define, read_aggregate
from acep.plan.ordered.aggregate_references import integer_places
from acep.plan.ordered.reference_types import type_of_reference
from acep.plan.ordered.row_references import Navigation, PartitionValue, RowAggregate

if TYPE_CHECKING:
    from acep.plan.ordered.clause_leaves import _Leaf

__all__ = ["resolve_window"]

_HINT = (
    "avg(x) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) is, in DEFINE; else compute a column before"
)


def resolve_window(leaf: _Leaf, node: Any, span: Span) -> ex.Expr:
    """Return an aggregate over all rows of the partition.

    Raises :class:`QueryError` for other windows and other functions."""
    spec = node.args.get("spec")
    refused_parts = ("partition_by", "order", "alias", "first")
    is_whole = spec is not None and not any(node.args.get(part) for part in refused_parts) and (
        str(spec.args.get("kind")).upper() == "ROWS"
        and [str(spec.args.get(side)).upper() for side in ("start", "start_side", "end", "end_side")]
        == ["UNBOUNDED", "PRECEDING", "UNBOUNDED", "FOLLOWING"]
        and not spec.args.get("exclude")
    )  # fmt: skip
    if leaf.defined is None or not is_whole or not is_aggregate(node.this):
        raise error_at("OVER is not supported in a row pattern", span, _HINT, code="query_syntax")
    call = read_aggregate(node.this, leaf.source)
    is_plain = not (call.is_distinct or call.order or call.condition is not None or call.rows)
    if call.function not in names_in_define() or not is_plain:
        raise error_at("OVER is not supported in a row pattern", span, _HINT, code="query_syntax")
    column = None
    if call.value is not None:
        argument = leaf.argument(call.value, call.function)
        if argument.variables is not None or argument.reads_match:
            raise error_at(
                "a window reads rows, not variables",
                span,
                "leave out the variable, as in avg(x) OVER (...)",
                code="query_invalid",
            )
        column = leaf.clause.columns.add(argument.expr)
    if call.function != "avg":
        return _value(leaf, call.function, column, span)
    if (places := integer_places(leaf.clause.columns, column)) is not None:
        return _value(leaf, "avg", column, span, (str(places),))
    parts = [_value(leaf, function, column, span) for function in ("sum", "count")]
    return ex.Binary("/", parts[0], parts[1], span)


def _value(leaf: _Leaf, function: str, column: str | None, span: Span, texts: tuple[str, ...] = ()) -> ex.Expr:
    columns = leaf.clause.columns
    window = PartitionValue(f"({function}({column or '*'}) of the partition)", function, column, texts)
    with locate_errors(span):
        typed = type_of_reference(RowAggregate(function, column, None), columns)
    assert typed is not None
    return leaf.clause.add(Navigation(columns.add_window(window, typed), None), span)
