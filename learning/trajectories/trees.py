"""Compute over trees of trajectories: a row's number of ancestors, the sums over its extensions, and its end."""

from __future__ import annotations

import numpy as np

from acep.learning.trajectories.match_vectors import Bools, Grid, Ints
from acep.learning.trajectories.trajectories import EXPIRED, TAKEN, CompleteRuns, Trajectories

__all__ = ["depths", "ends_of", "with_extensions"]


def depths(parents: Ints) -> Ints:
    """Return how many ancestors each row of ``parents`` (row numbers; -1: none) has: int64[n].

    >>> depths(np.array([-1, 0, 1, 0, -1])).tolist()
    [0, 1, 2, 1, 0]
    """
    depth = (parents >= 0).astype(np.int64)
    above = parents.copy()
    while True:  # pointer doubling
        unfinished = above >= 0
        if not unfinished.any():
            return depth
        depth[unfinished] += depth[above[unfinished]]
        above[unfinished] = above[above[unfinished]]


def with_extensions(parents: Ints, *columns: Ints) -> list[Ints]:
    """Return, for numbers by row, the sums over each row and all its extensions, computed from the deepest level up.

    >>> with_extensions(np.array([-1, 0, 1, 0]), np.array([1, 2, 3, 4]))[0].tolist()
    [10, 5, 3, 4]
    """
    depth = depths(parents)
    order = np.argsort(-depth, kind="stable")
    borders = np.flatnonzero(np.diff(depth[order])) + 1
    out = [column.copy() for column in columns]
    for rows in np.split(order, borders):
        above = parents[rows]
        if len(above) and above[0] >= 0:
            for column in out:
                np.add.at(column, above, column[rows])
    return out


def ends_of(grid: Grid, trajectories: Trajectories, leaf: Ints, runs: CompleteRuns) -> tuple[Ints, Bools, Ints]:
    """Return when each row ended, whether it was lost before its natural end, and its touches. ``leaf`` has the row
    from which each of the runs ``runs`` was completed.

    A row that was cut ends with its last extension or found run, as nothing later is known.
    """
    partials, ended = trajectories.made, trajectories.ended
    row = partials.find(ended.trajectory)
    ended, row = ended.rows(row >= 0), row[row >= 0]
    ends = partials.made.copy()
    ends[row] = np.maximum(ended.when, ends[row])
    is_lost = np.ones(len(partials), dtype=np.bool_)
    is_lost[row] = ~np.isin(ended.how, (EXPIRED, TAKEN))
    touches = np.zeros(len(partials), dtype=np.int64)
    touches[row] = ended.touches
    child = partials.parents >= 0
    np.maximum.at(ends, partials.parents[child], partials.made[child])
    np.maximum.at(ends, leaf, runs.when)
    if grid.span is not None:
        ends = np.maximum(np.minimum(ends, partials.start + grid.span), partials.made)
    return ends, is_lost, touches
