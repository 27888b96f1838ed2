"""Memories of a history from bytes, whatever kind they are of."""

from __future__ import annotations

from acep.sketches.dense import DENSE, DenseMemory
from acep.sketches.protocol import VectorMemory
from acep.sketches.stored import unpack

__all__ = ["read_memory"]


def read_memory(data: bytes) -> VectorMemory:
    """The memory that these bytes were made of by ``to_bytes()``; :class:`acep.errors.SnapshotError` for other bytes.

    >>> read_memory(DenseMemory(columns=1, ring=64).to_bytes()).ring
    64
    """
    return DenseMemory.from_stored(unpack(data, DENSE))
