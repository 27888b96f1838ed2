"""Bring the rows of a table into the order of a clause: by partition, then by its keys; find where partitions begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.plan.ordered.ordered_plan import PlannedKey
from acep.plan.schema import Kind

__all__ = ["PartitionedRows", "order_places", "ranks_of", "sort_rows"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PartitionedRows:
    """``order``: for each place the row of the table that stands there. ``partitions``: the first place of each
    partition, and the end."""

    order: Ints
    partitions: Ints

    def __len__(self) -> int:
        return len(self.order)


def ranks_of(column: Column) -> Ints:
    """Return integers that are ordered as the values of a column are; nulls are all alike.

    >>> ranks_of(Column(Kind.STRING, np.array([1, 0, 1]), None, ["a", "b"])).tolist()
    [1, 0, 1]
    """
    if column.kind is Kind.FLOAT:
        bits = (np.asarray(column.values, np.float64) + 0.0).view(np.int64)
        return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    values = np.asarray(column.values, np.int64)
    if column.kind is not Kind.STRING or not column.texts:
        return values
    codes = sorted(range(len(column.texts)), key=list(column.texts).__getitem__)
    ranks = np.zeros(len(codes), np.int64)
    rank, before = -1, None
    for code in codes:
        text = column.texts[code]
        rank += text != before
        before = text
        ranks[code] = rank
    return ranks[values]


def sort_rows(
    size: int, partition: Sequence[str], keys: Sequence[PlannedKey], columns: Mapping[str, Column]
) -> PartitionedRows:
    """Return the rows in order. Rows that no key tells apart stay in the order of the table.

    >>> x = Column(Kind.INT, np.array([3, 1, 0]), np.array([1, 1, 0], np.uint8))
    >>> sort_rows(3, (), (PlannedKey("x", True, True),), {"x": x}).order.tolist()
    [2, 0, 1]
    """
    groups = [part for name in partition for part in _order_keys(columns[name], is_descending=False, nulls_first=False)]
    ordered = list(groups)
    for key in keys:
        ordered += _order_keys(columns[key.column], is_descending=key.is_descending, nulls_first=key.nulls_first)
    order = np.arange(size, dtype=np.int64)
    if ordered and not _is_sorted(ordered):
        order = np.lexsort(ordered[::-1]).astype(np.int64)
    begins = np.zeros(max(size - 1, 0), bool)
    for part in groups:
        values = part[order]
        begins |= values[1:] != values[:-1]
    starts = np.flatnonzero(begins) + 1
    partitions = np.concatenate([[0], starts, [size]]) if size else np.zeros(1, np.int64)
    return PartitionedRows(order, partitions.astype(np.int64))


def order_places(segment: Ints, columns: Sequence[Column], order: Sequence[tuple[bool, bool]]) -> Ints:
    """Return the places of values by segment, and in each by columns; ``order``: for each whether it descends, and
    whether nulls come first."""
    keys: list[Ints] = [segment]
    for column, (is_descending, nulls_first) in zip(columns, order, strict=True):
        keys += _order_keys(column, is_descending=is_descending, nulls_first=nulls_first)
    return np.lexsort(keys[::-1]).astype(np.int64)


def _order_keys(column: Column, *, is_descending: bool, nulls_first: bool) -> list[Ints]:
    ranks = ranks_of(column)
    ranks = ~ranks if is_descending else ranks
    if column.valid is None:
        return [ranks]
    nulls = (column.valid if nulls_first else 1 - column.valid).astype(np.int64)
    return [nulls, np.where(column.valid == 0, 0, ranks)]


def _is_sorted(keys: Sequence[Ints]) -> bool:
    """Return whether the rows are in the order of the keys already."""
    if len(keys[0]) < 2:
        return True
    equal = np.ones(len(keys[0]) - 1, bool)
    for key in keys:
        before, after = key[:-1], key[1:]
        if np.any(equal & (before > after)):
            return False
        equal &= before == after
    return True
