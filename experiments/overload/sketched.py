"""Recall by the memory of the history: ``python -m experiments.overload.sketched [NAME ...] [--output DIR]``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

from acep.learning.policies.history_policy import HistoryPolicy
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.sketches.dense import DenseMemory
from acep.sketches.match_map import MatchMap
from acep.sketches.neighbour_map import NeighbourMap
from acep.sketches.protocol import Floats, Ints, VectorMemory
from acep.training.offline import Student, learn_offline
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, FigurePoint, Spec, run_command
from experiments.overload.trial import Warm, measure_exact, stream, try_policy
from experiments.overload.workload import Overload
from experiments.results import table

__all__ = ["SPEC", "Fine", "main"]

SHARE = 0.1
WINDOWS, WAITS = 64, 6
EXACT, NEIGHBOURS, HASHED = "exact sums", "sketch of neighbours", "sketch by hashes"
PARTS = {NEIGHBOURS: (0.2, 0.1, 0.05), HASHED: (0.5, 0.1)}
NEAR = 0.02
CHANCES = 3
WORDS = f"""Written by `python -m experiments.overload.sketched`. The policy *history* with match vectors of {WINDOWS}
by {WAITS} bins of time, so that there are many. What an exact run over the first half of the stream tells of them is
held exactly, or in a part of the memory that this takes: in a sketch where neighbours share a cell
([sketches](../explanation/sketches.md)), or where cells are given out by hashes. All else is the same for all: the
trajectories that the
registers' terms are fitted to, and the way to choose, which was tried out with the exact sums. Recall on the second
half at {SHARE:.0%} of the work, each the mean over {CHANCES} seeds of the policy."""


class Noted(DenseMemory):
    """Exact sums that also keep the additions, so that they can be repeated on other memories."""

    def __init__(self, columns: int, ring: int) -> None:
        super().__init__(columns, ring)
        self.added: list[tuple[Ints, Floats]] = []

    def add(self, vectors: Ints, amounts: Floats) -> None:
        """Add, and note the addition."""
        super().add(vectors, amounts)
        self.added.append((vectors, amounts))


class Fine(HistoryPolicy):
    """The policy on a fine grid, with exact sums until it is given others."""

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        """Begin without any knowledge."""
        super().begin(context, seed)
        self.grid = context.grid(windows=WINDOWS, waits=WAITS)
        self.sums: Noted | VectorMemory = Noted(self.sums.columns, self.sums.ring)
        return self._shedding_table()

    def with_memory(self, memory: VectorMemory) -> Fine:
        """Return the same policy with another memory."""
        assert isinstance(self.sums, Noted)
        other = copy(self)
        other.sums = memory
        for vectors, amounts in self.sums.added:
            memory.add(vectors, amounts)
        return other

    def memory(self, series: str, nbytes: int) -> VectorMemory:
        """Return an empty memory of a kind."""
        columns, ring, grid = self.sums.columns, self.sums.ring, self.grid
        if series == NEIGHBOURS:
            return NeighbourMap(columns, ring, nbytes=nbytes, step=grid.waits * grid.features, size=grid.windows)
        if series == HASHED:
            return MatchMap.within(columns, ring, nbytes=nbytes)
        return DenseMemory(columns, ring)


@dataclass(frozen=True)
class Sized(FigurePoint):
    """With ``nbytes``: of the sums, when they had been learned."""

    nbytes: int


def measure_sketches(workload: Overload, seed: int) -> Iterable[Sized]:
    """Measure the exact sums and sketches of all sizes on one workload."""
    halves = stream(workload, seed)
    truth = measure_exact(halves, "points", repeats=1)
    policy = Fine()
    learn_offline(halves.plan, truth.engine, halves.train, Student(policy), seed=seed)
    exact_nbytes = policy.sums.nbytes
    for series, part in ((EXACT, 1.0), *_sketches()):
        sized_policy = policy.with_memory(policy.memory(series, int(part * exact_nbytes)))
        learned = sized_policy.learned()
        warm = partial(_warm, learned)
        runs = [
            try_policy(halves, truth, warm, SHARE, seed=policy_seed, repeats=1)
            for policy_seed in range(seed, seed + CHANCES)
        ]
        outcome = runs[0] | {
            name: fmean(run[name] for run in runs) for name in ("work", "points", "bundles", "matches")
        }
        yield Sized(workload.name, seed, series, part, **outcome, nbytes=sized_policy.sums.nbytes)


def _warm(learned: Mapping[str, Any]) -> Warm:
    return Warm(Fine(), learned)


def count_near(rows: Sequence[FigurePoint]) -> str:
    """Count, by sketch and memory, the workloads whose recall is at most ``NEAR`` below that of the exact sums: of
    points, of bundles, of both; and of both on that half of the workloads whose exact sums take most memory."""
    exact = {(row.workload, row.seed): row for row in rows if isinstance(row, Sized) and row.series == EXACT}
    large = sorted(exact, key=lambda key: exact[key].nbytes, reverse=True)[: (len(exact) + 1) // 2]
    lines = []
    for series, part in _sketches():
        series_rows = {(row.workload, row.seed): row for row in rows if (row.series, row.x) == (series, part)}
        points = {key for key, row in series_rows.items() if row.points >= exact[key].points - NEAR}
        bundles = {key for key, row in series_rows.items() if row.bundles >= exact[key].bundles - NEAR}
        both = points & bundles
        counts = (len(points), len(bundles), len(both), len(both.intersection(large)))
        lines.append((series, f"{part:.0%}", *map(str, counts)))
    head = ("", "memory", "points", "bundles", "both", f"both, of the {len(large)} with most vectors")
    title = f"How many of {len(exact)} are at most {NEAR} below the exact sums"
    return f"## {title}\n\n{table(head, lines)}"


def _sketches() -> list[tuple[str, float]]:
    return [(series, part) for series, parts in PARTS.items() for part in parts]


SPEC = Spec(
    "recall_by_memory",
    "Recall by the memory of the history",
    WORDS,
    ("*",),
    measure_sketches,
    "memory, in parts of the exact sums'",
    log=True,
    x_format="{:.0%}",
    shown=("points", "bundles", "nbytes"),
    body=count_near,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run_command(SPEC, arguments)


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())
