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

__all__ = ["Steps", "steps", "update_values"]

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
    partials, runs, parents = trajectories.made, trajectories.found, trajectories.made.parents
    child = np.flatnonzero(parents >= 0)
    leaf = partials.find(runs.parent)
    runs, leaf = runs.rows(leaf >= 0), leaf[leaf >= 0]
    ends, is_lost, _ = ends_of(grid, trajectories, leaf, runs)
    stays = grid.passage(partials.state, partials.error, partials.start, partials.made, ends, partials.feature)
    count = len(stays.row)
    followed = np.flatnonzero(stays.row[1:] == stays.row[:-1])
    depth = depths(parents)[stays.row]
    number = np.arange(count) - stays.first[stays.row]
    bins = int(number.max(initial=0)) + 1
    weight = partials.weight[stays.row]
    weight[stays.first[1:][is_lost] - 1] = 0.0
    return Steps(
        stays.vector,
        np.bincount(stays.stay_at(leaf, runs.when), runs.first, count).astype(np.float64),
        weight,
        (int(depth.max(initial=0)) - depth) * bins + (bins - 1 - number),
        np.concatenate([followed, stays.stay_at(parents[child], partials.made[child])]),
        np.concatenate([stays.vector[followed + 1], stays.vector[stays.first[child]]]),
    )


def update_values(values: Floats, new_steps: Steps, *, rate: float = RATE, passes: int = PASSES) -> Floats:
    """Return values (float64[vectors]) after steps. A step of weight 1 moves its vector's value by a share ``rate``.

    Stays of one turn are averaged by vector; the mean moves the value as far as one step after the other would.

    >>> chain = Steps(np.array([0, 1, 1]), np.array([0.0, 1.0, 0.0]), np.ones(3), np.array([1, 0, 0]),
    ...               np.array([0]), np.array([1]))
    >>> update_values(np.zeros(2), chain, rate=0.5, passes=1).tolist()
    [0.1875, 0.375]
    """
    values = values.copy()
    by_turn = np.argsort(new_steps.turn, kind="stable")
    borders = np.flatnonzero(np.diff(new_steps.turn[by_turn])) + 1
    leads = np.argsort(new_steps.origin, kind="stable")
    origin, target = new_steps.origin[leads], new_steps.target[leads]
    for _ in range(passes):
        for rows in np.split(by_turn, borders):
            begins, ends = np.searchsorted(origin, rows), np.searchsorted(origin, rows, side="right")
            lengths = ends - begins
            step_index = np.repeat(np.arange(len(rows)), lengths)
            lead_index = np.arange(len(step_index)) - (np.cumsum(lengths) - lengths)[step_index] + begins[step_index]
            returns = new_steps.reward[rows] + np.bincount(step_index, values[target[lead_index]], len(rows))
            vectors, vector_index = np.unique(new_steps.vector[rows], return_inverse=True)
            weight = np.bincount(vector_index, new_steps.weight[rows], len(vectors))
            mean = np.bincount(vector_index, new_steps.weight[rows] * returns, len(vectors)) / np.maximum(
                weight, 1e-300
            )
            values[vectors] += (1 - (1 - rate) ** weight) * (mean - values[vectors])
    return values
