"""A long stream on Spark: the harness runs small, and its page says what grows."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.spark import long_run
from experiments.spark.long_run import Streamed, Written, growths, main, write_body

pytestmark = pytest.mark.long


@pytest.mark.whole
def test_a_stream_and_versions_are_looked_at(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_run, "ROWS", 6_000)
    monkeypatch.setattr(long_run, "RETAINED", 10)
    main(["--batches", "6", "--versions", "50", "--output", str(tmp_path)], spark)
    with (tmp_path / "long_run.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    streamed, written = ([row for row in rows if row["table"] == name] for name in ("batches", "versions"))
    assert [int(row["done"]) for row in streamed] == [1, 2, 3, 4, 5, 6]
    assert all(int(row[name]) > 50e6 for row in streamed for name in ("driver", "jvm", "workers"))
    # Of each micro-batch two versions in a folder; above them a query, a call, and a run in its folder.
    assert [int(row["state_files"]) for row in streamed] == [3 * batch + 4 for batch in range(1, 7)]
    assert len(written) == long_run.POINTS
    assert int(written[-1]["done"]) == 50
    # Each of the last ten micro-batches can be begun again, and that takes the version before it.
    assert int(written[-1]["files"]) == 2 * (10 + 2) + 4
    page = (tmp_path / "long_run.md").read_text(encoding="utf-8")
    assert "After 6: These grow: " in page
    assert "are exactly those of one process" in page
    assert "After 50: Memory, state and files are flat." in page


def test_the_last_quarter_is_compared_with_the_second() -> None:
    points = [Written(n, 1_000 if n < 8 else 1_050, 10 * n, 4_096, 0.001 * n) for n in range(1, 9)]
    told = {one.name: (one.second, one.last, one.verdict) for one in growths(points)}
    assert told["process"] == (1_000, 1_025, "flat")
    assert told["files"] == (35, 75, "grows")
    assert told["seconds"][2] == ""
    flat = [Streamed(n, *[1_000] * 10, seconds=0.25) for n in range(1, 9)]
    text = write_body([replace(one, log_files=one.done) for one in flat], 77, points)
    assert "After 8: Memory, state and files are flat. The matches, 77, are exactly those of one process." in text
    assert "After 8: These grow: files." in text
    assert "| files | 35 | 75 | 2.143 | grows |" in text
    assert "| seconds | 250 ms | 250 ms | 1.000 |  |" in text
