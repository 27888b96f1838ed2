"""One measurement, in this process and on one core: ``python -m experiments.measure NAME ENGINE LIMIT SCALE``.

Prints a line of JSON. :mod:`experiments.bench` starts a process of this for each workload and engine.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import pyarrow as pa

from acep import AcepError
from experiments.machine import peak_memory, pin, reset_peak
from experiments.workload import RunResult, Workload, run
from experiments.workloads import WORKLOADS

__all__ = ["Measured", "measure"]

FIRST = 2_000  # events of the first, short run
GROWTH = 4
REPEATS = 3
MAX_MATCHES = 20_000_000  # matches of a table that is made whole


@dataclass(frozen=True)
class Measured:
    """``rows`` of the workload's ``of`` events were matched ``runs`` times; ``seconds`` (wall) and ``cpu`` (processor
    time) are those of the best run, ``spread`` is how much longer the worst one took, as a share. ``peak``: the memory
    that the first run at that size took besides the stream, in bytes. ``expected``: the matches counted without an
    engine, where they can be. ``error``: why there is no result."""

    name: str
    engine: str
    rows: int = 0
    of: int = 0
    queries: int = 1
    runs: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    spread: float = 0.0
    matches: int = 0
    expected: int | None = None
    touches: int | None = None
    nodes: int | None = None
    peak: int | None = None
    error: str | None = None


def measure(workload: Workload, engine: str, *, limit: float = 60.0, scale: float = 1.0) -> Measured:
    """Time an engine on the longest prefix of a stream for which a run may be hoped to take no more than ``limit``
    seconds of processor time, and that has no more than ``MAX_MATCHES`` matches if all are made: runs on 2,000 events,
    four times as many, and so on, warm up and say how long the next will take. ``scale``: the share of the stream that
    is used at most. What one event takes, planning above all, does not grow with the stream."""
    try:
        stream = workload.events()
    except FileNotFoundError as error:
        return Measured(workload.name, engine, error=f"no stream: {error}")
    n_events = max(1, round(stream.num_rows * scale))
    rows = min(n_events, FIRST)
    try:
        _, start, _, _ = _time_run(lambda table: run(workload, table, engine), stream.slice(0, 1))
        seconds, cpu, peak, done = _time_run(lambda table: run(workload, table, engine), stream.slice(0, rows))
        while rows < n_events:
            wanted = min(n_events, rows * GROWTH)
            next_rows = _choose_rows(workload, stream, rows, wanted)
            if next_rows == rows or start + (cpu - start) * next_rows / rows > limit:
                break
            rows = next_rows
            seconds, cpu, peak, done = _time_run(lambda table: run(workload, table, engine), stream.slice(0, rows))
            if next_rows < wanted:
                break
    except (AcepError, ValueError) as error:
        return Measured(workload.name, engine, of=stream.num_rows, error=str(error).splitlines()[0])
    table = stream.slice(0, rows)
    walls, cpus = [seconds], [cpu]
    while len(walls) < REPEATS and sum(cpus) + cpus[0] < limit:
        wall, cpu, _, done = _time_run(lambda table: run(workload, table, engine), table)
        walls.append(wall)
        cpus.append(cpu)
    return Measured(
        workload.name,
        engine,
        rows=rows,
        of=stream.num_rows,
        queries=len(workload.queries),
        runs=len(walls),
        seconds=min(walls),
        cpu=min(cpus),
        spread=max(cpus) / min(cpus) - 1,
        matches=done.matches,
        expected=workload.count_expected(table),
        touches=done.touches,
        nodes=done.nodes,
        peak=peak,
    )


def _choose_rows(workload: Workload, stream: pa.Table, rows: int, n_wanted: int) -> int:
    """Return so many of ``n_wanted`` events, at least ``rows``, that a table of all their matches has room in
    memory."""
    while (
        workload.output == "matches"
        and n_wanted > rows
        and (workload.count_expected(stream.slice(0, n_wanted)) or 0) > MAX_MATCHES
    ):
        n_wanted = (rows + n_wanted) // 2
    return n_wanted


def _time_run(work: Callable[[pa.Table], RunResult], table: pa.Table) -> tuple[float, float, int | None, RunResult]:
    before = reset_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    done = work(table)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_memory()
    return wall, cpu, peak - before if peak is not None and before is not None else None, done


def main(arguments: list[str]) -> None:
    """Measure what the arguments name and print it."""
    name, engine, limit, scale = arguments
    workload = WORKLOADS[name]
    with contextlib.suppress(FileNotFoundError):
        workload.events()  # loaded on all cores; what follows has one
    pin()
    print(json.dumps(asdict(measure(workload, engine, limit=float(limit), scale=float(scale)))))


if __name__ == "__main__":
    main(sys.argv[1:])
