"""Remember keys by their hashes, in few bytes each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["KeyHashes"]

Ints = npt.NDArray[np.int64]
FEW = 4096
"""So many hashes are collected before they are sorted in."""
SET_BYTES = 100
"""The bytes of one of these."""


class KeyHashes:
    """Hashes of 64 bits, in ascending order but for the last few.

    >>> hashes = KeyHashes()
    >>> hashes.add(np.arange(10_000))
    >>> hashes.has(9_999), hashes.has(10_000), len(hashes)
    (True, False, 10000)
    """

    def __init__(self, hashes: Sequence[int] | Ints = ()) -> None:
        self._sorted = np.unique(np.asarray(hashes, np.int64))
        self._last: set[int] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._last)

    @property
    def size(self) -> int:
        """Return the bytes that they take."""
        return self._sorted.nbytes + SET_BYTES * len(self._last)

    def add(self, hashes: Ints) -> None:
        """Add hashes."""
        self._last.update(key_hash for key_hash in hashes.tolist() if not self.has(key_hash))
        if len(self._last) > FEW:
            last = np.fromiter(self._last, np.int64, len(self._last))
            self._sorted, self._last = np.union1d(self._sorted, last), set()

    def has(self, key_hash: int) -> bool:
        """Return whether a hash was added."""
        if key_hash in self._last:
            return True
        place = int(np.searchsorted(self._sorted, key_hash))
        return place < len(self._sorted) and int(self._sorted[place]) == key_hash

    def dump(self) -> bytes:
        """Return all hashes as bytes."""
        return np.union1d(self._sorted, np.fromiter(self._last, np.int64, len(self._last))).astype("<i8").tobytes()

    @classmethod
    def load(cls, data: bytes) -> KeyHashes:
        """Read the hashes of :meth:`dump`. Raises :class:`ValueError` or :class:`TypeError` for other data."""
        return cls(np.frombuffer(data, "<i8").astype(np.int64))
