"""Which events to carry to the workers: ``python -m experiments.spark.units [NAME ...] [--seeds N] [--output DIR]``.

What ``for_each_batch`` decides before events travel, on real streams and without Spark: whole sampling units by what
their keys brought; beside it units of equal chance, random events and random keys, as many events of each.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import acep
from acep.overload.batch_log import Decision, RunningTotals, decide
from acep.overload.key_utility import CellUtility
from acep.overload.sampling_units import cells_of, hash_of_keys
from acep.overload.unit_admission import ALL, CELLS, SHIFT, UnitAdmission
from experiments.machine import describe_machine
from experiments.overload.paired import compare_with_best
from experiments.overload.workload import Overload
from experiments.overload.workloads import OVERLOADS, choose_workloads
from experiments.results import RESULTS, table, write_page

__all__ = ["UnitTrial", "main", "measure_ways"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

WORKLOADS = (
    "bars-k0-30min", "users-k0-30h", "tweets-k0-3d", "jobs-k0-1h", "har-k0-2s", "labs-k1-28d", "again-k0-4d",
)  # fmt: skip
SHARES = (0.25, 0.5)
BATCHES = 100
WAYS = ("utility", "equal", "events", "keys")


@dataclass(frozen=True)
class UnitTrial:
    """One run: the ``share`` that was asked for, the share of the events that was ``carried``, and the ``recall`` of
    match points of the whole stream."""

    workload: str
    stream: str
    way: str
    share: float
    seed: int
    carried: float
    recall: float


@dataclass(frozen=True)
class Keyed:
    """A stream by its keys: of each event the ``ticks`` and the number of its ``key``; of each key its ``cell``."""

    workload: Overload
    events: pa.Table
    ticks: Ints
    key: Ints
    numbers: Mapping[tuple[Any, ...], int]
    cell: Ints

    @classmethod
    def from_workload(cls, workload: Overload) -> Keyed:
        """Read the stream of a workload."""
        events = workload.events()
        keys = list(zip(*(events[name].to_pylist() for name in workload.plan.keys), strict=True))
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        cell = cells_of(hash_of_keys([pa.array(values) for values in zip(*numbers, strict=True)]))
        ticks = events["ts"].cast(pa.int64()).to_numpy()
        return cls(workload, events, ticks, np.array([numbers[key] for key in keys]), numbers, cell)

    def points(self, matches: Any) -> set[tuple[int, int]]:
        """Give the match points of matches: keys and times."""
        rows = matches.to_arrow()
        if not len(rows):
            return set()
        parts = [part.to_pylist() for part in rows["key"].combine_chunks().flatten()]
        ends = rows["end"].cast(pa.int64()).to_pylist()
        return {(self.numbers[key], end) for *key_, end in zip(*parts, ends, strict=True) for key in [tuple(key_)]}


def measure_ways(stream: Keyed, all_points: set[tuple[int, int]], share: float, seed: int) -> list[UnitTrial]:
    """Carry about a ``share`` of a stream in each way, the same number of events in all but the second.

    ``all_points``: the match points of the whole stream.
    """
    workload = stream.workload
    rng = np.random.default_rng(seed)
    utility, equal = (_admit_by_units(stream, share, seed, favours=favours) for favours in (True, False))
    n_events = int(utility.sum())
    events = np.zeros(len(stream.ticks), bool)
    events[rng.choice(len(events), n_events, replace=False)] = True
    sizes = np.bincount(stream.key)
    order = rng.permutation(len(sizes))
    is_chosen = np.zeros(len(sizes), bool)
    n_left = n_events
    for key in order:  # keys as long as they fit in
        if sizes[key] <= n_left:
            is_chosen[key], n_left = True, n_left - sizes[key]
    results = []
    for way, is_kept in zip(WAYS, (utility, equal, events, is_chosen[stream.key]), strict=True):
        points = stream.points(acep.match(stream.events.filter(pa.array(is_kept)), workload.query))
        recall = len(points & all_points) / len(all_points)
        results.append(UnitTrial(workload.name, workload.file, way, share, seed, float(is_kept.mean()), recall))
    return results


def _admit_by_units(stream: Keyed, share: float, seed: int, *, favours: bool) -> Bools:
    """Admit events in micro-batches, each by what the ones before it found."""
    workload, size = stream.workload, len(stream.ticks)
    first_admission = UnitAdmission(workload.span, seed=seed)
    hashes = _hash_numbers(np.arange(len(stream.cell)) + (seed + 1) * 1_000_003)
    begins = stream.ticks - (stream.ticks - hashes[stream.key] % first_admission.length) % first_admission.length
    hashed = _hash_numbers(hashes[stream.key] ^ _hash_numbers(begins)) % ALL
    matcher, decision = acep.Matcher(workload.query), Decision()
    admitted = np.zeros(size, bool)
    for begin, end in pairwise(np.linspace(0, size, BATCHES + 1).astype(int).tolist()):
        rows, before = slice(begin, end), decision.carried.seen
        with mock.patch.object(
            CellUtility, "choose", CellUtility.choose if favours else lambda utility, *_: (utility, None)
        ):
            decision = decide(decision, first_admission, share, 0)
        admission = decision.admission or first_admission
        cells = stream.cell[stream.key[rows]]
        admitted[rows] = _admit_rows(admission, before, begins[rows], stream.ticks[rows], hashed[rows], cells)
        kept_rows = np.flatnonzero(admitted[rows]) + begin
        points = stream.points(matcher.push(stream.events.take(pa.array(kept_rows)))) if len(kept_rows) else set()
        seen = int(stream.ticks[end - 1])
        chances = admission.chances(seen if before is None else (before + seen) // 2)
        counts = [stream.cell[stream.key[kept_rows]], stream.cell[[key for key, _ in points]]]
        utility = decision.utility.add_batch(
            *(np.bincount(cell_numbers, minlength=CELLS) for cell_numbers in counts), chances
        )
        decision = Decision(admission, carried=RunningTotals(seen=seen), utility=utility)
    return admitted


def _admit_rows(
    admission: UnitAdmission, seen: int | None, begins: Ints, ticks: Ints, hashed: Ints, cells: Ints
) -> Bools:
    """Tell which rows are admitted: :meth:`UnitAdmission.admits` of many."""
    last = np.minimum(ticks, begins + admission.length - admission.span - 1)
    pieces = admission.pieces(seen)
    is_admitted = np.ones(len(ticks), bool)
    for table_, favoured in enumerate(admission.favoured):
        limits = np.empty(len(ticks), np.int64)
        for bound, steps in reversed(pieces):
            inner = np.full(len(ticks), steps[-1][1][table_])
            for since, values in reversed(steps[:-1]):
                inner = np.where(begins > since, values[table_], inner)
            limits = inner if (bound, steps) == pieces[-1] else np.where(last > bound, inner, limits)
        is_admitted &= hashed < np.where(np.isin(cells, favoured), limits << SHIFT, limits)
    return is_admitted


def _hash_numbers(numbers: Ints) -> Ints:
    """Hash integers, to 62 bits."""
    mixed = numbers.astype(np.uint64)
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed >> np.uint64(2)).astype(np.int64)


WORDS = """Written by `python -m experiments.spark.units`; [how to read
it](../internals/benchmarks.md#overload-on-spark).
Of each stream a share of the events travels. `utility`: what `for_each_batch` decides, whole sampling units by what
their keys brought so far, from nothing known. `equal`: whole units, each with the same chance. `events` and `keys`:
random events and random keys, as many events as `utility` carried. The recall is that of match points."""


def write_body(results: Sequence[UnitTrial]) -> str:
    """Return the tables of the page."""
    parts = []
    for share in sorted({result.share for result in results}):
        share_results = [result for result in results if result.share == share]
        names = list(dict.fromkeys(result.workload for result in share_results))
        lines = []
        figures: dict[str, dict[str, list[float]]] = {way: {} for way in WAYS}
        for name in names:
            for way in WAYS:
                figures[way][name] = [
                    result.recall for result in share_results if (result.workload, result.way) == (name, way)
                ]
            carried = np.mean(
                [result.carried for result in share_results if (result.workload, result.way) == (name, "utility")]
            )
            stream = next(result.stream for result in share_results if result.workload == name)
            lines.append((name, stream, f"{carried:.3f}", *(f"{np.mean(figures[way][name]):.3f}" for way in WAYS)))
        comparisons = []
        for other in WAYS[1:]:
            comparison = compare_with_best({way: figures[way] for way in ("utility", other)}, "utility")
            low, high = comparison.interval95
            interval = f"{low:+.3f} to {high:+.3f}"
            comparisons.append(
                (
                    other,
                    f"{comparison.mean - comparison.other:+.3f}",
                    interval,
                    f"{comparison.worst:+.3f}",
                    comparison.where,
                )
            )
        parts.append(
            f"## A share of {share:g}\n\n{table(('', 'stream', 'carried', *WAYS), lines)}\n\n"
            f"{table(('`utility` above', 'mean', '95 % interval', 'least', 'on'), comparisons)}"
        )
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None, workloads: Mapping[str, Overload] = OVERLOADS) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.spark.units", description=(__doc__ or "")[:36])
    parser.add_argument("names", nargs="*", help="of workloads, or patterns of names (those of the page)")
    parser.add_argument("--seeds", type=int, default=8, help="runs of each (8)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for units.csv and units.md")
    options = parser.parse_args(arguments)
    names = options.names or WORKLOADS
    chosen_workloads = (
        [workload for name in names for workload in choose_workloads([name])]
        if workloads is OVERLOADS
        else [*workloads.values()]
    )
    results = []
    for workload in chosen_workloads:
        stream = Keyed.from_workload(workload)
        all_points = stream.points(acep.match(stream.events, workload.query))
        for share in SHARES:
            for seed in range(options.seeds):
                results += measure_ways(stream, all_points, share, seed)
            print(
                *(f"{result.way} {result.carried:.3f} {result.recall:.3f}" for result in results[-len(WAYS) :]),
                workload.name,
            )
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "units.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(UnitTrial)], lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(o).items()} for o in results)
    contents: dict[str, Any] = {
        "title": "Which events travel",
        "words": WORDS,
        "machine": describe_machine(),
        "body": write_body(results),
    }
    print(write_page(options.output, "units", **contents))
    return 0


if __name__ == "__main__":
    sys.exit(main())
