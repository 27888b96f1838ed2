"""Mark on a worker the rows that carry the newest time of a stream, and counts of events without a use.

A count travels as the number of a bucket that there is not: ``place.first_count + place.partitions * value``, which the
first partition gets. The value is twice the count, and one more for a count of events that came late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from acep.spark.job import SentJob
from acep.spark.newest_time import NEVER
from acep.spark.workers.frozen_objects import run_task
from acep.spark.workers.state_place import StatePlace, context_of_task
from acep.streaming.times import first_open_tick, watermark_of

__all__ = ["NEWEST", "count_in", "mark_rows", "mark_rows_before"]

NEWEST: Final = 1
"""The bit of a row that is announced to all partitions; the bits above it are the value of a count."""

Integers = npt.NDArray[np.int64]


def mark_rows(job: SentJob, place: StatePlace, parts: Iterable[Sequence[Integers]]) -> Iterator[Integers]:
    """Yield the marks of the rows of a task; each part has their times, in ticks, and the numbers of buckets in which
    each is an event without a use."""
    yield from run_task(_mark_rows, job, place, parts)


def _mark_rows(job: SentJob, place: StatePlace, parts: Iterable[Sequence[Integers]]) -> Iterator[Integers]:
    context = context_of_task(job, place)
    watermark = watermark_of(context.versions.greatest_before(context.batch), place.delay_ms, job.tick_ms)
    final = first_open_tick(watermark, job.tick_ms)
    yield from mark_rows_before(final, parts, (2**31 - 1 - place.first_count) // (2 * place.partitions) - 1)


def mark_rows_before(final: int | None, parts: Iterable[Sequence[Integers]], max_count: int) -> Iterator[Integers]:
    """Yield the marks of rows; those before the tick ``final`` are late. A row carries at most ``max_count``.

    >>> parts = [(np.array([5, 7, 6, 2]), np.array([1, 0, 1, 1]))]
    >>> [marks.tolist() for marks in mark_rows_before(4, parts, 100)]
    [[0, 1, 8, 6]]
    """
    newest = NEVER
    for ticks, weights in parts:
        marks = np.zeros(len(ticks), np.int64)
        if len(ticks) and int(ticks.max()) > newest:
            newest = int(ticks.max())
            marks[int(ticks.argmax())] |= NEWEST
        is_late = np.zeros(len(ticks), bool) if final is None else ticks < final
        for kind, is_of_kind in enumerate((~is_late, is_late)):
            rows = np.flatnonzero((weights > 0) & is_of_kind)
            rows = rows[np.argsort(-ticks[rows], kind="stable")]  # the time of the newest one counts, too
            n_events = int(weights[rows].sum())
            for row, first in zip(rows, range(0, n_events, max_count), strict=False):
                marks[row] |= (2 * min(max_count, n_events - first) + kind) << 1
        yield marks


def count_in(number: int, place: StatePlace) -> tuple[int, bool]:
    """Return the count that a number of no bucket carries, and whether it is one of events that came late.

    >>> count_in(8 + 2 * 7, StatePlace(None, 1, 0, 2, first_count=8))
    (3, True)
    """
    value = (number - place.first_count) // place.partitions
    return value >> 1, bool(value & 1)
