"""The shapes of the benchmark of row patterns run, and other systems give as many rows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from experiments.peers.java import ROOT
from experiments.row_patterns import __main__ as row_patterns
from experiments.row_patterns.measure import Measured, Systems, measure_shape
from experiments.row_patterns.page import draw_picture, write_body
from experiments.row_patterns.peers import measure_flink, measure_pandas
from experiments.row_patterns.pushes import CLAUSES, KEYS, measure_pushes
from experiments.row_patterns.shapes import SHAPES, Shape

PEERS = ROOT / ".venv-peers"
needs_peers = pytest.mark.skipif(
    not PEERS.is_dir() or shutil.which("javac") is None, reason="`make bench-rows` installs the peers"
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_is_measured_at_three_sizes(shape: Shape) -> None:
    systems = Systems(pytest.importorskip("duckdb"), pytest.importorskip("polars"))
    measured = measure_shape(shape, systems, scale=0.004, repeats=1)
    sizes = [row.rows for row in measured if row.system == "acep"]
    assert sizes == [sizes[0], 2 * sizes[0], 4 * sizes[0]]
    assert len(measured) == 3 + (shape.expression is not None) + bool(shape.sql)
    assert shape.name.replace("|", "\\|") in write_body(measured, [], [])


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("clause", CLAUSES)
def test_streams_give_what_one_batch_gives(clause: str, keys: int) -> None:
    streams = measure_pushes(clause, 100, keys, scale=0.05, repeats=1)
    assert [row.rows for row in streams] == [1_000, 2_000, 4_000]
    assert f"| {clause} | 100 | {keys:,} | 4,000 |" in write_body([], [], streams)
    assert "<polyline" in draw_picture([], streams)


def test_a_system_that_fails_has_no_ratio() -> None:
    sizes = [Measured("scan", "acep", rows, rows, 0.1) for rows in (100, 200, 400)]
    right = write_body([*sizes, Measured("scan", "pandas-match-recognize", 200, 200, 0.2)], [], [])
    assert "| 4 (200 rows) |" in right
    wrong = write_body([*sizes, Measured("scan", "pandas-match-recognize", 200, 3, 0.2, "3 rows out, not 200")], [], [])
    assert "* scan, pandas-match-recognize: 3 rows out, not 200" in wrong
    assert "(200 rows)" not in wrong


@pytest.mark.long
@needs_peers
def test_peers_answer_the_same_clause() -> None:
    shape = next(shape for shape in SHAPES if shape.name == "V-shape")
    package = measure_pandas(shape, PEERS, scale=0.004)
    assert not package.error
    flink = measure_flink(PEERS, scale=0.004, limit=2, repeats=1)
    assert not flink[-1].error
    assert f"| Flink SQL | {flink[-1].rows:,} |" in write_body([], flink, [])


@pytest.mark.long
def test_the_page_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    monkeypatch.setattr(row_patterns, "SHAPES", SHAPES[:1])
    monkeypatch.setattr(row_patterns, "CLAUSES", {})
    options = ["--scale", "0.001", "--repeats", "1", "--without-spark", "--environment", str(tmp_path / "none")]
    assert row_patterns.main([*options, "--output", str(tmp_path)]) == 0
    page = (tmp_path / "row_patterns.md").read_text()
    assert "| scan |" in page
    assert "no jars of flink" in page
    assert (tmp_path / "row_patterns.csv").read_text().count("\n") == 10
    assert (tmp_path / "row_patterns.svg").read_text().startswith("<svg")
