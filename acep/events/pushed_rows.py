"""Cut batches of events, as the native core takes them, into rows, and put them together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Ints", "Pushed", "Types", "Valid", "Words", "join_pushed", "rows_of"]

Ints = npt.NDArray[np.int64]
Valid = npt.NDArray[np.uint8] | None
Words = tuple[Ints, Valid]
Types = Ints | tuple[npt.NDArray[np.signedinteger[Any]], Ints] | None
Pushed = tuple[Ints, Types, Valid, Ints | int | None, list[Words]]  # as the core takes a batch


def rows_of(words: Pushed, rows: slice | npt.NDArray[np.intp]) -> Pushed:
    """Return a part of a batch; it must be a slice where ids are consecutive and given by the first."""
    ts, types, valid, ids, columns = words
    if isinstance(types, tuple):
        types = types[0][rows], types[1]
    elif types is not None:
        types = types[rows]
    if isinstance(ids, int):
        assert isinstance(rows, slice)
        ids += int(rows.start)
    elif ids is not None:
        ids = ids[rows]
    valid_rows = None if valid is None else valid[rows]
    return ts[rows], types, valid_rows, ids, [(v[rows], None if n is None else n[rows]) for v, n in columns]


def join_pushed(parts: Sequence[Pushed]) -> Pushed:
    """Concatenate pieces; there must be at least one."""
    if len(parts) == 1:
        return parts[0]
    sizes = [len(part[0]) for part in parts]
    columns = [
        (np.concatenate([part[4][k][0] for part in parts]), _all_valid([part[4][k][1] for part in parts], sizes))
        for k in range(len(parts[0][4]))
    ]
    types = None if parts[0][1] is None else np.concatenate([_ints(part[1]) for part in parts])
    valid = _all_valid([part[2] for part in parts], sizes)
    return np.concatenate([p[0] for p in parts]), types, valid, np.concatenate([_ints(p[3]) for p in parts]), columns


def _all_valid(masks: Sequence[Valid], sizes: Sequence[int]) -> Valid:
    if all(mask is None for mask in masks):
        return None
    filled = [np.ones(size, np.uint8) if mask is None else mask for mask, size in zip(masks, sizes, strict=True)]
    return np.concatenate(filled)


def _ints(values: Any) -> Ints:
    assert isinstance(values, np.ndarray)
    return values
