"""Trajectories: what the tables refuse, which trees are settled when, and which lives lead to which targets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import fields, replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep.errors import SnapshotError
from acep.learning.trajectories.targets import NONE, Targets, walk
from acep.learning.trajectories.trajectories import CompleteRuns, Made, Trajectories, roots, split_finished
from tests.case_counts import CASES
from tests.learning.streams import children, dice, joined

MADE = {"trajectory": [3, 5], "parent": [-1, 3], "partition": [0, 0], "state": [1, 2], "error": [0, 0]}
MADE |= {"start": [7, 7], "made": [7, 8], "feature": [0, 0], "weight": [1.0, 1.0]}
ENDED = {"trajectory": [5, 3], "when": [9, 9], "how": [0, 2], "touches": [3, 1]}
FOUND = {"parent": [5], "partition": [0], "when": [9], "error": [0]}


@pytest.mark.parametrize(
    ("table", "column", "values", "message"),
    [
        ("made", "trajectory", [5, 3], "rise"),
        ("made", "trajectory", [3], "lengths"),
        ("made", "parent", [-1, 5], "older"),
        ("made", "parent", [-2, 3], "older"),
        ("made", "weight", [0.5, 1.0], "weight"),
        ("made", "weight", [np.nan, 1.0], "weight"),
        ("made", "made", [6, 8], "before its start"),
        ("made", "state", [-1, 2], "negative"),
        ("made", "state", [1.5, 2.0], "type"),
        ("made", "state", [[1], [2]], "one-dimensional"),
        ("ended", "how", [5, 0], "no such end"),
        ("ended", "trajectory", [5, 5], "twice"),
        ("ended", "touches", [3, -1], "touches"),
        ("found", "when", np.array([2**63], np.uint64), "too large"),
        ("found", "when", ["9"], "type"),
    ],
)
def test_tables_that_contradict_themselves(table: str, column: str, values: Any, message: str) -> None:
    tables = {"made": dict(MADE), "ended": dict(ENDED), "found": dict(FOUND)}
    Trajectories.from_columns(*tables.values())  # type: ignore[arg-type]
    tables[table][column] = values
    with pytest.raises(ValueError, match=message):
        Trajectories.from_columns(*tables.values())  # type: ignore[arg-type]


def test_columns_that_are_missing_or_not_known() -> None:
    with pytest.raises(ValueError, match="columns of Made"):
        Trajectories.from_columns({**MADE, "x": [1, 2]}, ENDED, FOUND)
    with pytest.raises(ValueError, match="columns of Ended"):
        Trajectories.from_columns(MADE, {}, FOUND)


def test_lives_as_arrays() -> None:
    trajectories = joined(dice(5))
    assert Trajectories.from_arrays(trajectories.to_arrays()) == trajectories
    arrays = trajectories.to_arrays()
    for name in arrays:
        rest = {n: a for n, a in arrays.items() if n != name}
        with pytest.raises(SnapshotError):
            Trajectories.from_arrays(rest)
        with pytest.raises(SnapshotError):
            Trajectories.from_arrays({**rest, name: arrays[name][1:]})


def rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted(zip(*(getattr(table, f.name).tolist() for f in fields(table)), strict=True))


@pytest.mark.parametrize("seed", range(CASES(20)))
def test_each_tree_is_settled_once_when_it_has_ended(seed: int) -> None:
    logs = dice(seed, epochs=Random(seed).randint(1, 12), span=(None, 5, 40)[seed % 3])
    finished, open_, whole = Trajectories(), Trajectories(), Trajectories()
    for log in logs:
        whole = whole.append(log)
        step = split_finished(open_, log, 10**6)
        open_, finished = step.open, _both(finished, step.trajectories)
        assert step.cut == 0
        ended = set(whole.ended.trajectory.tolist())
        tree = dict(zip(whole.made.trajectory.tolist(), whole.made.trajectory[roots(whole.made)].tolist(), strict=True))
        alive = {tree[trajectory] for trajectory in tree if trajectory not in ended}
        assert set(open_.made.trajectory.tolist()) == {trajectory for trajectory in tree if tree[trajectory] in alive}
    assert not len(open_.made)
    assert not len(open_.found)
    assert not len(open_.ended)
    for one, two in ((finished.made, whole.made), (finished.ended, whole.ended), (finished.found, whole.found)):
        assert rows(one) == rows(two)


def _both(one: Trajectories, two: Trajectories) -> Trajectories:
    """Both together, the nodes by their numbers."""
    made = {f.name: np.concatenate([getattr(one.made, f.name), getattr(two.made, f.name)]) for f in fields(Made)}
    order = np.argsort(made["trajectory"])
    return Trajectories(
        Made(**{name: column[order] for name, column in made.items()}),
        one.ended.append(two.ended),
        one.found.append(two.found),
    )


@pytest.mark.parametrize("limit", [0, 1, 10, 50])
def test_the_oldest_trees_are_cut_where_there_is_no_room(limit: int) -> None:
    open_, seen, cut = Trajectories(), [], 0
    logs = dice(3, span=None, epochs=10)
    for log in logs:
        before = open_.append(log)
        step = split_finished(open_, log, limit)
        assert len(step.open.made) <= limit
        seen += step.trajectories.made.trajectory.tolist()
        cut += step.cut
        if len(step.open.made) and step.cut:
            first = before.made.trajectory[roots(before.made)]
            went = first[
                np.isin(before.made.trajectory, step.trajectories.made.trajectory)
                & np.isin(first, before.made.trajectory)
            ]
            ended = set(before.ended.trajectory.tolist())
            cut_lives = [
                trajectory for trajectory in step.trajectories.made.trajectory.tolist() if trajectory not in ended
            ]
            newest_cut = max(first[before.made.trajectory == trajectory][0] for trajectory in cut_lives)
            assert newest_cut < step.open.made.trajectory.min()
            assert len(went)
        open_ = step.open
    whole = joined(logs)
    assert sorted(seen) == whole.made.trajectory.tolist()
    assert cut > 0


def slow_targets(points: list[tuple[int, int]], gap: int | None) -> dict[tuple[int, int], int]:
    """The target of each point (partition, when), numbered by first point and partition."""
    by: dict[int, list[int]] = defaultdict(list)
    for partition, when in sorted(set(points)):
        by[partition].append(when)
    chains = []
    for partition, whens in by.items():
        chain = [whens[0]]
        for when in whens[1:]:
            if gap is not None and when - chain[-1] > gap:
                chains.append((partition, chain))
                chain = []
            chain.append(when)
        chains.append((partition, chain))
    chains.sort(key=lambda c: (c[1][0], c[0]))
    return {(partition, when): number for number, (partition, chain) in enumerate(chains) for when in chain}


POINTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=40)


def found_of(points: list[tuple[int, int]]) -> CompleteRuns:
    partition, when = np.array(points, np.int64).reshape(-1, 2).T
    none = np.full(len(points), -1)
    return CompleteRuns(none, partition, when, none * 0, none, np.zeros(len(points), np.bool_))


@given(POINTS, st.sampled_from([0, 1, 3, 10, None]), st.lists(st.integers(0, 40), max_size=4))
def test_targets_are_chains_of_points(points: list[tuple[int, int]], gap: int | None, cuts: list[int]) -> None:
    """However the stream is cut, the same points are one target."""
    points = sorted(points, key=lambda point: point[1])
    expected = slow_targets(points, gap)
    targets = Targets(gap)
    given_: dict[int, set[tuple[int, int]]] = defaultdict(set)
    firsts = []
    for low, high in zip([-1, *sorted(cuts)], [*sorted(cuts), 99], strict=True):
        epoch = [point for point in points if low < point[1] <= high]
        targets, found = targets.number_targets(found_of(epoch))
        for point, number in zip(epoch, found.target.tolist(), strict=True):
            given_[number].add(point)
        firsts += found.target[found.first].tolist()
    wanted: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for point, number in expected.items():
        wanted[number].add(point)
    assert dict(given_) == dict(wanted)
    assert sorted(firsts) == sorted(wanted)
    assert targets.count == len(wanted)


def test_a_late_point_belongs_to_the_target_of_the_last_one() -> None:
    targets, _ = Targets(5).number_targets(found_of([(0, 20)]))
    targets, found = targets.number_targets(found_of([(0, 17), (1, 3)]))
    assert found.target.tolist() == [0, 1]
    assert targets.last.tolist() == [20, 3]
    assert targets.number_targets(found_of([(0, 25)]))[1].target.tolist() == [0]


def test_open_targets_are_bounded() -> None:
    targets = Targets(5, limit=2)
    targets, _ = targets.number_targets(found_of([(0, 1), (1, 2), (2, 3)]))
    assert targets.partition.tolist() == [1, 2]
    targets, found = targets.number_targets(found_of([(0, 4), (1, 4)]))
    assert found.target.tolist() == [3, 1]
    assert found.first.tolist() == [True, False]
    assert targets.partition.tolist() == [0, 1]


def test_targets_as_arrays() -> None:
    targets, _ = Targets(5).number_targets(found_of([(0, 20), (3, 4)]))
    read = Targets(5).with_arrays(targets.to_arrays())
    assert {n: a.tolist() for n, a in read.to_arrays().items()} == {
        n: a.tolist() for n, a in targets.to_arrays().items()
    }
    for name, wrong in (
        ("partition", np.array([3, 0])),
        ("number", np.array([2, 0])),
        ("last", np.array([1])),
        ("last", np.array([1.0, 2.0])),
        ("count", np.array([1, 2])),
    ):
        with pytest.raises(SnapshotError):
            Targets(5).with_arrays({**targets.to_arrays(), f"targets.{name}": wrong})


def slow_walk(trajectories: Trajectories) -> dict[tuple[int, int], tuple[int, int]]:
    """(row, target) to (until, first), one chain at a time."""
    made, found = trajectories.made, trajectories.found
    row = {int(trajectory): i for i, trajectory in enumerate(made.trajectory)}
    reached: dict[tuple[int, int], tuple[int, int]] = {}
    for parent, target, when, first in zip(found.parent, found.target, found.when, found.first, strict=True):
        at, left = int(parent), int(when)
        while at in row:
            key = (row[at], int(target))
            until, one = reached.get(key, (NONE, NONE))
            reached[key] = (max(until, left), max(one, left if first else NONE))
            at, left = int(made.parent[row[at]]), int(made.made[row[at]])
    return reached


@pytest.mark.parametrize("gap", [0, 20, None])
def test_which_lives_lead_to_which_targets(gap: int | None, cases: Callable[[int], int]) -> None:
    for seed in range(cases(40)):
        trajectories = joined(dice(seed, goes_on=0.12))
        _, found = Targets(gap).number_targets(trajectories.found)
        trajectories = replace(trajectories, found=found)
        reached = walk(trajectories.made, trajectories.found)
        expected = slow_walk(trajectories)
        assert len(reached) == len(expected)
        pairs = list(zip(reached.row.tolist(), reached.target.tolist(), strict=True))
        assert pairs == sorted(expected)
        assert [expected[pair] for pair in pairs] == list(
            zip(reached.until.tolist(), reached.first.tolist(), strict=True)
        )


def test_a_long_chain_is_walked() -> None:
    """A repetition makes a chain of a thousand lives, each of which finds."""
    n = 1000
    made = Made(
        *(np.arange(n), np.arange(n) - 1, np.zeros(n, int), np.ones(n, int), np.zeros(n, int), np.zeros(n, int)),
        *(np.arange(n), np.zeros(n, int), np.ones(n)),
    )
    found = found_of([(0, i + 1) for i in range(n)])
    _, found = Targets(None).number_targets(replace(found, parent=np.arange(n)))
    reached = walk(made, found)
    assert reached.row.tolist() == list(range(n))
    assert reached.until.tolist() == [*range(1, n), n]
    assert reached.first[0] == 1
    assert len(children(made)) == n - 1


def test_nothing_comes_of_nothing() -> None:
    step = split_finished(Trajectories(), Trajectories(), 10)
    assert step.trajectories == Trajectories() == step.open
    assert len(walk(Made.empty(), CompleteRuns.empty())) == 0
    only_ends = Trajectories.from_columns({n: [] for n in MADE}, ENDED, FOUND)
    assert len(split_finished(Trajectories(), only_ends, 10).trajectories.ended) == 0


@given(
    st.sets(st.integers(0, 300), max_size=30), st.lists(st.integers(-3, 310), max_size=20), st.sampled_from([1, 10**6])
)
def test_lives_are_found_by_their_numbers(trajectories: set[int], asked: list[int], spread: int) -> None:
    numbers = np.array(sorted(trajectories), np.int64) * spread
    none = np.zeros(len(numbers), np.int64)
    made = Made(numbers, none - 1, none, none, none, none, none, none, none + 1)
    wanted = [numbers.tolist().index(a * spread) if a in trajectories else -1 for a in asked]
    assert made.find(np.array(asked, np.int64) * spread).tolist() == wanted
