"""The share of sampling units that are shadow-sampled to estimate recall, set by what they cost of the allowance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

__all__ = ["ShadowSampler"]

FIRST, LEAST, MOST = 1 / 512, 2.0**-16, 1 / 16  # shares of units: at first, at least, at most
LIKELY, FEW = 10.0, 3.0  # cost of an exact run as assumed at first, in allowances, with the weight of FEW events
FORGET = 0.9  # factor of old sums at each update
LESS = 2.0  # divides the share as long as sampling has cost too much


@dataclass(frozen=True)
class ShadowSampler:
    """The ``share`` of shadow-sampled units. At the last update, ``events`` had come, and ``touches`` had been made
    in such units where ``given`` were allowed. ``seen``: these touches, older ones weighted less; ``of``: events,
    weighted by the share that was sampled."""

    share: float = FIRST
    events: int = 0
    touches: int = 0
    given: float = 0.0
    seen: float = 0.0
    of: float = 0.0

    def after(self, events: int, touches: int, held: float, allowed: float | None, part: float) -> ShadowSampler:
        """Return the update after ``events`` and ``touches``, where a share ``held`` of units was sampled. A ``part``
        of the touches ``allowed`` per event may go there; ``None``: nothing is dropped, so no costs are learned.

        >>> found = ShadowSampler().after(1 << 20, 1 << 16, 1 / 512, 4.0, 1 / 32)
        >>> round(found.share, 4), found.of
        (0.0039, 2048.0)
        """
        if allowed is None:
            given = self.given + touches - self.touches
            return replace(self, events=events, touches=touches, given=given)
        given = self.given + part * allowed * (events - self.events)
        seen = FORGET * self.seen + touches - self.touches
        of = FORGET * self.of + held * (events - self.events)
        exact = max((seen + LIKELY * allowed * FEW) / (of + FEW), allowed)
        share = part * allowed / exact / (LESS if touches > given else 1)
        return ShadowSampler(min(max(share, LEAST), MOST), events, touches, given, seen, of)

    def to_data(self) -> dict[str, float]:
        """Return the state as plain data."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ShadowSampler:
        """Restore :meth:`to_data`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for others."""
        sums = given, seen, of = float(data["given"]), float(data["seen"]), float(data["of"])
        found = cls(float(data["share"]), int(data["events"]), int(data["touches"]), given, seen, of)
        if not (0 < found.share <= 1 and found.events >= 0 and all(0 <= one < np.inf for one in sums)):
            raise ValueError("share of units")
        return found
