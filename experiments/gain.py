"""Measure match windows (2012, section 6): ``python -m experiments.gain [NAME ...] [--limit S] [--output DIR]``.

First the native node engine with and without necessary conditions (filtering and partitioning are part of the native
core and on in both), then the paper's own measure: its Algorithm 1 with filtering (f), partitioning (p) and conditions
(c) switched on one after the other.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

import acep
from acep.events.tables import batch_of, schema_of
from acep.plan.compile import compile_query
from experiments.machine import describe_machine, pin
from experiments.native import Run, run_natively
from experiments.results import RESULTS, shorten, table, write
from experiments.two_phase import ALGORITHMS, two_phase
from experiments.workload import Workload
from experiments.workloads import WORKLOADS, choose_workloads
from experiments.zstream import pattern_of

__all__ = ["Gain", "Phases", "main", "measure_gain", "measure_phases"]

MAX_MATCHES = 2_000_000  # matches: more of them would hide the cost of finding them
WORDS = """In the first table each row is a workload's queries, each on a prefix of its stream, by the node engine
alone and behind match windows. *wanted*: the share of the events that pass the filter; *handed*: the share of those
that the engine got from the match windows; *faster*, *touches* and *nodes*: how many times as long it takes, or as much
it does, without them (*all*: with them it did nothing).

