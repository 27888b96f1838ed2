"""Say what the next event of a stream may be, and which conditions it fails whatever its attributes are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch, Column
from acep.ordered.interval_matches import ChosenIntervals
from acep.ordered.partition_rows import RowsByPartition
from acep.pattern import expressions as ex
from acep.pattern.walk import leaves_of
from acep.plan.chosen.run_conditions import can_only_fail
from acep.plan.compile import Plan
from acep.plan.decimals import Typed
from acep.plan.schema import Kind
from acep.row_patterns.row_values import Evaluator, truth_bits

__all__ = [
    "LATEST",
    "NEVER",
    "NextEvents",
    "OpenMatches",
    "TimeCondition",
    "indexes_inside",
    "is_past",
    "rises_later",
    "with_room",
]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]

LATEST = int(np.iinfo(np.int64).max)
NEVER = LATEST
"""The position of a start that there is not."""


@dataclass(frozen=True)
class NextEvents:
    """The earliest event that may come: its time, and its position in each of some partitions."""

    ts: int
    positions: Ints

    def places(self, plan: Plan) -> Ints:
        """Return its place for the window in each partition."""
        return self.positions if plan.window.counted else np.full(len(self.positions), self.ts)


class OpenMatches(Protocol):
    """The matches of a stream that later events may extend, followed in each partition, which has a number (code).

    ``n_before``: how many rows before a new one its conditions read. ``has_ends``: by code, whether a match may have
    ended since the last call of :meth:`follow` with ``anew``.
    """

    n_before: int
    has_ends: Bits

    def relevant(self, batch: Batch) -> Bits:
        """Return whether each event of a batch can be in a match, or keep one from going on."""

    def make_room(self, size: int) -> None:
        """Make room for so many partitions."""

    def follow(self, batch: Batch, rows: RowsByPartition, codes: Ints, is_new: Bits, *, anew: bool) -> int:
        """Follow the open matches over the new ones of some rows, by row of the batch; return how many were met.
        ``codes``: of the partitions, by row of the batch. ``anew``: forget what was there before."""

    def forget(self, codes: Ints) -> None:
        """Forget the open matches of partitions."""

    def first_open(self, codes: Ints, following: NextEvents) -> Ints:
        """Return for partitions a position before which no open match begins; that of the next event if none is open.
        If it is that of an event, a match that begins with this one is open."""

    def is_stale(self, codes: Ints, following: NextEvents) -> Bits:
        """Return for partitions whether :meth:`first_open` is so far before the first open match that it is worth while
        to search the events that are kept."""

    def rows_to_search(self, batch: Batch, rows: RowsByPartition) -> RowsByPartition:
        """Return those of some rows that chosen matches are made of."""

    def open_from(self, batch: Batch, rows: RowsByPartition, following: NextEvents) -> Ints:
        """Return for each partition of some rows the first of them with which an open match begins; the end of those of
        the partition if none does."""

    def precedes_longer(self, batch: Batch, chosen: ChosenIntervals, open_from: Ints) -> Bits:
        """Return which of the matches of NON OVERLAP that begin with the first open event, ``open_from`` by partition,
        stand before all that begin with it and end later at the same time. The ids so far rise where they matter."""


class TimeCondition:
    """A condition of an event that only time can fail, and that then no later event passes. ``names``: of the earlier
    times that it reads, with how many events before they stand."""

    def __init__(self, expr: ex.Expr, plan: Plan, names: Sequence[tuple[str, int]]) -> None:
        self.expr, self.plan, self.names = expr, plan, names
        self.steps = max(steps for _, steps in names)
        self.evaluator = Evaluator(plan.schema.tick_ns)

    @classmethod
    def from_expr(cls, expr: ex.Expr, plan: Plan, names: Sequence[tuple[str, int]]) -> TimeCondition | None:
        """Return a condition as one of time; ``None`` if it is none. ``names``: see the class."""
        ts, earlier = plan.schema.ts, {name for name, _ in names}
        read = {leaf.name for leaf in leaves_of(expr) if isinstance(leaf, ex.Attribute)}
        if not names or not read <= {ts, *earlier}:
            return None
        if not can_only_fail(expr, lambda attribute: 1 if attribute.name == ts else 0):
            return None
        return cls(expr, plan, names)

    def fails(self, ts: int, recent: Ints) -> Bits:
        """Return whether the condition fails at a time. ``recent``: the times of the last events, by partition, the
        last one first."""
        kind = Kind.TIMESTAMP if self.plan.schema.instants else Kind.INT
        inputs = {name: Column(kind, recent[:, steps - 1]) for name, steps in self.names}
        inputs[self.plan.schema.ts] = Column(kind, np.full(len(recent), ts, np.int64))
        fails: Bits = truth_bits(self.evaluator.column(Typed(self.expr, "bool"), inputs, len(recent))) == 0
        return fails


def is_past(plan: Plan, places: Ints, following: Ints, times: int = 1) -> Bits:
    """Return whether a window, or so many one after another, from each place are over at the place of the next
    event."""
    span = plan.window.span
    if span is None:
        return np.zeros(len(places), bool)
    # The places rise, and their difference may exceed 63 bits.
    is_over: Bits = (following > places) & (
        (following - places).view(np.uint64) > np.uint64(min(times * span, 2**64 - 1))
    )
    return is_over


def indexes_inside(plan: Plan, places: Ints, edges: Ints, following: Ints) -> Ints:
    """Return for each partition of some rows the first one whose window is not over at the place of the next event."""
    indexes = edges[:-1].copy()
    if plan.window.span is None:
        return indexes
    past = is_past(plan, places, np.repeat(following, np.diff(edges)))
    counts = np.concatenate([[0], np.cumsum(past)])
    indexes += counts[edges[1:]] - counts[edges[:-1]]
    return indexes


def rises_later(plan: Plan) -> bool:
    """Return whether the id of a later event is known to be greater than those of the events before it at its time."""
    return plan.schema.id is None and plan.schema.seq is None


def with_room(array: npt.NDArray[np.generic], size: int, fill: int) -> npt.NDArray[np.generic]:
    """Return an array that has room for so many entries, with ``fill`` in the new ones."""
    if size <= len(array):
        return array
    grown = np.full((2 * size, *array.shape[1:]), fill, array.dtype)
    grown[: len(array)] = array
    return grown
