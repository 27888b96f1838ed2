"""Engines against the oracle on random cases whose text is changed: ``a[i-n]`` for n above 1, CASE and CAST, and
aggregates of complete matches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count, islice
from random import Random

import pytest

import acep
from acep.errors import AcepError, QueryError
from acep.pattern.walk import negated_variables, repeated_variables
from tests.random_cases import Case, random_case
from tests.test_random import ENGINES, complaint, found, manageable

_BEFORE = re.compile(r"\[i-1\]")
_PREVIOUS = re.compile(r"prev\(([\w.]+)\)")


def farther(seed: int) -> Case | None:
    """The random case of a seed with greater distances for ``i-1``, or none if it has no such condition."""
    case, rng = random_case(seed), Random(seed)
    text = _BEFORE.sub(lambda _: f"[i-{rng.choice((1, 2, 2, 3))}]", case.text)
    text = _PREVIOUS.sub(lambda found: f"prev({found[1]}, {rng.choice((2, 3))})", text)
    if text == case.text:
        return None
    try:
        acep.parse(text, **case.options)
    except QueryError:
        return None  # a repetition that binds too few events
    return replace(case, text=text)


_COMPARED = re.compile(
    r"(?:(?<=AND )|(?<=OR )|(?<=\{ ))([a-z]\d*)(\[\w+\])?\.([xyf]) (<=|>=|<|>|=|!=) (\d)(?= AND | OR | \})"
)


_HAVING = re.compile(r"\nHAVING .*")


def with_wholes(seed: int) -> Case | None:
    """The random case of a seed with another HAVING, or none if no variable binds several events."""
    case, rng = random_case(seed), Random(seed)
    if case.letters:
        return None
    known = sorted(repeated_variables(case.query().pattern) - negated_variables(case.query().pattern))
    if not known:
        return None
    var, attribute, op = rng.choice(known), rng.choice("xyf"), rng.choice(("<", ">=", "!="))
    condition = rng.choice(
        (
            f"count(DISTINCT {var}[].{attribute}) {op} {rng.choice((1, 2))}",
            f"stddev({var}[].{attribute}) {op} {rng.choice((0.3, 0.9))}",
            f"coalesce(stddev_pop({var}[].{attribute}), 2.1) {op} 0.4",
        )
    )
    return replace(case, text=f"{_HAVING.sub('', case.text)}\nHAVING {condition}")


def with_cases(seed: int) -> Case | None:
    """The random case of a seed with CASE in its comparisons with numbers, or none if it has none."""
    case, rng = random_case(seed), Random(seed)
    forms = (
        "CASE WHEN {r} {op} {n} THEN {r} + 1 ELSE {r} END {op} {n}",
        "CASE WHEN {r} {op} {n} THEN TRUE WHEN {r} > 1 THEN {r} = {n} END",
        "CASE {r} WHEN {n} THEN 0 WHEN {n} + 1 THEN {r} ELSE 1.5 END {op} {n}",
        "CAST({r} + 0.5 AS integer) {op} {n}",
        "CAST(CAST({r} AS text) AS float) {op} {n}",
    )

    def written(found: re.Match[str]) -> str:
        reference = f"{found[1]}{found[2] or ''}.{found[3]}"
        return rng.choice(forms).format(r=reference, op=found[4], n=found[5])

    text = _COMPARED.sub(written, case.text)
    return None if text == case.text else replace(case, text=text)


def those(seeds: Iterable[int], of: Callable[[int], Case | None] = farther) -> Iterator[Case]:
    return (case for seed in seeds if (case := of(seed)) is not None)


@pytest.mark.parametrize("chunk", range(2))
def test_engines_agree_with_the_oracle_on_case(chunk: int, cases: Callable[[int], int]) -> None:
    decided, tried = compared(those(count(chunk, 2), with_cases), max(30, cases(100)), lambda c: random_case(c.seed))
    assert decided >= tried // 20


@pytest.mark.parametrize("chunk", range(2))
def test_engines_agree_with_the_oracle_on_aggregates_of_matches(chunk: int, cases: Callable[[int], int]) -> None:
    def without(case: Case) -> Case:
        return replace(case, text=_HAVING.sub("", case.text))

    decided, tried = compared(those(count(chunk, 2), with_wholes), max(30, cases(100)), without)
    assert decided >= tried // 4


def compared(some: Iterable[Case], most: int, plain: Callable[[Case], Case]) -> tuple[int, int]:
    """Compare both engines with the oracle; return how many cases have other matches than their ``plain`` form, and how
    many were tried."""
    tried = matched = native = decided = 0
    for given in islice(some, most):
        case, wanted = manageable(given)
        for engine in ENGINES:
            if found(case, engine) != wanted:
                pytest.fail(complaint(case, engine), pytrace=False)
        tried += 1
        matched += bool(wanted)
        native += runs_natively(case)
        decided += manageable(plain(case))[1] != wanted
    assert tried >= 20
    assert matched >= tried // 3
    assert native >= tried // 2
    return decided, tried


def runs_natively(case: Case) -> bool:
    """Whether the native core takes the query."""
    try:
        acep.match(case.table(0, 1), case.query(), engine="native", **case.stream)
    except AcepError:
        return False
    return True


@pytest.mark.parametrize("chunk", range(4))
def test_engines_agree_with_the_oracle(chunk: int, cases: Callable[[int], int]) -> None:
    tried = matched = native = decided = 0
    for given in islice(those(count(chunk, 4)), max(25, cases(40))):
        case, wanted = manageable(given)
        for engine in ENGINES:
            if found(case, engine) != wanted:
                pytest.fail(complaint(case, engine), pytrace=False)
        tried += 1
        matched += bool(wanted)
        native += runs_natively(case)
        # The same query about the event before: if it gives other matches, the distance decides something.
        decided += manageable(replace(case, text=re.sub(r"\[i-\d\]", "[i-1]", case.text)))[1] != wanted
    assert tried >= 20
    assert matched >= tried // 3
    assert native >= tried // 2
    assert decided >= tried // 20


def test_outputs_without_bindings_agree(cases: Callable[[int], int]) -> None:
    tried = 0
    for given in islice(those(count(10_000)), max(30, cases(60))):
        case, wanted = manageable(given)
        query, table = case.query(), case.table()
        for engine in ENGINES:
            assert acep.match(table, query, engine=engine, output="count", **case.stream) == len(wanted)
            bundles = acep.match(table, query, engine=engine, output="bundles", counts=False, **case.stream)
            assert bool(bundles) is bool(wanted)
            by_reference = acep.match(table, query, engine="reference", output="bundles", counts=False, **case.stream)
            assert sorted(bundles, key=repr) == sorted(by_reference, key=repr)
        tried += bool(wanted)
    assert tried >= 10
