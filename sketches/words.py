"""Pack match maps into 64-bit words: slot ``s`` is bit ``s % 64`` of word ``s // 64``."""

from __future__ import annotations

import numpy as np
from bitarray import bitarray

from acep.sketches.protocol import Bits, Ints, Words

__all__ = ["bit", "clear", "move_slots", "unpack", "width"]


def width(ring: int) -> int:
    """Return the number of words that a map of ``ring`` slots takes."""
    return -(-ring // 64)


def bit(slots: Ints) -> Words:
    """Return the bit of each slot within its word.

    >>> bit(np.array([0, 3, 64])).tolist()
    [1, 8, 1]
    """
    return np.left_shift(np.uint64(1), (slots % 64).astype(np.uint64))


def unpack(words: Words, ring: int) -> Bits:
    """Unpack maps into booleans, bool[..., ring].

    >>> unpack(np.array([[5]], np.uint64), 3).tolist()
    [[True, False, True]]
    """
    bits = np.frombuffer(_bits(words).unpack(), np.bool_)
    return bits.reshape(*words.shape[:-1], 64 * words.shape[-1])[..., :ring].copy()


def clear(words: Words, slot: int) -> None:
    """Clear one slot of all maps, in place."""
    words[..., slot // 64] &= np.uint64(~(1 << slot % 64) & (2**64 - 1))


def move_slots(words: Words, slots: Ints | None, ring: int) -> Words:
    """Move bit ``s`` of each map to ``slots[s]``, and drop it where that is -1.

    Raise ``ValueError`` unless the slots other than -1 are distinct slots of the ring.
    """
    if slots is None:
        return words
    slots = np.asarray(slots, dtype=np.int64)
    targets = slots[slots >= 0]
    if slots.shape != (ring,) or np.any(slots < -1) or np.any(slots >= ring) or len(np.unique(targets)) < len(targets):
        raise ValueError(f"slots are {ring} distinct slots of the ring, or -1")
    moved_words = np.zeros_like(words)
    old, new, size = _bits(words), _bits(moved_words), 64 * words.shape[-1]
    for slot in np.flatnonzero(slots >= 0).tolist():
        new[int(slots[slot]) :: size] = old[slot::size]
    return moved_words


def _bits(words: Words) -> bitarray:
    """Return the bits of all maps, one map after the other; they share the memory of the words."""
    return bitarray(buffer=np.ascontiguousarray(words), endian="little")
