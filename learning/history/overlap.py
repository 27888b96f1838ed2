"""Measures how often contemporary partial matches of one partition and state reach the same targets.

For each new partial match that will reach a target, take the others of its partition and state at that moment (ends
included), and the share of them that will still reach the same target. The mean share is 1 where all have the same
targets, and 0 where each has its own. A moment counts by the weight of the new partial match; it gives no share where
there are no others. The log is a sample of trees, so the share within the log estimates the share among all.

A moment is evaluated once all trees that were open then are finished. So finished trajectories are kept until no
trajectory is open that began earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acep.errors import SnapshotError
from acep.learning.trajectories.match_vectors import Bools, Floats, Ints
from acep.learning.trajectories.targets import Reached
from acep.learning.trajectories.trajectories import Made

__all__ = ["Contemporaries"]

LATE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Contemporaries:
    """Finished trajectories needed for moments still to be evaluated, one row each. ``done``: 1 where the moment of
    its making was evaluated. ``of`` (row), ``target`` and ``left`` (when the last run left) have a row per pair.
    """

    partition: Ints
    state: Ints
    made: Ints
    until: Ints
    weight: Floats
    done: Ints
    of: Ints
    target: Ints
    left: Ints

    @classmethod
    def none(cls) -> Contemporaries:
        """Return a table without rows."""
        empty: dict[str, Any] = {f.name: np.zeros(0, _kind(f.name)) for f in fields(cls)}
        return cls(**empty)

    def __len__(self) -> int:
        return len(self.made)

    def then(self, made: Made, until: Ints, reached: Reached) -> Contemporaries:
        """Add finished trajectories, with their end times and the targets they reached."""
        trajectories = (made.partition, made.state, made.made, until, made.weight, np.zeros(len(made), np.int64))
        new = (*trajectories, reached.row + len(self), reached.target, reached.until)
        columns = {
            f.name: np.concatenate([getattr(self, f.name), column]) for f, column in zip(fields(self), new, strict=True)
        }
        return Contemporaries(**columns)

    def looked_at(self, open_: Made, states: int, limit: int) -> tuple[Contemporaries, Floats]:
        """Evaluate all moments before the oldest start still open in their partition, or all moments if there are more
        than ``limit`` rows; then remove the rows that no later moment needs.

        Return the rows that stay, and float64[states, 2]: by state, the sums of the weighted shares and of the weights.
        """
        _, place = np.unique(np.concatenate([self.partition, open_.partition]), return_inverse=True)
        horizon = np.full(len(place), LATE)
        np.minimum.at(horizon, place[len(self) :], open_.start)
        if len(self) > limit:
            horizon[:] = LATE
        horizon = horizon[place[: len(self)]]
        ready = (self.done == 0) & (self.made < horizon)
        shares = self._shares(ready, states)
        stays = self.until >= horizon
        rows = np.cumsum(stays) - 1
        pairs = stays[self.of]
        later = Contemporaries(
            self.partition[stays],
            self.state[stays],
            self.made[stays],
            self.until[stays],
            self.weight[stays],
            (self.done | ready)[stays],
            rows[self.of[pairs]],
            self.target[pairs],
            self.left[pairs],
        )
        return later, shares

    def _shares(self, ready: Bools, states: int) -> Floats:
        out = np.zeros((states, 2))
        asked = np.flatnonzero(ready[self.of])
        if not len(asked):
            return out
        _, group = np.unique(self.partition * states + self.state, return_inverse=True)
        _, target = np.unique(self.target, return_inverse=True)
        _, both = np.unique(group[self.of] * (int(target.max()) + 1) + target, return_inverse=True)
        # Times become ranks, so that a group and a time fit into one number.
        _, time = np.unique(np.concatenate([self.made, self.until, self.left]), return_inverse=True)
        begin, end, left = np.split(time, [len(self), 2 * len(self)])
        x = self.of[asked]
        others = _live(group, begin, end, group[x], begin[x]) - 1
        same = _live(both, begin[self.of], left, both[asked], begin[x]) - 1
        there = others > 0
        share = same[there] / others[there]
        weight, state = self.weight[x[there]], self.state[x[there]]
        out[:, 0] = np.bincount(state, weight * share, states)
        out[:, 1] = np.bincount(state, weight, states)
        return out

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all columns, by names such as ``alike.made``."""
        return {f"alike.{f.name}": getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], states: int) -> Contemporaries:
        """Read the table of :meth:`to_arrays`; :class:`SnapshotError` for invalid arrays."""
        wrong = SnapshotError("the history is damaged: the trajectories of its last moments make no sense")
        try:
            columns = {f.name: arrays[f"alike.{f.name}"] for f in fields(cls)}
        except KeyError:
            raise wrong from None
        for name, column in columns.items():
            if column.ndim != 1 or column.dtype != _kind(name):
                raise wrong
        read = cls(**columns)
        lengths = {len(c) for name, c in columns.items() if name not in ("of", "target", "left")}
        if len(lengths) > 1 or not len(read.of) == len(read.target) == len(read.left):
            raise wrong
        holds = np.all((read.state >= 0) & (read.state < states)) and np.all((read.of >= 0) & (read.of < len(read)))
        if not holds or not np.all((read.weight >= 1) & np.isfinite(read.weight) & (read.until >= read.made)):
            raise wrong
        return read


def _kind(name: str) -> type:
    return np.float64 if name == "weight" else np.int64


def _live(group: Ints, begin: Ints, end: Ints, asked: Ints, at: Ints) -> Ints:
    """Return how many intervals of a group contain a time, ends included; times are ranks."""
    width = max(int(begin.max(initial=0)), int(end.max(initial=0)), int(at.max(initial=0))) + 2
    begins, ends = np.sort(group * width + begin), np.sort(group * width + end)
    key = asked * width + at
    started, over = np.searchsorted(begins, key, side="right"), np.searchsorted(ends, key, side="left")
    return np.asarray(started - over, np.int64)
