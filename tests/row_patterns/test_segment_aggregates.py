"""Aggregates over segments of rows that NumPy has no operation for."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

import acep
from acep.events.batch import Column
from acep.functions.aggregates import AGGREGATES, distinct_values
from tests.case_counts import CaseCounts

CLAUSE = """PARTITION BY k ORDER BY i MEASURES FINAL variance_pop(x) AS all_rows, variance_pop(x) AS so_far
    ALL ROWS PER MATCH PATTERN (a+)"""


def test_an_aggregate_over_all_rows_is_computed_once_for_each_match(monkeypatch: pytest.MonkeyPatch) -> None:
    variance, sizes = AGGREGATES["variance_pop"], list[int]()

    def counted(values: list[Any], *others: Any) -> Any:
        sizes.append(len(values))
        assert variance.of_rows is not None
        return variance.of_rows(values, *others)

    monkeypatch.setitem(AGGREGATES, "variance_pop", replace(variance, of_rows=counted))
    result = acep.match_recognize({"k": [1, 1, 1, 2, 2], "i": [1, 2, 3, 1, 2], "x": [5, 1, 3, None, 8]}, CLAUSE)
    assert result["all_rows"] == [pytest.approx(8 / 3)] * 3 + [0, 0]
    assert result["so_far"] == [0, 4, pytest.approx(8 / 3), None, 0]
    assert sorted(sizes) == [1, 1, 2, 2, 2, 3, 3]


def test_different_values_so_far_are_counted_in_one_pass() -> None:
    """The values of each row are looked at once, and matches of other rows begin anew."""
    rows = {"k": [1, 1, 1, 2, 2, 2], "i": [1, 2, 3, 1, 2, 3], "x": ["u", "v", "u", None, "v", "w"]}
    clause = """PARTITION BY k ORDER BY i MEASURES count(DISTINCT x) AS n, FINAL count(DISTINCT x) AS total
        ALL ROWS PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (a a+?)"""
    result = acep.match_recognize(rows, clause)
    assert result["n"] == [1, 2, 1, 2, 0, 1, 1, 2]
    assert result["total"] == [2, 2, 2, 2, 1, 1, 2, 2]


@pytest.mark.parametrize("name", [name for name, entry in AGGREGATES.items() if entry.running])
def test_an_aggregate_so_far_is_that_of_its_rows(name: str, cases: CaseCounts) -> None:
    entry = AGGREGATES[name]
    assert entry.running is not None
    for seed in range(cases(400)):
        random = Random(seed)
        rows = [(random.choice((None, 1.5, -2.0, 0.0, 7.25)), random.choice((None, 1, 2, 3))) for _ in range(12)]
        add = entry.running()
        for end, row in enumerate(rows, 1):
            values, keys = ([*column] for column in zip(*rows[:end], strict=True))
            of_rows = entry.of_rows or (lambda values, *others: len(distinct_values(values)))
            assert add(row[0], row[1:]) == of_rows(values, [keys], ()), (seed, rows[:end])


@pytest.mark.parametrize(
    "measure",
    [
        "count(DISTINCT x)",
        "median(x)",
        "any_value(x)",
        "max_by(x, i)",
        "min_by(x, i)",
        "sum(DISTINCT x)",
        "avg(DISTINCT x)",
        "median(DISTINCT x)",
    ],
)
def test_the_time_of_an_aggregate_so_far_grows_as_the_rows(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
    clause = f"ORDER BY i MEASURES {measure} AS n ALL ROWS PER MATCH PATTERN (a+)"
    rows = {"i": [*range(n)], "x": [i % 7 for i in range(n)]}
    assert len(acep.match_recognize(rows, clause)["n"]) == n
    assert n <= looked_at <= 2 * n
