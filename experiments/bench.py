"""The benchmarks: ``python -m experiments.bench [NAME ...] [--engine E] [--scale F] [--limit S] [--output FOLDER]``.

Each measurement has a process of its own, on one core. With no NAME every workload is measured and the results are
written to ``docs/results/``; otherwise they are printed, and written where ``--output`` says.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from experiments.machine import describe_machine
from experiments.measure import Measured
from experiments.results import RESULTS, raw_path, shorten, table, write
from experiments.workload import Workload
from experiments.workloads import WORKLOADS, choose_workloads

__all__ = ["GROUPS", "curves_table", "main", "measure_workload", "write_body"]

# What the groups of workloads are about, in the order of the page.
GROUPS = {
    "w1": "W1: a series of rising prices",
    "w2": "W2: a sequence by key",
    "w3": "W3: a sequence without a key",
    "v": "V shape",
    "expt1": "SASE+ experiment 1: iterator predicate and strategy",
    "expt2": "SASE+ experiment 2: window",
    "expt3": "SASE+ experiment 3: all results, against the backtrack algorithm",
    "expt4": "SASE+ experiment 4: non-overlapping results, against the backtrack algorithm",
    "expt5": "SASE+ experiment 5: runs merged",
    "expt6": "SASE+ experiment 6: runs merged, by window",
    "other": "SASE+: prices that rise less often",
    "pseq": "Match windows: Pseq",
    "pset": "Match windows: Pset",
    "ponco": "Match windows: Ponco-like",
    "pnyse": "Match windows: Pnyse-like",
    "growth": "What the cost grows with",
}
WORDS = """Written by `python -m experiments.bench`; [how to read it](../internals/benchmarks.md). Events and matches
a second are
of processor time on one core, after loading, in the best run; the spread is how much longer the worst one took. A touch
is an arc tried on an event (for backtrack: an event read by a run). Memory is what a run took besides the stream.
*checked*: the matches are as many as were counted without an engine."""
HEAD = (
    "",
    "engine",
    "events",
    "events/s",
    "matches",
    "matches/s",
    "touches",
    "nodes",
    "ns/touch",
    "memory",
    "spread",
    "",
)


def measure_workload(workload: Workload, engine: str, limit: float, scale: float) -> Measured:
    """Measure in a process of its own, which is given up after a while."""
    command = [sys.executable, "-m", "experiments.measure", workload.name, engine, str(limit), str(scale)]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=12 * limit + 60, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return Measured(workload.name, engine, error="did not finish")
    if completed.returncode < 0:
        return Measured(workload.name, engine, error=f"killed by signal {-completed.returncode}")
    if completed.returncode:
        return Measured(workload.name, engine, error=(completed.stderr.strip().splitlines() or ["no word why"])[-1])
    try:
        return Measured(**json.loads(completed.stdout))
    except (ValueError, TypeError):
        return Measured(workload.name, engine, error="said nothing that can be read")


def row(measurement: Measured) -> Sequence[str]:
    """Return a line of the table of results."""
    if measurement.error:
        return (measurement.name, measurement.engine, *[""] * (len(HEAD) - 3), measurement.error)
    checked = (
        ""
        if measurement.expected is None
        else "checked"
        if measurement.expected == measurement.matches
        else f"not {measurement.expected:,}"
    )
    return (
        measurement.name,
        measurement.engine,
        f"{measurement.rows:,}" + (f" of {measurement.of:,}" if measurement.rows < measurement.of else ""),
        shorten(measurement.queries * measurement.rows / measurement.cpu),
        f"{measurement.matches:,}",
        shorten(measurement.matches / measurement.cpu),
        shorten(measurement.touches),
        shorten(measurement.nodes),
        shorten(measurement.cpu / measurement.touches * 1e9) if measurement.touches else "",
        f"{measurement.peak / 2**20:,.0f} MB" if measurement.peak is not None else "",
        f"{measurement.spread:.0%}" if measurement.runs > 1 else "one run",
        checked,
    )


def write_body(results: Iterable[Measured]) -> str:
    """Return the tables of the page, one for each group of workloads."""
    parts = []
    order = list(GROUPS)
    ranked = sorted(results, key=lambda measurement: order.index(WORKLOADS[measurement.name].group))
    for group, members in groupby(ranked, key=lambda measurement: WORKLOADS[measurement.name].group):
        measurements = list(members)
        descriptions = "\n".join(
            f"* {name}: {WORKLOADS[name].about}"
            for name in dict.fromkeys(measurement.name for measurement in measurements)
        )
        curves = f"\n\n{curves_table(measurements)}" if group == "growth" else ""
        parts.append(f"## {GROUPS[group]}\n\n{descriptions}\n\n{table(HEAD, map(row, measurements))}{curves}")
    return "\n\n".join(parts)


def curves_table(results: Iterable[Measured]) -> str:
    """Return a table of how much longer an event takes at the worst point of each growth curve than at its best one."""
    rows = []
    for (name, engine), points in groupby(results, key=lambda point: (point.name.rpartition("-")[0], point.engine)):
        costs = {int(point.name.rpartition("-")[2]): point.cpu / point.rows for point in points if not point.error}
        if costs:
            best, worst = min(costs, key=lambda size: costs[size]), max(costs, key=lambda size: costs[size])
            span = f"{min(costs):,} to {max(costs):,}"
            rows.append((name, engine, span, f"{best:,}", f"{worst:,}", f"{costs[worst] / costs[best]:.2f}"))
    return table(("curve", "engine", "from", "least cost at", "greatest at", "times as much an event"), rows)


def _merge_stored(folder: Path, machine: dict[str, Any], results: Sequence[Measured]) -> list[Measured]:
    """Return the results, with those of other workloads that the folder has from the same machine, versions and day."""
    path, stored_results = raw_path(folder, "bench"), []
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["machine"] == machine:
            new_keys = {(result.name, result.engine) for result in results}
            stored_results = [
                stored for row in before["results"] if ((stored := Measured(**row)).name, stored.engine) not in new_keys
            ]
    order = list(WORKLOADS)
    return sorted([*stored_results, *results], key=lambda result: order.index(result.name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where matches were not as many as were counted."""
    parser = argparse.ArgumentParser(prog="python -m experiments.bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="workloads, groups or patterns: w1-next, expt1, 'growth-*'"
    )
    parser.add_argument(
        "--engine", action="append", help="auto (the default), native, reference, backtrack; may be repeated"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="the share of each stream to use at most (1)")
    parser.add_argument(
        "--limit", type=float, default=5.0, help="seconds of a processor that a run may take: else on a prefix (5)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="folder for bench.md and bench.csv; results of other workloads from the same day stay",
    )
    parser.add_argument("--list", action="store_true", help="list the workloads")
    options = parser.parse_args(arguments)
    try:
        workloads = choose_workloads(options.names)
    except ValueError as error:
        parser.error(str(error))
    if options.list:
        print("\n".join(f"{workload.name:24s}{workload.about}" for workload in workloads))
        return 0
    results: list[Measured] = []
    folder = options.output or (None if options.names else RESULTS)
    machine = describe_machine()
    for workload in workloads:
        compared = ["backtrack"] if workload.group in ("expt3", "expt4") else []
        for engine in options.engine or ["auto", *compared]:
            if engine == "backtrack" and workload.stock is None:
                continue
            results.append(measure_workload(workload, engine, options.limit, options.scale))
            print("  ".join(filter(None, row(results[-1]))), flush=True)
        if folder and results:  # again after each workload: what was measured outlives a run that is stopped
            all_results = _merge_stored(folder, machine, results)
            rows = [asdict(result) for result in all_results]
            write(
                folder,
                "bench",
                title="Benchmarks",
                words=WORDS,
                machine=machine,
                body=write_body(all_results),
                rows=rows,
            )
    if folder:
        print(f"written to {folder}")
    return int(any(result.expected not in (None, result.matches) for result in results))


if __name__ == "__main__":
    sys.exit(main())
