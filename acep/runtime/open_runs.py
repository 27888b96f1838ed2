"""Follow the open runs of one variable over a stream: from where on they go on, and when they end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch
from acep.plan.compile import Plan
from acep.plan.ordered.query_runs import RunsPlan
from acep.plan.ordered.run_conditions import earlier
from acep.runtime.interval_matches import ChosenIntervals
from acep.runtime.next_events import NEVER, NextEvents, TimeCondition, indexes_inside, is_past, with_room
from acep.runtime.partition_rows import RowsByPartition
from acep.runtime.run_rows import fitting_rows, linked_rows

__all__ = ["OpenRuns"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]


class OpenRuns:
    """The first open run of each partition: the position and the place of its ``first`` event, its number of events,
    the position of the last one, and the times of the last ones, the last one first. The runs that begin later go on
    as far as it does, or further."""

    def __init__(self, runs: RunsPlan, plan: Plan) -> None:
        self.runs, self.plan = runs, plan
        self.n_before = max([1, *(steps for _, steps in runs.linking)])
        conditions = (TimeCondition.of(expr, plan, [(earlier(plan.schema.ts), steps)]) for expr, steps in runs.linking)
        self.times = [condition for condition in conditions if condition is not None]
        self.first, self.place, self.count, self.last = (np.zeros(0, np.int64) for _ in range(4))
        self.recent = np.zeros((0, self.n_before), np.int64)
        self.has_ends = np.zeros(0, bool)

    def relevant(self, batch: Batch) -> Bits:
        """Return whether each event fits; all do where it matters where they stand."""
        if self.runs.adjacent or self.plan.window.counted:
            return np.ones(len(batch), bool)  # the engine that makes all matches must see where events stand
        return fitting_rows(self.runs, self.plan, batch)

    def make_room(self, size: int) -> None:
        """Make room for so many partitions."""
        room: Any = with_room
        self.first = room(self.first, size, NEVER)
        self.place, self.count, self.last = (room(array, size, 0) for array in (self.place, self.count, self.last))
        self.recent, self.has_ends = room(self.recent, size, 0), room(self.has_ends, size, 0)

    def forget(self, codes: Ints) -> None:
        """Forget the open runs of partitions."""
        self.first[codes] = NEVER
        self.has_ends[codes] = False

    def follow(self, batch: Batch, rows: RowsByPartition, codes: Ints, is_new: Bits, *, anew: bool) -> int:
        """Follow the open runs over new events; see :class:`OpenMatches`."""
        events, is_start, reach = linked_rows(self.runs, self.plan, batch, rows)
        edges = events.edges
        begins, lasts = edges[:-1], edges[1:] - 1
        if not len(begins):
            return 0
        of_partition = codes[events.rows[begins]]
        if anew:
            self.forget(of_partition)
        n_new = np.add.reduceat(is_new[events.rows].astype(np.int64), begins)
        goes_on = (self.first[of_partition] != NEVER) & (reach[begins] == lasts)
        size, numbers = len(events), np.arange(len(events))
        can_go_on = is_start & (reach == np.repeat(lasts, np.diff(edges)))
        firsts = np.minimum.reduceat(np.where(can_go_on, numbers, size), begins)
        has_start = firsts <= lasts
        at = np.minimum(firsts, size - 1)
        places = events.positions if self.plan.window.counted else batch.ts[events.rows]
        first = np.where(has_start, events.positions[at], NEVER)
        self.first[of_partition] = np.where(goes_on, self.first[of_partition], first)
        self.place[of_partition] = np.where(goes_on, self.place[of_partition], places[at])
        self.count[of_partition] = np.where(goes_on, self.count[of_partition] + n_new, lasts - at + 1)
        self.last[of_partition] = events.positions[lasts]
        for step in range(self.n_before):
            self.recent[of_partition, step] = batch.ts[events.rows[np.maximum(lasts - step, 0)]]
        self.has_ends[of_partition] |= n_new > 0
        return size

    def first_open(self, codes: Ints, following: NextEvents) -> Ints:
        """Return where the first open run begins, or a position after it if it has ended."""
        first = self.first[codes]
        is_open = first != NEVER
        ends = is_past(self.plan, self.place[codes], following.places(self.plan))
        if self.runs.adjacent:
            ends |= self.last[codes] != following.positions - 1
        if self.runs.high is not None:
            ends |= self.count[codes] >= self.runs.high
        for condition in self.times:
            ends |= condition.fails(following.ts, self.recent[codes]) & (self.count[codes] >= condition.steps)
        return np.where(is_open, np.where(ends, first, first - 1) + 1, following.positions)

    def searched(self, batch: Batch, rows: RowsByPartition) -> RowsByPartition:
        """Return those that fit the variable."""
        return rows.where(fitting_rows(self.runs, self.plan, batch))

    def precedes_longer(self, batch: Batch, chosen: ChosenIntervals, open_from: Ints, *, ids_rise: bool) -> Bits:  # noqa: ARG002
        """Return that all do where ids rise, or a run is one match."""
        return np.full(len(chosen), ids_rise or self.runs.needs_order != "all")

    def open_from(self, batch: Batch, rows: RowsByPartition, following: NextEvents) -> Ints:
        """Return the first of some rows with which a run begins that the next event may go on with."""
        events, _, reach = linked_rows(self.runs, self.plan, batch, rows)
        edges = events.edges
        ends = edges[1:]
        places = events.positions if self.plan.window.counted else batch.ts[events.rows]
        first = np.maximum(
            np.searchsorted(reach, ends - 1), indexes_inside(self.plan, places, edges, following.places(self.plan))
        )
        if self.runs.high is not None:
            first = np.maximum(first, ends - (self.runs.high - 1))
        if self.runs.adjacent:
            first = np.where(events.positions[ends - 1] != following.positions - 1, ends, first)
        recent = np.stack([batch.ts[events.rows[np.maximum(ends - 1 - i, 0)]] for i in range(self.n_before)], axis=1)
        for condition in self.times:
            later = np.where(condition.fails(following.ts, recent), ends - condition.steps + 1, first)
            first = np.maximum(first, later)
        return first
