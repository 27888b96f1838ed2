"""The merged engine and its compressed matches: steps, restarts, samples, sizes and refusals. That it finds the right
matches is a test of every engine, that memory is flat one of memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import acep
from acep.events.batch import Batch
from acep.native.session import NativeSession
from acep.plan.compile import Plan
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_different
from tests.native.harness import (
    ANY,
    enumerated,
    letters,
    pieces,
    plan_of,
    planned,
    reference,
    session_of,
    shown,
    stream,
    whole,
)
from tests.native.merged_cases import merged_case
from tests.random_cases import Case

pytest.importorskip("acep.native._native")

PAIRS = "PATTERN SEQ(A a, B b) WITHIN 9"


def merged_cases(seeds: range) -> Iterator[Case]:
    """Random cases. The names of texts are not kept for matches that are made later."""
    for seed in seeds:
        case = merged_case(seed)
        if case is not None and not case.stream:
            yield case


def plan_and_batch(case: Case) -> tuple[Plan, Batch]:
    plan = planned(case.query(), table := case.table())
    return plan, whole(plan, table)


def compressed(text: str, word: str) -> tuple[NativeSession, Any]:
    """A session after a stream of one-letter types, and its compressed matches."""
    session = session_of(plan := plan_of(text), "compressed")
    session.push(whole(plan, letters(word, k=[0] * len(word))))
    return session, session.take_compressed(0)


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_matches_that_are_made_step_by_step_are_the_same(most: int, cases: CaseCounts) -> None:
    seen = Counter[str]()

    def matches_in_steps(case: Case) -> list[str]:
        plan, batch = plan_and_batch(case)
        session = session_of(plan, "merged")
        core, matches = session._session, []
        core.set_lazy(0, True)
        for number, part in enumerate(pieces(batch, 5)):
            assert not session.push(part)[0]
            if (number + case.seed) % 3:  # at times it lags behind
                assert core.make_matches(0, most) <= most
                matches += session.columns(0, core.take(0))
        while core.make_matches(0, most) == most:
            matches += session.columns(0, core.take(0))
        matches += session.columns(0, core.take(0))
        seen["matches"] += bool(matches)
        return shown(matches)

    for case in merged_cases(range(cases(150))):
        fail_if_different(case, matches_in_steps, matches_of_reference, ("in steps", "reference"))
    cases.expect(seen, "matches")


def matches_of_reference(case: Case) -> list[str]:
    return shown(reference(*plan_and_batch(case)))


@pytest.mark.parametrize("engine", ["merged", "merged in steps", "compressed"])
def test_matching_goes_on_from_its_state(engine: str, cases: CaseCounts) -> None:
    seen = Counter[str]()

    def matches_with_restarts(case: Case) -> list[str]:
        plan, batch = plan_and_batch(case)
        session, matches = session_of(plan, engine.split(maxsplit=1)[0]), []
        core, lazy = session._session, " " in engine
        if lazy:
            core.set_lazy(0, True)
        fresh = core.dump()
        for part in pieces(batch, 3):
            matches += session.push(part)[0]
            if lazy:
                core.make_matches(0, 2)  # in the midst of them
                matches += session.columns(0, core.take(0))
            state = core.dump()
            core.load(fresh)
            core.load(state)
            second_state = core.dump()  # without links to what had been freed
            core.load(second_state)
            assert core.dump() == second_state
        while lazy and core.make_matches(0, 5):
            matches += session.columns(0, core.take(0))
        if engine == "compressed":
            matches += enumerated(session, session.take_compressed(0))
        seen["matches"] += bool(matches)
        return shown(matches)

    for case in merged_cases(range(cases(150))):
        fail_if_different(case, matches_with_restarts, matches_of_reference, ("with restarts", "reference"))
    cases.expect(seen, "matches")


# Compressed matches


def test_compressed_matches_are_counted_drawn_and_enumerated(cases: CaseCounts) -> None:
    seen = Counter[str]()

    def compressed_matches(case: Case) -> list[str]:
        plan, batch = plan_and_batch(case)
        session, graphs = session_of(plan, "compressed"), []
        for part in pieces(batch, 4):
            session.push(part)
            if case.seed % 3 == 0:
                graphs.append(session._session.take_compressed(0, False))
        graphs.append(session.take_compressed(0))
        matches = []
        for graph in graphs:
            matches_of_graph = enumerated(session, graph, case.seed % 4 + 1)
            check_graph(session, graph, matches_of_graph, case.seed)
            matches += matches_of_graph
        seen["matches of several graphs"] += len(graphs) > 1 and bool(matches)
        return shown(matches)

    for case in merged_cases(range(cases(300))):
        fail_if_different(case, compressed_matches, matches_of_reference, ("compressed", "reference"))
    cases.expect(seen, "matches of several graphs")


def check_graph(session: NativeSession, graph: Any, matches: list[Any], seed: int) -> None:
    """Assert that the matches of a graph are counted, in order, found by their number, and drawn."""
    assert graph.count() == len(matches)
    assert [m.end for m in matches] == sorted(m.end for m in matches)
    for first in range(len(matches) + 2):
        assert list(session.columns(0, graph.cursor(first).next(2))) == matches[first : first + 2]
    drawn = list(session.columns(0, graph.sample(9, seed)))
    assert len(drawn) == (9 if matches else 0)
    assert set(drawn) <= set(matches)


def test_more_matches_than_any_machine_could_list() -> None:
    n = 200
    session, graph = compressed(f"PATTERN SEQ(A+ a[]) WHERE {ANY}(a[])", "A" * n)

    def at(number: int, many: int) -> list[Any]:
        return list(session.columns(0, graph.cursor(number).next(many)))

    assert graph.count() == 2**n - 1
    assert graph.cells <= 2 * n
    # Those that end with an event come after all that end earlier.
    assert at(2 ** (n - 1) - 1, 1)[0].end == n - 1
    assert {m.end for m in at(2 ** (n - 1) - 3, 2)} == {n - 2}
    assert at(2**n - 2, 5) == at(2**n - 2, 1)
    assert at(2**n - 1, 5) == at(3**n, 5) == []
    assert at(12345, 7) == at(12340, 12)[5:]
    drawn, again, other = (list(session.columns(0, graph.sample(400, seed))) for seed in (7, 7, 8))
    assert again == drawn != other
    bound = Counter(event for match in drawn for event, _ in match.trail)
    assert set(bound) == set(range(n))
    # Each event is in about half of them: the bound is six standard deviations.
    assert all(abs(many - 200) < 60 for many in bound.values())


def test_every_match_is_as_likely_to_be_drawn() -> None:
    word = stream(200, types="ABCX")["type"].to_pylist()
    session, graph = compressed(f"PATTERN SEQ(A a, B+ b[], C c) WHERE {ANY}(a, b[], c) WITHIN 9", word)
    matches = enumerated(session, graph, 50)
    assert len(set(matches)) == len(matches) == graph.count() > 60
    seen = Counter(session.columns(0, graph.sample(200 * len(matches), 11)))
    freedom = len(matches) - 1
    square = sum((seen[m] - 200) ** 2 / 200 for m in matches)
    # The chi-square statistic has mean `freedom` and variance twice that.
    assert abs(square - freedom) < 4 * (2 * freedom) ** 0.5


def test_compressed_matches_grow_with_events_not_with_matches() -> None:
    text = f"PATTERN SEQ(A a, B b, C c, D d) WHERE {ANY}(a, b, c, d)"
    (_, half), (_, all_of_it) = compressed(text, "ABCD" * 100), compressed(text, "ABCD" * 200)
    assert all_of_it.count() > 14 * half.count()
    assert all_of_it.cells <= 2 * half.cells + 8
    assert all_of_it.bytes < 3 * half.bytes


def test_matches_that_were_taken_stay_when_the_stream_goes_on() -> None:
    session = session_of(plan := plan_of(f"PATTERN SEQ(A a, B b) WHERE {ANY}(a, b) WITHIN 10"), "compressed")
    sizes, graphs = [], []
    for part in range(40):
        session.push(whole(plan, letters("AAB" * 100, ts=range(300 * part, 300 * part + 300))))
        graphs.append(session._session.take_compressed(0, False))
        sizes.append(session._session.bytes)
    counts = [graph.count() for graph in graphs]
    assert counts[1:] == counts[1:2] * 39
    assert [len(enumerated(session, graph, 1000)) for graph in graphs] == counts
    assert sizes[-1] == sizes[3]  # nothing of what was taken is left


def test_nothing_is_left_after_the_last_time() -> None:
    session, graph = compressed(PAIRS, "A")
    assert graph.count() == 0
    (matches,) = session.push(whole(session.plans[0], letters("B", ts=[1])))
    assert enumerated(session, session.take_compressed(0)) == list(matches) == []


# Refusals


@pytest.mark.parametrize("engine", ["merged", "compressed", "count", "points"])
@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("SEQ(A a, B b) WHERE a.x < b.x WITHIN 9", 0),
        (f"SEQ(A+ a[], B b) WHERE {ANY}(a[], b) {{ a[i].x > a[i-1].x }} WITHIN 9", 0),
        ("SEQ(A a, ~B b, C c) WITHIN 9", 0),
        ("SEQ(A a, C c) WITHIN 9 HAVING a.x + c.x > 1", 0),
        ("SEQ(A a, B b) WHERE partition_contiguity(a, b) WITHIN 9", 1),
    ],
    ids=["predicate", "predicate in a repetition", "negation", "HAVING", "gaps that cost"],
)
def test_plans_with_ties_are_refused(text: str, errors: int, engine: str) -> None:
    with pytest.raises(ValueError, match="tie the events"):
        session_of(plan_of(f"PATTERN {text}", errors=errors), engine)


def test_a_pattern_that_is_too_ambiguous_is_refused() -> None:
    query = acep.regex("(a|b)*a" + "(a|b)" * 17, within=1000, strategy=ANY)
    session = session_of(plan := planned(query, table := letters("ab" * 40)), "merged")
    session._session.set_lazy(0, True)
    with pytest.raises(RuntimeError, match="65536"):
        session.push(whole(plan, table))


def test_arguments_out_of_range_are_refused() -> None:
    session, graph = compressed(PAIRS, "AB")
    with pytest.raises(ValueError, match="negative"):
        graph.cursor(-1)
    for wrong in (-1, 2**64, None):
        for call in (lambda n: graph.sample(n, 0), lambda n: graph.sample(1, n), lambda n: graph.cursor().next(n)):
            with pytest.raises(TypeError):
                call(wrong)
    with pytest.raises(TypeError):
        graph.cursor(None)
    with pytest.raises((ValueError, MemoryError)):
        graph.sample(2**62, 0)
    assert graph.count() == len(enumerated(session, graph, 4)) == 1
    with pytest.raises(ValueError, match="merged"):
        session._session.make_matches(0, 1)
    merged = session_of(session.plans[0], "merged")
    with pytest.raises(ValueError, match="compressed"):
        merged.take_compressed(0)
    with pytest.raises(IndexError):
        merged.take_compressed(1)
    with pytest.raises(ValueError, match="no counting engine"):
        merged.take_counts(0)
