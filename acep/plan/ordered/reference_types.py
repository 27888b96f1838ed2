"""Find the types of the values that the expressions of a clause refer to."""

from __future__ import annotations

from acep.errors import QueryError
from acep.functions.aggregates import AGGREGATES
from acep.pattern import expressions as ex
from acep.plan.decimals import Typed
from acep.plan.ordered.row_columns import ClauseColumns
from acep.plan.ordered.row_references import (
    CHOOSING,
    LABEL,
    MatchNumber,
    MissingRows,
    Navigation,
    RowAggregate,
    RowReference,
)

__all__ = ["type_of_reference"]


def type_of_reference(reference: RowReference, columns: ClauseColumns) -> Typed | None:
    """Return the type of the value of a reference; ``None`` for one that is given as it is, but not computed with."""
    if isinstance(reference, RowAggregate):
        for name in _computed_columns(reference):
            columns.typed_column(name)
        for name in _ordering_columns(reference):
            columns.refuse_own_order(name)
    if isinstance(reference, MatchNumber | MissingRows):
        return Typed(ex.Literal(0), "int")
    if isinstance(reference, Navigation) or reference.function in CHOOSING:
        if reference.column == LABEL:
            return Typed(ex.Literal(""), "string")
        return _column_type(reference, columns)
    entry = AGGREGATES[reference.function]
    if entry.gives == "list":
        return None
    if entry.takes == "condition":
        _need_kind(reference, columns, ("bool", "null"))
    elif entry.takes == "text" and reference.column != LABEL:
        _need_kind(reference, columns, ("string", "null"))
    values: dict[str, tuple[int | bool | str, str]] = {
        "integer": (0, "int"), "condition": (True, "bool"), "text": ("", "string")
    }  # fmt: skip
    if entry.gives in values:
        value, kind = values[entry.gives]
        return Typed(ex.Literal(value), kind)
    typed = _need_kind(reference, columns, ("int", "float", "decimal", "duration", "null"))
    if entry.gives == "float":
        return Typed(ex.Literal(0.0), "duration" if typed.kind == "duration" else "float")
    return Typed(ex.Literal(0), "int" if typed.kind == "null" else typed.kind, typed.scale)


def _computed_columns(reference: RowAggregate) -> tuple[str, ...]:
    """Return the columns that an aggregate computes with, beside labels; lists have values as they are."""
    is_list = AGGREGATES[reference.function].gives == "list"
    names = reference.arguments if is_list or reference.column is None else (reference.column, *reference.arguments)
    return tuple(name for name in names if name != LABEL)


def _ordering_columns(reference: RowAggregate) -> tuple[str, ...]:
    """Return the columns whose order decides what an aggregate gives."""
    if reference.column is None or reference.function not in ("min", "max"):
        return reference.arguments
    return (reference.column, *reference.arguments)


def _column_type(reference: Navigation | RowAggregate, columns: ClauseColumns) -> Typed | None:
    assert reference.column is not None
    try:
        typed = columns.typed_column(reference.column)
    except QueryError:
        if isinstance(reference, Navigation) and reference.column in columns.names:
            return None  # of a type that is not computed with
        raise
    if isinstance(reference, RowAggregate) and reference.function in ("min", "max") and typed.kind == "bool":
        raise QueryError(
            f"{reference.function} needs values with an order, not truth values",
            hint="bool_or and bool_and are of truth values",
            code="query_type",
        )
    return typed


def _need_kind(reference: RowAggregate, columns: ClauseColumns, kinds: tuple[str, ...]) -> Typed:
    assert reference.column is not None
    if reference.column == LABEL:
        raise QueryError(
            f"{reference.function} of CLASSIFIER has no meaning",
            hint="min, max, first, last and count of labels have one",
            code="query_type",
        )
    typed = columns.typed_column(reference.column)
    if typed.kind not in kinds:
        words = {"bool": "a condition", "string": "text"}
        needed = words.get(kinds[0], "a number")
        raise QueryError(
            f"{reference.function} needs {needed}, and `{reference.column}` is {typed.named}",
            hint="CAST(x AS type) gives another type",
            code="query_type",
        )
    return typed
