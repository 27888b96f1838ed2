"""Measure Flink SQL and the pandas package, each in a process of its own, beside acep on the same rows."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather

import acep
from experiments.peers.files import write_events
from experiments.peers.java import compile_program, run_java
from experiments.row_patterns.measure import Measured, Systems, measure_shape
from experiments.row_patterns.shapes import FALL_AND_RISE, SHAPES, Shape

__all__ = ["FLINK", "PANDAS", "measure_flink", "measure_pandas"]

FLINK, PANDAS = "Flink SQL", "pandas-match-recognize"
WORKER = Path(__file__).with_name("pandas_worker.py")


def _fall_and_rise(n: int) -> dict[str, pa.Array]:
    prices = next(shape for shape in SHAPES if shape.name == "V-shape").columns(n)["price"]
    i = np.arange(n)
    return {"id": pa.array(i), "price": pa.array(prices), "row_time": pa.array(i, pa.timestamp("ms"))}


V_SHAPE = Shape("V-shape as Flink writes it", 250_000, FALL_AND_RISE, _fall_and_rise)


def measure_flink(environment: Path, scale: float = 1.0, limit: float = 90.0, repeats: int = 3) -> list[Measured]:
    """Measure the V-shape by acep and by Flink SQL, which run the same clause on the same rows. Flink's time is that
    of the whole Java process from the first row on."""
    acep_rows = measure_shape(V_SHAPE, Systems(), scale, repeats)
    n = acep_rows[-1].rows
    rows = pa.table(_fall_and_rise(n))
    zeros = pa.array(np.zeros(n, np.int64))
    events = pa.table({"ts": pa.array(np.arange(n)), "type": zeros, "key": zeros, "price": rows["price"]})
    try:
        classpath = compile_program("flink", environment)
    except RuntimeError as error:
        return [*acep_rows, Measured(V_SHAPE.name, FLINK, n, 0, 0.0, str(error))]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows"
        write_events(events, file)
        query = f"SELECT * FROM events MATCH_RECOGNIZE ({FALL_AND_RISE})"  # noqa: S608 - a constant
        outcome = run_java(classpath, "FlinkStream", [str(file), query, "0", str(limit), str(n // 64)], 12 * limit + 60)
    wrong = outcome.error or _difference(V_SHAPE, rows, outcome.rows, outcome.matches)
    return [*acep_rows, Measured(V_SHAPE.name, FLINK, outcome.rows, outcome.matches, outcome.cpu, wrong)]


def measure_pandas(shape: Shape, environment: Path, scale: float = 1.0, limit: float = 5.0) -> Measured:
    """Measure a shape by the pandas package, on a prefix where the whole would take longer than the limit."""
    n = max(int(shape.rows * scale), 8) * 4
    rows = pa.table(shape.columns(n))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.arrow"
        pyarrow.feather.write_feather(rows, str(file), compression="uncompressed")
        command = [str(environment / "bin" / "python"), str(WORKER), str(file), shape.clause, str(limit)]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=8 * limit, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            return Measured(shape.name, PANDAS, n, 0, 0.0, f"no answer in {8 * limit:g} s")
    if answer.returncode:
        return Measured(shape.name, PANDAS, n, 0, 0.0, (answer.stderr.strip().splitlines() or ["no answer"])[-1])
    outcome = json.loads(answer.stdout.splitlines()[-1])
    wrong = _difference(shape, rows, outcome["rows"], outcome["size"])
    return Measured(shape.name, PANDAS, outcome["rows"], outcome["size"], outcome["cpu"], wrong)


def _difference(shape: Shape, rows: pa.Table, n: int, size: int) -> str:
    """Return what is wrong with the number of rows out for the first ``n`` rows; empty where nothing is."""
    n_acep_matches = len(acep.match_recognize(rows.slice(0, n), shape.clause))
    return "" if n_acep_matches == size else f"{size:,} rows out, not {n_acep_matches:,}"
