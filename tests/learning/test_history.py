"""The history graph: Definition 4 on the paper's example, and every sum, bit and edge against a slow plain version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from acep.learning.history.graph import History
from acep.learning.history.sums import SUMS
from acep.learning.trajectories.match_vectors import LEVELS, Grid
from acep.learning.trajectories.targets import Targets
from acep.learning.trajectories.trajectories import Trajectories
from acep.sketches.dense import DenseMemory
from acep.sketches.match_map import MatchMap
from tests.learning.slow import SlowHistory
from tests.learning.streams import dice, joined

SPAN = 20
GRID = Grid(4, 3, SPAN, features=2)


def slow(logs: list[Trajectories], grid: Grid, gap: int | None) -> SlowHistory:
    """The plain history of all lives, with the targets numbered epoch by epoch, as the log came."""
    targets, numbered = Targets(gap), []
    for log in logs:
        targets, found = targets.number_targets(log.found)
        numbered.append(replace(log, found=found))
    return SlowHistory(grid, joined(numbered))


def check(history: History, plain: SlowHistory) -> None:
    """Both say the same of every vector."""
    visited = np.array(sorted(plain.sums), np.int64)
    assert history.visited().tolist() == visited.tolist()
    wanted = np.array([[plain.sums[v][name] for name in SUMS] for v in visited.tolist()])
    np.testing.assert_allclose(history.sums(visited), wanted, rtol=1e-9, atol=1e-9)
    assert history.edges is not None
    rows, columns, weights = history.edges.triples()
    edges = zip(rows.tolist(), columns.tolist(), strict=True)
    assert dict(zip(edges, weights, strict=True)) == pytest.approx(plain.edges)
    rows, slots, weights = history.direct.triples()
    numbers = history.bundles[slots].tolist()
    assert dict(zip(zip(rows.tolist(), numbers, strict=True), weights, strict=True)) == pytest.approx(plain.direct)
    maps = history.maps(visited)
    hits = {(int(visited[v]), int(history.bundles[slot])) for v, slot in zip(*np.nonzero(maps), strict=True)}
    assert hits == plain.hits
    np.testing.assert_allclose(history.alike, plain.alike, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("targets", ["bundles", "points"])
def test_every_sum_bit_and_edge(targets: str, cases: Callable[[int], int]) -> None:
    for seed in range(cases(12)):
        rng = Random(seed)
        span = rng.choice((None, 3, SPAN, 70))
        grid = replace(GRID, span=span) if span is not None else Grid(4, 3, None, 1, 1, 2)
        logs = dice(seed, span=span, epochs=rng.randint(1, 6), finds=0.02, ticks=80)
        history = History(grid, targets=targets, ring=1000)  # type: ignore[arg-type]
        finished = sum(history.update(log) for log in logs)
        assert finished == sum(len(log.made) for log in logs)
        if span is None:
            assert not len(history.open.made)
        check(history, slow(logs, grid, grid.span if targets == "bundles" else 0))


def learned(seed: int = 0, **options: object) -> History:
    history = History(GRID, names=("", "a", "<b>", "c"), fingerprint="q", **options)  # type: ignore[arg-type]
    for log in dice(seed, span=SPAN):
        history.update(log)
    return history


def test_how_the_stream_is_cut_makes_no_difference() -> None:
    one, *others = (History(GRID, ring=1000) for _ in range(4))
    one.update(joined(dice(7, epochs=1)))
    for history, epochs in zip(others, (2, 5, 30), strict=True):
        for log in dice(7, epochs=epochs):
            history.update(log)
        np.testing.assert_allclose(history.sums(), one.sums(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(history.alike, one.alike, rtol=1e-9)
        maps = [h.maps(one.visited())[:, np.argsort(h.bundles)] for h in (history, one)]
        assert np.array_equal(*maps)


def test_sums_are_forgotten_by_the_epoch() -> None:
    history = History(GRID, forget=0.5)
    logs = dice(3, epochs=2)
    history.update(logs[0])
    before, alike, edges = history.sums(), history.alike.copy(), history.direct.weights.sum()
    history.update(Trajectories())
    np.testing.assert_allclose(history.sums(), before / 2)
    np.testing.assert_allclose(history.alike, alike / 2)
    assert history.direct.weights.sum() == pytest.approx(edges / 2)
    with pytest.raises(ValueError, match="multiplied"):
        History(GRID, forget=1.5)


def test_coarser_vectors_have_the_sums_of_all_that_they_stand_for() -> None:
    history = learned()
    every = np.arange(GRID.vectors)
    fine = history.sums()
    for level in range(LEVELS):
        group = GRID.coarse(every, level)
        coarse = history.sums(every, level)
        for vector in (0, 100, GRID.vectors - 1):
            np.testing.assert_allclose(coarse[vector], fine[group == group[vector]].sum(axis=0))
        assert np.array_equal(history.sums(level=level), coarse)


def test_the_maps_are_a_ring_of_the_last_bundles() -> None:
    wide, narrow = learned(1, targets="points", ring=1000), learned(1, targets="points", ring=8)
    visited = wide.visited()
    assert set(narrow.bundles.tolist()) <= set(wide.bundles.tolist())
    for number in narrow.bundles.tolist():
        of_wide, of_narrow = (int(np.flatnonzero(h.bundles == number)[0]) for h in (wide, narrow))
        assert narrow.points[of_narrow] == wide.points[of_wide]
        # What was settled before a bundle had its slot again is not in the narrow maps.
        assert not np.any(narrow.maps(visited)[:, of_narrow] & ~wide.maps(visited)[:, of_wide])
    newest = int(narrow.bundles.max())
    slots = [int(np.flatnonzero(h.bundles == newest)[0]) for h in (wide, narrow)]
    assert narrow.maps(visited)[:, slots[1]].any()
    assert np.array_equal(wide.maps(visited)[:, slots[0]], narrow.maps(visited)[:, slots[1]])


def star(targets: list[list[int]], state: int = 1) -> Trajectories:
    """Nodes of one partition that live at the same time, and at which later times each of them finds something."""
    n = len(targets)
    zero = np.zeros(n, np.int64)
    made = {"trajectory": np.arange(n), "parent": zero - 1, "partition": zero, "state": zero + state, "error": zero}
    made |= {"start": zero, "made": zero, "feature": zero, "weight": zero + 1}
    ended = {"trajectory": np.arange(n), "when": zero + SPAN, "how": zero, "touches": zero + 3}
    runs = [(trajectory, when) for trajectory, whens in enumerate(targets) for when in whens]
    parent, when = np.array(runs, np.int64).reshape(-1, 2).T
    found = {"parent": parent, "partition": parent * 0, "when": when, "error": parent * 0}
    return Trajectories.from_columns(made, ended, found)


@pytest.mark.parametrize(
    ("targets", "share"),
    [
        ([[5]] * 4, 1.0),  # all share one
        ([[5, 9]] * 4, 1.0),
        ([[5], [6], [7], [8]], 0.0),  # each its own
        ([[5], [5], [7], [7]], 1 / 3),  # pairs: one of the other three
        ([[5], [5], [], []], 1 / 3),
        ([[5], [], [], []], 0.0),
        ([[5]], np.nan),  # alone
        ([[], []], np.nan),  # nothing is reached
    ],
)
def test_how_much_nodes_overlap(targets: list[list[int]], share: float) -> None:
    history = History(GRID, targets="points")
    history.update(star(targets))
    assert history.overlap()[1] == pytest.approx(share, nan_ok=True)
    assert np.isnan(history.overlap()[[0, 2, 3]]).all()


def test_nodes_of_other_partitions_states_or_times_do_not_overlap() -> None:
    trajectories = star([[5], [5], [5]])
    for column, values in (("partition", [0, 1, 2]), ("state", [1, 2, 3])):
        history = History(GRID, targets="points")
        history.update(replace(trajectories, made=replace(trajectories.made, **{column: np.array(values)})))
        assert np.isnan(history.overlap()).all()
    apart = replace(
        trajectories, made=replace(trajectories.made, start=np.array([0, 30, 60]), made=np.array([0, 30, 60]))
    )
    apart = replace(
        apart,
        ended=replace(trajectories.ended, when=np.array([20, 50, 80])),
        found=replace(trajectories.found, when=np.array([5, 35, 65])),
    )
    history = History(GRID, targets="points")
    history.update(apart)
    assert np.isnan(history.overlap()).all()


def test_lives_that_wait_are_bounded() -> None:
    history = History(Grid(4, 3, None, 1, 1, 2), most_open=20)
    logs = dice(3, span=None, epochs=12)
    for log in logs:
        history.update(log)
        assert len(history.open.made) <= 20
        assert len(history.recent) <= 20 + len(log.made) + 20
    assert history.cut > 0
    assert history.sums()[:, SUMS.index("seen")].sum() == sum(len(log.made) for log in logs)
    # A node that was cut is not held against its vector.
    unknown, reached = (history.sums()[:, SUMS.index(name)].sum() for name in ("unknown", "reached"))
    assert 0 < unknown <= history.sums()[:, SUMS.index("visits")].sum() - reached


def test_lives_of_another_grid_change_nothing() -> None:
    history = learned()
    before = history.to_sections()
    for column, value in (("state", 4), ("feature", 2)):
        trajectories = star([[5]])
        with pytest.raises(ValueError, match="is not from"):
            history.update(replace(trajectories, made=replace(trajectories.made, **{column: np.array([value])})))
        assert history.to_sections() == before


def test_a_memory_of_other_columns() -> None:
    with pytest.raises(ValueError, match="columns"):
        History(GRID, memory=DenseMemory(3, 8))
    with pytest.raises(ValueError, match="bundles or points"):
        History(GRID, targets="matches")  # type: ignore[arg-type]


def test_a_sketch_in_place_of_the_exact_memory() -> None:
    """It says nothing too small, and with room to spare it says what the exact memory says."""
    logs = dice(4, epochs=3)
    exact, wide, narrow = (
        History(GRID, memory=memory)
        for memory in (
            DenseMemory(len(SUMS), 64),
            MatchMap(len(SUMS), 64, width=4096, depth=4),
            MatchMap(len(SUMS), 64, width=40, depth=2),
        )
    )
    for log in logs:
        for history in (exact, wide, narrow):
            history.update(log)
    every = np.arange(GRID.vectors)
    np.testing.assert_allclose(wide.sums(), exact.sums(), rtol=1e-9, atol=1e-9)
    assert np.array_equal(wide.maps(every), exact.maps(every))
    assert np.all(narrow.sums() >= exact.sums() * (1 - 1e-9))
    assert not np.any(exact.maps(every) & ~narrow.maps(every))
    assert narrow.memory.nbytes < exact.memory.nbytes / 3
    read = History.from_bytes(narrow.to_bytes())
    assert read.to_bytes() == narrow.to_bytes()
    assert np.array_equal(read.sums(), narrow.sums())


def test_the_edges_as_a_matrix() -> None:
    pytest.importorskip("scipy", reason="SciPy is optional")
    history = learned()
    assert history.edges is not None
    matrix = history.edges.matrix()
    assert matrix.shape == (GRID.vectors, GRID.vectors)
    rows, columns, weights = history.edges.triples()
    assert matrix.sum() == pytest.approx(weights.sum())
    assert matrix[[rows[5]], [columns[5]]] == weights[5]
