"""Run a MATCH_RECOGNIZE clause over a stream: each match is given once no row that may still come can change it.

Of each partition the rows are kept from the earliest start on whose match is not decided, and those before it that
conditions and measures read (docs/internals/row_patterns.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.events.buffers import read_table, table_bytes
from acep.events.tables import attribute_tick
from acep.pattern.sql.clause_tree import RowsMode
from acep.plan.ordered.open_matches import add_open_matches, has_state, reach_ahead, reach_behind, reads_number
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.plan.ordered.pattern_states import StateKind
from acep.row_patterns.kept_rows import FEW, KeptRows
from acep.row_patterns.match_batch import MatchBatch
from acep.row_patterns.match_rows import SortedTable, match_table, partition_columns, result_tables, row_columns
from acep.row_patterns.open_rows import OpenPartitions, open_partitions
from acep.row_patterns.open_walks import OpenWalks, reads_labels
from acep.row_patterns.partition_choice import CELLS, PartitionChoice
from acep.row_patterns.partition_states import NEVER, PartitionStates
from acep.row_patterns.row_search import search_rows, window_of
from acep.row_patterns.row_values import Evaluator
from acep.row_patterns.search_limits import SearchLimits
from acep.row_patterns.sorted_rows import sort_rows
from acep.row_patterns.stream_time import time_column

__all__ = ["ClauseStream", "reach_of"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
LEAST_WALK = 64
"""An open match of fewer rows is searched for anew with each push, which takes less time than to walk on."""


@dataclass(frozen=True)
class Reach:
    """The rows that a plan reads around a match, ``behind`` and ``ahead`` of it, and whether the end of a partition, or
    the numbers of matches matter. ``has_deadlines``: time decides matches (WITHIN). ``walks``: an open match can be
    walked on from where it stood."""

    behind: int
    ahead: int
    ends_matter: bool
    numbers_matter: bool
    has_deadlines: bool
    walks: bool


def reach_of(plan: OrderedPlan) -> Reach:
    """Return how far a plan reads."""
    ahead, ends_matter = reach_ahead(plan), has_state(plan, StateKind.END)
    has_deadlines = plan.width is not None and not ahead and not ends_matter
    is_local = all(condition.is_local for condition in plan.conditions)
    walks = (is_local or not (ahead or reads_labels(plan))) and (plan.width is None or has_deadlines)
    return Reach(reach_behind(plan), ahead, ends_matter, reads_number(plan), has_deadlines, walks)


class ClauseStream:
    """A clause over rows that come in the order of time. ``plan``: that of the clause; ``arrow``: the columns;
    ``choice``: the partitions that a budget pays for.

    Rows of the same time are in the order of the other keys, so they wait until time has passed where there are such
    keys."""

    def __init__(self, plan: OrderedPlan, arrow: pa.Schema, choice: PartitionChoice | None = None) -> None:
        self.choice = choice
        self.time = time_column(plan)
        self.plan, self.arrow = add_open_matches(plan), arrow
        self.reach = reach_of(plan)
        self.evaluator = Evaluator(attribute_tick(plan.schema))  # copies share it
        self.walks = OpenWalks(self.plan, self.evaluator)
        self.is_copy = False
        self.waiting = KeptRows(arrow)  # those of a time that goes on, all with the code 0
        self.released_until: int | None = None  # the time that those that wait do not precede
        self.kept = KeptRows(arrow)  # those that matches may still need
        self.tails = KeptRows(arrow)  # of partitions that are walked on: the last rows that conditions read
        self.partitions = PartitionStates()
        self._empty_result: pa.Table | None = None
        self.searched_rows = 0  # so far, those that were searched again among them

    def __len__(self) -> int:
        return len(self.waiting) + len(self.kept)

    def copy(self) -> ClauseStream:
        """Return a stream in the same state, which goes on alone."""
        other = ClauseStream.__new__(ClauseStream)
        vars(other).update(vars(self))
        other.partitions, other.is_copy = self.partitions.copy(), True
        if not self.walks.is_local:  # what is bound changes with each walk
            other.partitions.waits[:] = -1
        return other

    def empty_result(self) -> pa.Table:
        """Return the columns of the result, without rows."""
        if self._empty_result is None:
            self._empty_result = match_table(self.plan, self.arrow.empty_table())
        return self._empty_result

    def push(self, rows: pa.Table | None, clock: int) -> pa.Table:
        """Take in the next rows, in the order of time; return the rows of matches that are decided. ``clock``: the
        earliest time, in ticks of the plan, that a row after these may have."""
        are_texts_new = not self.is_copy and self.evaluator.forget_texts()
        if are_texts_new and not self.walks.is_local:
            self.walks.bound = None
            self.partitions.waits[:] = -1
        new_rows = self.arrow.empty_table() if rows is None else rows
        if len(self.plan.order) > 1:
            new_rows = self._release(new_rows, clock)
        result = self._search(new_rows, clock)
        if self.choice is not None and self.choice.budget.memory is not None:
            self._fit_memory(self.choice)
        if are_texts_new:
            self.evaluator.note_texts()
        return result

    def _release(self, new_rows: pa.Table, clock: int) -> pa.Table:
        """Return the rows whose time has passed, those that waited among them, and let the others wait."""
        if clock != self.released_until:  # else none of those that wait goes
            new_rows = pa.concat_tables([self._take_waiting(), new_rows])
        self.released_until = clock
        is_later = np.asarray(row_columns(self.plan, new_rows, self.evaluator)[self.time].values) >= clock
        self.waiting = self.waiting.add(new_rows.filter(pa.array(is_later)), np.zeros(int(is_later.sum()), np.int64))
        return new_rows.filter(pa.array(~is_later))

    def _take_waiting(self) -> pa.Table:
        """Take out the rows that wait."""
        rows, self.waiting = self.waiting.all_rows()[0], KeptRows(self.arrow)
        return rows

    def finish(self) -> pa.Table:
        """End the stream; return the rows of all matches that are left."""
        return self._search(self._take_waiting(), None)

    def _search(self, new_rows: pa.Table, clock: int | None) -> pa.Table:
        """Search the partitions of new rows, and those whose windows are over (``clock`` ``None``: all, for the last
        time)."""
        columns = partition_columns(self.plan, new_rows, self.evaluator)
        codes = self.partitions.add(self.plan.partition, columns, new_rows.num_rows)
        if self.choice is not None:
            new_rows, codes = self._give_up(self.choice, new_rows, codes, clock)
        began = 0.0 if self.choice is None or self.choice.pace is None else self.choice.pace.read_clock()
        result = self._search_partitions(new_rows, codes, clock)
        if self.choice is not None and self.choice.pace is not None:
            self.choice.searching += self.choice.pace.read_clock() - began
        return result

    def _search_partitions(self, new_rows: pa.Table, codes: Ints, clock: int | None) -> pa.Table:
        """Search partitions that have new rows, by their codes, or whose windows are over."""
        is_searched = self.partitions.find_searched(codes, clock)
        if clock is not None and (self.partitions.waits[codes] >= 0).any():
            still_open = self._walk_on(new_rows, codes, clock)
            is_searched &= ~still_open
            if (goes_on := still_open[codes]).any():
                new_rows, codes = new_rows.filter(pa.array(~goes_on)), codes[~goes_on]
        if not new_rows.num_rows and not is_searched.any():
            return self.empty_result()
        earlier, earlier_codes, self.kept = self.kept.take(is_searched)
        self.tails = self.tails.take(is_searched)[2]
        table, codes = pa.concat_tables([earlier, new_rows]), np.concatenate([earlier_codes, codes])
        table = table.combine_chunks() if len(codes) <= FEW else table
        return self._search_whole(table, codes, clock) if len(codes) else self.empty_result()

    def _give_up(
        self, choice: PartitionChoice, new_rows: pa.Table, codes: Ints, clock: int | None
    ) -> tuple[pa.Table, Ints]:
        """Give up the partitions that the budget does not pay for; return the new rows of the others."""
        is_lost = choice.choose(self.partitions, codes, clock)
        if not is_lost.any():
            return new_rows, codes
        self._forget(choice, is_lost)
        stays = ~is_lost[codes]
        choice.shed += len(codes) - int(stays.sum())
        return new_rows.filter(pa.array(stays)), codes[stays]

    def _forget(self, choice: PartitionChoice, is_lost: Flags) -> None:
        """Drop partitions that are given up, with their rows."""
        lost = np.flatnonzero(is_lost)
        if self.partitions.sizes[lost].any():
            _, codes, self.kept = self.kept.take(is_lost)
            self.kept, self.tails = self.kept.compact(), self.tails.take(is_lost)[2].compact()
            choice.shed += len(codes)
        self.partitions.drop(lost)

    def _fit_memory(self, choice: PartitionChoice) -> None:
        """Give up partitions until what is kept fits into the budget."""
        size, rows = self.kept.size() + self.tails.size(), len(self.kept)
        self._forget(choice, choice.fit_memory(self.partitions, size / max(rows, 1), rows))

    def _open_partitions(self, table: pa.Table, codes: Ints, clock: int | None) -> OpenPartitions:
        """Bring rows into order, with an open row in each partition."""
        columns = row_columns(self.plan, table, self.evaluator)
        rows = sort_rows(table.num_rows, self.plan.partition, self.plan.order, columns)
        opened = open_partitions(rows, codes, columns, ahead=self.reach.ahead, is_last=clock is None)
        if clock is not None and not self.reach.ahead and not self.reach.ends_matter:
            opened.set_times(self.time, clock)
        opened.add_bits(self.plan, self.evaluator)
        return opened

    def _walk_on(self, new_rows: pa.Table, codes: Ints, clock: int) -> Flags:
        """Walk the open matches on over new rows; return by code which of them are still open, and take in their
        rows."""
        partitions = self.partitions
        goes_on = np.zeros(len(partitions.waits), bool)
        goes_on[codes] = (partitions.waits[codes] >= 0) & (partitions.deadlines[codes] >= clock)
        tails, tail_codes, self.tails = self.tails.take(goes_on)
        is_walked = goes_on[codes]
        table = pa.concat_tables([tails, new_rows.filter(pa.array(is_walked))])
        if not table.num_rows:
            return goes_on
        opened = self._open_partitions(table, np.concatenate([tail_codes, codes[is_walked]]), clock)
        earlier = np.bincount(tail_codes, minlength=len(goes_on))[opened.codes]
        states = self.walks.walk(opened, earlier, self.reach.ahead, partitions.waits[opened.codes])
        partitions.waits[opened.codes] = states
        goes_on[opened.codes] = states >= 0
        self.kept = self.kept.add(new_rows.filter(pa.array(goes_on[codes])), codes[goes_on[codes]])
        np.add.at(partitions.sizes, codes[goes_on[codes]], 1)
        self._keep_tails(table, opened, states >= 0)
        self.searched_rows += len(codes)
        if self.choice is not None:
            walked = np.bincount(codes[is_walked], minlength=len(goes_on))[opened.codes]
            self.choice.record(partitions.cells[opened.codes], walked, np.zeros(len(walked), np.int64))
        return goes_on

    def _keep_tails(self, table: pa.Table, opened: OpenPartitions, is_open: Flags) -> None:
        """Keep the last rows of open partitions, which conditions on the next ones read."""
        sizes = np.diff(opened.rows.partitions)
        counts = np.where(is_open, np.minimum(sizes, self.reach.behind + self.reach.ahead), 0)
        places = opened.last_places(counts)
        self.tails = self.tails.add(table.take(pa.array(opened.rows.order[places])), np.repeat(opened.codes, counts))

    def _search_whole(self, table: pa.Table, codes: Ints, clock: int | None) -> pa.Table:
        """Search whole partitions, and keep what later matches may need."""
        plan, partitions = self.plan, self.partitions
        opened = self._open_partitions(table, codes, clock)
        limits = SearchLimits(
            partitions.starts[opened.codes], opened.stops, partitions.numbers[opened.codes], opened.open_rows
        )
        rows, columns = opened.extended, opened.columns
        batches = list(search_rows(plan, rows, columns, self.evaluator, limits, opened.bits))
        covered, covered_ends = self._mark_covered(opened, limits, batches)
        tables = [self.empty_result()]
        if batches or not covered.all():
            tables = list(result_tables(plan, table, SortedTable(rows, columns), self.evaluator, batches, covered))
        self.searched_rows += table.num_rows
        sizes = np.diff(opened.rows.partitions)
        first_kept = sizes if clock is None else np.maximum(limits.next_starts - self.reach.behind, 0)
        counts = sizes - first_kept
        stays = opened.last_places(counts)
        self.kept = self.kept.add(table.take(pa.array(opened.rows.order[stays])), np.repeat(opened.codes, counts))
        waits = np.full(len(sizes), -1, np.int64)
        walks = (opened.stops - limits.next_starts >= LEAST_WALK) & self.reach.walks & (clock is not None)
        if not self.is_copy or self.walks.is_local:
            waits = self.walks.begin(opened, limits, self.reach.behind, walks)
        if walks.any():
            self._keep_tails(table, opened, waits >= 0)
        if self.choice is not None:
            n_matches = limits.last_numbers - partitions.numbers[opened.codes]
            self.choice.record(partitions.cells[opened.codes], sizes, n_matches)
        settled = {
            "starts": limits.next_starts - first_kept,
            "numbers": limits.last_numbers,
            "covered": np.maximum(covered_ends - first_kept, 0),
            "deadlines": self._deadlines(opened, limits, sizes),
            "waits": waits,
            "sizes": counts,
        }
        is_over = (counts == 0) & (not self.reach.numbers_matter or clock is None)
        partitions.settle(opened.codes, settled, is_over)
        return pa.concat_tables(tables)

    def _deadlines(self, opened: OpenPartitions, limits: SearchLimits, sizes: Ints) -> Ints:
        """Return for each partition the last time at which its open match is open."""
        deadlines = np.full(len(sizes), NEVER)
        if self.reach.has_deadlines:
            times, width = window_of(self.plan, opened.columns, self.evaluator.tick_ns)
            assert times is not None
            is_open = limits.next_starts < sizes
            starts = (opened.extended.partitions[:-1] + limits.next_starts)[is_open]
            deadlines[is_open] = _later_times(times[starts], width)
        return deadlines

    def _mark_covered(
        self, opened: OpenPartitions, limits: SearchLimits, batches: Sequence[MatchBatch]
    ) -> tuple[Flags, Ints]:
        """Return which rows WITH UNMATCHED ROWS does not give now, and how many rows of each partition stand before the
        end of its matches so far."""
        begins = opened.extended.partitions[:-1]
        before = self.partitions.covered[opened.codes]
        ends = before.copy()
        if self.plan.rows is not RowsMode.UNMATCHED:
            return np.ones(len(opened.extended), bool), ends
        firsts = begins + np.maximum(limits.starts, before)
        lasts = begins + limits.next_starts
        steps = np.zeros(len(opened.extended) + 1, np.int64)
        np.add.at(steps, firsts, firsts < lasts)
        np.add.at(steps, lasts, -(firsts < lasts).astype(np.int64))
        for batch in batches:
            np.maximum.at(ends, batch.partition, batch.first + np.diff(batch.offsets) - begins[batch.partition])
        return np.cumsum(steps[:-1]) <= 0, ends

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data with bytes."""
        rows, codes = self.kept.all_rows()
        return {
            "waiting": table_bytes(self.waiting.all_rows()[0]),
            "kept": table_bytes(rows),
            "codes": np.ascontiguousarray(codes, "<i8").tobytes(),
            "partitions": self.partitions.dump(),
            **({} if self.choice is None else {"choice": self.choice.dump()}),
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Read the state of :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError`, :class:`TypeError` or
        :class:`pyarrow.ArrowException` for other data."""
        waiting, rows = (read_table(data[name]).cast(self.arrow) for name in ("waiting", "kept"))
        codes = np.frombuffer(data["codes"], "<i8").astype(np.int64)
        partitions = PartitionStates.load(data["partitions"])
        if len(codes) != rows.num_rows or codes.min(initial=0) < 0:
            raise ValueError("codes")
        counts = np.bincount(codes, minlength=len(partitions.starts))
        if len(counts) > len(partitions.starts) or (partitions.starts > counts).any():
            raise ValueError("starts")
        if self.choice is not None:
            self.choice.load(data["choice"])
            if partitions.cells.min(initial=0) < -1 or partitions.cells.max(initial=0) >= CELLS:
                raise ValueError("cells")
        partitions.sizes[: len(counts)] = counts
        self.waiting = KeptRows(self.arrow).add(waiting, np.zeros(waiting.num_rows, np.int64))
        self.partitions = partitions
        self.kept, self.tails = KeptRows(self.arrow).add(rows, codes), KeptRows(self.arrow)


def _later_times(times: Ints, width: int) -> Ints:
    """Return times that are ``width`` ticks later, the last one at most.

    >>> (_later_times(np.array([-(2**63), 5, 2**62]), 2**63) - np.array([0, NEVER, NEVER])).tolist()
    [0, 0, 0]
    """
    ticks = times.astype(np.uint64)
    later: Ints = (ticks + np.minimum(np.uint64(NEVER) - ticks, np.uint64(width))).astype(np.int64)
    return later
