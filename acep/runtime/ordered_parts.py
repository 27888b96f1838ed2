"""Run a query over batches of a file in the order of its chosen matches, which all come at the end.

Events are looked at once there are twice as many as the last time left over. Those left over are the events with
which a match may begin that later events extend, and those after them. So the work grows as the number of events, and
the memory as the events that are left over and those of the matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch
from acep.matches.bundle_chain import BundleChain
from acep.matches.found_columns import FoundColumns, concatenate, end_to_end
from acep.matches.records import Found
from acep.pattern.tree import Output
from acep.runtime.interval_matches import ChosenIntervals, matches_of_intervals
from acep.runtime.ordered_executor import OrderedExecutor
from acep.runtime.partition_rows import rows_by_partition

__all__ = ["OrderedPartsExecutor"]

Ints = npt.NDArray[np.int64]

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
            self._look(more=True)
        return []

    def finish(self) -> Sequence[Found]:
        """Return all matches, with their bundles."""
        self._look(more=False)
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

    def _look(self, *, more: bool) -> None:
        """Find the matches in the pending events, and keep those events that are left over."""
        if not self.pending:
            return
        batch = _joined(self.pending)
        chosen = None if batch.ids is None and more else self.find(batch, more=more)
        if chosen is None:
            # Positions are ids, or ids decide between matches: all events that are left over are needed together.
            self.pending, self.left_over = [batch], len(batch)
            if not more:
                matches, counts = self.run_otherwise(batch)
                self.final.append(matches)
                self.totals.touches += counts.touches
                self.totals.nodes += counts.nodes
            return
        if more:
            chosen, rows = _settled(self, batch, chosen)
            self.pending = [batch.at(rows)] if len(rows) else []
            self.left_over = len(rows)
        self.final.append(matches_of_intervals(self.plan, batch, chosen))
        self.totals.touches += chosen.work
        self.totals.nodes += len(chosen)


def _settled(executor: OrderedPartsExecutor, batch: Batch, chosen: ChosenIntervals) -> tuple[ChosenIntervals, Ints]:
    """Return the matches that later events cannot change, and the rows of the batch that are left over."""
    rows, open_from = chosen.rows, chosen.open_from
    assert open_from is not None
    edges, firsts, lasts = rows.edges, chosen.firsts, chosen.lasts
    output = executor.plan.query.output
    of_match = np.searchsorted(edges, firsts, "right") - 1  # its partition
    # A match of NON OVERLAP may still give way to one that ends at the same time.
    is_final = firsts <= open_from[of_match] if output.is_shortest else firsts < open_from[of_match]
    if output is Output.NON_OVERLAP:
        is_final |= batch.ts[rows.rows[lasts]] < batch.ts[-1]
    keep = open_from.copy()
    np.minimum.at(keep, of_match[~is_final], firsts[~is_final])
    np.maximum.at(keep, of_match[is_final], chosen.next_starts(executor.plan)[is_final])
    return chosen.where(is_final), _rows_from(executor, batch, rows.rows[keep[keep < edges[1:]]])


def _rows_from(executor: OrderedPartsExecutor, batch: Batch, first_rows: Ints) -> Ints:
    """Return the rows of a batch from some rows on in the partition of each, in the order of the stream."""
    everything = rows_by_partition(executor.plan, batch)
    partitions = np.full(len(batch), -1, np.int64)
    partitions[everything.rows] = everything.begins
    begins = np.full(len(batch) + 1, len(batch), np.int64)
    begins[partitions[first_rows]] = first_rows
    return np.flatnonzero((partitions >= 0) & (np.arange(len(batch)) >= begins[partitions]))


def _joined(batches: Sequence[Batch]) -> Batch:
    """Return batches as one."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    ids: Any = None
    if isinstance(first.ids, list):
        ids = [event for batch in batches for event in batch.ids or ()]
    elif first.ids is not None:
        ids = np.concatenate([np.asarray(batch.ids, np.int64) for batch in batches])
    types = [batch.types for batch in batches if batch.types is not None]
    return Batch(
        ts=np.concatenate([batch.ts for batch in batches]),
        types=end_to_end(types) if types else None,
        ids=ids,
        columns={name: end_to_end([batch.columns[name] for batch in batches]) for name in first.columns},
    )
