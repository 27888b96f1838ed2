"""Remember keys by their hashes, in few bytes each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["KeyHashes"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
FEW = 4096
"""So many hashes are collected before they are sorted in."""
SET_BYTES = 100
"""The bytes of one of these."""


class KeyHashes:
    """Hashes of 64 bits, in ascending order but for the last few.

    >>> hashes = KeyHashes()
    >>> hashes.add(np.arange(10_000))
    >>> hashes.contain(np.array([9_999, 10_000])).tolist(), len(hashes)
    ([True, False], 10000)
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
        """Add hashes (n,)."""
        self._last.update(hashes[~self.contain(hashes)].tolist())
        if len(self._last) > FEW:
            last = np.fromiter(self._last, np.int64, len(self._last))
            self._sorted, self._last = np.union1d(self._sorted, last), set()

    def contain(self, hashes: Ints) -> Flags:
        """Return (n,) whether each hash was added."""
        is_last = np.fromiter(map(self._last.__contains__, hashes.tolist()), bool, len(hashes))
        if not len(self._sorted):
            return is_last
        places = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
        was_added: Flags = is_last | (self._sorted[places] == hashes)
        return was_added

    def dump(self) -> bytes:
        """Return all hashes as bytes."""
        return np.union1d(self._sorted, np.fromiter(self._last, np.int64, len(self._last))).astype("<i8").tobytes()

    @classmethod
    def load(cls, data: bytes) -> KeyHashes:
        """Read the hashes of :meth:`dump`. Raises :class:`ValueError` or :class:`TypeError` for other data."""
        return cls(np.frombuffer(data, "<i8").astype(np.int64))
