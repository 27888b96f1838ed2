"""Temporal-difference learning of the value of match vectors (docs/explanation/best_effort.md): the targets still to be
expected.

TD(0) (Sutton, Machine Learning 3, 1988): ``V(v) <- V(v) + alpha * (reward + V(v') - V(v))``. A partial match passes
through several vectors, and its extensions are further steps beside it. So a step may lead to several vectors, and the
values of all of them add up. The reward is 1 for the first run of a target, so that no target counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acep.learning.trajectories.match_vectors import Floats, Grid, Ints
from acep.learning.trajectories.trajectories import Trajectories
from acep.learning.trajectories.trees import depths, ends_of

__all__ = ["Steps", "learned", "steps"]

RATE = 0.02
PASSES = 4  # over the steps of an epoch


@dataclass(frozen=True)
class Steps:
    """Stays at vectors, one row each: the ``vector``, the ``reward`` during the stay, and the ``weight``. ``origin``
    (rows) and ``target`` (vectors) have one row per successor of a stay; a stay without a successor is the last one.
    ``turn``: stays of a lower turn are learned from first."""

    vector: Ints
    reward: Floats
    weight: Floats
    turn: Ints
    origin: Ints
    target: Ints


def steps(grid: Grid, trajectories: Trajectories) -> Steps:
    """Return the steps of finished trees of trajectories; ``trajectories.found`` must have its targets. Later steps
    have lower turns. The last stay of a trajectory that was shed, cleared, merged or cut has weight 0, because its
    outcome is not known; the value of its vector stands for it."""
    made, found, parents = trajectories.made, trajectories.found, trajectories.made.parents
    child = np.flatnonzero(parents >= 0)
    leaf = made.find(found.parent)
    found, leaf = found.rows(leaf >= 0), leaf[leaf >= 0]
    until, lost, _ = ends_of(grid, trajectories, leaf, found)
    stays = grid.passage(made.state, made.error, made.start, made.made, until, made.feature)
    count = len(stays.row)
    same = np.flatnonzero(stays.row[1:] == stays.row[:-1])
    depth = depths(parents)[stays.row]
    number = np.arange(count) - stays.first[stays.row]
    bins = int(number.max(initial=0)) + 1
    weight = made.weight[stays.row]
    weight[stays.first[1:][lost] - 1] = 0.0
    return Steps(
        stays.vector,
        np.bincount(stays.at(leaf, found.when), found.first, count).astype(np.float64),
        weight,
        (int(depth.max(initial=0)) - depth) * bins + (bins - 1 - number),
        np.concatenate([same, stays.at(parents[child], made.made[child])]),
        np.concatenate([stays.vector[same + 1], stays.vector[stays.first[child]]]),
    )


def learned(values: Floats, taken: Steps, *, rate: float = RATE, passes: int = PASSES) -> Floats:
    """Return values (float64[vectors]) after steps. A step of weight 1 moves its vector's value by a share ``rate``.

    Stays of one turn are averaged by vector; the mean moves the value as far as one step after the other would.

    >>> chain = Steps(np.array([0, 1, 1]), np.array([0.0, 1.0, 0.0]), np.ones(3), np.array([1, 0, 0]),
    ...               np.array([0]), np.array([1]))
    >>> learned(np.zeros(2), chain, rate=0.5, passes=1).tolist()
    [0.1875, 0.375]
    """
    values = values.copy()
    by_turn = np.argsort(taken.turn, kind="stable")
    borders = np.flatnonzero(np.diff(taken.turn[by_turn])) + 1
    leads = np.argsort(taken.origin, kind="stable")
    origin, target = taken.origin[leads], taken.target[leads]
    for _ in range(passes):
        for rows in np.split(by_turn, borders):
            low, high = np.searchsorted(origin, rows), np.searchsorted(origin, rows, side="right")
            lengths = high - low
            own = np.repeat(np.arange(len(rows)), lengths)
            places = np.arange(len(own)) - (np.cumsum(lengths) - lengths)[own] + low[own]
            told = taken.reward[rows] + np.bincount(own, values[target[places]], len(rows))
            vectors, where = np.unique(taken.vector[rows], return_inverse=True)
            weight = np.bincount(where, taken.weight[rows], len(vectors))
            mean = np.bincount(where, taken.weight[rows] * told, len(vectors)) / np.maximum(weight, 1e-300)
            values[vectors] += (1 - (1 - rate) ** weight) * (mean - values[vectors])
    return values
