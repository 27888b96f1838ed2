"""Why there is no match: what is said of each way to fail, and that it agrees with the engine."""

from __future__ import annotations

from typing import Any

import pytest

import acep
from acep.errors import QueryError
from acep.events.tables import batch_of, key_to_input, schema_of, to_table
from acep.explain.closest_partial import Furthest, furthest
from acep.plan.compile import compile_query
from tests.corpus import Case, load_all
from tests.each_case import by_file

ROWS = {"ts": [1, 2, 3, 9], "type": ["a", "n", "b", "c"], "x": [5, 0, 4, None]}


def look(query: acep.Query, rows: Any = ROWS, key: tuple[Any, ...] = (), **names: Any) -> Furthest:
    table = to_table(rows)
    schema = schema_of(table.schema, **names)
    plan = compile_query(query, schema)
    return furthest(plan, batch_of(table, schema, plan.columns), key)


@pytest.mark.parametrize(
    ("text", "bound", "state", "failed", "ended"),
    [
        (
            "SEQ(a p, b q, c r) WITHIN 5",
            {"p": (0,), "q": (2,)},
            "r (type c) is needed next",
            [],
            "no event of type c came before the window closed (event 3 is too late)",
        ),
        (
            "SEQ(a p, b q, d r) WITHIN 50",
            {"p": (0,), "q": (2,)},
            "r (type d) is needed next",
            [],
            "no event of type d came before the stream ended",
        ),
        (
            "SEQ(a p, b q) WHERE q.x > p.x WITHIN 50",
            {"p": (0,)},
            "q (type b) is needed next",
            [(2, "q", "q.x > p.x does not hold (q.x = 4, p.x = 5)")],
            "the stream ended",
        ),
        (
            "SEQ(a p, c q) WHERE q.x > 1 WITHIN 50",
            {"p": (0,)},
            "q (type c) is needed next",
            [(3, "q", "q.x > 1 does not hold (q.x = null)")],
            "the stream ended",
        ),
        (
            "SEQ(a p, b q) WHERE p.x > 7 WITHIN 50",
            {},
            "nothing is bound: p (type a) is needed first",
            [(0, "p", "p.x > 7 does not hold (p.x = 5)")],
            "no event could begin a match",
        ),
        (
            "SEQ(z p, b q) WITHIN 50",
            {},
            "nothing is bound: p (type z) is needed first",
            [],
            "there is no event of type z",
        ),
        (
            "SEQ(a p, ~n m, b q) WITHIN 50",
            {"p": (0,), "q": (2,)},
            "everything is bound",
            [(1, "~m", "no such n may come there")],
            "a negation is broken",
        ),
        (
            "SEQ(~a m, n p) WITHIN 50",
            {"p": (1,)},
            "everything is bound",
            [(0, "~m", "no such a may come there")],
            "a negation is broken",
        ),
        (
            "SEQ(n p, ~c m) WITHIN 50",
            {"p": (1,)},
            "everything is bound",
            [(3, "~m", "no such c may come there")],
            "a negation is broken",
        ),
        (
            "SEQ(a p, b q) WITHIN 50 HAVING q.x > p.x",
            {"p": (0,), "q": (2,)},
            "everything is bound",
            [(2, "HAVING", "q.x > p.x does not hold (q.x = 4, p.x = 5)")],
            "HAVING leaves it out",
        ),
        (
            "SEQ(a p, b q) WHERE strict_contiguity() WITHIN 50",
            {"p": (0,)},
            "q (type b) is needed next",
            [],
            "strict contiguity: event 1 came in between",
        ),
        (
            "SEQ(a p, ANY+ q[]) WHERE count(q[]) > 3 WITHIN 50",
            {"p": (0,), "q": (1, 2, 3)},
            "everything is bound",
            [(3, "q", "count(q[]) > 3 does not hold (count(q[]) = 3)")],
            "it is no match",
        ),
        (
            "SEQ(a p, ANY+ q[], c r) WHERE skip_till_next_match() { q[i].x < 9 AND avg(q[].x) > 2 } WITHIN 50",
            {"p": (0,), "q": (1, 2)},
            "q or r (type c) is needed next",
            [
                (3, "r", "avg(q[].x) > 2 does not hold (avg(q[].x) = 2.0)"),
                (3, "q", "q[i].x < 9 does not hold (q[i].x = null)"),
            ],
            "the stream ended",
        ),
    ],
)
def test_what_is_said(
    text: str, bound: dict[str, tuple[int, ...]], state: str, failed: list[tuple[Any, str, str]], ended: str
) -> None:
    found = look(acep.parse(f"PATTERN {text}"))
    assert (found.events, found.matches) == (4, 0)
    assert (found.bound, found.state, found.ended) == (bound, state, ended)
    assert [(f.id, f.arc, f.reason) for f in found.failed] == failed


def test_what_may_be_missing_counts() -> None:
    found = look(acep.regex("abdz", within=50, errors=1))
    assert (found.matches, found.bound, found.state) == (0, {"a": (0,), "b": (2,)}, "d or z is needed next")
    found = look(acep.regex("anbz", within=50, errors=1))
    assert found.matches == 1
    found = look(
        acep.regex("ab", within=50, strategy="strict_contiguity", errors=1), {"ts": [1, 2, 3, 4], "type": list("axxb")}
    )
    assert found.matches > 0


def test_one_partition_is_looked_at() -> None:
    rows = {"ts": [1, 2, 3, 4], "type": list("abab"), "k": ["u", "v", "v", "u"]}
    query = acep.regex("ab", within=9, by="k")
    assert look(query, rows, ("u",)).matches == 1
    found = look(query, rows, ("v",))
    assert (found.events, found.matches, found.bound) == (2, 0, {"a": (2,)})
    found = look(acep.regex("ab", within=9, by="k", strategy="strict_contiguity"), rows, ("u",))
    assert (found.events, found.matches) == (2, 0)


def test_no_events() -> None:
    found = look(acep.regex("ab", within=9), {"ts": [], "type": []})
    assert (found.events, found.matches, found.ended) == (0, 0, "no event could begin a match")


def test_a_query_over_the_matches_of_others() -> None:
    query = acep.parse("FROM (PATTERN SEQ(a x, b y) WITHIN 5) AS T PATTERN SEQ(T x, T y) WITHIN 50")
    with pytest.raises(QueryError, match="cannot be explained"):
        look(query)


CASES = [case for case in load_all() if case.raises is None and "FROM" not in case.text.upper().split()]


@by_file(CASES)
def test_it_agrees_with_the_engine(case: Case) -> None:
    read = acep.regex if case.letters else acep.parse
    query: Any = read(case.text, **case.query_options)  # type: ignore[operator]
    table = case.table()
    schema = schema_of(table.schema, **case.stream_options)
    plan = compile_query(query, schema)
    batch = batch_of(table, schema, tuple(dict.fromkeys([*plan.columns, *plan.keys])))
    events = batch.events
    names = {schema.ts: events.ts, schema.type: events.types}
    columns = [names.get(name) or events.columns[name] for name in plan.keys]
    keys = dict.fromkeys(zip(*columns, strict=True)) if plan.keys else {(): None}
    matches = acep.match(table, query, **case.stream_options)
    for key in keys:
        if None in key:
            continue
        found = furthest(plan, batch, key)
        assert found.matches == sum(one.key == key for one in matches.found)
        named = key_to_input(key, plan.keys, schema)
        assert found.examples == tuple(one.bindings for one in matches if one.key == named)[:3]
        assert found.ended
        assert found.state or found.matches
        if not found.matches and found.state == "everything is bound":
            assert found.failed or "OVERLAP" in case.text, found
