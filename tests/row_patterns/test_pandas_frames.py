"""Clauses over frames of pandas: integers with nulls are exact, and a column that is left out is named."""

from __future__ import annotations

import pytest

import acep

pd = pytest.importorskip("pandas")

LARGE = 2**60 + 1
CLAUSE = (
    "ORDER BY day MEASURES FIRST(x) AS first, LAST(x, 1) AS before, day > 1 AS later ALL ROWS PER MATCH PATTERN (a+)"
)


def test_integers_and_truth_values_with_nulls_are_exact() -> None:
    frame = pd.DataFrame(
        {"day": [1, 2, 3], "x": pd.array([LARGE, None, 3], "Int64"), "b": pd.array([True, None, False], "boolean")}
    )
    matcher = acep.Matcher(CLAUSE)
    matcher.push(frame)
    for result in (acep.match_recognize(frame, CLAUSE), matcher.finish(),
                   acep.sql(f"SELECT * FROM t MATCH_RECOGNIZE ({CLAUSE})", t=frame)):  # noqa: S608 - the statement of a test  # fmt: skip
        assert result["x"].tolist() == [LARGE, pd.NA, 3]
        assert result["before"].tolist() == [pd.NA, LARGE, pd.NA]
        assert result["b"].tolist() == [True, pd.NA, False]
        assert [str(result[name].dtype) for name in ("first", "x", "before", "later")] == [
            "int64",
            "Int64",
            "Int64",
            "bool",
        ]


def test_a_column_that_is_left_out_is_named_with_the_reason() -> None:
    frame = pd.DataFrame({"day": [1, 2], "x": ["a", 1]})
    with pytest.raises(acep.QueryError, match="column `x` mixes int and str"):
        acep.match_recognize(frame, "ORDER BY day MEASURES LAST(x) AS last PATTERN (a+)")
