"""Parts of all learning policies: unfinished trajectories of partial matches, and how much of a stream to log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from acep.learning.policy import Epoch
from acep.learning.trajectories.log import Ages, Extra, Log
from acep.learning.trajectories.targets import Reached, Targets, walk
from acep.learning.trajectories.trajectories import MERGED, Trajectories, split_finished

__all__ = ["FinishedTrajectories", "Pending", "Watch"]

TRAJECTORIES = 4096  # trajectories to log in an epoch
OPEN = 65_536  # the most unfinished trajectories to keep
EXPLORE = (0.05, 0.02)  # share of the budget for shadow samples: at first, and in the end
EXPLORE_DRIFT = 0.6  # the same share after drift is suspected
FADES = 0.8  # factor on that share after each epoch
FIRST_SHADOW = 1 / 512
LIKELY, FEW = 10.0, 256.0  # prior: an exact run takes LIKELY times the budget; it weighs as much as FEW events
MEASURED_EVENTS = 4096.0  # the most events that costs measured on another stream count for
FORGET = 0.9  # factor on older costs after each epoch
LEAST_SHADOW, MOST_SHADOW = 1e-4, 1 / 16
LEAST_SAMPLE = 2.0**-20


class FinishedTrajectories(NamedTuple):
    """Trajectories of complete trees, the targets that they ``reached``, their ``extra`` (by row of
    ``trajectories.made``) and their ``ages``."""

    trajectories: Trajectories
    reached: Reached
    extra: Extra
    ages: Ages


STORED = ("explored", "sample", "spared", "seen", "of")  # names in stored state, which do not change with the code


@dataclass(frozen=True)
class Pending:
    """The targets so far, and the trajectories whose trees are unfinished, with their logged terms and ages."""

    targets: Targets
    open: Trajectories = field(default_factory=Trajectories)
    extra: Extra = field(default_factory=Extra)
    ages: Ages = field(default_factory=Ages)

    def add_log(self, log: Log) -> tuple[Pending, FinishedTrajectories]:
        """Add the log of an epoch; return the new state, and the trajectories whose trees are now complete."""
        if not log.trajectories:  # the usual case after learning ahead
            nothing = FinishedTrajectories(log.trajectories, Reached.empty(), log.extra, log.ages)
            return replace(self, extra=self.extra.append(log.extra)), nothing
        targets, runs = self.targets.number_targets(log.trajectories.found)
        finished = split_finished(self.open, replace(log.trajectories, found=runs), OPEN)
        trajectories, open_ = finished.trajectories, finished.open
        # Feature bins belong to the shedding table then in force; no grid of match vectors here has any.
        trajectories = replace(trajectories, made=trajectories.made.featureless())
        extra, ages = self.extra.append(log.extra), self.ages.append(log.ages)
        complete = FinishedTrajectories(
            trajectories, walk(trajectories.made, trajectories.found), extra.select(trajectories.made.trajectory), ages
        )
        return Pending(
            targets, open_, extra.select(open_.made.trajectory), ages.select(open_.made.trajectory)
        ), complete

    def for_new_stream(self) -> Pending:
        """Return the state for another stream: nothing is open, since its trajectories and partitions are others."""
        return Pending(Targets(self.targets.gap, self.targets.limit, self.targets.count))

    def to_arrays(self) -> dict[str, Any]:
        """Return the state as plain data, without the definition of the targets."""
        return {name: getattr(self, name).to_arrays() for name in ("targets", "open", "extra", "ages")}

    def with_arrays(self, data: Mapping[str, Any]) -> Pending:
        """Restore the state of :meth:`to_arrays`. Raises :class:`ValueError`, :class:`KeyError`, :class:`TypeError`
        or :class:`acep.errors.SnapshotError` for other data."""
        open_, extra = Trajectories.from_arrays(data["open"]), Extra.from_arrays(data["extra"])
        if not np.isin(open_.made.trajectory, extra.trajectory).all():
            raise ValueError("open trajectories of which nothing is known")
        return Pending(self.targets.with_arrays(data["targets"]), open_, extra, Ages.from_arrays(data["ages"]))


@dataclass(frozen=True)
class Watch:
    """How much to log in an epoch: the share of starts (``sample``), and the share of shadow-sampled units
    (``shadow``), which may cost the share ``explored`` of the budget. ``touches`` counts those spent on shadow
    samples, ``events`` the events, weighted by the share sampled; their ratio is the cost of an exact run per event.
    """

    explored: float = EXPLORE[0]
    sample: float = 1.0
    shadow: float = FIRST_SHADOW
    touches: float = 0.0
    events: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.explored <= 1 and 0 <= self.sample <= 1 and 0 <= self.shadow <= 1):
            raise ValueError("shares of what is watched")
        if not (0 <= self.touches < np.inf and 0 <= self.events < np.inf):
            raise ValueError("sums of what is watched")

    def add_epoch(self, epoch: Epoch) -> Watch:
        """Return the shares for the next epoch."""
        n_made, share = len(epoch.log.trajectories.made), max(EXPLORE[1], FADES * self.explored)
        ended = epoch.log.trajectories.ended
        paid = float(ended.touches[ended.how != MERGED].sum())
        sample = max(self.sample * min(1.0, TRAJECTORIES / max(n_made, 1)), LEAST_SAMPLE)
        if epoch.allowance is None:
            return Watch(share, sample, 0.0, self.touches + epoch.spent, self.events + epoch.events)
        if epoch.price <= 0:
            return replace(self, explored=share, sample=sample)
        # Only shadow-sampled units show everything; elsewhere the dropped partial matches are unknown.
        watched = self.shadow if self.sample == 0 else 0.0
        touches = FORGET * self.touches + (paid if watched else 0.0)
        events = FORGET * self.events + watched * epoch.events
        exact = max((touches + LIKELY * epoch.allowance * FEW) / (events + FEW), epoch.allowance)
        return Watch(share, 0.0, min(max(share * epoch.allowance / exact, LEAST_SHADOW), MOST_SHADOW), touches, events)

    def explore_more(self) -> Watch:
        """Return a larger share for shadow samples, since drift is suspected."""
        return replace(self, explored=EXPLORE_DRIFT)

    def explore_less(self) -> Watch:
        """Return the usual share for shadow samples, since there was no drift."""
        return replace(self, explored=EXPLORE[1])

    def for_new_stream(self) -> Watch:
        """Return the state for another stream; the costs measured so far count a little."""
        weight = min(1.0, MEASURED_EVENTS / max(self.events, 1e-9))
        return Watch(EXPLORE[1], 0.0, LEAST_SHADOW, weight * self.touches, weight * self.events)

    def to_data(self) -> dict[str, float]:
        """Return the fields as plain data."""
        return dict(zip(STORED, astuple(self), strict=True))

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Watch:
        """Restore the fields. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for invalid data."""
        return cls(*(float(data[name]) for name in STORED))
