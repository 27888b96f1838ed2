"""What waiting nodes are worth for their cost, from lives: by match vector, and by how many were made later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from acep.learning.lives import MERGED, Ended, Made
from acep.learning.orders import AGES, STEPS
from acep.learning.targets import Reached
from acep.learning.vectors import Floats, Grid, Ints

__all__ = ["Lived", "Sums", "chances", "later", "lived", "stays"]

DOUBT = 4.0  # visits that are taken to have been as those of the coarser vector
FREE = 0.05  # touches: that no node is looked at for nothing


@dataclass(frozen=True)
class Lived:
    """Lives that have ended, one row each: parts of vectors, ``until`` (when it ended), its own ``touches``, how many
    targets it led to (``gain``), and the last time at which it still led to one (``useful``; before ``made``: never).
    """

    state: Ints
    error: Ints
    partition: Ints
    start: Ints
    made: Ints
    until: Ints
    birth: Ints
    touches: Floats
    gain: Floats
    useful: Ints
    weight: Floats

    def __len__(self) -> int:
        return len(self.state)

    @classmethod
    def none(cls) -> Lived:
        """No lives."""
        return cls.from_arrays({f.name: np.zeros(0) for f in fields(cls)})

    def then(self, other: Lived) -> Lived:
        """These and others."""
        return Lived(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    def last(self, most: int) -> Lived:
        """No more than the last ``most``."""
        return Lived(*(getattr(self, f.name)[-most:] for f in fields(self)))

    def to_arrays(self) -> dict[str, Any]:
        """The columns by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Lived:
        """The lives of :meth:`to_arrays`. Raises :class:`ValueError` or :class:`KeyError` for what is none."""
        columns: list[Any] = [
            np.asarray(arrays[f.name], np.float64 if f.name in ("touches", "gain", "weight") else np.int64)
            for f in fields(cls)
        ]
        if any(c.ndim != 1 or len(c) != len(columns[0]) for c in columns):
            raise ValueError("columns of several lengths")
        return cls(*columns)


def lived(made: Made, ended: Ended, reached: Reached, birth: Ints, *, shared: bool) -> tuple[Lived, Ints]:
    """The lives that ended otherwise than by becoming one with another, and their rows in ``made``; ``birth`` is
    by row of ``made``. ``shared``: a life
    counts for the number of targets that it leads to; else for one if there are any."""
    at = made.find(ended.life)
    here = (at >= 0) & (ended.how != MERGED)
    rows = at[here]
    when, touches = ended.when[here], ended.touches[here]
    useful = np.full(len(made), np.iinfo(np.int64).min)
    np.maximum.at(useful, reached.row, reached.until)
    gain = np.bincount(reached.row, minlength=len(made)).astype(np.float64)
    if not shared:
        gain = np.minimum(gain, 1.0)
    order = np.argsort(rows)
    rows = rows[order]
    return (
        Lived(
            made.state[rows],
            made.error[rows],
            made.partition[rows],
            made.start[rows],
            made.made[rows],
            np.maximum(when[order], made.made[rows]),
            birth[rows],
            touches[order].astype(np.float64),
            gain[rows],
            useful[rows],
            made.weight[rows],
        ),
        rows,
    )


@dataclass(frozen=True)
class Sums:
    """Sums by vector of a grid, float64[vectors]: ``visits``, and the gain ``won`` and touches ``paid`` after them."""

    visits: Floats
    won: Floats
    paid: Floats

    def plus(self, other: Sums, *, kept: float = 1.0) -> Sums:
        """Both, of these a share."""
        pairs = zip((self.visits, self.won, self.paid), (other.visits, other.won, other.paid), strict=True)
        return Sums(*(kept * a + b for a, b in pairs))


def stays(grid: Grid, lives: Lived) -> Sums:
    """What lives tell of the vectors that they waited at. Touches are taken to come evenly over a life."""
    zeros = np.zeros_like(lives.state)
    passage = grid.passage(lives.state, lives.error, lives.start, lives.made, lives.until, zeros)
    row = passage.row
    weight = lives.weight[row]
    won = weight * lives.gain[row] * (lives.useful[row] >= passage.begin)
    length = (lives.until - lives.made + 1)[row]
    paid = weight * lives.touches[row] * (lives.until[row] - passage.begin + 1) / length
    columns: list[Any] = [np.bincount(passage.vector, column, grid.vectors) for column in (weight, won, paid)]
    return Sums(*columns)


def chances(grid: Grid, sums: Sums) -> tuple[Floats, Floats]:
    """By vector, what is expected of a node that waits there: gain and touches, float64[vectors] each. Where there are
    few visits, the vectors that are alike but for the time since, then but for the window, have their say."""
    parts = np.arange(grid.vectors)
    won, paid = np.zeros(grid.vectors), np.zeros(grid.vectors)
    prior = 0.0
    for level in (4, 3, 2, 1, 0):
        key = grid.coarse(parts, level)
        visits = np.bincount(key, sums.visits, grid.vectors)[key]
        own_won = np.bincount(key, sums.won, grid.vectors)[key]
        own_paid = np.bincount(key, sums.paid, grid.vectors)[key]
        won = (own_won + prior * won) / np.maximum(visits + prior, 1e-300)
        paid = (own_paid + prior * paid) / np.maximum(visits + prior, 1e-300)
        prior = DOUBT
    return won, paid + FREE


def later(grid: Grid, lives: Lived, won: Floats, paid: Floats) -> Floats:
    """By state and bin of how many nodes were made in a list since (0, 1, 2 to 3, ...): the levels that this adds to
    what the vectors tell, float64[states, AGES].

    Times of births that are not logged are those of the next ones that are.
    """
    found = np.zeros((grid.states, AGES))
    if not len(lives):
        return found
    order = np.lexsort((np.arange(len(lives)), lives.partition * grid.states + lives.state))
    key = (lives.partition * grid.states + lives.state)[order]
    opens = np.append(True, key[1:] != key[:-1])
    group = np.cumsum(opens) - 1
    step = np.diff(lives.birth[order], prepend=0) % 2**16
    step[opens] = 0
    total = np.cumsum(step)
    birth = total - total[np.flatnonzero(opens)][group]
    place = group * 2**32 + birth
    made = lives.made[order]
    for age in range(AGES):
        since = 0 if age == 0 else 1 << (age - 1)
        next_ = np.searchsorted(place, place + since)
        there = (next_ < len(place)) & (group[np.minimum(next_, len(place) - 1)] == group)
        i = order[there]
        when = made[next_[there]]
        alive = lives.until[i] >= when
        i, when = i[alive], when[alive]
        if not len(i):
            break
        vector = grid.number(lives.state[i], lives.error[i], lives.start[i], lives.made[i], when)
        useful = lives.useful[i] >= when if age == 0 else lives.useful[i] > when
        rest = lives.touches[i] * (lives.until[i] - when + 1) / (lives.until[i] - lives.made[i] + 1)
        columns = (lives.gain[i] * useful, won[vector], rest, paid[vector])
        seen, expected, cost, usual = (np.bincount(lives.state[i], c * lives.weight[i], grid.states) for c in columns)
        enough = expected > 0
        ratio = (seen + 0.5) / (expected + 0.5) / ((cost + 5.0) / (usual + 5.0))
        found[enough, age] = STEPS * np.log2(ratio[enough])
    return np.clip(found, -127, 127)
