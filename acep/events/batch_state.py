"""Convert columns and batches of events to plain data and back, to save them in a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np

from acep.events.batch import Batch, Column
from acep.plan.schema import Kind

__all__ = ["batch_of_plain", "column_of_plain", "plain_of_batch", "plain_of_column"]


def plain_of_column(column: Column) -> list[Any]:
    """Return a column as plain data (:mod:`acep.storage.plain_data`)."""
    return [column.kind.value, column.values, column.valid, None if column.texts is None else list(column.texts)]


def column_of_plain(data: Any, size: int) -> Column:
    """Restore a column of ``size`` values. Raises :class:`ValueError`, :class:`AttributeError` or :class:`TypeError`
    for other data."""
    kind, values, valid, texts = data
    column = Column(Kind(kind), values, valid, None if texts is None else [str(text) for text in texts])
    is_valid = values.shape == (size,) and (valid is None or (valid.shape == (size,) and valid.dtype == np.uint8))
    is_valid &= values.dtype == (np.float64 if column.kind is Kind.FLOAT else np.int64)
    if column.kind is Kind.STRING:
        is_valid &= bool(((values >= 0) & (values < len(column.texts or ()))).all())
    if not is_valid:
        raise ValueError("a column")
    return column


def plain_of_batch(batch: Batch) -> dict[str, Any]:
    """Return a batch as plain data; its ids are integers or texts.

    >>> batch = Batch(np.array([1]), None, ["x"], {"k": Column(Kind.INT, np.array([5]))})
    >>> batch_of_plain(plain_of_batch(batch)).columns["k"].to_list()
    [5]
    """
    return {
        "ts": batch.ts,
        "types": None if batch.types is None else plain_of_column(batch.types),
        "ids": list(batch.ids) if isinstance(batch.ids, range) else batch.ids,
        "columns": {name: plain_of_column(column) for name, column in batch.columns.items()},
        "order": batch.order,
    }


def batch_of_plain(data: Any) -> Batch:
    """Restore the batch of :func:`plain_of_batch`. Raises :class:`ValueError`, :class:`KeyError`,
    :class:`AttributeError` or :class:`TypeError` for other data."""
    ts, order, ids, types = (data[name] for name in ("ts", "order", "ids", "types"))
    size = len(ts)
    for words in (ts, order):
        if words is not None and (words.dtype != np.int64 or words.shape != (size,)):
            raise ValueError("times")
    if isinstance(ids, list):
        ids = [str(event_id) for event_id in ids]
    elif ids is not None and ids.dtype != np.int64:
        raise ValueError("ids")
    if ids is not None and len(ids) != size:
        raise ValueError("ids")
    return Batch(
        ts=ts,
        types=None if types is None else column_of_plain(types, size),
        ids=ids,
        columns={str(name): column_of_plain(column, size) for name, column in data["columns"].items()},
        order=order,
    )
