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

__all__ = ["find_repeats"]

Bools = npt.NDArray[np.bool_]


def find_repeats(
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
    >>> find_repeats(rows, np.arange(4), schema_of(rows.schema, id="id"), ["k"]).tolist()
    [False, False, True, False]
    """
    import pyarrow.compute as pc  # here, since its import is slow

    name, is_repeated = str(schema.id), np.zeros(len(rows), bool)
    if rows.column(name).null_count:
        raise DataError(f"column `{name}` is null in some event", hint="fill it in, or leave id= out", code="data_null")
    ids = _ids_of_rows(rows, schema)
    waiting, batch = earlier
    parts = _names_of_waiting(waiting, ids, schema, keys), _names_of_batch(batch, ids, schema, keys)
    before = [part for part in parts if part is not None]
    # Mostly no id is there twice, and this is known soon.
    if not before and pc.count_distinct(ids).as_py() == len(ids):
        return is_repeated
    table = pa.concat_tables([*before, _names_of_rows(rows.take(pa.array(sequence)), ids.take(sequence), schema, keys)])
    table = table.append_column("row", pa.array(np.arange(len(table))))
    groups = table.group_by(table.column_names[:-1]).aggregate([("row", "min")])
    first = np.zeros(len(table), bool)
    first[groups.column("row_min").to_numpy()] = True
    is_repeated[sequence] = ~first[len(table) - len(rows) :]
    return is_repeated


def _names_of_waiting(
    rows: pa.Table | None, wanted_ids: pa.Array, schema: InputSchema, keys: Sequence[str]
) -> pa.Table | None:
    """Return what names the events among some rows whose ids are wanted; ``None``: there are none."""
    if rows is None:
        return None
    ids = _ids_of_rows(rows, schema)
    row_indices = _rows_with_ids(ids, wanted_ids)
    return _names_of_rows(rows.take(row_indices), ids.take(row_indices), schema, keys) if len(row_indices) else None


def _names_of_batch(
    batch: Batch | None, wanted_ids: pa.Array, schema: InputSchema, keys: Sequence[str]
) -> pa.Table | None:
    """Return the same of the events of a batch."""
    if batch is None:
        return None
    text = schema.kind(str(schema.id)) is Kind.STRING
    values: Any = batch.ids
    ids = pa.array(values, pa.large_string() if text else pa.int64())
    rows_with_ids = _rows_with_ids(ids, wanted_ids)
    row_indices = rows_with_ids.to_numpy()
    return (
        _table(ids.take(rows_with_ids), [_column(batch, name, schema).take(row_indices) for name in keys])
        if len(rows_with_ids)
        else None
    )


def _rows_with_ids(ids: pa.Array, wanted_ids: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.indices_nonzero(pc.is_in(ids, value_set=wanted_ids))


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
    return pa.table({str(index): array for index, array in enumerate((ids, *map(_array, columns)))})


def _array(column: Column) -> pa.Array:
    if column.kind is Kind.STRING:
        return pa.array(column.to_list(), pa.large_string())
    values = column.values + 0.0 if column.kind is Kind.FLOAT else column.values  # -0.0 equals 0.0
    return pa.array(values, mask=None if column.valid is None else column.valid == 0)
