"""Match points of matches that may be taken back: the changes of all pushes add up to those of the exact result."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.matches.grouping import point_changes
from tests.random_automata import few_matches, random_automaton, random_rows
from tests.random_cases import Case
from tests.runtime.test_revisions import ENGINES, LETTERS, arriving, refused, table
from tests.test_random import drawn

CHUNKS = 4


def added_up(changes: Iterable[acep.Point]) -> dict[Any, int]:
    """The number of matches of each key, match point and error."""
    found: Counter[Any] = Counter()
    for one in changes:
        assert one.change
        found[str(sorted(one.key.items())), one.point, one.best] += one.change
    return {place: many for place, many in found.items() if many}


def pushed(matcher: acep.Matcher, pushes: list[Any]) -> tuple[list[acep.Point], int, int]:
    """All changes of a stream, how many matches were given, and how many of them less those taken back."""
    changes, given, net = list[acep.Point](), 0, 0
    for rows in [*pushes, None]:
        found = matcher.finish() if rows is None else matcher.push(rows)
        points = found.points()
        assert len({(str(one.key), one.point, one.best) for one in points}) == len(points)
        assert [one.point for one in points] == sorted(one.point for one in points)
        assert sum(one.change or 0 for one in points) == found.count() == sum(match.op for match in found)
        changes += points
        given += len(found)
        net += int(found.count())
    return changes, given, net


def same(changes: list[acep.Point], exact: acep.Matches) -> None:
    """Compare the sum of all changes with the matches and the match points of the exact result."""
    total = added_up(changes)
    wanted = Counter((str(sorted(m.key.items())), m.end, m.error) for m in exact)
    assert total == wanted
    best: dict[Any, Any] = {}
    for key, point, error in total:
        best[key, point] = min(error, best.get((key, point), error))
    assert best == {(str(sorted(p.key.items())), p.point): p.best for p in exact.points()}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_changes_of_all_pushes_are_the_points_of_the_exact_result(
    chunk: int, engine: str, cases: Callable[[int], int]
) -> None:
    each, back, several = max(30, cases(50)), 0, 0
    for seed in range(chunk * each, (chunk + 1) * each):
        rng = Random(seed)
        if rng.random() < 0.2:
            automaton = random_automaton(rng)
            rows = few_matches(automaton, random_rows(rng, 25))
            case, query = Case(seed, False, automaton.query.text, {}, rows, {}), automaton.query
        else:
            case = drawn(seed)
            query = case.query()
        if refused(query):
            continue
        stream = arriving(case.events, rng, ops=rng.random() < 0.8, lateness=rng.choice((5, 20)), by=8, most=3)
        options = {name: column for name, column in case.stream.items() if name != "id"} | {"id": "number"}
        asked = options | {"lateness": stream.lateness, "speculation": rng.choice((3, "inf", "inf")), "op": "op"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", acep.DataWarning)
            matcher = acep.Matcher(query, engine=engine, **asked)
            changes, given, net = pushed(matcher, [table(rows) for rows in stream.pushes])
            exact = acep.match(stream.table(), query, engine=engine, **options)
        same(changes, exact)
        assert net == len(exact)
        back += given > net
        several += len({one.best for one in changes}) > 1
    assert back > 2
    assert several or chunk


@pytest.mark.parametrize("engine", ENGINES)
def test_a_point_whose_matches_stay_as_many_is_left_out(engine: str) -> None:
    matcher = acep.Matcher(acep.regex("ab", within=10), id="id", op="op", lateness=50, speculation="inf", engine=engine)
    rows = {"ts": [1, 5], "type": ["a", "b"], "id": [1, 2], "op": [1, 1]}
    assert matcher.push(rows).points() == [acep.Point({}, 5, 0, change=1)]
    moved = matcher.push({"ts": [1, 2], "type": ["a", "a"], "id": [1, 3], "op": [-1, 1]})
    assert [m.op for m in moved] == [-1, 1]
    assert moved.points() == []
    assert str(matcher.push({"ts": [5], "type": ["b"], "id": [2], "op": [-1]}).points()) == (
        "1 match point\n  match point 5  best=0  change=-1"
    )


def test_points_without_speculation_have_no_change() -> None:
    found = acep.Matcher(LETTERS, lateness=1).push({"ts": [1, 2, 9], "type": ["a", "b", "x"]})
    assert found.points() == [acep.Point({}, 2, 0)]
    assert found.points()[0].change is None


def test_changes_of_columns_and_of_records_are_the_same() -> None:
    matcher = acep.Matcher(acep.parse("PATTERN SEQ(a x, b y) WHERE [k] WITHIN 9"), lateness=50, speculation="inf")
    rows = pa.table({"ts": [1, 2, 3, 4], "type": list("aabb"), "k": ["u", "v", "u", "v"]})
    found = matcher.push(rows).found
    assert point_changes(found) == point_changes(list(found)) != []
