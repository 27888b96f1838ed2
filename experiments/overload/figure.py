"""A figure of the best-effort experiments, written as CSV, JSON, SVG and a page that shows them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from experiments.machine import described
from experiments.results import write

__all__ = ["Figure", "written"]


@dataclass(frozen=True)
class Figure:
    """``rows`` are dataclasses of one kind; ``body`` the tables of the page, ``picture`` an SVG document."""

    name: str
    title: str
    words: str
    rows: Sequence[Any]
    body: str
    picture: str


def written(folder: Path, figure: Figure) -> Path:
    """Writes ``NAME.csv``, ``NAME.json``, ``NAME.svg`` and ``NAME.md``; the path of the page."""
    rows = [asdict(row) for row in figure.rows]
    body = f"![{figure.title}]({figure.name}.svg)\n\n{figure.body}"
    page = write(folder, figure.name, title=figure.title, words=figure.words, machine=described(), body=body, rows=rows)
    (folder / f"{figure.name}.svg").write_text(figure.picture, encoding="utf-8")
    with (folder / f"{figure.name}.csv").open("w", newline="", encoding="utf-8") as file:
        if rows:
            writer = csv.DictWriter(file, [one.name for one in fields(figure.rows[0])], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return page
