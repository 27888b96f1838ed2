"""Follow the open runs of one variable over a stream: from where on they go on, and when they end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch
from acep.ordered.interval_matches import ChosenIntervals
from acep.ordered.next_events import NEVER, NextEvents, TimeCondition, indexes_inside, is_past, rises_later, with_room
from acep.ordered.partition_rows import RowsByPartition
from acep.ordered.run_ends import RunEnds
from acep.ordered.run_rows import RunColumns
from acep.plan.chosen.query_runs import RunsPlan
from acep.plan.chosen.run_conditions import earlier
from acep.plan.compile import Plan
from acep.row_patterns.row_values import Evaluator

__all__ = ["OpenRuns"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]


class OpenRuns:
    """The first open run of each partition: the position and the place of its ``first`` event, the position of
    the last one, the times of the last ones, the last one first, and what tells whether it has become a match. The runs
    that begin later go on as far as it does, or further."""

    def __init__(self, runs: RunsPlan, plan: Plan) -> None:
        self.runs, self.plan = runs, plan
        self.evaluator = Evaluator(plan.schema.tick_ns)
        self.n_before = max([1, *(steps for _, steps in runs.linking)])
        conditions = (
            TimeCondition.from_expr(expr, plan, [(earlier(plan.schema.ts), steps)]) for expr, steps in runs.linking
        )
        self.times = [condition for condition in conditions if condition is not None]
        self.first, self.place, self.last = (np.zeros(0, np.int64) for _ in range(3))
        self.ends = RunEnds(runs)
        self.recent = np.zeros((0, self.n_before), np.int64)
        self.has_ends = np.zeros(0, bool)

    def relevant(self, batch: Batch) -> Bits:
        """Return whether each event fits; all do where it matters where they stand."""
        if self.runs.adjacent or self.plan.window.counted:
            return np.ones(len(batch), bool)  # the engine that makes all matches must see where events stand
        return RunColumns(self.runs, self.plan, batch, RowsByPartition.empty(), self.evaluator).fits()

    def make_room(self, size: int) -> None:
        """Make room for so many partitions."""
        room: Any = with_room
        self.first = room(self.first, size, NEVER)
        self.place, self.last = room(self.place, size, 0), room(self.last, size, 0)
        self.ends.make_room(size)
        self.recent, self.has_ends = room(self.recent, size, 0), room(self.has_ends, size, 0)

    def forget(self, codes: Ints) -> None:
        """Forget the open runs of partitions."""
        self.first[codes] = NEVER
        self.has_ends[codes] = False

    def follow(self, batch: Batch, rows: RowsByPartition, codes: Ints, is_new: Bits, *, anew: bool) -> int:
        """Follow the open runs over new events; see :class:`OpenMatches`."""
        columns = RunColumns(self.runs, self.plan, batch, rows, self.evaluator)
        events, reach = columns.events, columns.reach_by_links()
        edges = events.edges
        begins, lasts = edges[:-1], edges[1:] - 1
        if not len(begins):
            return 0
        of_partition = codes[events.rows[begins]]
        if anew:
            self.forget(of_partition)
        n_new = np.add.reduceat(is_new[events.rows].astype(np.int64), begins)
        goes_on = (self.first[of_partition] != NEVER) & (reach[begins] == lasts)
        can_go_on = columns.is_start() & (reach == np.repeat(lasts, np.diff(edges)))
        firsts = np.minimum.reduceat(np.where(can_go_on, np.arange(len(events)), len(events)), begins)
        self._begin(columns, of_partition[~goes_on], firsts[~goes_on], lasts[~goes_on])
        self.last[of_partition] = events.positions[lasts]
        for step in range(self.n_before):
            self.recent[of_partition, step] = batch.ts[events.rows[np.maximum(lasts - step, 0)]]
        begins = np.where(goes_on, lasts + 1 - n_new, np.minimum(firsts, lasts + 1))
        sizes = lasts + 1 - begins
        news = np.arange(sizes.sum()) + np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
        of_news = np.repeat(of_partition, sizes)
        self.has_ends[of_news[self.ends.add(columns, news, of_news)]] = True
        if not anew:
            self.has_ends[of_partition[~goes_on & (n_new > 0)]] = True  # for a run that has ended
        return len(events)

    def _begin(self, columns: RunColumns, codes: Ints, firsts: Ints, lasts: Ints) -> None:
        """Let the first open runs of partitions begin with events, if they are not after the last ones."""
        self.first[codes] = NEVER
        codes, firsts = codes[firsts <= lasts], firsts[firsts <= lasts]
        ts, positions = columns.ts[firsts], columns.positions[firsts]
        self.first[codes], self.place[codes] = positions, positions if self.plan.window.counted else ts
        self.ends.begin(codes, ts)

    def first_open(self, codes: Ints, following: NextEvents) -> Ints:
        """Return where the first open run begins, or a position after it if it has ended."""
        first = self.first[codes]
        has_none, ends = first == NEVER, self._sizes_end(codes, 1)
        ends |= is_past(self.plan, self.place[codes], following.places(self.plan))
        if self.runs.adjacent:
            has_none |= self.last[codes] != following.positions - 1
        for condition in self.times:
            fails = condition.fails(following.ts, self.recent[codes])
            if condition.steps == 1:
                has_none |= fails
            ends |= fails & (self.ends.sizes[codes] >= condition.steps)
        return np.where(has_none, following.positions, np.where(ends, first, first - 1) + 1)

    def _sizes_end(self, codes: Ints, times: int) -> Bits:
        """Return whether the first open runs have so many times as many events as a run may have."""
        if self.runs.high is None:
            return np.zeros(len(codes), bool)
        return self.ends.sizes[codes] >= times * self.runs.high

    def is_stale(self, codes: Ints, following: NextEvents) -> Bits:
        """Return whether runs have ended so long ago that it is worth while to look for the first open ones."""
        is_long = is_past(self.plan, self.place[codes], following.places(self.plan), times=2)
        is_long |= self._sizes_end(codes, 2)
        steps = max((condition.steps for condition in self.times), default=1)
        if steps > 1:
            is_long |= self.ends.sizes[codes] >= 2 * steps
        is_long &= self.first[codes] != NEVER
        return is_long

    def rows_to_search(self, batch: Batch, rows: RowsByPartition) -> RowsByPartition:
        """Return those that fit the variable."""
        return rows.select_rows(RunColumns(self.runs, self.plan, batch, RowsByPartition.empty(), self.evaluator).fits())

    def precedes_longer(self, batch: Batch, chosen: ChosenIntervals, open_from: Ints) -> Bits:  # noqa: ARG002
        """Return that all do where a run is one match, or later ids are greater."""
        return np.full(len(chosen), self.runs.needs_order != "all" or rises_later(self.plan))

    def open_from(self, batch: Batch, rows: RowsByPartition, following: NextEvents) -> Ints:
        """Return the first of some rows with which a run begins that the next event may go on with."""
        columns = RunColumns(self.runs, self.plan, batch, rows, self.evaluator)
        events, reach = columns.events, columns.reach_by_links()
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
        starts = np.append(np.flatnonzero(columns.is_start()), len(events))
        open_starts: Ints = np.minimum(starts[np.searchsorted(starts, first)], ends)
        return open_starts
