"""Measure the recovery of match bundles: ``python -m experiments.overload.proxy [NAME ...] [--output DIR]``.

A match that is found stands for its bundle (a proxy match); a part of the allowance may go into finding the others.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acep.budget import Budget
from acep.budget.policies import POLICIES
from acep.matches.found_columns import FoundColumns
from acep.native.session import NativeSession, SessionBounds
from acep.shedding.limits import Limits
from acep.shedding.recovery.recovery import Recovery
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, FigurePoint, Spec, run_command
from experiments.overload.trial import Maker, Partitions, Stream, Timed, make_warm, stream
from experiments.overload.workload import Overload

__all__ = ["SPEC", "Recovered", "main"]

Ints = npt.NDArray[np.int64]

SHARES = (0.1, 0.25)
PARTS = (0.0, 0.1, 0.25, 0.5)
WORKLOADS = ("bars-fall-*", "jobs-k1-*", "rise-*", "peak-*", "reach-*", "swap-*", "again-k0-4d", "labs-*")
SHARES_TEXT = " and ".join(f"{share:.0%}" for share in SHARES)
WORDS = f"""Written by `python -m experiments.overload.proxy`. The policy *history*, which learned ahead from the first
half of each stream, on the second half, at {SHARES_TEXT} of the touches in which all
matches are found exactly. A part of these goes into recovering bundles of which a match was found (`Budget(recover=)`);
what that takes is in the work of all. *whole*: the share of all bundles of which every match was given."""


@dataclass(frozen=True)
class Recovered(FigurePoint):
    """With ``whole``: the share of all bundles of which every match was given; ``recovered`` bundles, and those that
    were not, ``unrecovered``; ``recovering``: of all touches the share that went into that."""

    whole: float
    recovered: int
    unrecovered: int
    recovering: float


@dataclass(frozen=True)
class RecoveryRun:
    """Of a run the distinct match points (n, 2: partition and time), how many ``matches`` each has, and its bundle."""

    points: Ints
    matches: Ints
    bundles: Ints
    cpu: float
    session: NativeSession
    learning: float = 0.0

    @property
    def touches(self) -> int:
        return self.session.counts(0).touches


def run_recovery(
    halves: Stream, engine: str, maker: Maker | None = None, rate: float = 0.0, part: float = 0.0, seed: int = 0
) -> RecoveryRun:
    """Run over the test half: exactly without a policy, else at ``rate`` touches an event, a ``part`` of them for
    recovery."""
    controller = None if maker is None else Timed(maker(), seed, rate * (1 - part))
    recoveries = {0: Recovery(part, rate * part)} if part else {}
    bounds = SessionBounds({0: controller} if controller else {}, recoveries=recoveries)
    session = NativeSession([halves.plan], [engine], bounds)
    session.ignore_future()
    rows, cpu = [np.zeros((0, 4), np.int64)], 0.0
    for batch in [*halves.test, None]:
        start = time.process_time()
        match_columns = (session.finish() if batch is None else session.push(batch))[0]
        cpu += time.process_time() - start
        rows.append(_points(match_columns, halves.partitions))
    all_rows = np.concatenate(rows)
    points, first, point_indices = np.unique(all_rows[:, :2], axis=0, return_index=True, return_inverse=True)
    matches = np.bincount(point_indices.ravel(), all_rows[:, 3], len(points)).astype(np.int64)
    return RecoveryRun(points, matches, all_rows[first, 2], cpu, session, controller.seconds if controller else 0.0)


def _points(match_columns: FoundColumns, partitions: Partitions) -> Ints:
    """Return partition, time, bundle, and number of matches, of neighbours together."""
    if not len(match_columns):
        return np.zeros((0, 4), np.int64)
    rows = np.stack(
        [partitions.number_rows(match_columns.keys, len(match_columns)), match_columns.end, match_columns.bundle],
        axis=1,
    )
    begins = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1)))
    return np.column_stack([rows[begins], np.diff(np.append(begins, len(rows)))])


def compare_runs(run: RecoveryRun, truth: RecoveryRun) -> dict[str, float]:
    """Return the shares of matches, points and bundles that a run found, and of bundles that it found wholly."""
    run_counts = {
        tuple(point): n_matches for point, n_matches in zip(run.points.tolist(), run.matches.tolist(), strict=True)
    }
    n_found = np.array([run_counts.get(tuple(point), 0) for point in truth.points.tolist()], np.int64)
    _, bundle_indices = np.unique(np.column_stack([truth.points[:, 0], truth.bundles]), axis=0, return_inverse=True)
    bundle_indices = bundle_indices.ravel()
    is_found, is_complete = (
        np.bincount(bundle_indices, n_found) > 0,
        np.bincount(bundle_indices, n_found < truth.matches) == 0,
    )
    return {
        "points": float(np.mean(n_found > 0)),
        "bundles": float(np.mean(is_found)),
        "matches": float(n_found.sum() / truth.matches.sum()),
        "whole": float(np.mean(is_complete)),
    }


def measure_recovery(workload: Overload, seed: int) -> Iterable[Recovered]:
    """Measure all parts of all shares on one workload."""
    Limits(POLICIES["history"], Budget(work=1, recover=True)).recovery(workload.plan)  # says where it cannot be
    halves = stream(workload, seed)
    truth = run_recovery(halves, halves.engine)
    maker = make_warm(halves, halves.engine, POLICIES["history"], seed)
    for part in PARTS:
        for share in SHARES:
            run = run_recovery(halves, halves.engine, maker, share * truth.touches / halves.events, part, seed)
            counts = run.session.counts(0)
            recalls = compare_runs(run, truth)
            yield Recovered(
                workload.name,
                seed,
                f"{part:.0%} for recovery" if part else "no recovery",
                share,
                share=share,
                work=run.touches / truth.touches,
                wall=run.cpu / truth.cpu,
                learning=run.learning / run.cpu,
                cpu=run.cpu,
                exact_touches=truth.touches,
                exact_cpu=truth.cpu,
                all_points=len(truth.points),
                all_bundles=len(np.unique(np.column_stack([truth.points[:, 0], truth.bundles]), axis=0)),
                all_matches=int(truth.matches.sum()),
                recovered=counts.recovered,
                unrecovered=counts.unrecovered,
                recovering=counts.recovering / max(counts.touches, 1),
                **recalls,
            )


SPEC = Spec(
    "proxy",
    "What the recovery of match bundles adds",
    WORDS,
    WORKLOADS,
    measure_recovery,
    "work, of the exact touches",
    x_format="{:.0%}",
    shown=("whole", "matches", "points", "bundles"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run_command(SPEC, arguments)


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())
