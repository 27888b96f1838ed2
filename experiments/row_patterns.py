"""Measure MATCH_RECOGNIZE: ``python -m experiments.row_patterns``.

The shapes are those of DuckDB's published benchmark, each at n, 2n and 4n rows. Where one is natural, a query of polars
answers the same question in the same run, on one core too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

import acep
from experiments.machine import described
from experiments.results import RESULTS, short, table, write

__all__ = ["SHAPES", "Measured", "Shape", "body", "main", "measure_shape"]

REPEATS = 3
WORDS = """Written by `make bench-rows`: `acep.match_recognize` over Arrow tables of generated rows, on one core.
Processor time, the best of {} runs by turns. *growth*: the time for twice the rows divided by that for the rows, of the
two largest sizes. *polars*: the processor time of an expression of polars, for the same number of rows out, divided by
that of acep, at the largest size. The shapes are those of DuckDB's published benchmark of the clause."""

Columns = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """A clause over generated rows. ``columns`` makes them for a number of rows; ``rows`` is the smallest number, which
    is doubled twice. ``expression``: the same question for polars, which gives as many rows out."""

    name: str
    rows: int
    clause: str
    columns: Callable[[int], Columns]
    expression: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True)
class Measured:
    """The least processor seconds of one system on one shape, with the rows in and out."""

    shape: str
    system: str
    rows: int
    size: int
    cpu: float


def _scrambled(i: Any) -> Any:
    return i * 2654435761 % 1000003


def _steps(n: int) -> Columns:
    return {"i": np.arange(n), "price": np.cumsum(np.random.default_rng(1).integers(-3, 4, n))}


