"""Late events: the experiment runs small, and its page says what its rows say."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from experiments import disorder
from experiments.disorder import delay_events, events, main


def test_events_come_late_by_as_much_as_was_asked_and_none_is_lost() -> None:
    stream = events(5_000, 3)
    moved = delay_events(stream, 0.2)
    ts = moved["ts"].to_numpy()
    behind = np.maximum.accumulate(ts) - ts
    assert sorted(ts) == list(range(5_000))
    assert 0 < behind.max() <= disorder.BY
    assert 0.1 < np.mean(behind > 0) < 0.3
    assert delay_events(stream, 0.0).equals(stream)


@pytest.mark.long
def test_a_page_is_written_and_speculation_trades_retractions_for_delay(tmp_path: Path) -> None:
    assert main(["--rows", "6000", "--output", str(tmp_path)]) == 0
    with (tmp_path / "disorder.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    given = [row for row in rows if row["table"] == "speculation"]
    assert [row["speculation"] for row in given] == ["0", "125", "250", "500", "750", "inf"]
    assert float(given[0]["taken_back"]) == 0 < float(given[-1]["taken_back"])
    assert float(given[0]["latency"]) > float(given[2]["latency"]) > float(given[-1]["latency"])
    found = [row for row in rows if row["table"] == "late"]
    assert all(float(row["ratio"]) > 0 and int(row["kept"]) > 0 for row in found)
    assert {float(row["taken_back"]) for row in found if float(row["share"]) == 0} == {0.0}
    page = (tmp_path / "disorder.md").read_text(encoding="utf-8")
    assert "| inf |" in page
    assert (tmp_path / "disorder.svg").is_file()
