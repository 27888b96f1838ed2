"""Aggregates over segments of rows that NumPy has no operation for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import acep
from acep.events.batch import Column
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


def test_different_values_so_far_are_counted_in_one_pass() -> None:
    """The values of each row are looked at once, and matches of other rows begin anew."""
    rows = {"k": [1, 1, 1, 2, 2, 2], "i": [1, 2, 3, 1, 2, 3], "x": ["u", "v", "u", None, "v", "w"]}
    clause = """PARTITION BY k ORDER BY i MEASURES count(DISTINCT x) AS n, FINAL count(DISTINCT x) AS total
        ALL ROWS PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (a a+?)"""
    result = acep.match_recognize(rows, clause)
    assert result["n"] == [1, 2, 1, 2, 0, 1, 1, 2]
    assert result["total"] == [2, 2, 2, 2, 1, 1, 2, 2]


def test_the_time_of_different_values_so_far_grows_as_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0

    class CountedList(list[Any]):
        def __getitem__(self, place: Any) -> Any:
            nonlocal looked_at
            part = super().__getitem__(place)
            looked_at += len(part) if isinstance(place, slice) else 1
            return part

    to_list = Column.to_list
    monkeypatch.setattr(Column, "to_list", lambda column: CountedList(to_list(column)))
    n = 2_000
    clause = "ORDER BY i MEASURES count(DISTINCT x) AS n ALL ROWS PER MATCH PATTERN (a+)"
    rows = {"i": [*range(n)], "x": [i % 7 for i in range(n)]}
    assert acep.match_recognize(rows, clause)["n"][-1] == 7
    assert n <= looked_at <= 2 * n
