"""A budget beside an engine that need not choose among partial matches: its allowance, and what it says of the recall.

Where the allowance does not suffice for all events, whole units are passed over, eight windows of one partition each
(docs/best_effort.md). No policy is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from acep.learning.estimation.recall import Tally
from acep.learning.policy_context import Setting
from acep.matches.records import Counts
from acep.shedding.controller import CARRIED, allowance

if TYPE_CHECKING:
    from acep.shedding.native_protocol import NativeCore

__all__ = ["InUnits"]

IDLE = 65_536  # events after which idle partitions are forgotten


@dataclass
class InUnits:
    """The allowance of one plan: ``rate`` touches an event (``None``: as :meth:`allow` tells). Which units are passed
    over is told by a hash of the key and the ``seed``."""

    seed: int
    rate: float | None
    number: int = field(init=False)
    events: int = 0  # when partitions were last forgotten
    seconds: float = 0.0  # learning: none
    held: int = 0  # bytes of what was learned

    def start(self, core: NativeCore, number: int, setting: Setting) -> None:
        """The session knows its plans; no event has come."""
        self.number = number
        texts = sum(1 << k for k, text in enumerate(setting.key_texts[:32]) if text)
        core.start_units(number, self.seed % 2**64, texts)
        core.allow(number, -1.0 if self.rate is None else self.rate, (self.rate or 0.0) * CARRIED)

    def allow(self, core: NativeCore, rate: float, events: int) -> None:
        """The next ``events`` may take ``rate`` touches each, and no more than ``work`` permits."""
        core.allow(self.number, *allowance(self.rate, rate, events))

    def touches(self, core: NativeCore) -> int:
        """Touches so far."""
        return int(core.units_counts(self.number)["spent"])

    def left(self, events: int) -> int:
        """How many events are yet to come before idle partitions are forgotten."""
        return self.events + IDLE - events

    def epochs(self, events: int) -> int:  # noqa: ARG002
        """How often a policy learns: never."""
        return 0

    def due(self, events: int) -> bool:
        """Whether event number ``events`` is the last one before that."""
        return self.left(events) == 0

    def ends(self, events: int) -> bool:  # noqa: ARG002
        """Whether an epoch of a policy ends: never."""
        return False

    def look(self, core: NativeCore, events: int) -> None:
        """Idle partitions are forgotten: at numbers of events, so that batches make no difference."""
        core.rest()
        self.events = events

    def tell(self, core: NativeCore, counts: Counts) -> None:
        """What was given up, and what is known of the recall of match points.

        From units that were let in, each with a chance p, follows how many points there are an event, and with the
        number of all events how many there were: the ratio estimator ``N * sum(x / p) / sum(e / p)`` of points x and
        events e, and its variance (Särndal, Swensson, Wretman, Model Assisted Survey Sampling, 1992, section 5.6).
        """
        told: dict[str, Any] = core.units_counts(self.number)
        lost = int(told["dropped"]) + int(told["passed_over"])
        counts.shed = lost + int(told["withheld"])
        counts.unknown = "too little was let in to say how many"
        certain = float(told["certain"])
        if lost == 0:  # of the buckets of a stream it may be the only one
            counts.known = Tally(x=certain, y=certain, whole=certain), None
            return
        if told["e"] == 0:
            return
        per = (told["let_in"] + told["passed_over"]) / told["e"]
        ratio = told["x"] / told["e"]
        points = Tally(
            units=told["units"],
            x=certain + per * told["x"],
            y=float(told["points"]),
            xx=per**2 * max(told["xx"] - 2 * ratio * told["xe"] + ratio**2 * told["ee"], 0.0),
            whole=certain + per**2 * told["squares"],
        )
        counts.known = points, None

    def dump(self) -> dict[str, Any]:
        """Its state as JSON-like data; the core has the rest."""
        return {"events": self.events}

    def load(self, core: NativeCore, data: Any) -> None:  # noqa: ARG002
        """Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for what is no such state."""
        self.events = int(data["events"])
        if self.events < 0:
            raise ValueError("events")
