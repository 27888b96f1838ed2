"""An exact vector memory: one row of sums and one match map for each vector that occurred."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from acep.sketches import words as maps
from acep.sketches.cells import MAX_SIZE, CellMemory, check_cells, rows_at
from acep.sketches.protocol import Bits, Floats, Ints, VectorMemory, Words, pairs, rows
from acep.storage.arrays import Stored, check

__all__ = ["DenseMemory"]


class DenseMemory(CellMemory):
    """A :class:`acep.sketches.protocol.VectorMemory` with exact sums and maps for every vector.

    >>> memory = DenseMemory(columns=2, ring=4)
    >>> memory.add(np.array([70, -5, 70]), np.array([[1.0, 10.0], [1.0, 5.0], [1.0, 2.5]]))
    >>> memory.set_bits(np.array([70]), np.array([3]))
    >>> memory.look(np.array([70, 6])).tolist()
    [[2.0, 12.5], [0.0, 0.0]]
    >>> memory.maps(np.array([70, 6])).tolist()
    [[False, False, False, True], [False, False, False, False]]
    >>> memory.vectors.tolist()
    [-5, 70]
    """

    kind = "dense"

    def __init__(self, columns: int, ring: int) -> None:
        super().__init__(columns, ring)
        self.vectors: Ints = np.zeros(0, dtype=np.int64)
        """The vectors that occurred, in ascending order."""
        self._sums: Floats = np.zeros((0, columns))
        self._words: Words = np.zeros((0, maps.width(ring)), dtype=np.uint64)

    @property
    def nbytes(self) -> int:
        """Return the size of the arrays in bytes."""
        return self.vectors.nbytes + super().nbytes

    def add(self, vectors: Ints, amounts: Floats) -> None:
        """Add ``amounts`` to the sums of ``vectors``."""
        distinct, totals = rows(vectors, amounts, self.columns)
        row_index = self._find_or_insert(distinct)  # may replace the arrays
        self._sums[row_index] += totals

    def look(self, vectors: Ints) -> Floats:
        """Return the sums of ``vectors``."""
        return rows_at(self._sums, *self._find(vectors))

    def set_bits(self, vectors: Ints, slots: Ints) -> None:
        """Set one bit in the map of each of ``vectors``."""
        vectors, slots = pairs(vectors, slots, self.ring)
        self._find_or_insert(np.unique(vectors))
        np.bitwise_or.at(self._words, (self._find(vectors)[0], slots // 64), maps.bit(slots))

    def words(self, vectors: Ints) -> Words:
        """Return the maps of ``vectors``, packed into words."""
        return rows_at(self._words, *self._find(vectors))

    def merge(self, other: VectorMemory, slots: Ints | None = None) -> None:
        """Add another dense memory."""
        if not isinstance(other, DenseMemory) or self._settings() != other._settings():
            raise ValueError("a dense memory is merged with one of as many columns and slots")
        added = maps.move_slots(other._words, slots, self.ring)
        sums, row_index = (
            other._sums.copy(),
            self._find_or_insert(other.vectors),
        )  # copied, because the other memory may be this one
        self._sums[row_index] += sums
        self._words[row_index] |= added

    @classmethod
    def from_stored(cls, stored: Stored) -> Self:
        """Return the memory held by unpacked bytes."""
        memory = cls(stored.number("columns", 0, MAX_SIZE), stored.number("ring", 0, MAX_SIZE))
        count = len(stored.arrays.get("vectors", ()))
        memory.vectors = stored.array("vectors", "<i8", (count,))
        memory._sums = stored.array("sums", "<f8", (count, memory.columns))
        memory._words = stored.array("words", "<u8", (count, maps.width(memory.ring)))
        check(np.all(memory.vectors[1:] > memory.vectors[:-1]))
        check_cells(memory._sums, memory._words, memory.ring)
        return memory

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"vectors": self.vectors, **super()._arrays()}

    def _find(self, vectors: Ints) -> tuple[Ints, Bits]:
        """Return the row of each vector, and whether the vector has one (otherwise the row is meaningless)."""
        vectors = np.asarray(vectors, dtype=np.int64)
        row_index = np.searchsorted(self.vectors, vectors)
        if not len(self.vectors):
            return row_index, np.zeros(len(row_index), dtype=np.bool_)
        return row_index, self.vectors[np.minimum(row_index, len(self.vectors) - 1)] == vectors

    def _find_or_insert(self, distinct: Ints) -> Ints:
        """Return the rows of distinct ascending vectors, and add the missing rows."""
        row_index, is_present = self._find(distinct)
        if not is_present.all():
            positions, new = row_index[~is_present], distinct[~is_present]
            self.vectors = np.insert(self.vectors, positions, new)
            self._sums = np.insert(self._sums, positions, 0, axis=0)
            self._words = np.insert(self._words, positions, 0, axis=0)
            row_index = np.searchsorted(self.vectors, distinct)
        return row_index
