"""Categories in an order of their own are refused wherever a clause would order them as texts."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import acep

SIZES = ["small", "large", "small"]


def arrow_rows() -> pa.Table:
    codes = pa.array([0, 1, 0], pa.int8())
    sizes = pa.DictionaryArray.from_arrays(codes, pa.array(["small", "large"]), ordered=True)
    return pa.table({"i": [1, 2, 3], "c": sizes, "s": pa.StructArray.from_arrays([sizes], ["c"])})


TABLES: dict[str, Any] = {
    "pandas": pd.DataFrame({"i": [1, 2, 3], "c": pd.Categorical(SIZES, ["small", "large"], ordered=True)}),
    "polars": pl.DataFrame({"i": [1, 2, 3], "c": SIZES}, schema_overrides={"c": pl.Enum(["small", "large"])}),
    "arrow": arrow_rows(),
}
MEASURES = [
    "max(c)", "min(A.c)", "max(DISTINCT c)", "max(c) FILTER (WHERE i > 1)", "last(c) > first(c)", "c <= 'small'",
    "c BETWEEN 'a' AND 'b'", "'large' BETWEEN c AND 'z'", "least(c, 'z')", "greatest(first(c), last(c))",
    "max_by(i, c)", "min_by(i, c)", "array_agg(i ORDER BY c)", "string_agg(c, ',' ORDER BY c)",
    "string_agg(c, ',') WITHIN GROUP (ORDER BY c)", "PREV(c > 'a')", "coalesce(c, 'x') > 'a'", "max(coalesce(c, 'x'))",
    "CASE WHEN i > 1 THEN c END > 'a'", "max(CASE WHEN CLASSIFIER() = 'A' THEN c END)", "any_value(c) < 'b'",
    "max_by(c, i) < 'b'",
]  # fmt: skip
CONDITIONS = ["c > PREV(c)", "c > 'large'", "max(c) > 'large'", "max_by(i, c) > 1", "LAST(A.c, 1) < c",
              "max(c) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) > 'a'"]  # fmt: skip
CLAUSES = [
    *(f"ORDER BY i MEASURES {measure} AS m PATTERN (A+)" for measure in MEASURES),
    *(f"ORDER BY i MEASURES count(*) AS m PATTERN (A+) DEFINE A AS {condition}" for condition in CONDITIONS),
    "ORDER BY i, c DESC MEASURES count(*) AS m PATTERN (A+)",
    "ORDER BY i, coalesce(c, 'x') MEASURES count(*) AS m PATTERN (A+)",
]
ALLOWED = """PARTITION BY c ORDER BY i MEASURES first(c) AS f, last(c) = 'small' AS s, count(DISTINCT c) AS n,
    any_value(c) AS v, max_by(c, i) AS b, max(upper(c)) AS u, string_agg(c, ',') AS t, c IN ('small', 'x') AS k
    PATTERN (A+) DEFINE A AS c = 'small' AND (PREV(c) IS NULL OR c = PREV(c))"""


def check_refused(error: acep.QueryError, clause: str) -> None:
    assert "have an order of their own, and would be compared as texts" in str(error)
    assert "`c`" in str(error)
    assert "#" not in str(error)
    assert "hint: compare a column of their codes" in str(error)
    assert "line 1, column" in str(error), clause


@pytest.mark.parametrize("clause", CLAUSES)
def test_an_order_of_categories_is_refused_with_its_place(clause: str) -> None:
    for rows in TABLES.values():
        with pytest.raises(acep.QueryError) as refused:
            acep.match_recognize(rows, clause)
        check_refused(refused.value, clause)


@pytest.mark.parametrize("clause", [CLAUSES[0], CLAUSES[len(MEASURES)], CLAUSES[-2]])
def test_each_door_refuses_an_order_of_categories(clause: str) -> None:
    for rows in TABLES.values():
        with pytest.raises(acep.QueryError, match="have an order of their own"):
            acep.sql(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", t=rows)  # noqa: S608
        with pytest.raises(acep.QueryError, match="have an order of their own"):
            acep.Matcher(clause).push(rows)


def test_an_order_of_categories_in_a_struct_is_refused() -> None:
    for measure in ("max(s.c)", "max(A.s.c)", "s.c > 'a'"):
        with pytest.raises(acep.QueryError, match=r"`s\.c` have an order of their own"):
            acep.match_recognize(TABLES["arrow"], f"ORDER BY i MEASURES {measure} AS m PATTERN (A+)")


def test_categories_are_compared_for_equality() -> None:
    for rows in TABLES.values():
        result = acep.match_recognize(rows, ALLOWED)
        values = {name: list(result[name]) for name in ("u", "t", "n")} if rows is not TABLES["arrow"] else (
            result.to_pydict())  # fmt: skip
        assert values["u"] == ["SMALL"]
        assert values["t"] == ["small,small"]
        assert values["n"] == [1]


def test_categories_without_an_order_are_texts() -> None:
    rows = pd.DataFrame({"i": [1, 2], "c": pd.Categorical(["b", "a"])})
    assert acep.match_recognize(rows, "ORDER BY i MEASURES max(c) AS m PATTERN (A+)")["m"].tolist() == ["b"]


def test_a_query_refuses_what_may_be_categories_in_an_order() -> None:
    rows = TABLES["pandas"].rename(columns={"i": "ts"})
    for condition in ("coalesce(a.c, 'x') > 'a'", "CASE WHEN a.ts > 1 THEN a.c ELSE 'x' END < 'b'"):
        with pytest.raises(acep.QueryError, match="have an order of their own"):
            acep.match(rows, f"PATTERN SEQ(ANY a) WHERE {condition} WITHIN 5")


def test_a_query_counts_categories_in_an_order() -> None:
    rows = TABLES["pandas"].rename(columns={"i": "ts"}).assign(type="A")
    assert len(acep.match(rows, "PATTERN SEQ(A+ a[]) WHERE count(a[].c) > 2 WITHIN 5")) == 1
