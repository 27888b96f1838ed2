"""Selection of the sampling units that are sent to the workers under overload, as plain data without Spark.

A *sampling unit* is eight windows of one partition key. Units of different keys begin at different times. A hash of
the key, the unit and the seed is compared with a threshold, which depends on event time. If the threshold falls, units
are cut short; if it rises, units that begin later are admitted. A row is admitted if the hash is below all thresholds
from the beginning of its unit to its own time. Changes of the threshold in the last window of the unit do not count.
So each gap of a key is at least one window long, no partial match can survive it, and no false match arises
(docs/explanation/spark_overload.md). The admission of a row does not depend on its micro-batch.

Keys of high utility have a greater chance: keys are hashed to cells, and the threshold of favoured cells is 64 times
as high.

The events and partial matches of one plan under a budget are admitted in acep/native/src/shedding/admission.hpp.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acep.pattern.tree import Strategy
from acep.plan.compile import Plan

__all__ = [
    "ALL",
    "CELLS",
    "SHIFT",
    "UNIT",
    "Pieces",
    "UnitAdmission",
    "chances_of",
    "share_for_recall",
    "span_of",
    "why_not_shed_early",
]

ALL = 1 << 32
"""The threshold above all hashes, which admits every row."""
UNIT = 8  # windows
MAX_THRESHOLDS = 48  # thresholds that are stored; from then on the threshold may only fall, which merges older ones
CELLS = 256
"""Number of cells into which keys are hashed."""
SHIFT = 6
"""Number of bits by which the threshold of favoured cells is shifted to the left."""

Pieces = list[tuple[int, list[tuple[int, tuple[int, ...]]]]]
"""The result of :meth:`UnitAdmission.pieces`."""


@dataclass(frozen=True)
class UnitAdmission:
    """Thresholds by event time, in ticks. ``thresholds[i]`` holds for times after ``since[i]``, up to ``since[i + 1]``;
    the first also holds for all earlier times. ``favoured[j]`` are the favoured cells from threshold number
    ``begins[j]`` on; there are at most two such sets. ``span`` is the longest window and ``delay`` that of the
    watermark, both in ticks. ``seed`` is part of the hash.

    >>> UnitAdmission(10).admits(hashed=5, begin=0, tick=3)
    True
    """

    span: int
    since: tuple[int, ...] = (-(2**62),)
    thresholds: tuple[int, ...] = (ALL,)
    favoured: tuple[tuple[int, ...], ...] = ((),)
    begins: tuple[int, ...] = (0,)
    seed: int = 0
    delay: int = 0

    @property
    def length(self) -> int:
        """Return the length of a sampling unit in ticks."""
        return UNIT * (self.span + 1)

    @property
    def newest(self) -> int:
        """Return the newest threshold."""
        return self.thresholds[-1]

    @property
    def admits_all(self) -> bool:
        """Return whether every row is admitted."""
        return min(self.thresholds) == ALL

    def admits(self, *, hashed: int, begin: int, tick: int, cell: int = 0) -> bool:
        """Return whether a row is admitted whose unit has this hash (below :data:`ALL`) and begins at ``begin``."""
        indices = range(self._threshold_index(begin), self._threshold_index(self.last_cut(begin, tick)) + 1)
        return all(
            hashed < self.thresholds[i] << (SHIFT if cell in self.favoured[self._table_index(i)] else 0)
            for i in indices
        )

    def admit_rows(
        self,
        hashes: NDArray[np.int64],
        begins: NDArray[np.int64],
        ticks: NDArray[np.int64],
        cells: NDArray[np.int64] | None = None,
    ) -> NDArray[np.bool_]:
        """Return which rows are admitted: :meth:`admits` for arrays of the shape ``(rows,)``; without ``cells`` no cell
        is favoured.

        >>> UnitAdmission(10, thresholds=(7,)).admit_rows(*np.array([[5, 9], [0, 0], [3, 3]])).tolist()
        [True, False]
        """
        since = np.array(self.since)
        # The end of a unit may exceed 64 bits.
        room = np.minimum(self.length - self.span - 1, np.iinfo(np.int64).max - np.maximum(begins, 0))
        lasts = np.minimum(ticks, begins + room)
        first_indices, last_indices = (
            np.maximum(np.searchsorted(since, times, "left") - 1, 0) for times in (begins, lasts)
        )
        admitted = np.ones(len(hashes), bool)
        for i in range(int(first_indices.min(initial=0)), int(last_indices.max(initial=-1)) + 1):
            thresholds: Any = self.thresholds[i]
            if cells is not None and (favoured := self.favoured[self._table_index(i)]):
                shifts = np.zeros(CELLS, np.int64)
                shifts[list(favoured)] = SHIFT
                thresholds = thresholds << shifts[cells]
            admitted &= (hashes < thresholds) | (i < first_indices) | (i > last_indices)
        return admitted

    def last_cut(self, begin: int, tick: int) -> int:
        """Return the last time at which thresholds affect a row."""
        return min(tick, begin + self.length - self.span - 1)

    def chances(self, tick: int) -> NDArray[np.float64]:
        """Return the probability that a row at ``tick`` is admitted, by cell: the mean over all beginnings of its unit.

        The result is an array of shape ``(CELLS,)``.
        """
        first, reach = tick - self.length + 1, self.length - self.span - 1
        # The thresholds that affect a row change only as the beginning of its unit passes one of these times.
        cuts = {cut for since in self.since for cut in (since, since - reach) if first <= cut < tick}
        edges = [first, *sorted(cut + 1 for cut in cuts if cut + 1 > first), tick + 1]
        chances_by_threshold = np.stack(
            [chances_of(threshold, self.favoured[self._table_index(i)]) for i, threshold in enumerate(self.thresholds)]
        )
        sums = np.zeros(CELLS)
        for begin, end in pairwise(edges):
            sums += (end - begin) * chances_by_threshold[
                self._threshold_index(begin) : self._threshold_index(self.last_cut(begin, tick)) + 1
            ].min(axis=0)
        return sums / self.length

    def with_threshold(
        self, seen: int | None, threshold: int, favoured: tuple[int, ...] | None = None
    ) -> UnitAdmission:
        """Return the thresholds with a new one for times after ``seen``, the greatest time of all rows so far.

        Rows older than ``seen - delay`` are late; thresholds that affect only late rows are dropped. ``favoured`` are
        the favoured cells from now on; they may not change while :attr:`changing` is true.
        """
        if seen is None:  # there was no row yet
            return replace(self, since=self.since[:1], thresholds=(threshold,))
        if threshold > self.newest and len(self.since) >= MAX_THRESHOLDS:
            threshold = self.newest
        tables, favoured_sets = [self._table_index(i) for i in range(len(self.since))], list(self.favoured)
        since, thresholds = list(self.since), list(self.thresholds)
        if since[-1] >= seen and len(since) > 1:  # there was no row since the last threshold
            since.pop()
            thresholds.pop()
            tables.pop()
        if favoured is not None and favoured != favoured_sets[-1]:
            favoured_sets.append(favoured)
        since.append(max(seen, since[-1] + 1))
        thresholds.append(threshold)
        tables.append(len(favoured_sets) - 1)
        first, last = self._oldest_index(since, seen - self.length), self._oldest_index(since, seen)
        # For future rows, an old threshold acts like a lower one that follows it.
        for i in reversed(range(first, last)):
            if tables[i] == tables[i + 1]:
                thresholds[i] = min(thresholds[i], thresholds[i + 1])
        kept_indices = [
            i
            for i in range(first, len(since))
            if i == first or (thresholds[i], tables[i]) != (thresholds[i - 1], tables[i - 1])
        ]
        used_tables = sorted({tables[i] for i in kept_indices})
        return replace(
            self,
            since=tuple(since[i] for i in kept_indices),
            thresholds=tuple(thresholds[i] for i in kept_indices),
            favoured=tuple(favoured_sets[table] for table in used_tables),
            begins=tuple(next(n for n, i in enumerate(kept_indices) if tables[i] == table) for table in used_tables),
        )

    @property
    def changing(self) -> bool:
        """Return whether future rows may be affected by two different sets of favoured cells."""
        return len(self.favoured) > 1

    def _table_index(self, i: int) -> int:
        """Return the number of the set of favoured cells that belongs to a threshold."""
        return sum(begin <= i for begin in self.begins) - 1

    def _oldest_index(self, since: Sequence[int], seen: int) -> int:
        """Return the number of the oldest threshold that can be the last one to affect a row that is not late."""
        return max(0, bisect_left(since, seen - self.delay - self.span - 1) - 1)

    def _threshold_index(self, tick: int) -> int:
        return max(0, bisect_left(self.since, tick) - 1)

    def pieces(self, seen: int | None) -> Pieces:
        """Return the thresholds by :meth:`last_cut` and by the beginning of a unit, for rows that are not late.

        The result has pairs of a bound on ``last_cut`` and the steps that hold beyond it. A step is a pair of a bound
        on the beginning and the thresholds beyond it, one for each of :attr:`favoured`. The greatest bounds come first.
        If no bound is exceeded, the last pair holds.
        """
        oldest = 0 if seen is None else self._oldest_index(self.since, seen)
        pieces: Pieces = []
        for last in range(len(self.since) - 1, oldest - 1, -1):
            lowest_thresholds, steps = [ALL] * len(self.favoured), list[tuple[int, tuple[int, ...]]]()
            for first in range(last, -1, -1):
                table = self._table_index(first)
                lowest_thresholds[table] = min(lowest_thresholds[table], self.thresholds[first])
                if steps and steps[-1][1] == tuple(lowest_thresholds):
                    steps.pop()
                steps.append((self.since[first], tuple(lowest_thresholds)))
            pieces.append((self.since[last], steps))
        return pieces

    def dump(self) -> dict[str, Any]:
        """Return JSON-like data."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> UnitAdmission:
        """Read the data of ``dump``. Raise :class:`KeyError`, :class:`TypeError` or :class:`ValueError` if invalid."""
        since, thresholds = (tuple(int(number) for number in data[name]) for name in ("since", "thresholds"))
        # Earlier development versions had no favoured cells.
        begins = tuple(int(number) for number in data.get("begins", [0]))
        favoured = tuple(tuple(int(cell) for cell in cells) for cells in data.get("favoured", [[]]))
        fits = len(since) == len(thresholds) > 0 and list(since) == sorted(set(since))
        fits = fits and len(favoured) == len(begins) <= 2 and begins[:1] == (0,) and begins[-1] < len(since)
        fits = fits and all(0 <= cell < CELLS for cells in favoured for cell in cells)
        if not fits or not all(0 <= threshold <= ALL for threshold in thresholds) or int(data["span"]) < 0:
            raise ValueError("thresholds")
        return cls(int(data["span"]), since, thresholds, favoured, begins, int(data["seed"]), int(data["delay"]))


