"""Which queries are called costly, which are not, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import acep
from acep.errors import QueryError
from acep.pattern.tree import Query
from acep.plan.lint.rules import RULES, Finding, lint
from acep.plan.schema import Kind, Schema
from tests.complaints import fail_if_wrong
from tests.random_cases import Case, random_case

NEXT = "skip_till_next_match"


def rules(query: Query) -> set[str]:
    return {finding.rule for finding in lint(query)}


def finding(rule: str, text: str, **options: Any) -> Finding:
    (found,) = (f for f in lint(acep.parse(text, **options)) if f.rule == rule)
    return found


LETTERS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("ab", {}, set()),
    ("ab*", {}, {"any_match_repetition"}),
    ("ab{1,17}", {}, {"any_match_repetition"}),
    ("ab{1,16}", {}, set()),
    ("ab*", {"strategy": NEXT}, {"last_repetition"}),
    ("ab*c", {"strategy": NEXT}, set()),
    ("ab{1,5}", {"strategy": NEXT}, set()),
    ("ab", {"within": None}, {"no_window"}),
    ("a", {"within": None}, set()),
    ("ab", {"by": None}, {"no_partition"}),
    ("ab", {"by": None, "strategy": NEXT}, {"no_partition"}),
    ("a", {"by": None}, set()),
    ("ab", {"errors": 1}, {"single_events_match", "begins_anywhere"}),
    ("abc", {"errors": 1}, {"begins_anywhere"}),
    ("abc", {"errors": 2}, {"single_events_match", "begins_anywhere"}),
    ("abc", {"errors": 2, "weights": {"a": 3, "b": 3}}, set()),
    ("a?b", {}, set()),
    ("ab?", {"errors": 1, "weights": {"a": 2}}, set()),
    ("a{0,2000}b", {"strategy": NEXT}, {"many_states"}),
]


@pytest.mark.parametrize(("text", "options", "found"), LETTERS)
def test_letter_expressions(text: str, options: dict[str, Any], found: set[str]) -> None:
    settings: dict[str, Any] = {"within": 5, "by": "user", **options}
    assert rules(acep.regex(text, **settings)) == found


STOCK = "PATTERN SEQ(Stock+ a[], Stock b) WHERE skip_till_next_match(a[], b) {{ [symbol] AND {} }} WITHIN 1 hour"
PAIR = "PATTERN SEQ({}) WHERE skip_till_next_match {{ [k] }} WITHIN 5"
EQUAL = "PATTERN SEQ({}) WHERE skip_till_next_match {{ {} }} WITHIN 5"
INNER = "FROM (PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5) AS T "


PAIRS = [
    (
        "any_match_repetition",
        "PATTERN SEQ(A+ a[], B b) WHERE [k] WITHIN 5",
        "PATTERN SEQ(A{1,3} a[], B b) WHERE [k] WITHIN 5",
    ),
    (
        "any_match_repetition",
        "PATTERN SEQ((A a, B b)+, C c) WHERE [k] WITHIN 5",
        PAIR.format("(A a, B b)+, C c"),
    ),
    ("any_match_repetition", "PATTERN SEQ({A+ a[], B b}, C c) WITHIN 5", "PATTERN SEQ({A a, B b}, C c) WITHIN 5"),
    (
        "chosen_from_all",
        PAIR.format("A+ a[], B b").replace("[k]", "[k] AND b.x > a[1].x") + " OUTPUT NON OVERLAP",
        PAIR.format("A+ a[], B b") + " OUTPUT NON OVERLAP",
    ),
    (
        "chosen_from_all",
        "PATTERN A+ a[] WHERE partition_contiguity HAVING sum(a[].x) > 3 OUTPUT LONGEST NON OVERLAP",
        "PATTERN A+ a[] WHERE partition_contiguity HAVING count(a[]) > 3 OUTPUT LONGEST NON OVERLAP",
    ),
    ("repetitions_share_events", PAIR.format("A+ a[], A+ b[]"), PAIR.format("A+ a[], B+ b[]")),
    ("repetitions_share_events", PAIR.format("(A|B)+ a[], (B|C)+ b[]"), PAIR.format("(A|B)+ a[], (C|D)+ b[]")),
    ("repetitions_share_events", PAIR.format("A+ a[], ANY+ b[]"), PAIR.format("A+ a[], ANY b")),
    ("repetitions_share_events", PAIR.format("(A+ a[], B? b)+"), PAIR.format("(A+ a[], B b)+")),
    ("no_window", "PATTERN SEQ(A a, B b) WHERE [k]", "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5 EVENTS"),
    (
        "no_window",
        "PATTERN SEQ(A+ a[], B b) WHERE partition_contiguity { [k] }",
        "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [k] }",
    ),
    ("no_partition", EQUAL.format("A a, B b", "a.x < b.x"), EQUAL.format("A a, B b", "a.x = b.x")),
    (
        "nearly_partitioned",
        EQUAL.format("A a, ~B b, C c", "a.id = c.id"),
        EQUAL.format("A a, ~B b, C c", "a.id = c.id AND c.id = b.id"),
    ),
    (
        "nearly_partitioned",
        EQUAL.format("A a, (B b, C c)+", "a.id = b.id AND b.id = c.id"),
        EQUAL.format("A a, (B b, C c)+", "[id]"),
    ),
    (
        "nearly_partitioned",
        EQUAL.format("A a, B+ b[]", "a.id = b[1].id"),
        EQUAL.format("A a, B+ b[]", "a.id = b.id"),
    ),
    (
        "nearly_partitioned",
        EQUAL.format("A a, ~B b, C c", "a.id = c.id"),
        EQUAL.format("A a, B b, C c", "a.id = c.id"),
    ),
    (
        "one_order",
        "PATTERN SEQ(A a, B b) WHERE strict_contiguity { [k] }",
        "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [k] }",
    ),
    (
        "one_order",
        "PATTERN SEQ(A a, B b) WHERE partition_contiguity",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match",
    ),
    (
        "large_set",
        "PATTERN {A a, B b, C c, D d, E e, F f, G g} WITHIN 5",
        "PATTERN {A a, B b, C c, D d, E e, F f} WITHIN 5",
    ),
    ("large_set", "PATTERN {A{1,9} a[], B{1,9} b[]} WITHIN 5", "PATTERN {A+ a[], B+ b[]} WITHIN 5"),
    (
        "each_value_kept",
        EQUAL.format("A+ a[], B b", "[k] AND a.x < b.x"),
        EQUAL.format("A+ a[], B b", "[k] AND max(a[].x) < b.x"),
    ),
    (
        "each_value_kept",
        EQUAL.format("A+ a[], B+ b[]", "a.x != b.x"),
        EQUAL.format("A a, B+ b[]", "a.x != b.x"),
    ),
    (
        "any_match_repetition",
        "PATTERN SEQ(rdp+ r[]{4,}) WHERE skip_till_any_match(r[]) { [k] AND r[i].x = r[i-1].x } WITHIN 5",
        "PATTERN SEQ(rdp+ r[]{4,6}) WHERE skip_till_any_match(r[]) { [k] AND r[i].x = r[i-1].x } WITHIN 5",
    ),
    (
        "last_repetition",
        EQUAL.format("A a, B+ b[]", "[k] AND b[i].x = b[i-1].x"),
        EQUAL.format("A a, B+ b[], C c", "[k] AND b[i].x = b[i-1].x"),
    ),
    ("decided_late", STOCK.format("count(a[]) > 3"), STOCK.format("b.volume < 80% * a[a.LEN].volume")),
    ("decided_late", EQUAL.format("B b, A+ a[]", "avg(a[].x) < b.x"), EQUAL.format("B b, A+ a[]", "a.x < b.x")),
    (
        "bare_name_in_set",
        "PATTERN SEQ({c, p+}, {b}) WHERE c.L = 'C' AND p.L = 'P' AND b.L = 'B' WITHIN 15 days",
        "PATTERN SEQ({ANY c, ANY+ p[]}, {ANY b}) WHERE c.L = 'C' AND p.L = 'P' AND b.L = 'B' WITHIN 15 days",
    ),
    (
        "bare_name_in_set",
        "PATTERN {c, d} WHERE c.x > 1 WITHIN 5",
        "PATTERN {c, d} WITHIN 5",
    ),
    ("leading_negation", PAIR.format("~A a, B b, C c"), PAIR.format("B b, ~A a, C c")),
    ("trailing_negation", PAIR.format("B b, C c, ~A a"), PAIR.format("B b, ~A a, C c")),
    ("composed", INNER + "PATTERN SEQ(T x, T y) WHERE [k] WITHIN 50", "PATTERN SEQ(T x, T y) WHERE [k] WITHIN 50"),
]


@pytest.mark.parametrize(("rule", "costly", "fine"), PAIRS)
def test_what_is_costly_and_what_is_not(rule: str, costly: str, fine: str) -> None:
    assert rule in rules(acep.parse(costly))
    assert rule not in rules(acep.parse(fine))


def test_each_rule_has_an_example() -> None:
    seen = {rule for rule, _, _ in PAIRS} | {rule for _, _, found in LETTERS for rule in found}
    assert seen == {rule.__name__ for rule in RULES}


def test_what_is_said_names_the_place_and_a_way_out() -> None:
    (found,) = lint(acep.regex("ab*", within=5, by="user"))
    assert str(found).startswith("`b*` under skip till any match")
    assert "hint: use skip till next match" in str(found)
    found, later = lint(acep.regex("ab", within=5, by="user", errors=1, weights={"b": 0.5}))
    assert "with 1 error a single event matches: `a` alone misses only 1/2" in found.message
    assert later.message.startswith("with errors a match may begin at `b`")
    assert later.hint.endswith("weights={'a': math.inf}: that asks another question")


@pytest.mark.parametrize(
    ("condition", "follows"), [("b.ref = a.ref", True), ("b.x > 5", False)]
)  # fmt: skip
def test_a_missing_window_says_where_each_event_is_followed_to_the_end(condition: str, follows: bool) -> None:
    text = f"PATTERN SEQ(A a, B b, C c) WHERE {condition} OUTPUT LONGEST NON OVERLAP"
    assert finding("no_window", text).message.endswith("up to n^2/2 steps for n events") == follows


@pytest.mark.parametrize(
    ("rule", "text", "place"),
    [
        ("any_match_repetition", "PATTERN SEQ(A a, B+ bs[]) WHERE [a] WITHIN 5", "bs"),
        ("decided_late", STOCK.format("count(a[]) > 3"), "count(a[]) > 3"),
        ("each_value_kept", EQUAL.format("A+ a[], B b", "a.x  <  b.x"), "a.x  <  b.x"),
        ("bare_name_in_set", "PATTERN {`my c`, dd} WHERE `my c`.x > dd.x WITHIN 5", "dd"),
        ("leading_negation", PAIR.format("~A aa, B b"), "aa"),
        ("trailing_negation", INNER + "PATTERN SEQ(T x, ~T z) WITHIN 5", "z"),
    ],
)
def test_the_place_is_that_in_the_text(rule: str, text: str, place: str) -> None:
    # A name in backquotes is a type.
    span = finding(rule, text).span
    assert span is not None
    assert text[span.start : span.end] == place


def test_the_places_of_inner_queries_are_their_own() -> None:
    inner = "PATTERN SEQ(A x, ~B y) WITHIN 5"
    text = f"FROM ({inner}) AS T, ({inner}) AS U PATTERN SEQ(T x, ~U y) WITHIN 5"
    spans = [f.span for f in lint(acep.parse(text)) if f.rule == "trailing_negation"]
    assert [text[: s.start].count("PATTERN") for s in spans if s] == [1, 2, 3]
    assert all(text[s.start] == "y" for s in spans if s)


def test_a_query_without_a_text_of_ours_has_no_places() -> None:
    query = acep.parse("PATTERN SEQ(A a, B+ b[]) WHERE [k] WITHIN 5")
    (found,) = lint(Query("no query (", query.pattern, ties=("k",), within=query.within))
    assert found.rule == "any_match_repetition"
    assert found.span is None


def test_sources_are_looked_at() -> None:
    inner = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match(a, b[]) { [k] } WITHIN 5"
    query = acep.parse(
        f"FROM ({inner}) AS T PATTERN SEQ(T x, T y) WHERE skip_till_next_match(x, y) {{ [k] }} WITHIN 50"
    )
    assert [f.rule for f in lint(query)] == ["any_match_repetition", "composed"]


def test_the_columns_of_a_stream_are_respected() -> None:
    query = acep.parse("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 5")
    assert lint(query, Schema((("x", Kind.INT),))) == lint(query)
    with pytest.raises(QueryError, match="unknown column `x`"):
        lint(query, Schema((("y", Kind.INT),)))


def test_every_rule_says_what_it_is_for() -> None:
    assert all(rule.__doc__ for rule in RULES)


def test_random_queries_are_looked_at(cases: Callable[[int], int]) -> None:
    for seed in range(cases(200)):
        fail_if_wrong(random_case(seed), check_findings)


def check_findings(case: Case) -> None:
    for finding in lint(case.query()):
        assert finding.rule in {rule.__name__ for rule in RULES}
        assert finding.message
        assert finding.hint
