"""Keep single events of high utility if not all can travel, and explore whole units to know what that loses.

The history orders cells of events (:mod:`acep.shedding.event_utility`). An event travels if its cell is among the first
``n_cells`` ones, or if it is in an *explored unit*: a stretch of one key, as long as a sampling unit. A hash chooses
one unit in :data:`~acep.overload.sampling_units.EXPLORED`. All events of such a unit travel, so all of its match points
are found. They estimate the recall, and the events of the unit show how events spread over the cells now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acep.events.columns import ticks_of
from acep.learning.estimation.recall import Tally
from acep.overload.sampling_units import EXPLORED, are_explored, hash_of_keys
from acep.overload.unit_admission import UnitAdmission
from acep.shedding.event_utility import CELLS, EventUtility
from acep.streaming.job import Job

__all__ = ["EventChoice", "Explored", "Exploring", "explored_in"]

MIN_SHARE = 1 / 16  # least share of the events that the first cells may have
FORGET = 0.95  # weight of the events of a micro-batch after the next one
PRIOR = 1e-6  # share of all events that each cell has at least

Counts = NDArray[np.int64]
Figures = NDArray[np.float64]


@dataclass(frozen=True)
class Exploring:
    """How the worker finds the explored units, by the partition attributes ``keys``. ``length`` and ``span`` are those
    of a sampling unit and of a window, in ticks."""

    utility: EventUtility
    keys: tuple[str, ...]
    length: int
    span: int
    seed: int

    @classmethod
    def from_admission(cls, utility: EventUtility, keys: Sequence[str], admission: UnitAdmission) -> Exploring:
        """Explore with the units of an admission."""
        return cls(utility, tuple(keys), admission.length, admission.span, admission.seed)

    def counts(self, job: Job, carried: pa.Table | None, result_tables: Sequence[pa.Table]) -> Counts:
        """Count a bucket in a micro-batch, for :class:`Explored` and :class:`EventChoice`: the explored events by cell;
        then those in the last seven windows of their unit, and of units with match points there their number, the
        points, and the sum of the squared points."""
        counts = np.zeros(CELLS + 4, np.int64)
        if carried is not None and len(carried):
            ticks, _ = ticks_of(job.schema.ts, carried.column(job.schema.ts), job.schema.tick_ns or 1)
            is_explored, begins = self.find_explored([carried.column(key) for key in self.keys], ticks)
            cells = self.utility.cells(carried, carried.column(job.schema.type))
            counts[:CELLS] = np.bincount(cells[is_explored], minlength=CELLS)
            counts[CELLS] = np.count_nonzero(is_explored & (ticks - begins >= self.span))
        for rows in result_tables:
            key = rows.column("key").combine_chunks()
            name = "point" if job.output == "points" else "end"
            ticks, _ = ticks_of(name, rows.column(name), job.schema.tick_ns or 1)
            columns = [pa.chunked_array([key.field(key_name)]) for key_name in self.keys]
            is_explored, begins = self.find_explored(columns, ticks)
            is_explored &= ticks - begins >= self.span
            points = pa.table([*columns, pa.array(ticks), pa.array(begins)], [*map(str, range(len(columns))), "t", "b"])
            points = points.filter(pa.array(is_explored))
            names = [column_name for column_name in points.column_names if column_name != "t"]
            points = points.group_by(points.column_names).aggregate([]).group_by(names).aggregate([([], "count_all")])
            unit_points = points.column("count_all").to_numpy()
            counts[CELLS + 1 :] += [len(unit_points), int(unit_points.sum()), int((unit_points**2).sum())]
        return counts

    def find_explored(self, keys: Sequence[pa.ChunkedArray], ticks: Counts) -> tuple[NDArray[np.bool_], Counts]:
        """Return which rows, of these keys and times, are in an explored unit, and when the unit of each begins."""
        begins = ticks - ticks % self.length
        return are_explored(self.seed, hash_of_keys(keys), begins), begins


def explored_in(counts_by_bucket: Sequence[Counts]) -> Counts:
    """Return the sum of the counts of some buckets."""
    return np.asarray(np.sum([np.zeros(CELLS + 4, np.int64), *counts_by_bucket], axis=0), np.int64)


@dataclass(frozen=True)
class Explored:
    """Sums over the micro-batches in which only some events were kept: all ``events``; match points that were found
    (``points_found``); and of explored units the events ``inside``, ``units``, ``points`` and ``squares`` (the last
    four of :meth:`Exploring.counts`)."""

    events: float = 0.0
    points_found: float = 0.0
    inside: float = 0.0
    units: float = 0.0
    points: float = 0.0
    squares: float = 0.0

    def __add__(self, other: Explored) -> Explored:
        return Explored(*(getattr(self, attribute.name) + getattr(other, attribute.name) for attribute in fields(self)))

    def tally(self) -> Tally | None:
        """Return the sums that estimate the recall of match points; ``None`` if no event was explored.

        >>> Explored(events=6400, points_found=120, inside=100, units=2, points=3, squares=5).tally().x
        192.0
        """
        if not self.events:
            return Tally()
        if not self.inside:
            return None
        ratio = self.events / self.inside
        squares = ratio**2 * self.squares
        spread = squares * (1 - 1 / EXPLORED)
        return Tally(units=self.units, x=ratio * self.points, y=self.points_found, xx=spread, whole=squares)

    def dump(self) -> list[float]:
        """Return JSON-like data."""
        return [getattr(self, attribute.name) for attribute in fields(self)]

    @classmethod
    def load(cls, data: Sequence[Any] | None) -> Explored:
        """Read the data of :meth:`dump`. Raises :class:`TypeError` or :class:`ValueError` if it is invalid."""
        explored = cls() if data is None else cls(*map(float, data))
        if not all(0 <= figure < 1e18 for figure in explored.dump()):
            raise ValueError("explored")
        return explored


@dataclass(frozen=True)
class EventChoice:
    """The number of cells that are kept, ``n_cells``, ``None`` for all, and ``recent`` explored events by cell, of
    shape ``(CELLS,)``."""

    n_cells: int | None = None
    recent: Figures = field(default_factory=lambda: np.zeros(CELLS))

    def events(self, utility: EventUtility) -> Figures:
        """Return the events by cell; those of the history, if none was explored yet."""
        size = len(utility.order)
        recent = self.recent[:size] if self.recent[:size].any() else np.array(utility.events)
        return np.asarray(recent + PRIOR * recent.sum(), np.float64)

    def share(self, utility: EventUtility) -> float:
        """Return the share of the events that travels."""
        if self.n_cells is None:
            return 1.0
        first = float(utility.cumulative_shares(self.events(utility))[self.n_cells])
        return first + (1 - first) / EXPLORED

    def choose(self, utility: EventUtility, share: float) -> EventChoice:
        """Keep a ``share`` of the events, if that finds more than equal chances; else all of them."""
        first = (share - 1 / EXPLORED) / (1 - 1 / EXPLORED)
        n_cells = utility.keep(first, self.events(utility)) if MIN_SHARE <= first < 1 else None
        return replace(self, n_cells=n_cells)

    def add_counts(self, counts: Counts) -> EventChoice:
        """Add the explored events of a micro-batch."""
        return replace(self, recent=FORGET * self.recent + counts[:CELLS])

    def dump(self) -> dict[str, Any]:
        """Return JSON-like data."""
        last = int(np.flatnonzero(self.recent).max(initial=-1)) + 1
        return {"kept": self.n_cells, "recent": self.recent[:last].round(3).tolist()}

    @classmethod
    def load(cls, data: Mapping[str, Any] | None) -> EventChoice:
        """Read the data of :meth:`dump`. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError`."""
        if data is None:
            return cls()
        recent = np.array(data["recent"], np.float64)
        n_cells = None if data["kept"] is None else int(data["kept"])
        if recent.ndim != 1 or len(recent) > CELLS or not (np.isfinite(recent) & (recent >= 0)).all():
            raise ValueError("events")
        if n_cells is not None and not 0 <= n_cells <= CELLS:
            raise ValueError("kept")
        return cls(n_cells, np.pad(recent, (0, CELLS - len(recent))))
