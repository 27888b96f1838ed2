"""Hash keys to cells of a sketch: MurmurHash3 (x64, 128 bits), one 32-bit piece of the hash for each row.

The library ``mmh3`` defines the hash of a key. For 64-bit integers, taken as 8 bytes, little-endian, :func:`cells`
computes the same hash of a whole array with NumPy.
"""

from __future__ import annotations

import numpy as np

from acep.sketches.protocol import Ints, Words

__all__ = ["Key", "cells", "cells_of", "halves", "mix_bits"]

Key = int | str | bytes

PIECES = 4
"""Number of rows that one hash of 128 bits serves."""
STEP = 0x9E3779B9
"""Difference of the seeds of successive groups of rows: 2**32 / golden ratio, so near seeds share no rows."""


def cells_of(key: Key, width: int, depth: int, seed: int) -> list[int]:
    """Return the cell of a key in each row, hashed by ``mmh3``. Text is UTF-8; the integer 1 differs from the text "1".

    >>> cells_of(12, 100, 3, seed=1) == cells(np.array([12]), 100, 3, seed=1)[:, 0].tolist()
    True
    """
    import mmh3  # imported here: the vectorised path does not need it

    encoded = key.to_bytes(8, "little", signed=True) if isinstance(key, int) else key
    row_cells: list[int] = []
    for row in range(depth):
        low, high = mmh3.hash64(encoded, (seed + row // PIECES * STEP) % 2**32, x64arch=True, signed=False)
        row_cells.append(((low | high << 64) >> 32 * (row % PIECES)) % 2**32 * width >> 32)
    return row_cells


def cells(keys: Ints, width: int, depth: int, seed: int) -> Ints:
    """Return the cells of integer keys, int64[depth, n]; they equal those of :func:`cells_of`."""
    row_cells = np.empty((depth, len(keys)), dtype=np.int64)
    for row in range(depth):
        if row % PIECES == 0:
            key_halves = halves(keys, (seed + row // PIECES * STEP) % 2**32)
        piece = (key_halves[row % PIECES // 2] >> np.uint64(32 * (row % 2))) & np.uint64(2**32 - 1)
        row_cells[row] = (piece * np.uint64(width)) >> np.uint64(32)
    return row_cells


def halves(keys: Ints, seed: int) -> tuple[Words, Words]:
    """Return the low and the high half of MurmurHash3_x64_128 of each key as 8 bytes (Appleby, public domain).

    >>> import mmh3
    >>> mmh3.hash64((7).to_bytes(8, "little"), 3, signed=False) == tuple(int(h[0]) for h in halves(np.array([7]), 3))
    True
    """
    k = np.asarray(keys, dtype=np.int64).view(np.uint64) * np.uint64(0x87C37B91114253D5)
    k = ((k << np.uint64(31)) | (k >> np.uint64(33))) * np.uint64(0x4CF5AD432745937F)
    start = np.uint64(seed ^ 8)  # both halves begin with the seed xor the key length
    low = (k ^ start) + start
    high = low + start
    low, high = mix_bits(low), mix_bits(high)
    low = low + high
    return low, high + low


def mix_bits(h: Words) -> Words:
    """Apply the last step of MurmurHash3, after which each bit depends on every other."""
    half = np.uint64(33)
    shifted = h >> half
    h = h ^ shifted
    for factor in (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)):
        h *= factor
        h ^= np.right_shift(h, half, out=shifted)
    return h
