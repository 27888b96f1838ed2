"""Run a query over batches of a file in the order of its chosen matches, which all come at the end.

Events are looked at once there are twice as many as the last time left over. Those left over are the events with
which a match may begin that later events extend, and those after them. So the work grows as the number of events, and
the memory as the events that are left over and those of the matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch
from acep.matches.bundle_chain import BundleChain
from acep.matches.found_columns import FoundColumns, concatenate
from acep.matches.records import Found
from acep.ordered.interval_matches import ChosenIntervals, matches_of_intervals
from acep.ordered.kept_events import join_batches
from acep.ordered.next_events import rises_later
from acep.ordered.ordered_executor import OrderedExecutor
from acep.ordered.partition_rows import rows_by_partition
from acep.pattern.tree import Output
from acep.plan.compile import Plan

__all__ = ["OrderedPartsExecutor", "final_matches"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]

FEW = 1 << 16
"""So many events are looked at together, or more."""


@dataclass
class OrderedPartsExecutor(OrderedExecutor):
    """The executor of a plan over batches that may all be read before a match is given."""

    pending: list[Batch] = field(default_factory=list)
    left_over: int = 0  # events, of those that were looked at
    final: list[Sequence[Found]] = field(default_factory=list)

    def push(self, batch: Batch) -> Sequence[Found]:
        """Take in events; return nothing."""
        self.totals.events += len(batch)
        if len(batch):
            self.pending.append(batch)
        if sum(map(len, self.pending)) >= max(FEW, 2 * self.left_over):
            self._search(may_continue=True)
        return []

    def finish(self) -> Sequence[Found]:
        """Return all matches, with their bundles."""
        self._search(may_continue=False)
        parts = [part for part in self.final if len(part)]
        columns = [part for part in parts if isinstance(part, FoundColumns)]
        matches: Sequence[Found] = [match for part in parts for match in part]
        if len(columns) == len(parts):
            matches = concatenate(columns) if columns else []
        if isinstance(matches, FoundColumns):
            matches = matches.take(np.argsort(matches.end, kind="stable"))
        else:
            matches = sorted(matches, key=lambda match: match.end)
        self.totals.matches = len(matches)
        return BundleChain(len(self.plan.keys), self.plan.window.span).matches(matches)

    def _search(self, *, may_continue: bool) -> None:
        """Find the matches in the pending events, and keep those events that are left over."""
        if not self.pending:
            return
        batch = join_batches(self.pending)
        chosen = None if batch.ids is None and may_continue else self.find(batch, may_continue=may_continue)
        if chosen is None:
            # Positions are ids, or ids decide between matches: all events that are left over are needed together.
            self.pending, self.left_over = [batch], len(batch)
            if not may_continue:
                matches, counts = self.run_otherwise(batch)
                self.final.append(matches)
                self.totals.touches += counts.touches
                self.totals.nodes += counts.nodes
            return
        if may_continue:
            assert chosen.open_from is not None
            rows, newest = chosen.rows, int(batch.ts[-1])
            chosen, keep = final_matches(self.plan, batch, chosen, chosen.open_from, newest)
            left_over = _rows_from(self, batch, rows.rows[keep[keep < rows.edges[1:]]])
            self.pending = [batch.take(left_over)] if len(left_over) else []
            self.left_over = len(left_over)
        self.final.append(matches_of_intervals(self.plan, batch, chosen))
        self.totals.touches += chosen.work
        self.totals.nodes += len(chosen)


def final_matches(
    plan: Plan, batch: Batch, chosen: ChosenIntervals, open_from: Ints, next_ts: int, precedes: Bits | None = None
) -> tuple[ChosenIntervals, Ints]:
    """Return the matches that later events cannot change, none of which comes before ``next_ts``, and for each
    partition the first of the rows that are left over. ``open_from``: the first row with which a match may begin that
    later events extend. ``precedes``: the matches of NON OVERLAP that stand before those that begin with the
    same row and end later."""
    edges, firsts, lasts = chosen.rows.edges, chosen.firsts, chosen.lasts
    of_match = np.searchsorted(edges, firsts, "right") - 1  # its partition
    is_final = firsts <= open_from[of_match] if plan.query.output.is_shortest else firsts < open_from[of_match]
    if plan.query.output is Output.NON_OVERLAP:
        ts = batch.ts[chosen.rows.rows]
        if precedes is not None:
            is_final |= precedes & (firsts == open_from[of_match])
        if not rises_later(plan):
            # A match may still give way to one that begins and ends at the same times, and has lesser ids.
            open_starts = np.minimum(np.maximum(open_from[of_match], firsts + 1), lasts + 1)
            is_final &= (open_starts > lasts) | (ts[np.minimum(open_starts, lasts)] > ts[firsts])
        is_final |= ts[lasts] < next_ts
        is_final &= ~_occurs_up_to(~is_final, of_match)  # what comes after one that is not final depends on it
    keep = open_from.copy()
    np.minimum.at(keep, of_match[~is_final], firsts[~is_final])
    np.maximum.at(keep, of_match[is_final], chosen.next_starts(plan)[is_final])
    return chosen.select_matches(is_final), keep


def _occurs_up_to(is_so: Bits, groups: Ints) -> Bits:
    """Return for each of some things, which stand group by group, whether one of its group up to it is so."""
    counts = np.cumsum(is_so)
    before = np.concatenate([[0], counts])[np.searchsorted(groups, groups)]
    return counts > before


def _rows_from(executor: OrderedPartsExecutor, batch: Batch, first_rows: Ints) -> Ints:
    """Return the rows of a batch from some rows on in the partition of each, in the order of the stream."""
    everything = rows_by_partition(executor.plan, batch)
    partitions = np.full(len(batch), -1, np.int64)
    partitions[everything.rows] = everything.begins
    begins = np.full(len(batch) + 1, len(batch), np.int64)
    begins[partitions[first_rows]] = first_rows
    return np.flatnonzero((partitions >= 0) & (np.arange(len(batch)) >= begins[partitions]))
