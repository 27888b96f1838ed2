"""Run every example on its whole stream and write docs/tutorial/examples.md: ``python -m examples.table``.

All seven must be there as whole streams, in the folder ``$ACEP_DATA``. This takes some minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import acep
from acep import read_events
from examples import Example, examples
from examples.data import whole_folder

__all__ = ["PAGE", "Counts", "count", "render"]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tutorial" / "examples.md"
HEAD = """\
# Examples on real streams

This page counts the matches of each query of [examples/](../../examples/README.md) on its whole stream. *First events*
are the events with which some match begins. *Keys* are the values of the first partition attribute that have a match.
`python -m examples.table` writes this page.
"""


class Counts(NamedTuple):
    """The counts of an example: matches, first events of matches, and keys with a match."""

    matches: int
    firsts: int
    keys: int


def count(example: Example, data: Path) -> Counts:
    """Run an example on its whole stream, a Parquet file in the folder ``data``."""
    table = read_events(data / f"{example.stream}.parquet")
    matches = acep.match(table, example.query, seq="arrival_seq")
    firsts = {min(ids[0] for _, ids in record.bindings) for record in matches.found}
    return Counts(len(matches), len(firsts), len({record.key[0] for record in matches.found}))


def render(counts: Mapping[str, Counts]) -> str:
    """Return the page, from the counts of every example."""
    lines = [HEAD.rstrip()]
    stream = ""
    for example in examples():
        if example.stream != stream:
            stream = example.stream
            lines += [
                f"\n## {stream}\n",
                "| example | finds | window | matches | first events | keys |",
                "|---|---|---|--:|--:|--:|",
            ]
        name = f"[{example.name}](../../examples/{stream}/{example.path.name})"
        numbers = " | ".join(f"{number:,}" for number in counts[example.key])
        lines.append(f"| {name} | {example.words} | {example.window} | {numbers} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    counts = {}
    for example in examples():
        started = time.perf_counter()
        counts[example.key] = count(example, whole_folder())
        sys.stderr.write(f"{example.key}: {counts[example.key]}, {time.perf_counter() - started:.1f} s\n")
    PAGE.write_text(render(counts), encoding="utf-8")


if __name__ == "__main__":
    main()
