"""Measure MATCH_RECOGNIZE: ``python -m experiments.row_patterns [--environment FOLDER]``.

By shape, beside other systems, and on streams, in one run. Writes ``docs/results/row_patterns.md``, the picture and the
CSV, or where ``--output`` says.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.machine import describe_machine, find_started
from experiments.peers.java import ROOT
from experiments.results import RESULTS, write
from experiments.row_patterns.measure import Measured, Systems, measure_shape
from experiments.row_patterns.page import WORDS, draw_picture, write_body
from experiments.row_patterns.peers import measure_flink, measure_pandas
from experiments.row_patterns.pushes import CLAUSES, KEYS, PUSHES, Pushed, measure_pushes
from experiments.row_patterns.shapes import SHAPES

__all__ = ["main"]

REPEATS = 3


def _read_java_clock() -> float:
    """Return the processor seconds so far of the Java process of this one."""
    ticks = 0
    for process in find_started(b"java"):
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _load_systems(*, spark: bool) -> Systems:
    import duckdb
    import polars as pl

    if not spark:
        return Systems(duckdb, pl)
    from pyspark.sql import SparkSession

    settings: dict[str, Any] = {
        "spark.master": "local[1]",
        "spark.driver.memory": "3g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    session = SparkSession.Builder().config(map=settings).getOrCreate()
    return Systems(duckdb, pl, session, _read_java_clock)


def _measure_shapes(systems: Systems, options: argparse.Namespace) -> list[Measured]:
    rows: list[Measured] = []
    for shape in SHAPES:
        measured = measure_shape(shape, systems, options.scale, options.repeats)
        if options.environment.is_dir():
            measured.append(measure_pandas(shape, options.environment, options.scale, options.limit))
        print(*(f"{row.system} {row.cpu:.4g} {row.error}" for row in measured), sep="\n", flush=True)
        rows += measured
    return rows


def _measure_streams(options: argparse.Namespace) -> list[Pushed]:
    cases = ((clause, push, keys) for clause in CLAUSES for push in PUSHES for keys in KEYS)
    return [row for case in cases for row in measure_pushes(*case, options.scale, options.repeats)]


def _versions(systems: Systems) -> dict[str, str]:
    versions = {"duckdb": systems.duckdb.__version__, "polars": systems.polars.__version__}
    return versions | ({"spark": systems.spark.version} if systems.spark is not None else {})


def _write_page(
    options: argparse.Namespace,
    machine: dict[str, Any],
    shapes: Sequence[Measured],
    flink: Sequence[Measured],
    streams: Sequence[Pushed],
) -> None:
    rows = {"shapes": [asdict(row) for row in [*shapes, *flink]], "streams": [asdict(row) for row in streams]}
    words, text = WORDS.format(options.repeats), write_body(shapes, flink, streams)
    write(
        options.output,
        "row_patterns",
        title="MATCH_RECOGNIZE by shape",
        words=words,
        machine=machine,
        body=text,
        rows=rows,
    )
    (options.output / "row_patterns.svg").write_text(draw_picture(shapes, streams), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; 1 where Flink gives another number of rows."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.row_patterns", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--scale", type=float, default=1.0, help="the share of the rows to use (1)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"runs of which the fastest counts ({REPEATS})")
    parser.add_argument(
        "--limit", type=float, default=5.0, help="seconds that a run of the pandas package may take (5)"
    )
    parser.add_argument("--environment", type=Path, default=ROOT / ".venv-peers", help="where the peers are installed")
    parser.add_argument("--without-spark", action="store_true", help="leave out Spark, which takes long to start")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for row_patterns.md, .csv and .svg")
    options = parser.parse_args(arguments)
    systems = _load_systems(spark=not options.without_spark)
    machine = describe_machine() | _versions(systems)
    shapes = _measure_shapes(systems, options)
    _write_page(options, machine, shapes, [], [])  # after each part: what was measured outlives a run that is stopped
    flink = measure_flink(options.environment, options.scale, repeats=options.repeats)
    _write_page(options, machine, shapes, flink, [])
    streams = _measure_streams(options)
    _write_page(options, machine, shapes, flink, streams)
    print(write_body(shapes, flink, streams))
    return int(any(row.error and row.size for row in flink))


if __name__ == "__main__":
    sys.exit(main())
