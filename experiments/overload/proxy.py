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
from acep.native.session import NativeSession
from acep.shedding.limits import Limits
from acep.shedding.recovery.bundles import Recovery
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, Found, Spec, command
from experiments.overload.trial import Maker, Partitions, Stream, Timed, stream, warmed
from experiments.overload.workload import Overload

__all__ = ["SPEC", "Recovered", "main"]

Ints = npt.NDArray[np.int64]

SHARES = (0.1, 0.25)
PARTS = (0.0, 0.1, 0.25, 0.5)
WORKLOADS = ("bars-fall-*", "jobs-k1-*", "rise-*", "peak-*", "reach-*", "swap-*", "again-k0-4d", "labs-*")
WORDS = f"""Written by `python -m experiments.overload.proxy`. The policy *history*, which learned ahead from the first
half of each stream, on the second half, at {" and ".join(f"{one:.0%}" for one in SHARES)} of the touches in which all
matches are found exactly. A part of these goes into recovering bundles of which a match was found (`Budget(recover=)`);
what that takes is in the work of all. *whole*: the share of all bundles of which every match was given."""


@dataclass(frozen=True)
class Recovered(Found):
    """With ``whole``: the share of all bundles of which every match was given; ``recovered`` bundles, and those that
    were not, ``unrecovered``; ``recovering``: of all touches the share that went into that."""

    whole: float
    recovered: int
    unrecovered: int
    recovering: float


@dataclass(frozen=True)
class Given:
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


def given(
    held: Stream, engine: str, maker: Maker | None = None, rate: float = 0.0, part: float = 0.0, seed: int = 0
) -> Given:
    """Run over the test half: exactly without a policy, else at ``rate`` touches an event, a ``part`` of them for
    recovery."""
    effort = None if maker is None else Timed(maker(), seed, rate * (1 - part))
    recoveries = {0: Recovery(part, rate * part)} if part else {}
    session = NativeSession([held.plan], [engine], {0: effort} if effort else {}, recoveries=recoveries)
    session.ignore_future()
    rows, cpu = [np.zeros((0, 4), np.int64)], 0.0
    for batch in [*held.test, None]:
        start = time.process_time()
        if batch is None:
            session.finish()
        else:
            session.push(batch)
        found = session.take(0)
        cpu += time.process_time() - start
        rows.append(_points(found, held.partitions))
    every = np.concatenate(rows)
    points, first, places = np.unique(every[:, :2], axis=0, return_index=True, return_inverse=True)
    matches = np.bincount(places.ravel(), every[:, 3], len(points)).astype(np.int64)
    return Given(points, matches, every[first, 2], cpu, session, effort.seconds if effort else 0.0)


def _points(found: FoundColumns, partitions: Partitions) -> Ints:
    """Return partition, time, bundle, and number of matches, of neighbours together."""
    if not len(found):
        return np.zeros((0, 4), np.int64)
    rows = np.stack([partitions.number_rows(found.keys, len(found)), found.end, found.bundle], axis=1)
    begins = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1)))
    return np.column_stack([rows[begins], np.diff(np.append(begins, len(rows)))])


def compared(run: Given, truth: Given) -> dict[str, float]:
    """Return the shares of matches, points and bundles that a run found, and of bundles that it found wholly."""
    have = {tuple(point): many for point, many in zip(run.points.tolist(), run.matches.tolist(), strict=True)}
    mine = np.array([have.get(tuple(point), 0) for point in truth.points.tolist()], np.int64)
    _, places = np.unique(np.column_stack([truth.points[:, 0], truth.bundles]), axis=0, return_inverse=True)
    places = places.ravel()
    some, all_there = np.bincount(places, mine) > 0, np.bincount(places, mine < truth.matches) == 0
    return {
        "points": float(np.mean(mine > 0)),
        "bundles": float(np.mean(some)),
        "matches": float(mine.sum() / truth.matches.sum()),
        "whole": float(np.mean(all_there)),
    }


def measured(workload: Overload, seed: int) -> Iterable[Recovered]:
    """Measure all parts of all shares on one workload."""
    Limits(POLICIES["history"], Budget(work=1, recover=True)).recovery(workload.plan)  # says where it cannot be
    held = stream(workload, seed)
    truth = given(held, held.engine)
    maker = warmed(held, held.engine, POLICIES["history"], seed)
    for part in PARTS:
        for share in SHARES:
            run = given(held, held.engine, maker, share * truth.touches / held.events, part, seed)
            counts = run.session.counts(0)
            told = compared(run, truth)
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
                **told,
            )


SPEC = Spec(
    "proxy",
    "What the recovery of match bundles adds",
    WORDS,
    WORKLOADS,
    measured,
    "work, of the exact touches",
    told="{:.0%}",
    shown=("whole", "matches", "points", "bundles"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    return command(SPEC, arguments)


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())
