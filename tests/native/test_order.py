"""The order of the output from the native core is that from Python, whatever the ids; hostile arrays are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from acep.matches.found_columns import order_in_python
from tests.case_counts import CaseCounts

native = pytest.importorskip("acep.native._native")


def random_trails(seed: int) -> tuple[Any, ...]:
    """Up to 300 trails of ids near and far, of one length or several, mostly of few ends."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 300))
    far = [1, 3, 20, 1000, 2**40, 2**63][seed % 6]
    lengths = rng.integers(0, 5, size) if seed % 2 else np.full(size, 3)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = rng.integers(-far, far - 1, offsets[-1], endpoint=True)
    end = rng.integers(0, 3, size)
    codes = rng.integers(0, 3, offsets[-1]).astype(np.uint16)
    return (np.sort(end) if seed % 3 else end), offsets, ids, codes, rng.permutation(3).astype(np.uint16)


def test_the_kernel_gives_the_order_of_python(cases: CaseCounts) -> None:
    for seed in range(cases(300)):
        trails = random_trails(seed)
        given, python = native.output_order(*trails), order_in_python(*trails)
        assert (given is None) == (python is None)
        if given is not None:
            assert given.tolist() == python.tolist()  # type: ignore[union-attr]


def test_most_random_trails_are_out_of_order_and_some_are_not() -> None:
    n_moved = sum(order_in_python(*random_trails(seed)) is not None for seed in range(300))
    assert 200 < n_moved < 300


@pytest.mark.parametrize(
    ("place", "values", "message"),
    [
        (1, [0, 1], "offsets: one more"),
        (1, [1, 1, 2, 3], "offsets: not rising"),
        (1, [0, 2, 1, 3], "offsets: not rising"),
        (1, [0, 1, 2, 4], "offsets: not rising"),
        (1, [0, 1, 2, 2], "offsets: not rising"),
        (1, [0, -(2**63), 2**63 - 1, 3], "offsets: not rising"),
        (1, [], "offsets: one more"),
        (2, [5, 5], "vars: as many as ids"),
        (3, [0, 1], "vars: as many as ids"),
        (3, [0, 2, 0], "without a rank"),
        (4, [], "without a rank"),
    ],
)
def test_hostile_arguments_of_the_kernel(place: int, values: list[int], message: str) -> None:
    words, codes = np.int64, np.uint16
    trails: list[Any] = [
        np.zeros(3, words),
        np.arange(4),
        np.full(3, 5),
        np.array([1, 0, 1], codes),
        np.arange(2, dtype=codes),
    ]
    assert native.output_order(*trails).tolist() == [1, 0, 2]
    trails[place] = np.array(values, trails[place].dtype)
    with pytest.raises(ValueError, match=message):
        native.output_order(*trails)
