"""How many units are spared, so that the recall can be estimated: by what that costs of the allowance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

__all__ = ["Sparing"]

FIRST, LEAST, MOST = 1 / 512, 2.0**-16, 1 / 16  # of units
LIKELY, FEW = 10.0, 3.0  # times the allowance that an exact run takes, as long as few events were spared
FORGET = 0.9  # what is left of what was seen, after a look
LESS = 2.0  # times less is spared as long as it has cost too much


@dataclass(frozen=True)
class Sparing:
    """The ``share`` of units, and how many ``events`` had come and ``touches`` had been made in such units when it was
    last looked at; so many might have been ``given`` until then. ``seen``: such touches, older ones less, and ``of``:
    events, each counted as the share that was spared."""

    share: float = FIRST
    events: int = 0
    touches: int = 0
    given: float = 0.0
    seen: float = 0.0
    of: float = 0.0

    def after(self, events: int, touches: int, held: float, allowed: float | None, part: float) -> Sparing:
        """When so many have come and been made, where a share ``held`` of units was spared. A ``part`` of the touches
        that are ``allowed`` an event may go there; ``None``: nothing is dropped, and nothing to be learned of costs.

        >>> found = Sparing().after(1 << 20, 1 << 16, 1 / 512, 4.0, 1 / 32)
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
        return Sparing(min(max(share, LEAST), MOST), events, touches, given, seen, of)

    def to_data(self) -> dict[str, float]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Sparing:
        """Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for what is none."""
        sums = given, seen, of = float(data["given"]), float(data["seen"]), float(data["of"])
        found = cls(float(data["share"]), int(data["events"]), int(data["touches"]), given, seen, of)
        if not (0 < found.share <= 1 and found.events >= 0 and all(0 <= one < np.inf for one in sums)):
            raise ValueError("share of units")
        return found
