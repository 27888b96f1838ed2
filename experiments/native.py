"""Run one query on one of the native core's engines, whichever the planner would choose."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import pyarrow as pa

import acep
from acep.events.tables import batch_of, schema_of
from acep.native.session import NativeSession
from acep.plan.choice import choose
from acep.plan.compile import compile_query
from acep.plan.prefilter import necessary

__all__ = ["ENGINES", "Run", "can_run", "run_natively"]

ENGINES = ("nodes", "merged", "count", "windows+nodes")
BATCH = 20_000


@dataclass(frozen=True)
class Run:
    """``cpu``: seconds of processor time. Behind match windows, ``came``: events that passed the filter; ``handed``:
    those that the engine got."""

    rows: int
    cpu: float
    matches: int
    touches: int
    nodes: int
    came: int
    handed: int


def can_run(text: str, events: pa.Table, engine: str) -> bool:
    """Return whether one of :data:`ENGINES` can run a query on such events. Only the node engine runs all of them."""
    plan = compile_query(acep.parse(text), schema_of(events.schema))
    native = choose(plan, "count" if engine == "count" else "matches").base
    if engine == "windows+nodes":
        return native != "reference" and necessary(plan) is not None
    return native == engine or (engine == "nodes" and native != "reference")


def run_natively(text: str, events: pa.Table, engine: str, limit: float = math.inf) -> Run:
    """Run a query on as many of the events as the engine can handle within ``limit`` seconds; its matches are
    columns."""
    plan = compile_query(acep.parse(text), schema_of(events.schema))
    session = NativeSession([plan], [engine])
    cpu, matches, rows = 0.0, 0, 0
    while rows < events.num_rows and cpu < limit:
        batch = batch_of(events.slice(rows, BATCH), plan.schema, plan.columns, base=rows)
        start = time.process_time()
        matches += len(session.push(batch)[0])
        cpu += time.process_time() - start
        rows += len(batch)
    start = time.process_time()
    matches += len(session.finish()[0])
    matches += session.total(0) if engine == "count" else 0
    cpu += time.process_time() - start
    counts = session.counts(0)
    came, handed = session.count_windowed(0) if engine.startswith("windows+") else (0, 0)
    return Run(rows, cpu, matches, counts.touches, counts.nodes, came, handed)
