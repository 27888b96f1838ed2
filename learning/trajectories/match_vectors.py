"""Match vectors: the features by which partial matches count as similar (docs/explanation/best_effort.md).

A vector is one dense integer of state, error level, bin of the remaining window, bin of the time since the last event,
and feature bin; the last part changes fastest. Times are ticks, or positions where the window counts events.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["LEVELS", "Bools", "Floats", "Grid", "Ints", "Parts", "Passage"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEVELS = 5
"""Number of back-off levels: all parts, then without since, remaining, error and feature, one more each."""

VECTOR_LIMIT = 2**31
"""Exclusive limit on the number of vectors."""

NEVER = np.iinfo(np.int64).max


class Parts(NamedTuple):
    """The parts of vectors, int64 arrays of one shape. ``remaining`` and ``since`` are bins, ``error`` is a level."""

    state: Ints
    error: Ints
    remaining: Ints
    since: Ints
    feature: Ints


@dataclass(frozen=True)
class Grid:
    """The match vectors of a query, ``vectors`` of them.

    There are ``states`` states, ``errors`` error levels of ``step`` scaled errors (of the engine) each, a window of
    ``span`` (``None``: none) in ``windows`` bins, ``waits`` bins of the time since the last event, and ``features``
    bins of a register feature. ``ValueError`` where one is not positive (``span``: is negative), or there are too many.

    >>> grid = Grid(states=3, errors=2, span=100)
    >>> int(grid.number(state=2, error=1, start=10, made_at=30, now=40, feature=0))
    182
    >>> [int(part) for part in grid.parts(182)]
    [2, 1, 5, 2, 0]
    """

    states: int
    errors: int
    span: int | None
    windows: int = 8
    waits: int = 4
    features: int = 1
    step: int = 1

    def __post_init__(self) -> None:
        sizes = (self.states, self.errors, self.windows, self.waits, self.features, self.step)
        if min(sizes) < 1 or (self.span is not None and not 0 <= self.span < NEVER // 4):
            raise ValueError(f"no grid of match vectors: {self}")
        if self.vectors >= VECTOR_LIMIT:
            raise ValueError(f"{self.vectors:,} match vectors are too many (at most {VECTOR_LIMIT - 1:,})")

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """Return how many values each part has, in the order of :class:`Parts`."""
        return (self.states, self.errors, self.windows, self.waits, self.features)

    @cached_property
    def vectors(self) -> int:
        """Return the number of vectors."""
        return self.states * self.errors * self.windows * self.waits * self.features

    @cached_property
    def ages(self) -> Ints:
        """Return the ages (time since the start) at which the remaining bin falls by one, rising: int64[windows - 1].

        They are the least ages with ``(span - age) * windows // (span + 1)`` below ``windows - 1``, and so on.

        >>> Grid(1, 1, span=15).ages.tolist()
        [2, 4, 6, 8, 10, 12, 14]
        """
        if self.span is None:
            return np.zeros(0, dtype=np.int64)
        length = self.span + 1
        return np.array(
            [length + (-remaining * length // self.windows) for remaining in range(self.windows - 1, 0, -1)], np.int64
        )

    @cached_property
    def bounds(self) -> Ints:
        """Return the times since the last event at which the since bin increases by one, rising: int64[waits - 1]. For
        four bins these are a 64th, a 16th and a fourth of the window, rounded down."""
        if self.span is None:
            return np.zeros(0, dtype=np.int64)
        return np.array([self.span // 4**n for n in range(self.waits - 1, 0, -1)], np.int64)

    def remaining(self, start: ArrayLike, now: ArrayLike) -> Ints:
        """Return the remaining bin: the highest before the start, and 0 after the end of the window."""
        if self.span is None:
            return np.zeros(np.broadcast(start, now).shape, dtype=np.int64)
        age = np.asarray(now, np.int64) - np.asarray(start, np.int64)
        return self.windows - 1 - np.searchsorted(self.ages, age, side="right")

    def since_bins(self, made_at: ArrayLike, now: ArrayLike) -> Ints:
        """Return the bin of the time since the last event."""
        if self.span is None:
            return np.zeros(np.broadcast(made_at, now).shape, dtype=np.int64)
        age = np.asarray(now, np.int64) - np.asarray(made_at, np.int64)
        return np.asarray(np.searchsorted(self.bounds, age, side="right"), np.int64)

    def number(
        self,
        state: ArrayLike,
        error: ArrayLike,
        start: ArrayLike,
        made_at: ArrayLike,
        now: ArrayLike,
        feature: ArrayLike = 0,
    ) -> Ints:
        """Return the vectors of partial matches at a time ``now``; errors are levels, capped at the last one.

        Arguments broadcast. ``ValueError`` for a state or feature outside the grid, or a negative error.
        """
        state, error, feature = (np.asarray(part, np.int64) for part in (state, error, feature))
        _check_range(state, self.states, "state")
        _check_range(feature, self.features, "feature")
        _check_range(error, NEVER, "error level")
        error = np.minimum(error, self.errors - 1)
        return self.join_parts(Parts(state, error, self.remaining(start, now), self.since_bins(made_at, now), feature))

    def _time(self, start: Ints, made_at: Ints, now: Ints) -> Ints:
        """Return what the bins of time add to a vector."""
        return (self.remaining(start, now) * self.waits + self.since_bins(made_at, now)) * self.features

    def join_parts(self, parts: Parts) -> Ints:
        """Return the vectors with these parts, which must be within the grid."""
        number: Any = parts.state
        for size, part in zip(self.shape[1:], parts[1:], strict=True):
            number = number * size + part
        return np.asarray(number, np.int64)

    def parts(self, vectors: ArrayLike) -> Parts:
        """Return the parts of vectors; ``ValueError`` for a number that is no vector."""
        quotient = np.asarray(vectors, np.int64)
        _check_range(quotient, self.vectors, "vector")
        parts = []
        for size in reversed(self.shape[1:]):
            parts.append(quotient % size)
            quotient = quotient // size
        return Parts(quotient, *reversed(parts))

    def coarse(self, vectors: ArrayLike, level: int) -> Ints:
        """Return coarser vectors (back-off), for use where a vector has too little data.

        Level 0 changes nothing, 1 merges the since bins, 2 also the remaining bins, 3 also the error levels, and 4 also
        the features, which leaves the state. Merged vectors have the same number, the least of them. ``ValueError`` for
        another level.

        >>> grid = Grid(states=3, errors=2, span=100)
        >>> [int(grid.coarse(182, level)) for level in range(LEVELS)]
        [182, 180, 160, 128, 128]
        """
        if not 0 <= level < LEVELS:
            raise ValueError(f"levels of back-off are 0 to {LEVELS - 1}, not {level}")
        state, error, remaining, since, feature = self.parts(vectors)
        zero = np.zeros_like(state)
        parts = (zero if level > 3 else feature, zero if level > 0 else since)
        return self.join_parts(
            Parts(state, zero if level > 2 else error, zero if level > 1 else remaining, parts[1], parts[0])
        )

    def passage(
        self,
        state: Ints,
        error: Ints,
        start: Ints,
        made_at: Ints,
        until: Ints,
        feature: Ints,
    ) -> Passage:
        """Return the vectors that partial matches pass from ``made_at`` to ``until``, both included: int64[n] each.

        A partial match is at a vector at a time when an event at that time would find it there.

        >>> grid, one = Grid(states=3, errors=2, span=15), np.array([1])
        >>> stays = grid.passage(state=one, error=one, start=one, made_at=one + 2, until=one + 5, feature=one * 0)
        >>> grid.parts(stays.vector).remaining.tolist(), grid.parts(stays.vector).since.tolist()
        ([6, 5, 5], [2, 2, 3])
        >>> stays.begin.tolist(), stays.end.tolist()
        ([3, 5, 6], [5, 6, 6])
        """
        changes = np.concatenate([made_at[:, None], start[:, None] + self.ages, made_at[:, None] + self.bounds], axis=1)
        late = changes[:, 1:]
        late[(late <= made_at[:, None]) | (late > until[:, None])] = NEVER
        late.sort(axis=1)
        is_change = changes != NEVER
        is_change[:, 1:] &= late != changes[:, :-1]
        stays = np.count_nonzero(is_change, axis=1)
        row = np.repeat(np.arange(len(made_at)), stays)
        begin = changes[is_change]
        first = np.append(0, np.cumsum(stays))
        end = np.empty_like(begin)
        end[:-1] = begin[1:]
        end[first[1:] - 1] = np.maximum(until, made_at)
        # The part of the vector without time bins is the same for all stays of a partial match.
        now = np.zeros(1, np.int64)
        without = self.number(state, error, now, now, now, feature) - self._time(now, now, now)
        number = without[row] + self._time(start[row], made_at[row], begin)
        changes[~is_change] = NEVER
        return Passage(row, number, begin, end, first, changes)


@dataclass(frozen=True)
class Passage:
    """Stays of partial matches at vectors: those of row ``i`` are ``first[i]`` to ``first[i + 1]`` - 1, in time order.

    ``row`` is the partial match of a stay, ``vector`` its vector from ``begin`` to ``end``, when it moves on or ends.
    ``first`` has one entry more than there are rows. ``changes`` has the times of change by row (columns in any order,
    unused ones very late).
    """

    row: Ints
    vector: Ints
    begin: Ints
    end: Ints
    first: Ints
    changes: Ints

    def stay_at(self, rows: Ints, times: Ints) -> Ints:
        """Return the stays of rows at these times; times before the first stay give the first stay."""
        reached = np.count_nonzero(self.changes[rows] <= times[:, None], axis=1)
        return np.asarray(self.first[rows] + np.maximum(reached, 1) - 1, np.int64)


def _check_range(values: Ints, size: int, name: str) -> None:
    if values.size and not 0 <= values.min() <= values.max() < size:
        raise ValueError(f"a {name} is not from 0 to {size - 1}")
