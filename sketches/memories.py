"""Read stored vector memories of any kind from bytes."""

from __future__ import annotations

from acep.sketches.cells import CellMemory
from acep.sketches.dense import DenseMemory
from acep.sketches.match_map import MatchMap
from acep.sketches.neighbour_map import NeighbourMap
from acep.storage.arrays import unpack

__all__ = ["read_memory"]

KINDS: dict[str, type[CellMemory]] = {
    memory_class.kind: memory_class for memory_class in (DenseMemory, MatchMap, NeighbourMap)
}


def read_memory(data: bytes) -> CellMemory:
    """Read a memory from the bytes of its ``to_bytes()``; raise :class:`acep.errors.SnapshotError` for other bytes.

    >>> read_memory(MatchMap(columns=1, ring=64, width=10, depth=2).to_bytes()).nbytes
    320
    """
    stored = unpack(data, *KINDS)
    return KINDS[stored.kind].from_stored(stored)
