"""Regular expressions: what they match on both engines, and that no pattern takes long."""

from __future__ import annotations

import time

import pytest

import acep
from acep.errors import QueryError
from acep.plan.assume import assumed_plan
from acep.plan.derive import derive

ENGINES = ("reference", "auto")
TEXTS = ["/admin/x", "/home", None, "É\nadmin", "", "aaa", "٣", "3", "a.b", "ADMIN"]
EVENTS = {"ts": range(len(TEXTS)), "type": ["A"] * len(TEXTS), "s": TEXTS}


def found(pattern: str, engine: str) -> list[str | None]:
    """The texts in which a pattern is found."""
    query = acep.parse("PATTERN A a WHERE regexp_like(a.s, :p)", parameters={"p": pattern})
    return [TEXTS[match.bindings["a"][0]] for match in acep.match(EVENTS, query, engine=engine)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("^/a", ["/admin/x"]),
        ("admin$", ["É\nadmin"]),
        ("(?i)ADMIN", ["/admin/x", "É\nadmin", "ADMIN"]),
        ("^.$", ["٣", "3"]),
        (r"\d", ["3"]),
        (r"a\.b", ["a.b"]),
        ("^$", [""]),
        ("É", ["É\nadmin"]),
        ("(?s)É.a", ["É\nadmin"]),
        ("É.a", []),
    ],
)
def test_texts_in_which_a_pattern_is_found(pattern: str, texts: list[str], engine: str) -> None:
    assert found(pattern, engine) == texts


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pattern_that_could_go_back_forever_takes_no_time(engine: str) -> None:
    events = {"ts": [1], "type": ["A"], "s": ["a" * 20_000 + "b"]}
    began = time.perf_counter()
    assert not acep.match(events, "PATTERN A a WHERE regexp_like(a.s, '^(a+)+$')", engine=engine)
    assert time.perf_counter() - began < 5


def test_a_condition_is_computed_for_all_texts_at_once() -> None:
    plan = assumed_plan(acep.parse("PATTERN A a WHERE regexp_like(a.s, '^/a') AND regexp_like(lower(a.s), '^/a')"))
    _, columns = derive([predicate.expr for predicate in plan.predicates], plan.schema, None)
    assert [column.values_of(["/a", None, "x", "/A"]) for column in columns.values()] == [
        [True, None, False, False],
        [True, None, False, True],
    ]


def test_a_pattern_on_several_lines_is_told_on_one() -> None:
    with pytest.raises(QueryError) as caught:
        acep.parse("PATTERN A a WHERE regexp_like(a.s, :p)", parameters={"p": "a\n("})
    assert caught.value.message == "`a (` is no regular expression of RE2: missing ): a"
