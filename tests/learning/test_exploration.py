"""Epochs of which nothing was logged: they change nothing of what is known, and cost next to nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from acep.learning.policies.exploration import Pending
from acep.learning.policies.history_policy import HistoryPolicy
from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.trajectories.log import Log, log_of
from acep.learning.trajectories.targets import Targets

SETTING = PolicyContext(("", "a", "b"), 1, 1, 9, False, ((), (), ()), (), (((0, 1),), ((0, 2),), ()), 1, True, "")

MADE = [(0, -1, 0, 1, 0, 1, 1, 0, 0), (1, 0, 0, 2, 0, 1, 4, 0, 2), (2, -1, 0, 1, 0, 5, 5, 0, 0)]
ENDED = [(1, 8, 0, 3, 1), (0, 9, 0, 2, 4)]
FOUND = [(1, 0, 7, 0, 1)]
LATER = [(2, 13, 0, 2, 4)]


def logged(*tables: Sequence[tuple[int, ...]]) -> Log:
    """A log of rows of lives made, ended, and found, with one term."""
    made, ended, found = (np.array(rows, np.int64).ravel() for rows in tables)
    return log_of(made, ended, found, np.ones(len(tables[0])), step=1, points=np.zeros(0, np.int64))


def plain(state: Any) -> Any:
    """The same as lists, without the shapes of what is empty."""
    return {name: plain(held) for name, held in state.items()} if isinstance(state, dict) else np.array(state).tolist()


def test_an_epoch_without_lives_changes_nothing() -> None:
    pendings = [Pending(Targets(gap=0)), Pending(Targets(gap=0))]
    finished: list[list[int]] = [[], []]
    for which, nothings in enumerate((0, 2)):
        for log in (logged(MADE, ENDED, FOUND), *[logged([], [], [])] * nothings, logged([], LATER, [])):
            pendings[which], known = pendings[which].add_log(log)
            finished[which] += known.trajectories.made.trajectory.tolist()
            assert len(known.extra.trajectory) == len(known.trajectories.made)
    assert finished[0] == finished[1] == [0, 1, 2]
    assert plain(pendings[0].to_arrays()) == plain(pendings[1].to_arrays())


def test_what_was_found_of_no_known_life_is_no_epoch_without_lives() -> None:
    pending, _ = Pending(Targets(gap=0)).add_log(logged([], [], FOUND))
    assert pending.targets.count == 1


def calls(policy: HistoryPolicy, log: Log) -> int:
    """How many functions are called to learn from a log."""
    counted = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    epoch = Epoch(events=100, allowance=1.0, spent=90, dropped=5, price=3.0, log=log)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        policy.learn(epoch)
    finally:
        sys.setprofile(before)
    return counted


def test_an_epoch_without_lives_costs_next_to_nothing() -> None:
    policy = HistoryPolicy()
    policy.begin(SETTING, 0)
    some = calls(policy, logged(MADE, ENDED, FOUND))
    assert 8 * calls(policy, logged([], [], [])) < some


def test_rows_of_a_table_are_not_checked_again() -> None:
    made = logged(MADE, ENDED, FOUND).trajectories.made
    some = made.rows(np.array([True, False, True]))
    assert some == made.rows(np.array([0, 2]))
    assert some.append(made.rows(np.zeros(3, np.bool_))) is some
    assert made.rows(np.zeros(3, np.bool_)).append(some) is some
