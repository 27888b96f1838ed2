"""Match vectors: the numbering, the bins, back-off, and what a waiting node passes through."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep.learning.trajectories.match_vectors import LEVELS, Grid

SPANS = st.one_of(st.integers(0, 40), st.integers(0, 2**60))
GRIDS = st.builds(
    Grid,
    st.integers(1, 5),
    st.integers(1, 4),
    SPANS,
    windows=st.integers(1, 12),
    waits=st.integers(1, 6),
    features=st.integers(1, 3),
)


@given(GRIDS)
def test_all_vectors_are_numbered_once(grid: Grid) -> None:
    every = np.arange(grid.vectors)
    parts = grid.parts(every)
    assert np.array_equal(grid.join_parts(parts), every)
    places = np.unravel_index(every, grid.shape)
    assert all(np.array_equal(one, two) for one, two in zip(places, parts, strict=True))


@given(GRIDS, st.data())
def test_bins_are_those_of_the_page(grid: Grid, data: st.DataObject) -> None:
    assert grid.span is not None
    span, windows = grid.span, grid.windows
    age = data.draw(st.integers(0, span))
    assert grid.remaining(7, 7 + age) == (span - age) * windows // (span + 1)
    bounds = [span // 4**n for n in range(grid.waits - 1, 0, -1)]
    assert grid.since_bins(7, 7 + age) == sum(age >= bound for bound in bounds)
    usual = Grid(1, 1, span)
    assert usual.since_bins(7, 7 + age) == sum(age >= bound for bound in (span // 64, span // 16, span // 4))


@given(GRIDS, st.data())
def test_coarser_vectors_are_unions_of_finer_ones(grid: Grid, data: st.DataObject) -> None:
    vectors = np.array(data.draw(st.lists(st.integers(0, grid.vectors - 1), min_size=1, max_size=30)))
    assert np.array_equal(grid.coarse(vectors, 0), vectors)
    for level in range(1, LEVELS):
        coarse = grid.coarse(vectors, level)
        assert np.array_equal(grid.coarse(grid.coarse(vectors, level - 1), level), coarse)
        assert np.all(coarse <= vectors)
    assert np.array_equal(grid.parts(coarse).state, grid.parts(vectors).state)
    assert np.array_equal(coarse, grid.parts(vectors).state * (grid.vectors // grid.states))


@given(GRIDS, st.data())
def test_a_waiting_node_passes_through_what_it_is_at_each_time(grid: Grid, data: st.DataObject) -> None:
    assert grid.span is not None
    trajectories = data.draw(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, grid.span), st.integers(0, grid.span)), max_size=6)
    )
    start = np.array([a for a, _, _ in trajectories], np.int64)
    made, until = (start + np.array([f(b, c) for _, b, c in trajectories], np.int64) for f in (min, max))
    state = np.array([i % grid.states for i in range(len(trajectories))], np.int64)
    zero = np.zeros(len(trajectories), np.int64)
    stays = grid.passage(state, zero, start, made, until, zero)
    assert stays.first[0] == 0
    assert stays.first[-1] == len(stays.vector)
    for i in range(len(trajectories)):
        mine = slice(stays.first[i], stays.first[i + 1])
        assert set(stays.row[mine].tolist()) == {i}
        begin, end = stays.begin[mine].tolist(), stays.end[mine].tolist()
        assert begin == [made[i], *end[:-1]]
        assert end[-1] == until[i]
        vectors = stays.vector[mine].tolist()
        assert all(one != two for one, two in pairwise(vectors))
        # A vector holds from its begin to just before the next one.
        for at, number in enumerate(vectors):
            last = end[at] - 1 if at + 1 < len(vectors) else end[at]
            some = {begin[at], last, data.draw(st.integers(begin[at], last))}
            for now in some:
                assert grid.number(state[i], 0, start[i], made[i], now) == number
                assert stays.stay_at(np.array([i]), np.array([now])) == stays.first[i] + at


def test_without_a_window_there_are_no_bins_of_time() -> None:
    grid = Grid(3, 2, None, 1, 1, features=2)
    assert grid.vectors == 3 * 2 * 2
    assert grid.number(2, 1, 0, 5, 10**9, 1) == 11
    one = np.array([1])
    stays = grid.passage(one, one, one, one, one + 10**9, one)
    assert stays.vector.tolist() == [7]


def test_high_errors_are_of_the_last_level() -> None:
    grid = Grid(2, 3, 10)
    assert grid.parts(grid.number(1, [0, 2, 3, 99], 0, 0, 0)).error.tolist() == [0, 2, 2, 2]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Grid(0, 1, 5),
        lambda: Grid(1, 1, -1),
        lambda: Grid(1, 1, 5, windows=0),
        lambda: Grid(2**20, 2**10, 5),
        lambda: Grid(2, 1, 5).number(2, 0, 0, 0, 0),
        lambda: Grid(2, 1, 5).number(0, -1, 0, 0, 0),
        lambda: Grid(2, 1, 5).number(0, 0, 0, 0, 0, feature=1),
        lambda: Grid(2, 1, 5).parts(64),
        lambda: Grid(2, 1, 5).coarse(1, 5),
    ],
)
def test_what_is_not_of_the_grid(make: object) -> None:
    with pytest.raises(ValueError, match=r"no grid|too many|is not from|levels of back-off"):
        make()  # type: ignore[operator]