def _visits(n: int) -> Columns:
    i = np.arange(n)
    return {"visitor": i // 1000, "seq": i, "ts": i * 10 + (i // 50) * 1000}


def _clicks(n: int) -> Columns:
    i = np.arange(n)
    actions = pa.array(["browse", "select", "checkout", "idle"])
    return {"visitor": i // 10, "seq": i, "action": actions.take(pa.array(i % 4))}


def _no_refund(n: int) -> Columns:
    i = np.arange(n)
    return {"i": i, "v": (i % 3000) // 1000}


def _crimes(n: int) -> Columns:
    draw = np.random.default_rng(1)
    names = pa.array(["ROBBERY", "BATTERY", "MOTOR VEHICLE THEFT", "THEFT", "NARCOTICS", "ASSAULT", "OTHER"])
    kinds = draw.choice(7, n, p=[0.03, 0.18, 0.06, 0.22, 0.1, 0.07, 0.34])
    times = np.cumsum(draw.exponential(110, n)).astype(np.int64) * 1_000_000
    return {
        "id": np.arange(n), "at": pa.array(times, pa.timestamp("us")), "kind": names.take(pa.array(kinds)),
        "lat": 41.65 + 0.37 * draw.random(n), "lon": -87.8 + 0.27 * draw.random(n),
    }  # fmt: skip


def _sessions_of_polars(pl: Any, frame: Any) -> Any:
    gap = pl.col("ts") - pl.col("ts").shift(1).over("visitor")
    begins = (gap.is_null() | (gap > 100)).cum_sum().alias("session")
    return frame.with_columns(begins).group_by("visitor", "session").agg(pl.len())


def _pairs_of_polars(pl: Any, frame: Any) -> Any:
    return frame.filter((pl.col("v") == 0) & (pl.col("v").shift(-1) == 1)).select("i")


NEAR = "lon BETWEEN R.lon - 0.05 AND R.lon + 0.05 AND lat BETWEEN R.lat - 0.02 AND R.lat + 0.02"
SHAPES = (
    Shape("scan", 500_000, "ORDER BY i MEASURES A.i AS s PATTERN (A B) DEFINE A AS v = 0, B AS v = 1",
          lambda n: {"i": np.arange(n), "v": np.arange(n) % 5}, _pairs_of_polars),
    Shape("partitions of 100 rows", 500_000,
          "PARTITION BY p ORDER BY i MEASURES A.i AS s PATTERN (A B) DEFINE A AS v = 0, B AS v = 1",
          lambda n: {"i": np.arange(n), "p": np.arange(n) // 100, "v": np.arange(n) % 5}),
    Shape("quantifiers, all rows", 125_000,
          "ORDER BY i MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH PATTERN (A+ B+ A+) "
          "DEFINE A AS v < 12, B AS v >= 12",
          lambda n: {"i": np.arange(n), "v": np.arange(n) % 17}),
    Shape("navigation", 50_000, "ORDER BY i MEASURES count(*) AS n PATTERN (A B+) DEFINE B AS v > LAST(A.v)",
          lambda n: {"i": np.arange(n), "v": np.arange(n) * 2654435761 % 1000}),
    Shape("((A+)+ B) without B", 500_000,
          "ORDER BY i MEASURES count(*) AS n PATTERN ((A+)+ B) DEFINE A AS v = 0, B AS v = 1",
          lambda n: {"i": np.arange(n), "v": np.zeros(n, np.int64)}),
    Shape("four steps without the last", 50_000,
          "ORDER BY i MEASURES count(*) AS n PATTERN (B+ S+ C+ R) "
          "DEFINE B AS v = 0, S AS v = 1, C AS v = 2, R AS v = 3",
          _no_refund),
    Shape("sessions", 250_000,
          "PARTITION BY visitor ORDER BY seq MEASURES count(*) AS n PATTERN (A B*) DEFINE B AS ts - PREV(ts) <= 100",
          _visits, _sessions_of_polars),
    Shape("funnel", 250_000, "PARTITION BY visitor ORDER BY seq MEASURES FIRST(seq) AS s PATTERN (B S C) DEFINE "
          "B AS action = 'browse', S AS action = 'select', C AS action = 'checkout'", _clicks),
    Shape("V-shape", 250_000, "ORDER BY i MEASURES FIRST(i) AS s, LAST(D.i) AS b, LAST(U.i) AS e PATTERN (S D+ U+) "
          "DEFINE D AS price < PREV(price), U AS price > PREV(price)", _steps),
    Shape("above the mean so far", 250_000,
          "ORDER BY i MEASURES count(*) AS n PATTERN (A+) DEFINE A AS v >= avg(A.v)",
          lambda n: {"i": np.arange(n), "v": _scrambled(np.arange(n)) % 100}),
    Shape("merged ranges", 250_000,
          "ORDER BY s, e MEASURES FIRST(s) AS a, max(e) AS b, count(*) AS n PATTERN (J* L) "
          "DEFINE J AS NEXT(s) <= max(e)",
          lambda n: {"s": np.arange(n) * 2 + _scrambled(np.arange(n)) % 3,
                     "e": np.arange(n) * 2 + _scrambled(np.arange(n)) % 3 + 1 + _scrambled(np.arange(n)) % 4}),
    Shape("crime sequence", 50_000, "ORDER BY at MEASURES R.id AS r, B.id AS b, M.id AS m AFTER MATCH SKIP TO NEXT ROW "
          f"PATTERN (R Z* B Z* M) DEFINE R AS kind = 'ROBBERY', B AS kind = 'BATTERY' AND {NEAR}, "
          f"M AS kind = 'MOTOR VEHICLE THEFT' AND {NEAR} AND at - R.at <= INTERVAL '30' MINUTE", _crimes),
)  # fmt: skip


def measure_shape(shape: Shape, pl: Any = None, scale: float = 1.0, repeats: int = REPEATS) -> list[Measured]:
    """Measure a shape at three sizes, and polars at the largest. Raises :class:`AssertionError` where both give other
    numbers of rows."""
    measured: list[Measured] = []
    for factor in (1, 2, 4):
        n = max(int(shape.rows * scale), 8) * factor
        rows = pa.table(shape.columns(n))
        runs: dict[str, Callable[[], Any]] = {"acep": partial(acep.match_recognize, rows, shape.clause)}
        if factor == 4 and pl is not None and shape.expression is not None:
            runs["polars"] = partial(shape.expression, pl, pl.from_arrow(rows))
        times: dict[str, list[float]] = {system: [] for system in runs}
        sizes: dict[str, int] = {}
        for _ in range(repeats):
            for system, run in runs.items():
                start = process_time()
                result = run()
                times[system].append(process_time() - start)
                sizes[system] = len(result)
        assert len(set(sizes.values())) == 1, sizes
        measured += [Measured(shape.name, system, n, sizes[system], min(each)) for system, each in times.items()]
    return measured


def body(rows: Sequence[Measured]) -> str:
    """Return the table of the page."""
    lines = []
    for name in dict.fromkeys(row.shape for row in rows):
        sizes = [row for row in rows if row.shape == name and row.system == "acep"]
        peers = [row for row in rows if row.shape == name and row.system == "polars"]
        last = sizes[-1]
        growth = f"{last.cpu / sizes[-2].cpu:.2f}" if sizes[-2].cpu else ""
        peer = f"{peers[0].cpu / last.cpu:.2f}" if peers and last.cpu else ""
        rate = short(last.rows / last.cpu / 1e6) if last.cpu else ""
        lines.append((name, f"{last.rows:,}", f"{last.size:,}", short(1000 * last.cpu), rate, growth, peer))
    head = ("shape", "rows", "rows out", "processor, ms", "million rows a second", "growth", "polars")
    return table(head, lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.row_patterns", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--scale", type=float, default=1.0, help="the share of the rows to use (1)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"runs of which the fastest counts ({REPEATS})")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for row_patterns.md and row_patterns.csv")
    options = parser.parse_args(arguments)
    import polars as pl

    rows = [row for shape in SHAPES for row in measure_shape(shape, pl, options.scale, options.repeats)]
    text = body(rows)
    print(text)
    write(
        options.output, "row_patterns", title="MATCH_RECOGNIZE by shape", words=WORDS.format(options.repeats),
        machine=described() | {"polars": pl.__version__}, body=text, rows=[asdict(row) for row in rows],
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
