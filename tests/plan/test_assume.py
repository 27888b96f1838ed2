"""What is assumed of a stream's columns: enough for every query of the corpus and of the random tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import acep
from acep.errors import QueryError
from acep.plan.assume import assumed_plan, assumed_schema
from tests.complaints import fail_if_wrong
from tests.corpus import Case, load_all
from tests.each_case import by_file
from tests.random_cases import Case as RandomCase
from tests.random_cases import random_case

CASES = [case for case in load_all() if case.raises is None]


@by_file(CASES)
def test_queries_of_the_corpus_can_be_compiled(case: Case) -> None:
    query = (acep.regex if case.letters else acep.parse)(case.text, **case.query_options)
    plan = assumed_plan(query)
    assert plan.query is query


def test_random_queries_can_be_compiled(cases: Callable[[int], int]) -> None:
    for seed in range(cases(300)):
        fail_if_wrong(random_case(seed), check_plan)


def check_plan(case: RandomCase) -> None:
    query = case.query()
    assert assumed_plan(query).query is query


@pytest.mark.parametrize(
    ("where", "kinds"),
    [
        ("a.x > 1", "x=float"),
        ("a.x = 'p'", "x=string"),
        ("a.x = b.y AND b.y = 'p'", "x=string y=string"),
        ("a.x IN ('p', 'q')", "x=string"),
        ("lower(a.x) = b.y", "x=string y=string"),
        ("a.x LIKE 'p%'", "x=string"),
        ("length(a.x) > b.y", "x=string y=float"),
        ("substring(a.x, b.y) = 'p'", "x=string y=int"),
        ("round(a.x, b.y) = 2", "x=float y=int"),
        ("a.x", "x=bool"),
        ("NOT a.x OR b.y = TRUE", "x=bool y=bool"),
        ("a.x > TIMESTAMP '2024-01-01' AND b.y - a.x < 1 hour", "x=timestamp y=timestamp"),
        ("a.x > TIMESTAMP '2024-01-01' AND b.y > a.x + 1 hour", "x=timestamp y=timestamp"),
        ("hour(a.x) > 5", "x=timestamp"),
        ("b.ts - a.ts < 1 hour AND a.type != b.type", ""),
        ("abs(a.x - b.x) < 2", "x=float"),
        ("coalesce(a.x, b.y) = 'p'", "x=string y=string"),
        ("a.x BETWEEN 'k' AND b.y", "x=string y=string"),
        ("a.x IS NULL", "x=float"),
        ("[k]", "k=float"),
    ],
)
def test_what_an_expression_tells(where: str, kinds: str) -> None:
    query = acep.parse(f"PATTERN SEQ(A a, B b) WHERE {where}")
    schema = assumed_schema(query)
    assert " ".join(f"{name}={kind.value}" for name, kind in schema.kinds) == kinds
    assumed_plan(query)


def test_the_time_is_a_timestamp_where_it_is_compared_with_one() -> None:
    assert not assumed_schema(acep.parse("PATTERN A a WHERE a.ts > 5")).instants
    assert assumed_schema(acep.parse("PATTERN A a WHERE a.ts > TIMESTAMP '2024-01-01'")).instants
    assert assumed_schema(acep.parse("PATTERN A a WHERE a.ts > '2024-01-01'")).instants


def test_what_an_outer_query_asks_is_known_of_the_inner_one() -> None:
    inner = "PATTERN SEQ(A a, B b) WHERE [k] RETURN a.x AS first, count(b[]) AS n"
    query = acep.parse(
        f"FROM ({inner}) AS T PATTERN T t WHERE t.k = 'p' AND t.first LIKE 'q' AND t.n > 1 AND t.start < 5"
    )
    assert {name: kind.value for name, kind in assumed_schema(query).kinds} == {"k": "string", "x": "string"}
    assumed_plan(query)


def test_what_no_column_can_be_is_an_error() -> None:
    with pytest.raises(QueryError, match="cannot be compared"):
        assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WHERE a.x > 1 AND b.x = 'p'"))
