"""The policy ``history``: what it learns follows the stream."""

from __future__ import annotations

import numpy as np

from acep.learning.policies.history_policy import HistoryPolicy
from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.learning.trajectories.log import log_of
from acep.learning.trajectories.trajectories import EXPIRED

SPAN = 9
# a, then b or c, then d: partial matches wait in the states 1, 2 (after b) and 3 (after c).
SETTING = PolicyContext(
    ("", "a", "b", "c", "d"), 1, 1, SPAN, False, ((),) * 5, (), (((0, 1),), ((1, 2), (2, 3)), ((3, 4),), ((3, 4),), ()),
    4, True, "",
)  # fmt: skip


def epoch_of(number: int, state: int, size: int = 100) -> Epoch:
    """The epoch of a number: as many partial matches wait in state 2 as in state 3, and all of one state find d."""
    begun, ends, runs = list[tuple[int, ...]](), list[tuple[int, ...]](), list[tuple[int, ...]]()
    for trajectory in range(3 * size * number, 3 * size * (number + 1), 3):
        start = 100 * trajectory
        begun.append((trajectory, -1, 0, 1, 0, start, start, 0, 0))
        begun += [(trajectory + k, trajectory, 0, 1 + k, 0, start, start + 2, 0, 0) for k in (1, 2)]
        ends += [(trajectory + k, start + SPAN + 1, EXPIRED, 3, 0) for k in range(3)]
        runs.append((trajectory + state - 1, 0, start + 5, 0, 0))
    rows = [np.array(table, np.int64).ravel() for table in (begun, ends, runs)]
    log = log_of(*rows, np.zeros(0), step=1, points=np.zeros(0, np.int64))
    return Epoch(events=1000, allowance=1.0, spent=900, dropped=50, price=3.0, log=log)


def levels_of(table: SheddingTable) -> tuple[int, int]:
    """The utility buckets of new partial matches in the states 2 and 3."""
    after_b, after_c = (int(table.level[table.grid.number(state, 0, 0, 2, 2)]) for state in (2, 3))
    return after_b, after_c


def test_what_found_matches_long_ago_gives_way_to_what_finds_them_now() -> None:
    """Although more matches were found after b than after c."""
    policy = HistoryPolicy()
    policy.begin(SETTING, 0)
    tables = [policy.learn(epoch_of(number, 2 if number < 30 else 3)) for number in range(30 + 12)]
    after_b, after_c = levels_of(tables[29])
    assert after_b > after_c
    after_b, after_c = levels_of(tables[-1])
    assert after_b < after_c
