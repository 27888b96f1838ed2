"""The neighbour map: a vector memory of bounded size, in which consecutive vectors share a cell.

If cells are fewer than vectors, a hash mixes vectors that have nothing in common. But match vectors have an order:
one time bin is much like the next. So a cell here covers a run of neighbours. If memory is short, two runs are merged:
of the pairs with small sums, the most similar one. This loses the least information about the sums by cell (Slonim
and Tishby, "Agglomerative Information Bottleneck", NIPS 1999). Bounds: docs/explanation/sketches.md.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from acep.sketches import words as maps
from acep.sketches.cells import MAX_SIZE, CellMemory, check_cells, check_factor, rows_at
from acep.sketches.protocol import Bits, Floats, Ints, Singles, VectorMemory, Words, pairs, rows
from acep.storage.arrays import Stored, check

__all__ = ["NeighbourMap"]

LARGEST = 2**48
ACROSS = 2.0
"""Cost of merging across groups. It exceeds all other costs, so merges within groups come first."""
LIGHTER = 1e-6  # among equally similar pairs, prefer the lighter one
MERGED = -2


class NeighbourMap(CellMemory):
    """A :class:`acep.sketches.protocol.VectorMemory` of at most ``nbytes`` bytes.

    Neighbours are vectors that are ``step`` apart. A group is ``size`` neighbours: the bins of one component of a
    vector, if the components after it have ``step`` values. A block is ``step`` groups. A cell holds the sums of a run
    of neighbours, rounded up to single precision. While there is room, each vector has its own run. A vector in no run
    has sums of 0 and an empty map.

    >>> memory = NeighbourMap(columns=1, ring=0, nbytes=24, step=10, size=8)
    >>> memory.add(np.array([12, 22, 32, 15]), np.array([[5.0], [1.0], [2.0], [9.0]]))
    >>> memory.look(np.array([12, 22, 32, 42, 15])).tolist()
    [[5.0], [3.0], [3.0], [0.0], [9.0]]
    """

    kind = "neighbour-map"

    def __init__(self, columns: int, ring: int, *, nbytes: int, step: int = 1, size: int = 1) -> None:
        super().__init__(columns, ring)
        if not (1 <= step <= MAX_SIZE**2 and 1 <= size <= MAX_SIZE**2 and step * size <= MAX_SIZE**2):
            raise ValueError(f"groups of {size} vectors {step} apart: each from 1, and {MAX_SIZE**2} together at most")
        self.step, self.size, self.most_bytes = step, size, nbytes
        self._low: Ints = np.zeros(0, dtype=np.int16)  # the narrowest dtype that holds the borders
        self._high: Ints = self._low.copy()
        self._sums: Singles = np.zeros((0, columns), dtype=np.float32)
        self._words: Words = np.zeros((0, maps.width(ring)), dtype=np.uint64)
        if not self._cell(8) <= nbytes <= LARGEST:
            raise ValueError(f"{nbytes} bytes: a cell takes {self._cell(8)}")

    @property
    def nbytes(self) -> int:
        """Return the size of the arrays in bytes."""
        return self._low.nbytes + self._high.nbytes + super().nbytes

    def add(self, vectors: Ints, amounts: Floats) -> None:
        """Add ``amounts`` to the sums of ``vectors``; raise ``ValueError`` if a sum overflows single precision."""
        distinct, totals = rows(vectors, amounts, self.columns)
        positions = self._positions(distinct)
        self._join(positions, positions, totals, np.zeros((len(positions), self._words.shape[1]), np.uint64))

    def look(self, vectors: Ints) -> Floats:
        """Return the sums of ``vectors``: for each, the sums of all vectors in its cell."""
        return rows_at(self._sums, *self._find(vectors)).astype(np.float64)

    def scale(self, factor: float) -> None:
        """Multiply all sums by a factor from 0 to 1."""
        self._sums = _round_up(self._sums * np.float64(check_factor(factor)))

    def set_bits(self, vectors: Ints, slots: Ints) -> None:
        """Set one bit in the map of each of ``vectors``."""
        vectors, slots = pairs(vectors, slots, self.ring)
        words = np.zeros((len(vectors), self._words.shape[1]), np.uint64)
        words[np.arange(len(vectors)), slots // 64] = maps.bit(slots)
        positions = self._positions(vectors)
        self._join(positions, positions, np.zeros((len(positions), self.columns)), words)

    def words(self, vectors: Ints) -> Words:
        """Return the maps of ``vectors``, packed into words."""
        return rows_at(self._words, *self._find(vectors))

    def merge(self, other: VectorMemory, slots: Ints | None = None) -> None:
        """Add another map with the same columns, slots, bytes and groups; merge runs that overlap."""
        if not isinstance(other, NeighbourMap) or self._settings() != other._settings():
            raise ValueError("a neighbour map is merged with one of the same shape, bytes and groups")
        added = maps.move_slots(other._words, slots, self.ring)
        self._join(other._low.astype(np.int64), other._high.astype(np.int64), other._sums.astype(np.float64), added)

    @classmethod
    def from_stored(cls, stored: Stored) -> Self:
        """Return the map held by unpacked bytes."""
        columns, ring = stored.number("columns", 0, MAX_SIZE), stored.number("ring", 0, MAX_SIZE)
        step, size = stored.number("step", 1, MAX_SIZE**2), stored.number("size", 1, MAX_SIZE**2)
        count = len(stored.arrays.get("low", ()))
        low, high = (stored.array(name, "<i8", (count,)) for name in ("low", "high"))
        sums = stored.array("sums", "<f4", (count, columns))
        words = stored.array("words", "<u8", (count, maps.width(ring)))
        check(step * size <= MAX_SIZE**2 and np.all(low <= high) and np.all(high[:-1] < low[1:]))
        check_cells(sums, words, ring)
        nbytes = stored.number("nbytes", 0, LARGEST)
        check(nbytes >= 16 + 4 * columns + 8 * maps.width(ring))
        memory = cls(columns, ring, nbytes=nbytes, step=step, size=size)
        memory._set(low, high, sums, words)
        check(memory.nbytes <= nbytes)
        return memory

    def _settings(self) -> dict[str, int]:
        return {**super()._settings(), "nbytes": self.most_bytes, "step": self.step, "size": self.size}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"low": self._low.astype(np.int64), "high": self._high.astype(np.int64), **super()._arrays()}

    def _cell(self, width: int) -> int:
        """Return the bytes of a cell whose two borders take ``width`` bytes each."""
        return 2 * width + 4 * self.columns + 8 * maps.width(self.ring)

    def _positions(self, vectors: Ints) -> Ints:
        """Return the positions of vectors, at which neighbours are consecutive, and so are groups and blocks."""
        vectors = np.asarray(vectors, dtype=np.int64)
        offset = vectors % (self.step * self.size)
        positions: Ints = vectors - offset + offset % self.step * self.size + offset // self.step
        return positions

    def _find(self, vectors: Ints) -> tuple[Ints, Bits]:
        """Return the cell of each vector, and whether the vector has one (otherwise the cell is meaningless)."""
        positions = self._positions(vectors)
        cell_index = np.searchsorted(self._low, positions, side="right") - 1
        if not len(self._low):
            return cell_index, np.zeros(len(cell_index), dtype=np.bool_)
        return cell_index, (cell_index >= 0) & (positions <= self._high[cell_index])

    def _join(self, low: Ints, high: Ints, sums: Floats, words: Words) -> None:
        """Add runs with their sums and maps. Merge runs that overlap, and others until all fit into memory."""
        if not len(low):
            return
        low, high = (np.concatenate([old, new]) for old, new in ((self._low, low), (self._high, high)))
        order = np.argsort(low, kind="stable")
        low, high = low[order], high[order]
        first = np.flatnonzero(np.append(True, low[1:] > np.maximum.accumulate(high)[:-1]))
        sums = np.add.reduceat(np.concatenate([self._sums.astype(np.float64), sums])[order], first)
        words = np.bitwise_or.reduceat(np.concatenate([self._words, words])[order], first)
        if not np.all(sums < np.finfo(np.float32).max):
            raise ValueError("an amount makes a sum that single precision does not hold")
        self._set(*self._merge_runs(low[first], np.maximum.reduceat(high, first), sums, words))

    def _merge_runs(self, low: Ints, high: Ints, sums: Floats, words: Words) -> tuple[Ints, Ints, Floats, Words]:
        """Merge adjacent runs, in each step the pair of least cost, until the runs fit into the memory."""
        max_runs = self.most_bytes // self._cell(_narrow(low, high).itemsize)
        if len(low) <= max_runs:
            return low, high, sums, words
        total = sums.sum(axis=0) * max(self.columns, 1)
        shares = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
        n_borders = np.count_nonzero(low[:-1] // self.size != high[1:] // self.size)
        heavy = 2 / (max_runs - n_borders) if max_runs > n_borders else np.inf

        def costs(left: Ints, right: Ints) -> Floats:
            merged = shares[left] + shares[right]
            cost = _entropy(merged) - _entropy(shares[left]) - _entropy(shares[right])
            share = merged.max(axis=1, initial=0.0)
            cost += LIGHTER * share + (share > heavy)
            for size in (self.size, self.size * self.step):
                cost += ACROSS * (low[left] // size != high[right] // size)
            return cost

        count = len(low)
        following, preceding = np.arange(1, count + 1), np.arange(-1, count - 1)
        cost = np.append(costs(following[:-1] - 1, following[:-1]), np.inf)  # of merging a run with the next one
        for _ in range(count - max_runs):
            left = int(np.argmin(cost))
            right = following[left]
            high[left], following[left] = high[right], following[right]
            cost[right] = np.inf
            for array in (sums, shares):
                array[left] += array[right]
            words[left] |= words[right]
            if following[left] < count:
                preceding[following[left]] = left
            neighbours = np.array(
                [run for run in (preceding[left], left) if run >= 0 and following[run] < count], np.int64
            )
            cost[left] = np.inf
            cost[neighbours] = costs(neighbours, following[neighbours])
            preceding[right] = MERGED
        remains = preceding != MERGED
        return low[remains], high[remains], sums[remains], words[remains]

    def _set(self, low: Ints, high: Ints, sums: Floats | Singles, words: Words) -> None:
        narrow = _narrow(low, high)
        self._low, self._high, self._sums, self._words = low.astype(narrow), high.astype(narrow), _round_up(sums), words


def _entropy(shares: Floats) -> Floats:
    """Return the entropy of the sums of each run, weighted by their total."""
    total = shares.sum(axis=1)
    entropy: Floats = _times_log(total) - _times_log(shares).sum(axis=1)
    return entropy


def _times_log(x: Floats) -> Floats:
    products: Floats = x * np.log(x, out=np.zeros_like(x), where=x > 0)
    return products


def _narrow(low: Ints, high: Ints) -> np.dtype[np.signedinteger]:
    """Return the smallest signed integer dtype that holds these ascending borders."""
    for kind in (np.int16, np.int32):
        limits = np.iinfo(kind)
        if not len(low) or (limits.min <= low[0] and high[-1] <= limits.max):
            return np.dtype(kind)
    return np.dtype(np.int64)


def _round_up(sums: Floats | Singles) -> Singles:
    """Convert sums to single precision, rounded up."""
    rounded = sums.astype(np.float32)
    is_low = rounded < sums
    rounded[is_low] = np.nextafter(rounded[is_low], np.float32(np.inf))
    return rounded
