"""Count keys approximately in bounded memory: the count-min sketch (Cormode and Muthukrishnan, J. Algorithms 55,
2005), optionally with conservative update (Estan and Varghese, SIGCOMM 2002). Error bounds:
docs/explanation/sketches.md.
"""

from __future__ import annotations

import numpy as np

from acep.sketches.hashing import Key, cells, cells_of
from acep.sketches.protocol import Ints
from acep.sketches.sketch_size import DEEPEST, WIDEST, check_size, size_for_error
from acep.storage.arrays import check, pack, unpack

__all__ = ["CountMin"]

KIND = "count-min"
MAX_TOTAL = 2**62
"""Largest total of all counts. No cell exceeds the total, so no cell overflows."""


class CountMin:
    """A sketch of the counts of keys. A count is never too small, and exceeds the truth by more than
    ``epsilon * total`` with a probability of at most ``delta``.

    ``add`` and ``count`` take one key of any kind, hashed by mmh3. ``add_all`` and ``counts`` take arrays of integers,
    whose hashes are the same. Conservative update raises a cell only as far as the key's own count requires, which
    makes errors smaller. All keys of one call of ``add_all`` are counted at once: each gets its count before the call
    plus its amount, so the order of the array does not matter.

    >>> counts = CountMin.sized(epsilon=0.01, delta=0.001)
    >>> counts.add("a", 3)
    >>> counts.add_all(np.array([7, 9, 7]))
    >>> counts.count("a"), counts.count(7), counts.counts(np.array([7, 9])).tolist(), counts.total
    (3, 2, [2, 1], 6)
    """

    def __init__(self, width: int, depth: int, *, seed: int = 0, conservative: bool = False) -> None:
        self.width, self.depth, self.seed = check_size(width, depth, seed)
        self.conservative = conservative
        self.total = 0
        """The sum of all amounts counted."""
        self.table: Ints = np.zeros((depth, width), dtype=np.int64)

    @classmethod
    def sized(cls, epsilon: float, delta: float, *, seed: int = 0, conservative: bool = False) -> CountMin:
        """Return the smallest sketch whose error exceeds ``epsilon * total`` with probability ``delta`` at most."""
        return cls(*size_for_error(epsilon, delta), seed=seed, conservative=conservative)

    def add(self, key: Key, amount: int = 1) -> None:
        """Count a key. Raise ``ValueError`` if the amount is negative, or the total would exceed 2**62."""
        self._admit(amount, amount)
        positions = self._positions(key)
        counts = self.table[positions]
        self.table[positions] = np.maximum(counts, counts.min() + amount) if self.conservative else counts + amount

    def count(self, key: Key) -> int:
        """Return the estimated count of a key."""
        return int(self.table[self._positions(key)].min())

    def add_all(self, keys: Ints, amounts: Ints | None = None) -> None:
        """Count integer keys (int64[n]), each once or by its amount (int64[n]). Errors are those of :meth:`add`."""
        keys = np.asarray(keys, dtype=np.int64)
        amounts = np.ones_like(keys) if amounts is None else np.asarray(amounts, dtype=np.int64)
        if keys.ndim != 1 or amounts.shape != keys.shape:
            raise ValueError(f"{amounts.shape} amounts do not fit {keys.shape} keys")
        # A sum of doubles cannot wrap round. If it is small enough, the integer sum cannot either.
        about = float(amounts.sum(dtype=np.float64))
        self._admit(int(amounts.sum()) if about <= MAX_TOTAL else MAX_TOTAL + 1, int(amounts.min(initial=0)))
        if self.conservative:
            keys, key_index = np.unique(keys, return_inverse=True)
            totals = np.zeros_like(keys)
            np.add.at(totals, key_index, amounts)
            positions = cells(keys, self.width, self.depth, self.seed)
            new_counts = np.min(np.take_along_axis(self.table, positions, axis=1), axis=0) + totals
            for row, row_cells in enumerate(positions):
                np.maximum.at(self.table[row], row_cells, new_counts)
        else:
            for row, row_cells in enumerate(cells(keys, self.width, self.depth, self.seed)):
                np.add.at(self.table[row], row_cells, amounts)

    def counts(self, keys: Ints) -> Ints:
        """Return the estimated counts of integer keys, int64[n]."""
        positions = cells(np.asarray(keys, dtype=np.int64), self.width, self.depth, self.seed)
        estimates: Ints = np.min(np.take_along_axis(self.table, positions, axis=1), axis=0)
        return estimates

    def merge(self, other: CountMin) -> None:
        """Add another sketch of the same size, seed and update rule; raise ``ValueError`` for one that differs.

        Without conservative update, the result equals the sketch of both streams together, bit for bit. With it,
        counts are between the truth and those of the plain sketch of both streams, so the bounds hold. They may
        still differ from those of one sketch that saw both streams.
        """
        if self._settings() != other._settings():
            raise ValueError("sketches are merged that have the same width, depth, seed and way to update")
        self._admit(other.total, 0)
        self.table += other.table

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes."""
        return pack(KIND, self._settings() | {"total": self.total}, {"table": self.table})

    @classmethod
    def from_bytes(cls, data: bytes) -> CountMin:
        """Read the bytes of :meth:`to_bytes`; raise :class:`acep.errors.SnapshotError` for any others."""
        stored = unpack(data, KIND)
        width, depth = stored.number("width", 1, WIDEST), stored.number("depth", 1, DEEPEST)
        table, seed = stored.array("table", "<i8", (depth, width)), stored.number("seed", 0, 2**32 - 1)
        sketch = cls(width, depth, seed=seed, conservative=bool(stored.number("conservative", 0, 1)))
        sketch.table = table
        sketch.total = stored.number("total", 0, MAX_TOTAL)
        check(table.min() >= 0 and table.max() <= sketch.total)
        rows = table.sum(axis=1, dtype=object)
        check(all(r <= sketch.total if sketch.conservative else r == sketch.total for r in rows))
        return sketch

    def _positions(self, key: Key) -> tuple[Ints, Ints]:
        """Return rows and columns of the cells of a key."""
        return np.arange(self.depth), np.array(cells_of(key, self.width, self.depth, self.seed))

    def _settings(self) -> dict[str, int]:
        return {"width": self.width, "depth": self.depth, "seed": self.seed, "conservative": int(self.conservative)}

    def _admit(self, amount: int, smallest: int) -> None:
        """Add an amount to the total; raise ``ValueError`` if ``smallest`` is negative or the total too large."""
        if smallest < 0:
            raise ValueError("an amount is negative")
        if self.total + amount > MAX_TOTAL:
            raise ValueError("all counts come to more than 2**62")
        self.total += amount
