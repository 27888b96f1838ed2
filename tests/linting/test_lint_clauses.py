"""Each rule of the lint of MATCH_RECOGNIZE finds what it is about, and is silent beside it."""

from __future__ import annotations

from typing import Any

import pytest

import acep
from acep.linting.clause_lint import CLAUSE_RULES, lint_statement

TICKS = {"symbol": ["a", "a", "b"], "day": [1, 2, 1], "price": [3, 4, 5], "name": ["x", "y", "z"]}
PLAIN = "PARTITION BY symbol ORDER BY day MEASURES FIRST(day) AS s PATTERN (A B+) DEFINE B AS price > PREV(price)"


def changed(*pairs: tuple[str, str]) -> str:
    """The plain clause with parts in place of others."""
    clause = PLAIN
    for old, new in pairs:
        assert old in clause
        clause = clause.replace(old, new)
    return clause


CONDITION = "price > PREV(price)"
# rule, severity, a clause in which it finds something, the text at its place, and one beside it in which it does not
EXAMPLES: list[tuple[str, str, str, str, str]] = [
    ("condition_never", "error", changed((CONDITION, "price > LAST(B.price)")), "price > LAST(B.price)",
     changed((CONDITION, "price > LAST(A.price)"))),
    ("condition_never", "error", changed((CONDITION, "B.price <> price")), "B.price <> price",
     changed((CONDITION, "B.price <> LAST(B.price, 1)"))),
    ("condition_never", "error", changed(("(A B+)", "(B A)"), (CONDITION, "price > 3 AND price > LAST(A.price)")),
     "price > LAST(A.price)", changed(("(A B+)", "((B A)+)"), (CONDITION, "price > 3 AND price > LAST(A.price)"))),
    ("condition_never", "error", changed(("(A B+)", "(A | B)"), (CONDITION, "A.price < price")), "A.price < price",
     changed(("(A B+)", "PERMUTE(A, B)"), (CONDITION, "A.price < price"))),
    ("condition_never", "error", changed(("(A B+)", "(B A)"), (CONDITION, "PREV(A.price, 2) = price")),
     "PREV(A.price, 2) = price", changed(("(A B+)", "(B A) ERRORS 1"), (CONDITION, "PREV(A.price, 2) = price"))),
    ("condition_always", "warning", changed((CONDITION, "price >= LAST(price, 0)")), "price >= LAST(price, 0)",
     changed((CONDITION, "price >= FIRST(price)"))),
    ("null_compared", "error", changed((CONDITION, "price <> NULL")), "price",
     changed((CONDITION, "price IS NULL"))),
    ("variable_unlike", "warning", changed(("(A B+)", "(A DOWN* DWON)"), ("B AS", "DOWN AS")), "DWON",
     changed(("(A B+)", "(STRT DOWN1 DOWN2)"), ("B AS", "DOWN1 AS"))),
    ("label_case", "warning", changed((CONDITION, "PREV(CLASSIFIER()) = 'b' OR CLASSIFIER(B) <> 'B'")), "'b'",
     changed((CONDITION, "LOWER(PREV(CLASSIFIER())) = 'b' OR name = 'b'"))),
    ("label_case", "warning", changed(("FIRST(day) AS s", "contains(array_agg(CLASSIFIER()), 'a') AS s")), "'a'",
     changed(("FIRST(day) AS s", "contains(array_agg(CLASSIFIER()), 'A') AS s"))),
    ("label_case", "warning", changed(("FIRST(day) AS s", "array_agg(CLASSIFIER()) = ARRAY['A', 'b'] AS s")), "'b'",
     changed(("FIRST(day) AS s", "array_agg(name) = ARRAY['a', 'b'] AS s"))),
    ("label_case", "warning", changed(("FIRST(day) AS s", "CASE LAST(CLASSIFIER()) WHEN 'a' THEN 1 END AS s")), "'a'",
     changed(("FIRST(day) AS s", "LAST(CLASSIFIER()) IN ('a', 'c') AS s"), ("(A B+)", '("a" B+)'))),
    ("pattern_empty", "warning", changed(("(A B+)", "(B*)")), "", changed(("(A B+)", "(B* A)"))),
    ("pattern_reluctant", "warning", changed(("B+", "B+?")), "", changed(("B+", "B+? A"))),
    ("order_missing", "warning", changed(("ORDER BY day ", "")), "", PLAIN),
    ("order_ties", "warning", changed(("PARTITION BY symbol ", "")), "day",
     changed(("day MEASURES", "day, symbol MEASURES"))),
    ("partition_missing", "note", changed(("PARTITION BY symbol ", "")), "", PLAIN),
    ("rows_running", "note", changed(("FIRST(day)", "RUNNING COUNT(*)")), "RUNNING COUNT(*)",
     changed(("FIRST(day)", "COUNT(*)"))),
    ("rows_running", "note", changed(("FIRST(day) AS s", "LAST(B.price) AS s ALL ROWS PER MATCH")), "LAST(B.price)",
     changed(("FIRST(day) AS s", "FINAL LAST(B.price) AS s ALL ROWS PER MATCH"))),
    ("work_bound", "note", changed((CONDITION, "price > A.price")), "",
     changed((CONDITION, "price > A.price"), ("B+", "B{1,3}"))),
    ("work_bound", "warning", changed((CONDITION, "SUM(B.price) < 9")), "",
     changed((CONDITION, "SUM(B.price) < 9"), ("DEFINE", "WITHIN 3 DEFINE"))),
    ("work_bound", "note", changed(("PATTERN", "AFTER MATCH SKIP TO NEXT ROW PATTERN")), "",
     changed(("PATTERN", "AFTER MATCH SKIP TO NEXT ROW PATTERN"), ("B+", "B{1,3}"))),
    ("state_unbounded", "note", changed(("(A B+)", "(A X* B)")), "X",
     changed(("(A B+)", "(A X* B)"), ("DEFINE", "WITHIN 3 DEFINE"))),
    ("engine_slow", "warning", changed((CONDITION, "replace(name, 'x', 'y') > A.name")), "",
     changed((CONDITION, "replace(name, 'x', 'y') > 'b'"))),
    ("engine_slow", "warning", changed((CONDITION, "MAX(LOWER(CLASSIFIER())) = 'b'")), "",
     changed((CONDITION, "FIRST(CLASSIFIER()) = 'A'"))),
]  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{e[0]}-{i}" for i, e in enumerate(EXAMPLES)])
def test_a_rule_finds_what_it_is_about(example: Any) -> None:
    rule, severity, clause, place, beside = example
    if rule == "engine_slow":
        pytest.importorskip("acep.native._native")
    (finding,) = [finding for finding in acep.lint_clause(TICKS, clause) if finding.code == rule]
    assert finding.severity == severity
    assert finding.hint
    assert place == ("" if finding.span is None else clause[finding.span.start : finding.span.end])
    assert rule not in acep.lint_clause(TICKS, beside).codes


