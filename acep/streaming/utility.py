"""Choose which keys travel first, by what those of the same cell brought in earlier micro-batches: plain data.

A key falls into one of :data:`~acep.streaming.admission.CELLS` cells by a hash. The utility of a cell is its match
points by the event. Those of most utility are favoured, so that almost all of what travels is theirs; the others keep a
small chance, by which it shows if their utility changes. A choice is made when a unit's length has passed since the
last one. It is followed only if choices that were made by what had been seen before would have found more than equal
chances.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acep.streaming.admission import ALL, CELLS, chances_of

__all__ = ["SEPARATOR", "CellUtility", "cell_of", "share_of", "threshold_of"]

SEPARATOR = "\x1f"
"""Between the values of a key, of which the hash is made."""
FORGET = 0.97  # what is left of what was seen, after a choice
WIDE = 0.85  # of the events that travel, those of favoured cells
RECENT = 0.9  # what is left of the events of a micro-batch after the next one, where it matters how many there are now
PRIOR = 0.02  # of all events, as many of the usual utility are added to each cell
CHANGE = 1.2  # times as many match points that others must promise before they are favoured instead
GAIN = 1.05  # times as many match points that favoured cells must have brought

Figures = NDArray[np.float64]


def cell_of(key: Iterable[object]) -> int:
    """Give the cell of a key of integers and texts.

    >>> cell_of(["a", 1])
    161
    """
    return zlib.crc32(SEPARATOR.join(map(str, key)).encode()) % CELLS


def share_of(threshold: int, favoured: Sequence[int], events: Figures) -> float:
    """Give the share of the events that travel under a threshold, if cells have so many ``events``, of shape
    ``(CELLS,)``."""
    return float((chances_of(threshold, favoured) * events).sum() / events.sum())


def threshold_of(share: float, favoured: Sequence[int], events: Figures) -> int:
    """Give the threshold under which this ``share`` of the events travels.

    >>> threshold_of(0.25, [], np.ones(CELLS)) == ALL // 4
    True
    """
    if share >= 1 or not favoured:
        return min(int(share * ALL), ALL)
    low, high = 0, ALL
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if share_of(middle, favoured, events) <= share else (low, middle)
    return low


@dataclass(frozen=True)
class CellUtility:
    """Events and match points by cell, as many as there were if nothing was shed: those ``before`` the last choice, and
    those ``since``, both of shape ``(2, CELLS)``; of ``recent`` micro-batches the events alone. ``chosen`` is the time
    of that choice, in ticks. ``tried``: match points that each choice would have found until the next one, and those
    that equal chances would have found."""

    before: Figures
    since: Figures
    recent: Figures
    chosen: int | None = None
    tried: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def none(cls) -> CellUtility:
        """Nothing was seen."""
        return cls(np.zeros((2, CELLS)), np.zeros((2, CELLS)), np.zeros(CELLS))

    @property
    def events(self) -> Figures:
        """Events by cell of late, a few of them in each."""
        return _some(self.recent)

    def after(self, events: NDArray[Any], points: NDArray[Any], chances: Figures) -> CellUtility:
        """Remember a micro-batch: what was carried of each cell and found in it, and the chance that it had."""
        seen = np.divide([events, points], chances, out=np.zeros((2, CELLS)), where=chances > 0)
        return replace(self, since=self.since + seen, recent=RECENT * self.recent + seen[0])

    def choose(
        self, share: float, current: tuple[int, ...], seen: int | None, length: int
    ) -> tuple[CellUtility, tuple[int, ...] | None]:
        """Choose the cells to favour while a ``share`` of the events travels, if it is time to.

        ``seen`` is the time now, and ``length`` that of a unit, in ticks. Returns ``None`` where the ``current`` ones
        stay: to change them costs the units that only one choice lets in.
        """
        if seen is None or not self.since[1].any():
            return self, None
        if self.chosen is None:
            return replace(self, chosen=seen), None
        if seen - self.chosen < length:
            return self, None
        ours, equal = self.tried
        if self.before[1].any():
            ours = FORGET * ours + _found(_best(self.before, share), share, self.since)
            equal = FORGET * equal + share * float(self.since[1].sum())
        every = self.before + self.since
        favoured: tuple[int, ...] | None = _best(every, share) if ours > GAIN * equal else ()
        if favoured and current and _found(favoured, share, every) < CHANGE * _found(current, share, every):
            favoured = None
        return CellUtility(FORGET * every, np.zeros((2, CELLS)), self.recent, seen, (ours, equal)), favoured

    def dump(self) -> dict[str, Any] | None:
        """As JSON-like data."""
        if not (self.before.any() or self.since.any()):
            return None
        figures = {name: getattr(self, name).round(3).tolist() for name in ("before", "since", "recent")}
        return figures | {"chosen": self.chosen, "tried": list(self.tried)}

    @classmethod
    def load(cls, data: Mapping[str, Any] | None) -> CellUtility:
        """Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for what is none."""
        if data is None:
            return cls.none()
        before, since, recent = (np.array(data[name], np.float64) for name in ("before", "since", "recent"))
        ours, equal = (float(one) for one in data["tried"])
        for one in (before, since, recent, np.array([ours, equal])):
            if not np.isfinite(one).all() or (one < 0).any():
                raise ValueError("utility")
        if not before.shape == since.shape == (2, CELLS) or recent.shape != (CELLS,):
            raise ValueError("utility")
        return cls(before, since, recent, None if data["chosen"] is None else int(data["chosen"]), (ours, equal))


def _best(seen: Figures, share: float) -> tuple[int, ...]:
    """Give the cells of most utility, as long as they have no more than most of a ``share`` of the events."""
    events, points = seen
    every = events.sum()
    prior = PRIOR * every
    utility = (points + prior * points.sum() / every) / (events + prior)
    order = np.argsort(-utility, kind="stable")
    return tuple(sorted(order[np.cumsum(events[order]) <= WIDE * share * every].tolist()))


def _found(favoured: Sequence[int], share: float, seen: Figures) -> float:
    """Tell how many of the match points would have been found if these cells had been favoured."""
    events, points = seen
    return float((chances_of(threshold_of(share, favoured, _some(events)), favoured) * points).sum())


def _some(events: Figures) -> Figures:
    return events + max(float(events.sum()), 1.0) * 1e-6
