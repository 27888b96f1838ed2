"""Replay a sample as :func:`acep.match` would run it, and measure work, matches, match points and bundles."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from acep.events.batch import Batch
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns
from acep.matches.records import Found
from acep.native.compiled import choose_engine
from acep.pattern.tree import Query
from acep.plan.choice import TALLIED
from acep.plan.compile import Plan
from acep.runtime.bounded_run import BoundedRun, cost_of
from acep.runtime.options import StreamOptions
from acep.tables.table_stream import TableStream
from acep.training.match_points import Ints, Partitions, points_of, recall_of

__all__ = ["MATCHES", "Fit", "Meter", "SampleRun", "bundles_in", "draws_text", "keys_in", "measure_fit", "replay"]

PART = 1024  # events that are pushed together
CHOOSING_TOUCHES = 1_000_000  # touches of a replay that chooses its output among the matches, as these take memory

MATCHES = 2_000_000
"""The most matches of a replay by the reference runtime: beyond that the sample is cut."""


@dataclass(frozen=True)
class SampleRun:
    """One replay of a sample: its ``events``, ``touches``, ``matches``, match ``points`` and ``bundles``, the ``keys``
    with a match, and whether the result is ``exact``. ``draws``: the windows that have a match point, counted from the
    beginning of each bundle (:func:`draws_in`). ``seconds``: of processor time. ``at``: partition, time and bundle of
    each match point, int64[n, 3]."""

    events: int
    touches: int
    matches: int
    points: int
    bundles: int
    draws: int
    keys: int
    exact: bool
    seconds: float = field(compare=False, default=0.0)
    at: Ints = field(repr=False, compare=False, default_factory=lambda: np.zeros((0, 3), np.int64))

    @property
    def work(self) -> float:
        """Return the touches of an event, on average."""
        return self.touches / self.events if self.events else 0.0

    def draws_of(self, kind: str) -> int:
        """Return how many draws a recall is made of; ``kind``: that of match ``"points"`` or ``"bundles"``."""
        return self.draws if kind == "points" else self.bundles

    def recall(self, exact: SampleRun) -> tuple[float, float]:
        """Return the shares of match points and of bundles of an ``exact`` replay that this one found."""
        return recall_of(self.at, exact.at)


@dataclass(frozen=True)
class Fit:
    """How many of the first ``events`` can be replayed within a bound; ``matches``: of all events (``None``: not all
    fit)."""

    events: int
    matches: int | None


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
    :func:`acep.match`, which finds the same, without a budget with less work.
    Matches are only counted where the engine can."""
    started = time.process_time()
    stream = _stream(table, query, columns, TALLIED, options)
    assert stream.stream is not None
    points_by_part, n_matches = [np.zeros((0, 3), np.int64)], 0
    batch = stream.batch(table)
    parts = [*batch.parts(PART)]
    for number in range(len(parts) + 1):
        (matches,) = stream.stream.push(parts[number]) if number < len(parts) else stream.stream.finish()
        tallied = stream.stream.take_counted(0)
        if isinstance(tallied, Counted):
            points_by_part.append(points_of(tallied, partitions))
        elif len(matches):
            points_by_part.append(_points(matches, partitions))
            n_matches += len(matches)
    seconds, counts = time.process_time() - started, stream.stream.counts
    meter.spent += cost_of(counts)
    if _is_merged(stream.plans[0], stream.engine) and counts.whole:
        n_matches = _count(table, query, columns, stream.engine)
    points = np.unique(np.concatenate(points_by_part), axis=0)
    return SampleRun(
        counts.events, counts.touches, n_matches or counts.matches, len(points), bundles_in(points),
        draws_in(points, window_ticks(stream.plans[0], batch)), keys_in(points), counts.whole,
        seconds, points,
    )  # fmt: skip


