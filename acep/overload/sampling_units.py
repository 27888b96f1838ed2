"""Find the cell of a key and the sampling unit of an event from one hash of the key, as Spark does (no Spark).

The hash is ``xxhash64`` of Spark's SQL, of integers as 64-bit numbers. :mod:`acep.spark.shed_columns` has the same
formulas as columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.overload.unit_admission import ALL, CELLS
from acep.runtime.key_hashes import hash_keys, hash_more

__all__ = [
    "CELL_SHIFT",
    "EXPLORED",
    "EXPLORED_SHIFT",
    "are_explored",
    "cells_of",
    "hash_of_keys",
    "salt_of",
    "unit_begins",
    "unit_hashes",
]

CELL_SHIFT: Final = 48
"""The bits of the hash of a key below those of its cell: buckets come from the lowest ones."""
EXPLORED: Final = 32
"""One unit in so many is explored (:mod:`acep.overload.event_choice`)."""
EXPLORED_SHIFT: Final = 40
"""The bits of the hash of a unit below those that tell whether it is explored: thresholds apply to the lowest 32."""

Integers = npt.NDArray[np.int64]


def hash_of_keys(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Integers:
    """Return the hash of each key of these columns, of the shape ``(rows,)``.

    >>> bool(hash_of_keys([pa.array([7], pa.int8())]) == hash_of_keys([pa.array([7])]))
    True
    """
    return hash_keys([column.cast(pa.int64()) if pa.types.is_integer(column.type) else column for column in columns])


def cells_of(hashes: Integers) -> Integers:
    """Return the cell of each key, below :data:`~acep.overload.unit_admission.CELLS`.

    >>> cells_of(hash_of_keys([pa.array(["a", "b"])])).tolist()
    [228, 75]
    """
    return (hashes >> CELL_SHIFT) & (CELLS - 1)


def salt_of(seed: int) -> int:
    """Return the 64-bit number by which a seed changes when the units of keys begin."""
    return int(hash_keys([pa.array([seed])])[0])


def unit_begins(length: int, seed: int, hashes: Integers, ticks: Integers) -> Integers:
    """Return the beginnings, in ticks, of the sampling units of events. ``hashes`` are those of their keys; units are
    ``length`` ticks long.

    >>> hashes = hash_of_keys([pa.array(["a", "a", "b"])])
    >>> unit_begins(100, 0, hashes, np.array([5, 70, 70])).tolist()
    [-28, -28, 31]
    """
    offsets = hashes ^ salt_of(seed)
    offsets -= offsets // length * length  # NumPy divides by a constant faster than it takes a remainder
    begins: Integers = offsets + (ticks - offsets) // length * length
    return begins


def unit_hashes(seed: int, hashes: Integers, begins: Integers) -> Integers:
    """Return the hashes of the sampling units that begin then, below :data:`~acep.overload.unit_admission.ALL`."""
    return hash_more(hashes, begins ^ seed) & (ALL - 1)


def are_explored(seed: int, hashes: Integers, begins: Integers) -> npt.NDArray[np.bool_]:
    """Return which units of single events are explored, one in :data:`EXPLORED`."""
    numbers = (hash_more(hashes, begins ^ seed) >> EXPLORED_SHIFT) & (EXPLORED - 1)
    return np.asarray(numbers == 0, np.bool_)
