"""What the generators of the native tests draw: each kind of case has its share, as in tests/test_census.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

import pytest

from acep.plan.choice import choose
from acep.plan.dominance import demands
from tests.case_kinds import kinds_of_case
from tests.native.harness import plan_of, planned
from tests.native.merged_cases import merged_case
from tests.native.test_dominance import STRATEGIES, random_query, random_rows
from tests.test_census import hold

pytest.importorskip("acep.native._native")

MERGED = {
    "NaN": 0.14, "SASE": 0.23, "any type": 0.04, "choice": 0.07, "choice of sequences": 0.02, "conditions": 0.11,
    "errors": 0.13, "errors by halves": 0.01, "group repeated *": 0.011, "group repeated +": 0.035,
    "group repeated ?": 0.013, "group repeated {n,m}": 0.03, "infinite weight": 0.02, "letters": 0.12,
    "for the merged engine": 0.35, "no window": 0.1, "null f": 0.14, "null k": 0.08, "null s": 0.11, "null x": 0.16,
    "null y": 0.14, "output all": 0.35, "partitions": 0.15, "repeated *": 0.05, "repeated +": 0.1, "repeated ?": 0.07,
    "repeated {n,m}": 0.09, "set": 0.04, "set with a repetition": 0.025, "several keys": 0.21, "several types": 0.34,
    "several types of a variable": 0.027, "strategy partition_contiguity": 0.055,
    "strategy skip_till_any_match": 0.11, "strategy skip_till_next_match": 0.12, "strategy strict_contiguity": 0.055,
    "ties": 0.15, "weights": 0.07, "window": 0.15, "window of events": 0.09, "with id": 0.08,
}  # fmt: skip


@pytest.mark.long
def test_cases_for_the_merged_engine() -> None:
    def kinds_of(seed: int) -> Iterator[str]:
        if (case := merged_case(seed)) is not None:
            yield from kinds_of_case(case)
            if choose(planned(case.query(), case.table(), **case.stream)).base == "merged":
                yield "for the merged engine"

    hold(MERGED, kinds_of, 500)


ORDERED = {
    "an equal value": 0.37, "an order of values": 0.24, "errors 0": 0.31, "errors 1": 0.08, "errors 2": 0.1,
    "no window": 0.06, "partitions": 0.1, "repetition": 0.19, "window": 0.27, "window of events": 0.17,
    "skip_till_any_match": 0.23, "skip_till_next_match": 0.19, "partition_contiguity": 0.055,
    "strict_contiguity": 0.015,
}  # fmt: skip


@pytest.mark.long
def test_queries_whose_partial_matches_have_an_order() -> None:
    def kinds_of(seed: int) -> Iterator[str]:
        rng = Random(seed)
        text, errors, table = random_query(rng), rng.choice((0, 0, 0, 1, 2)), random_rows(rng)
        signs = {sign.sign for state in demands(plan_of(text, table, errors=errors)) for sign in state.values()}
        yield from (f"errors {errors}", *(strategy for strategy in STRATEGIES if strategy in text))
        window = re.search(r" WITHIN \d+( EVENTS)?", text)
        yield "no window" if window is None else "window of events" if window[1] else "window"
        occurs = {"an order of values": any(signs), "an equal value": 0 in signs, "partitions": "[k]" in text}
        occurs |= {"repetition": re.search(r"[+*]|\{2,\}", text.partition(" WHERE ")[0]) is not None}
        yield from (kind for kind, does in occurs.items() if does)

    hold(ORDERED, kinds_of, 400)
