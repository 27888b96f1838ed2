"""The Thompson automaton spells what the pattern says: against a reading of the tree that knows no automaton."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from fractions import Fraction
from itertools import count

import pytest

import acep
from acep.automaton.thompson import Costs, Thompson, build, costs_of, pareto
from acep.errors import QueryError
from acep.pattern.tree import Choice, Component, EventSet, Negation, Node, Query, Repeat, Sequence
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_different
from tests.random_cases import random_case

LONGEST = 3
Word = tuple[str, ...]
Words = dict[Word, Fraction]


# What a pattern says ----------------------------------------------------------------------------


def words(query: Query) -> Words:
    """What may be bound: variables in order, at most ``LONGEST``, with the least weight of what is missing then."""
    weights = dict(query.weights)

    def kept(pairs: list[tuple[Word, Fraction]]) -> Words:
        found: Words = {}
        for word, cost in pairs:
            if len(word) <= LONGEST and cost <= query.errors and cost <= found.get(word, cost):
                found[word] = cost
        return found

    def after(one: Words, two: Words) -> Words:
        return kept([(a + b, c + d) for a, c in one.items() for b, d in two.items()])

    def mixed(one: Words, two: Words) -> Words:
        return kept([(w, c + d) for a, c in one.items() for b, d in two.items() for w in shuffles(a, b)])

    def of(node: Node) -> Words:
        match node:
            case Component(var=var):
                weight = weights.get(var, Fraction(1))
                return kept([((var,), Fraction(0)), *([((), weight)] if weight is not None else [])])
            case Negation():
                return {(): Fraction(0)}
            case Sequence(items=items):
                found: Words = {(): Fraction(0)}
                for item in items:
                    found = after(found, of(item))
                return found
            case Choice(items=items):
                return kept([pair for item in items for pair in of(item).items()])
            case EventSet(items=members):
                found = {(): Fraction(0)}
                for item in members:
                    found = mixed(found, of(item))
                return found
            case Repeat(item=item, low=low, high=high):
                one = of(item)
                bound = {word: cost for word, cost in one.items() if word}
                every: list[tuple[Word, Fraction]] = []
                so_far: Words = {(): Fraction(0)}
                for n in count():
                    missing = max(low - n, 0)
                    if not missing or () in one:
                        rest = missing * one[()] if missing else Fraction(0)
                        every += [(word, cost + rest) for word, cost in so_far.items()]
                    so_far = after(so_far, bound)
                    if not so_far or n == high:
                        return kept(every)
        raise AssertionError(node)

    return {word: cost for word, cost in of(query.pattern).items() if word}


def shuffles(one: Word, two: Word) -> list[Word]:
    if not one or not two:
        return [one + two]
    return [(one[0], *w) for w in shuffles(one[1:], two)] + [(two[0], *w) for w in shuffles(one, two[1:])]


# What the automaton spells ----------------------------------------------------------------------


def spelled(automaton: Thompson) -> Words:
    """The words of all walks through the automaton, no iteration of which is empty, with their least cost."""
    costs, last_of = automaton.costs, dict(automaton.copies)
    start = (automaton.start, (), frozenset[int]())
    least = {start: 0}
    todo = deque([start])
    while todo:
        at = todo.popleft()
        place, word, empty = at
        for edge in automaton.edges:
            if edge.source != place:
                continue
            cost = least[at] + (edge.gaps[0][0] if edge.kind == "missing" else 0)
            letter = edge.kind == "letter"
            if letter and len(word) == LONGEST:
                continue
            now = frozenset[int]() if letter else empty
            if edge.target in last_of and last_of[edge.target] in now:
                continue
            first = automaton.places[edge.target].copy_start
            if first is not None:
                now = now | {first}
            there = (edge.target, (*word, automaton.letters[edge.number].var) if letter else word, now)
            if cost <= costs.budget and cost < least.get(there, costs.budget + 1):
                least[there] = cost
                todo.append(there)
    found: Words = {}
    for (place, word, _), cost in least.items():
        if place == automaton.final and word:
            value = Fraction(cost, costs.scale)
            found[word] = min(value, found.get(word, value))
    return found


def test_random_patterns_are_spelled_as_they_read(cases: CaseCounts) -> None:
    for seed in range(cases(250)):
        fail_if_different(
            random_case(seed),
            lambda case: spelled(build(case.query())),
            lambda case: words(case.query()),
            ("automaton", "pattern"),
        )


@pytest.mark.parametrize(
    ("text", "options", "found"),
    [
        ("a(b|c)d", {}, {"abd": 0, "acd": 0}),
        ("ab", {"errors": 1}, {"ab": 0, "a": 1, "b": 1}),
        ("a{2}b", {"errors": 1}, {"aab": 0, "ab": 1, "aa": 1}),
        ("(ab)?c", {}, {"abc": 0, "c": 0}),
        ("(a?b?){1,2}", {}, dict.fromkeys(("a", "b", "aa", "ab", "ba", "bb", "aab", "aba", "abb", "bab"), 0)),
        ("ab", {"errors": 1, "weights": {"a": 2}}, {"ab": 0, "a": 1}),
        ("ab", {"errors": 1, "weights": {"a": None}}, {"ab": 0, "a": 1}),
        ("ab", {"errors": 0.5, "weights": {"a": 0.5}}, {"ab": 0, "b": Fraction(1, 2)}),
    ],
)
def test_words(text: str, options: dict[str, object], found: dict[str, object]) -> None:
    query = acep.regex(text, within=None, **options)  # type: ignore[arg-type]
    assert {"".join(word): cost for word, cost in spelled(build(query)).items()} == found
    assert {"".join(word): cost for word, cost in words(query).items()} == found


# What every automaton is ------------------------------------------------------------------------


def reachable(automaton: Thompson, start: int, *, backward: bool = False) -> set[int]:
    found, todo = {start}, [start]
    while todo:
        place = todo.pop()
        for edge in automaton.edges:
            here, there = (edge.target, edge.source) if backward else (edge.source, edge.target)
            if here == place and there not in found:
                found.add(there)
                todo.append(there)
    return found


def test_every_automaton_is_in_order(cases: Callable[[int], int]) -> None:
    for seed in range(cases(300)):
        query = random_case(seed).query()
        automaton = build(query)
        costs = automaton.costs
        every = set(range(len(automaton.places)))
        assert reachable(automaton, automaton.start) == every
        assert reachable(automaton, automaton.final, backward=True) >= {letter.target for letter in automaton.letters}
        drawn = [edge for edge in automaton.edges if edge.kind == "letter"]
        assert sorted(edge.number for edge in drawn) == list(range(len(automaton.letters)))
        for edge in automaton.edges:
            assert edge.kind in ("letter", "missing", "negation", "again", "empty")
            assert (edge.kind == "missing") == bool(edge.gaps)
            assert edge.gaps == pareto(edge.gaps, costs)
            if edge.kind == "missing":
                assert edge.gaps[0][0] > 0
            if edge.kind == "letter":
                letter = automaton.letters[edge.number]
                assert (letter.source, letter.target) == (edge.source, edge.target)
                assert {i for i, _ in letter.inside} >= set(automaton.places[edge.target].inside)
            if edge.kind == "negation":
                assert edge.number < len(automaton.negations)
            if edge.kind == "again":
                assert edge.number < len(automaton.groups)
        for last, copy in automaton.copies:
            assert any(place.copy_start == copy for place in automaton.places)
            assert last in every
        for negation in automaton.negations:
            assert negation.weight is None or negation.weight > 0
        assert automaton == build(query)


# Costs ------------------------------------------------------------------------------------------


def test_weights_are_scaled_to_integers() -> None:
    query = acep.regex("abc", within=5, errors=1.5, weights={"a": 0.5, "b": Fraction(1, 3), "c": None})
    costs = costs_of(query)
    assert costs == Costs(6, 9, (("a", 3), ("b", 2), ("c", None)), False)
    assert [costs.weight(v) for v in "abcx"] == [3, 2, None, 6]
    assert (costs.unscale(9), costs.unscale(12)) == (Fraction(3, 2), 2)


def test_gaps_that_others_outdo_are_left_out() -> None:
    costs = Costs(1, 3, (), True)
    assert pareto([(2, 1), (1, 1), (1, 0), (3, 4), (4, 9), (3, 3)], costs) == ((1, 1), (3, 4))
    assert pareto([], costs) == ()


def test_a_set_that_is_too_large_is_an_error() -> None:
    items = ", ".join(f"A{i} a{i}" for i in range(13))
    with pytest.raises(QueryError, match="a set of 13 items needs more than 4096 places"):
        build(acep.parse(f"PATTERN {{{items}}} WITHIN 5"))
