"""Set the share of sampling units that are shadow-sampled to estimate the recall, by their cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import numpy as np

from acep.storage.plain_data import restore_numbers

__all__ = ["ShadowSampler"]

FIRST_SHARE, LEAST_SHARE, MOST_SHARE = 1 / 512, 2.0**-16, 1 / 16  # shares of units: at first, at least, at most
LIKELY, FEW = 10.0, 3.0  # cost of an exact run as assumed at first, in allowances, with the weight of FEW events
FORGET = 0.9  # factor of old sums at each update
EXCESS_DIVISOR = 2.0  # divides the share as long as sampling has cost too much
STORED = ("share", "events", "touches", "given", "seen", "of")  # names of the fields in stored state


@dataclass(frozen=True)
class ShadowSampler:
    """The ``share`` of shadow-sampled units. At the last update, ``events`` had come, and ``touches`` had been made
    in such units where ``allowance`` were allowed. ``recent_touches``: these touches, older ones weighted less;
    ``recent_events``: events, weighted by the share that was sampled."""

    share: float = FIRST_SHARE
    events: int = 0
    touches: int = 0
    allowance: float = 0.0
    recent_touches: float = 0.0
    recent_events: float = 0.0

    def __post_init__(self) -> None:
        sums = (self.allowance, self.recent_touches, self.recent_events)
        if not (0 < self.share <= 1 and self.events >= 0 and all(0 <= total < np.inf for total in sums)):
            raise ValueError("share of units")

    def to_data(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return dict(zip(STORED, astuple(self), strict=True))

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ShadowSampler:
        """Restore the fields. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for invalid data."""
        names = [field.name for field in fields(cls)]
        return restore_numbers(cls(), {name: data[stored] for name, stored in zip(names, STORED, strict=True)})

    def update(self, events: int, touches: int, sampled: float, allowed: float | None, part: float) -> ShadowSampler:
        """Return the update after ``events`` and ``touches``, where a share ``sampled`` of units was sampled. A
        ``part`` of the touches ``allowed`` per event may go there; ``None``: nothing is dropped, so no costs are
        learned.

        >>> sampler = ShadowSampler().update(1 << 20, 1 << 16, 1 / 512, 4.0, 1 / 32)
        >>> round(sampler.share, 4), sampler.recent_events
        (0.0039, 2048.0)
        """
        if allowed is None:
            allowance = self.allowance + touches - self.touches
            return replace(self, events=events, touches=touches, allowance=allowance)
        allowance = self.allowance + part * allowed * (events - self.events)
        recent_touches = FORGET * self.recent_touches + touches - self.touches
        recent_events = FORGET * self.recent_events + sampled * (events - self.events)
        exact = max((recent_touches + LIKELY * allowed * FEW) / (recent_events + FEW), allowed)
        share = part * allowed / exact / (EXCESS_DIVISOR if touches > allowance else 1)
        return ShadowSampler(
            min(max(share, LEAST_SHARE), MOST_SHARE), events, touches, allowance, recent_touches, recent_events
        )
