"""Write results as a Markdown page, a compact CSV, and raw JSON that is not kept in the repository.

``python -m experiments.results`` says anew on each page whether it is older than what it measures.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments.ages import SOURCES, digest_at_start, note_age
from experiments.measured_code import digest_code, read_sources

__all__ = ["RESULTS", "compact", "raw_path", "shorten", "table", "update_ages", "write", "write_csv", "write_page"]

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"


def shorten(number: float | None, unit: str = "") -> str:
    """Return a number as text with three significant digits.

    >>> shorten(1234567), shorten(0.5), shorten(98.7, " ms"), shorten(None), shorten(0)
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
    """Return a Markdown table, its first column aligned to the left.

    >>> print(table(["a", "b"], [["x", "1"]]))
    | a | b |
    |---|---:|
    | x | 1 |
    """
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)])


def write(folder: Path, name: str, *, title: str, words: str, machine: dict[str, Any], body: str, rows: Any) -> Path:
    """Write ``raw/name.json``, ``name.csv`` and ``name.md``; return the path of the page."""
    file = raw_path(folder, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"machine": machine, "results": rows}, indent=1) + "\n")
    write_csv(folder / f"{name}.csv", rows)
    return write_page(folder, name, title=title, words=words, machine=machine, body=body)


def raw_path(folder: Path, name: str) -> Path:
    """Return the path of the raw rows of a page; git ignores ``docs/results/raw``."""
    return folder / "raw" / f"{name}.json"


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]] | Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
    """Write rows as a compact CSV (:func:`compact`); several tables by name have the name in the column ``table``."""
    if isinstance(rows, Mapping):
        rows = [{"table": name, **row} for name, part in rows.items() for row in part]
    compact_rows = compact(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(
            file, list(dict.fromkeys(name for row in compact_rows for name in row)), lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(compact_rows)


def compact(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Average rows that differ by their ``seed`` only, flatten nested values, and keep four digits of numbers.

    Rows belong together if their texts, truth values, ``x`` and ``share`` are equal.

    >>> compact([{"name": "a", "seed": 0, "time": {"cpu": 1.0}}, {"name": "a", "seed": 1, "time": {"cpu": 2.00001}}])
    [{'name': 'a', 'time.cpu': 1.5}]
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for number, row in enumerate(rows):
        flat = _flatten(row)
        same = tuple((n, v) for n, v in flat.items() if n in ("x", "share") or isinstance(v, str | bool) or v is None)
        groups.setdefault(same if flat.pop("seed", None) is not None else (number,), []).append(flat)
    return [{name: _mean([row[name] for row in group]) for name in group[0]} for group in groups.values()]


def _flatten(row: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": each for inner, each in _flatten(value).items()}
        else:
            flat[name] = value
    return flat


def _mean(values: Sequence[Any]) -> Any:
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return values[0]
    mean = values[0] if len(values) == 1 else fmean(values)
    return mean if isinstance(mean, int) else float(f"{mean:.4g}")


def write_page(folder: Path, name: str, *, title: str, words: str, machine: dict[str, Any], body: str) -> Path:
    """Write ``name.md``; return its path. The machine line has the digest of the code that the page measures, where
    ``machine`` has that of all sources as this process began; a digest of earlier rows stays."""
    folder.mkdir(parents=True, exist_ok=True)
    if machine.get("sources") == SOURCES:
        machine = machine | {"sources": digest_at_start(name)}
    machine_text = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in machine.items() if value is not None)
    page = folder / f"{name}.md"
    text = f"# {title}\n\n{words}\n\nMachine: {machine_text}.\n\n{body}\n"
    page.write_text(note_age(text, digest_code(name, read_sources())), encoding="utf-8")
    return page


def update_ages(folder: Path = RESULTS) -> list[Path]:
    """Say on each page of a folder whether it is older than what it measures; return the pages that this changes."""
    sources, changed = read_sources(), []
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (aged := note_age(text, digest_code(page.stem, sources))) != text:
            page.write_text(aged, encoding="utf-8")
            changed.append(page)
    return changed


if __name__ == "__main__":
    for changed_page in update_ages():
        print(changed_page)
