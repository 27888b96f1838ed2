"""The demo shows progress, the first matches and a summary, on a made-up stream and on a given one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import acep
from acep import demo


def test_a_ticker_is_made_up() -> None:
    rows = demo.ticker(10_000).to_pydict()
    assert set(rows["symbol"]) == {"one", "two"}
    for column in ("price", "volume"):
        assert 1 <= min(rows[column]) < max(rows[column]) <= 1000
    prices = np.array([p for p, s in zip(rows["price"], rows["symbol"], strict=True) if s == "one"])
    steps = np.diff(prices) % 1000
    assert set(steps.tolist()) == {0, 1, 999}
    assert 0.67 < np.mean(steps == 1) < 0.73


def test_recorded_streams_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The jobs that the repository has, where no folder has the bars."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACEP_DATA", str(tmp_path))
    table, what, text, weights, words = demo._stream(demo._arguments(["--rows", "20000"]))
    assert what == "events of jobs of a cluster, cluster_jobs.parquet"
    assert words == demo.FAILED_WORDS
    exact, missing = (acep.match(table, acep.parse(text, errors=errors, weights=weights)) for errors in (0, 1))
    assert 0 < len(exact) < len(missing)
    pq.write_table(demo.ticker(10), tmp_path / "stock_min_bars.parquet")
    assert demo._stream(demo._arguments([]))[2] == demo.DIP


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_places", list)
    assert demo.main(["--rows", "2000", "--errors", "2"]) == 0
    said = capsys.readouterr()
    assert "batch 2 of 2: " in said.err
    assert "Of the steps, 2 may be missing (a, d may not)." in said.out
    assert "The first matches:" in said.out
    assert "missing" in said.out
    assert "2,000 events in 2 micro-batches" in said.out
    query, events = tmp_path / "query.sase", tmp_path / "events.parquet"
    query.write_text("PATTERN SEQ(Stock a, Stock b) WHERE [symbol] AND b.price > a.price + 500 WITHIN 3\n")
    pq.write_table(demo.ticker(100), events)
    assert demo.main(["--events", str(events), "--query", str(query), "--errors", "0"]) == 0
    assert "0 matches in 0 bundles" in capsys.readouterr().out
    assert demo.main(["--events", "nowhere.csv"]) == 2
    assert "there is no file `nowhere.csv`" in capsys.readouterr().err
    assert demo.main(["--query", "nowhere"]) == 2
