"""Which queries are called costly, and which are not."""

from __future__ import annotations

import pytest

import acep
from acep.pattern.tree import Query
from acep.plan.lint import RULES, lint

ANY = "skip_till_any_match"
NEXT = "skip_till_next_match"


def rules(query: Query) -> set[str]:
    return {finding.rule for finding in lint(query)}


@pytest.mark.parametrize(
    ("text", "options", "found"),
    [
        ("ab", {}, set()),
        ("ab*", {}, {"any_match_repetition"}),
        ("ab{1,17}", {}, {"any_match_repetition"}),
        ("ab{1,16}", {}, set()),
        ("ab*", {"strategy": NEXT}, set()),
        ("ab", {"within": None}, {"no_window"}),
        ("ab", {"by": None}, {"no_partition"}),
        ("ab", {"by": None, "strategy": NEXT}, set()),
        ("ab", {"by": None, "within": "5 EVENTS"}, set()),
        ("a", {"by": None}, set()),
        ("ab", {"errors": 1}, {"single_events_match"}),
        ("abc", {"errors": 1}, set()),
        ("abc", {"errors": 2}, {"single_events_match"}),
        ("abc", {"errors": 2, "weights": {"a": 3, "b": 3}}, set()),
        ("ab?", {"errors": 1}, set()),
        ("a{0,2000}b", {"strategy": NEXT}, {"many_states"}),
    ],
)
def test_letter_expressions(text: str, options: dict[str, object], found: set[str]) -> None:
    settings: dict[str, object] = {"within": 5, "by": "user", **options}
    assert rules(acep.regex(text, **settings)) == found  # type: ignore[arg-type]


def test_what_is_said_names_the_place_and_a_way_out() -> None:
    (finding,) = lint(acep.regex("ab*", within=5, by="user"))
    assert str(finding).startswith("`b*` under skip till any match")
    assert "hint: use skip till next match" in str(finding)
    (finding,) = lint(acep.regex("ab", within=5, by="user", errors=1, weights={"b": 0.5}))
    assert "with 1 error a single event matches: `a` alone misses only 1/2" in finding.message


def test_sources_are_looked_at() -> None:
    inner = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match(a, b[]) { [k] } WITHIN 5"
    query = acep.parse(
        f"FROM ({inner}) AS T PATTERN SEQ(T x, T y) WHERE skip_till_next_match(x, y) {{ [k] }} WITHIN 50"
    )
    assert rules(query) == {"any_match_repetition"}


def test_every_rule_says_what_it_is_for() -> None:
    assert all(rule.__doc__ for rule in RULES)
