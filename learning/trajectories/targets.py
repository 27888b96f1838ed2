"""Number the targets of learning (match points or match bundles), and find the partial matches that lead to them.

A *target* is a match point (the distinct pairs of partition and time at which matches end) or a match bundle: points of
one partition chained by gaps of at most the window (2016 paper, Definition 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acep.errors import SnapshotError
from acep.learning.trajectories.columns import Table
from acep.learning.trajectories.match_vectors import Bools, Ints
from acep.learning.trajectories.trajectories import CompleteRuns, Made
from acep.learning.trajectories.trees import depths

__all__ = ["Reached", "Targets", "walk"]

NONE = np.iinfo(np.int64).min
COLUMNS = ("partition", "last", "number")  # of the targets that may continue


@dataclass(frozen=True)
class Targets:
    """The numbering of targets, from 0 over the whole run, in the order of their first points.

    ``gap`` is the largest distance between points of one target: 0 for match points, the window for bundles, ``None``
    for a whole partition (bundles without a window). ``partition`` (rising), ``last`` and ``number`` are the partitions
    with a target that may continue. Beyond ``limit`` partitions, those with the oldest last points are forgotten, and
    a later point there begins another target. ``count`` numbers have been given.
    """

    gap: int | None
    limit: int = 1 << 16
    count: int = 0
    partition: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    last: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    number: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        holds = (self.gap is None or self.gap >= 0) and self.limit >= 1
        holds &= len(self.partition) == len(self.last) == len(self.number)
        holds &= bool(np.all(self.partition[1:] > self.partition[:-1]))
        holds &= bool(np.all((self.number >= 0) & (self.number < self.count)))
        if not holds:
            raise ValueError("no numbers of targets")

    def number_targets(self, runs: CompleteRuns) -> tuple[Targets, CompleteRuns]:
        """Number the targets of the next stretch of events, and return the state after it and the completed table.

        ``target`` and ``first`` (whether the row is the first of its target) are filled in. A delayed point, earlier
        than the last one of its partition, belongs to the target of that one if the gap allows.

        >>> runs = CompleteRuns(*map(np.array, ([-1] * 4, [7, 7, 7, 5], [3, 9, 4, 4], [0] * 4, [-1] * 4, [False] * 4)))
        >>> targets, runs = Targets(gap=5).number_targets(runs)
        >>> runs.target.tolist(), runs.first.tolist(), targets.count
        ([0, 0, 0, 1], [True, False, False, True], 2)
        """
        if not len(runs):
            return self, runs
        index, is_known = self._find(runs.partition)
        order = np.lexsort((np.arange(len(runs)), runs.when, runs.partition))
        partition, when = runs.partition[order], runs.when[order]
        opens = np.ones(len(order), dtype=np.bool_)
        opens[1:] = partition[1:] != partition[:-1]
        # The first point of each partition is chained to the last one of the stretch before.
        goes_on = opens & is_known[order]
        previous = np.where(goes_on, self.last[index[order]] if len(self.last) else 0, 0)
        if self.gap is not None:
            goes_on &= when - previous <= self.gap
            opens[1:] |= when[1:] - when[:-1] > self.gap
        run = np.cumsum(opens) - 1
        starts = np.flatnonzero(opens)
        old = goes_on[starts]
        # New numbers in the order of first points, then of partitions.
        number = np.where(old, self.number[index[order[starts]]] if len(self.number) else 0, 0)
        new = starts[~old]
        rank = np.empty(len(new), dtype=np.int64)
        rank[np.lexsort((partition[new], when[new]))] = np.arange(len(new))
        number[~old] = self.count + rank
        target = np.empty(len(runs), dtype=np.int64)
        target[order] = number[run]
        # The first row is the first in the log, not the earliest point.
        _, earliest = np.unique(target, return_index=True)
        first = np.zeros(len(runs), dtype=np.bool_)
        first[earliest] = target[earliest] >= self.count
        ends = np.append(np.flatnonzero(partition[1:] != partition[:-1]), len(order) - 1)
        later = self._later(partition[ends], when[ends], number[run[ends]])
        return replace(later, count=self.count + len(new)), replace(runs, target=target, first=first)

    def _find(self, partitions: Ints) -> tuple[Ints, Bools]:
        if not len(self.partition):
            return np.zeros(len(partitions), np.int64), np.zeros(len(partitions), np.bool_)
        index = np.minimum(np.searchsorted(self.partition, partitions), len(self.partition) - 1)
        return index, self.partition[index] == partitions

    def _later(self, partition: Ints, last: Ints, number: Ints) -> Targets:
        """Return the state with new last points; they replace old ones, but never by an earlier time."""
        index, is_known = self._find(partition)
        if is_known.any():
            previous = self.last[index[is_known]]
            number = number.copy()
            last = last.copy()
            late = previous > last[is_known]
            number[is_known] = np.where(late, self.number[index[is_known]], number[is_known])
            last[is_known] = np.maximum(previous, last[is_known])
        unchanged = np.ones(len(self.partition), dtype=np.bool_)
        unchanged[index[is_known]] = False
        partition = np.concatenate([self.partition[unchanged], partition])
        last = np.concatenate([self.last[unchanged], last])
        number = np.concatenate([self.number[unchanged], number])
        if len(partition) > self.limit:
            newest = np.lexsort((partition, -last))[: self.limit]
            partition, last, number = partition[newest], last[newest], number[newest]
        order = np.argsort(partition)
        count = max(self.count, int(number.max(initial=-1)) + 1)
        return Targets(self.gap, self.limit, count, partition[order], last[order], number[order])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays, without ``gap`` and ``limit``."""
        return {"targets.count": np.array([self.count]), **{f"targets.{name}": getattr(self, name) for name in COLUMNS}}

    def with_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Targets:
        """Read the state of :meth:`to_arrays`; :class:`SnapshotError` for invalid arrays."""
        try:
            columns = {name: arrays[f"targets.{name}"] for name in COLUMNS}
            count = arrays["targets.count"]
            if any(c.dtype != np.int64 or c.ndim != 1 for c in (count, *columns.values())) or len(count) != 1:
                raise ValueError
            return Targets(self.gap, self.limit, int(count[0]), **columns)
        except (KeyError, ValueError):
            raise SnapshotError("the history is damaged: its targets make no sense", code="state_damaged") from None


