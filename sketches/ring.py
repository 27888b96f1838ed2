"""Which bundle has which slot of the match maps: a ring, where a new bundle takes the slot of the oldest."""

from __future__ import annotations

import numpy as np

from acep.errors import SnapshotError
from acep.sketches.protocol import Ints

__all__ = ["Ring"]


class Ring:
    """The last ``size`` bundles, each with a slot; bundles have any non-negative numbers.

    Whoever takes a slot clears it in the memory, if it was somebody's (:meth:`VectorMemory.recycle`).

    >>> ring = Ring(2)
    >>> [ring.take(bundle) for bundle in (7, 8, 9, 8)]
    [(0, False), (1, False), (0, True), (1, False)]
    >>> ring.bundles.tolist(), ring.slot(7)
    ([9, 8], -1)
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError("a ring has at least one slot")
        self.bundles: Ints = np.full(size, -1, dtype=np.int64)
        """The bundle of each slot, -1: none yet."""
        self._slots: dict[int, int] = {}
        self._next = 0

    def slot(self, bundle: int) -> int:
        """The slot of a bundle, -1 if it has none, or none any more."""
        return self._slots.get(bundle, -1)

    def take(self, bundle: int) -> tuple[int, bool]:
        """The slot of a bundle, and whether another lost it by this: then it is to be cleared."""
        if bundle < 0:
            raise ValueError("bundles have non-negative numbers")
        if bundle in self._slots:
            return self._slots[bundle], False
        slot, self._next = self._next, (self._next + 1) % len(self.bundles)
        oldest = int(self.bundles[slot])
        self._slots.pop(oldest, None)
        self._slots[bundle] = slot
        self.bundles[slot] = bundle
        return slot, oldest >= 0

    def to_data(self) -> dict[str, list[int] | int]:
        """Plain data, for JSON."""
        return {"bundles": self.bundles.tolist(), "next": self._next}

    @classmethod
    def from_data(cls, data: object) -> Ring:
        """The ring of :meth:`to_data`; :class:`SnapshotError` for what no ring can be."""
        match data:
            case {"bundles": [_, *_] as bundles, "next": int(at)} if all(type(b) is int for b in bundles):
                held = [b for b in bundles if b >= 0]
                # While the first round lasts, the slots from the next one on are empty; later none is.
                empty = 0 if len(held) == len(bundles) else len(bundles) - at
                if (
                    0 <= at < len(bundles)
                    and bundles[len(bundles) - empty :] == [-1] * empty
                    and len(held) == len(set(held)) == len(bundles) - empty
                    and max(held, default=0) < 2**63
                ):
                    ring = cls(len(bundles))
                    ring.bundles[:] = bundles
                    ring._next, ring._slots = at, {b: slot for slot, b in enumerate(held)}
                    return ring
        raise SnapshotError("the ring is damaged: its content makes no sense")
