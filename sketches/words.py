"""Match maps packed into 64-bit words: slot ``s`` is bit ``s % 64`` of word ``s // 64``."""

from __future__ import annotations

import numpy as np

from acep.sketches.protocol import Bits, Ints, Words

__all__ = ["bit", "clear", "moved", "packed", "unpacked", "width"]


def width(ring: int) -> int:
    """Return the number of words that a map of ``ring`` slots takes."""
    return -(-ring // 64)


def bit(slots: Ints) -> Words:
    """Return the bit of each slot within its word.

    >>> bit(np.array([0, 3, 64])).tolist()
    [1, 8, 1]
    """
    return np.left_shift(np.uint64(1), (slots % 64).astype(np.uint64))


def unpacked(words: Words, ring: int) -> Bits:
    """Unpack maps into booleans, bool[..., ring]."""
    slots = np.arange(ring)
    bits: Bits = (words[..., slots // 64] & bit(slots)) != 0
    return bits


def packed(bits: Bits) -> Words:
    """Pack maps into words, uint64[..., ceil(ring / 64)].

    >>> unpacked(packed(np.array([[True, False, True]])), 3).tolist()
    [[True, False, True]]
    """
    words = np.zeros((*bits.shape[:-1], width(bits.shape[-1])), dtype=np.uint64)
    for slot in range(bits.shape[-1]):
        words[..., slot // 64] |= np.where(bits[..., slot], np.uint64(1 << slot % 64), np.uint64(0))
    return words


def clear(words: Words, slot: int) -> None:
    """Clear one slot of all maps, in place."""
    words[..., slot // 64] &= np.uint64(~(1 << slot % 64) & (2**64 - 1))


def moved(words: Words, slots: Ints | None, ring: int) -> Words:
    """Move bit ``s`` of each map to ``slots[s]``, and drop it where that is -1.

    Raise ``ValueError`` unless the slots other than -1 are distinct slots of the ring.
    """
    if slots is None:
        return words
    slots = np.asarray(slots, dtype=np.int64)
    stay = slots[slots >= 0]
    if slots.shape != (ring,) or np.any(slots < -1) or np.any(slots >= ring) or len(np.unique(stay)) < len(stay):
        raise ValueError(f"slots are {ring} distinct slots of the ring, or -1")
    bits = np.zeros((*words.shape[:-1], ring), dtype=np.bool_)
    bits[..., stay] = unpacked(words, ring)[..., slots >= 0]
    return packed(bits)
