"""Measure sequences as joins of DuckDB and polars: ``python -m experiments.frames``, with both installed.

`make bench-frames` installs them beside the project. All use all cores, and the results must be equal.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa

import acep
from experiments.machine import describe_machine
from experiments.results import RESULTS, shorten, table, write

__all__ = ["CASES", "Timed", "main", "measure_case", "write_body"]

REPEATS = 3
WORDS = """Written by `make bench-frames`. Events of random types with a key, in one Arrow table. DuckDB and polars get
the joins that a user would write: an as-of join where each event has one successor, else joins with conditions. Wall
time and processor time, the best of {} runs by turns, all with {} threads; the results are equal. *times*: the wall
time divided by that of acep."""


@dataclass(frozen=True)
class Case:
    """``rows`` events of ``types`` with so many ``keys``; a query, and the same as SQL and as an expression of polars,
    each of which gives as many rows. ``output``: what acep gives."""

    name: str
    rows: int
    keys: int
    types: str
    query: str
    sql: str
    expression: Callable[[Any, Any], Any]
    output: str = "matches"

    def events(self, scale: float = 1.0) -> pa.Table:
        """Return the stream."""
        n = max(int(self.rows * scale), 1)
        draw = np.random.default_rng(1)
        return pa.table(
            {
                "ts": np.arange(n),
                "type": draw.choice(list(self.types), n),
                "k": draw.integers(0, self.keys, n),
                "x": draw.random(n),
            }
        )


@dataclass(frozen=True)
class Timed:
    """The least seconds of one system on one case, and how many rows it gave."""

    case: str
    system: str
    wall: float
    cpu: float
    size: int


def _next_of(pl: Any, frame: Any) -> Any:
    later = frame.filter(pl.col("type") == "B").with_columns(end=pl.col("ts"))
    joined = frame.filter(pl.col("type") == "A").join_asof(
        later, on="ts", by="k", strategy="forward", allow_exact_matches=False, check_sortedness=False
    )
    return joined.filter(pl.col("end") - pl.col("ts") <= 2_000)


def _join_rising(pl: Any, frame: Any) -> Any:
    a, b, c = (
        frame.lazy().filter(pl.col("type") == kind).select("k", **{f"ts_{kind}": "ts", f"x_{kind}": "x"})
        for kind in "ABC"
    )
    pairs = a.join(b, on="k").filter(
        (pl.col("ts_B") > pl.col("ts_A"))
        & (pl.col("ts_B") <= pl.col("ts_A") + 20_000)
        & (pl.col("x_B") > pl.col("x_A"))
    )
    triples = pairs.join(c, on="k").filter(
        (pl.col("ts_C") > pl.col("ts_B"))
        & (pl.col("ts_C") <= pl.col("ts_A") + 20_000)
        & (pl.col("x_C") > pl.col("x_B") + 0.5)
    )
    return triples.collect()


RISING = """PATTERN SEQ(A a, B b, C c)
WHERE skip_till_any_match(a, b, c) { [k] AND b.x > a.x AND c.x > b.x + 0.5 } WITHIN 20000"""
RISING_SQL = """FROM (SELECT * FROM events WHERE type = 'A') a
JOIN (SELECT * FROM events WHERE type = 'B') b
  ON a.k = b.k AND b.ts > a.ts AND b.ts <= a.ts + 20000 AND b.x > a.x
JOIN (SELECT * FROM events WHERE type = 'C') c
  ON c.k = a.k AND c.ts > b.ts AND c.ts <= a.ts + 20000 AND c.x > b.x + 0.5"""
CASES = (
    Case(
        "the next B of each A by key",
        1_000_000,
        5_000,
        "AB",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [k] } WITHIN 2000",
        """SELECT a.ts, b.ts FROM (SELECT * FROM events WHERE type = 'A') a
ASOF JOIN (SELECT * FROM events WHERE type = 'B') b ON a.k = b.k AND a.ts < b.ts WHERE b.ts - a.ts <= 2000""",
        _next_of,
    ),
    Case(
        "many rising matches by key",
        200_000,
        200,
        "ABC",
        RISING,
        f"SELECT a.ts, b.ts, c.ts {RISING_SQL}",
        _join_rising,
    ),
    Case(
        "the ends of many matches",
        200_000,
        200,
        "ABC",
        RISING,
        f"SELECT DISTINCT c.k, c.ts {RISING_SQL}",
        lambda pl, frame: _join_rising(pl, frame).select("k", "ts_C").unique(),
        "points",
    ),
)


def measure_case(case: Case, duckdb: Any, pl: Any, scale: float = 1.0, repeats: int = REPEATS) -> list[Timed]:
    """Measure a case. Raises :class:`AssertionError` where the systems give other numbers of rows."""
    events, threads = case.events(scale), len(os.sched_getaffinity(0))
    connection = duckdb.connect()
    connection.execute(f"SET threads = {threads}")
    connection.register("events", events)
    frame, query = pl.from_arrow(events), acep.parse(case.query)
    runs: dict[str, Callable[[], int]] = {
        "acep": lambda: len(acep.match(events, query, output=case.output, threads=threads)),
        "DuckDB": lambda: connection.sql(case.sql).to_arrow_table().num_rows,
        "polars": lambda: case.expression(pl, frame).height,
    }
    times: dict[str, list[tuple[float, float, int]]] = {system: [] for system in runs}
    for _ in range(repeats):
        for system, run in runs.items():
            wall, cpu = perf_counter(), process_time()
            size = run()
            times[system].append((perf_counter() - wall, process_time() - cpu, size))
    best = [Timed(case.name, system, *min(each)) for system, each in times.items()]
    sizes = {row.system: row.size for row in best}
    assert len(set(sizes.values())) == 1, sizes
    return best


def write_body(rows: Sequence[Timed]) -> str:
    """Return the tables of the page."""
    parts = []
    for case in dict.fromkeys(row.case for row in rows):
        systems = [row for row in rows if row.case == case]
        lines = [
            (row.system, shorten(1000 * row.wall), shorten(1000 * row.cpu), f"{row.wall / systems[0].wall:.2f}")
            for row in systems
        ]
        head = ("", "wall, ms", "processor, ms", "times")
        parts.append(f"## {case[0].upper()}{case[1:]}\n\n{systems[0].size:,} rows.\n\n{table(head, lines)}")
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m experiments.frames", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="the share of each stream to use (1)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"runs of which the fastest counts ({REPEATS})")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for frames.md and frames.csv")
    options = parser.parse_args(arguments)
    try:
        import duckdb
        import polars as pl
    except ImportError as error:
        parser.error(f"{error.name} is not installed; `make bench-frames` installs it")
    rows = [row for case in CASES for row in measure_case(case, duckdb, pl, options.scale, options.repeats)]
    text = write_body(rows)
    print(text)
    machine = describe_machine() | {"duckdb": duckdb.__version__, "polars": pl.__version__}
    words = WORDS.format(options.repeats, len(os.sched_getaffinity(0)))
    title = "Sequences as joins of DuckDB and polars"
    each = [asdict(row) for row in rows]
    write(options.output, "frames", title=title, words=words, machine=machine, body=text, rows=each)
    return 0


if __name__ == "__main__":
    sys.exit(main())
