"""The memory of a large first micro-batch: the harness runs small, and its page says what its rows say."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from experiments.spark.first_batch import BUCKETS, First, main, write_body

pytestmark = pytest.mark.long


@pytest.mark.whole
def test_the_memory_of_workers_is_measured(spark: Any, tmp_path: Path) -> None:
    assert main(["--rows", "3000", "--output", str(tmp_path)], spark) == 0
    with (tmp_path / "first_batch.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["buckets"]) for row in rows] == list(BUCKETS)
    assert all(int(row["worker"]) > 50e6 for row in rows)  # an interpreter with its libraries
    assert "| 3,000 |" in (tmp_path / "first_batch.md").read_text(encoding="utf-8")


def test_a_page_has_a_line_for_each_run() -> None:
    text = write_body([First(1_000, 8, 7, 40_000, 150_000_000)])
    assert "| 1,000 | 8 | 7 | 40 kB | 150 MB |" in text
