"""Share what all vector memories have: cells with sums and match maps, which are checked, stored and read."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from acep.sketches import words as maps
from acep.sketches.protocol import Bits, Ints, VectorMemory, Words, pairs
from acep.storage.arrays import Stored, check, pack, unpack

__all__ = ["MAX_SIZE", "CellMemory", "check_cells", "check_factor", "rows_at"]

MAX_SIZE = 2**16
"""Largest number of columns, and of slots of a ring."""


class CellMemory(VectorMemory):
    """A vector memory that keeps the sums of its cells in ``_sums``, and their match maps as words in ``_words``."""

    kind: ClassVar[str]
    """The name of this kind of memory in stored bytes."""
    _sums: NDArray[Any]
    _words: Words

    def __init__(self, columns: int, ring: int) -> None:
        if not (0 <= columns <= MAX_SIZE and 0 <= ring <= MAX_SIZE):
            raise ValueError(f"{columns} columns and a ring of {ring}: from 0 to {MAX_SIZE}")
        self.columns, self.ring = columns, ring

    @property
    def nbytes(self) -> int:
        """Return the size of the arrays in bytes."""
        return self._sums.nbytes + self._words.nbytes

    def scale(self, factor: float) -> None:
        """Multiply all sums by a factor from 0 to 1."""
        self._sums *= check_factor(factor)

    def maps(self, vectors: Ints) -> Bits:
        """Return the maps of ``vectors``, bool[n, ring]."""
        return maps.unpack(self.words(vectors), self.ring)

    def recycle(self, slot: int) -> None:
        """Clear a slot in all maps."""
        pairs(np.zeros(1, dtype=np.int64), np.array([slot]), self.ring)
        maps.clear(self._words, slot)

    def to_bytes(self) -> bytes:
        """Return the memory as bytes."""
        return pack(self.kind, self._settings(), self._arrays())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the bytes of :meth:`to_bytes`; raise :class:`acep.errors.SnapshotError` for any others."""
        return cls.from_stored(unpack(data, cls.kind))

    @classmethod
    @abstractmethod
    def from_stored(cls, stored: Stored) -> Self:
        """Return the memory held by unpacked bytes."""

    def _settings(self) -> dict[str, int]:
        """Return the numbers in which two memories must agree to be merged."""
        return {"columns": self.columns, "ring": self.ring}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to be stored, by name."""
        return {"sums": self._sums, "words": self._words}


def check_factor(factor: float) -> float:
    """Check a factor of :meth:`VectorMemory.scale`; raise ``ValueError`` unless it is from 0 to 1."""
    if not 0 <= factor <= 1:
        raise ValueError(f"sums are scaled by a factor from 0 to 1, not {factor}")
    return factor


def check_cells(sums: NDArray[Any], words: Words, ring: int) -> None:
    """Raise :class:`acep.errors.SnapshotError` unless arrays read from bytes are valid sums and maps."""
    spare = words[..., -1] >> np.uint64(ring % 64) if ring % 64 else np.zeros(0)
    check(bool(np.all((sums >= 0) & np.isfinite(sums))) and not np.any(spare))


def rows_at(table: NDArray[Any], row_index: Ints, present: Bits) -> NDArray[Any]:
    """Return the rows ``row_index`` of a table; zeros where a row is not ``present``."""
    rows = np.zeros((len(row_index), table.shape[1]), table.dtype)
    rows[present] = table[row_index[present]]
    return rows
