"""Keys that had much utility travel first, and only where choosing them has brought more than chance."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from acep.overload.key_utility import CellUtility, share_of, threshold_of
from acep.overload.sampled_recall import tally_of
from acep.overload.unit_admission import ALL, CELLS

LENGTH = 100
EVENTS = np.full(CELLS, 50)


def fed(utilities: NDArray[np.float64], rounds: int, seed: int = 0) -> tuple[CellUtility, tuple[int, ...]]:
    """Feed micro-batches in which each cell has points by chance, and choose after each."""
    rng, now, seen = np.random.default_rng(seed), CellUtility.empty(), 0
    favoured: tuple[int, ...] = ()
    for _ in range(rounds):
        now = now.add_batch(EVENTS, rng.poisson(utilities * EVENTS), np.ones(CELLS))
        now = CellUtility.load(json.loads(json.dumps(now.dump())))
        seen += LENGTH
        now, chosen = now.choose(0.25, favoured, seen, LENGTH)
        favoured = favoured if chosen is None else chosen
    return now, favoured


def test_cells_of_much_utility_are_favoured() -> None:
    utilities = np.where(np.arange(CELLS) < 16, 0.5, 0.01)
    now, favoured = fed(utilities, 6)
    assert set(range(16)) <= set(favoured)
    threshold = threshold_of(0.25, favoured, now.events)
    assert share_of(threshold, favoured, now.events) == pytest.approx(0.25, abs=1e-6)
    found = np.minimum(threshold / ALL * np.where(np.isin(np.arange(CELLS), favoured), 64, 1), 1) @ utilities
    assert found > 0.7 * utilities.sum()


def test_where_all_have_the_same_utility_none_is_favoured() -> None:
    chosen = [fed(np.full(CELLS, 0.02), 12, seed=seed)[1] for seed in range(20)]
    assert sum(map(bool, chosen)) <= 2


def test_others_are_favoured_only_if_they_promise_much_more() -> None:
    now, favoured = fed(np.where(np.arange(CELLS) < 16, 0.5, 0.01), 6)
    for points, expected in ((np.where(np.arange(CELLS) < 16, 20, 1), None), (np.arange(CELLS) // 200 * 900, True)):
        later = now.add_batch(EVENTS, points, np.ones(CELLS))
        _, chosen = later.choose(0.25, favoured, (now.chosen or 0) + LENGTH, LENGTH)
        assert chosen is None if expected is None else chosen not in (None, favoured)


def test_no_choice_is_made_before_units_have_passed() -> None:
    now = CellUtility.empty().add_batch(EVENTS, EVENTS, np.ones(CELLS))
    assert now.choose(0.5, (), None, LENGTH) == (now, None)
    now, first = now.choose(0.5, (), 7, LENGTH)
    assert (now.chosen, first) == (7, None)
    assert now.choose(0.5, (), 7 + LENGTH - 1, LENGTH)[1] is None
    assert now.choose(0.5, (), 7 + LENGTH, LENGTH)[1] == ()


def test_what_was_carried_by_chance_stands_for_what_there_was() -> None:
    chances = np.where(np.arange(CELLS) < 10, 1.0, 0.25)
    now = CellUtility.empty().add_batch(EVENTS, EVENTS // 10, chances)
    assert now.since[0].tolist() == (EVENTS / chances).tolist()
    assert now.since[1].tolist() == (EVENTS // 10 / chances).tolist()


@pytest.mark.parametrize(
    "wrong", [{"before": [[1.0]]}, {"since": [[-1.0] * CELLS] * 2}, {"tried": [1.0]}, {"tried": [1.0, float("inf")]}]
)
def test_what_is_no_utility_is_refused(wrong: dict[str, object]) -> None:
    told = CellUtility.empty().add_batch(EVENTS, EVENTS, np.ones(CELLS)).dump()
    assert told is not None
    with pytest.raises((TypeError, ValueError), match=r"utility|unpack"):
        CellUtility.load(told | wrong)


def test_the_recall_of_favoured_keys_is_neither_too_high_nor_too_low() -> None:
    """Keys of which some are favoured: the mean of what is estimated is the mean of what was found."""
    rng, keys = np.random.default_rng(3), 3_000
    cells, points = rng.integers(0, CELLS, keys), rng.poisson(3, keys)
    points = np.where(cells < 40, 8 * points, points)
    chances = np.where(np.arange(CELLS) < 40, 0.8, 0.1)
    told, truth, inside = [], [], []
    for _ in range(200):
        kept = rng.random(keys) < chances[cells]
        counts = np.stack(
            [
                np.bincount(cells[kept], minlength=CELLS) * 5,
                np.bincount(cells[kept & (points > 0)], minlength=CELLS),
                np.bincount(cells[kept], points[kept], minlength=CELLS).astype(np.int64),
                np.bincount(cells[kept], points[kept] ** 2, minlength=CELLS).astype(np.int64),
            ]
        )
        estimate = tally_of(counts, chances, 5 * keys, 0.0).estimate()
        assert estimate is not None
        truth.append(points[kept].sum() / points.sum())
        told.append(estimate.recall)
        inside.append(estimate.low <= truth[-1] <= estimate.high)
    assert np.mean(told) == pytest.approx(np.mean(truth), abs=0.02)
    assert np.mean(inside) >= 0.85
