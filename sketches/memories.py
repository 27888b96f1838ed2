"""Reading of stored vector memories of any kind from bytes."""

from __future__ import annotations

from acep.sketches.dense import DENSE, DenseMemory
from acep.sketches.match_map import MATCH_MAP, MatchMap
from acep.sketches.neighbour_map import NEIGHBOUR_MAP, NeighbourMap
from acep.sketches.protocol import VectorMemory
from acep.storage.arrays import unpack

__all__ = ["read_memory"]


def read_memory(data: bytes) -> VectorMemory:
    """Read a memory from the bytes of its ``to_bytes()``; raise :class:`acep.errors.SnapshotError` for other bytes.

    >>> read_memory(MatchMap(columns=1, ring=64, width=10, depth=2).to_bytes()).nbytes
    320
    """
    stored = unpack(data, DENSE, MATCH_MAP, NEIGHBOUR_MAP)
    if stored.kind == DENSE:
        return DenseMemory.from_stored(stored)
    return MatchMap.from_stored(stored) if stored.kind == MATCH_MAP else NeighbourMap.from_stored(stored)
