"""Trajectories of partial matches, as the engine logs them in an epoch (docs/explanation/best_effort.md).

The log has three tables: partial matches *made*, those that *ended*, and runs that *found* a match. A *tree* is all
partial matches with the same first event; they extend one another, and all or none of them are logged. The outcome of a
partial match is known only when its whole tree has ended, since its extensions may still find a match. So whole trees
are finished at once (:func:`split_finished`), and open trees wait for the next epoch. Counting a success at once, but a
failure only at the end of the window, would overestimate every success probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acep.errors import SnapshotError
from acep.learning.trajectories.columns import Table
from acep.learning.trajectories.match_vectors import Bools, Floats, Ints

__all__ = [
    "CLEARED",
    "EXPIRED",
    "MERGED",
    "SHED",
    "TAKEN",
    "CompleteRuns",
    "Ended",
    "FinishedTrees",
    "Made",
    "Trajectories",
    "roots",
    "split_finished",
]

EXPIRED, SHED, TAKEN, CLEARED, MERGED = range(5)
"""How a partial match ended; TAKEN: its selection strategy lets no event pass, or another dominates it."""


@dataclass(frozen=True, eq=False)
class Made(Table):
    """Partial matches made, in the order of their numbers ``trajectory``, which rise over the whole run.

    ``parent`` is the number of the one extended (-1: none, or not logged), ``error`` a level, ``start`` and ``made``
    times (positions where the window counts events), ``feature`` a bin, and ``weight`` (float64, at least 1) one over
    the probability of being in the log.
    """

    trajectory: Ints
    parent: Ints
    partition: Ints
    state: Ints
    error: Ints
    start: Ints
    made: Ints
    feature: Ints
    weight: Floats

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self):
            return
        _holds((self.trajectory[1:] > self.trajectory[:-1]).all(), "trajectories do not rise")
        _holds(((self.parent >= -1) & (self.parent < self.trajectory)).all(), "a parent is not older than its child")
        _holds(((self.weight >= 1) & np.isfinite(self.weight)).all(), "a weight is below 1")
        _holds((self.made >= self.start).all(), "a node is made before its start")
        for name in ("trajectory", "state", "error", "feature"):
            _holds(getattr(self, name).min() >= 0, f"a {name} is negative")

    @cached_property
    def parents(self) -> Ints:
        """Return the rows of the parents, -1 where a parent is not in the table."""
        return self.find(self.parent)

    def featureless(self) -> Made:
        """Return the same rows, all with feature 0."""
        columns = {name: getattr(self, name) for name in self.kinds}
        return self.without_checks({**columns, "feature": np.zeros_like(self.feature)})

    def find(self, trajectories: Ints) -> Ints:
        """Return the rows of the numbers ``trajectories``, -1 where there is none."""
        if not len(self) or not len(trajectories):
            return np.full(trajectories.shape, -1, dtype=np.int64)
        lowest, highest = int(self.trajectory[0]), int(self.trajectory[-1])
        if highest - lowest < 8 * len(self):  # a table is faster than a search
            table = np.full(highest - lowest + 2, -1, dtype=np.int64)
            table[self.trajectory - lowest] = np.arange(len(self))
            rows: Ints = table[
                np.where((trajectories < lowest) | (trajectories > highest), highest + 1, trajectories) - lowest
            ]
            return rows
        positions = np.minimum(np.searchsorted(self.trajectory, trajectories), len(self) - 1)
        return np.where(self.trajectory[positions] == trajectories, positions, -1)


@dataclass(frozen=True, eq=False)
class Ended(Table):
    """Partial matches that ended: ``when``, ``how`` (``EXPIRED``, ...), and ``touches``, the transition evaluations."""

    trajectory: Ints
    when: Ints
    how: Ints
    touches: Ints

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self):
            return
        _holds(self.how.min() >= EXPIRED and self.how.max() <= MERGED, "there is no such end of a life")
        _holds(self.touches.min() >= 0, "touches are negative")
        rising = np.sort(self.trajectory)
        _holds((rising[1:] > rising[:-1]).all(), "a life ends twice")


@dataclass(frozen=True, eq=False)
class CompleteRuns(Table):
    """Complete runs: ``parent`` is the partial match that bound the last event but one (-1: none, or not logged),
    ``when`` the match point. :meth:`acep.learning.trajectories.targets.Targets.number_targets` fills in ``target`` and
    ``first``.
    """

    parent: Ints
    partition: Ints
    when: Ints
    error: Ints
    target: Ints
    first: Bools


@dataclass(frozen=True)
class Trajectories:
    """The log of a stretch of events; construction raises :class:`ValueError` for contradictory tables."""

    made: Made = field(default_factory=Made.empty)
    ended: Ended = field(default_factory=Ended.empty)
    found: CompleteRuns = field(default_factory=CompleteRuns.empty)

    @classmethod
    def from_columns(
        cls,
        made_columns: Mapping[str, ArrayLike],
        ended_columns: Mapping[str, ArrayLike],
        run_columns: Mapping[str, ArrayLike],
    ) -> Trajectories:
        """Build the log from columns by name; the targets of ``run_columns`` are not numbered yet.

        >>> made = {"trajectory": [4], "parent": [-1], "partition": [0], "state": [1], "error": [0], "start": [7],
        ...         "made": [7], "feature": [0], "weight": [1]}
        >>> ended = {"trajectory": [4], "when": [10], "how": [0], "touches": [3]}
        >>> runs = {"parent": [4], "partition": [0], "when": [9], "error": [0]}
        >>> len(Trajectories.from_columns(made, ended, runs).found)
        1
        """
        count = len(np.asarray(run_columns.get("parent", ())))
        unknown = {"target": np.full(count, -1), "first": np.zeros(count, np.bool_)}
        made_columns, ended_columns, run_columns = dict(made_columns), dict(ended_columns), {**unknown, **run_columns}
        for table, columns in ((Made, made_columns), (Ended, ended_columns), (CompleteRuns, run_columns)):
            names = table.kinds
            if set(columns) != set(names):
                raise ValueError(f"columns of {table.__name__} are {sorted(names)}, not {sorted(columns)}")
        return cls(Made(**_arrays(made_columns)), Ended(**_arrays(ended_columns)), CompleteRuns(**_arrays(run_columns)))

    def __bool__(self) -> bool:
        """Return whether anything was logged."""
        return len(self.made) > 0 or len(self.ended) > 0 or len(self.found) > 0

    def append(self, other: Trajectories) -> Trajectories:
        """Return this log followed by the log of later events."""
        return Trajectories(
            self.made.append(other.made), self.ended.append(other.ended), self.found.append(other.found)
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all columns, by names such as ``made.state``."""
        return {**self.made.to_arrays("made."), **self.ended.to_arrays("ended."), **self.found.to_arrays("found.")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Trajectories:
        """Read the log of :meth:`to_arrays`; :class:`SnapshotError` for invalid arrays."""
        try:
            return cls(
                Made.from_arrays(arrays, "made."),
                Ended.from_arrays(arrays, "ended."),
                CompleteRuns.from_arrays(arrays, "found."),
            )
        except (KeyError, ValueError):
            raise SnapshotError(
                "the history is damaged: its open trajectories make no sense", code="state_damaged"
            ) from None


class FinishedTrees(NamedTuple):
    """Result of :func:`split_finished`: finished trajectories of whole trees, those still open, and how many were
    cut."""

    trajectories: Trajectories
    open: Trajectories
    cut: int


def split_finished(open_: Trajectories, new: Trajectories, limit: int) -> FinishedTrees:
    """Separate the finished trees from the open ones.

    ``open_`` is what the last call left open. A tree is finished when all its partial matches have ended. At most
    ``limit`` trajectories stay open, which bounds the memory for long windows or none; beyond that, the trees that
    began first are finished early. Their partial matches that had not ended are *cut*: their outcome counts as unknown,
    and later extensions of them begin new trees. Found runs go with the tree of their parent; those without a known
    parent go with the finished trees.
    """
    trajectories = open_.append(new)
    partials = trajectories.made
    root = roots(partials)
    ends = partials.find(trajectories.ended.trajectory)
    alive = np.ones(len(partials), dtype=np.bool_)
    alive[ends[ends >= 0]] = False
    trees = np.zeros(len(partials), dtype=np.bool_)
    trees[root[alive]] = True
    stays = trees[root]
    cut = 0
    if np.count_nonzero(stays) > limit:
        # Keep as many of the newest open trees as there is room for.
        sizes = np.bincount(root[stays], minlength=len(partials))
        newer = np.cumsum(sizes[::-1])[::-1]
        stays &= (newer <= limit)[root]
        cut = int(np.count_nonzero(alive & ~stays))
    ends_stay = _select_mask(stays, ends)
    runs_stay = _select_mask(stays, partials.find(trajectories.found.parent))
    # Ends without a row belong to trees that were cut; drop them.
    return FinishedTrees(
        Trajectories(
            partials.rows(~stays),
            trajectories.ended.rows(~ends_stay & (ends >= 0)),
            trajectories.found.rows(~runs_stay),
        ),
        Trajectories(partials.rows(stays), trajectories.ended.rows(ends_stay), trajectories.found.rows(runs_stay)),
        cut,
    )


def roots(partials: Made) -> Ints:
    """Return the row of the root of each row's tree, int64[n]; a row whose parent is not in the table is a root."""
    root = np.where(partials.parents < 0, np.arange(len(partials)), partials.parents)
    while True:  # pointer doubling
        higher = root[root]
        if np.array_equal(higher, root):
            return np.asarray(root, np.int64)
        root = higher


def _select_mask(mask: Bools, rows: Ints) -> Bools:
    """Return the mask at some rows; False for row -1."""
    is_selected = rows >= 0
    is_selected[is_selected] = mask[rows[is_selected]]
    return is_selected


def _arrays(columns: Mapping[str, ArrayLike]) -> dict[str, Any]:
    return {name: np.asarray(column) for name, column in columns.items()}


def _holds(condition: bool | np.bool_, message: str) -> None:
    if not condition:
        raise ValueError(f"trajectories that contradict themselves: {message}")
