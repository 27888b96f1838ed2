"""A readable version of the match-map sketch :class:`acep.sketches.match_map.MatchMap`, which works cell by cell.

``mmh3`` hashes a vector to its cells. Each map is a ``bitarray``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bitarray import bitarray
from bitarray.util import zeros

from acep.sketches.hashing import cells_of, checked_size

__all__ = ["Cell", "PlainMatchMap"]


@dataclass
class Cell:
    """One cell of the sketch: sums, and one bit for each slot of the ring."""

    sums: list[float]
    map: bitarray


class PlainMatchMap:
    """A sketch with the settings and answers of :class:`acep.sketches.match_map.MatchMap`, for one vector at a time.

    >>> memory = PlainMatchMap(columns=1, ring=4, width=100, depth=3)
    >>> memory.add({5: [2.0], 6: [3.0]})
    >>> memory.set_bit(5, 3)
    >>> memory.look(5), memory.map(5), memory.map(6)
    ([2.0], bitarray('0001'), bitarray('0000'))
    """

    def __init__(
        self, columns: int, ring: int, *, width: int, depth: int, seed: int = 0, conservative: bool = True
    ) -> None:
        self.width, self.depth, self.seed = checked_size(width, depth, seed)
        self.conservative = conservative
        self.rows = [[Cell([0.0] * columns, zeros(ring)) for _ in range(width)] for _ in range(depth)]

    def cells(self, vector: int) -> list[Cell]:
        """Return the cells of a vector, one in each row."""
        at = cells_of(vector, self.width, self.depth, self.seed)
        return [row[cell] for row, cell in zip(self.rows, at, strict=True)]

    def add(self, amounts: dict[int, Sequence[float]]) -> None:
        """Add to the sums of several vectors at once."""
        targets = {v: [s + a for s, a in zip(self.look(v), added, strict=True)] for v, added in amounts.items()}
        for vector, added in amounts.items():
            for cell in self.cells(vector):
                if self.conservative:
                    cell.sums = [max(s, t) for s, t in zip(cell.sums, targets[vector], strict=True)]
                else:
                    cell.sums = [s + a for s, a in zip(cell.sums, added, strict=True)]

    def look(self, vector: int) -> list[float]:
        """Return the sums of a vector: the minimum over its cells."""
        return [min(sums) for sums in zip(*(cell.sums for cell in self.cells(vector)), strict=True)]

    def scale(self, factor: float) -> None:
        """Multiply all sums by a factor."""
        for row in self.rows:
            for cell in row:
                cell.sums = [s * factor for s in cell.sums]

    def set_bit(self, vector: int, slot: int) -> None:
        """Set the bit of a slot in all cells of a vector."""
        for cell in self.cells(vector):
            cell.map[slot] = 1

    def map(self, vector: int) -> bitarray:
        """Return the map of a vector: the bits that are set in all its cells."""
        first, *others = self.cells(vector)
        found = first.map.copy()
        for cell in others:
            found &= cell.map
        return found

    def recycle(self, slot: int) -> None:
        """Clear a slot in all cells."""
        for row in self.rows:
            for cell in row:
                cell.map[slot] = 0

    def merge(self, other: PlainMatchMap, slots: Sequence[int]) -> None:
        """Add another sketch of the same settings; move its bit ``s`` to ``slots[s]``, or drop it where that is -1."""
        for row, theirs in zip(self.rows, other.rows, strict=True):
            for cell, added in zip(row, theirs, strict=True):
                cell.sums = [s + a for s, a in zip(cell.sums, added.sums, strict=True)]
                for slot in added.map.search(bitarray("1")):
                    if slots[slot] >= 0:
                        cell.map[slots[slot]] = 1
