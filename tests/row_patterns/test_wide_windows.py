"""WITHIN of more than half of what 64 bits hold: distances are exact."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import acep
from acep.row_patterns import row_search

LEAST, MOST = -(2**63), 2**63 - 1
CLAUSE = "ORDER BY n MEASURES count(*) AS c PATTERN (A+) WITHIN {}"
ROWS: list[tuple[list[int], int, list[int]]] = [
    ([0, 2**62 + 1], MOST, [2]),
    ([0, 2**62 + 1], 2**62 + 1, [2]),
    ([0, 2**62 + 1], 2**62, [1, 1]),
    ([-5, MOST], MOST, [1, 1]),
    ([-5, MOST - 6, MOST - 5, MOST - 4], MOST, [3, 1]),
    ([LEAST, MOST], 2**64, [2]),
    ([LEAST, MOST], 2**64 - 1, [2]),
    ([LEAST, MOST], 2**64 - 2, [1, 1]),
    ([LEAST, -1, 0], 2**63 - 1, [2, 1]),
    ([LEAST, LEAST + 1, 5], 0, [1, 1, 1]),
]


@pytest.mark.parametrize("is_native", [False, True])
@pytest.mark.parametrize(("times", "width", "counts"), ROWS)
def test_a_wide_window_is_exact(
    times: list[int], width: int, counts: list[int], is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_search, "USE_NATIVE", is_native)
    clause = CLAUSE.format(width)
    assert acep.match_recognize({"n": times}, clause) == {"c": counts}
    depth_first = clause + " DEFINE A AS count(A.n) < 9"
    assert acep.match_recognize({"n": times}, depth_first) == {"c": counts}
    matcher = acep.Matcher(clause)
    given: list[Any] = [row for n in times for row in matcher.push({"n": [n]})["c"]]
    assert given + matcher.finish()["c"] == counts


@pytest.mark.parametrize("is_native", [False, True])
def test_a_wide_window_of_nanoseconds_is_exact(is_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_search, "USE_NATIVE", is_native)
    rows = pd.DataFrame({"n": pd.to_datetime(["1900-01-01", "2050-01-01"])}).astype("datetime64[ns]")
    for days, counts in (("100000", [2]), ("50000", [1, 1])):
        result = acep.match_recognize(rows, CLAUSE.format(f"INTERVAL '{days}' DAY"))
        assert result["c"].tolist() == counts