def test_each_rule_has_an_example() -> None:
    assert {rule.__name__ for rule in CLAUSE_RULES} == {example[0] for example in EXAMPLES}


def test_nothing_is_wrong_with_a_plain_clause() -> None:
    assert str(acep.lint_clause(TICKS, PLAIN)) == "3 events: nothing looks wrong"


def test_a_clause_that_cannot_run_is_a_finding() -> None:
    (finding,) = acep.lint_clause(TICKS, changed(("price > PREV", "prise > PREV")))
    assert (finding.code, finding.severity, finding.hint) == ("query", "error", "did you mean `price`?")


def test_statements_have_places_of_their_own() -> None:
    """Without tables the text alone tells."""
    clauses = [changed((CONDITION, "price = NULL")), changed((CONDITION, "price < LAST(B.price)"))]
    text = " UNION ALL ".join(f"SELECT * FROM ticks MATCH_RECOGNIZE ({clause})" for clause in clauses)  # noqa: S608
    places = {"null_compared": "price", "condition_never": "price < LAST(B.price)"}
    for tables in ({}, {"ticks": TICKS}):
        findings = lint_statement(text, **tables)
        assert {f.code: text[f.span.start : f.span.end] for f in findings if f.span is not None} == places


def test_a_statement_that_cannot_run_is_a_finding() -> None:
    (finding,) = lint_statement("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)", t=TICKS)
    assert finding.code == "query"
