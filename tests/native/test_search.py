"""The search engine keeps events and no partial matches, and looks for those of a match from its last one back
(docs/internals/search.md)."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.native.session import NativeSession
from acep.plan import searching
from acep.plan.assume import assumed_plan
from acep.plan.choice import choose
from tests.case_counts import CaseCounts
from tests.complaints import case_text, fail_if_wrong_on_rows
from tests.native.harness import ANY, compare, letters, plan_of, push_all, session_of, take, whole

pytest.importorskip("acep.native._native")

CONDITIONS = (
    "b.x > a.x", "b.x < a.x - 1", "c.x > b.x + 2", "c.x >= a.x", "c.x <= b.x", "2 * a.x < c.x", "c.x > 0 - 2 * b.x",
    "b.y < a.y - 0.5", "c.y > 1.5 * a.y", "c.y < b.y + 1", "a.y >= c.y", "b.x <> a.x", "b.y = a.y", "c.x = a.x",
    "c.x = b.x", "c.s = a.s", "b.s <> a.s", "c.s = b.s", "abs(c.x - a.x) < 2", "abs(b.y - a.y) <= 0.5",
    "a.x + b.x < c.x", "c.s LIKE 'u%'", "b.s < c.s", "count(b) > 0", "c.x BETWEEN a.x AND b.x",
)  # fmt: skip
SHAPES = (
    "A a, B b, C c", "A a, A b, A c", "A a, ANY b, C c", "A a, B b, C c, A d", "ANY a, ANY b, ANY c, ANY d",
    "A a, (B b | D d), C c", "{A a, B b}, C c", "A a, B? b, C c", "A a, B b, C c, D d, A e",
)  # fmt: skip
NUMBERS = [float("nan"), float("inf"), -0.0, 0.0, 1e308, None]
FAR = [2**62, -(2**62), 2**63 - 1, -(2**63), None]


def drawn_query(rng: Random) -> tuple[str, int]:
    """A query with a window of time whose matches have few forms, and its error budget."""
    conditions = rng.sample(CONDITIONS, rng.choice((1, 2, 3, 4)))
    keyed = ["[k]"] if rng.random() < 0.4 else []
    window = rng.choice((5, 12, 30))
    text = f"PATTERN SEQ({rng.choice(SHAPES)}) WHERE {' AND '.join(keyed + conditions)} WITHIN {window}"
    return text, rng.choice((0, 0, 1, 2))


def drawn(rng: Random, n: int) -> pa.Table:
    """A random stream of A to D with numbers of which some are odd."""
    xs = [rng.choice(FAR) if rng.random() < 0.05 else rng.randrange(8) for _ in range(n)]
    ys = [rng.choice(NUMBERS) if rng.random() < 0.08 else rng.randrange(12) / 4 for _ in range(n)]
    columns = {"x": pa.array(xs, pa.int64()), "y": pa.array(ys, pa.float64()), "k": rng.choices((1, 2), k=n)}
    times = np.cumsum(rng.choices((0, 1, 2), k=n)).tolist()
    return letters(rng.choices("ABCD", k=n), ts=times, s=rng.choices(("u", "uv", "w", None), k=n), **columns)


SCHEMA = drawn(Random(0), 40).schema


def test_random_queries_give_the_points_of_the_reference_runtime(cases: CaseCounts) -> None:
    """In batches, after restarts, in lanes, and with a change to partial matches after each 16 events."""
    seen = Counter[str]()
    for seed in range(cases(600)):
        rng = Random(f"search {seed}")
        text, errors = drawn_query(rng)
        plan = plan_of(text, drawn(Random(0), 40), errors=errors)
        seen["searched"] += searching.reason_against(plan) is None
        if searching.reason_against(plan) is not None:
            continue

        def complaint(rows: list[Any], seed: int = seed, plan: Any = plan) -> str | None:
            batch = whole(plan, pa.Table.from_pylist(rows, SCHEMA))
            try:
                session = compare(plan, batch, ["search", "dominance"], Random(seed))
            except AssertionError as error:
                return str(error)
            seen["points"] += session.counts(0).matches
            return None

        show = case_text("search", text, SCHEMA, errors=errors)
        fail_if_wrong_on_rows(drawn(rng, rng.randrange(5, 60)).to_pylist(), f"# seed {seed}", complaint, show)
    cases.expect(seen, "searched")
    cases.expect(seen, "points")


@pytest.mark.parametrize(
    ("text", "errors", "reason"),
    [
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { b.x > a.x } WITHIN 9", 0, "the strategy decides"),
        ("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9 EVENTS", 0, "not one of time"),
        ("PATTERN SEQ(A a, B b) WHERE b.x > a.x", 0, "not one of time"),
        ("PATTERN SEQ(A a, ~D d, B b) WHERE b.x > a.x WITHIN 9", 0, "negations"),
        ("PATTERN SEQ(A a, B+ b[]) WHERE b[i].x > a.x WITHIN 9", 0, "no small number of forms"),
        ("PATTERN {A a, B b, C c, D d, A e} WHERE b.x > a.x WITHIN 9", 0, "no small number of forms"),
        ("PATTERN SEQ(A a, B b, C c, D d, A e, B f, C g) WHERE b.x > a.x WITHIN 9", 4, "no small number of forms"),
        ("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9 HAVING count(a) > 0", 0, "HAVING"),
    ],
)
def test_why_a_plan_is_not_searched_for(text: str, errors: int, reason: str) -> None:
    plan = assumed_plan(acep.parse(text, errors=errors))
    assert reason in str(searching.reason_against(plan))
    assert choose(plan, "points").base != "search"


def paths_of(text: str, errors: int = 0) -> list[str]:
    """The order of each path, and what finds the events."""
    paths = NativeSession([assumed_plan(acep.parse(text, errors=errors))], ["search"]).search_paths(0)
    shown = []
    for path in paths:
        steps = [f"{s.variable}({', '.join([*s.equal, *(f'~{name}' for name in s.near)])})" for s in path.steps]
        shown.append(" ".join([f"{path.error}:", path.last, *steps]))
    return shown


def test_the_order_of_a_search() -> None:
    where = f"WHERE {ANY}(a, b, c, d)"
    turns = (
        f"PATTERN SEQ(A a, A b, A c, A d) {where} {{ b.p = a.t AND c.p = a.p AND d.p = b.p AND d.x > a.x }} WITHIN 9"
    )
    assert paths_of(turns) == ["0: d b(p) a(t) c(p)"]
    rising = f"PATTERN SEQ(A a, A b, A c, A d) {where} {{ b.x > a.x AND c.x > b.x AND d.x > c.x }} WITHIN 9"
    assert paths_of(rising) == ["0: d c() b() a()"]
    swing = f"PATTERN SEQ(A a, A b, A c, A d) {where} {{ abs(c.x - a.x) < 2 AND abs(d.x - b.x) < 1 }} WITHIN 9"
    assert paths_of(swing) == ["0: d b(~x) c() a(~x)"]
    missing = "PATTERN SEQ(A a, (B b | C c), D d) WHERE d.x = a.x WITHIN 9"
    assert paths_of(missing, errors=1) == [
        "0: d a(x) b()", "0: d a(x) c()", "1: b a()", "1: c a()", "1: d a(x)", "1: d b()", "1: d c()",
    ]  # fmt: skip


RARE = f"PATTERN SEQ(A a, B b, C c, D d) WHERE {ANY}(a, b, c, d) {{ [k] AND d.x = b.x AND c.y > a.y }} WITHIN 1000"


def stream(n: int, *, last: float = 0.01, k: int = 1) -> pa.Table:
    rng = np.random.default_rng(3)
    kinds = rng.choice(list("ABCD"), n, p=[(1 - last) / 3] * 3 + [last])
    return letters(kinds.tolist(), x=rng.integers(0, 9, n), y=rng.random(n), k=rng.integers(0, k, n))


def work_of(text: str, table: pa.Table, ways: tuple[int, int] = (0, 0), engine: str = "search") -> tuple[Any, int]:
    plan = plan_of(text, table)
    session = session_of(plan, engine)
    session._session.choose_search_ways(*ways)
    found = take(session, push_all(session, [whole(plan, table)]))
    return found, session.counts(0).touches


def test_where_last_events_are_rare_little_is_looked_at() -> None:
    table = stream(20_000)
    points, touches = work_of(RARE, table)
    same, all_touches = work_of(RARE, table, engine="dominance")
    assert points == same
    assert len(points) > 100
    assert 20 * touches < all_touches


def test_work_grows_as_the_stream() -> None:
    few, many = (work_of(RARE, stream(n))[1] for n in (10_000, 40_000))
    assert many < 5 * few


def test_a_walk_passes_over_rows_by_the_order_of_their_values() -> None:
    """Each `c` looks for a `b` that is less by far, and that one for an `a` that is more: hardly any row is."""
    text = f"PATTERN SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) {{ b.y < a.y - 0.98 AND c.y > b.y + 0.5 }} WITHIN 1000"
    table = stream(6_000, last=0)
    points, touches = work_of(text, table, (1, 0))
    assert points == work_of(text, table, engine="dominance")[0]
    assert len(points) > 0
    assert touches < 100 * len(table), "of windows of a thousand events"


DEAR = f"PATTERN SEQ(A a, B b, C c, D d) WHERE {ANY}(a, b, c, d) {{ a.x + b.x + c.x + d.x > 27 }} WITHIN 400"


def test_where_a_search_costs_more_partial_matches_take_its_place() -> None:
    table = stream(1_000, last=0.2)
    points, touches = work_of(DEAR, table)
    same, all_touches = work_of(DEAR, table, engine="dominance")
    assert points == same
    assert len(points) > 50
    assert touches < 2 * all_touches + 2 * (1 << 17), "a search is given up, or left, after so many rows"
    assert 4 * touches < work_of(DEAR, table, (1, 0))[1], "of a search all along"


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        *((text, [0, -(2**63), 5]) for text in ("a.x - 5 < c.x", "a.x * 3 < c.x", "3 * a.x <= c.x", "c.x > a.x - 1")),
        *((text, [9, 2**63 - 1, 5]) for text in ("a.x + 5 > c.x", "a.x * 3 > c.x")),
    ],
)
def test_a_sum_that_is_too_large_is_null(condition: str, numbers: list[int]) -> None:
    """A walk must not take what fails for a great number to fail for a greater one."""
    table = letters(list("AAC"), x=numbers)
    query = f"PATTERN SEQ(A a, C c) WHERE {ANY}(a, c) {{ {condition} }} WITHIN 9"
    assert len(acep.match(table, query, output="points")) == 1
    assert len(acep.match(table, query, output="matches")) == 1


def test_two_values_of_one_event_that_equal_one_of_another_are_equal() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE lower(b.s) = a.s AND upper(b.s) = a.s WITHIN 9"
    assert len(acep.match(letters(list("AB"), s=["a", "A"]), query, output="points")) == 0
    assert len(acep.match(letters(list("AB"), s=["1", "1"]), query, output="points")) == 1


@pytest.mark.parametrize(
    "conditions",
    [
        "b.x = a.x AND a.y > b.y + 2 AND c.y > b.y - 2",
        "a.y > b.y + 2 AND c.y > b.y - 2",
        "a.y + b.y + c.y > 4",
        "abs(a.y - b.y) < 0.00001 AND c.y > b.y - 2",
    ],
)
def test_steps_past_other_rows_are_limited(conditions: str) -> None:
    """For each `b` the rows of `a` after it would be passed: a hundred million steps for the one `c`."""
    kinds = ["A"] + ["B"] * 10_000 + ["A"] * 10_000 + ["C"]
    table = letters(kinds, x=[1] * len(kinds), y=np.random.default_rng(1).random(len(kinds)))
    plan = plan_of(f"PATTERN SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) {{ {conditions} }} WITHIN 1000000", table)
    session = session_of(plan, "search", "dominance")
    returned = session.push(whole(plan, table))
    assert take(session, returned, 0) == take(session, returned, 1)
    assert session.counts(0).touches < 1_000_000
