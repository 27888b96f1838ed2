"""Measure the cost of exact matching: ``python -m experiments.overload.survey [NAME ...] [--output DIR]``.

Each half of a stream is run alone. For the test half it also estimates the matches that random dropping leaves.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.events.tables import batch_of
from acep.matches.found_columns import FoundColumns
from acep.native.session import NativeSession
from acep.plan.choice import WINDOWS
from experiments.machine import describe_machine, pin
from experiments.overload.survival import count_wanted, find_surviving, keep_share, touches_by_length
from experiments.overload.workload import Overload
from experiments.overload.workloads import choose_workloads
from experiments.results import RESULTS, shorten, table, write

__all__ = ["Half", "Surveyed", "main", "survey", "survey_half"]

Ints = npt.NDArray[np.int64]

BATCH = 5_000
SEEDS = 5
SHARE = 0.1
"""Of the touches, what random dropping may spend."""
SAMPLED = 250_000
"""Touches from which it is learned what partial matches of each length cost."""
WORDS = f"""Each half of a stream is run alone and exactly, on one core; of two figures the first is the training
half's. *k*: errors; *reached*: events that reach the engine; *touches*: for each of these; *span*: the median time
from a bundle's first match point to its last, in windows; *MB*: what the engine had reserved at most, without
the matches. *bundles left* and *points left*: of the test half's, the share that is still found where partial
matches are dropped at random, each *kept* with this probability, so that {SHARE:.0%} of the touches are left; the mean
over {SEEDS} seeds. What a partial match costs by its length was sampled from the first {SAMPLED:,} touches of the test
half by the reference engine, which merges nothing. This is dropping at birth: a policy that evicts at random only
while there are too many finds more, so that these shares are no substitute for a measured random policy.

Beyond the workloads of the first experiment, windows and bounds were chosen by trying several of each and looking at
these figures of the test half, the random shares included; no other policy was looked at.
"""


@dataclass(frozen=True)
class Half:
    """An exact run on one half of a stream. ``reached``: events that the engine got; ``span``: the median span of a
    bundle, in windows (in time; not known if the window counts events)."""

    events: int
    partitions: int
    reached: int
    points: int
    bundles: int
    matches: int
    touches: int
    nodes: int
    seconds: float
    span: float | None
    megabytes: float

    @property
    def each(self) -> float:
        """Return the touches per event."""
        return self.touches / max(1, self.reached)


@dataclass(frozen=True)
class Surveyed:
    """A workload, its halves, and the shares of the test half's bundles and match points that random dropping leaves,
    keeping each partial match with probability ``keep``."""

    name: str
    file: str
    errors: int
    window: str
    engine: str
    train: Half
    test: Half
    keep: float
    bundles: float
    points: float


def survey(workload: Overload) -> Surveyed:
    """Run both halves of a workload exactly."""
    train, test = workload.halves()
    keep = keep_share(touches_by_length(workload.plan, test, SAMPLED), SHARE)
    (first, _), (second, shares_left) = survey_half(workload, train, 1.0), survey_half(workload, test, keep)
    return Surveyed(
        workload.name,
        workload.file,
        workload.errors,
        workload.window,
        workload.choice.engine,
        first,
        second,
        keep,
        *shares_left,
    )


def survey_half(workload: Overload, events: pa.Table, keep: float) -> tuple[Half, tuple[float, float]]:
    """Survey one half, with the shares of its bundles and match points that are left."""
    plan, engine = workload.plan, workload.choice.engine
    session = NativeSession([plan], [engine])
    session.ignore_future()
    keys = _partitions(events, plan.keys)
    point_parts: list[Ints] = []  # rows: partition, match point, bundle, seeds in which it is found as bits
    matches, cpu, reserved = 0, 0.0, 0
    for first in range(0, events.num_rows, BATCH):
        batch = batch_of(events.slice(first, BATCH), plan.schema, plan.columns, base=first)
        start = time.process_time()
        match_columns = session.push(batch)[0]
        cpu += time.process_time() - start
        matches += len(match_columns)
        reserved = max(reserved, session.bytes)
        if len(match_columns):
            point_parts.append(_points(match_columns, keys, keep))
    counts = session.counts(0)
    reached = session.count_windowed(0)[1] if engine.startswith(WINDOWS) else count_wanted(plan, events)
    rows = np.concatenate(point_parts) if point_parts else np.zeros((0, 4), np.int64)
    points, bundles, spans = _summary(rows)
    half = Half(
        events=events.num_rows,
        partitions=len(np.unique(keys)),
        reached=reached,
        points=len(points),
        bundles=len(bundles),
        matches=matches,
        touches=counts.touches,
        nodes=counts.nodes,
        seconds=cpu,
        span=None if plan.window.counted or not len(spans) else float(np.median(spans)) / workload.span,
        megabytes=reserved / 1e6,
    )
    return half, (_recall(bundles), _recall(points))


def _points(match_columns: FoundColumns, keys: Ints, keep: float) -> Ints:
    alive = find_surviving(match_columns, keep, SEEDS)
    bits = (alive * (1 << np.arange(SEEDS))[:, None]).sum(axis=0)
    rows = np.stack(
        [keys[match_columns.ids[match_columns.offsets[:-1]]], match_columns.end, match_columns.bundle], axis=1
    )
    distinct, places = np.unique(rows, axis=0, return_inverse=True)
    merged = np.zeros(len(distinct), np.int64)
    np.bitwise_or.at(merged, places.ravel(), bits)
    return np.column_stack([distinct, merged])


def _summary(rows: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the bits of each match point, those of each bundle, and the spans of bundles."""
    points = _merge_bits(rows, 2)
    bundles = _merge_bits(rows[:, [0, 2, 1, 3]], 2)
    order = np.lexsort((rows[:, 1], rows[:, 2], rows[:, 0]))
    ordered = rows[order]
    new = np.flatnonzero(np.r_[True, (ordered[1:, [0, 2]] != ordered[:-1, [0, 2]]).any(axis=1)][: len(rows)])
    last = np.r_[new[1:], len(rows)] - 1
    return points, bundles, ordered[last[: len(new)], 1] - ordered[new, 1]


