"""Measure what a sufficient budget and learning cost: ``python -m experiments.overload.overhead [NAME ...]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np

from acep.budget.policies import POLICIES
from acep.learning.policies.exploration import FIRST_SHADOW
from acep.learning.policy import Policy
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.training.offline import Standing
from experiments.charts import Panel, chart
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, Figure, write_figure
from experiments.overload.trial import Run, Stream, Timed, make_warm, measure_exact, run, stream
from experiments.overload.workload import Overload
from experiments.overload.workloads import choose_workloads
from experiments.results import RESULTS, table

__all__ = ["Cost", "main", "measure_costs", "write_body"]

SUFFICIENT = 1e9
SHARE = 0.1
RUNS = 5
COMPARED = ("random", "newest-per-state", "hybrid", "history")
WORDS = f"""Written by `python -m experiments.overload.overhead`. Processor time on the second half of each stream, the
best of {{}} runs by turns. *ample*: with a budget that is never reached, in parts of the time without a budget; the
result must be the same. *at {SHARE:.0%}*: with {SHARE:.0%} of the exact touches. *learning*: of that time, the share of
learning and of making orders. *bookkeeping*: how much more than the exact run's time it takes when all nodes have marks
and as many as at first are logged, but none is dropped and nothing is learned. *ns*: a touch, exactly and under the
budget, learning not counted."""


@dataclass(frozen=True)
class Cost:
    """Seconds of the processor of one policy on one workload, and of the exact run."""

    workload: str
    engine: str
    policy: str
    exact: float
    touches: int
    sufficient: float
    ample_learning: float
    same: bool
    held: float
    held_learning: float
    held_touches: int
    watched: float


def measure_costs(workload: Overload, repeats: int = RUNS) -> Iterable[Cost]:
    """Measure all policies on one workload. Runs of each kind alternate, so that a slower hour affects all of them."""
    halves = stream(workload)
    truth = measure_exact(halves, "points", repeats=1)
    rate = truth.rate(SHARE, halves.events)
    for name in COMPARED:
        maker = make_warm(halves, truth.engine, POLICIES[name])
        runs: list[tuple[Run, Run, Run, Run]] = []
        for _ in range(repeats):
            free = run(halves, truth.engine)
            sufficient, tight = (
                _run_limited(halves, truth.engine, maker, allowed_rate) for allowed_rate in (SUFFICIENT, rate)
            )
            runs.append((free, sufficient, tight, run(halves, truth.engine, Timed(Watching(maker()), 0, None))))
        free, sufficient, tight, watched = (
            min(kind, key=lambda candidate: candidate.cpu) for kind in zip(*runs, strict=True)
        )
        yield Cost(
            workload.name,
            truth.engine,
            name,
            exact=free.cpu,
            touches=free.touches,
            sufficient=sufficient.cpu,
            ample_learning=sufficient.learning,
            same=bool(np.array_equal(sufficient.points, free.points)) and sufficient.matches == free.matches,
            held=tight.cpu,
            held_learning=tight.learning,
            held_touches=tight.touches,
            watched=watched.cpu - watched.learning,
        )


class Watching(Standing):
    """A policy whose first shedding table stays in force, with as many sampling units observed as at first."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.name = policy, policy.name

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        """Return the shedding table for the whole run."""
        self.shedding_table = self.policy.begin(context, seed).watching(sample=0.0, shadow=FIRST_SHADOW)
        return self.shedding_table


def _run_limited(halves: Stream, engine: str, maker: Callable[[], Policy], rate: float) -> Run:
    return run(halves, engine, Timed(maker(), 0, rate))


def write_body(rows: Sequence[Cost]) -> str:
    """Return the tables of the page."""
    head = (
        "",
        "exact, s",
        "ample",
        "learning",
        "same result",
        f"at {SHARE:.0%}",
        "learning",
        "bookkeeping",
        "ns",
        f"ns at {SHARE:.0%}",
    )
    parts = []
    for policy in dict.fromkeys(row.policy for row in rows):
        policy_rows = [row for row in rows if row.policy == policy]
        lines = [
            (
                row.workload,
                f"{row.exact:.3f}",
                f"{row.sufficient / row.exact:.2f}",
                f"{row.ample_learning / row.sufficient:.0%}",
                "yes" if row.same else "no",
                f"{row.held / row.exact:.2f}",
                f"{row.held_learning / row.held:.0%}",
                f"{row.watched / row.exact - 1:.0%}",
                f"{row.exact / max(row.touches, 1) * 1e9:.0f}",
                f"{(row.held - row.held_learning) / max(row.held_touches, 1) * 1e9:.0f}",
            )
            for row in policy_rows
        ]
        ratios = [
            [row.sufficient / row.exact for row in policy_rows],
            [row.held / row.exact for row in policy_rows],
            [row.watched / row.exact for row in policy_rows],
        ]
        for name, summarize in (("mean", fmean), ("median", median)):
            lines.append((name, "", *_means([summarize(column) for column in ratios])))
        exact_total = sum(row.exact for row in policy_rows)
        sums = [
            sum(column) / exact_total
            for column in zip(*((row.sufficient, row.held, row.watched) for row in policy_rows), strict=True)
        ]
        lines.append(("all together", f"{exact_total:.3f}", *_means(sums)))
        parts.append(f"## {policy}\n\n{table(head, lines)}")
    return "\n\n".join(parts)


def _means(ratios: Sequence[float]) -> tuple[str, ...]:
    sufficient, tight, watched = ratios
    return f"{sufficient:.2f}", "", "", f"{tight:.2f}", "", f"{watched - 1:.0%}", "", ""


def draw_picture(rows: Sequence[Cost]) -> str:
    """Draw the time as a multiple of the exact run's, by its parts."""
    panels = []
    for title, ratio in (
        ("an ample budget", lambda row: row.sufficient / row.exact),
        (f"{SHARE:.0%} of the work", lambda row: row.held / row.exact),
    ):
        series = {name: [(row.exact, ratio(row)) for row in rows if row.policy == name] for name in COMPARED}
        panels.append(Panel(f"time with {title}", series, "seconds of the exact run", log=True, high=3.0))
    return chart(panels, columns=2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write, as the other figures."""
    parser = argparse.ArgumentParser(prog="python -m experiments.overload.overhead", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads, * and ? as in file names")
    parser.add_argument("--repeats", type=int, default=RUNS, help=f"runs of which the fastest counts ({RUNS})")
    parser.add_argument("--output", type=Path, help="folder for the results")
    options = parser.parse_args(arguments)
    try:
        workloads = [workload for workload in choose_workloads(options.names) if options.names or not workload.control]
    except ValueError as error:
        parser.error(str(error))
    folder = options.output or (None if options.names else RESULTS)
    rows: list[Cost] = []
    for workload in workloads:
        for row in measure_costs(workload, options.repeats):
            rows.append(row)
            print(f"{row.workload:22s}{row.policy:18s}ample {row.sufficient / row.exact:.3f}", end="  ")
            print(
                f"at {SHARE:.0%} {row.held / row.exact:.3f}, learning {row.held_learning / row.held:.0%}",
                flush=True,
            )
        if folder:
            words = WORDS.format(options.repeats)
            figure = Figure("overhead", "What best effort costs", words, rows, write_body(rows), draw_picture(rows))
            write_figure(folder, figure)
    return int(any(not row.same for row in rows))


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())
