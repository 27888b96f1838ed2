"""The native search for preferred matches gives what a slow one gives, in few steps; hostile arguments are refused."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.case_counts import CASES
from tests.native.ordered_cases import (
    ACCEPT,
    ROW,
    Case,
    expected,
    native_matches,
    random_case,
    search_of,
    start,
)

native = pytest.importorskip("acep.native._native")


def widened(case: Case) -> Case:
    """The same pattern with so many states that sets of them need several words."""
    return replace(case, states=[*case.states, *((ROW, 0, 0) for _ in range(70)), (ACCEPT, 0, 0)])


@pytest.mark.parametrize("seed", range(4))
def test_random_cases_as_the_slow_search(seed: int) -> None:
    rng = random.Random(seed)
    for number in range(max(600, CASES(4000))):
        case = random_case(rng)
        wanted = expected(case)
        native_case = widened(case) if rng.random() < 0.3 else case
        texts = native.Texts()
        search = search_of(native, texts, native_case, rng.choice((0, 700, 1 << 24)))
        for _ in range(rng.choice((1, 1, 2))):
            start(texts, search, native_case)
            assert native_matches(search, rng.choice((1, 3, 100))) == wanted, (seed, number, case)