def _merge_bits(rows: Ints, n_columns: int) -> Ints:
    distinct, places = np.unique(rows[:, :n_columns], axis=0, return_inverse=True)
    bits = np.zeros(len(distinct), np.int64)
    np.bitwise_or.at(bits, places.ravel(), rows[:, 3])
    return bits


def _recall(bits: Ints) -> float:
    if not len(bits):
        return 1.0
    return float(np.mean([((bits >> seed) & 1).mean() for seed in range(SEEDS)]))


def _partitions(events: pa.Table, keys: tuple[str, ...]) -> Ints:
    """Return the partition of each event, as a number."""
    codes = np.zeros(events.num_rows, np.int64)
    for key in keys:
        column = events[key].combine_chunks()
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        encoded = encoded.unify_dictionaries() if isinstance(encoded, pa.ChunkedArray) else encoded
        numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        codes = codes * (len(encoded.dictionary) + 1) + numbers + 1
    return codes


def surveyed_table(surveys: Sequence[Surveyed]) -> str:
    """Return a Markdown table; a stroke divides the halves of the training and the test part."""

    def cells(s: Surveyed) -> list[str]:
        def both_halves(name: str) -> str:
            return f"{shorten(getattr(s.train, name))} / {shorten(getattr(s.test, name))}"

        counts = [
            both_halves(n) for n in ("events", "partitions", "reached", "points", "bundles", "matches", "each", "nodes")
        ]
        shares_left = [f"{share:.2f}" for share in (s.keep, s.bundles, s.points)]
        figures = [both_halves(n) for n in ("seconds", "span", "megabytes")]
        return [s.name, s.file, str(s.errors), s.window, s.engine, *counts, *figures, *shares_left]

    head = ["workload", "stream", "k", "window", "engine", "events", "partitions", "reached", "points", "bundles"]
    head += ["matches", "touches", "nodes", "seconds", "span", "MB", "kept", "bundles left", "points left"]
    return table(head, map(cells, surveys))


def main(arguments: Sequence[str] | None = None) -> int:
    """Survey, print, and write where asked; all workloads go to ``docs/results/``."""
    parser = argparse.ArgumentParser(prog="python -m experiments.overload.survey", description=__doc__)
    parser.add_argument("names", nargs="*", help="workloads, * and ? as in file names; without any: all")
    parser.add_argument("--output", type=Path, help="folder for the results")
    options = parser.parse_args(arguments)
    pin()
    surveys: list[Surveyed] = []
    for workload in choose_workloads(options.names):
        surveys.append(survey(workload))
        print(surveyed_table(surveys[-1:]).splitlines()[-1], flush=True)
    folder = options.output or (None if options.names else RESULTS)
    if folder:
        page = write(
            folder,
            "workloads",
            title="Workloads of the best-effort experiments",
            words=WORDS,
            machine=describe_machine(),
            body=surveyed_table(surveys),
            rows=[asdict(surveyed) for surveyed in surveys],
        )
        print(f"written to {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
