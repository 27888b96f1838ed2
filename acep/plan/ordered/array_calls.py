"""Resolve what is asked of an ARRAY_AGG: its texts joined, its size, an element, a value in it, a comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.expressions import Span, error_at
from acep.pattern.sql.clause_tree import FINAL, RUNNING
from acep.plan.ordered.aggregate_calls import AggregateCall, is_aggregate, read_aggregate
from acep.plan.ordered.aggregate_references import RowArgument, column_of_argument, reference_of
from acep.plan.ordered.row_references import Navigation, RowAggregate
from acep.plan.ordered.sql_expressions import SqlConverter, place_of, refuse_other_parts

if TYPE_CHECKING:
    from acep.plan.ordered.clause_leaves import _Leaf

__all__ = ["resolve_array_call"]

_SIZES = ("CARDINALITY", "SIZE")
MOST_ELEMENTS = 100


@dataclass(frozen=True)
class _Array:
    """An ARRAY_AGG: its node and its parts, and whether FINAL stands before it."""

    node: Any
    call: AggregateCall
    is_final: bool


def resolve_array_call(leaf: _Leaf, node: Any, span: Span) -> ex.Expr | None:
    """Return the expression of a call, or of a comparison, that has an ARRAY_AGG in it; ``None`` for another node."""
    kind = type(node).__name__
    name = str(node.this).upper() if kind == "Anonymous" else ""
    if kind in ("ArrayToString", "ConcatWs"):
        return _joined_texts(leaf, node, span)
    if kind in ("EQ", "NEQ"):
        return _comparison(leaf, node, span)
    if kind in ("ArraySize", "Length") or (name in _SIZES and len(node.expressions) == 1):
        array = _array_in(leaf, node.expressions[0] if name else node.this)
        return None if array is None else _size(leaf, array, span)
    if kind in ("Contains", "ArrayContains"):
        array = _array_in(leaf, node.this)
        return None if array is None else _contains(leaf, array, node.expression, span)
    if name == "ELEMENT_AT" and len(node.expressions) == 2:
        array = _array_in(leaf, node.expressions[0])
        return None if array is None else _element(leaf, array, node.expressions[1], span)
    if kind == "Bracket" and _array_in(leaf, node.this) is not None:
        hint = "engines count from 0 or from 1: write element_at(array_agg(x), 1) for the first one"
        raise error_at("an element in brackets is not supported", span, hint, code="query_syntax")
    return None


def _array_in(leaf: _Leaf, node: Any) -> _Array | None:
    """Return the ARRAY_AGG that a node is, with RUNNING or FINAL before it; ``None`` if it is none."""
    is_final = False
    while type(node).__name__ == "Paren":
        node = node.this
    if type(node).__name__ == "Anonymous" and str(node.this) in (RUNNING, FINAL):
        is_final = str(node.this) == FINAL
        (node,) = node.expressions
    if not is_aggregate(node):
        return None
    call = read_aggregate(node, leaf.source)
    if call.function != "array_agg":
        return None
    if is_final and leaf.defined is not None:
        raise error_at("FINAL is not possible in DEFINE: the match is not complete there",
                       place_of(node, leaf.source), "leave it out", code="query_invalid")  # fmt: skip
    return _Array(node, call, is_final)


def _rows_of(leaf: _Leaf, argument: RowArgument, is_final: bool, span: Span) -> ex.Expr:
    """Return how many rows an array is of."""
    return leaf.clause.add(RowAggregate("count", None, argument.variables, False, is_final), span)


def _argument(leaf: _Leaf, array: _Array, span: Span, is_ordered: bool = True) -> RowArgument:
    """Return the expression of the elements. Refuse DISTINCT, and a key where their order counts."""
    if array.call.is_distinct or (is_ordered and array.call.order):
        word = "DISTINCT" if array.call.is_distinct else "ORDER BY"
        hint = "give the array as a measure of its own"
        raise error_at(f"{word} inside array_agg is not supported here", span, hint, code="query_syntax")
    return leaf.argument(array.call.value, "array_agg")


def _if_any(rows: ex.Expr, value: ex.Expr, span: Span) -> ex.Expr:
    """Return a value of an array, which is null where there are no rows."""
    return ex.Call(CASE, (ex.Binary(">", rows, ex.Literal(0), span), value, ex.Literal(None)), span)


def _size(leaf: _Leaf, array: _Array, span: Span) -> ex.Expr:
    rows = _rows_of(leaf, _argument(leaf, array, span, is_ordered=False), array.is_final, span)
    return _if_any(rows, rows, span)


def _element(leaf: _Leaf, array: _Array, node: Any, span: Span) -> ex.Expr:
    """Return ELEMENT_AT: from 1 on, or from the end by a negative number."""
    is_last = type(node).__name__ == "Neg"
    number = node.this if is_last else node
    text = str(number.this) if type(number).__name__ == "Literal" and not number.args.get("is_string") else ""
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise error_at("the place of an element is a whole number that is written there, from 1", span,
                       "as in element_at(array_agg(x), 1), or -1 for the last one", code="query_invalid")  # fmt: skip
    argument = _argument(leaf, array, span)
    navigation = Navigation("", argument.variables, not is_last, int(text) - 1, 0, array.is_final)
    return leaf.value_at(argument, navigation, span)


def _contains(leaf: _Leaf, array: _Array, node: Any, span: Span) -> ex.Expr:
    """Return CONTAINS: null if the value is not there, but a null is."""
    argument, value = _argument(leaf, array, span, is_ordered=False), leaf.argument(node, "contains")
    if value.has_columns or value.reads_match:
        hint = "as in contains(array_agg(CLASSIFIER()), 'A')"
        raise error_at("the value that an array contains is a constant here", span, hint, code="query_syntax")
    is_equal = ex.Call(CASE, (ex.Binary("=", argument.expr, value.expr, span), ex.Literal(1), ex.Literal(None)), span)
    counts = [
        leaf.clause.add(RowAggregate("count", column, argument.variables, False, array.is_final), span)
        for column in (column_of_argument(leaf, replace(argument, expr=expr)) for expr in (is_equal, argument.expr))
    ]
    rows = _rows_of(leaf, argument, array.is_final, span)
    nothing, zero = ex.Literal(None), ex.Literal(0)
    has_null = ex.Binary("<", counts[1], rows, span)
    branches = (ex.Binary(">", counts[0], zero, span), ex.Literal(True), has_null, nothing, ex.Literal(False))
    return _if_any(rows, ex.Call(CASE, branches, span), span)


def _comparison(leaf: _Leaf, node: Any, span: Span) -> ex.Expr | None:
    """Return whether an array is the one that is written out, element by element."""
    sides = (node.this, node.expression)
    if "Array" not in (type(side).__name__ for side in sides):
        return None
    array_node, written = sides if type(sides[1]).__name__ == "Array" else sides[::-1]
    array = _array_in(leaf, array_node)
    if array is None:
        return None
    if len(written.expressions) > MOST_ELEMENTS:
        raise error_at(
            f"an array has at most {MOST_ELEMENTS} elements here",
            span,
            "compare with fewer elements, or use IN",
            code="query_size",
        )
    argument = _argument(leaf, array, span)
    rows = _rows_of(leaf, argument, array.is_final, span)
    is_equal: ex.Expr = ex.Binary("=", rows, ex.Literal(len(written.expressions)), span)
    converter = SqlConverter(leaf.source, leaf.find, leaf.clause.is_date)
    for index, element in enumerate(written.expressions):
        value = leaf.value_at(argument, Navigation("", argument.variables, True, index, 0, array.is_final), span)
        is_equal = ex.Binary("and", is_equal, ex.Binary("=", value, converter.convert(element), span), span)
    is_equal = _if_any(rows, is_equal, span)
    return is_equal if type(node).__name__ == "EQ" else ex.Unary("not", is_equal, span)


def _joined_texts(leaf: _Leaf, node: Any, span: Span) -> ex.Expr | None:
    """Return ARRAY_JOIN, ARRAY_TO_STRING or CONCAT_WS of an ARRAY_AGG as an aggregate; ``None`` for another node."""
    kind = type(node).__name__
    if kind == "ArrayToString":
        refuse_other_parts(node, ("this", "expression"), leaf.source)
        array_node, separator = node.this, node.expression
    elif len(node.expressions) == 2:
        separator, array_node = node.expressions
    else:
        return None
    array = _array_in(leaf, array_node)
    if array is None:
        return None
    if type(separator).__name__ != "Literal" or not separator.args.get("is_string"):
        raise error_at("the separator is a constant text", span, "as in string_agg(x, ', ')", code="query_syntax")
    reference = reference_of(leaf, array.node, array.is_final)
    text = leaf.clause.add(replace(reference, function="string_agg", texts=(str(separator.this),)), span)
    joined = ex.Call("coalesce", (text, ex.Literal("")), span)
    if kind == "ConcatWs":
        return joined
    rows = leaf.clause.add(RowAggregate("count", None, reference.variables, False, array.is_final), span)
    return _if_any(rows, joined, span)