def measure_fit(
    table: pa.Table,
    query: Query,
    columns: Mapping[str, Any],
    meter: Meter,
    max_touches: int,
    engine: str = "auto",
    seconds: float | None = None,
) -> Fit:
    """Return how many of the first events can be replayed exactly within ``max_touches``, and on the reference runtime
    within :data:`MATCHES` matches, which it makes; within ``seconds`` of processor time, if the query chooses among its
    matches: to choose may take longer than to match."""
    if not table.num_rows:
        return Fit(0, 0)
    started = time.process_time()
    plain = _stream(table, query, columns, TALLIED, {"engine": engine})
    plan = plain.plans[0]
    is_made = plan.sources or choose_engine(plan.finer or plan, engine).engine == "reference"
    limit = min(max_touches, CHOOSING_TOUCHES) if plan.chooses else max_touches
    run = BoundedRun(plan, limit, MATCHES if is_made else math.inf, TALLIED, engine)
    n_matches = 0
    for matches in run.parts(plain.batch(table)):
        n_matches += len(matches)
        run.stream.take_counted(0)  # which keeps it from growing
        if plan.chooses and seconds is not None and time.process_time() - started > seconds and not run.is_whole:
            break
    counts = run.stream.counts
    meter.spent += cost_of(counts)
    if not run.is_whole:
        return Fit(run.n_events, None)
    if _is_merged(plan, engine):
        return Fit(run.n_events, _count(table, query, columns, engine))
    return Fit(run.n_events, n_matches or counts.matches)


def _is_merged(plan: Plan, engine: str) -> bool:
    """Return whether the partial matches of a plan are merged; of its matches then only the points are told."""
    return not plan.sources and choose_engine(plan.finer or plan, engine).base == "merged"


def _count(table: pa.Table, query: Query, columns: Mapping[str, Any], engine: str) -> int:
    """Return the number of matches of a query whose partial matches are merged, by the engine that counts them."""
    stream = _stream(table, query, columns, "count", {"engine": engine})
    assert stream.stream is not None
    stream.stream.push(stream.batch(table))
    stream.stream.finish()
    number = stream.stream.take_counted(0)
    assert isinstance(number, int)
    return number


def window_ticks(plan: Plan, batch: Batch) -> int | None:
    """Return the window of a plan in ticks; one of n events lasts as long as n events of the batch on average.
    ``None``: there is none."""
    span = plan.window.span
    if span is None or not plan.window.counted:
        return span
    return int(span * (batch.ts[-1] - batch.ts[0])) // len(batch) if len(batch) else 0


def draws_in(points: Ints, window: int | None) -> int:
    """Return the number of windows that have a match point, counted from the beginning of each bundle. What is found in
    one of them says little of the next one, so that each is a draw of its own. Without a ``window`` each bundle is one.

    >>> points = np.array([[0, 5, 5], [0, 7, 5], [0, 12, 5], [1, 5, 5]])
    >>> draws_in(points, 5), draws_in(points, None)
    (3, 2)
    """
    if window is None:
        return bundles_in(points)
    number = (points[:, 1] - points[:, 2]) // max(window, 1)
    return len(np.unique(np.column_stack([points[:, 0], points[:, 2], number]), axis=0))


def draws_text(number: int, kind: str) -> str:
    """Return a number of draws in words.

    >>> draws_text(1, "points"), draws_text(3, "bundles")
    ('1 window with a match', '3 match bundles')
    """
    if kind == "points":
        return f"{number:,} window{'' if number == 1 else 's'} with a match"
    return f"{number:,} match bundle{'' if number == 1 else 's'}"


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
    if stream.stream is not None:
        stream.stream.ignore_future()  # so that batches of any size need no more
    return stream


def _points(matches: Sequence[Found], partitions: Partitions) -> Ints:
    if isinstance(matches, FoundColumns):
        return points_of(matches, partitions)
    rows = {(match.key, match.end, match.bundle): None for match in matches}
    numbers_of = partitions.numbers
    numbers = [(numbers_of.setdefault(key, len(numbers_of)) if key else 0, end, bundle) for key, end, bundle in rows]
    return np.array(numbers, np.int64).reshape(-1, 3)
