"""Definition 4 of the 2016 paper on its running example, worked out by hand: a(b|c)db, w = 5, k = 2, c1 d2 a3 e4 b5."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import acep
from acep.learning.history.graph import History
from acep.learning.history.sums import SUMS
from acep.learning.trajectories.match_vectors import Grid
from acep.plan.compile import compile_query
from acep.plan.schema import Kind, Schema
from tests.learning.slow import SlowHistory
from tests.learning.streams import Logged

SCHEMA = Schema((("ts", Kind.INT), ("type", Kind.STRING)))
PLAN = compile_query(acep.regex("a(b|c)db", within=5, errors=2), SCHEMA)
GRID = Grid(len(PLAN.arcs.states), 3, span=5)
STREAM = [("c", 1), ("d", 2), ("a", 3), ("e", 4), ("b", 5)]
# (letter bound last, first of that name; remaining bin, error, since bin) of each node, by age: 8 bins of 5 ticks are
# 6, 5, 4, 2, 1, 0 for ages 0 to 5, and the bounds of the time since are 0, 0 and 1.
C = [("c", r, 1, s) for r, s in ((6, 2), (5, 3), (4, 3), (2, 3), (1, 3), (0, 3))]
C_D = [("d", r, 1, s) for r, s in ((5, 2), (4, 3), (2, 3), (1, 3), (0, 3))]
D = [("d", r, 2, s) for r, s in ((6, 2), (5, 3), (4, 3), (2, 3), (1, 3), (0, 3))]
A = [("a", r, 0, s) for r, s in ((6, 2), (5, 3), (4, 3), (2, 3), (1, 3), (0, 3))]
A_B = [("b", r, 0, s) for r, s in ((4, 2), (2, 3), (1, 3), (0, 3))]
B = [("b", r, 1, s) for r, s in ((6, 2), (5, 3), (4, 3), (2, 3), (1, 3), (0, 3))]

Place = tuple[str, int, int, int]


def place(vector: int) -> Place:
    """A vector as Definition 4 writes it: state (by its letter), remaining w, err, time since last."""
    state, error, remaining, since, _ = (int(part) for part in GRID.parts(vector))
    return PLAN.arcs.states[state].var or "", remaining, error, since


@pytest.fixture(scope="module")
def history() -> History:
    learned = History(GRID, fingerprint=PLAN.fingerprint)
    assert learned.update(Logged(PLAN).run(STREAM)) == 6
    return learned


def test_the_vectors_and_their_counts(history: History) -> None:
    visited = history.visited()
    counts = history.sums(visited)[:, SUMS.index("visits")]
    found = {place(v): count for v, count in zip(visited.tolist(), counts.tolist(), strict=True)}
    assert found == Counter([*C, *C_D, *D, *A, *A_B, *B])


def test_the_one_bundle(history: History) -> None:
    """Match points are 2 (c1 d2) and 5, which are within the window of each other."""
    assert history.bundles.tolist() == [0, *[-1] * 63]
    assert history.points[0] == 2


def test_the_edges(history: History) -> None:
    assert history.edges is not None
    found = {(place(a), place(b)): w for a, b, w in zip(*(e.tolist() for e in history.edges.triples()), strict=True)}
    waits = [pair for trajectory in (C, C_D, D, A, A_B, B) for pair in pairwise(trajectory)]
    # c1 goes on with d2 at age 1, and a3 with b5 at age 2.
    assert found == Counter([*waits, (C[1], C_D[0]), (A[2], A_B[0])])


def test_what_led_to_the_bundle_directly(history: History) -> None:
    """c1 d2 (a and b are missing); at 5 c1 b, c1 d2 b and d2 b; and a3 b as its first and as its last b."""
    found = {place(v): w for v, _, w in zip(*(e.tolist() for e in history.direct.triples()), strict=True)}
    assert found == {C[1]: 1, C[4]: 1, C_D[3]: 1, D[3]: 1, A[2]: 2}


def test_the_match_maps(history: History) -> None:
    """A run sets the bit at every vector that it visited by waiting, and at none that came after it."""
    visited = history.visited()
    found = {place(v) for v in visited[history.maps(visited)[:, 0]].tolist()}
    assert found == {*C[:5], *C_D[:4], *D[:4], *A[:3]}
    reached = history.sums(visited)[:, SUMS.index("reached")] > 0
    assert np.array_equal(reached, history.maps(visited)[:, 0])


@pytest.mark.parametrize(
    ("pattern", "strategy"),
    [("a(b|c)db", "skip_till_any_match"), ("a(b|c)+d", "skip_till_any_match"), ("a(b|c)+d", "skip_till_next_match")],
)
def test_lives_of_the_reference_engine(pattern: str, strategy: str) -> None:
    plan = compile_query(acep.regex(pattern, within=7, errors=1, strategy=strategy), SCHEMA)
    grid = Grid(len(plan.arcs.states), 2, span=7)
    rng = np.random.default_rng(1)
    stream = [(str(rng.choice(list("abcde"))), ts) for ts in np.sort(rng.integers(0, 80, 60)).tolist()]
    trajectories = Logged(plan).run(stream)
    history = History(grid, targets="points", ring=1000)
    history.update(trajectories)
    numbered = type(history.targets)(0).number_targets(trajectories.found)[1]
    plain = SlowHistory(grid, type(trajectories)(trajectories.made, trajectories.ended, numbered))
    visited = np.array(sorted(plain.sums))
    wanted = np.array([[plain.sums[v][name] for name in SUMS] for v in visited.tolist()])
    np.testing.assert_allclose(history.sums(visited), wanted, atol=1e-9)
    assert history.sums()[:, SUMS.index("reached")].sum() > 0
    if strategy == "skip_till_any_match":
        everything = {m.end for m in acep.match(_frame(stream), plan.query)}
        assert everything == set(trajectories.found.when.tolist())


def _frame(stream: list[tuple[str, int]]) -> object:
    import pyarrow as pa

    return pa.table({"ts": [ts for _, ts in stream], "type": [kind for kind, _ in stream]})
