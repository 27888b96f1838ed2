"""Keep engines to a budget that need not choose among partial matches, and estimate their recall.

When the allowance does not suffice for all events, whole sampling units are skipped, each of eight windows of one
partition (docs/explanation/best_effort.md). No policy takes part.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from acep.learning.estimation.recall import Tally
from acep.learning.policy_context import PolicyContext
from acep.matches.records import Counts
from acep.shedding.controller import CARRIED, allowance

if TYPE_CHECKING:
    from acep.shedding.native_protocol import NativeCore

__all__ = ["PartitionSampler", "UnitSampler"]

IDLE = 65_536  # events after which idle partitions are forgotten


@dataclass
class UnitSampler:
    """The allowance of one plan whose engine samples units of work by itself: ``rate`` touches per event (``None``: set
    by :meth:`allow`). ``seed``: by it units are drawn."""

    seed: int
    rate: float | None
    number: int = field(init=False)
    last_rate: float | None = field(default=None, kw_only=True)
    events: int = field(default=0, kw_only=True)  # number of events when idle partitions were last forgotten

    def allow(self, core: NativeCore, rate: float, events: int) -> None:
        """Allow ``rate`` touches for each of the next ``events``, but no more than ``work`` permits."""
        self.last_rate, carried = allowance(self.rate, rate, events)
        core.allow(self.number, self.last_rate, carried)

    def touches(self, core: NativeCore) -> int:
        """Return the touches so far."""
        return core.spent(self.number)

    def mean_rate(self, events: int) -> float | None:  # noqa: ARG002 - the rate is that of the last call
        """Return the touches allowed per event, ``None`` without a bound."""
        return self.last_rate if self.rate is None else self.rate

    def events_left(self, events: int) -> int:
        """Return how many events remain until idle partitions are forgotten."""
        return self.events + IDLE - events

    def is_due(self, events: int) -> bool:
        """Return whether idle partitions are to be forgotten after event number ``events``."""
        return self.events_left(events) == 0

    def look(self, core: NativeCore, events: int) -> None:
        """Forget idle partitions. This happens at fixed numbers of events, so that batch sizes make no difference."""
        core.forget_idle_partitions()
        self.events = events

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data; the native core keeps the rest."""
        return {"events": self.events}

    def load(self, core: NativeCore, data: Any) -> None:  # noqa: ARG002
        """Restore :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other data."""
        self.events = int(data["events"])
        if self.events < 0:
            raise ValueError("events")


@dataclass
class PartitionSampler(UnitSampler):
    """The allowance of one plan whose units are windows of a partition. A hash of the key, the unit's number and the
    ``seed`` decides which units are skipped."""

    def start(self, core: NativeCore, number: int, context: PolicyContext) -> None:
        """Start before the first event, once the session has its plans."""
        self.number = number
        core.start_units(number, self.seed % 2**64, context.text_keys)
        core.allow(number, -1.0 if self.rate is None else self.rate, (self.rate or 0.0) * CARRIED)

    def short(self, core: NativeCore) -> bool:
        """Return whether the allowance was insufficient, so that units are skipped."""
        return int(core.units_counts(self.number)["passed_over"]) > 0

    def fill_counts(self, core: NativeCore, counts: Counts) -> None:
        """Set in ``counts`` what was shed and what is known of the recall of match points.

        Admitted units, each with a probability p, give the points per event; the number of all events times that is
        the total. This is the ratio estimator ``N * sum(x / p) / sum(e / p)`` of points x and events e, with its
        variance (Särndal, Swensson, Wretman, Model Assisted Survey Sampling, 1992, section 5.6).
        """
        sums: dict[str, Any] = core.units_counts(self.number)
        n_lost = int(sums["dropped"]) + int(sums["passed_over"])
        counts.shed, counts.skipped, counts.withheld = n_lost, int(sums["passed_over"]), int(sums["withheld"])
        counts.unknown = "too little was admitted to say how many"
        certain = float(sums["certain"])
        if n_lost == 0:  # other buckets of the stream may have lost some
            counts.tallies = Tally(x=certain, y=certain, whole=certain), None
            return
        if sums["e"] == 0:
            return
        per = (sums["let_in"] + sums["passed_over"]) / sums["e"]
        ratio = sums["x"] / sums["e"]
        points = Tally(
            units=sums["units"],
            x=certain + per * sums["x"],
            y=float(sums["points"]),
            xx=per**2 * max(sums["xx"] - 2 * ratio * sums["xe"] + ratio**2 * sums["ee"], 0.0),
            whole=certain + per**2 * sums["squares"],
        )
        counts.tallies = points, None
