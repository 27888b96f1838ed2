"""Order the rows of a batch by partition, with their positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch, Column
from acep.matches.rows_by_key import order_by_words, words_of_keys
from acep.plan.compile import Plan
from acep.plan.schema import Kind

__all__ = ["RowsByPartition", "batch_column", "has_type", "ids_rise", "rows_by_partition"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RowsByPartition:
    """Some n rows of a batch, those of each partition one after another, in stream order.

    ``rows``: their numbers in the batch. ``positions``: their positions in the partition, or in the stream. ``begins``:
    which of the n is the first one of the partition of each.
    """

    rows: Ints
    positions: Ints
    begins: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def select_rows(self, fits: Bits) -> RowsByPartition:
        """Return those rows that fit; ``fits`` has a value for each row of the batch."""
        places = np.flatnonzero(fits[self.rows])
        begins = self.begins[places]
        return RowsByPartition(self.rows[places], self.positions[places], np.searchsorted(begins, begins))

    def partitions(self) -> Iterator[RowsByPartition]:
        """Yield the rows of each partition."""
        for begin, end in pairwise(self.edges.tolist()):
            yield RowsByPartition(self.rows[begin:end], self.positions[begin:end], np.zeros(end - begin, np.int64))

    @classmethod
    def empty(cls) -> RowsByPartition:
        """Return no rows."""
        return cls(*[np.zeros(0, np.int64)] * 3)

    @classmethod
    def of_codes(cls, codes: Ints, positions: Ints) -> RowsByPartition:
        """Return the rows of a batch by the codes of their partitions, with their positions.

        >>> RowsByPartition.of_codes(np.array([5, 2, 5]), np.array([8, 0, 9])).rows.tolist()
        [1, 0, 2]
        """
        rows = np.argsort(codes, kind="stable")
        in_order = codes[rows]
        return cls(rows, positions[rows], np.searchsorted(in_order, in_order))

    @property
    def edges(self) -> Ints:
        """Return where partitions begin, and the number of rows."""
        return np.append(np.flatnonzero(self.begins == np.arange(len(self))), len(self))


def batch_column(plan: Plan, batch: Batch, name: str) -> Column:
    """Return a column of a batch, which may be that of times or of types."""
    schema = plan.schema
    if name == schema.ts:
        return Column(Kind.TIMESTAMP if schema.instants else Kind.INT, batch.ts)
    if name == schema.type:
        assert batch.types is not None
        return batch.types
    return batch.columns[name]


def rows_by_partition(plan: Plan, batch: Batch) -> RowsByPartition:
    """Return the rows of a batch that are in a partition."""
    size = len(batch)
    keys = [batch_column(plan, batch, name) for name in plan.keys]
    order, edges = order_by_words(words_of_keys(keys), size) if size else (np.arange(0), np.zeros(1, np.int64))
    begins = np.repeat(edges[:-1], np.diff(edges))
    everything = RowsByPartition(order, np.arange(size) - begins, begins)
    nulls = [key.valid == 0 for key in keys if key.valid is not None]
    return everything.select_rows(~np.any(nulls, axis=0)) if nulls else everything


def has_type(batch: Batch, types: tuple[str, ...]) -> Bits:
    """Return whether each event has one of some types; of none, all have."""
    if not types:
        return np.ones(len(batch), bool)
    column = batch.types
    assert column is not None
    fits = np.array([text in types for text in column.texts or ()] or [False], bool)[column.values]
    return fits if column.valid is None else fits & (column.valid != 0)


def ids_rise(batch: Batch, events: RowsByPartition, *, of_one_time: bool) -> bool:
    """Return whether the ids of events of a partition rise, or those of one time."""
    if batch.ids is None or isinstance(batch.ids, range) or len(events) < 2:
        return True
    together = events.begins[1:] == events.begins[:-1]
    if of_one_time:
        ts = batch.ts[events.rows]
        together &= ts[1:] == ts[:-1]
    ids: npt.NDArray[Any] = np.array(batch.ids, dtype=object if isinstance(batch.ids, list) else np.int64)[events.rows]
    return bool((~together | (ids[1:] > ids[:-1])).all())