@dataclass(frozen=True, eq=False)
class Reached(Table):
    """Pairs of a partial match (``row``) and a ``target`` that it leads to, each once.

    ``until`` is the last time at which it still led to the target: when the last of the found runs left it by binding
    the next event. ``first`` is that time for the first run of the target, ``NONE`` if that run did not pass here.
    """

    row: Ints
    target: Ints
    until: Ints
    first: Ints


def walk(partials: Made, runs: CompleteRuns) -> Reached:
    """Return all pairs of partial match and target, by walking up the parents, one tree level at a time.

    ``runs`` must have its targets; rows whose parent is not in ``partials`` are left out. Sorted by row, then target.
    """
    leaf = partials.find(runs.parent)
    has_leaf = leaf >= 0
    if not has_leaf.any():
        return Reached.empty()
    parents, depth = partials.parents, depths(partials.parents)
    leaf, target = leaf[has_leaf], runs.target[has_leaf]
    until = runs.when[has_leaf]
    first = np.where(runs.first[has_leaf], until, NONE)
    numbers, target = np.unique(target, return_inverse=True)
    width = max(len(numbers), 1)
    levels = depth[leaf]
    key = leaf * width + target
    out: list[tuple[Ints, Ints, Ints]] = []
    above = tuple(np.zeros(0, np.int64) for _ in range(3))
    for level in range(int(levels.max(initial=-1)), -1, -1):
        at_level = levels == level
        added = (key[at_level], until[at_level], first[at_level])
        keys, untils, firsts = _highest(*(np.concatenate(two) for two in zip(above, added, strict=True)))
        out.append((keys, untils, firsts))
        rows = keys // width
        up = parents[rows] >= 0
        rows, keys, firsts = rows[up], keys[up], firsts[up]
        made_at = partials.made[rows]
        above = (parents[rows] * width + keys % width, made_at, np.where(firsts == NONE, NONE, made_at))
    keys, untils, firsts = (np.concatenate(parts) for parts in zip(*out, strict=True))
    order = np.argsort(keys)
    keys = keys[order]
    return Reached(keys // width, numbers[keys % width], untils[order], firsts[order])


def _highest(keys: Ints, *values: Ints) -> tuple[Ints, ...]:
    """Return the distinct keys, rising, and for each key the highest of its values."""
    if not len(keys):
        return (keys, *values)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    new = np.append(True, keys[1:] != keys[:-1])
    starts = np.flatnonzero(new)
    return (keys[starts], *(np.maximum.reduceat(v[order], starts) for v in values))
