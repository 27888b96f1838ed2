"""Find rows of a bucket that bring an event again, by the ids and partition attributes of events that are not final."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError
from acep.events.batch import Batch, Column
from acep.events.columns import column_of
from acep.events.tables import InputSchema, attribute_tick
from acep.plan.schema import Kind

__all__ = ["rows_again"]

Bools = npt.NDArray[np.bool_]


def rows_again(
    rows: pa.Table,
    sequence: npt.NDArray[np.intp],
    schema: InputSchema,
    keys: Sequence[str],
    earlier: tuple[pa.Table | None, Batch | None] = (None, None),
) -> Bools:
    """Return which rows bring an event again: one that stands before them in the ``sequence`` of their places, or
    one of the ``earlier`` ones, which came before all of these rows, as rows and as a batch.

    >>> from acep.events.tables import schema_of
    >>> rows = pa.table({"ts": [1, 2, 1, 1], "id": [7, 8, 7, 7], "k": [1, 1, 1, 2]})
    >>> rows_again(rows, np.arange(4), schema_of(rows.schema, id="id"), ["k"]).tolist()
    [False, False, True, False]
    """
    import pyarrow.compute as pc  # here, since its import is slow

    name, again = str(schema.id), np.zeros(len(rows), bool)
    if rows.column(name).null_count:
        raise DataError(f"column `{name}` is null in some event", hint="fill it in, or leave id= out", code="data_null")
    ids = _ids_of_rows(rows, schema)
    waiting, batch = earlier
    parts = _held_names(waiting, ids, schema, keys), _kept_names(batch, ids, schema, keys)
    before = [part for part in parts if part is not None]
    # Mostly no id is there twice, and this is known soon.
    if not before and pc.count_distinct(ids).as_py() == len(ids):
        return again
    table = pa.concat_tables([*before, _names_of_rows(rows.take(pa.array(sequence)), ids.take(sequence), schema, keys)])
    table = table.append_column("row", pa.array(np.arange(len(table))))
    groups = table.group_by(table.column_names[:-1]).aggregate([("row", "min")])
    first = np.zeros(len(table), bool)
    first[groups.column("row_min").to_numpy()] = True
    again[sequence] = ~first[len(table) - len(rows) :]
    return again


def _held_names(rows: pa.Table | None, wanted: pa.Array, schema: InputSchema, keys: Sequence[str]) -> pa.Table | None:
    """Return what names the events among some rows whose ids are wanted; ``None``: there are none."""
    if rows is None:
        return None
    ids = _ids_of_rows(rows, schema)
    places = _places(ids, wanted)
    return _names_of_rows(rows.take(places), ids.take(places), schema, keys) if len(places) else None


def _kept_names(batch: Batch | None, wanted: pa.Array, schema: InputSchema, keys: Sequence[str]) -> pa.Table | None:
    """Return the same of the events of a batch."""
    if batch is None:
        return None
    text = schema.kind(str(schema.id)) is Kind.STRING
    values: Any = batch.ids
    ids = pa.array(values, pa.large_string() if text else pa.int64())
    places = _places(ids, wanted)
    at = places.to_numpy()
    return _table(ids.take(places), [_column(batch, name, schema).take(at) for name in keys]) if len(places) else None


def _places(ids: pa.Array, wanted: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.indices_nonzero(pc.is_in(ids, value_set=wanted))


def _ids_of_rows(rows: pa.Table, schema: InputSchema) -> pa.Array:
    name = str(schema.id)
    column = column_of(name, rows.column(name), schema.kind(name) or Kind.INT, 1)
    return _array(column)


def _names_of_rows(rows: pa.Table, ids: pa.Array, schema: InputSchema, keys: Sequence[str]) -> pa.Table:
    """Return the columns that name events: their ids and partition attributes, as plain values."""
    tick = attribute_tick(schema) or 1
    kinds = [schema.kind(name) or Kind.INT for name in keys]
    columns = [column_of(n, rows.column(n), kind, tick, schema.scale(n)) for n, kind in zip(keys, kinds, strict=True)]
    return _table(ids, columns)


def _column(batch: Batch, name: str, schema: InputSchema) -> Column:
    if name in batch.columns:
        return batch.columns[name]
    if name == schema.ts:
        return Column(Kind.INT, batch.ts)
    assert batch.types is not None
    return batch.types


def _table(ids: pa.Array, columns: Sequence[Column]) -> pa.Table:
    return pa.table({str(place): array for place, array in enumerate((ids, *map(_array, columns)))})


def _array(column: Column) -> pa.Array:
    if column.kind is Kind.STRING:
        return pa.array(column.to_list(), pa.large_string())
    values = column.values + 0.0 if column.kind is Kind.FLOAT else column.values  # -0.0 equals 0.0
    return pa.array(values, mask=None if column.valid is None else column.valid == 0)
