"""States of the native core that make no sense, and what counts as refusing them."""

from __future__ import annotations

from random import Random

__all__ = ["ODD", "REFUSED", "spoilt"]

ODD = (
    *(-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 5, 7, 15, 16, 17, 63, 64, 65, 255),
    *(2**16 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1),
)
"""Numbers at the ends of their ranges, and small ones."""

REFUSED = (ValueError, RuntimeError, IndexError, TypeError, OverflowError)
"""What a refusal is: one of these, never MemoryError."""


def spoilt(state: bytes, rng: Random) -> bytes:
    """A state with some words or bytes changed, or cut short.

    >>> spoilt(bytes(16), Random(1)) != bytes(16)
    True
    """
    words = bytearray(state)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = 8 * rng.randrange(len(words) // 8)
        kind = rng.random()
        if kind < 0.6:
            words[at : at + 8] = rng.choice(ODD).to_bytes(8, "little", signed=True)
        elif kind < 0.9:
            words[at + rng.randrange(8)] = rng.randrange(256)
        else:
            del words[at:]
            break
    return bytes(words)
