"""Results as JSON and as a Markdown page; nothing on the page is typed by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "short", "table", "write", "write_page"]

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"


def short(number: float | None, unit: str = "") -> str:
    """A number with three digits that count.

    >>> short(1234567), short(0.5), short(98.7, " ms"), short(None), short(0)
    ('1.23 M', '0.5', '98.7 ms', '', '0')
    """
    if number is None:
        return ""
    for size, name in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(number) >= size:
            scaled = number / (1e3 if name == " k" else size)
            return f"{scaled:.3g}{name}{unit}" if scaled < 1000 else f"{scaled:.0f}{name}{unit}"
    if number == int(number):
        return f"{int(number):,}{unit}"
    return f"{number:.3g}{unit}" if abs(number) < 1000 else f"{number:,.0f}{unit}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, its first column aligned to the left.

    >>> print(table(["a", "b"], [["x", "1"]]))
    | a | b |
    |---|---:|
    | x | 1 |
    """
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)])


def write(folder: Path, name: str, *, title: str, words: str, machine: dict[str, Any], body: str, rows: Any) -> Path:
    """Write ``name.json`` and ``name.md``; the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"machine": machine, "results": rows}, indent=1) + "\n")
    return write_page(folder, name, title=title, words=words, machine=machine, body=body)


def write_page(folder: Path, name: str, *, title: str, words: str, machine: dict[str, Any], body: str) -> Path:
    """Write ``name.md``; its path."""
    told = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in machine.items() if value is not None)
    page = folder / f"{name}.md"
    page.write_text(f"# {title}\n\n{words}\n\nMachine: {told}.\n\n{body}\n")
    return page
