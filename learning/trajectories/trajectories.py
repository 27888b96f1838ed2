"""Lives of match nodes, as the engine logs them between two looks of a policy (docs/explanation/best_effort.md,
"Lives").

Three tables of columns: nodes *made*, nodes that *ended*, and runs that *found* a match. A *tree* is the nodes with one
first event: those that come from one another, all logged or none of them. What is learned of a node is known when its
whole tree has ended, for whatever comes from it may still find something: so trees are *settled* as wholes
(:func:`settle`), each once, and those still open are carried along. To count a success at once, but a failure only
at the end of the window, would make every chance look better than it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acep.errors import SnapshotError
from acep.learning.trajectories.columns import Table, names_of
from acep.learning.trajectories.match_vectors import Bools, Floats, Ints

__all__ = [
    "CLEARED",
    "EXPIRED",
    "MERGED",
    "SHED",
    "TAKEN",
    "Ended",
    "Found",
    "Lives",
    "Made",
    "Settled",
    "roots",
    "settle",
]

EXPIRED, SHED, TAKEN, CLEARED, MERGED = range(5)
"""How a life ended; TAKEN: its strategy let no event pass."""


@dataclass(frozen=True, eq=False)
class Made(Table):
    """Nodes made, in the order of their numbers ``life``, which rise over the whole run.

    ``parent`` is the life that a node came from (-1: none, or not logged), ``error`` a level, ``start`` and ``made``
    times (positions where the window counts events), ``feature`` a bin, ``weight`` (float64, at least 1) one over the
    probability that the node is in the log.
    """

    life: Ints
    parent: Ints
    partition: Ints
    state: Ints
    error: Ints
    start: Ints
    made: Ints
    feature: Ints
    weight: Floats

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self):
            return
        _holds((self.life[1:] > self.life[:-1]).all(), "lives do not rise")
        _holds(((self.parent >= -1) & (self.parent < self.life)).all(), "a parent is not older than its child")
        _holds(((self.weight >= 1) & np.isfinite(self.weight)).all(), "a weight is below 1")
        _holds((self.made >= self.start).all(), "a node is made before its start")
        for name in ("life", "state", "error", "feature"):
            _holds(getattr(self, name).min() >= 0, f"a {name} is negative")

    @cached_property
    def parents(self) -> Ints:
        """The rows of their parents, -1 where these are not there."""
        return self.find(self.parent)

    def featureless(self) -> Made:
        """The same nodes, all of feature 0."""
        columns = {name: getattr(self, name) for name in names_of(Made)}
        return self.unchecked({**columns, "feature": np.zeros_like(self.feature)})

    def find(self, lives: Ints) -> Ints:
        """The rows of lives, -1 where they have none."""
        if not len(self) or not len(lives):
            return np.full(lives.shape, -1, dtype=np.int64)
        least, most = int(self.life[0]), int(self.life[-1])
        if most - least < 8 * len(self):  # a table is faster than a search
            table = np.full(most - least + 2, -1, dtype=np.int64)
            table[self.life - least] = np.arange(len(self))
            rows: Ints = table[np.where((lives < least) | (lives > most), most + 1, lives) - least]
            return rows
        at = np.minimum(np.searchsorted(self.life, lives), len(self) - 1)
        return np.where(self.life[at] == lives, at, -1)


@dataclass(frozen=True, eq=False)
class Ended(Table):
    """Lives that ended: ``when``, ``how`` (``EXPIRED``, ...), and the ``touches`` while they lasted."""

    life: Ints
    when: Ints
    how: Ints
    touches: Ints

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self):
            return
        _holds(self.how.min() >= EXPIRED and self.how.max() <= MERGED, "there is no such end of a life")
        _holds(self.touches.min() >= 0, "touches are negative")
        rising = np.sort(self.life)
        _holds((rising[1:] > rising[:-1]).all(), "a life ends twice")


@dataclass(frozen=True, eq=False)
class Found(Table):
    """Runs that were complete: ``parent`` is the life that bound the last event but one (-1: none, or not logged),
    ``when`` the match point. ``target`` and ``first`` are filled in by
    :meth:`acep.learning.trajectories.targets.Targets.number`.
    """

    parent: Ints
    partition: Ints
    when: Ints
    error: Ints
    target: Ints
    first: Bools


@dataclass(frozen=True)
class Lives:
    """The log of a stretch of events. ``ValueError`` at construction for tables that contradict themselves."""

    made: Made = field(default_factory=Made.none)
    ended: Ended = field(default_factory=Ended.none)
    found: Found = field(default_factory=Found.none)

    @classmethod
    def of(cls, made: Mapping[str, ArrayLike], ended: Mapping[str, ArrayLike], found: Mapping[str, ArrayLike]) -> Lives:
        """From columns by name, the targets of ``found`` not yet numbered.

        >>> made = {"life": [4], "parent": [-1], "partition": [0], "state": [1], "error": [0], "start": [7],
        ...         "made": [7], "feature": [0], "weight": [1]}
        >>> ended = {"life": [4], "when": [10], "how": [0], "touches": [3]}
        >>> len(Lives.of(made, ended, {"parent": [4], "partition": [0], "when": [9], "error": [0]}).found)
        1
        """
        count = len(np.asarray(found.get("parent", ())))
        unknown = {"target": np.full(count, -1), "first": np.zeros(count, np.bool_)}
        made, ended, found = dict(made), dict(ended), {**unknown, **found}
        for table, given in ((Made, made), (Ended, ended), (Found, found)):
            names = names_of(table)
            if set(given) != set(names):
                raise ValueError(f"columns of {table.__name__} are {sorted(names)}, not {sorted(given)}")
        return cls(Made(**_arrays(made)), Ended(**_arrays(ended)), Found(**_arrays(found)))

    def __bool__(self) -> bool:
        """Whether anything was logged."""
        return len(self.made) > 0 or len(self.ended) > 0 or len(self.found) > 0

    def then(self, other: Lives) -> Lives:
        """This log and the one of the events after it."""
        return Lives(self.made.then(other.made), self.ended.then(other.ended), self.found.then(other.found))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All columns, by names such as ``made.life``."""
        tables = {f.name: getattr(self, f.name) for f in fields(self)}
        return {f"{t}.{f.name}": getattr(table, f.name) for t, table in tables.items() for f in fields(table)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Lives:
        """The lives of :meth:`to_arrays`; :class:`SnapshotError` for arrays that are none."""
        tables: dict[str, Any] = {"made": Made, "ended": Ended, "found": Found}
        try:
            columns = {
                t: table(**{f.name: arrays[f"{t}.{f.name}"] for f in fields(table)}) for t, table in tables.items()
            }
            return cls(**columns)
        except (KeyError, ValueError):
            raise SnapshotError("the history is damaged: its open lives make no sense") from None


class Settled(NamedTuple):
    """What :func:`settle` gives: lives of whole trees, the lives still open, and how many lives were cut off."""

    lives: Lives
    open: Lives
    cut: int


def settle(open_: Lives, new: Lives, limit: int) -> Settled:
    """Takes the trees that have ended out of the lives known so far.

    ``open_`` is what was left the last time. A tree has ended when all its nodes have. At most ``limit`` lives stay
    open, so that memory is bounded where windows are very long, or there is none: beyond that, the trees that began
    first are settled as they are. Nodes of theirs that had not ended are *cut*: how they end is unknown, and
    counts as unknown; what comes of them later begins trees of its own. Found runs go with the tree of their parent,
    or, where that is not known, with what is settled.
    """
    lives = open_.then(new)
    made = lives.made
    root = roots(made)
    ends = made.find(lives.ended.life)
    alive = np.ones(len(made), dtype=np.bool_)
    alive[ends[ends >= 0]] = False
    trees = np.zeros(len(made), dtype=np.bool_)
    trees[root[alive]] = True
    stays = trees[root]
    cut = 0
    if np.count_nonzero(stays) > limit:
        # Of the trees with open lives, as many of the newest as there is room for.
        sizes = np.bincount(root[stays], minlength=len(made))
        newer = np.cumsum(sizes[::-1])[::-1]
        stays &= (newer <= limit)[root]
        cut = int(np.count_nonzero(alive & ~stays))
    ended = _of(stays, ends)
    found = _of(stays, made.find(lives.found.parent))
    # Ends of lives that are not known, as their tree was cut, are forgotten.
    return Settled(
        Lives(made.rows(~stays), lives.ended.rows(~ended & (ends >= 0)), lives.found.rows(~found)),
        Lives(made.rows(stays), lives.ended.rows(ended), lives.found.rows(found)),
        cut,
    )


def roots(made: Made) -> Ints:
    """The row of the first node of each node's tree, int64[n]; a node whose parent is not there is a first node."""
    root = np.where(made.parents < 0, np.arange(len(made)), made.parents)
    while True:  # each round doubles how far a row looks up
        higher = root[root]
        if np.array_equal(higher, root):
            return np.asarray(root, np.int64)
        root = higher


def _of(mask: Bools, rows: Ints) -> Bools:
    """What a mask says of rows; nothing of row -1."""
    known = rows >= 0
    known[known] = mask[rows[known]]
    return known


def _arrays(columns: Mapping[str, ArrayLike]) -> dict[str, Any]:
    return {name: np.asarray(column) for name, column in columns.items()}


def _holds(condition: bool | np.bool_, message: str) -> None:
    if not condition:
        raise ValueError(f"lives that contradict themselves: {message}")
