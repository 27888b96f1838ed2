"""Results that are kept: pages, pictures and compact tables, and no raw rows."""

from __future__ import annotations

import csv
from pathlib import Path

from experiments.results import RESULTS, compact, write


def test_what_is_kept_is_small() -> None:
    kept = [path for path in RESULTS.iterdir() if path.is_file()]
    assert {path.suffix for path in kept} == {".csv", ".md", ".svg"}
    assert sum(path.stat().st_size for path in kept) < 1_050_000


def test_a_page_comes_with_a_compact_table(tmp_path: Path) -> None:
    rows = [
        {"name": name, "seed": seed, "x": x, "points": 0.123456789 + seed, "sizes": {10: 2.5}}
        for name in "ab" for seed in range(3) for x in (1.0, 2.0)
    ]  # fmt: skip
    page = write(tmp_path, "some", title="Some", words="Of them.", machine={"cores": 2}, body="", rows=rows)
    assert page.read_text().startswith("# Some\n")
    with (tmp_path / "some.csv").open(encoding="utf-8") as file:
        kept = list(csv.DictReader(file))
    assert [(row["name"], row["x"], row["points"], row["sizes.10"]) for row in kept] == [
        (name, x, "1.123", "2.5") for name in "ab" for x in ("1.0", "2.0")
    ]
    assert (tmp_path / "raw/some.json").is_file()


def test_rows_without_seeds_are_all_kept() -> None:
    assert compact([{"name": "a", "time": 1}, {"name": "a", "time": 3}]) == [
        {"name": "a", "time": 1},
        {"name": "a", "time": 3},
    ]
