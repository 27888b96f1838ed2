"""Favour keys with a high utility when events are shed before they travel, from the matches of earlier micro-batches.

A key falls into one of :data:`~acep.overload.unit_admission.CELLS` cells by a hash. The utility of a cell is its
number of match points per event. The cells with the highest utility are favoured, so that they have almost all of the
events that travel. The others keep a small chance, so that a change of their utility is noticed. A choice is made when
the length of a sampling unit has passed since the last one. It is applied only if earlier choices would have found
more match points than equal chances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acep.overload.unit_admission import ALL, CELLS, chances_of

__all__ = ["CellUtility", "share_of", "threshold_of"]

FORGET = 0.97  # weight of old counts after a choice
WIDE = 0.85  # share of the events that travel that favoured cells may have
RECENT = 0.9  # weight of the events of a micro-batch after the next one, to estimate the current rates
PRIOR = 0.02  # share of all events that is added to each cell, with the mean utility
CHANGE = 1.2  # factor of expected match points that other cells must reach to replace the favoured ones
GAIN = 1.05  # factor of match points that earlier choices must have reached over equal chances

Figures = NDArray[np.float64]


def share_of(threshold: int, favoured: Sequence[int], events: Figures) -> float:
    """Return the share of the events that travel under a threshold, if the cells have these ``events``, of shape
    ``(CELLS,)``."""
    return float((chances_of(threshold, favoured) * events).sum() / events.sum())


def threshold_of(share: float, favoured: Sequence[int], events: Figures) -> int:
    """Return the threshold under which this ``share`` of the events travels.

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
    """Events and match points by cell, estimated as if nothing had been shed: those ``before`` the last choice and
    those ``since``, both of shape ``(2, CELLS)``; ``recent`` has only the events of recent micro-batches. ``chosen`` is
    the time of the last choice, in ticks. ``tried`` has the match points that choices would have found until the next
    one, and those that equal chances would have found."""

    before: Figures
    since: Figures
    recent: Figures
    chosen: int | None = None
    tried: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def empty(cls) -> CellUtility:
        """Return the utility before any event was seen."""
        return cls(np.zeros((2, CELLS)), np.zeros((2, CELLS)), np.zeros(CELLS))

    @property
    def events(self) -> Figures:
        """Recent events by cell, more than 0 in each."""
        return _make_positive(self.recent)

    def add_batch(self, events: NDArray[Any], points: NDArray[Any], chances: Figures) -> CellUtility:
        """Add a micro-batch: events that travelled, match points that were found, and chances, each by cell."""
        seen = np.divide([events, points], chances, out=np.zeros((2, CELLS)), where=chances > 0)
        return replace(self, since=self.since + seen, recent=RECENT * self.recent + seen[0])

    def choose(
        self, share: float, current: tuple[int, ...], seen: int | None, length: int
    ) -> tuple[CellUtility, tuple[int, ...] | None]:
        """Choose the cells to favour while a ``share`` of the events travels, if a choice is due.

        ``seen`` is the current event time, and ``length`` that of a sampling unit, in ticks. Returns ``None`` if the
        ``current`` cells stay: a change loses the units that are admitted under only one of the choices.
        """
        if seen is None or not self.since[1].any():
            return self, None
        if self.chosen is None:
            return replace(self, chosen=seen), None
        if seen - self.chosen < length:
            return self, None
        by_choice, by_chance = self.tried
        if self.before[1].any():
            by_choice = FORGET * by_choice + _expected_points(_best_cells(self.before, share), share, self.since)
            by_chance = FORGET * by_chance + share * float(self.since[1].sum())
        sums = self.before + self.since
        favoured: tuple[int, ...] | None = _best_cells(sums, share) if by_choice > GAIN * by_chance else ()
        if (
            favoured
            and current
            and _expected_points(favoured, share, sums) < CHANGE * _expected_points(current, share, sums)
        ):
            favoured = None
        return CellUtility(FORGET * sums, np.zeros((2, CELLS)), self.recent, seen, (by_choice, by_chance)), favoured

    def dump(self) -> dict[str, Any] | None:
        """Return the counts as JSON-like data; ``None`` if there are none."""
        if not (self.before.any() or self.since.any()):
            return None
        figures = {name: getattr(self, name).round(3).tolist() for name in ("before", "since", "recent")}
        return figures | {"chosen": self.chosen, "tried": list(self.tried)}

    @classmethod
    def load(cls, data: Mapping[str, Any] | None) -> CellUtility:
        """Read the data of :meth:`dump`. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError`."""
        if data is None:
            return cls.empty()
        before, since, recent = (np.array(data[name], np.float64) for name in ("before", "since", "recent"))
        by_choice, by_chance = (float(number) for number in data["tried"])
        for figures in (before, since, recent, np.array([by_choice, by_chance])):
            if not np.isfinite(figures).all() or (figures < 0).any():
                raise ValueError("utility")
        if not before.shape == since.shape == (2, CELLS) or recent.shape != (CELLS,):
            raise ValueError("utility")
        return cls(
            before, since, recent, None if data["chosen"] is None else int(data["chosen"]), (by_choice, by_chance)
        )


def _best_cells(seen: Figures, share: float) -> tuple[int, ...]:
    """Return the cells of highest utility that have at most :data:`WIDE` of a ``share`` of the events together."""
    events, points = seen
    n_events = events.sum()
    prior = PRIOR * n_events
    utility = (points + prior * points.sum() / n_events) / (events + prior)
    order = np.argsort(-utility, kind="stable")
    return tuple(sorted(order[np.cumsum(events[order]) <= WIDE * share * n_events].tolist()))


def _expected_points(favoured: Sequence[int], share: float, seen: Figures) -> float:
    """Return the match points that would have been found if these cells had been favoured."""
    events, points = seen
    return float((chances_of(threshold_of(share, favoured, _make_positive(events)), favoured) * points).sum())


def _make_positive(events: Figures) -> Figures:
    return events + max(float(events.sum()), 1.0) * 1e-6