In the second table it is the paper's own measure, by its Algorithm 1 in Python: the throughput with filtering (f),
partitioning (p) and necessary conditions (c) as a multiple of that with a plain match window, and likewise touches.
"""


PAPER_WORDS = """The paper's gain is that of an engine behind match windows, with all pruning, over the same engine
behind a plain match window. Its streams are not public, so the streams differ, and only the best case can be compared:
*ours* is the greatest factor of any number of variables, by its Algorithm 1. What an event must be to pass the filter
bounds the gain: of the seventeen shares of our stream a pattern of eight names every second event, where in the paper's
trades of a whole exchange it names few; and a window of one minute holds few events more than a match needs. The last
column is the gain of necessary conditions alone in the native core, over the node engine, which has filtering and
partitioning."""


@dataclass(frozen=True)
class Gain:
    """The queries of a workload, without match windows and with them; rows are summed over the queries."""

    name: str
    alone: Run
    windowed: Run

    @property
    def faster(self) -> float:
        """Return the increase of throughput, as a factor."""
        return self.alone.cpu / self.windowed.cpu


def _sum(runs: Sequence[Run]) -> Run:
    return Run(*(sum(getattr(r, name) for r in runs) for name in Run.__dataclass_fields__))


def measure_gain(workload: Workload, limit: float = 20.0) -> Gain:
    """Measure both on the events that the engine alone handles within ``limit`` seconds, with no more than
    ``MAX_MATCHES`` matches.

    Raises :class:`RuntimeError` where they do not find the same number of matches.
    """
    alone, windowed = [], []
    for number, text in enumerate(workload.queries):
        events = workload.events()
        while workload.counted is not None and workload.counted(events, number) > MAX_MATCHES:
            events = events.slice(0, events.num_rows // 2)
        alone.append(run_natively(text, events, "nodes", limit / len(workload.queries)))
        windowed.append(run_natively(text, events.slice(0, alone[-1].rows), "windows+nodes"))
        if windowed[-1].matches != alone[-1].matches:
            raise RuntimeError(f"{workload.name}: match windows change what is found")
    return Gain(workload.name, _sum(alone), _sum(windowed))


@dataclass(frozen=True)
class Phases:
    """Algorithm 1 before an algorithm on ``rows`` events: seconds and touches by kind of pruning."""

    name: str
    algorithm: str
    rows: int
    matches: int
    cpu: dict[str, float]
    touches: dict[str, int]


PRUNINGS = {"": (False, False, False), "f": (True, False, False), "fp": (True, True, False), "fpc": (True, True, True)}
FEW = 100
EVEN = ("2", "4", "6", "8", "10")  # numbers of variables that Algorithm 1 is measured with
GROWTH = 1.25


def measure_phases(workload: Workload, algorithm: str, seconds: float = 4.0, queries: int = 3) -> Phases:
    """Measure the first queries of a workload on a prefix for which a plain match window needs about so many seconds.

    Raises :class:`RuntimeError` where the kinds of pruning do not find the same number of matches.
    """
    texts, stream = workload.queries[:queries], workload.events()
    rows, growth = FEW, GROWTH
    plain = _phases(texts, stream.slice(0, rows), algorithm, "")
    # Partial matches grow with a high power of the events.
    while rows < stream.num_rows and growth > 1.1 and plain[0] < seconds:
        before, more_rows = plain[0], min(stream.num_rows, round(rows * growth))
        plain = _phases(texts, stream.slice(0, more_rows), algorithm, "")
        power = max(1.0, math.log(plain[0] / before) / math.log(more_rows / rows))
        rows, growth = more_rows, min(2.0, (seconds / plain[0]) ** (1 / power)) if plain[0] > seconds / 100 else GROWTH
    runs_by_pruning = [plain, *(_phases(texts, stream.slice(0, rows), algorithm, name) for name in list(PRUNINGS)[1:])]
    if len({matches for _, matches, _ in runs_by_pruning}) > 1:
        raise RuntimeError(
            f"{workload.name}: {[matches for _, matches, _ in runs_by_pruning]} matches by kind of pruning"
        )
    cpu, touches = ({name: run[i] for name, run in zip(PRUNINGS, runs_by_pruning, strict=True)} for i in (0, 2))
    return Phases(
        workload.name, algorithm, rows, runs_by_pruning[0][1], cpu, {name: int(n) for name, n in touches.items()}
    )


def _phases(queries: Sequence[str], events: pa.Table, algorithm: str, pruning: str) -> tuple[float, int, int]:
    """Return seconds, matches and touches of all queries."""
    cpu, matches, touches = 0.0, 0, 0
    f, p, c = PRUNINGS[pruning]
    for text in queries:
        plan = compile_query(acep.parse(text), schema_of(events.schema))
        pattern, rows = pattern_of(plan), batch_of(events, plan.schema, plan.columns).events
        start = time.process_time()
        result = two_phase(pattern, rows, ALGORITHMS[algorithm], f=f, p=p, c=c)
        cpu += time.process_time() - start
        matches, touches = matches + len(result.matches), touches + result.touches
    return cpu, matches, touches


def _ratio(numerator: float, denominator: float) -> str:
    return shorten(numerator / denominator) if denominator else ("all" if numerator else "")


def gains_table(gains: Sequence[Gain]) -> str:
    """Return the native engine's gains as a Markdown table."""

    def cells(g: Gain) -> list[str]:
        a, w, times = g.alone, g.windowed, g.alone.rows
        shares = f"{w.came / times:.1%}", f"{w.handed / w.came:.1%}" if w.came else ""
        factors = shorten(g.faster), _ratio(a.touches, w.touches), _ratio(a.nodes, w.nodes)
        return [
            g.name,
            shorten(times),
            shorten(a.matches),
            *shares,
            shorten(times / a.cpu),
            shorten(times / w.cpu),
            *factors,
        ]

    head = ["workload", "events", "matches", "wanted", "handed", "events/s alone", "behind windows"]
    return table([*head, "faster", "touches", "nodes"], [cells(g) for g in gains])


def phases_table(runs: Sequence[Phases]) -> str:
    """Return Algorithm 1's gains as a Markdown table."""
    kinds = list(PRUNINGS)[1:]
    rows = [
        [r.name, r.algorithm, shorten(r.rows), shorten(r.matches)]
        + [_ratio(r.cpu[""], r.cpu[kind]) for kind in kinds]
        + [_ratio(r.touches[""], r.touches[kind]) for kind in kinds]
        for r in runs
    ]
    return table(["workload", "algorithm", "events", "matches", *kinds, *(f"touches {kind}" for kind in kinds)], rows)


