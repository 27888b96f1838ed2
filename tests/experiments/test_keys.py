"""Growth by keys on Spark: the harness runs small, and its page says what its rows say."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from experiments.spark import keys
from experiments.spark.keys import Growth, main, write_body

pytestmark = pytest.mark.long


@pytest.mark.whole
def test_live_keys_are_counted_and_idle_ones_are_freed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "FEWEST", {"seq": 1, "rise": 10**9})
    assert main(["--keys", "40", "--rows", "600", "--batches", "4", "--output", str(tmp_path)], spark) == 0
    with (tmp_path / "keys.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["query"], row["keys"], row["rows"]) == ("seq", "40", "600")
    assert int(row["live"]) > 0
    assert int(row["idle_live"]) == 0
    assert 0 < int(row["idle_state"]) < int(row["state"])
    assert "| 40 |" in (tmp_path / "keys.md").read_text(encoding="utf-8")


def test_a_page_has_a_table_for_each_query() -> None:
    names = ("seq", "rise")
    found = [Growth(name, n, 1_000, 0.25, 7, n // 2, 2_000 * n, 0, 500) for name in names for n in (10, 20)]
    text = write_body(found)
    assert "## seq" in text
    assert "## rise" in text
    assert "| 20 | 0.25 | 7 | 10 | 40 kB | 0 | 500B |" in text
