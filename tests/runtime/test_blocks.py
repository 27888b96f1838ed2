"""Matches some at a time, and no more of them than a limit."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import QueryError
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_different
from tests.random_cases import Case, random_case

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


def pushed_by_text(case: Case, engine: str) -> list[str]:
    """Return the matches that push and finish give."""
    matcher, table = matcher_and_table(case, engine)
    return sorted(map(str, [*matcher.push(table), *matcher.finish()]))


def blocks_by_text(case: Case, engine: str) -> list[str]:
    """Return the matches in the blocks of a push and of the end."""
    matcher, table = matcher_and_table(case, engine)
    matches = [match for block in matcher.blocks(table) for match in block]
    matches += [match for block in matcher.finish_blocks() for match in block]
    return sorted(map(str, matches))


def matcher_and_table(case: Case, engine: str) -> tuple[acep.Matcher[Any], pa.Table]:
    """Return a matcher for a case, and its events in order."""
    names = {"id": "id", **case.stream} if case.stream.get("id") else case.stream
    order = [("ts", "ascending"), ("seq", "ascending")] if names.get("seq") else []
    return acep.Matcher(case.query(), engine=engine, **names), case.table().sort_by(order) if order else case.table()


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_blocks_are_what_push_gives(engine: str, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(20)):
        case = random_case(seed)
        names = ("blocks", "push")
        fail_if_different(case, lambda c: blocks_by_text(c, engine), lambda c: pushed_by_text(c, engine), names)
        seen["matches"] += len(pushed_by_text(case, engine))
    cases.expect(seen, "matches")


@pytest.mark.parametrize("limit", [-1, True, 1.5, "3"])
def test_what_is_no_limit_is_refused(limit: Any) -> None:
    with pytest.raises(QueryError, match="limit="):
        acep.match(stream(5), acep.parse(PLAIN % "[k]"), limit=limit)


def test_a_limit_is_for_matches() -> None:
    with pytest.raises(QueryError, match="limit= is for matches"):
        acep.match(stream(5), acep.parse(PLAIN % "[k]"), limit=3, output="points")
