"""Measure shapes by acep, and by DuckDB, polars and Spark where these have a query for the same question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from time import process_time
from typing import Any

import pyarrow as pa

import acep
from experiments.row_patterns.shapes import Shape

__all__ = ["Measured", "Systems", "measure_shape"]

Run = Callable[[], int]
"""One run of a query: the number of rows out."""


@dataclass(frozen=True)
class Measured:
    """The least processor seconds of one system on one shape, with the rows in and out; or the ``error`` of the
    system."""

    shape: str
    system: str
    rows: int
    size: int
    cpu: float
    error: str = ""


@dataclass(frozen=True)
class Systems:
    """The modules of DuckDB and polars, and a session of Spark; ``None``: not measured. ``spark_clock`` reads the
    processor seconds of that session's process."""

    duckdb: Any = None
    polars: Any = None
    spark: Any = None
    spark_clock: Callable[[], float] = float


def measure_shape(shape: Shape, systems: Systems, scale: float = 1.0, repeats: int = 3) -> list[Measured]:
    """Measure a shape at three sizes, and other systems at the largest. Raises :class:`AssertionError` where they give
    other numbers of rows."""
    measured: list[Measured] = []
    for factor in (1, 2, 4):
        n = max(int(shape.rows * scale), 8) * factor
        rows = pa.table(shape.columns(n))
        acep_runs: dict[str, Run] = {"acep": lambda rows=rows: len(acep.match_recognize(rows, shape.clause))}  # type: ignore[misc]
        beside = systems if factor == 4 else Systems()
        best = _run_beside(acep_runs, shape, rows, beside, repeats)
        assert len({size for _, size in best.values()}) == 1, best
        measured += [Measured(shape.name, system, n, size, cpu) for system, (cpu, size) in best.items()]
    return measured


def _run_beside(
    acep_runs: dict[str, Run], shape: Shape, rows: pa.Table, systems: Systems, repeats: int
) -> dict[str, tuple[float, int]]:
    """Run acep and the other systems by turns, once these have loaded the rows."""
    runs = dict(acep_runs)
    if systems.polars is not None and shape.expression is not None:
        frame = systems.polars.from_arrow(rows)
        runs["polars"] = lambda: len(shape.expression(systems.polars, frame))  # type: ignore[misc]
    if systems.spark is not None and shape.sql:
        systems.spark.createDataFrame(rows).createOrReplaceTempView("t")
        systems.spark.sql("CACHE TABLE t")
        runs["Spark"] = lambda: systems.spark.sql(shape.sql).toArrow().num_rows
    if systems.duckdb is None or not shape.sql:
        return _run_by_turns(runs, {"Spark": systems.spark_clock}, repeats)
    with closing(systems.duckdb.connect()) as connection:
        connection.execute("SET threads = 1")
        connection.register("source", rows)
        connection.execute("CREATE TABLE t AS SELECT * FROM source")
        runs["DuckDB"] = lambda: connection.sql(shape.sql).to_arrow_table().num_rows
        return _run_by_turns(runs, {"Spark": systems.spark_clock}, repeats)


def _run_by_turns(
    runs: Mapping[str, Run], clocks: Mapping[str, Callable[[], float]], repeats: int
) -> dict[str, tuple[float, int]]:
    """Return the least processor seconds of each system, this process and its ``clocks`` together, and its rows out."""
    best: dict[str, tuple[float, int]] = {}
    for _ in range(repeats):
        for system, run in runs.items():
            clock = clocks.get(system, float)
            start = process_time() + clock()
            size = run()
            spent = process_time() + clock() - start
            best[system] = min(best.get(system, (spent, size)), (spent, size))
    return best
