"""The map of runs of neighbours: exact while there is room, within its bytes, its errors those of
docs/explanation/sketches.md."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acep.errors import SnapshotError
from acep.sketches.dense import DenseMemory
from acep.sketches.match_map import MatchMap
from acep.sketches.neighbour_map import NeighbourMap
from acep.sketches.protocol import Floats, Ints
from acep.storage.arrays import pack

STEP, SIZE = 3, 40
CELL = 2 * 2 + 2 * 4  # two borders of two bytes, two sums
TABLES = st.lists(
    st.tuples(st.integers(0, 4 * STEP * SIZE - 1), st.integers(0, 1000), st.integers(0, 9)), min_size=1, max_size=300
)


def ints(values) -> np.ndarray:
    return np.array(list(values), dtype=np.int64)


def made(cells: int, table: list[tuple[int, int, int]] | None = None) -> NeighbourMap:
    memory = NeighbourMap(2, 0, nbytes=cells * CELL, step=STEP, size=SIZE)
    for vector, *amounts in table or ():
        memory.add(ints([vector]), np.array([amounts], float))
    return memory


def columns(table: list[tuple[int, int, int]]) -> tuple[Ints, Floats]:
    return ints(v for v, _, _ in table), np.array([amounts for _, *amounts in table], float)


def groups(vectors: Ints) -> Ints:
    return vectors // (STEP * SIZE) * STEP + vectors % STEP


@given(TABLES)
def test_where_there_is_room_it_is_exact(table: list[tuple[int, int, int]]) -> None:
    memory, dense = made(300, table), DenseMemory(2, 0)
    dense.add(*columns(table))
    everything = np.arange(4 * STEP * SIZE)
    assert np.array_equal(memory.look(everything), dense.look(everything))


@given(TABLES, TABLES, st.integers(5, 40))
def test_the_bytes_are_never_exceeded(
    table: list[tuple[int, int, int]], more: list[tuple[int, int, int]], cells: int
) -> None:
    memory, other = made(cells), made(cells)
    for part, into in ((table, memory), (more, other)):
        for vector, *amounts in part:
            into.add(ints([vector]), np.array([amounts], float))
            assert into.nbytes <= cells * CELL
    memory.merge(other)
    assert memory.nbytes <= cells * CELL
    memory.add(ints([2**20]), np.ones((1, 2)))  # borders take twice as much
    assert memory.nbytes <= cells * CELL


@example([(3 * i, *((100, 100) if i < 10 else (i % 2, 1 - i % 2))) for i in range(40)], 20)  # much that is alike
@given(TABLES, st.integers(20, 60))
def test_no_error_is_larger_than_derived(table: list[tuple[int, int, int]], cells: int) -> None:
    """Of what was added at once: at most ``2 C / (k - a)`` of a sum, of any vector."""
    vectors, amounts = columns(table)
    memory, dense = made(cells), DenseMemory(2, 0)
    memory.add(vectors, amounts)
    dense.add(vectors, amounts)
    apart = len(np.unique(groups(vectors))) - 1
    everything = np.arange(4 * STEP * SIZE)
    errors = memory.look(everything) - dense.look(everything)
    assert errors.min() >= 0
    bound = 2 * 2 / (cells - apart) * amounts.sum(axis=0)
    assert np.all(errors[dense.vectors] <= bound * (1 + 1e-6))


def test_runs_stay_in_their_groups_as_long_as_there_are_cells_for_these() -> None:
    vectors = np.arange(2 * STEP * SIZE)
    memory = made(2 * STEP)
    memory.add(vectors, np.ones((len(vectors), 2)))
    assert (memory.look(vectors) == SIZE).all()
    memory = made(3)  # then in their blocks
    memory.add(vectors, np.ones((len(vectors), 2)))
    assert set(memory.look(vectors[: STEP * SIZE])[:, 0]) | set(memory.look(vectors[STEP * SIZE :])[:, 0]) <= {
        SIZE,
        2 * SIZE,
        3 * SIZE,
    }


def test_those_become_one_that_are_alike() -> None:
    """Of four vectors in a row with as much each, the second and third have the same ratio."""
    memory = NeighbourMap(2, 0, nbytes=3 * CELL, step=1, size=4)
    memory.add(np.arange(4), np.array([[9.0, 1.0], [5.0, 5.0], [5.0, 5.0], [1.0, 9.0]]))
    assert memory.look(np.arange(4)).tolist() == [[9.0, 1.0], [10.0, 10.0], [10.0, 10.0], [1.0, 9.0]]


def test_ratios_of_smooth_sums_are_told_where_hashes_mix_them() -> None:
    """The gain: what each of 7 states wins for what it pays, by 64 by 6 bins of time, in a tenth of the memory."""
    state, left, since = np.divmod(np.arange(7 * 64 * 6), 64 * 6)[0], np.arange(2688) // 6 % 64, np.arange(2688) % 6
    visits = 1000.0 * 3.0**-state * (1 + since)
    won = visits * 4.0 ** (state - 7) * (1 + left) / 64
    sums = np.stack([visits, won, visits * (2 + left / 8)], axis=1)
    dense = DenseMemory(3, 0)
    dense.add(np.arange(2688), sums)
    small = dense.nbytes // 10
    wrong = []
    for memory in (NeighbourMap(3, 0, nbytes=small, step=6, size=64), MatchMap.within(3, 0, nbytes=small)):
        memory.add(np.arange(2688), sums)
        assert memory.nbytes <= small
        found = memory.look(np.arange(2688))
        wrong.append(np.abs(np.log2(found[:, 1] / found[:, 2]) - np.log2(sums[:, 1] / sums[:, 2])).mean())
    assert wrong[0] < 0.1  # octaves
    assert wrong[1] > 2


def test_sums_are_rounded_up(cases: Callable[[int], int]) -> None:
    memory = NeighbourMap(1, 0, nbytes=100)
    tries = cases(500)
    for _ in range(tries):
        memory.add(ints([1]), np.array([[0.1]]))
        memory.scale(0.999)
    truth = 0.0
    for _ in range(tries):
        truth = (truth + 0.1) * 0.999
    assert truth <= memory.look(ints([1]))[0, 0] <= truth * (1 + 2 * tries * 2.0**-23)
    with pytest.raises(ValueError, match="single precision"):
        memory.add(ints([1]), np.array([[1e39]]))


def test_maps_that_do_not_fit_are_not_merged() -> None:
    memory = NeighbourMap(1, 4, nbytes=100, step=2, size=3)
    others = [
        NeighbourMap(1, 4, nbytes=101, step=2, size=3),
        NeighbourMap(1, 4, nbytes=100, step=3, size=3),
        NeighbourMap(1, 4, nbytes=100, step=2, size=4),
        NeighbourMap(1, 5, nbytes=100, step=2, size=3),
        NeighbourMap(2, 4, nbytes=100, step=2, size=3),
        DenseMemory(1, 4),
    ]
    for other in others:
        with pytest.raises(ValueError, match="merged with"):
            memory.merge(other)
    for numbers, told in (((-1, 1), "columns"), ((1, 2**17), "columns"), ((1, 64), "a cell takes 28")):
        with pytest.raises(ValueError, match=told):
            NeighbourMap(*numbers, nbytes=27)
    with pytest.raises(ValueError, match="groups"):
        NeighbourMap(1, 4, nbytes=100, step=0)


def test_content_that_no_map_can_have_is_told() -> None:
    numbers = {"columns": 1, "ring": 3, "nbytes": 32, "step": 1, "size": 1}
    words = np.ones((2, 1), np.uint64)
    arrays = {"low": ints([1, 4]), "high": ints([3, 4]), "sums": np.ones((2, 1), np.float32), "words": words}
    assert NeighbourMap.from_bytes(pack("neighbour-map", numbers, arrays)).nbytes == 32
    for changed in (
        {"nbytes": 31},
        {"nbytes": 20},
        {"step": 0},
        {"size": 2**40},
        {"columns": 2},
        {"ring": 65},
        {"low": ints([1, 5])},
        {"high": ints([4, 4])},
        {"high": ints([3, 2**40])},
        {"low": ints([4, 1])},
        {"sums": np.ones((2, 1))},
        {"sums": -np.ones((2, 1), np.float32)},
        {"sums": np.full((2, 1), np.nan, np.float32)},
        {"words": np.full((2, 1), 8, np.uint64)},
    ):
        told = numbers | {k: v for k, v in changed.items() if k in numbers}
        held = arrays | {k: v for k, v in changed.items() if k in arrays}
        with pytest.raises(SnapshotError):
            NeighbourMap.from_bytes(pack("neighbour-map", told, held))
