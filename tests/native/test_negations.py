"""Negations with more events, or more combinations of bound events, than the native core evaluates at once."""

from __future__ import annotations

import pytest

import acep
from tests.native.harness import letters

pytest.importorskip("acep.native._native")

MANY = 300  # the core evaluates 256 rows at once


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(("last", "matches"), [(5, 1), (6, 0)])
def test_the_last_of_many_events_may_break(last: int, matches: int, engine: str) -> None:
    events = letters(["A", *"N" * MANY, "B"], x=[5, *[0] * (MANY - 1), last, 0])
    query = f"PATTERN SEQ(A a, ~N n, B b) WHERE n.x > a.x WITHIN {2 * MANY}"
    assert len(acep.match(events, query, engine=engine)) == matches


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(("last", "matches"), [(1, 1), (0, 0)])
def test_of_many_combinations_the_last_may_not_hold(last: int, matches: int, engine: str) -> None:
    """Of 400 combinations of an A and a C, 399 are below the N in any case."""
    events = letters(["A"] * 20 + ["C"] * 20 + ["N", "B"], x=[*[0] * 19, 1, *[0] * 19, last, 2, 0])
    query = "PATTERN SEQ(A{20} a[], C{20} c[], ~N n, B b) WHERE skip_till_next_match { n.x > a.x + c.x } WITHIN 99"
    assert len(acep.match(events, query, engine=engine)) == matches
