"""What a history of match vectors needs of its memory, whether that is exact (:mod:`acep.sketches.dense`) or of bounded
size with stated errors (:mod:`acep.sketches.match_map`).

For each *vector* (any 64-bit integer) a memory has ``columns`` sums of non-negative numbers, such as visits and
touches, and a *match map*: one bit for each of ``ring`` slots, which :class:`acep.sketches.ring.Ring` gives to bundles.
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

    What is said of a vector is never too little: its sums are at least, and its map holds at least, what was given
    for it. A dense memory says exactly that. A sketch may say more, within the bounds of docs/explanation/sketches.md.
    """

    columns: int
    """How many sums each vector has."""
    ring: int
    """How many slots a match map has."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        ...

    def add(self, vectors: Ints, amounts: Floats) -> None:
        """Adds ``amounts`` (float64[n, columns]) to the sums of ``vectors`` (int64[n]).

        ``ValueError`` for other shapes and for amounts that are negative or not finite; then nothing is added.
        """
        ...

    def look(self, vectors: Ints) -> Floats:
        """The sums of ``vectors``, float64[n, columns]; 0 for a vector that is not known."""
        ...

    def scale(self, factor: float) -> None:
        """Multiplies all sums by a factor from 0 to 1: exponential forgetting. Maps forget by their ring."""
        ...

    def set_bits(self, vectors: Ints, slots: Ints) -> None:
        """Sets bit ``slots[i]`` (0 to ``ring`` - 1) in the map of ``vectors[i]``; ``ValueError`` for another slot."""
        ...

    def maps(self, vectors: Ints) -> Bits:
        """The maps of ``vectors``, bool[n, ring]."""
        ...

    def words(self, vectors: Ints) -> Words:
        """The maps packed, uint64[n, ceil(ring / 64)]: slot ``s`` is bit ``s % 64`` of word ``s // 64``."""
        ...

    def recycle(self, slot: int) -> None:
        """Clears a slot in the maps of all vectors: it goes to another bundle."""
        ...

    def merge(self, other: VectorMemory, slots: Ints | None = None) -> None:
        """Adds another memory of the same kind and shape.

        Bit ``s`` of the other's maps becomes bit ``slots[s]`` of these, or is left out where that is -1
        (``slots``: int64[ring]; ``None``: every bit stays where it is). ``ValueError`` for a memory that does not fit.
        """
        ...

    def to_bytes(self) -> bytes:
        """The memory as bytes (:mod:`acep.sketches.stored`); :func:`acep.sketches.memories.read_memory` reads it."""
        ...


def rows(vectors: Ints, amounts: Floats, columns: int) -> tuple[Ints, Floats]:
    """The arguments of :meth:`VectorMemory.add`, checked: the distinct vectors, rising, and what to add to each."""
    vectors = np.asarray(vectors, dtype=np.int64)
    amounts = np.asarray(amounts, dtype=np.float64)
    if vectors.ndim != 1 or amounts.shape != (len(vectors), columns):
        raise ValueError(f"{amounts.shape} amounts do not fit {vectors.shape} vectors of {columns} sums")
    if not np.all((amounts >= 0) & np.isfinite(amounts)):
        raise ValueError("an amount is negative or not finite")
    distinct, where = np.unique(vectors, return_inverse=True)
    summed = [np.bincount(where, amounts[:, c], len(distinct)) for c in range(columns)]
    return distinct, np.stack(summed, axis=1) if columns else np.zeros((len(distinct), 0))


def pairs(vectors: Ints, slots: Ints, ring: int) -> tuple[Ints, Ints]:
    """The arguments of :meth:`VectorMemory.set_bits`, checked."""
    vectors, slots = np.asarray(vectors, dtype=np.int64), np.asarray(slots, dtype=np.int64)
    if vectors.ndim != 1 or slots.shape != vectors.shape:
        raise ValueError(f"{slots.shape} slots do not fit {vectors.shape} vectors")
    if len(slots) and not 0 <= slots.min() <= slots.max() < ring:
        raise ValueError(f"a slot is not one of the {ring} of the ring")
    return vectors, slots
