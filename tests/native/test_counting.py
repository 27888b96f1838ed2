"""Counts of matches: exact at any size, in any window, after restarts. That they are those of the reference runtime is
a test of every engine (tests/native/test_every_engine.py)."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

import acep
from tests.native.harness import ANY, Run, letters, pieces, plan_of, session_of, take, whole

pytest.importorskip("acep.native._native")

SUBSETS = f"PATTERN SEQ(a+ x[]) WHERE {ANY}"


def total(text: str, word: str) -> int:
    """How many matches a stream of one-letter types has."""
    plan = plan_of(text, table := letters(word))
    (number,) = Run(lambda: session_of(plan, "count")).all(pieces(whole(plan, table), 64)).found
    return int(number)


@pytest.mark.parametrize("engine", ["count", "points", "bundles", "ends"])
def test_large_numbers_are_in_the_state(engine: str) -> None:
    plan = plan_of(f"{SUBSETS} WITHIN 150", table := letters("a" * 200))
    exact, run = (Run(lambda: session_of(plan, engine)) for _ in range(2))
    for part in pieces(whole(plan, table), 9):
        run.push(part)
        run.restart()
    assert run.finish().found == exact.all(pieces(whole(plan, table), 9)).found


@pytest.mark.parametrize("many", [10, 61, 62, 63, 64, 65, 127, 128, 129, 200, 300])
def test_counts_of_any_size_are_exact(many: int) -> None:
    assert total(SUBSETS, "a" * many) == 2**many - 1
    assert total(f"{SUBSETS} WITHIN {many - 1}", "a" * many) == 2**many - 1


@pytest.mark.parametrize("window", [1, 5, 62, 70, 130])
@pytest.mark.parametrize("unit", ["ticks", "events"])
def test_large_counts_in_a_sliding_window(window: int, unit: str) -> None:
    # Of n events with one a tick: the subsets that span at most `window`, by their first event.
    many = 400
    within = f"{window + 1} EVENTS" if unit == "events" else str(window)
    expected = sum(2 ** min(window, many - 1 - first) for first in range(many))
    assert total(f"{SUBSETS} WITHIN {within}", "a" * many) == expected


@pytest.mark.parametrize(("within", "points"), [("5", [5]), ("4", []), ("6 EVENTS", [5]), ("5 EVENTS", [])])
def test_a_match_that_is_as_long_as_the_window_is_a_point(within: str, points: list[int]) -> None:
    query = f"PATTERN SEQ(a x, b y) WHERE {ANY} WITHIN {within}"
    matches = acep.match(letters("accccb"), query, output="points", counts=False)
    assert [match.point for match in matches] == points


def test_counts_are_small_numbers_again_after_a_burst() -> None:
    table = letters("a" * 100 + "ab" * 3000, ts=[0] * 100 + list(range(1000, 7000)))
    plan = plan_of(f"PATTERN SEQ(a+ x[], b y) WHERE {ANY} WITHIN 20", table)
    session = session_of(plan, "ends")
    assert take(session, session.push(whole(plan, table)), last=False)[-1].matches == 2**10 - 1
    assert session.take_counts(0, last=True).matches.dtype == np.int64


def test_errors_are_counted_apart() -> None:
    plan = plan_of(
        f"PATTERN SEQ(a x, b y, c z) WHERE {ANY}", table := letters("a" * 100 + "b" * 100 + "c" * 100), errors=1
    )
    session = session_of(plan, "count")
    session.push(whole(plan, table))
    assert dict(session._session.count_totals(0)) == {0: 100**3, 1: 3 * 100**2}


def test_sequences_of_one_type_are_binomial() -> None:
    assert total(f"PATTERN SEQ(a x, a y, a z, a w) WHERE {ANY}", "a" * 300) == comb(300, 4)
