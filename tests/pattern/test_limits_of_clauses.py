"""docs/reference/sql.md names the limits of statements, clauses, patterns and expressions, and they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

import acep
from acep.pattern.sql import clause_parser, expression_parser, pattern_parser, statement
from acep.plan.ordered import pattern_states, sql_expressions

PAGE = Path(__file__).parents[2] / "docs/reference/sql.md"
ROWS = {"i": [1, 2], "x": [1.0, 2.0]}


def clause_of(pattern: str = "(A)", condition: str = "TRUE") -> str:
    return f"ORDER BY i MEASURES FIRST(i) AS s PATTERN {pattern} DEFINE A AS {condition}"


def test_the_page_names_the_limits() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert (
        f"A statement has at most {statement.MOST_TEXT:,} characters, a clause {clause_parser.MOST_TEXT:,} and an"
        f" expression {expression_parser.MOST_SIGNS:,} or {sql_expressions.MOST_NODES:,} parts. Parentheses are nested"
        f" at most {pattern_parser.MOST_DEPTH} deep in a pattern; expressions that are nested deeper than 40 may be"
        f" refused. A pattern has at most {pattern_states.MOST_STATES:,} states (`A{{n}}` has `n` of them), and"
        f" `ERRORS` is at most {clause_parser.MOST_ERRORS}."
    ) in text


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        (clause_of() + " " * 199_000, clause_of() + " " * 200_000),
        (clause_of(condition="x >" + " " * 19_000 + "0"), clause_of(condition="x >" + " " * 20_000 + "0")),
        (clause_of("(" * 190 + "A" + ")" * 190), clause_of("(" * 202 + "A" + ")" * 202)),
        (clause_of(condition="(" * 40 + "x > 0" + ")" * 40), clause_of(condition="(" * 125 + "x > 0" + ")" * 125)),
        (clause_of(condition="x > 0" + " AND x > 0" * 1_000), clause_of(condition="x > 0" + " AND x > 0" * 1_400)),
        (clause_of("(A B) ERRORS 1"), clause_of("(A) ERRORS 21")),
        (clause_of("(A{1000} | A)"), clause_of("(A{200000} | A)")),
    ],
    ids=["characters", "characters of an expression", "depth of a pattern", "depth", "parts", "errors", "states"],
)
def test_a_limit_holds(within: str, beyond: str) -> None:
    assert acep.match_recognize(ROWS, within)["s"]
    with pytest.raises(acep.QueryError):
        acep.match_recognize(ROWS, beyond)
