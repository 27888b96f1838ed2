"""Engines against the oracle on random queries and streams, and what must hold whatever the query.

Ten thousand cases by default; ``ACEP_CASES`` multiplies that (``ACEP_CASES=0.1`` tries a thousand). A failing case is
shrunk and printed in the form of a case of ``tests/corpus/``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.pattern.tree import Negation, Output, Query, Strategy
from acep.pattern.walk import nodes
from tests.oracle import TooManyStepsError, oracle
from tests.random_cases import Case, random_case, shrink

ENGINES = ("reference", "auto")
"""The engines that must agree with the oracle."""

CHUNKS = 100
LIMIT = 5_000
"""How many steps the oracle may take before a stream is cut."""

SEEDS = st.integers(min_value=10**6, max_value=2 * 10**6)


def told(matches: Iterable[Any]) -> list[tuple[Any, ...]]:
    """All that is said of matches, in order."""
    return [
        (
            m.key,
            m.start,
            m.end,
            Fraction(str(m.error)),
            dict(sorted(m.bindings.items())),
            m.bundle,
            m.values,
        )
        for m in matches
    ]


def found(case: Case, engine: str) -> list[tuple[Any, ...]]:
    return told(acep.match(case.table(), case.query(), engine=engine, **case.stream))


def judged(case: Case) -> list[tuple[Any, ...]]:
    return told(oracle(case.query(), case.events, limit=LIMIT, **case.stream))


def manageable(case: Case) -> tuple[Case, list[tuple[Any, ...]]]:
    """The case with as much of its stream as the oracle can do, and what the oracle says."""
    while True:
        try:
            return case, judged(case)
        except TooManyStepsError:
            case = replace(case, events=case.events[:-2])


def drawn(seed: int) -> Case:
    """The case of a seed, of a size that engines can do as well."""
    return manageable(random_case(seed))[0]


def complaint(case: Case, engine: str) -> str:
    """What to say of a case on which an engine and the oracle differ."""

    def differs(smaller: Case) -> bool:
        try:
            return found(smaller, engine) != judged(smaller)
        except TooManyStepsError:
            return False

    small = shrink(case, differs)
    ours, theirs = found(small, engine), judged(small)
    lines = [small.paste(), ""]
    lines += [f"oracle only: {shown(one)}" for one in theirs if one not in ours]
    lines += [f"{engine} only: {shown(one)}" for one in ours if one not in theirs]
    if len(lines) == 2:
        lines += [f"another order: {[shown(one) for one in ours]}, not {[shown(one) for one in theirs]}"]
    return "\n".join(lines)


def shown(one: tuple[Any, ...]) -> str:
    key, start, end, error, bindings, bundle, values = one
    bound = " ".join(f"{var}={','.join(map(str, ids))}" for var, ids in bindings.items())
    return f"{bound} !{error} @{bundle}   {start}..{end} {key} {values}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_engines_agree_with_oracle(chunk: int, cases: Callable[[int], int]) -> None:
    for seed in range(chunk, chunk + CHUNKS * cases(100), CHUNKS):
        case, wanted = manageable(random_case(seed))
        for engine in ENGINES:
            try:
                agree = found(case, engine) == wanted
            except Exception as error:
                error.add_note(f"engine: {engine}\n{case.paste()}")
                raise
            if not agree:
                pytest.fail(complaint(case, engine), pytrace=False)


def test_most_cases_have_matches() -> None:
    having = sum(bool(manageable(random_case(seed))[1]) for seed in range(300))
    assert having > 150


# Properties


def bindings(case: Case, query: Query, engine: str) -> dict[Any, Any]:
    """The error of each match, by what it binds."""
    matches = acep.match(case.table(), query, engine=engine, **case.stream)
    return {tuple(sorted(m.bindings.items())): m.error for m in matches}


@pytest.mark.parametrize("engine", ENGINES)
@given(seed=SEEDS, more=st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)]))
def test_found_with_less_is_found_with_more(seed: int, more: Fraction, engine: str) -> None:
    case = drawn(seed)
    query = replace(case.query(), output=Output.ALL)
    if query.sources:
        return
    few = bindings(case, query, engine)
    many = bindings(case, replace(query, errors=query.errors + more), engine)
    assert all(many.get(binding) == error for binding, error in few.items()), case.paste()


@pytest.mark.parametrize("engine", ENGINES)
@given(seed=SEEDS)
def test_each_strategy_finds_what_a_stricter_one_does(seed: int, engine: str) -> None:
    """Without errors and negations: an event that need not be ignored was not ignored."""
    case = drawn(seed)
    query = replace(case.query(), output=Output.ALL, errors=Fraction(0))
    if query.sources or any(isinstance(node, Negation) for node in nodes(query.pattern)):
        return
    strategies = (
        Strategy.STRICT_CONTIGUITY,
        Strategy.PARTITION_CONTIGUITY,
        Strategy.SKIP_TILL_NEXT_MATCH,
        Strategy.SKIP_TILL_ANY_MATCH,
    )
    sets = [set(bindings(case, replace(query, strategy=strategy), engine)) for strategy in strategies]
    for stricter, looser in pairwise(sets):
        assert stricter <= looser, case.paste()


def in_order(case: Case) -> Case:
    """The case with its stream as it would arrive."""
    seq = case.stream.get("seq")
    events = sorted(case.events, key=lambda row: (row["ts"], row[seq] if seq else 0))
    return replace(case, events=events)


def by_binding(matches: Iterable[Any]) -> list[tuple[Any, ...]]:
    """What is said of matches, whatever the order in which they were given."""
    return sorted(told(matches), key=lambda one: sorted(one[4].items()))


def pieces(case: Case, rng: Random) -> list[tuple[int, int]]:
    """The stream in pieces, some of them empty."""
    n = len(case.events)
    cuts = sorted(rng.randint(0, n) for _ in range(rng.randint(0, 4)))
    return list(zip([0, *cuts], [*cuts, n], strict=True))


@pytest.mark.parametrize("engine", ENGINES)
@given(seed=SEEDS)
def test_batches_do_not_matter(seed: int, engine: str) -> None:
    case = in_order(drawn(seed))
    matcher = acep.Matcher(case.query(), engine=engine, **case.stream)
    given_: list[Any] = []
    for start, end in pieces(case, Random(seed)):
        given_ += matcher.push(case.table(start, end))
    given_ += matcher.finish()
    whole = acep.match(case.table(), case.query(), engine=engine, **case.stream)
    assert by_binding(given_) == by_binding(whole), case.paste()


@pytest.mark.parametrize("engine", ENGINES)
@given(seed=SEEDS)
def test_a_restored_matcher_goes_on(seed: int, engine: str) -> None:
    case = in_order(drawn(seed))
    rng = Random(seed)

    def matcher() -> Any:
        return acep.Matcher(case.query(), engine=engine, **case.stream)

    running = matcher()
    given_: list[Any] = []
    for start, end in pieces(case, rng):
        given_ += running.push(case.table(start, end))
        state = running.snapshot()
        running = matcher()
        running.restore(state)
    given_ += running.finish()
    whole = acep.match(case.table(), case.query(), engine=engine, **case.stream)
    assert by_binding(given_) == by_binding(whole), case.paste()
