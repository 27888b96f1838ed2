"""Engines against the oracle on random cases whose text is changed: ``a[i-n]`` for n above 1, CASE and CAST, and
aggregates of complete matches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count, islice
from random import Random
from typing import Any

import pytest

import acep
from acep.errors import AcepError, QueryError
from acep.pattern.walk import negated_variables, repeated_variables
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
from tests.random_cases import Case, random_case
from tests.test_census import hold
from tests.test_random import ENGINES, complaint_of_engine, manageable

pytestmark = pytest.mark.usefixtures("shared_plans")
_BEFORE = re.compile(r"\[i-1\]")
_PREVIOUS = re.compile(r"prev\(([\w.]+)\)")
_VARIABLE = re.compile(r"\b([a-z]\d*)(?:\[[^\]]*\])?\.[a-z]")


def farther(seed: int) -> Case | None:
    """The random case of a seed with greater distances for ``i-1``, or none if it has no such condition.

    Conditions of negations, which only the reference engine runs with a greater distance, mostly keep theirs.
    """
    case, rng = random_case(seed), Random(f"distances of case {seed}")  # the case itself began with Random(seed)
    negated = set() if case.letters or rng.random() < 0.25 else negated_variables(case.query().pattern)

    def changed(condition: str) -> str:
        if negated & set(_VARIABLE.findall(condition)):
            return condition
        condition = _BEFORE.sub(lambda _: f"[i-{rng.choice((1, 2, 2, 3, 3))}]", condition)
        return _PREVIOUS.sub(lambda match: f"prev({match[1]}, {rng.choice((2, 3))})", condition)

    text = " AND ".join(map(changed, case.text.split(" AND ")))
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
def test_engines_agree_with_the_oracle_on_case(chunk: int, cases: CaseCounts) -> None:
    tries = cases(100)
    seen = compare(islice(those(count(chunk, 2), with_cases), tries), lambda case: random_case(case.seed))
    expect_kinds(seen, tries, tries // 20, cases)


@pytest.mark.parametrize("chunk", range(2))
def test_engines_agree_with_the_oracle_on_aggregates_of_matches(chunk: int, cases: CaseCounts) -> None:
    def without_having(case: Case) -> Case:
        return replace(case, text=_HAVING.sub("", case.text))

    tries = cases(100)
    seen = compare(islice(those(count(chunk, 2), with_wholes), tries), without_having)
    expect_kinds(seen, tries, tries // 4, cases)


def compare(changed_cases: Iterable[Case], plain: Callable[[Case], Case]) -> Counter[str]:
    """Compare both engines with the oracle; return how many cases have matches, run natively, and have other matches
    than their ``plain`` form."""
    seen = Counter[str]()
    for changed_case in changed_cases:
        case, wanted = manageable(changed_case)
        for engine in ENGINES:
            fail_if_wrong(case, partial(complaint_of_engine, engine, case, wanted))
        seen["matches"] += bool(wanted)
        seen["native"] += runs_natively(case)
        seen["decided by the change"] += manageable(plain(case))[1] != wanted
    return seen


def expect_kinds(seen: Counter[str], tries: int, least_decided: int, cases: CaseCounts) -> None:
    cases.expect(seen, "matches", least=tries // 3)
    cases.expect(seen, "native", least=tries // 2)
    cases.expect(seen, "decided by the change", least=least_decided)


CHANGES = {
    farther: {"changed": 0.009, r"\[i-2\]": 0.004, r"\[i-3\]": 0.004, r"prev\([\w.]+, [23]\)": 0.001},
    with_cases: {
        "changed": 0.08, "CASE WHEN [^C]* ELSE": 0.008, "CASE WHEN [^C]* WHEN": 0.009, "CASE [a-z]": 0.03,
        "AS integer": 0.018, "AS text": 0.02,
    },
    with_wholes: {
        "changed": 0.22, r"count\(DISTINCT": 0.07, r"stddev\(": 0.07, r"stddev_pop\(": 0.08,
    },
}  # fmt: skip
"""Of each change the texts that it makes, with the least share of the seeds that has each."""


@pytest.mark.parametrize("change", CHANGES)
def test_texts_are_changed_in_each_way(change: Callable[[int], Case | None]) -> None:
    def kinds_of(seed: int) -> Iterator[str]:
        if (case := change(seed)) is not None:
            yield "changed"
            yield from (form for form in CHANGES[change] if form != "changed" and re.search(form, case.text))

    hold(CHANGES[change], kinds_of, 1_000)


def runs_natively(case: Case) -> bool:
    """Whether the native core takes the query."""
    try:
        acep.match(case.table(0, 1), case.query(), engine="native", **case.stream)
    except AcepError:
        return False
    return True


@pytest.mark.parametrize("chunk", range(4))
def test_engines_agree_with_the_oracle(chunk: int, cases: CaseCounts) -> None:
    def about_the_event_before(case: Case) -> Case:
        return replace(case, text=re.sub(r"\[i-\d\]", "[i-1]", case.text))

    tries = cases(40)
    seen = compare(islice(those(count(chunk, 4)), tries), about_the_event_before)
    expect_kinds(seen, tries, tries // 20, cases)


def test_outputs_without_bindings_agree(cases: CaseCounts) -> None:
    seen = Counter[str]()

    def complaint_of(case: Case) -> str:
        case, wanted = manageable(case)
        query, table = case.query(), case.table()
        seen["matches"] += bool(wanted)

        def bundles_of(engine: str) -> list[Any]:
            bundles = acep.match(table, query, engine=engine, output="bundles", counts=False, **case.stream)
            return sorted(bundles, key=repr)

        reference = bundles_of("reference")
        if bool(reference) is not bool(wanted):
            return f"{len(reference)} bundles of {len(wanted)} matches"
        for engine in ENGINES:
            matches = acep.match(table, query, engine=engine, output="count", **case.stream)
            if complaint := difference(matches, len(wanted), (f"{engine} counts", "oracle")):
                return complaint
            if complaint := difference(bundles_of(engine), reference, (engine, "reference")):
                return complaint
        return ""

    for case in islice(those(count(10_000)), cases(60)):
        fail_if_wrong(case, complaint_of)
    cases.expect(seen, "matches", least=10)
