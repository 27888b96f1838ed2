"""Find the events that a user names: by their ids, or by a truth value for each row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError
from acep.events.fields import named_column
from acep.events.records import Events, Id
from acep.plan.schema import Schema

__all__ = ["rows_in_order"]

MOST_TEXT = 40  # characters of an id in a message


def rows_in_order(rows: Any, table: pa.Table, schema: Schema, events: Events) -> tuple[Id, ...]:
    """Return the ids of the events that a user names, in stream order, each once.

    Raises :class:`DataError` for an id that no event has, and where nothing is named.

    >>> from acep.events.tables import events_of, schema_of
    >>> table = pa.table({"ts": [2, 1, 3], "name": ["q", "p", "r"]})
    >>> schema = schema_of(table.schema, type=None, id="name")
    >>> events = events_of(table, schema, ())
    >>> rows_in_order(["r", "p"], table, schema, events), rows_in_order([True, False, True], table, schema, events)
    (('p', 'r'), ('q', 'r'))
    """
    ids = [*(events.ids or ())]
    index_of_id = {str(identity): index for index, identity in enumerate(ids)}
    indices = []
    for name in _names(rows, table, schema):
        index = index_of_id.get(str(name))
        if index is None:
            hint = f"rows count from 0 to {table.num_rows - 1}" if schema.id is None else f"ids are in `{schema.id}`"
            raise DataError(f"there is no event {str(name)[:MOST_TEXT]}", hint=hint, code="option_invalid")
        indices.append(index)
    if not indices:
        raise DataError("rows= names no event", hint="such as rows=[0, 3]", code="option_invalid")
    return tuple(ids[index] for index in sorted(set(indices)))


def _names(rows: Any, table: pa.Table, schema: Schema) -> list[Any]:
    """Return the ids that are named, as they were given."""
    if isinstance(rows, np.ndarray) and not rows.ndim:  # which says that it is iterable, and is not
        rows = rows.item()
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        return [rows]
    if isinstance(rows, pa.Array | pa.ChunkedArray):
        rows = rows.to_pylist()
    names = [name.item() if isinstance(name, np.generic) else name for name in rows]
    if not any(isinstance(name, bool) for name in names):
        return names
    if len(names) != table.num_rows:
        raise DataError(
            f"rows= has {len(names):,} truth values, and there are {table.num_rows:,} rows",
            hint="give one for each row, or the ids of events",
            code="option_invalid",
        )
    chosen = [index for index, name in enumerate(names) if name is True]
    if schema.id is None:
        return chosen
    column = named_column(table, schema.id)
    return [column[index].as_py() for index in chosen]
