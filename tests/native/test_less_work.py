"""The native core leaves out work that cannot change an answer: it finds partial matches by equalities and bands, makes
none that later events cannot end, and looks for expired ones only now and then (docs/internals/less_work.md)."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.native import session as native_session
from tests.case_counts import CaseCounts
from tests.complaints import case_text, fail_if_wrong_on_rows
from tests.native.harness import ANY, NEXT, compare, engines_of, letters, plan_of, session_of, take, whole

pytest.importorskip("acep.native._native")

BANDS = [
    "abs(b.x - a.x) < 2 AND abs(c.x - b.x) <= 1",
    "abs(c.x - a.x) <= 1",
    "abs(c.y - a.y) < 0.5 AND b.y <> a.y",
    "abs(a.y - c.y) <= 1.5 AND abs(c.x - b.x) < 2 AND c.x = a.x",
    "abs(b.y - a.y) < 1e-9 AND abs(c.y - b.y) < 1e300",
    "abs(b.x - a.x) <= 0 AND abs(c.x - a.x) < 0.5",
    "abs(b.x - a.x) < 2.5 AND abs(c.x - a.x) < 0.5",
    "abs(c.x - a.x) < 4611686018427387904 AND abs(c.y - b.y) < 2",
    "b.x = a.x AND abs(c.y - a.y) < 1 AND abs(c.x - b.x) < 1",
]
QUERIES = [
    *(f"PATTERN SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) {{ {bands} }} WITHIN 12" for bands in BANDS),
    f"PATTERN SEQ(A a, B b, C c) WHERE {NEXT}(a, b, c) {{ abs(c.x - a.x) <= 1 }} WITHIN 12",
    f"PATTERN SEQ(A a, B b, C c, D d) WHERE {NEXT}(a, b, c, d) {{ abs(c.y - a.y) < 1 AND d.x = b.x }} WITHIN 20",
    f"PATTERN SEQ(A a, B b, C c, D d) WHERE {ANY}(a, b, c, d) {{ d.x = b.x AND abs(d.y - a.y) < 1 }} WITHIN 14",
    f"PATTERN SEQ(A a, (B b | C c), D d) WHERE {ANY}(a, b, c, d) {{ abs(d.x - a.x) < 1 AND d.y = b.y }} WITHIN 14",
    f"PATTERN SEQ(A a, B+ b[], C c) WHERE {ANY}(a, b[], c) {{ abs(b[i].x - b[i-1].x) < 2 AND c.x = a.x }} WITHIN 8",
    f"PATTERN SEQ(A a, B* b[], C c) WHERE {ANY}(a, b[], c) {{ b[i].x = a.x AND abs(c.y - a.y) < 1 }} WITHIN 8",
    f"PATTERN SEQ(A a, ~D d, B b, C c) WHERE {ANY}(a, b, c) {{ abs(d.x - a.x) < 2 AND abs(c.x - a.x) < 1 }} WITHIN 12",
    "PATTERN SEQ({A a, B b}, C c) WHERE abs(a.x - c.x) < 2 AND abs(b.y - a.y) < 1 WITHIN 12",
    "PATTERN SEQ(A a, A b, A c) WHERE [s] AND abs(b.x - a.x) < 2 AND abs(c.x - a.x) < 1 AND c.y >= b.y WITHIN 16",
]  # fmt: skip
ODD = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 5e-324, -1e308, 1e308, 2.0**53, 2.0**53 + 2, None]
FAR = [2**62, -(2**62), 2**63 - 1, -(2**63), 2**53, 2**53 + 1, None]


def drawn(rng: Random, n: int) -> pa.Table:
    """A random stream of A, B, C and D with numbers that lie near each other, and some odd ones."""
    xs = [rng.choice(FAR) if rng.random() < 0.08 else rng.randrange(6) for _ in range(n)]
    ys = [rng.choice(ODD) if rng.random() < 0.1 else rng.randrange(12) / 4 for _ in range(n)]
    columns = {"x": pa.array(xs, pa.int64()), "y": pa.array(ys, pa.float64())}
    return letters(rng.choices("ABCD", k=n), ts=[i // 2 for i in range(n)], s=rng.choices("uv", k=n), **columns)


SCHEMA = drawn(Random(0), 8).schema


@pytest.mark.parametrize("errors", [0, 1])
@pytest.mark.parametrize("text", QUERIES)
def test_what_is_left_out_changes_no_answer(text: str, errors: int, cases: CaseCounts) -> None:
    plan, seen = plan_of(text, drawn(Random(0), 8), errors=errors), Counter[str]()
    show = case_text("less work", text, SCHEMA, errors=errors)
    for seed in range(cases(60)):
        rng = Random(seed)

        def complaint(rows: list[Any], seed: int = seed) -> str | None:
            batch = whole(plan, pa.Table.from_pylist(rows, SCHEMA))
            try:
                session = compare(plan, batch, engines_of(plan), Random(seed))
            except AssertionError as error:
                return str(error)
            seen["matches"] += session.counts(0).matches
            return None

        fail_if_wrong_on_rows(drawn(rng, rng.randrange(5, 45)).to_pylist(), f"# seed {seed}", complaint, show)
    cases.expect(seen, "matches")


@pytest.mark.parametrize("text", QUERIES)
def test_points_of_a_table_are_the_same_in_every_way(
    text: str, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Counter[str]()
    for seed in range(cases(20)):
        table = drawn(Random(seed), 60)
        answers: dict[str, list[Any]] = {}
        for ways in product((0, 1, 2), repeat=2):
            monkeypatch.setattr(native_session, "STRATEGIES", ways)
            points = acep.match(table, text, output="points")
            answers.setdefault(str([(p.key, p.point, p.best) for p in points]), []).append(ways)
            seen["points"] += len(points)
        assert len(answers) == 1, answers
    cases.expect(seen, "points")


# Counts of work


def work(text: str, table: pa.Table, engine: str = "nodes") -> tuple[int, int, int]:
    """How many partial matches an engine makes, how many it looks at, and how much it finds, in one batch."""
    plan = plan_of(text, table)
    session = session_of(plan, engine)
    session.is_last = True
    size = len(take(session, session.push(whole(plan, table))))
    counts = session.counts(0)
    return counts.nodes, counts.touches, size


def spread(n: int, seed: int = 3) -> dict[str, Any]:
    """Columns of numbers from 0 to 1,000."""
    draw = np.random.default_rng(seed)
    return {"x": draw.random(n) * 1000, "k": draw.integers(0, 1000, n)}


@pytest.mark.parametrize("engine", ["nodes", "dominance"])
def test_a_band_is_asked_only_of_partial_matches_that_are_near(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_session, "STRATEGIES", (0, 1))
    table = letters("AB" * 2000, **spread(4000))
    near = work("PATTERN SEQ(A a, B b) WHERE abs(b.x - a.x) < 1 WITHIN 1000", table, engine)
    far = work("PATTERN SEQ(A a, B b) WHERE abs(b.x - a.x) + 0 < 1 WITHIN 1000", table, engine)
    assert near[2] == far[2] > 0
    assert 50 * near[1] < far[1]


def test_no_partial_match_is_made_whose_last_event_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    table = letters("AB" * 990 + "CABCABCABCABCABCABCAB", **spread(2001))
    text = "PATTERN SEQ(A a, B b, C c) WHERE b.k > a.k AND {} WITHIN 4000"
    for condition in ("c.k = a.k", "abs(c.x - a.x) < 1"):
        made, _, size = work(text.format(condition), table)
        monkeypatch.setattr(native_session, "STRATEGIES", (0, 1))
        made_without, _, size_without = work(text.format(condition), table)
        monkeypatch.undo()
        assert size == size_without
        assert 10 * made < made_without, condition


def test_a_variable_between_may_rule_out_a_partial_match(monkeypatch: pytest.MonkeyPatch) -> None:
    table = letters("AB" * 900 + "C" * 4 + "D" * 4 + "AB" * 100, **spread(2008))
    text = "PATTERN SEQ(A a, B b, C c, D d) WHERE b.x > a.x AND c.k = a.k AND d.x > c.x WITHIN 4000"
    made, _, size = work(text, table)
    monkeypatch.setattr(native_session, "STRATEGIES", (0, 1))
    made_without, _, size_without = work(text, table)
    assert size == size_without
    assert 10 * made < made_without


def test_a_variable_that_may_be_missing_rules_nothing_out() -> None:
    table = letters("ABD", x=[1, 1, 1], k=[1, 1, 1])
    text = "PATTERN SEQ(A a, B b, C c, D d) WHERE c.k = a.k AND d.k = a.k WITHIN 9"
    assert [m.error for m in acep.match(table, acep.parse(text, errors=1))] == [1]
    assert len(acep.match(table, "PATTERN SEQ(A a, B b, C? c, D d) WHERE c.k = a.k AND d.k = a.k WITHIN 9")) == 1


@pytest.mark.long
def test_rare_takings_leave_the_other_partial_matches_where_they_are() -> None:
    """Skip till next match: each B ends one waiting A of hundreds, and the matches are those of the reference."""
    n = 500
    draw = np.random.default_rng(5)
    keys = np.concatenate([np.arange(n), draw.permutation(n)[:100]])
    table = letters("A" * n + "B" * 100 + "C" * 100, k=[*keys.tolist(), *keys[n:].tolist()])
    text = f"PATTERN SEQ(A a, B b, C c) WHERE {NEXT}(a, b, c) {{ b.k = a.k AND c.k = b.k }} WITHIN 9000"
    expected = [(p.point, p.best) for p in acep.match(table, text, engine="reference", output="points")]
    assert [(p.point, p.best) for p in acep.match(table, text, output="points")] == expected
    assert len(expected) == 100


# Where the known future pays


def test_the_future_is_not_tried_where_the_run_costs_less_than_to_know_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partial match is made for each tenth event, which takes less time than to enter all rows of the batch."""
    n = 40_000
    table = letters(["A" if i % 16 == 0 else "B" if i % 5 else "C" for i in range(n)], **spread(n))
    text = "PATTERN SEQ(A a, B b, C c) WHERE abs(b.x - a.x) < 1 AND abs(c.x - b.x) < 1 WITHIN 400"
    counts = []
    for number in range(3):
        monkeypatch.setattr(native_session, "STRATEGIES", (0, number))
        counts.append(work(text, table))
    usual, never, always = counts
    assert usual == never
    assert always[2] == never[2] > 0
    assert 2 * always[0] < never[0] < n // 8
