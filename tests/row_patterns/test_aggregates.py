"""Aggregates over segments of rows that NumPy has no operation for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import acep
from acep.functions.aggregates import AGGREGATES

CLAUSE = """PARTITION BY k ORDER BY i MEASURES FINAL median(x) AS all_rows, median(x) AS so_far
    ALL ROWS PER MATCH PATTERN (a+)"""


def test_an_aggregate_over_all_rows_is_computed_once_for_each_match(monkeypatch: pytest.MonkeyPatch) -> None:
    median, sizes = AGGREGATES["median"], list[int]()

    def counted(values: list[Any], *others: Any) -> Any:
        sizes.append(len(values))
        assert median.of_rows is not None
        return median.of_rows(values, *others)

    monkeypatch.setitem(AGGREGATES, "median", replace(median, of_rows=counted))  # type: ignore[arg-type]
    result = acep.match_recognize({"k": [1, 1, 1, 2, 2], "i": [1, 2, 3, 1, 2], "x": [5, 1, 3, None, 8]}, CLAUSE)
    assert result["all_rows"] == [3, 3, 3, 8, 8]
    assert result["so_far"] == [5, 3, 3, None, 8]
    assert sorted(sizes) == [1, 1, 2, 2, 2, 3, 3]
