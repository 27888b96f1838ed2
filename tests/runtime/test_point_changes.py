"""Match points of matches that may be taken back: the changes of all pushes add up to those of the exact result."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.matches.grouping import point_changes
from acep.pattern.tree import Query
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong, fail_if_wrong_on_rows
from tests.random_automata import few_matches, random_automaton, random_rows
from tests.random_cases import Case
from tests.runtime.test_revisions import ENGINES, LETTERS, Row, arriving, refused, table
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


def sums_that_differ(changes: list[acep.Point], exact: acep.Matches) -> str:
    """Compare the sum of all changes with the matches and the match points of the exact result."""
    total = added_up(changes)
    wanted = Counter((str(sorted(m.key.items())), m.end, m.error) for m in exact)
    best: dict[Any, Any] = {}
    for key, point, error in total:
        best[key, point] = min(error, best.get((key, point), error))
    best_wanted = {(str(sorted(p.key.items())), p.point): p.best for p in exact.points()}
    return difference(total, dict(wanted), ("added up", "exact")) or difference(
        best, best_wanted, ("added up", "exact")
    )


def complaint_of(query: Query, case: Case, engine: str, seen: Counter[str]) -> str:
    """Let the events of a case arrive in an order of its seed, and compare the changes with the exact result."""
    rng = Random(f"{case.seed} arrival")
    stream = arriving(case.events, rng, ops=rng.random() < 0.8, lateness=rng.choice((5, 20)), by=8, most=3)
    options = {name: column for name, column in case.stream.items() if name != "id"} | {"id": "number"}
    asked = options | {"lateness": stream.lateness, "speculation": rng.choice((3, "inf", "inf")), "op": "op"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", acep.DataWarning)
        matcher = acep.Matcher(query, engine=engine, **asked)
        changes, match_count, net = pushed(matcher, [table(rows) for rows in stream.pushes])
        exact = acep.match(stream.table(), query, engine=engine, **options)
    seen["matches are taken back"] += match_count > net
    seen["several errors"] += len({change.best for change in changes}) > 1
    if net != len(exact):
        return f"{net} matches, not {len(exact)}"
    return sums_that_differ(changes, exact)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_changes_of_all_pushes_are_the_points_of_the_exact_result(
    chunk: int, engine: str, cases: CaseCounts
) -> None:
    seen, each = Counter[str](), cases(50)
    for seed in range(chunk * each, (chunk + 1) * each):
        case = drawn(seed)
        if not refused(case.query()):
            fail_if_wrong(case, lambda smaller: complaint_of(smaller.query(), smaller, engine, seen))
    cases.expect(seen, "matches are taken back", least=3)
    if not chunk:
        cases.expect(seen, "several errors")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_holds_for_hand_written_automata(engine: str, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(40)):
        rng = Random(seed)
        automaton = random_automaton(rng)

        def complain(rows: list[Row], automaton: acep.Automaton = automaton, seed: int = seed) -> str:
            case = Case(seed, False, automaton.query.text, {}, rows)
            return complaint_of(automaton.query, case, engine, seen)

        rows = few_matches(automaton, random_rows(rng, 25))
        fail_if_wrong_on_rows(rows, f"seed {seed}, engine {engine}\n{automaton.query.text}", complain)
    cases.expect(seen, "matches are taken back")


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
    assert list(point_changes(found)) == list(point_changes(list(found))) != []
