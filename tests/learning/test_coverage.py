"""Coverage is what it says, and greedy reaches what docs/explanation/choice.md proves, compared with all choices there
are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from math import e, exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep.learning.online.coverage import gains, missing, quotas, value
from tests.case_counts import CaseCounts

FRACTIONS = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0])


@st.composite
def instances(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """p[V, B], share[B], costs[V], live[P, V] and a budget, small enough to try all choices."""
    vectors, bundles, partitions = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    p = np.array(draw(st.lists(FRACTIONS, min_size=vectors * bundles, max_size=vectors * bundles)))
    share = np.array(draw(st.lists(st.sampled_from([0.0, 0.1, 1.0, 3.0]), min_size=bundles, max_size=bundles)))
    costs = np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 2.0, 7.0]), min_size=vectors, max_size=vectors)))
    size = partitions * vectors
    live = np.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))).reshape(partitions, vectors)
    return p.reshape(vectors, bundles), share, costs, live, draw(st.sampled_from([0.0, 1.0, 2.5, 4.0, 8.0]))


def best_of(p: np.ndarray, share: np.ndarray, costs: np.ndarray, live: np.ndarray, budget: float) -> float:
    """The most that any choice within the budget is worth."""
    choices = np.array(list(product(*(range(n + 1) for n in live.ravel().tolist())))).reshape(-1, *live.shape)
    fit = choices[(choices @ costs).sum(axis=1) <= budget]
    return max(value(p, share, counts) for counts in fit)


@given(instances())
def test_greedy_reaches_its_share_of_the_best(case: tuple[np.ndarray, ...]) -> None:
    p, share, costs, live, budget = case
    found, best = quotas(*case), best_of(*case)
    assert np.all((found.keep >= 0) & (found.keep <= live))
    assert found.cost == pytest.approx((found.keep @ costs).sum())
    assert found.cost <= budget
    assert found.value == pytest.approx(value(p, share, found.keep), abs=1e-9)
    assert found.value >= (1 - 1 / e) / 2 * best - 1e-9
    if budget and np.max(costs) < budget:
        assert found.value >= (1 - exp(np.max(costs) / budget - 1)) * best - 1e-9
    if np.all(costs == 1) and budget == int(budget):
        assert found.value >= (1 - 1 / e) * best - 1e-9


def test_each_node_kept_was_the_best_offer(cases: CaseCounts) -> None:
    """What is kept, taken in order of gain per cost: nothing that fitted offered more, and nothing is left that gains.

    The numbers are such that no two offers of a partition are equal, so that there is one order.
    """
    rng, seen = np.random.default_rng(9), Counter[str]()
    for _ in range(cases(300)):
        partitions, vectors, bundles = (int(n) for n in rng.integers(1, (4, 7, 6)))
        p = rng.random((vectors, bundles)) * (rng.random((vectors, bundles)) < 0.7)
        share, costs = rng.random(bundles), rng.uniform(0.5, 3.0, vectors)
        live, budget = rng.integers(0, 4, (partitions, vectors)), float(rng.uniform(1, 12))
        found, keep = quotas(p, share, costs, live, budget), np.zeros_like(live)
        if found.keep.sum() == 1:
            continue  # it may be the one that is worth more than all that greedy takes
        while True:
            fits = (keep < live) & (costs <= budget - (keep @ costs).sum())
            offers = np.where(fits, gains(p, share, missing(p, keep)) / costs, 0.0)
            if not np.any(keep < found.keep):
                break
            best = np.unravel_index(np.argmax(np.where(keep < found.keep, offers, -1.0)), keep.shape)
            assert offers[best] >= offers.max() - 1e-9
            keep[best] += 1
        assert offers.max() <= 1e-9
        seen["none or several kept"] += 1
    cases.expect(seen, "none or several kept")


@given(instances(), st.data())
def test_gains_are_differences_and_fall(case: tuple[np.ndarray, ...], data: st.DataObject) -> None:
    p, share, _, live, _ = case
    fewer = np.array([data.draw(st.integers(0, n)) for n in live.ravel().tolist()]).reshape(live.shape)
    now, later = gains(p, share, missing(p, fewer)), gains(p, share, missing(p, live))
    assert np.all(later <= now + 1e-12)
    assert np.all(later >= 0)
    for part, v in np.ndindex(live.shape):
        more = fewer.copy()
        more[part, v] += 1
        assert value(p, share, more) - value(p, share, fewer) == pytest.approx(now[part, v], abs=1e-12)


def test_the_value_is_the_mean_number_of_distinct_bundles(cases: Callable[[int], int]) -> None:
    rng = np.random.default_rng(5)
    p, counts, tries = rng.random((3, 4)) / 2, np.array([2, 0, 3]), cases(20_000)
    rows = np.repeat(p, counts, axis=0)
    found = (rng.random((tries, *rows.shape)) < rows).any(axis=1).sum(axis=1)
    assert abs(found.mean() - value(p, np.ones(4), counts)) < 5 * found.std() / tries**0.5


def test_alike_nodes_are_not_both_kept() -> None:
    """What yes-or-no by vector cannot do: one of each kind rather than two of the better one; partitions apart."""
    p = np.array([[0.9, 0.0], [0.0, 0.6]])
    found = quotas(p, np.ones(2), np.ones(2), np.array([[5, 5], [5, 0]]), 3)
    assert found.keep.tolist() == [[1, 1], [1, 0]]
    assert found.threshold == pytest.approx(0.6)
    assert found.probabilities(np.array([[5, 5], [5, 0]])).tolist() == [[0.2, 0.2], [0.2, 1.0]]


def test_a_node_that_finds_the_same_waits_for_one_that_finds_more() -> None:
    """The second best alone is worth least on top of the best: its gain is not that of the beginning."""
    p = np.array([[1.0, 0.0, 0.0], [0.9, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.4]])
    found = quotas(p, np.ones(3), np.ones(4), np.ones((1, 4), dtype=np.int64), 2)
    assert found.keep.tolist() == [[1, 0, 1, 0]]
    assert (found.value, found.threshold) == (1.5, 0.5)


def test_one_good_node_outweighs_many_cheap_ones() -> None:
    p = np.array([[0.02, 0.0], [0.0, 1.0]])
    found = quotas(p, np.ones(2), np.array([0.01, 1.0]), np.array([[1, 1]]), 1.0)
    assert found.keep.tolist() == [[0, 1]]
    assert (found.value, found.cost) == (1.0, 1.0)


def test_what_nobody_can_pay_is_not_kept(cases: Callable[[int], int]) -> None:
    """However the shares are rounded when they are added up."""
    rng = np.random.default_rng(8)
    for _ in range(cases(300)):
        partitions, bundles = int(rng.integers(1, 6)), int(rng.integers(1, 12))
        p, share = rng.random((2, bundles)), rng.choice([0.1, 0.3, 0.7, 3.0], size=bundles)
        for budget, live in ((0.5, 2), (0.0, 2), (9.0, 0)):
            found = quotas(p, share, np.ones(2), np.full((partitions, 2), live), budget)
            assert (found.keep.any(), found.cost, found.value) == (False, 0.0, 0.0)


def test_an_ample_budget_keeps_all_that_gain() -> None:
    found = quotas(np.array([[0.5], [0.0]]), np.ones(1), np.ones(2), np.array([[2, 3]]), 100)
    assert (found.keep.tolist(), found.threshold, found.value) == ([[2, 0]], 0.0, 0.75)


@pytest.mark.parametrize(
    "changed",
    [
        {"p": np.array([[1.1]])},
        {"p": np.array([[np.nan]])},
        {"p": np.ones((1, 2))},
        {"p": np.ones(1)},
        {"share": -np.ones(1)},
        {"share": np.array([np.inf])},
        {"costs": np.zeros(1)},
        {"costs": np.array([np.inf])},
        {"live": np.array([[-1]])},
        {"live": np.array([1])},
        {"budget": -1.0},
        {"budget": np.nan},
    ],
)
def test_what_makes_no_sense_is_refused(changed: dict[str, object]) -> None:
    usual = {
        "p": np.ones((1, 1)),
        "share": np.ones(1),
        "costs": np.ones(1),
        "live": np.ones((1, 1), int),
        "budget": 1.0,
    }
    assert quotas(**usual).value == 1
    with pytest.raises(ValueError, match=r"fit|not"):
        quotas(**usual | changed)
