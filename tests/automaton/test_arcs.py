"""The arcs against the Thompson automaton: the same words at the same cost, nothing that cannot be afforded."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from fractions import Fraction

import pytest

import acep
from acep.automaton.arcs import Arcs, compose
from acep.automaton.thompson import Gap, Thompson, build, pareto
from tests.automaton.test_thompson import LONGEST, Words, spelled
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_different
from tests.random_cases import random_case


def composed(text: str, **options: object) -> tuple[Arcs, Thompson]:
    automaton = build(acep.parse(text, **options))  # type: ignore[arg-type]
    return compose(automaton), automaton


def spelled_by_arcs(arcs: Arcs, automaton: Thompson) -> Words:
    """The words of all ways along the arcs to an end, with their least cost."""
    costs = automaton.costs
    found: Words = {}
    todo: list[tuple[int, tuple[str, ...], int]] = [(0, (), 0)]
    while todo:
        state, word, cost = todo.pop()
        for accept in arcs.states[state].accepts:
            value = Fraction(cost + accept.cost, costs.scale)
            if cost + accept.cost <= costs.budget and value <= found.get(word, value):
                found[word] = value
        if len(word) < LONGEST:
            onward = [(arc, cost + arc.weight) for arc in arcs.arcs[state]]
            todo += [(arc.target, (*word, arc.var), so_far) for arc, so_far in onward if so_far <= costs.budget]
    return found


def test_arcs_spell_what_the_thompson_automaton_spells(cases: CaseCounts) -> None:
    for seed in range(cases(250)):
        fail_if_different(
            random_case(seed),
            lambda case: spelled_by_arcs(compose(automaton := build(case.query())), automaton),
            lambda case: spelled(build(case.query())),
            ("arcs", "automaton"),
        )


def walks(automaton: Thompson, start: int) -> dict[int, set[Gap]]:
    """For each letter that may come next, what all walks to it miss."""
    found: dict[int, set[Gap]] = {}
    last_of = dict(automaton.copies)
    todo: list[tuple[int, Gap, frozenset[int]]] = [(start, (0, 0), frozenset())]
    seen = set(todo)
    while todo:
        place, (weight, letters), empty = todo.pop()
        for edge in automaton.edges:
            if edge.source != place:
                continue
            if edge.kind == "letter":
                found.setdefault(edge.number + 1, set()).add((weight, letters))
                continue
            if last_of.get(edge.target) in empty:
                continue
            first = automaton.places[edge.target].copy_start
            for more, skipped in edge.gaps or ((0, 0),):
                gap = (weight + more, letters + skipped)
                there = (edge.target, gap, empty if first is None else empty | {first})
                if gap[0] <= automaton.costs.budget and there not in seen:
                    seen.add(there)
                    todo.append(there)
    return found


def test_gaps_are_the_best_of_all_walks(cases: Callable[[int], int]) -> None:
    """What may be missing on an arc is what may be missing on some walk, and nothing better can be."""
    for seed in range(cases(150)):
        automaton = build(random_case(seed).query())
        arcs = compose(automaton)
        for number, here in enumerate(arcs.arcs):
            start = automaton.letters[number - 1].target if number else automaton.start
            found = walks(automaton, start)
            assert {arc.target for arc in here} == set(found)
            for target, gaps in found.items():
                merged = pareto([g for arc in here if arc.target == target for g in arc.gaps], automaton.costs)
                assert merged == pareto(gaps, automaton.costs), random_case(seed).text


def cheapest(arcs: Arcs) -> list[int | None]:
    """The least cost from each state to an end, walking back from the ends."""
    into: list[list[tuple[int, int]]] = [[] for _ in arcs.states]
    for here in arcs.arcs:
        for arc in here:
            into[arc.target].append((arc.source, min(weight for weight, _ in arc.gaps)))
    least: list[int | None] = [None] * len(arcs.states)
    todo = [(accept.cost, state.number) for state in arcs.states for accept in state.accepts]
    heapq.heapify(todo)
    while todo:
        cost, number = heapq.heappop(todo)
        if least[number] is None:
            least[number] = cost
            for source, weight in into[number]:
                heapq.heappush(todo, (cost + weight, source))
    return least


def test_every_arc_is_in_order(cases: Callable[[int], int]) -> None:
    for seed in range(cases(400)):
        automaton = build(random_case(seed).query())
        arcs = compose(automaton)
        assert arcs == compose(automaton)
        assert len(arcs.states) == len(arcs.arcs) == len(automaton.letters) + 1
        assert [state.cost_to_end for state in arcs.states] == cheapest(arcs)
        for state, here in zip(arcs.states, arcs.arcs, strict=True):
            assert len({(a.target, a.crossings, a.resets, a.closes) for a in here}) == len(here)
            assert [a.target for a in here] == sorted(a.target for a in here)
            for arc in here:
                letter = automaton.letters[arc.target - 1]
                assert (arc.source, arc.var, arc.types) == (state.number, letter.var, letter.types)
                assert arc.gaps
                assert arc.gaps == pareto(arc.gaps, automaton.costs)
                assert set(arc.resets) <= set(letter.groups)
                assert set(arc.closes) <= set(state.open)
                assert arc.weight == 0 or not arc.blocking
            for accept in state.accepts:
                assert 0 <= accept.cost <= automaton.costs.budget
                assert all(automaton.negations[c.negation].trailing for c in accept.crossings)
            is_open = bool(state.number) and any(o for _, o in automaton.letters[state.number - 1].inside)
            if not is_open:
                assert all(arc.blocking == (arc.weight == 0) for arc in here)
        assert not arcs.states[0].accepts
        assert all(automaton.negations[c.negation].leading for arc in arcs.arcs[0] for c in arc.crossings)


def blocking(text: str) -> list[str]:
    """Each arc as ``from>to``, with ``!`` where an event must not be ignored."""
    arcs, automaton = composed(text)
    names = ["^", *(letter.var for letter in automaton.letters)]
    return [f"{names[a.source]}>{names[a.target]}{'!' if a.blocking else ''}" for here in arcs.arcs for a in here]


def test_only_arcs_inside_the_innermost_open_repetition_block() -> None:
    assert blocking("PATTERN SEQ(A a, B b)") == ["^>a!", "a>b!"]
    assert blocking("PATTERN SEQ(A+ a[], B b)") == ["^>a!", "a>a!", "a>b"]
    assert blocking("PATTERN SEQ((A a, B b)+, C c)") == ["^>a!", "a>b!", "b>a!", "b>c"]
    assert blocking("PATTERN SEQ((A+ a[], B b)+, C c)") == ["^>a!", "a>a!", "a>b", "b>a!", "b>c"]
    assert blocking("PATTERN SEQ(A? a, B b)") == ["^>a!", "^>b!", "a>b!"]
    # A repetition at its maximum is closed.
    assert blocking("PATTERN SEQ(A{2} a[], B b)") == ["^>a!", "a>a!", "a>b!"]


def test_crossings_resets_and_closes() -> None:
    arcs, _ = composed("PATTERN SEQ((A a, ~B b, C+ c[])+, D d)")
    again, on = [arc for arc in arcs.arcs[2] if arc.var != "c"]
    assert (again.var, again.resets, again.closes) == ("a", (0,), ("c",))
    assert (on.var, on.resets, on.closes) == ("d", (), ("c",))
    (into,) = arcs.arcs[1]
    assert [c.negation for c in into.crossings] == [0]


def test_under_contiguity_heavier_gaps_with_more_letters_are_kept() -> None:
    arcs, _ = composed("PATTERN SEQ(A a, (B b | C c, D d), E e) WHERE strict_contiguity", errors=2)
    onward = {arc.target: arc.gaps for arc in arcs.arcs[1]}
    assert onward[5] == ((1, 1), (2, 2))


def test_under_contiguity_what_need_not_be_there_leaves_no_gap() -> None:
    arcs, _ = composed("PATTERN SEQ(A a, B? b, C{2,} c[]) WHERE strict_contiguity", errors=1)
    onward = {arc.target: arc.gaps for arc in arcs.arcs[1]}
    assert onward[3] == ((0, 0),)  # past b
    # A run that has missed one c goes on in copies of its own, which end with the second.
    (after,) = (arc for arc in arcs.arcs[1] if arc.gaps == ((1, 1),))
    assert arcs.states[after.target].accepts
    assert not arcs.arcs[after.target]


@pytest.mark.long
@pytest.mark.parametrize(
    ("items", "errors"),
    [
        ([f"A? a{i}" for i in range(900)], 0),
        pytest.param([f"A a{i}" for i in range(900)], 900, marks=pytest.mark.whole),
        pytest.param([f"(A a{i} | B b{i}, ~N n{i}, C c{i})" for i in range(30)], 60, marks=pytest.mark.whole),
    ],
    ids=["optional", "missing", "negations"],
)
def test_too_many_ways_are_said_and_not_walked(items: list[str], errors: int) -> None:
    automaton = build(acep.parse(f"PATTERN SEQ({', '.join(items)}) WITHIN 9", errors=errors))
    with pytest.raises(acep.QueryError, match="too many ways through the pattern"):
        compose(automaton)


def test_patterns_of_more_than_64_positions_are_walked() -> None:
    for items, errors in (([f"A? a{i}" for i in range(100)], 0), ([f"A a{i}" for i in range(100)], 100)):
        arcs, automaton = composed(f"PATTERN SEQ({', '.join(items)}) WITHIN 9", errors=errors)
        assert len(arcs.states) == len(automaton.letters) + 1 == 101
