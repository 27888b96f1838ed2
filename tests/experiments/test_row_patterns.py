"""The shapes of the benchmark of row patterns run, and polars gives as many rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import row_patterns


@pytest.mark.parametrize("shape", row_patterns.SHAPES, ids=lambda shape: shape.name)
def test_a_shape_is_measured_at_three_sizes(shape: row_patterns.Shape) -> None:
    polars = pytest.importorskip("polars")
    measured = row_patterns.measure_shape(shape, polars, scale=0.004, repeats=1)
    sizes = [row.rows for row in measured if row.system == "acep"]
    assert sizes == [sizes[0], 2 * sizes[0], 4 * sizes[0]]
    assert len(measured) == 3 + (shape.expression is not None)
    assert shape.name.replace("|", "\\|") in row_patterns.body(measured)


def test_the_page_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("polars")
    monkeypatch.setattr(row_patterns, "SHAPES", row_patterns.SHAPES[:1])
    assert row_patterns.main(["--scale", "0.001", "--repeats", "1", "--output", str(tmp_path)]) == 0
    assert "| scan |" in (tmp_path / "row_patterns.md").read_text()
    assert (tmp_path / "row_patterns.csv").read_text().count("\n") == 5
