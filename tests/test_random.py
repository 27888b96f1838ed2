"""Engines against the oracle on random queries and streams, and what must hold whatever the query.

Ten thousand cases by default; ``ACEP_CASES`` multiplies that (``ACEP_CASES=0.1`` tries a thousand). A failing case is
shrunk and printed in the form of a case of ``tests/corpus/``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest

import acep
from acep.pattern.tree import Negation, Output, Query, Strategy
from acep.pattern.walk import nodes
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_different, fail_if_wrong
from tests.oracle import TooManyStepsError, oracle
from tests.random_cases import Case, random_case

pytestmark = pytest.mark.usefixtures("shared_plans")
ENGINES = ("reference", "auto")
"""The engines that must agree with the oracle."""

CHUNKS = 100
LIMIT = 5_000
"""How many steps the oracle may take before a stream is cut."""


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


def shown(one: tuple[Any, ...]) -> str:
    key, start, end, error, bindings, bundle, values = one
    bound = " ".join(f"{var}={','.join(map(str, ids))}" for var, ids in bindings.items())
    return f"{bound} !{error} @{bundle}   {start}..{end} {key} {values}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_engines_agree_with_oracle(chunk: int, cases: CaseCounts) -> None:
    for seed in range(chunk, chunk + CHUNKS * cases(100), CHUNKS):
        case, wanted = manageable(random_case(seed))
        for engine in ENGINES:
            fail_if_wrong(case, partial(complaint_of_engine, engine, case, wanted))


def complaint_of_engine(engine: str, judged_case: Case, wanted: list[tuple[Any, ...]], case: Case) -> str:
    """Say how an engine and the oracle differ on a case; what the oracle says of one is given."""
    if case is not judged_case:
        wanted = judged(case)
    answer = found(case, engine)
    return "" if answer == wanted else difference([*map(shown, answer)], [*map(shown, wanted)], (engine, "oracle"))


@pytest.mark.long
def test_most_cases_have_matches() -> None:
    having = sum(bool(manageable(random_case(seed))[1]) for seed in range(300))
    assert having > 150


# Properties


SEEDS = 100
"""How many cases each property is tried on; they are not those above."""


def cases_from(first: int, count: int) -> Iterator[Case]:
    """So many cases from a seed on."""
    return map(drawn, range(first, first + count))


def bindings(case: Case, query: Query, engine: str) -> dict[Any, Any]:
    """The error of each match, by what it binds."""
    matches = acep.match(case.table(), query, engine=engine, **case.stream)
    return {tuple(sorted(m.bindings.items())): m.error for m in matches}


@pytest.mark.parametrize("engine", ENGINES)
def test_found_with_less_is_found_with_more(engine: str, cases: CaseCounts) -> None:
    for case in cases_from(1_000_000, cases(SEEDS)):
        fail_if_wrong(case, partial(changes_with_more, engine))


def changes_with_more(engine: str, case: Case) -> str:
    """Say which matches are not found with more errors, or with another error."""
    query = replace(case.query(), output=Output.ALL)
    if query.sources:
        return ""
    more = Random(case.seed).choice((Fraction(1, 2), Fraction(1), Fraction(2)))
    few = bindings(case, query, engine)
    many = bindings(case, replace(query, errors=query.errors + more), engine)
    return "\n".join(
        f"with {more} more errors: {binding} has the error {many.get(binding)}, not {error}"
        for binding, error in few.items()
        if many.get(binding) != error
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_each_strategy_finds_what_a_stricter_one_does(engine: str, cases: CaseCounts) -> None:
    for case in cases_from(1_200_000, cases(SEEDS)):
        fail_if_wrong(case, partial(lost_with_a_looser_strategy, engine))


def lost_with_a_looser_strategy(engine: str, case: Case) -> str:
    """Say which matches a looser strategy does not find, without errors and negations: there an event that need not be
    ignored was not ignored."""
    query = replace(case.query(), output=Output.ALL, errors=Fraction(0))
    if query.sources or any(isinstance(node, Negation) for node in nodes(query.pattern)):
        return ""
    strategies = (
        Strategy.STRICT_CONTIGUITY,
        Strategy.PARTITION_CONTIGUITY,
        Strategy.SKIP_TILL_NEXT_MATCH,
        Strategy.SKIP_TILL_ANY_MATCH,
    )
    sets = [set(bindings(case, replace(query, strategy=strategy), engine)) for strategy in strategies]
    return "\n".join(
        f"{looser.value} lacks what {stricter.value} finds: {binding}"
        for (stricter, few), (looser, many) in pairwise(zip(strategies, sets, strict=True))
        for binding in sorted(few - many)
    )


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
def test_batches_do_not_matter(engine: str, cases: CaseCounts) -> None:
    for case in map(in_order, cases_from(1_400_000, cases(SEEDS))):
        fail_if_different(case, partial(matches_in_pieces, engine), partial(matches_at_once, engine), PIECES)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_restored_matcher_goes_on(engine: str, cases: CaseCounts) -> None:
    for case in map(in_order, cases_from(1_600_000, cases(SEEDS))):
        restored = partial(matches_in_pieces, engine, restored=True)
        fail_if_different(case, restored, partial(matches_at_once, engine), PIECES)


PIECES = ("in pieces", "at once")


def matches_at_once(engine: str, case: Case) -> list[tuple[Any, ...]]:
    return by_binding(acep.match(case.table(), case.query(), engine=engine, **case.stream))


def matches_in_pieces(engine: str, case: Case, *, restored: bool = False) -> list[tuple[Any, ...]]:
    """Return the matches of a matcher for pieces of the stream; ``restored``: another one goes on after each."""

    def matcher() -> Any:
        return acep.Matcher(case.query(), engine=engine, **case.stream)

    running = matcher()
    matches: list[Any] = []
    for start, end in pieces(case, Random(case.seed)):
        matches += running.push(case.table(start, end))
        if restored:
            state = running.snapshot()
            running = matcher()
            running.restore(state)
    matches += running.finish()
    return by_binding(matches)
