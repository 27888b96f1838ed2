"""Overload on Spark: the harness runs small, and its page says what its rows say."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from experiments.spark import shedding
from experiments.spark.shedding import Trial, body, main


def test_a_query_runs_exactly_under_a_budget_and_with_events_dropped(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shedding, "BETWEEN", (0.5,))
    monkeypatch.setattr(shedding, "PARTS", {"rise": ()})
    arguments = ["--queries", "rise", "--batches", "2", "--scale", "0.02", "--output", str(tmp_path)]
    assert main(arguments, spark) == 0
    with (tmp_path / "shedding.csv").open(encoding="utf-8") as file:
        rows = {row["way"]: row for row in csv.DictReader(file)}
    assert {"exact", "floor", "budget"} <= set(rows)
    assert float(rows["exact"]["recall"]) == 1
    assert int(rows["exact"]["points"]) > 100
    assert (float(rows["floor"]["carried"]), int(rows["floor"]["points"])) == (0, 0)
    assert "## rise" in (tmp_path / "shedding.md").read_text(encoding="utf-8")


def test_the_page_says_how_near_a_budget_came() -> None:
    found = [
        Trial("rise", "exact", 0, 2.0, 1.0, 1000, 1.0, 1.0),
        Trial("rise", "floor", 0, 1.0, 0.0, 0, 0.0, 0.0),
        Trial("rise", "budget", 1.5, 1.65, 0.55, 500, 0.5, 0.52),
    ]
    assert "| budget | 1.50 | 1.65 | 1.10 | 0.55 | 0.500 | 0.520 | 0.400 |" in body(found)
