"""Matches some at a time, and no more of them than a limit."""

from __future__ import annotations

from typing import Any

import pytest

import acep
from acep.errors import QueryError
from tests.random_cases import random_case

PLAIN = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) { %s } WITHIN 25"
TESTS = ("[k]", "a[i].x >= a[i-1].x AND [k]", "b.x > a[1].x AND [k]")


def stream(events: int) -> dict[str, list[Any]]:
    types = ["AAB"[n * n % 11 % 3] for n in range(events)]
    return {
        "ts": [*range(events)],
        "type": types,
        "k": [n % 3 for n in range(events)],
        "x": [n * 7 % 5 for n in range(events)],
    }


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_limit_gives_some_of_the_matches_the_same_each_time(test: str, engine: str) -> None:
    query, events = acep.parse(PLAIN % test), stream(50)
    every = [*acep.match(events, query, engine=engine)]
    assert len(every) > 100
    for limit in (0, 1, 7, len(every) - 1, len(every), len(every) + 1):
        some = acep.match(events, query, engine=engine, limit=limit)
        assert len(some) == min(limit, len(every))
        assert len({str(one) for one in some}) == len(some)
        assert {str(one) for one in some} <= {str(one) for one in every}
        assert [*acep.match(events, query, engine=engine, limit=limit)] == [*some]


def test_blocks_are_what_push_gives(cases: Any) -> None:
    found = 0
    for seed in range(3, 3 + cases(20)):  # the first of these has matches, however few cases there are
        case = random_case(seed)
        table, query = case.table(), case.query()
        names = {"id": "id", **case.stream} if case.stream.get("id") else case.stream
        for engine in ("auto", "reference"):
            whole, parts = acep.Matcher(query, engine=engine, **names), acep.Matcher(query, engine=engine, **names)
            table = table.sort_by([("ts", "ascending"), ("seq", "ascending")]) if names.get("seq") else table
            given = [*whole.push(table), *whole.finish()]
            blocks = [one for some in parts.blocks(table) for one in some]
            blocks += [one for some in parts.finish_blocks() for one in some]
            assert sorted(map(str, blocks)) == sorted(map(str, given))
            found += len(given)
    assert found


@pytest.mark.parametrize("limit", [-1, True, 1.5, "3"])
def test_what_is_no_limit_is_refused(limit: Any) -> None:
    with pytest.raises(QueryError, match="limit="):
        acep.match(stream(5), acep.parse(PLAIN % "[k]"), limit=limit)


def test_a_limit_is_for_matches() -> None:
    with pytest.raises(QueryError, match="limit= is for matches"):
        acep.match(stream(5), acep.parse(PLAIN % "[k]"), limit=3, output="points")
