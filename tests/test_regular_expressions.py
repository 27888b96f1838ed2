"""Regular expressions: what they match on both engines, and that no pattern takes long."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.errors import QueryError
from acep.plan.assume import assumed_plan
from acep.plan.derive import derive
from acep.regular_expressions import check_group, extracting

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


# Parts of patterns that mean the same for RE2 and for Python, each with its number of groups.
PARTS = [
    ("a", 0), ("(a)", 1), ("(?:b)", 0), ("(?P<n{}>a|(b))", 2), ("(b)?", 1), ("[(]", 0), (r"\(", 0), ("[^)(]", 0),
    ("[]()a]", 0), (r"[\](]", 0), ("(a|(b)c)*?", 2), (r"(\)|b)", 1), ("(?i:A)", 0), (r"\\", 0),
    ("()", 1), ("(é+)", 1), ("[^]]", 0),
]  # fmt: skip


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5), st.text("abc()\\]é", max_size=8), st.data())
def test_a_group_is_that_of_python(parts: list[tuple[str, int]], text: str, data: st.DataObject) -> None:
    pattern = "".join(part.replace("{}", str(number)) for number, (part, _) in enumerate(parts))
    count = sum(groups for _, groups in parts)
    group = data.draw(st.integers(0, count))
    check_group(pattern, group)
    hit = re.search(pattern, text)
    assert extracting([text, "", text], pattern, group)[::2] == [None if hit is None else hit[group]] * 2
    with pytest.raises(QueryError, match=f"no group {count + 1}"):
        check_group(pattern, count + 1)


@pytest.mark.parametrize(
    ("pattern", "group", "value"),
    [
        (r"\Q(x\E(y)", 1, "y"),
        (r"[[:alpha:](]\((.)", 1, "x"),
        (r"(?i)(?P<a>Q)(?<b>\()", 2, "("),
        (r"\p{Lu}?q(.)", 1, "("),
        (r"[\pL(]+(y)", 1, "y"),
        (r"(z)?y", 1, None),
        (r"(z*)y", 1, ""),
        (r"\Q(xy", 0, "(xy"),
        (r"q\Q(x\E\Qy", 0, "q(xy"),
        (r"(q)\Q(x", 1, "q"),
        ("y\\Q\\", 0, None),
    ],
)
def test_groups_of_what_only_re2_has(pattern: str, group: int, value: str | None) -> None:
    check_group(pattern, group)
    assert extracting(["q(xy"], pattern, group) == [value]


@pytest.mark.parametrize("engine", ENGINES)
def test_extracting_from_a_text_that_python_would_take_forever_for_takes_no_time(engine: str) -> None:
    events = {"ts": [1], "type": ["A"], "s": ["a" * 20_000 + "b"]}
    began = time.perf_counter()
    query = "PATTERN A a WHERE regexp_extract(a.s, '^(a+)+$', 1) IS NULL"
    assert acep.match(events, query, engine=engine).count() == 1
    assert time.perf_counter() - began < 5


def test_groups_are_extracted_from_all_texts_at_once() -> None:
    plan = assumed_plan(acep.parse("PATTERN A a WHERE regexp_extract(a.s, '^/(.)', 1) = 'a'"))
    _, columns = derive([predicate.expr for predicate in plan.predicates], plan.schema, None)
    (column,) = columns.values()
    assert column.values_of(["/a", None, "x", "/b"]) == [True, None, None, False]


def test_in_a_clause_a_pattern_may_be_a_column() -> None:
    rows = {"ts": [1, 2, 3, 4], "s": ["ab", "ab", "ab", None], "p": ["(b)", "(", "b", "(b)"]}
    clause = "ORDER BY ts MEASURES REGEXP_EXTRACT(A.s, A.p, 1) AS v PATTERN (A)"
    assert acep.match_recognize(rows, clause) == {"v": ["b", None, None, None]}
    for call, message in (
        ("REGEXP_EXTRACT(A.s, '(', 1)", "no regular expression"),
        ("REGEXP_EXTRACT(A.s, 'b', 1)", "no group 1"),
        ("REGEXP_EXTRACT(A.s, 'b')", "takes 3 arguments, not 2"),
    ):
        with pytest.raises(QueryError, match=message):
            acep.match_recognize(rows, f"ORDER BY ts MEASURES {call} AS v PATTERN (A)")
