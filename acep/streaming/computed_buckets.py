"""Spread rows over buckets by keys of PARTITION BY that are expressions, which only acep computes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.events.batch import Column
from acep.events.tables import attribute_tick
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.plan.schema import Kind
from acep.row_patterns.match_rows import partition_columns
from acep.row_patterns.row_values import Evaluator

__all__ = ["bucket_codes", "key_hashes"]

Hashes = npt.NDArray[np.uint64]


def bucket_codes(plan: OrderedPlan, rows: pa.Table, buckets: int) -> npt.NDArray[np.int32]:
    """Return (n,) the bucket of each row, a number below ``buckets``: that of all rows with equal keys."""
    columns = partition_columns(plan, rows, Evaluator(attribute_tick(plan.schema)))
    hashes = key_hashes((columns[name] for name in plan.partition), rows.num_rows)
    return (hashes % np.uint64(buckets)).astype(np.int32)


def key_hashes(columns: Iterable[Column], size: int) -> Hashes:
    """Return (n,) hashes of the values of columns in each row, the same in all processes.

    >>> column = Column(Kind.FLOAT, np.array([0.0, -0.0, 1.0]))
    >>> hashes = key_hashes([column], 3)
    >>> bool(hashes[0] == hashes[1]), bool(hashes[0] == hashes[2])
    (True, False)
    """
    hashes = np.zeros(size, np.uint64)
    for column in columns:
        if column.kind is Kind.STRING:
            of_texts = [zlib.crc32(text.encode()) for text in column.texts or ()] or [0]
            words = np.array(of_texts, np.uint64)[column.values]
        elif column.kind is Kind.FLOAT:
            words = (column.values + 0.0).view(np.uint64)
        else:
            words = np.asarray(column.values, np.int64).view(np.uint64)
        if column.valid is not None:
            words = np.where(column.valid == 0, np.uint64(0x5BD1E995), words)
        hashes = _mix(hashes * np.uint64(31) ^ words)
    return hashes


def _mix(words: Hashes) -> Hashes:
    """Return words whose bits all depend on all bits (the finalizer of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