PAPER = {
    ("pset-hospital", "automaton"): (
        "Onco",
        100,
        "more than two orders of magnitude; the axis of Figure 6b ends at 700",
    ),
    ("pset-stock", "automaton"): ("NYSE", 60, "the axis of Figure 6d ends at 60"),
    ("pset-hospital", "left-deep"): ("Onco", 4, "three to four times, with ZStream"),
    ("pset-stock", "left-deep"): ("NYSE", 4, "three to four times, with ZStream"),
}
"""Of a stream and an algorithm: the paper's stream, and the throughput that all pruning gains on Pset at best, as a
factor, with the words of its section 6.2; Figures 6 and 7 have no numbers besides their axes."""


def paper_table(gains: Sequence[Gain], runs: Sequence[Phases]) -> str:
    """Return the paper's figures of Pset and those measured here as a Markdown table."""
    rows = []
    for (stream, algorithm), (paper_stream, factor, words) in PAPER.items():
        our_runs = [r for r in runs if r.name.startswith(f"{stream}-") and r.algorithm == algorithm]
        if our_runs:
            best = max(our_runs, key=lambda r: r.cpu[""] / r.cpu["fpc"])
            gained = best.cpu[""] / best.cpu["fpc"]
            native = [g for g in gains if g.name.startswith(f"{stream}-")]
            best_native = max(native, key=lambda g: g.faster, default=None)
            shares_wanted = [g.alone.rows and g.windowed.came / g.alone.rows for g in native if g.name == best.name]
            rows.append(
                (
                    f"{paper_stream}: {words}",
                    algorithm,
                    f"{shorten(gained)} ({best.name})",
                    "yes" if gained >= factor else f"no, {shorten(gained / factor)} of it",
                    f"{shares_wanted[0]:.1%}" if shares_wanted else "",
                    f"{shorten(best_native.faster)} ({best_native.name})" if best_native else "",
                )
            )
    return table(["paper, Pset", "algorithm", "ours", "as much", "pass the filter", "native nodes"], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write where asked; all workloads of the paper go to ``docs/results/``."""
    parser = argparse.ArgumentParser(prog="python -m experiments.gain", description=__doc__)
    parser.add_argument("names", nargs="*", help="workloads or groups; without any: all of the paper's")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of processor time a run may take")
    parser.add_argument("--output", type=Path, help="folder for the results")
    options = parser.parse_args(arguments)
    pin()
    names = options.names or sorted({w.group for w in WORKLOADS.values()} & {"pseq", "pset", "ponco", "pnyse"})
    gains: list[Gain] = []
    runs: list[Phases] = []
    for workload in choose_workloads(names):
        gains.append(measure_gain(workload, options.limit))
        print(gains_table(gains[-1:]).splitlines()[-1], flush=True)
        if workload.group in ("pseq", "pset") and workload.name.endswith(EVEN):
            for algorithm in ("automaton", "left-deep"):
                runs.append(measure_phases(workload, algorithm, options.limit / 5))
                print(phases_table(runs[-1:]).splitlines()[-1], flush=True)
    folder = options.output or (None if options.names else RESULTS)
    if folder:
        rows = {"gains": [asdict(g) for g in gains], "phases": [asdict(r) for r in runs]}
        body = f"## Beside the paper\n\n{PAPER_WORDS}\n\n{paper_table(gains, runs)}\n\n"
        body += f"## The native engine\n\n{gains_table(gains)}\n\n## Algorithm 1\n\n{phases_table(runs)}"
        page = write(
            folder,
            "match_windows",
            title="Match windows",
            words=WORDS,
            machine=describe_machine(),
            body=body,
            rows=rows,
        )
        print(f"written to {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
