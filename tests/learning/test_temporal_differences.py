"""Temporal differences: they find the exact values of a chain that is known, and the steps of lives."""

from __future__ import annotations

import numpy as np
import pytest

from acep.learning.estimation.temporal_differences import Steps, steps, update_values
from acep.learning.trajectories.match_vectors import Grid
from acep.learning.trajectories.targets import Targets
from acep.learning.trajectories.trajectories import EXPIRED, SHED, TAKEN, Trajectories

# From each vector: the chances to go on to each other one, and the mean reward before that; else it ends.
NEXT = np.array([[0.0, 0.5, 0.2, 0.0], [0.0, 0.0, 0.6, 0.3], [0.0, 0.0, 0.3, 0.5], [0.0, 0.0, 0.0, 0.0]])
REWARD = np.array([0.0, 0.1, 0.0, 0.4])


def walks(count: int, seed: int, *, branches: bool = False) -> Steps:
    """Trajectories through the chain; with branches, a step may lead to several vectors at once."""
    rng = np.random.default_rng(seed)
    vector, reward, turn, origin, target = [], [], [], [], []
    for _ in range(count):
        ahead = [(0, 0)]
        while ahead:
            at, depth = ahead.pop()
            row = len(vector)
            vector.append(at)
            reward.append(float(rng.random() < REWARD[at]))
            turn.append(-depth)
            if branches:
                leads = np.flatnonzero(rng.random(4) < NEXT[at]).tolist()
            else:
                drawn = int(np.searchsorted(np.cumsum(NEXT[at]), rng.random(), side="right"))
                leads = [drawn] if drawn < 4 else []
            for one in leads:
                origin.append(row)
                target.append(one)
                ahead.append((one, depth + 1))
    columns = [np.array(c) for c in (vector, reward, np.ones(len(vector)), turn, origin, target)]
    return Steps(*columns)


@pytest.mark.parametrize("branches", [False, True])
def test_values_of_a_known_chain(branches: bool) -> None:
    exact = np.linalg.solve(np.eye(4) - NEXT, REWARD)
    found = np.zeros(4)
    for batch in range(200):
        found = update_values(found, walks(50, batch, branches=branches), rate=0.002, passes=1)
    assert found == pytest.approx(exact, abs=0.04)
    assert np.ptp(exact) > 0.1


@pytest.mark.long
def test_many_passes_over_one_batch_find_what_that_batch_says() -> None:
    batch = walks(300, 7)
    going = np.zeros((4, 4))
    np.add.at(going, (batch.vector[batch.origin], batch.target), 1.0)
    seen = np.bincount(batch.vector, minlength=4)
    exact = np.linalg.solve(np.eye(4) - going / seen[:, None], np.bincount(batch.vector, batch.reward, 4) / seen)
    assert update_values(np.zeros(4), batch, rate=1e-4, passes=1000) == pytest.approx(exact, abs=3e-3)


def test_what_is_learned_last_counts_first() -> None:
    """One pass brings a reward from the end of a trajectory to its beginning."""
    chain = Steps(np.arange(3), np.array([0.0, 0.0, 1.0]), np.ones(3), -np.arange(3), np.arange(2), np.arange(1, 3))
    assert update_values(np.zeros(3), chain, rate=1.0, passes=1).tolist() == [1.0, 1.0, 1.0]


def trajectories(how: int) -> Trajectories:
    """A node that waits in state 1 from 0 to 15, one of state 2 that comes of it at 4, and a match at 9."""
    made = {
        "trajectory": [0, 1], "parent": [-1, 0], "partition": [0, 0], "state": [1, 2], "error": [0, 0], "start": [0, 0],
        "made": [0, 4], "feature": [0, 0], "weight": [1.0, 1.0],
    }  # fmt: skip
    ended = {"trajectory": [0, 1], "when": [15, 15], "how": [how, TAKEN], "touches": [3, 3]}
    held = Trajectories.from_columns(
        made, ended, {"parent": [1, 1], "partition": [0, 0], "when": [9, 9], "error": [0, 0]}
    )
    _, found = Targets(gap=0).number_targets(held.found)
    return Trajectories(held.made, held.ended, found)


def test_the_steps_of_lives() -> None:
    grid = Grid(states=3, errors=1, span=15, windows=2, waits=1)
    taken = steps(grid, trajectories(EXPIRED))
    # Bins of the window: up to 7, and from 8 on.
    assert grid.parts(taken.vector).state.tolist() == [1, 1, 2, 2]
    assert grid.parts(taken.vector).remaining.tolist() == [1, 0, 1, 0]
    assert taken.reward.tolist() == [0.0, 0.0, 0.0, 1.0], "the first of the two runs alone"
    leads = sorted(zip(taken.origin.tolist(), taken.target.tolist(), strict=True))
    assert leads == [(0, int(taken.vector[1])), (0, int(taken.vector[2])), (2, int(taken.vector[3]))]
    assert (taken.turn[taken.origin] > [taken.turn[taken.vector == v].max() for v in taken.target]).all()
    values = update_values(np.zeros(grid.vectors), taken, rate=1.0)
    assert values[taken.vector].tolist() == [1.0, 0.0, 1.0, 1.0]


def test_of_a_life_that_was_lost_the_end_is_not_known() -> None:
    grid = Grid(states=3, errors=1, span=15, windows=2, waits=1)
    taken = steps(grid, trajectories(SHED))
    assert taken.weight.tolist() == [1.0, 0.0, 1.0, 1.0]
    before = np.zeros(grid.vectors)
    before[taken.vector[1]] = 0.5
    after = update_values(before, taken, rate=1.0)
    assert after[taken.vector[:2]].tolist() == [1.5, 0.5]


def test_no_steps_teach_nothing() -> None:
    grid = Grid(states=3, errors=1, span=15)
    assert not update_values(np.zeros(grid.vectors), steps(grid, Trajectories()), rate=0.5, passes=2).any()
