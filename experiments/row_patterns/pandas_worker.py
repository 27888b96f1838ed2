"""Run a clause by the package ``pandas-match-recognize``, in the environment of the peers: FILE CLAUSE LIMIT.

Prints one line of JSON: rows in and out, and the processor seconds of the best run. It runs on longer and longer
prefixes of the file of Arrow rows until the next run would take longer than LIMIT seconds.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
from time import process_time
from typing import Any

import pyarrow.feather

GROWTH = 4
SHORTEST = 64
REPEATS = 3


def _time(run: Any, frame: Any, clause: str) -> tuple[float, int]:
    start = process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        size = len(run(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", frame))  # noqa: S608 - one of the shapes
    return process_time() - start, size


def main(file: str, clause: str, limit: float) -> None:
    """Measure, and print the line."""
    frame = pyarrow.feather.read_table(file).to_pandas()
    run = importlib.import_module("pandas_match_recognize").match_recognize
    rows = max(len(frame) // SHORTEST, 1)
    best = _time(run, frame.head(rows), clause)
    while rows < len(frame) and best[0] * GROWTH < limit:
        rows = min(rows * GROWTH, len(frame))
        best = _time(run, frame.head(rows), clause)
    spent, runs = best[0], 1
    while runs < REPEATS and spent + best[0] < limit:
        timing = _time(run, frame.head(rows), clause)
        spent, runs, best = spent + timing[0], runs + 1, min(best, timing)
    print(json.dumps({"rows": rows, "size": best[1], "cpu": best[0]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
