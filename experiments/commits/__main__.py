"""Exact runs of this code against another commit: ``python -m experiments.commits [NAME ...] [--commit COMMIT]``.

The other commit is built once, below ``build/commits``. With no NAME all workloads of best effort and some light ones
are measured, and the results are written to ``docs/results/``; otherwise they are printed, and written where
``--output`` says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.commits.build import build_commit
from experiments.commits.compare import OUTPUTS, Compared, choose_cases, compare_case
from experiments.commits.page import draw_picture, failures, summarise, write_body, write_words
from experiments.machine import describe_machine
from experiments.results import RESULTS, shorten, write

__all__ = ["OTHER", "main", "write_results"]

OTHER = "fa6fc8c"
"""The commit by which less work for the same answer is judged."""
REPEATS = 3


def write_results(folder: Path, rows: Sequence[Compared], machine: dict[str, Any], commit: str, repeats: int) -> Path:
    """Write ``exact.md``, ``exact.csv``, ``exact.svg`` and the raw rows; return the path of the page."""
    title = "Exact runs"
    body = f"![{title}](exact.svg)\n\n{write_body(rows)}"
    words = write_words(commit, repeats)
    page = write(
        folder, "exact", title=title, words=words, machine=machine, body=body, rows=[asdict(row) for row in rows]
    )
    (folder / "exact.svg").write_text(draw_picture(rows), encoding="utf-8")
    return page


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where a run has no answer, or the commits found different things."""
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m experiments.commits", description=summary)
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads, * and ? as in file names: 'heavy-*'")
    parser.add_argument("--commit", help=f"the other commit of acep ({OTHER})")
    parser.add_argument("--python", type=Path, help="a Python that has --commit, so that it is not built")
    choices = (*OUTPUTS, "matches")
    parser.add_argument("--outputs", nargs="+", choices=choices, default=list(OUTPUTS), help=", ".join(OUTPUTS))
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"runs at least, the fastest counts ({REPEATS})")
    parser.add_argument("--scale", type=float, default=1.0, help="the share of each stream to use (1)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which a run is given up (300)")
    parser.add_argument("--output", type=Path, help="folder for exact.md, exact.csv and exact.svg")
    options = parser.parse_args(arguments)
    if options.python and not options.commit:
        parser.error("--python goes with --commit: which one does it have?")
    commit = options.commit or OTHER
    try:
        cases = choose_cases(options.names)
        python = options.python or build_commit(commit)
    except (RuntimeError, ValueError) as error:
        parser.error(str(error))
    folder = options.output or (None if options.names else RESULTS)
    machine, rows = describe_machine(), list[Compared]()
    for case in cases:
        for row in compare_case(
            case, python, options.outputs, repeats=options.repeats, scale=options.scale, limit=options.limit
        ):
            rows.append(row)
            print(_line(row), flush=True)
        if folder:  # again after each workload: what was measured outlives a run that is stopped
            write_results(folder, rows, machine, commit, options.repeats)
    for line in summarise(rows):
        print("  ".join(line))
    complaints = failures(rows)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return int(bool(complaints))


def _line(row: Compared) -> str:
    if row.error:
        return f"{row.workload:26s}{row.output:9s}{row.error}"
    figures = f"{row.ratio:8.2f} times  {shorten(row.other_cpu, ' s')} to {shorten(row.cpu, ' s')}  {shorten(row.size)}"
    return f"{row.workload:26s}{row.output:9s}{figures}{'' if row.same else '  DIFFERENT'}"


if __name__ == "__main__":
    sys.exit(main())
