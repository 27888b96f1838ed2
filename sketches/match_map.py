"""The match-map sketch: sums and match maps of vectors in bounded memory (2016 paper, section 4).

A count-min array whose cells hold sums and a bitmap. A vector has one cell in each row. Its sums are the minimum over
these cells, and its map is the AND of their maps. Bounds: docs/explanation/sketches.md.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from acep.sketches import words as maps
from acep.sketches.cells import MAX_SIZE, CellMemory, check_cells
from acep.sketches.hashing import cells
from acep.sketches.protocol import Floats, Ints, VectorMemory, Words, pairs, rows
from acep.sketches.sketch_size import DEEPEST, WIDEST, check_size, size_for_error
from acep.storage.arrays import Stored

__all__ = ["MatchMap"]


class MatchMap(CellMemory):
    """A :class:`acep.sketches.protocol.VectorMemory` of ``depth`` rows with ``width`` cells each.

    Each sum of a vector is at least the truth, and exceeds it by more than ``epsilon`` times the sum over all vectors
    with probability ``delta`` at most. Each bit that was set is found. The size of the sketch bounds the probability of
    a false bit (:func:`acep.sketches.sketch_size.size_for_error`). With conservative update (the default) the errors of
    sums are smaller.

    >>> memory = MatchMap.sized(columns=1, ring=8, epsilon=0.01, delta=0.01)
    >>> memory.add(np.array([5, 6]), np.array([[2.0], [3.0]]))
    >>> memory.set_bits(np.array([5, 5]), np.array([0, 7]))
    >>> memory.look(np.array([5, 6])).tolist(), memory.words(np.array([5, 6])).tolist()
    ([[2.0], [3.0]], [[129], [0]])
    """

    kind = "match-map"

    def __init__(
        self, columns: int, ring: int, *, width: int, depth: int, seed: int = 0, conservative: bool = True
    ) -> None:
        super().__init__(columns, ring)
        self.width, self.depth, self.seed = check_size(width, depth, seed)
        self.conservative = conservative
        self._sums: Floats = np.zeros((depth, columns, width))
        self._words: Words = np.zeros((depth, width, maps.width(ring)), dtype=np.uint64)

    @classmethod
    def sized(cls, columns: int, ring: int, *, epsilon: float, delta: float, load: int = 0, seed: int = 0) -> MatchMap:
        """Return the smallest sketch whose sums exceed this error with probability ``delta`` at most.

        If ``load`` vectors reached a bundle, ``delta`` also bounds the probability of a false bit.
        """
        width, depth = size_for_error(epsilon, delta, load)
        return cls(columns, ring, width=width, depth=depth, seed=seed)

    @classmethod
    def within(cls, columns: int, ring: int, *, nbytes: int, depth: int = 2, seed: int = 0) -> MatchMap:
        """Return the largest sketch of ``depth`` rows in ``nbytes`` bytes; raise ``ValueError`` if none fits."""
        return cls(columns, ring, width=nbytes // (8 * depth * (columns + maps.width(ring))), depth=depth, seed=seed)

    def add(self, vectors: Ints, amounts: Floats) -> None:
        """Add ``amounts`` to the sums of ``vectors``, all at once like :class:`acep.sketches.count_min.CountMin`."""
        distinct, totals = rows(vectors, amounts, self.columns)
        positions = cells(distinct, self.width, self.depth, self.seed)
        new_sums = self._smallest_sums(positions) + totals
        for row, row_cells in enumerate(positions):
            for column in range(self.columns):
                if self.conservative:
                    np.maximum.at(self._sums[row, column], row_cells, new_sums[:, column])
                else:
                    np.add.at(self._sums[row, column], row_cells, totals[:, column])

    def look(self, vectors: Ints) -> Floats:
        """Return the sums of ``vectors``."""
        return self._smallest_sums(self._cells(vectors))

    def set_bits(self, vectors: Ints, slots: Ints) -> None:
        """Set one bit in the map of each of ``vectors``."""
        vectors, slots = pairs(vectors, slots, self.ring)
        for row, row_cells in enumerate(self._cells(vectors)):
            np.bitwise_or.at(self._words[row], (row_cells, slots // 64), maps.bit(slots))

    def words(self, vectors: Ints) -> Words:
        """Return the maps of ``vectors``, packed into words."""
        positions = self._cells(vectors)
        common_words: Words = np.bitwise_and.reduce(
            [row_words[cell] for row_words, cell in zip(self._words, positions, strict=True)]
        )
        return common_words

    def merge(self, other: VectorMemory, slots: Ints | None = None) -> None:
        """Add another sketch of the same size, seed and update rule.

        Maps become those of one sketch that saw both streams, and so do sums without conservative update. With it
        the bounds hold, but sums may differ from those of one sketch (docs/explanation/sketches.md).
        """
        if not isinstance(other, MatchMap) or self._settings() != other._settings():
            raise ValueError("a sketch is merged with one that has the same size, seed and way to update")
        added = maps.move_slots(other._words, slots, self.ring)
        self._sums += other._sums
        self._words |= added

    @classmethod
    def from_stored(cls, stored: Stored) -> Self:
        """Return the sketch held by unpacked bytes."""
        columns, ring = stored.number("columns", 0, MAX_SIZE), stored.number("ring", 0, MAX_SIZE)
        width, depth = stored.number("width", 1, WIDEST), stored.number("depth", 1, DEEPEST)
        sums = stored.array("sums", "<f8", (depth, columns, width))
        words = stored.array("words", "<u8", (depth, width, maps.width(ring)))
        check_cells(sums, words, ring)
        seed, conservative = stored.number("seed", 0, 2**32 - 1), bool(stored.number("conservative", 0, 1))
        # Sizes are those of arrays that were read, so damaged bytes cannot make this allocate more than their length.
        memory = cls(columns, ring, width=width, depth=depth, seed=seed, conservative=conservative)
        memory._sums, memory._words = sums, words
        return memory

    def _cells(self, vectors: Ints) -> Ints:
        return cells(np.asarray(vectors, dtype=np.int64), self.width, self.depth, self.seed)

    def _smallest_sums(self, positions: Ints) -> Floats:
        """Return the minimum of the sums over the cells ``positions[row]`` of all rows, float64[n, columns]."""
        smallest = np.min([row_sums[:, cell] for row_sums, cell in zip(self._sums, positions, strict=True)], axis=0)
        return np.ascontiguousarray(smallest.T)

    def _settings(self) -> dict[str, int]:
        size = {"width": self.width, "depth": self.depth, "seed": self.seed}
        return {**super()._settings(), **size, "conservative": int(self.conservative)}
