"""Choose column types for tables without rows, whose default types say nothing about the events to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from acep.errors import DataError, QueryError
from acep.events.tables import schema_of
from acep.pattern.query_arguments import columns_read
from acep.pattern.tree import Query
from acep.plan.compile import compile_query

__all__ = ["choose_types", "with_usable_types"]

TIMES = (pa.int64(), pa.timestamp("us"))  # types that a time column may have once there are rows


def choose_types(arrow: pa.Schema, queries: Sequence[Query], names: dict[str, Any]) -> pa.Schema:
    """Return the schema of a table without rows, with other types where the queries cannot use the given ones. Only
    columns of nulls or floats change, as tables without rows often have these types by default. ``names``: the column
    names, as :func:`schema_of` takes them.

    Raises :class:`DataError` or :class:`QueryError` where no such types fit.

    >>> import acep
    >>> query = acep.parse("PATTERN SEQ(a p, b q) WITHIN 5 seconds")
    >>> choose_types(pa.schema({"ts": pa.float64(), "type": pa.null()}), [query], {}).field("ts").type
    TimestampType(timestamp[us])
    """
    ts = names.get("ts", "ts")
    candidates = [arrow]
    for time_type in TIMES:
        types = [
            (time_type if field.name == ts else pa.null()) if _by_default(field.type) else field.type for field in arrow
        ]
        candidates.append(pa.schema(list(zip(arrow.names, types, strict=True))))
    first_error = None
    for candidate in candidates:
        try:
            schema = schema_of(candidate, **names)
            for query in queries:
                compile_query(query, schema)
        except (DataError, QueryError) as error:
            first_error = first_error or error
        else:
            return candidate
    assert first_error is not None
    raise first_error


def with_usable_types(table: pa.Table, queries: Sequence[Query], names: dict[str, Any]) -> pa.Table:
    """Return the table; one without rows gets columns of types that the queries can use, and all columns that they name
    if it has none.

    Raises :class:`DataError` or :class:`QueryError` where no such types fit.

    >>> import acep
    >>> query = acep.parse("PATTERN SEQ(a p, b q) WHERE p.x < q.x WITHIN 5")
    >>> with_usable_types(pa.table({}), [query], {"ts": "ts", "type": "type"}).schema.types
    [DataType(null), DataType(null), DataType(null)]
    """
    if table.num_rows:
        return table
    schema = table.schema
    if not schema.names:
        roles = [names[role] for role in ("ts", "type", "seq", "id") if names.get(role) is not None]
        read = [name for query in queries for name in columns_read(query)]
        schema = pa.schema([(name, pa.null()) for name in dict.fromkeys([*roles, *read])])
    return choose_types(schema, queries, names).empty_table()


def _by_default(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_null(data_type) or pa.types.is_floating(data_type))
