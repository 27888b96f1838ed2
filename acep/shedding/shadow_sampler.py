"""Set the share of sampling units that are shadow-sampled to estimate the recall, by their cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

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

    def __post_init__(self) -> None:
        sums = (self.given, self.seen, self.of)
        if not (0 < self.share <= 1 and self.events >= 0 and all(0 <= one < np.inf for one in sums)):
            raise ValueError("share of units")

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
