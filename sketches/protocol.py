"""The interface of vector memories, which store statistics of match vectors: exact ones (:mod:`acep.sketches.dense`)
and ones of bounded size with stated errors (:mod:`acep.sketches.match_map`).

For each *vector* (any 64-bit integer) a memory has ``columns`` sums of non-negative numbers, such as visits, and a
*match map*: one bit for each of ``ring`` slots, which :class:`acep.sketches.ring.Ring` assigns to bundles.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bits", "Floats", "Ints", "Singles", "VectorMemory", "Words", "pairs", "rows"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Bits = NDArray[np.bool_]
Words = NDArray[np.uint64]


class VectorMemory(Protocol):
    """Sums and match maps by vector. All methods take whole arrays; a vector may occur in them several times.

    Answers are never too small: sums are at least what was added for the vector, and its map has every bit that was
    set. A dense memory is exact. A sketch may return more, within the bounds of docs/explanation/sketches.md.
    """

    columns: int
    """Number of sums of each vector."""
    ring: int
    """Number of slots of a match map."""

    @property
    def nbytes(self) -> int:
        """Return the size of the arrays in bytes."""

    def add(self, vectors: Ints, amounts: Floats) -> None:
        """Add ``amounts`` (float64[n, columns]) to the sums of ``vectors`` (int64[n]).

        Raise ``ValueError`` and add nothing for other shapes, or if an amount is negative or not finite.
        """

    def look(self, vectors: Ints) -> Floats:
        """Return the sums of ``vectors``, float64[n, columns]; 0 for a vector that was never added."""

    def scale(self, factor: float) -> None:
        """Multiply all sums by a factor from 0 to 1 (exponential forgetting). Maps forget by reuse of slots."""

    def set_bits(self, vectors: Ints, slots: Ints) -> None:
        """Set bit ``slots[i]`` in the map of ``vectors[i]``; raise ``ValueError`` unless 0 <= slot < ``ring``."""

    def maps(self, vectors: Ints) -> Bits:
        """Return the maps of ``vectors``, bool[n, ring]."""

    def words(self, vectors: Ints) -> Words:
        """Return the packed maps, uint64[n, ceil(ring / 64)]: slot ``s`` is bit ``s % 64`` of word ``s // 64``."""

    def recycle(self, slot: int) -> None:
        """Clear a slot in the maps of all vectors, so that another bundle can use it."""

    def merge(self, other: VectorMemory, slots: Ints | None = None) -> None:
        """Add another memory of the same kind and shape; raise ``ValueError`` for one that differs.

        Bit ``s`` of the other maps becomes bit ``slots[s]`` of these, or is dropped where that is -1
        (``slots``: int64[ring]; ``None``: every bit keeps its place).
        """

    def to_bytes(self) -> bytes:
        """Return the memory as bytes (:mod:`acep.storage.arrays`), for :func:`acep.sketches.memories.read_memory`."""


def rows(vectors: Ints, amounts: Floats, columns: int) -> tuple[Ints, Floats]:
    """Check the arguments of :meth:`VectorMemory.add`; return distinct ascending vectors and the total for each."""
    vectors = np.asarray(vectors, dtype=np.int64)
    amounts = np.asarray(amounts, dtype=np.float64)
    if vectors.ndim != 1 or amounts.shape != (len(vectors), columns):
        raise ValueError(f"{amounts.shape} amounts do not fit {vectors.shape} vectors of {columns} sums")
    if not np.all((amounts >= 0) & np.isfinite(amounts)):
        raise ValueError("an amount is negative or not finite")
    distinct, vector_index = np.unique(vectors, return_inverse=True)
    totals = [np.bincount(vector_index, amounts[:, c], len(distinct)) for c in range(columns)]
    return distinct, np.stack(totals, axis=1) if columns else np.zeros((len(distinct), 0))


def pairs(vectors: Ints, slots: Ints, ring: int) -> tuple[Ints, Ints]:
    """Check the arguments of :meth:`VectorMemory.set_bits` and return them as int64 arrays."""
    vectors, slots = np.asarray(vectors, dtype=np.int64), np.asarray(slots, dtype=np.int64)
    if vectors.ndim != 1 or slots.shape != vectors.shape:
        raise ValueError(f"{slots.shape} slots do not fit {vectors.shape} vectors")
    if len(slots) and not 0 <= slots.min() <= slots.max() < ring:
        raise ValueError(f"a slot is not one of the {ring} of the ring")
    return vectors, slots
