"""``ERRORS k``: rows of a pattern may be missing, and the fewest are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import QueryError
from acep.pattern.sql.clause_parser import parse_clause
from acep.plan.ordered.missing_rows import allow_missing
from acep.plan.ordered.pattern_states import compile_pattern
from acep.row_patterns import row_search
from tests.case_counts import CaseCounts
from tests.row_patterns.test_streams import batches_of, run_stream

DEFINE = "DEFINE A AS c = 'a', B AS c = 'b', C AS c = 'c', D AS c = 'd'"


def rows_of(letters: str) -> pa.Table:
    return pa.table({"i": range(1, len(letters) + 1), "c": pa.array(list(letters), pa.string())})


def clause_of(pattern: str, errors: int | None, define: str = DEFINE, skip: str = "PAST LAST ROW") -> str:
    """A clause that gives the rows of each match and how many are missing; variables that are not used are left out."""
    b = "LAST(B.i)" if "B" in pattern else "NULL"
    measures = f"FIRST(i) AS start, LAST(i) AS stop, MISSING_ROWS() AS missing, {b} AS b"
    used = ", ".join(part for part in define.removeprefix("DEFINE ").split(", ") if part[0] in pattern)
    budget = "" if errors is None else f"ERRORS {errors}"
    return f"ORDER BY i MEASURES {measures} AFTER MATCH SKIP {skip} PATTERN ({pattern}) {budget} DEFINE {used}"


def matches(letters: str, pattern: str, errors: int | None, **options: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in acep.match_recognize(
        rows_of(letters), clause_of(pattern, errors, **options)).to_pylist()]  # fmt: skip


@pytest.mark.parametrize(
    ("letters", "pattern", "errors", "expected"),
    [
        ("abc", "A B C", 1, [(1, 3, 0, 2)]),
        ("ac", "A B C", 0, []),
        ("ac", "A B C", 1, [(1, 2, 1, None)]),
        ("a", "A B C", 1, []),
        ("a", "A B C", 2, [(1, 1, 2, None)]),
        ("bc", "A B C", 1, [(1, 2, 1, 1)]),
        ("x", "A B C", 3, []),  # at least one row is there
        ("xacabc", "A B C", 1, [(2, 3, 1, None), (4, 6, 0, 5)]),
        ("abbc", "A B{3} C", 1, [(1, 4, 1, 3)]),
        ("abbbc", "A B{3} C", 1, [(1, 5, 0, 4)]),
        ("abc", "A B? C", 1, [(1, 3, 0, 2)]),
        ("ab", "A B*", 1, [(1, 2, 0, 2)]),  # what need not be there is not missing
        ("b", "A B", 1, [(1, 1, 1, 1)]),
        ("cd", "(A B | C D)", 1, [(1, 2, 0, None)]),
        ("c", "(A B | C D)", 1, [(1, 1, 1, None)]),
        ("", "A*", 1, []),
    ],
)
def test_matches(letters: str, pattern: str, errors: int, expected: list[tuple[Any, ...]]) -> None:
    assert matches(letters, pattern, errors) == expected


def test_conditions_on_what_is_missing_are_left_out() -> None:
    define = "DEFINE A AS c = 'a', B AS c = 'b' AND i > A.i, C AS c = 'c' AND B.i > 0"
    assert matches("bc", "A B C", 1, define=define) == [(1, 2, 1, 1)]
    assert matches("ac", "A B C", 1, define=define) == [(1, 2, 1, None)]
    assert matches("abc", "A B C", 1, define=define.replace("B.i > 0", "B.i > 5")) == [(1, 2, 1, 2)]


def deletions(variables: str, errors: int) -> Iterator[str]:
    """Yield the patterns with exactly so many variables missing, those that are there preferred from left to right."""
    choices = combinations(range(len(variables)), len(variables) - errors)
    yield from (" ".join(variables[place] for place in places) for places in choices)


@pytest.mark.parametrize("is_native", [True, False])
def test_a_sequence_is_a_choice_of_shorter_ones(
    is_native: bool, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ERRORS says in short what a choice of patterns says at length."""
    monkeypatch.setattr(row_search, "USE_NATIVE", is_native)
    rng = Random(5)
    for _ in range(cases(300)):
        variables = "".join(rng.choices("ABCD", k=rng.randint(1, 4)))
        errors = rng.randint(1, min(3, len(variables)))
        letters = "".join(rng.choices("abcdx", k=rng.randint(0, 12)))
        skip = rng.choice(["PAST LAST ROW", "TO NEXT ROW"])
        ways = [way for count in range(errors + 1) for way in deletions(variables, count) if way]
        short = matches(letters, " ".join(variables), errors, skip=skip)
        long = matches(letters, " | ".join(ways), None, skip=skip)
        assert [row[:2] for row in short] == [row[:2] for row in long], (variables, errors, letters)
        sizes = [len(variables) - (row[1] - row[0] + 1) for row in short]
        assert [row[2] for row in short] == sizes


@pytest.mark.long
def test_streams_and_all_rows(cases: CaseCounts) -> None:
    rng = Random(6)
    patterns = ["A B+ C", "(A B)+? C", "A B{2,3} $", "^ A C? B", "(A | B C) D"]
    for pattern, errors in product(patterns, (1, 2)):
        for _ in range(cases(20)):
            table = rows_of("".join(rng.choices("abcd", k=9)))
            for text in (clause_of(pattern, errors), clause_of(pattern, errors).replace(
                "PATTERN", "ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN")):  # fmt: skip
                text = text.replace("AFTER MATCH SKIP PAST LAST ROW", "")  # noqa: PLW2901
                stream = run_stream(text, batches_of(table, 2), restores=True)
                assert stream.to_pylist() == acep.match_recognize(table, text).to_pylist()


def test_states_grow_with_the_square_of_the_errors() -> None:
    pattern = compile_pattern(parse_clause("PATTERN (A B+ (C | D){5})").pattern)
    sizes = [len(allow_missing(pattern, errors).states) for errors in (1, 2, 4)]
    assert sizes[2] < 4 * sizes[1] < 16 * sizes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN (A) ERRORS 1.5", "ERRORS takes a number from 0 to 20"),
        ("PATTERN (A) ERRORS 21", "ERRORS takes a number from 0 to 20"),
        ("PATTERN (A) ERRORS 1 ERRORS 2", "stands twice"),
        ("PATTERN (A) DEFINE A AS MISSING_ROWS() = 0", "MISSING_ROWS is not possible in DEFINE"),
        ("MEASURES MISSING_ROWS(A.x) AS m PATTERN (A)", "takes no arguments"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        acep.match_recognize({"x": [1]}, text)


def test_errors_is_a_name_where_no_number_follows() -> None:
    clause = "ORDER BY errors MEASURES LAST(errors) AS e PATTERN (A+)"
    assert acep.match_recognize({"errors": [2, 1]}, clause) == {"e": [2]}
