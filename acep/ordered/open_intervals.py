"""Follow the open matches whose conditions are functions of the row over a stream, by passes in the native core."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch
from acep.native import _native
from acep.ordered.interval_matches import ChosenIntervals
from acep.ordered.interval_rows import IntervalBits, bits_of_intervals, matters, places_of, span_of
from acep.ordered.next_events import NEVER, NextEvents, TimeCondition, indexes_inside, is_past, rises_later, with_room
from acep.ordered.partition_rows import RowsByPartition, rows_by_partition
from acep.plan.chosen.interval_automaton import IntervalsPlan, RowCondition
from acep.plan.compile import Plan
from acep.row_patterns.row_values import Evaluator

__all__ = ["OpenIntervals"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]

FRESH = (NEVER, 0, -1, 0)
"""The words of a state that is not reached: the position and the place of the first and of the last start."""


class OpenIntervals:
    """The states of open matches in each partition, with the first and the last event with which one has begun."""

    def __init__(self, states: IntervalsPlan, plan: Plan) -> None:
        self.states, self.plan = states, plan
        self.evaluator = Evaluator(plan.schema.tick_ns)
        tests = [arc.test for arc in states.arcs] + [test for _, test in states.ends]
        reads = [steps for test in tests for condition in test.conditions for _, _, steps in condition.reads]
        self.n_before = max(reads, default=0)
        self.n_states = 1 + max([0, *(max(arc.source, arc.target) for arc in states.arcs)])
        of_arcs = [[self._time_condition(condition) for condition in arc.test.conditions] for arc in states.arcs]
        self.times = [[condition for condition in of_arc if condition is not None] for of_arc in of_arcs]
        if states.skips:
            self.times = [[] for _ in states.arcs]  # a match waits for another event
        self.starts = np.zeros((0, self.n_states, 4), np.int64)
        self.recent = np.zeros((0, max(self.n_before, 1)), np.int64)
        self.has_ends = np.zeros(0, bool)

    def _time_condition(self, condition: RowCondition) -> TimeCondition | None:
        ts = self.plan.schema.ts
        names = [(slot, steps) for slot, column, steps in condition.reads if steps > 0 and column == ts]
        return TimeCondition.from_expr(condition.expr, self.plan, names)

    def relevant(self, batch: Batch) -> Bits:
        """Return whether each event may be bound, or keep a match from going on; all do where positions matter."""
        if not self.states.skips or self.plan.window.counted:
            return np.ones(len(batch), bool)
        rows = rows_by_partition(self.plan, batch)
        bits = np.zeros(len(batch), bool)
        bits[rows.rows] = matters(self.states, self.plan, batch, rows, self.evaluator)
        return bits

    def make_room(self, size: int) -> None:
        """Make room for so many partitions."""
        room: Any = with_room
        used = len(self.starts)
        self.starts, self.recent, self.has_ends = (room(a, size, 0) for a in (self.starts, self.recent, self.has_ends))
        self.starts[used:] = FRESH

    def forget(self, codes: Ints) -> None:
        """Forget the open matches of partitions."""
        self.starts[codes] = FRESH
        self.has_ends[codes] = False

    def follow(self, batch: Batch, rows: RowsByPartition, codes: Ints, is_new: Bits, *, anew: bool) -> int:
        """Follow the states of open matches over new events; see :class:`OpenMatches`."""
        edges = rows.edges
        begins, lasts = edges[:-1], edges[1:] - 1
        if not len(begins):
            return 0
        of_partition = codes[rows.rows[begins]]
        if anew:
            self.forget(of_partition)
        starts, has_ends, met = self._follow_states(batch, rows, is_new, self.starts[of_partition])
        self.starts[of_partition] = starts
        self.has_ends[of_partition] |= has_ends
        for step in range(self.recent.shape[1]):
            self.recent[of_partition, step] = batch.ts[rows.rows[np.maximum(lasts - step, 0)]]
        return met

    def _follow_states(self, batch: Batch, rows: RowsByPartition, is_new: Bits, starts: Ints) -> tuple[Ints, Bits, int]:
        """Return the starts by partition after the new ones of some rows, where a match has ended, and how many rows
        were met."""
        bits, news = bits_of_intervals(self.states, self.plan, batch, rows, self.evaluator), is_new[rows.rows]
        if not news.all():
            bits = bits.select_rows(news)
        edges = np.concatenate([[0], np.cumsum(news)])[rows.edges]
        places = places_of(self.plan, batch, rows)
        after, ended, met = _native.follow_intervals(
            bits.arcs,
            bits.ends,
            bits.skips,
            edges,
            np.ascontiguousarray(rows.positions[news]),
            None if places is None else np.ascontiguousarray(places[news]),
            span_of(self.plan),
            np.ascontiguousarray(starts.reshape(-1)),
        )
        return after.reshape(starts.shape), ended != 0, met

    def _firsts(self, starts: Ints, recent: Ints, ts: int) -> tuple[Ints, Ints]:
        """Return by partition the position and the place of the first start of a match that is open at a time; the
        position is ``NEVER`` if there is none."""
        goes_on = np.zeros(starts.shape[:2], bool)
        for arc, conditions in zip(self.states.arcs, self.times, strict=True):
            can_bind = np.ones(len(starts), bool)
            for condition in conditions:
                can_bind &= ~condition.fails(ts, recent)
            goes_on[:, arc.source] |= can_bind
        firsts = np.where(goes_on, starts[:, :, 0], NEVER)
        states = np.argmin(firsts, axis=1)
        partitions = np.arange(len(starts))
        return firsts[partitions, states], starts[partitions, states, 1]

    def first_open(self, codes: Ints, following: NextEvents) -> Ints:
        """Return where the first open match begins, or a position after it if its window is over."""
        first, place = self._firsts(self.starts[codes], self.recent[codes], following.ts)
        ends = is_past(self.plan, place, following.places(self.plan))
        return np.where(first != NEVER, np.where(ends, first, first - 1) + 1, following.positions)

    def is_stale(self, codes: Ints, following: NextEvents) -> Bits:
        """Return whether the first starts of states are so long ago that it is worth while to look for later ones."""
        first, place = self._firsts(self.starts[codes], self.recent[codes], following.ts)
        is_long = is_past(self.plan, place, following.places(self.plan), times=2)
        is_long &= first != NEVER
        return is_long

    def rows_to_search(self, batch: Batch, rows: RowsByPartition) -> RowsByPartition:  # noqa: ARG002
        """Return all of them."""
        return rows

    def precedes_longer(self, batch: Batch, chosen: ChosenIntervals, open_from: Ints) -> Bits:
        """Return which ones do: all where each row is bound; else those that no open way stands before."""
        precedes = np.full(len(chosen), not self.states.skips)
        if not (self.states.skips and len(chosen) and rises_later(self.plan)):
            return precedes
        rows = chosen.rows
        of_match = np.searchsorted(rows.edges, chosen.firsts, "right") - 1
        tied = np.flatnonzero(chosen.firsts == open_from[of_match])
        bits = bits_of_intervals(self.states, self.plan, batch, rows, self.evaluator) if len(tied) else None
        for match in tied.tolist():
            assert bits is not None
            bound = set(chosen.places[chosen.offsets[match] : chosen.offsets[match + 1]].tolist())
            precedes[match] = not has_open_before(bits, bound, int(rows.edges[of_match[match] + 1]))
        return precedes

    def open_from(self, batch: Batch, rows: RowsByPartition, following: NextEvents) -> Ints:
        """Return the first of some rows with which a match begins that the next event may extend."""
        edges = rows.edges
        ends, everything = edges[1:], np.ones(len(batch), bool)
        fresh = np.zeros((len(ends), self.n_states, 4), np.int64)
        fresh[:] = FRESH
        starts, _, _ = self._follow_states(batch, rows, everything, fresh)
        recent = [batch.ts[rows.rows[np.maximum(ends - 1 - step, 0)]] for step in range(self.recent.shape[1])]
        firsts, _ = self._firsts(starts, np.stack(recent, axis=1), following.ts)
        indexes = [
            begin + int(np.searchsorted(rows.positions[begin:end], first))
            for begin, end, first in zip(edges[:-1].tolist(), ends.tolist(), firsts.tolist(), strict=True)
        ]
        places = rows.positions if self.plan.window.counted else batch.ts[rows.rows]
        inside = indexes_inside(self.plan, places, edges, following.places(self.plan))
        return np.maximum(np.array(indexes, np.int64), inside)


def has_open_before(bits: IntervalBits, bound: set[int], end: int) -> bool:
    """Return whether a way that begins with the first one of some ``bound`` rows, and is open before the row ``end``,
    binds a row where it first differs from them."""
    # The states of ways that bind the same rows so far, and of those that have bound one more.
    same, other = {0}, set[int]()
    for row in range(min(bound), end):
        arcs = [(source, target) for source, target, _, holds, _ in bits.arcs if holds is None or holds[row]]
        skips = [(source, target) for source, target, holds, _ in bits.skips if holds is None or holds[row]]
        other = {target for source, target in arcs + skips if source in other}
        bound_after = {target for source, target in arcs if source in same}
        if row in bound:
            same = bound_after
        else:
            other |= bound_after if row < max(bound) else set()
            same = {target for source, target in skips if source in same}
    return any(source in other for source, *_ in bits.arcs)
