"""Cast columns of a table to the types that a user gives, also columns that the table does not have yet."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from acep.errors import DataError
from acep.events.buffers import decode, plain_type
from acep.events.fields import column_at, roots_of
from acep.events.files.casts import Cast, as_cast, bad_rows, cast_column, elements_error, with_nanoseconds
from acep.events.files.whole_numbers import cast_that_holds
from acep.events.frames import unread_columns, unread_error
from acep.events.nested import has_list, place_of
from acep.events.times import quote_scalar, value_of

__all__ = ["with_casts"]


def with_casts(table: pa.Table, casts: Mapping[str, Cast]) -> pa.Table:
    """Return the table with its columns in the types of the casts; a field of a struct or an element of a list is a
    column of its own then, and a column that the table lacks is null.

    Raises :class:`DataError` for a value that a cast cannot represent, with its row, and for a column that was left out
    because Arrow cannot hold it.

    >>> from acep.events.files.casts import casts_of
    >>> with_casts(pa.table({"x": [None, None]}), casts_of({"x": "int", "y": "string"})).schema.types
    [DataType(int64), DataType(string)]
    """
    unread = unread_columns(table.schema) if casts else {}
    for name, cast in casts.items() if table.num_columns or unread else ():
        place = place_of(table.schema, name)
        if place is None and unread and (root := next(iter(roots_of([name], unread) or ()), None)) is not None:
            raise unread_error(root, unread[root])
        if "[]" in name and place is None:
            raise elements_error(name)
        if place is None:
            table = table.append_column(name, _inner(table, name, cast))
        else:
            table = table.set_column(place, name, _cast(name, decode(table.column(place)), cast))
    return table


def _inner(table: pa.Table, name: str, cast: Cast) -> pa.ChunkedArray:
    """Return a field or an element that is cast, null if the table has no such one yet.

    Raises :class:`DataError` for a column that can have no fields or elements."""
    column = column_at(table, name)
    if column is not None:
        return _cast(name, decode(column), cast)
    root = next(iter(roots_of([name], table.column_names) or ()), None)
    root_type = pa.null() if root is None else plain_type(table.schema.field(root).type)
    if not (pa.types.is_null(root_type) or has_list(root_type) or pa.types.is_struct(root_type)):
        raise DataError(f"cast: `{root}` is {root_type}, and there is no `{name}` in it", code="data_column")
    return pa.chunked_array([pa.nulls(table.num_rows, cast.type)])


def _cast(name: str, column: pa.ChunkedArray, cast: Cast) -> pa.ChunkedArray:
    try:
        return cast_column(column, cast)
    except (pa.ArrowException, ValueError, OverflowError) as wrong:
        if isinstance(wrong, DataError):
            raise DataError(f"`{name}`: {wrong.message}", hint=wrong.hint, code="data_value") from None
        rows = bad_rows(column, lambda values: cast_column(values, cast))
        nanoseconds = with_nanoseconds(cast)
        if nanoseconds is not None and not bad_rows(column, lambda values: cast_column(values, nanoseconds)):
            hint = f"it has nanoseconds: {as_cast(name, 'timestamp(ns)')}"
            if cast.counts is not None:
                hint = f"it has nanoseconds: write integers that count them, and {as_cast(name, 'timestamp(ns)')}"
        else:
            exact = cast_that_holds(value_of(column[rows[0]])) if rows and pa.types.is_floating(cast.type) else None
            hint = f"mend it, or cast to another type: {as_cast(name, exact or 'string')}"
        value = f"{quote_scalar(column[rows[0]])} in row {rows[0]} (rows count from 0)" if rows else "of several kinds"
        raise DataError(f"`{name}` is {value}, which is no {cast.text}", hint=hint, code="data_value") from None
