"""Measure whether memory grows with a stream: ``python -m experiments.memory [--events N] [--output FOLDER]``.

Several queries read generated events batch by batch, in one process and one pass; what they find is dropped. Memory is
read after each million events. The results go to ``docs/results/memory.md``; with ``--events`` they are printed.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import acep
from acep.events.tables import batch_of, schema_of
from acep.plan.compile import compile_query
from acep.runtime.stream import Stream
from experiments.machine import describe_machine, memory
from experiments.results import RESULTS, shorten, table, write
from experiments.stock import StockQuery
from experiments.streams import letters, ticker
from experiments.workloads import sequence

__all__ = ["COUNTED", "MATCHED", "Point", "batches", "main", "measure", "measure_growth"]

MILLION = 1_000_000
FULL_RUN = 50 * MILLION
BATCH = 50_000
VISIT = 5_000  # ticks after which all visits are over and others begin
VISITS = 50  # at a time
MAX_GROWTH = 1.05  # memory of the process at the end by that after a million events; allocators keep a little
MAX_NATIVE_GROWTH = 1.5  # of the engines, which reserve more by doubling

MATCHED = {
    "w1-contiguity": StockQuery(strategy="s2").text(),
    "w1-next": StockQuery(strategy="s3").text(),
    "w2-next": sequence("ABC", 10_000, strategy="skip_till_next_match", key="key"),
    "merged": sequence("ABC", 500, key="key"),
    "negation": "PATTERN SEQ(A a, ~B b, C c) WHERE [key] AND a.value < 100000 WITHIN 1000",
    "negation at the end": "PATTERN SEQ(A a, C c, ~B b) WHERE [key] AND a.value < c.value WITHIN 500",
    "a set": "PATTERN {A a, B b, C c} WHERE [key] AND a.value < 2000 WITHIN 2000",
    "keys come and go": "PATTERN SEQ(A a, B b, C c) WHERE [visit] AND a.value < b.value WITHIN 1000",
    "texts come and go": sequence("ABC", 1_000, strategy="skip_till_next_match", key="name"),
}
COUNTED = {
    "w2-count": sequence("ABC", 10_000, key="key"),
    "w3-count-100": sequence("ABCD", 100),
    "counted, keys come and go": sequence("ABC", 1_000, key="visit"),
}


@dataclass(frozen=True)
class Point:
    """After ``events``: ``resident`` bytes of the process, bytes that the ``native`` engines hold, the number of
    ``matches`` so far, and ``cpu``, seconds of processor time."""

    events: int
    resident: int
    native: int
    matches: int
    cpu: float


def batches(rows: int) -> Iterator[pa.Table]:
    """Yield ``rows`` events: half of them of a ticker and half letters, the first million again and again with later
    times; visits and names that come, stay for a while and never come again."""
    half = MILLION // 2
    stock, other = ticker(rows=half), letters(rows=half)
    empty = pa.nulls(half, pa.int64())
    columns = {
        "type": [stock["type"], other["type"]],
        **{name: [stock[name], empty] for name in ("symbol", "price", "volume")},
        **{name: [empty, other[name]] for name in ("key", "value")},
    }
    chosen = np.random.default_rng(50).permutation(MILLION)
    order = np.empty(MILLION, np.int64)  # each half in its own order
    order[np.sort(chosen[:half])], order[np.sort(chosen[half:])] = np.arange(half), np.arange(half, MILLION)
    million = pa.table(
        {name: pa.concat_arrays([_as_array(part) for part in parts]).take(order) for name, parts in columns.items()}
    )
    for start in range(0, rows, BATCH):
        size = min(BATCH, rows - start)
        ts = np.arange(start, start + size)
        visit = ts // VISIT * VISITS + ts % VISITS
        batch = million.slice(start % MILLION, size)
        batch = batch.append_column("ts", pa.array(ts)).append_column("visit", pa.array(visit))
        yield batch.append_column(
            "name", pa.array([f"visit {number}" for number in visit.tolist()]).dictionary_encode()
        )


def _as_array(part: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def measure(rows: int, names: Sequence[str] = (*MATCHED, *COUNTED)) -> Iterator[Point]:
    """Run queries over ``rows`` events, all or those named; a point after each million and at the end."""
    schema = schema_of(next(batches(1)).schema)
    plans = {
        output: [compile_query(acep.parse(text), schema) for name, text in queries.items() if name in names]
        for output, queries in (("matches", MATCHED), ("count", COUNTED))
    }
    columns = tuple(dict.fromkeys(name for group in plans.values() for plan in group for name in plan.columns))
    streams = {output: Stream(group, output=output) for output, group in plans.items()}
    n_events = matches = 0
    start = time.process_time()
    for events in batches(rows):
        batch = batch_of(events, schema, columns, base=n_events)
        matches += sum(map(len, streams["matches"].push(batch)))
        streams["count"].push(batch)
        for number in range(len(plans["count"])):
            counted = streams["count"].take_counted(number)
            matches += counted if isinstance(counted, int) else 0
        n_events += len(batch)
        if n_events % MILLION == 0 or n_events == rows:
            gc.collect()
            pa.default_memory_pool().release_unused()
            native = sum(s._natives.session.bytes for s in streams.values() if s._natives.session is not None)
            yield Point(n_events, memory() or 0, native, matches, time.process_time() - start)


def measure_growth(points: Sequence[Point]) -> tuple[float, float]:
    """Return the memory of the process and of the native engines at the end, divided by that at the first point."""
    return points[-1].resident / points[0].resident, points[-1].native / points[0].native


WORDS = f"""Written by `python -m experiments.memory`; [how to read it](../internals/benchmarks.md). {len(MATCHED)}
queries whose
matches are made and {len(COUNTED)} whose matches are counted read the same generated events in one process: among them
negations, a set, and keys and texts that come and go. Of the process, the resident memory; of the native engines, what
they have reserved."""


def write_body(points: Sequence[Point]) -> str:
    """Return the growth, a table of some of the points, and the queries."""
    resident, native = measure_growth(points)
    steps = [p for i, p in enumerate(points) if i in (0, 1, 4, 9, 19, 29, 39) or p is points[-1]]
    rows = [
        (f"{p.events:,}", *(f"{size / 2**20:,.1f} MB" for size in (p.resident, p.native)), shorten(p.matches))
        for p in steps
    ]
    summary = f"After {points[-1].events:,} events the process has {resident:.3f} times the memory of after "
    summary += f"{points[0].events:,}, and the native engines {native:.3f} times theirs; "
    summary += (
        f"{shorten(points[-1].events / points[-1].cpu)} events a second, all queries and the making of events together."
    )
    queries = "\n\n".join(f"{name}:\n\n```\n{text}\n```" for name, text in (MATCHED | COUNTED).items())
    return f"{summary}\n\n{table(('events', 'process', 'native', 'matches'), rows)}\n\n## Queries\n\n{queries}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where memory grew."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.memory", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--events", type=int, default=FULL_RUN, help=f"how many ({FULL_RUN:,})")
    parser.add_argument("--output", type=Path, help="folder for memory.md, memory.csv and raw/memory.json")
    options = parser.parse_args(arguments)
    points = []
    for point in measure(options.events):
        points.append(point)
        print(
            f"{point.events:>12,}  {point.resident / 2**20:8.1f} MB  {point.native / 2**20:8.1f} MB native", flush=True
        )
    folder = options.output or (RESULTS if options.events == FULL_RUN else None)
    if folder:
        page = write(
            folder,
            "memory",
            title="Memory",
            words=WORDS,
            machine=describe_machine(),
            body=write_body(points),
            rows=[asdict(p) for p in points],
        )
        print(f"written to {page}")
    resident, native = measure_growth(points)
    return int(resident > MAX_GROWTH or native > MAX_NATIVE_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