def chances_of(threshold: int, favoured: Sequence[int]) -> NDArray[np.float64]:
    """Return the probability that a unit is below a threshold, by cell: an array of shape ``(CELLS,)``.

    >>> chances_of(ALL // 128, [0])[:2].tolist()
    [0.5, 0.0078125]
    """
    chances = np.full(CELLS, threshold / ALL)
    chances[list(favoured)] *= 1 << SHIFT
    return chances.clip(max=1)


def share_for_recall(recall: float) -> float:
    """Return the least share of the events with which at least so many of the match points are expected, if all keys
    have equal chances. A match that crosses from one sampling unit into the next needs both, and at most one match in
    :data:`UNIT` does.

    >>> round(share_for_recall(0.8), 3), share_for_recall(1.0)
    (0.819, 1.0)
    """
    crossing = 1 / UNIT
    return float((((1 - crossing) ** 2 + 4 * crossing * recall) ** 0.5 - (1 - crossing)) / (2 * crossing))


def why_not_shed_early(plans: Sequence[Plan], *, ids: bool) -> str:
    """Return why events of these plans cannot be shed before the shuffle, or "". ``ids``: there is a column of ids.

    Shedding must not change the matches among the remaining events, so that no false match arises.
    """
    for plan in plans:
        if not ids:
            return "without id= events are numbered, and all must be counted"
        if plan.sources:
            return "a composed query numbers the matches of its parts"
        if not plan.keys or plan.query.strategy is Strategy.STRICT_CONTIGUITY:
            return "a query without partition attributes sees the whole stream in one place"
        if plan.window.span is None or plan.window.counted:
            return "there is no window in time"
        if plan.chooses:
            return "matches are chosen among others"
        if any(negation.leading or negation.trailing for negation in plan.automaton.negations):
            return "a negation stands at the beginning or the end of a pattern"
    return ""


def span_of(plans: Sequence[Plan]) -> int:
    """Return the longest window of the plans, in ticks."""
    return max(plan.window.span or 0 for plan in plans)
