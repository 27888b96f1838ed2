"""Decide which sampling units of a stream travel to the workers, where there is no time for all: plain data, no Spark.

A *unit* is eight windows of one partition key. Units of different keys begin at different times. A hash of the key, the
unit and the seed is compared with a threshold, which is a function of event time: where it falls a unit is cut short,
where it rises units that begin later come in. A row is admitted if the hash is below every threshold from the beginning
of its unit to its own time, but for the last window of the unit, in which nothing is cut. So what is missing of a key
is always a whole window long or longer, no partial match can wait through it, and no match is invented
(docs/explanation/spark_overload.md). Whether a row is admitted does not depend on the micro-batch that brings it.

Keys that had more utility have a greater chance: keys fall into cells by a hash, and the threshold of cells that are
favoured is 64 times as high.
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

__all__ = ["ALL", "CELLS", "SHIFT", "UNIT", "Admission", "Pieces", "chances_of", "span_of", "why_not_before"]

ALL = 1 << 32
"""The threshold below which every hash is."""
UNIT = 8  # windows
MOST = 48  # thresholds that are kept; where there are more only falls are allowed, which make them fewer
CELLS = 256
"""Cells that keys fall into."""
SHIFT = 6
"""By so many bits the threshold of favoured cells is shifted to the left."""

Pieces = list[tuple[int, list[tuple[int, tuple[int, ...]]]]]
"""What :meth:`Admission.pieces` gives."""


@dataclass(frozen=True)
class Admission:
    """Thresholds by event time, in ticks: ``thresholds[i]`` holds for times after ``since[i]``, up to ``since[i + 1]``;
    the first also holds for all times before. ``favoured[j]`` are the cells that are favoured from the threshold
    ``begins[j]`` on; there are at most two. ``span`` is the longest window, and ``delay`` that of the watermark, in
    ticks; ``seed`` goes into the hash.

    >>> Admission(10).admits(hashed=5, begin=0, tick=3)
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
        """How many ticks a unit is long."""
        return UNIT * (self.span + 1)

    @property
    def now(self) -> int:
        """The threshold of the newest units."""
        return self.thresholds[-1]

    @property
    def whole(self) -> bool:
        """Whether every row is admitted."""
        return min(self.thresholds) == ALL

    def admits(self, *, hashed: int, begin: int, tick: int, cell: int = 0) -> bool:
        """Tell whether a row is admitted, whose unit has this hash (below :data:`ALL`) and begins at ``begin``."""
        bear = range(self._at(begin), self._at(self.last_cut(begin, tick)) + 1)
        return all(hashed < self.thresholds[i] << (SHIFT if cell in self.favoured[self._table(i)] else 0) for i in bear)

    def last_cut(self, begin: int, tick: int) -> int:
        """Give the time up to which thresholds bear on a row."""
        return min(tick, begin + self.length - self.span - 1)

    def chances(self, tick: int) -> NDArray[np.float64]:
        """Give the chance that a row at a time is admitted, by its cell: the mean over where its unit may begin.

        Returns an array of shape ``(CELLS,)``.
        """
        first, reach = tick - self.length + 1, self.length - self.span - 1
        # The thresholds that bear on a row change only where its unit begins after one of these.
        cuts = {one for since in self.since for one in (since, since - reach) if first <= one < tick}
        edges = [first, *sorted(one + 1 for one in cuts if one + 1 > first), tick + 1]
        under = np.stack([chances_of(one, self.favoured[self._table(i)]) for i, one in enumerate(self.thresholds)])
        sums = np.zeros(CELLS)
        for begin, end in pairwise(edges):
            sums += (end - begin) * under[self._at(begin) : self._at(self.last_cut(begin, tick)) + 1].min(axis=0)
        return sums / self.length

    def after(self, seen: int | None, threshold: int, favoured: tuple[int, ...] | None = None) -> Admission:
        """Give the thresholds with a new one for times after ``seen``, the greatest time of all rows so far.

        Rows that are older than ``seen - delay`` are late: what bears on no other row is left out. ``favoured``: the
        cells that are from now on; they may not change while they are :attr:`changing`.
        """
        if seen is None:  # no row has come
            return replace(self, since=self.since[:1], thresholds=(threshold,))
        if threshold > self.now and len(self.since) >= MOST:
            threshold = self.now
        tables, every = [self._table(i) for i in range(len(self.since))], list(self.favoured)
        since, thresholds = list(self.since), list(self.thresholds)
        if since[-1] >= seen and len(since) > 1:  # no row has come since
            since.pop()
            thresholds.pop()
            tables.pop()
        if favoured is not None and favoured != every[-1]:
            every.append(favoured)
        since.append(max(seen, since[-1] + 1))
        thresholds.append(threshold)
        tables.append(len(every) - 1)
        first, last = self._oldest(since, seen - self.length), self._oldest(since, seen)
        # For rows that may come, a threshold that is followed by a lower one has the effect of that.
        for i in reversed(range(first, last)):
            if tables[i] == tables[i + 1]:
                thresholds[i] = min(thresholds[i], thresholds[i + 1])
        kept = [
            i
            for i in range(first, len(since))
            if i == first or (thresholds[i], tables[i]) != (thresholds[i - 1], tables[i - 1])
        ]
        used = sorted({tables[i] for i in kept})
        return replace(
            self,
            since=tuple(since[i] for i in kept),
            thresholds=tuple(thresholds[i] for i in kept),
            favoured=tuple(every[table] for table in used),
            begins=tuple(next(n for n, i in enumerate(kept) if tables[i] == table) for table in used),
        )

    @property
    def changing(self) -> bool:
        """Whether other cells were favoured at a time that bears on some row that may come."""
        return len(self.favoured) > 1

    def _table(self, i: int) -> int:
        """Give the number of the favoured cells that go with a threshold."""
        return sum(begin <= i for begin in self.begins) - 1

    def _oldest(self, since: Sequence[int], seen: int) -> int:
        """Give the number of the oldest threshold that may be the last to bear on a row that is not late."""
        return max(0, bisect_left(since, seen - self.delay - self.span - 1) - 1)

    def _at(self, tick: int) -> int:
        return max(0, bisect_left(self.since, tick) - 1)

    def pieces(self, seen: int | None) -> Pieces:
        """Give the thresholds by :meth:`last_cut` and by the beginning of a unit, for rows that are not late.

        Pairs of a bound on the former and of what holds beyond it: pairs of a bound on the latter and of the thresholds
        beyond it, one for each of :attr:`favoured`. The greatest bounds come first. Where none of them is passed, the
        last pair holds.
        """
        oldest = 0 if seen is None else self._oldest(self.since, seen)
        found: Pieces = []
        for last in range(len(self.since) - 1, oldest - 1, -1):
            least, steps = [ALL] * len(self.favoured), list[tuple[int, tuple[int, ...]]]()
            for first in range(last, -1, -1):
                table = self._table(first)
                least[table] = min(least[table], self.thresholds[first])
                if steps and steps[-1][1] == tuple(least):
                    steps.pop()
                steps.append((self.since[first], tuple(least)))
            found.append((self.since[last], steps))
        return found

    def dump(self) -> dict[str, Any]:
        """As JSON-like data."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Admission:
        """Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for what is none."""
        since, thresholds = (tuple(int(one) for one in data[name]) for name in ("since", "thresholds"))
        # Earlier development versions favoured none.
        begins = tuple(int(one) for one in data.get("begins", [0]))
        favoured = tuple(tuple(int(cell) for cell in cells) for cells in data.get("favoured", [[]]))
        fits = len(since) == len(thresholds) > 0 and list(since) == sorted(set(since))
        fits = fits and len(favoured) == len(begins) <= 2 and begins[:1] == (0,) and begins[-1] < len(since)
        fits = fits and all(0 <= cell < CELLS for cells in favoured for cell in cells)
        if not fits or not all(0 <= one <= ALL for one in thresholds) or int(data["span"]) < 0:
            raise ValueError("thresholds")
        return cls(int(data["span"]), since, thresholds, favoured, begins, int(data["seed"]), int(data["delay"]))


def chances_of(threshold: int, favoured: Sequence[int]) -> NDArray[np.float64]:
    """Give the chance of a unit under a threshold, by its cell: an array of shape ``(CELLS,)``.

    >>> chances_of(ALL // 128, [0])[:2].tolist()
    [0.5, 0.0078125]
    """
    found = np.full(CELLS, threshold / ALL)
    found[list(favoured)] *= 1 << SHIFT
    return found.clip(max=1)


def why_not_before(plans: Sequence[Plan], *, ids: bool) -> str:
    """Say why events of these plans cannot be shed before they travel; "" if they can be. ``ids``: a column has ids.

    What is shed must leave the matches in the rest as they are, so that none is invented.
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
        if any(one.leading or one.trailing for one in plan.automaton.negations):
            return "a negation stands at the beginning or the end of a pattern"
    return ""


def span_of(plans: Sequence[Plan]) -> int:
    """Give the longest window of plans, in ticks."""
    return max(plan.window.span or 0 for plan in plans)
