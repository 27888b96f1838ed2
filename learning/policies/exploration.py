"""What policies that learn have in common: lives that are not settled yet, and how much of a stream is watched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from acep.learning.policy import Epoch
from acep.learning.trajectories.log import Ages, Extra, Log
from acep.learning.trajectories.targets import Reached, Targets, walk
from acep.learning.trajectories.trajectories import MERGED, Lives, settle

__all__ = ["Pending", "Settled", "Watch"]

LIVES = 4096  # to be logged in an epoch
OPEN = 65_536  # lives that may still be open
EXPLORE = (0.05, 0.02)  # of the allowance, for units in which nothing is dropped: at first, and in the end
AGAIN = 0.6  # the same, where what was learned may have ceased to hold
FADES = 0.8  # what is left of that after an epoch
FIRST_SPARED = 1 / 512
LIKELY, FEW = 10.0, 256.0  # how many times the allowance an exact run takes, as long as few events were spared
KNOWN = 4096.0  # events that what was learned ahead counts for
FORGET = 0.9  # what is left of that after an epoch
LEAST_SPARED, MOST_SPARED = 1e-4, 1 / 16
LEAST_SAMPLE = 2.0**-20


class Settled(NamedTuple):
    """Lives of whole trees that have ended, which targets they ``reached``, and ``extra`` and ``ages`` of them (the
    first by row of ``lives.made``)."""

    lives: Lives
    reached: Reached
    extra: Extra
    ages: Ages


@dataclass(frozen=True)
class Pending:
    """The targets so far, and the lives whose trees have not ended, with what is known of them."""

    targets: Targets
    open: Lives = field(default_factory=Lives)
    extra: Extra = field(default_factory=Extra)
    ages: Ages = field(default_factory=Ages)

    def take_in(self, log: Log) -> tuple[Pending, Settled]:
        """After another log, and what can be judged now."""
        if not log.lives:  # as of most epochs of who has learned before
            nothing = Settled(log.lives, Reached.none(), log.extra, log.ages)
            return replace(self, extra=self.extra.then(log.extra)), nothing
        targets, found = self.targets.numbered(log.lives.found)
        settled = settle(self.open, replace(log.lives, found=found), OPEN)
        lives, open_ = settled.lives, settled.open
        # Bins of features are those of the orders that were in force: no grid of match vectors here has any.
        lives = replace(lives, made=lives.made.featureless())
        extra, ages = self.extra.then(log.extra), self.ages.then(log.ages)
        known = Settled(lives, walk(lives.made, lives.found), extra.of(lives.made.life), ages)
        return Pending(targets, open_, extra.of(open_.made.life), ages.of(open_.made.life)), known

    def anew(self) -> Pending:
        """For another stream, whose lives and partitions have numbers of their own: nothing is open there."""
        return Pending(Targets(self.targets.gap, self.targets.limit, self.targets.count))

    def to_arrays(self) -> dict[str, Any]:
        """As plain data, without what the targets are."""
        return {
            "targets": self.targets.to_arrays(),
            "open": self.open.to_arrays(),
            "extra": self.extra.to_arrays(),
            "ages": self.ages.to_arrays(),
        }

    def with_arrays(self, data: Mapping[str, Any]) -> Pending:
        """The state of :meth:`to_arrays`. Raises :class:`ValueError`, :class:`KeyError`, :class:`TypeError` or
        :class:`acep.errors.SnapshotError` for what is none."""
        open_, extra = Lives.from_arrays(data["open"]), Extra.from_arrays(data["extra"])
        if not np.isin(open_.made.life, extra.life).all():
            raise ValueError("open lives of which nothing is known")
        return Pending(self.targets.with_arrays(data["targets"]), open_, extra, Ages.from_arrays(data["ages"]))


@dataclass(frozen=True)
class Watch:
    """How much is watched in an epoch: the share of starts that are logged (``sample``), and of units in which nothing
    is dropped (``spared``), for ``explored`` of the allowance. ``seen``: touches of what was spared, ``of``: events,
    each counted as the share that was spared: by them that is made to cost so much.
    """

    explored: float = EXPLORE[0]
    sample: float = 1.0
    spared: float = FIRST_SPARED
    seen: float = 0.0
    of: float = 0.0

    def after(self, epoch: Epoch) -> Watch:
        """In the next epoch."""
        made, share = len(epoch.log.lives.made), max(EXPLORE[1], FADES * self.explored)
        ended = epoch.log.lives.ended
        paid = float(ended.touches[ended.how != MERGED].sum())
        sample = max(self.sample * min(1.0, LIVES / max(made, 1)), LEAST_SAMPLE)
        if epoch.allowance is None:
            return Watch(share, sample, 0.0, self.seen + epoch.spent, self.of + epoch.events)
        if epoch.price <= 0:
            return replace(self, explored=share, sample=sample)
        # What is dropped is not known of the others: only of units that are spared is all known.
        watched = self.spared if self.sample == 0 else 0.0
        seen = FORGET * self.seen + (paid if watched else 0.0)
        of = FORGET * self.of + watched * epoch.events
        exact = max((seen + LIKELY * epoch.allowance * FEW) / (of + FEW), epoch.allowance)
        return Watch(share, 0.0, min(max(share * epoch.allowance / exact, LEAST_SPARED), MOST_SPARED), seen, of)

    def more(self) -> Watch:
        """Much is watched again, as what was learned may have ceased to hold."""
        return replace(self, explored=AGAIN)

    def less(self) -> Watch:
        """It has not."""
        return replace(self, explored=EXPLORE[1])

    def anew(self) -> Watch:
        """For another stream; of what was learned before, a little counts."""
        less = min(1.0, KNOWN / max(self.of, 1e-9))
        return Watch(EXPLORE[1], 0.0, LEAST_SPARED, less * self.seen, less * self.of)

    def to_data(self) -> dict[str, float]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Watch:
        """Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for what makes no sense."""
        watch = cls(*(float(data[name]) for name in ("explored", "sample", "spared", "seen", "of")))
        if not (0 <= watch.explored <= 1 and 0 <= watch.sample <= 1 and 0 <= watch.spared <= 1):
            raise ValueError("shares of what is watched")
        if not (0 <= watch.seen < np.inf and 0 <= watch.of < np.inf):
            raise ValueError("sums of what is watched")
        return watch
