"""Assign match-map slots to bundles: a ring in which a new bundle takes the slot of the oldest."""

from __future__ import annotations

import numpy as np

from acep.errors import SnapshotError
from acep.sketches.protocol import Ints

__all__ = ["Ring"]


class Ring:
    """The last ``size`` bundles, each with its slot. Bundles are non-negative numbers.

    If a slot belonged to another bundle, the caller must clear it in the memory (:meth:`VectorMemory.recycle`).

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
        """The bundle of each slot, or -1 if none has used it yet."""
        self._slots: dict[int, int] = {}
        self._next = 0

    def slot(self, bundle: int) -> int:
        """Return the slot of a bundle, or -1 if it has none (any more)."""
        return self._slots.get(bundle, -1)

    def take(self, bundle: int) -> tuple[int, bool]:
        """Return the slot of a bundle, assigned if need be, and whether the caller must clear it in the memory."""
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
        """Return plain data for JSON."""
        return {"bundles": self.bundles.tolist(), "next": self._next}

    @classmethod
    def from_data(cls, data: object) -> Ring:
        """Read the data of :meth:`to_data`; raise :class:`SnapshotError` for data that is no valid ring."""
        match data:
            case {"bundles": [_, *_] as bundles, "next": int(next_slot)} if all(type(b) is int for b in bundles):
                present = [b for b in bundles if b >= 0]
                # In the first round the slots from ``next`` on are empty; later no slot is empty.
                empty = 0 if len(present) == len(bundles) else len(bundles) - next_slot
                if (
                    0 <= next_slot < len(bundles)
                    and bundles[len(bundles) - empty :] == [-1] * empty
                    and len(present) == len(set(present)) == len(bundles) - empty
                    and max(present, default=0) < 2**63
                ):
                    ring = cls(len(bundles))
                    ring.bundles[:] = bundles
                    ring._next, ring._slots = next_slot, {b: slot for slot, b in enumerate(present)}
                    return ring
        raise SnapshotError("the ring is damaged: its content makes no sense", code="state_damaged")
