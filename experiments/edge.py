"""A stream that is too fast for the smallest machine: ``python -m experiments.edge [--seconds 6] [--policy NAME]``.

Each run is a process bound to one core and to 512 MB of data (``RLIMIT_DATA``, which counts all private memory that may
be written, resident or not; ``RLIMIT_AS`` would count the mapped files of libraries too, which are no memory). A stream
with a clock comes ``OVERLOAD`` times as fast as the exact run can take it. Time is that of the processor, as a server
that has the core for itself would have it: a batch begins when its last event has come and the one before it is done,
and its *lag* is how long after its last event it is done. Prints one line of JSON: of the exact run how far it came
until the stream ended, or until it had no memory left; of the run under ``Budget(cpu=, memory=)`` its lags (seconds),
what the process took at most (bytes), and its report.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # there is one core; each thread has a stack and a buffer

import numpy as np
import pyarrow as pa

import acep

__all__ = ["main"]

LIMIT = 512 * 2**20
MEMORY = 64 * 2**20
OVERLOAD = 5.0
SHARE = 0.8  # of the core; the rest is for what is not foreseen
BATCH = 1_000  # events
WINDOW = 20_000  # ms; one event a ms by the clock of the events
KEYS = 4
QUERY = f"""PATTERN SEQ(A a, B b, C c)
WHERE skip_till_any_match(a, b, c) {{ [key] AND b.value > a.value AND c.tag = a.tag AND c.value > b.value + 0.4 }}
WITHIN {WINDOW} ms"""


@dataclass(frozen=True)
class Lags:
    """Seconds by which each batch was late, and matches found."""

    lags: list[float]
    n_matches: int
    cpu_seconds: float
    died: bool = False  # for want of memory


def make_batch(number: int) -> pa.Table:
    """Return the events of one batch. Their tags say which ``A`` can find a ``C``."""
    random = np.random.default_rng(number)
    return pa.table(
        {
            "ts": np.arange(number * BATCH, (number + 1) * BATCH),
            "type": pa.array(random.choice(["A", "B", "C", "D"], BATCH, p=[0.3, 0.3, 0.01, 0.39])),
            "key": random.integers(KEYS, size=BATCH),
            "value": random.random(BATCH),
            "tag": random.integers(20, size=BATCH),
        }
    )


def push_batches(matcher: acep.Matcher, batches: int, interval: float, stop: float | None = None) -> Lags:
    """Push so many batches, one every ``interval`` seconds, for at most ``stop`` seconds."""
    lags: list[float] = []
    n_matches, clock, cpu_seconds = 0, 0.0, 0.0
    for number in range(batches):
        events, due = make_batch(number), (number + 1) * interval
        began = time.process_time()
        try:
            n_matches += len(matcher.push(events))
        except (MemoryError, acep.EngineError):  # the engine says itself that memory is too small
            return Lags(lags, n_matches, cpu_seconds, died=True)
        spent = time.process_time() - began
        cpu_seconds += spent
        clock = max(clock, due) + spent
        lags.append(clock - due)
        if stop is not None and clock > stop:
            break
    return Lags(lags, n_matches, cpu_seconds)


def measure_cost() -> float:
    """Return the processor time, in seconds, of an exact run for a batch, once its window is full."""
    matcher = acep.Matcher(acep.parse(QUERY), unit="ms")
    filled = WINDOW // BATCH
    push_batches(matcher, filled, 0.0)
    began = time.process_time()
    for number in range(filled, filled + 4):
        matcher.push(make_batch(number))
    return (time.process_time() - began) / 4


def limit_process() -> None:
    """Limit this process to one core and 512 MB from now on."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))


def run_exact(batches: int, interval: float) -> dict[str, Any]:
    """Run without a budget, until the stream has ended or the process has died."""
    run = push_batches(acep.Matcher(acep.parse(QUERY), unit="ms"), batches, interval, batches * interval)
    return {"batches": len(run.lags), "lag": run.lags[-1], "died": run.died}


def run_bounded(batches: int, interval: float, policy: str) -> dict[str, Any]:
    """Run under a budget."""
    budget = acep.Budget(cpu=SHARE, memory=MEMORY, speed=BATCH / 1000 / interval)
    matcher = acep.Matcher(acep.parse(QUERY), budget=budget, policy=policy, unit="ms")
    run, report = push_batches(matcher, batches, interval), matcher.report
    return {
        "batches": len(run.lags),
        "died": run.died,
        "lag": {"last": run.lags[-1], "most": max(run.lags), "mean": float(np.mean(run.lags))},
        "busy": run.cpu_seconds / (batches * interval),
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "memory": report.memory,
        "found": run.n_matches,
        "shed": report.shed,
        "recall": report.recall,
        "interval": list(report.interval),
        "report": str(report),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=6.0, help="of the stream, by the clock of its arrival")
    parser.add_argument("--policy", default="history")
    args = parser.parse_args(arguments)
    # A process for each run: what one has taken is not the other's.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=limit_process, max_tasks_per_child=1) as pool:
        interval = pool.submit(measure_cost).result() / OVERLOAD
        batches = max(2 * WINDOW // BATCH, int(args.seconds / interval))
        results = {
            "batches": batches,
            "interval": interval,
            "exact": pool.submit(run_exact, batches, interval).result(),
            "bounded": pool.submit(run_bounded, batches, interval, args.policy).result(),
        }
    sys.stdout.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
