"""Measure how often contemporary partial matches of one partition and state reach the same targets.

For each new partial match that will reach a target, take the others of its partition and state at that moment (ends
included), and the share of them that will still reach the same target. The mean share is 1 where all have the same
targets, and 0 where each has its own. A moment counts by the weight of the new partial match; it gives no share where
there are no others. The log is a sample of trees, so the share within the log estimates the share among all.

A moment is evaluated once all trees that were open then are finished. So finished trajectories are kept until no
trajectory is open that began earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acep.errors import SnapshotError
from acep.learning.trajectories.columns import Table
from acep.learning.trajectories.match_vectors import Bools, Floats, Ints
from acep.learning.trajectories.targets import Reached
from acep.learning.trajectories.trajectories import Made

__all__ = ["Contemporaries"]

LATE = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Moments(Table):
    """Finished trajectories, one row each. ``done``: 1 where the moment of its making was evaluated."""

    partition: Ints
    state: Ints
    made_at: Ints
    until: Ints
    weight: Floats
    done: Ints


@dataclass(frozen=True, eq=False)
class Leads(Table):
    """The targets of such trajectories: rows ``of`` them, the ``target``, and when the last run ``left``."""

    of: Ints
    target: Ints
    left: Ints


@dataclass(frozen=True)
class Contemporaries:
    """The finished trajectories needed for moments still to be evaluated, and the targets that they led to."""

    moments: Moments = field(default_factory=Moments.empty)
    leads: Leads = field(default_factory=Leads.empty)

    def __len__(self) -> int:
        return len(self.moments)

    def add(self, partials: Made, until: Ints, reached: Reached) -> Contemporaries:
        """Add finished trajectories, with their end times and the targets they reached."""
        none = np.zeros(len(partials), np.int64)
        return Contemporaries(
            self.moments.append(
                Moments(partials.partition, partials.state, partials.made, until, partials.weight, none)
            ),
            self.leads.append(Leads(reached.row + len(self), reached.target, reached.until)),
        )

    def evaluate(self, open_: Made, states: int, limit: int) -> tuple[Contemporaries, Floats]:
        """Evaluate all moments before the oldest start still open in their partition, or all moments if there are more
        than ``limit`` rows; then remove the rows that no later moment needs.

        Return the rows that stay, and float64[states, 2]: by state, the sums of the weighted shares and of the weights.
        """
        moments, leads = self.moments, self.leads
        _, partition_index = np.unique(np.concatenate([moments.partition, open_.partition]), return_inverse=True)
        horizon = np.full(len(partition_index), LATE)
        np.minimum.at(horizon, partition_index[len(self) :], open_.start)
        if len(self) > limit:
            horizon[:] = LATE
        horizon = horizon[partition_index[: len(self)]]
        ready = (moments.done == 0) & (moments.made_at < horizon)
        shares = self._shares(ready, states)
        stays = moments.until >= horizon
        later = leads.rows(stays[leads.of])
        return Contemporaries(
            replace(moments, done=moments.done | ready).rows(stays), replace(later, of=(np.cumsum(stays) - 1)[later.of])
        ), shares

    def _shares(self, ready: Bools, states: int) -> Floats:
        out, moments, leads = np.zeros((states, 2)), self.moments, self.leads
        lead_rows = np.flatnonzero(ready[leads.of])
        if not len(lead_rows):
            return out
        _, group = np.unique(moments.partition * states + moments.state, return_inverse=True)
        _, target = np.unique(leads.target, return_inverse=True)
        _, group_target = np.unique(group[leads.of] * (int(target.max()) + 1) + target, return_inverse=True)
        # Times become ranks, so that a group and a time fit into one number.
        _, time = np.unique(np.concatenate([moments.made_at, moments.until, leads.left]), return_inverse=True)
        begin, end, left = np.split(time, [len(self), 2 * len(self)])
        x = leads.of[lead_rows]
        n_others = _count_live(group, begin, end, group[x], begin[x]) - 1
        n_same = _count_live(group_target, begin[leads.of], left, group_target[lead_rows], begin[x]) - 1
        has_others = n_others > 0
        share = n_same[has_others] / n_others[has_others]
        weight, state = moments.weight[x[has_others]], moments.state[x[has_others]]
        out[:, 0] = np.bincount(state, weight * share, states)
        out[:, 1] = np.bincount(state, weight, states)
        return out

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all columns, by names such as ``alike.made``."""
        return {**self.moments.to_arrays("alike."), **self.leads.to_arrays("alike.")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], states: int) -> Contemporaries:
        """Read the table of :meth:`to_arrays`; :class:`SnapshotError` for invalid arrays."""
        wrong = SnapshotError(
            "the history is damaged: the trajectories of its last moments make no sense", code="state_damaged"
        )
        try:
            contemporaries = cls(Moments.from_arrays(arrays, "alike."), Leads.from_arrays(arrays, "alike."))
        except (KeyError, ValueError):
            raise wrong from None
        moments, moment_rows = contemporaries.moments, contemporaries.leads.of
        holds = np.all((moments.state >= 0) & (moments.state < states)) and np.all(
            (moment_rows >= 0) & (moment_rows < len(contemporaries))
        )
        weighty = (moments.weight >= 1) & np.isfinite(moments.weight)
        if not holds or not np.all(weighty & (moments.until >= moments.made_at)):
            raise wrong
        return contemporaries


def _count_live(group: Ints, begin: Ints, end: Ints, queried_group: Ints, time: Ints) -> Ints:
    """Return how many intervals of a group contain a time, ends included; times are ranks."""
    width = max(int(begin.max(initial=0)), int(end.max(initial=0)), int(time.max(initial=0))) + 2
    begins, ends = np.sort(group * width + begin), np.sort(group * width + end)
    key = queried_group * width + time
    started, ended = np.searchsorted(begins, key, side="right"), np.searchsorted(ends, key, side="left")
    return np.asarray(started - ended, np.int64)
