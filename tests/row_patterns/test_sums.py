"""Sums and averages: exact, null beyond 64 bits and where inf and -inf meet, in each engine."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.row_patterns import row_search
from tests.case_counts import CaseCounts

MOST = 2**63 - 1


@pytest.fixture(params=["reference", "native"])
def _engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_search, "USE_NATIVE", request.param == "native")


ENGINES = pytest.mark.usefixtures("_engine")


def test_a_sum_beyond_64_bits_is_null_and_later_ones_fit_again() -> None:
    rows = {"i": [1, 2, 3, 4], "x": [MOST, 1, -1, 5]}
    result = acep.match_recognize(
        rows,
        """ORDER BY i MEASURES sum(x) AS s, avg(x) AS a, FINAL sum(x) AS total,
        sum(DISTINCT x) AS d ALL ROWS PER MATCH PATTERN (A{3} | A)""",
    )
    assert result["s"] == [MOST, None, MOST, 5]
    assert result["d"] == [MOST, None, MOST, 5]
    assert result["total"] == [MOST, MOST, MOST, 5]
    assert result["a"] == [float(MOST), 2**63 / 2, MOST / 3, 5.0]


@ENGINES
def test_a_condition_on_a_sum_beyond_64_bits_is_not_true() -> None:
    rows = {"i": [1, 2, 3, 4], "x": [MOST, 1, -1, 5]}
    for condition, expected in (
        ("sum(x) > 0", [1, 1, 2]),  # rows 1 and 2 have no sum, and neither has a negative one
        ("sum(x) IS NULL OR sum(x) > 0", [4]),
        ("NOT sum(x) < 0", [1, 3]),
        ("avg(x) > 100", [4]),
        (f"avg(x) < {2**61}", [1, 3]),
    ):
        clause = f"ORDER BY i MEASURES count(*) AS n PATTERN (A B*) DEFINE B AS {condition}"
        result = acep.match_recognize(rows, clause)["n"]
        assert result == expected, condition
        matcher = acep.Matcher(clause)
        given = [n for i in range(4) for n in matcher.push({"i": rows["i"][i : i + 1], "x": rows["x"][i : i + 1]})["n"]]
        assert given + matcher.finish()["n"] == result, condition


def test_both_engines_agree_on_wide_sums(cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [MOST, -(2**63), 2**62, -(2**62), 1, -1, 0, None, 3]
    conditions = ["sum(x) >= 0", "avg(x) < 2", "sum(B.x) IS NULL", "avg(B.x) >= avg(x)", "sum(x) + 1 > 0",
                  "avg(x) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) < x"]  # fmt: skip
    for seed in range(cases(300)):
        random = Random(seed)
        numbers = [random.choice(values) for _ in range(random.randint(1, 9))]
        scale = random.choice((None, 2))
        column = pa.array(numbers, pa.int64()) if scale is None else pa.array(
            [None if n is None else Decimal(n).scaleb(-2) for n in numbers], pa.decimal128(19, 2))  # fmt: skip
        rows = pa.table({"i": range(len(numbers)), "x": column})
        pattern = random.choice(("A B*", "A B+? C", "(A | B)+", "A (B C)*"))
        condition = random.choice(conditions)
        clause = "ORDER BY i MEASURES sum(x) AS s, avg(x) AS a, first(i) AS f ALL ROWS PER MATCH "
        clause += f"PATTERN ({pattern}) DEFINE B AS {condition}"
        results = []
        for is_native in (False, True):
            monkeypatch.setattr(row_search, "USE_NATIVE", is_native)
            results.append(acep.match_recognize(rows, clause).to_pydict())
        assert results[0] == results[1], (numbers, scale, clause)
        check_measures(results[0], numbers, scale)


def check_measures(result: dict[str, Any], numbers: list[int | None], scale: int | None) -> None:
    """Compare running sums and averages with those of exact fractions."""
    unit = 10 ** (scale or 0)
    for row, first, total, mean in zip(result["i"], result["f"], result["s"], result["a"], strict=True):
        present = [n for n in numbers[first : row + 1] if n is not None]
        exact = sum(present)
        fits = bool(present) and -(2**63) <= exact <= MOST
        assert total == ((Decimal(exact).scaleb(-2) if scale else exact) if fits else None)
        assert mean == (float(Fraction(exact, len(present) * unit)) if present else None)


@ENGINES
def test_infinite_values_that_meet_have_no_sum() -> None:
    inf = float("inf")
    rows = {"i": [1, 2, 3, 4], "x": [inf, 1.0, -inf, 2.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rest in ("PATTERN (A+)", "PATTERN (A+) DEFINE A AS sum(x) IS NULL OR avg(x) IS NOT NULL"):
            measures = "sum(x) AS s, avg(x) AS a, sum(DISTINCT x) AS d, stddev(x) AS z, median(x) AS m"
            running = acep.match_recognize(rows, f"ORDER BY i MEASURES {measures} ALL ROWS PER MATCH {rest}")
            assert running["s"] == running["a"] == running["d"] == [inf, inf, None, None]
            assert running["z"] == [None] * 4
            assert running["m"] == [inf, inf, 1.0, 1.5]
            one = acep.match_recognize(rows, f"ORDER BY i MEASURES sum(x) AS s, avg(x) AS a {rest}")
            assert one == {"s": [None], "a": [None]}
        huge = {"i": [1, 2], "x": [1.7e308, 1.7e308]}
        result = acep.match_recognize(huge, "ORDER BY i MEASURES sum(x) AS s, variance(x) AS v PATTERN (A+)")
        assert result["s"] == [inf]
        even = {"i": [1, 2], "x": [inf, -inf]}
        for rows_per_match in ("ONE ROW", "ALL ROWS"):
            clause = f"ORDER BY i MEASURES median(x) AS m {rows_per_match} PER MATCH PATTERN (A+)"
            result = acep.match_recognize(even, clause)
            assert result["m"][-1] is None
