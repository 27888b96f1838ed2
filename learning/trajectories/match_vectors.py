"""Match vectors: what two match nodes have in common that may end alike (docs/explanation/best_effort.md, "Match
vectors").

A vector is one dense integer: state, error level, bin of the window that remains, bin of the time since the last event,
feature bin; the last part changes fastest. Times are ticks, or positions where the window counts events.
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
"""How many grains of vectors there are: as they are, and without one more of since, remaining, error, feature."""

MOST = 2**31
"""There are fewer vectors than this."""

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
    """The vectors of a query, ``vectors`` of them.

    ``states`` states, ``errors`` error levels of ``step`` (in the engine's scaled errors) each, a window of ``span``
    (``None``: none) in ``windows`` bins, ``waits`` bins of the time since the last event, ``features`` bins of a number
    made from the registers. ``ValueError`` where one of them is not positive (``span``: negative), or all are too many.

    >>> grid = Grid(states=3, errors=2, span=100)
    >>> int(grid.number(state=2, error=1, start=10, made=30, now=40, feature=0))
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
        if self.vectors >= MOST:
            raise ValueError(f"{self.vectors:,} match vectors are too many (at most {MOST - 1:,})")

    @classmethod
    def of(
        cls,
        states: int,
        errors: int,
        span: int | None,
        *,
        windows: int = 8,
        waits: int = 4,
        features: int = 1,
        step: int = 1,
    ) -> Grid:
        """A grid without bins of time where there is no window."""
        if span is None:
            windows = waits = 1
        return cls(states, errors, span, windows, waits, features, step)

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """How many values each part has, in the order of :class:`Parts`."""
        return (self.states, self.errors, self.windows, self.waits, self.features)

    @cached_property
    def vectors(self) -> int:
        """How many vectors there are."""
        return self.states * self.errors * self.windows * self.waits * self.features

    @cached_property
    def ages(self) -> Ints:
        """The ages (time since the start) at which the remaining bin becomes one less, rising: int64[windows - 1].

        They are the least ages with ``(span - age) * windows // (span + 1)`` below ``windows - 1``, and so on.

        >>> Grid(1, 1, span=15).ages.tolist()
        [2, 4, 6, 8, 10, 12, 14]
        """
        if self.span is None:
            return np.zeros(0, dtype=np.int64)
        whole = self.span + 1
        return np.array([whole + (-left * whole // self.windows) for left in range(self.windows - 1, 0, -1)], np.int64)

    @cached_property
    def bounds(self) -> Ints:
        """The times since the last event at which the since bin becomes one more, rising: int64[waits - 1]; for four
        bins a 64th, a 16th and a fourth of the window, rounded down."""
        if self.span is None:
            return np.zeros(0, dtype=np.int64)
        return np.array([self.span // 4**n for n in range(self.waits - 1, 0, -1)], np.int64)

    def remaining(self, start: ArrayLike, now: ArrayLike) -> Ints:
        """The remaining bin; before the start it is the first, after the end of the window the last one, 0."""
        if self.span is None:
            return np.zeros(np.broadcast(start, now).shape, dtype=np.int64)
        age = np.asarray(now, np.int64) - np.asarray(start, np.int64)
        return self.windows - 1 - np.searchsorted(self.ages, age, side="right")

    def since(self, made: ArrayLike, now: ArrayLike) -> Ints:
        """The bin of the time since the last event."""
        if self.span is None:
            return np.zeros(np.broadcast(made, now).shape, dtype=np.int64)
        age = np.asarray(now, np.int64) - np.asarray(made, np.int64)
        return np.asarray(np.searchsorted(self.bounds, age, side="right"), np.int64)

    def number(
        self,
        state: ArrayLike,
        error: ArrayLike,
        start: ArrayLike,
        made: ArrayLike,
        now: ArrayLike,
        feature: ArrayLike = 0,
    ) -> Ints:
        """The vectors of nodes at a time ``now``; errors are levels, those above the last one are of the last one.

        Arguments broadcast. ``ValueError`` for a state or feature that is not of the grid, or a negative error.
        """
        state, error, feature = (np.asarray(part, np.int64) for part in (state, error, feature))
        _within(state, self.states, "state")
        _within(feature, self.features, "feature")
        _within(error, NEVER, "error level")
        return self.joined(
            Parts(
                state,
                np.minimum(error, self.errors - 1),
                self.remaining(start, now),
                self.since(made, now),
                feature,
            )
        )

    def _time(self, start: Ints, made: Ints, now: Ints) -> Ints:
        """What the bins of time add to a vector."""
        return (self.remaining(start, now) * self.waits + self.since(made, now)) * self.features

    def joined(self, parts: Parts) -> Ints:
        """The vectors with these parts, which must be of the grid."""
        found: Any = parts.state
        for size, part in zip(self.shape[1:], parts[1:], strict=True):
            found = found * size + part
        return np.asarray(found, np.int64)

    def parts(self, vectors: ArrayLike) -> Parts:
        """The parts of vectors; ``ValueError`` for a number that is no vector."""
        rest = np.asarray(vectors, np.int64)
        _within(rest, self.vectors, "vector")
        found = []
        for size in reversed(self.shape[1:]):
            found.append(rest % size)
            rest = rest // size
        return Parts(rest, *reversed(found))

    def coarse(self, vectors: ArrayLike, level: int) -> Ints:
        """Back-off: vectors of a coarser grain, for where too little is known of the fine one.

        Level 0 changes nothing, 1 no longer tells the since bins apart, 2 also not the remaining bins, 3 not the error
        levels, 4 not the features, which leaves the state. All that are not told apart have the same number, the
        least of them. ``ValueError`` for another level.

        >>> grid = Grid(states=3, errors=2, span=100)
        >>> [int(grid.coarse(182, level)) for level in range(LEVELS)]
        [182, 180, 160, 128, 128]
        """
        if not 0 <= level < LEVELS:
            raise ValueError(f"levels of back-off are 0 to {LEVELS - 1}, not {level}")
        state, error, remaining, since, feature = self.parts(vectors)
        zero = np.zeros_like(state)
        parts = (zero if level > 3 else feature, zero if level > 0 else since)
        return self.joined(
            Parts(state, zero if level > 2 else error, zero if level > 1 else remaining, parts[1], parts[0])
        )

    def bounds_of(self, vector: int) -> tuple[tuple[int, int], tuple[int, int] | None]:
        """The window that remains at a vector, and the time since the last event: each the least and the most ticks.

        ``((0, 0), None)`` without a window. The most may be below the least: then nothing has this bin. The time
        since has no bound above in the last bin but the window.

        >>> Grid(states=3, errors=2, span=100).bounds_of(182)
        ((64, 75), (6, 24))
        """
        _, _, remaining, since, _ = (int(part) for part in self.parts(vector))
        if self.span is None:
            return (0, 0), None
        ages = [0, *self.ages.tolist(), self.span + 1]
        waits = [0, *self.bounds.tolist(), self.span + 1]
        younger = self.windows - 1 - remaining
        left = (self.span + 1 - ages[younger + 1], self.span - ages[younger])
        return left, (waits[since], waits[since + 1] - 1)

    def passage(
        self,
        state: Ints,
        error: Ints,
        start: Ints,
        made: Ints,
        until: Ints,
        feature: Ints,
    ) -> Passage:
        """The vectors that waiting nodes pass through from ``made`` to ``until``, both included: int64[n] each.

        A node is at a vector at a time when an event at that time would find it there.

        >>> grid, one = Grid(states=3, errors=2, span=15), np.array([1])
        >>> stays = grid.passage(state=one, error=one, start=one, made=one + 2, until=one + 5, feature=one * 0)
        >>> grid.parts(stays.vector).remaining.tolist(), grid.parts(stays.vector).since.tolist()
        ([6, 5, 5], [2, 2, 3])
        >>> stays.begin.tolist(), stays.end.tolist()
        ([3, 5, 6], [5, 6, 6])
        """
        changes = np.concatenate([made[:, None], start[:, None] + self.ages, made[:, None] + self.bounds], axis=1)
        late = changes[:, 1:]
        late[(late <= made[:, None]) | (late > until[:, None])] = NEVER
        late.sort(axis=1)
        here = changes != NEVER
        here[:, 1:] &= late != changes[:, :-1]
        stays = np.count_nonzero(here, axis=1)
        row = np.repeat(np.arange(len(made)), stays)
        begin = changes[here]
        first = np.append(0, np.cumsum(stays))
        end = np.empty_like(begin)
        end[:-1] = begin[1:]
        end[first[1:] - 1] = np.maximum(until, made)
        # The vector without its bins of time is the same for all stays of a life.
        now = np.zeros(1, np.int64)
        without = self.number(state, error, now, now, now, feature) - self._time(now, now, now)
        number = without[row] + self._time(start[row], made[row], begin)
        changes[~here] = NEVER
        return Passage(row, number, begin, end, first, changes)


@dataclass(frozen=True)
class Passage:
    """Stays of nodes at vectors, one after the other: those of node ``i`` are ``first[i]`` to ``first[i + 1]`` - 1.

    ``row`` is the node of a stay, ``vector`` where it is from ``begin`` on; ``end`` is when it goes on, or for a node's
    last stay when it ends. ``first`` has one entry more than there are nodes; ``changes`` is by node (columns in any
    order, unused ones very late).
    """

    row: Ints
    vector: Ints
    begin: Ints
    end: Ints
    first: Ints
    changes: Ints

    def at(self, rows: Ints, times: Ints) -> Ints:
        """The stays in which nodes are at these times (before its first a node is in its first)."""
        reached = np.count_nonzero(self.changes[rows] <= times[:, None], axis=1)
        return np.asarray(self.first[rows] + np.maximum(reached, 1) - 1, np.int64)


def _within(values: Ints, size: int, name: str) -> None:
    if values.size and not 0 <= values.min() <= values.max() < size:
        raise ValueError(f"a {name} is not from 0 to {size - 1}")
