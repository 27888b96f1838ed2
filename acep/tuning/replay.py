"""Replay a sample as :func:`acep.match` would run it, and measure work, matches, match points and bundles."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from acep.budget import Budget
from acep.matches.found_columns import FoundColumns
from acep.matches.records import Found
from acep.native.compiled import chosen
from acep.pattern.tree import Query
from acep.runtime.options import StreamOptions
from acep.runtime.table_stream import TableStream
from acep.training.match_points import Ints, Partitions, points_of, recall_of

__all__ = ["CHOSEN", "MATCHES", "Meter", "SampleRun", "bundles_in", "keys_in", "replay", "replayed"]

PART = 1024  # events between two looks at the work
MATCHES = 2_000_000
"""The most matches of a replay: beyond that the sample is cut."""

CHOSEN = 200_000
"""The most touches of a replay whose output is chosen among the matches: choosing may take longer than matching."""

SLOWER = 40  # how much slower the reference runtime chooses
BURST = 16  # how many times the mean work of the bound a part of the sample may need


@dataclass(frozen=True)
class SampleRun:
    """One replay of a sample: its ``events``, ``touches``, ``matches``, match ``points`` and ``bundles``, the ``keys``
    with a match, whether the result is ``exact``, and the ``longest`` match from its first to its last event, in ticks.
    ``at``: partition, time and bundle of each match point, int64[n, 3]."""

    events: int
    touches: int
    matches: int
    points: int
    bundles: int
    keys: int
    exact: bool
    longest: int
    seconds: float = field(compare=False, default=0.0)
    at: Ints = field(repr=False, compare=False, default_factory=lambda: np.zeros((0, 3), np.int64))

    @property
    def work(self) -> float:
        """Return the touches of an event, on average."""
        return self.touches / self.events if self.events else 0.0

    def recall(self, exact: SampleRun) -> tuple[float, float]:
        """Return the shares of match points and of bundles of an ``exact`` replay that this one found."""
        return recall_of(self.at, exact.at)


@dataclass
class Meter:
    """The touches that all replays together may take, and those that they took; ``cut`` says what was left out."""

    limit: int
    spent: int = 0
    cut: list[str] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Return the touches that are left."""
        return max(0, self.limit - self.spent)

    def affords(self, touches: float, what: str) -> bool:
        """Return whether so much is left; if not, note that ``what`` was left out."""
        if touches <= self.left:
            return True
        note = f"{what}: not measured, for want of work ({touches:,.0f} touches, of {self.left:,} that are left)"
        if note not in self.cut:
            self.cut.append(note)
        return False


def replay(
    table: pa.Table, query: Query, columns: Mapping[str, Any], partitions: Partitions, meter: Meter, **options: Any
) -> SampleRun:
    """Replay a table; ``options`` are ``budget``, ``policy``, ``seed``, ``history`` and ``engine`` of
    :func:`acep.match`, which finds the same."""
    started = time.perf_counter()
    stream = _stream(table, query, columns, "matches", options)
    assert stream.stream is not None
    at, matches, longest = [np.zeros((0, 3), np.int64)], 0, 0
    batch = stream.batch(table)
    parts = [*batch.parts(PART)]
    for number in range(len(parts) + 1):
        (found,) = stream.stream.push(parts[number]) if number < len(parts) else stream.stream.finish()
        if len(found):
            at.append(_points(found, partitions))
            matches += len(found)
            longest = max(longest, _longest(found))
    counts = stream.stream.counts
    meter.spent += counts.touches
    every = np.unique(np.concatenate(at), axis=0)
    return SampleRun(
        counts.events, counts.touches, matches, len(every), bundles_in(every), keys_in(every), counts.shed == 0,
        longest, time.perf_counter() - started, every,
    )  # fmt: skip


def replayed(
    table: pa.Table, query: Query, columns: Mapping[str, Any], meter: Meter, most: int, engine: str = "auto"
) -> int:
    """Return how many of the first events can be replayed exactly within ``most`` touches and :data:`MATCHES` matches;
    within :data:`CHOSEN` touches (fewer on the reference runtime), if the query chooses among its matches.

    Matches are not made, so that there may be any number of them.
    """
    if not table.num_rows:
        return 0
    plain = _stream(table, query, columns, "bundles", {"engine": engine})
    plan = plain.plans[0]
    native = not plan.sources and chosen(plan.finer or plan, engine, "bundles").engine != "reference"
    if plan.chooses:
        most = min(most, CHOSEN if native else CHOSEN // SLOWER)
    stream, size = plain, 1
    if native:
        budget = Budget(work=max(BURST * most / table.num_rows, 1.0), estimate=0)
        stream = _stream(table, query, columns, "bundles", {"engine": engine, "budget": budget, "policy": "newest"})
        size = PART
    assert stream.stream is not None
    batch, events, made = stream.batch(table), 0, 0
    for part in batch.parts(size):
        (found,) = stream.stream.push(part)
        made += len(found)
        stream.stream.counted(0)
        counts = stream.stream.counts
        if counts.shed or counts.touches > most or max(made, counts.matches) > MATCHES:
            break
        events += len(part)
    meter.spent += stream.stream.counts.touches
    return events


def bundles_in(points: Ints) -> int:
    """Return the number of bundles of match points.

    >>> bundles_in(np.array([[0, 5, 5], [0, 6, 5], [1, 5, 5]]))
    2
    """
    return len(np.unique(points[:, [0, 2]], axis=0))


def keys_in(points: Ints) -> int:
    """Return the number of partitions of match points."""
    return len(np.unique(points[:, 0]))


def _stream(
    table: pa.Table, query: Query, columns: Mapping[str, Any], output: str, options: Mapping[str, Any]
) -> TableStream:
    stream = TableStream(query, StreamOptions(**columns, **options))
    stream.prepare(table.schema, output)
    return stream


def _points(found: Sequence[Found], partitions: Partitions) -> Ints:
    if isinstance(found, FoundColumns):
        return points_of(found, partitions)
    rows = {(one.key, one.end, one.bundle): None for one in found}
    known = partitions.known
    numbers = [(known.setdefault(key, len(known)) if key else 0, end, bundle) for key, end, bundle in rows]
    return np.array(numbers, np.int64).reshape(-1, 3)


def _longest(found: Sequence[Found]) -> int:
    if isinstance(found, FoundColumns):
        return int((found.end - found.start).max())
    return max(one.end - one.start for one in found)
