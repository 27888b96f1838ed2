"""Calls in clauses: DISTINCT where it makes no difference, arguments that are missing, lists."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import acep

ROWS = pa.table(
    {
        "i": [1, 2, 3, 4, 5],
        "x": [3, 1, 3, None, 2],
        "s": ["b", "a", "b", None, "c"],
        "tags": [["q"], ["p"], ["q"], None, []],
    }
)


def measured(measure: str) -> Any:
    table = acep.match_recognize(ROWS, f"ORDER BY i MEASURES {measure} AS z PATTERN (A+)")
    (value,) = table["z"].to_pylist()
    return value


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("max_by(DISTINCT s, x)", "b"),
        ("min_by(DISTINCT s, x)", "a"),
        ("max(DISTINCT x)", 3),
        ("bool_or(DISTINCT x > 2)", True),
        ("every(DISTINCT x > 2)", False),
        ("any_value(DISTINCT s)", "b"),
        ("sum(DISTINCT x)", 6),
        ("array_agg(DISTINCT x)", [3, 1, 2]),
        ("array_agg(DISTINCT tags)", [["q"], ["p"], []]),
        ("LISTAGG(DISTINCT s, '-')", "b-a-c"),
        ("string_agg(DISTINCT s, '-')", "b-a-c"),
        ("replace('banana', 'na')", "ba"),
    ],
)
def test_a_call_gives(measure: str, value: Any) -> None:
    assert measured(measure) == value


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("count_if(DISTINCT x > 1)", "DISTINCT is not supported in this count_if"),
        ("split_part(s)", "split_part takes 3 arguments, not 1"),
        ("split_part(s, s)", "split_part takes 3 arguments, not 2"),
        ("substr(s)", "substring takes 2 to 3 arguments, not 1"),
        ("floor()", "floor takes 1 argument, not 0"),
        ("max_by(s)", "max_by needs two arguments"),
    ],
)
def test_a_call_is_refused_with_its_place_and_a_hint(measure: str, message: str) -> None:
    with pytest.raises(acep.QueryError) as caught:
        measured(measure)
    assert caught.value.message == message
    assert caught.value.start is not None
    assert caught.value.hint


def test_permute_of_one_pattern_is_that_pattern() -> None:
    clause = "ORDER BY i MEASURES FIRST(i) AS s, LAST(i) AS e PATTERN ({}) DEFINE B AS x = 1"
    permuted, plain = (acep.match_recognize(ROWS, clause.format(text)).to_pydict() for text in ("PERMUTE(A B)", "A B"))
    assert permuted == plain == {"s": [1], "e": [2]}
