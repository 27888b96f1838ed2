"""Say which matches that were given, and are not found again because partial matches were shed, are matches still.

A match depends on the events between its first and its last one; with negations, on those of a window more at either
side. Under skip till any match without negations it depends on its own events alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from acep.arrivals.ordered_rows import bucket_of
from acep.events.batch import Batch
from acep.events.hashes import Hashes, hashes_of_columns
from acep.matches.found_columns import FoundColumns
from acep.pattern.tree import Strategy
from acep.plan.compile import Plan

__all__ = ["Changes", "by_itself", "sure"]

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Changes:
    """The events that came or went at once: their times by partition bucket, and the ids of those that went.

    ``hashes``: those of the partitions of the events, or ``None`` where an event bears on all partitions.
    """

    def __init__(self, ts: Ints, hashes: Hashes | None, gone: Batch | None) -> None:
        self.ts = np.sort(ts)
        self.of: dict[int, Ints] | None = None
        if hashes is not None:
            buckets = bucket_of(hashes)
            self.of = {int(one): np.sort(ts[buckets == one]) for one in np.unique(buckets)}
        self.gone: Any = np.zeros(0, np.int64)
        if gone is not None and gone.ids is not None:
            self.gone = np.array(gone.ids, object) if isinstance(gone.ids, list) else np.asarray(gone.ids)

    def within(self, low: Ints, high: Ints, hashes: Hashes) -> Mask:
        """Return for each match, of a partition with this hash, whether an event came or went from ``low`` to
        ``high``."""
        if self.of is None:
            return _any(self.ts, low, high)
        found = np.zeros(len(low), bool)
        buckets = bucket_of(hashes)
        for one in np.unique(buckets).tolist():
            if one in self.of:
                rows = np.flatnonzero(buckets == one)
                found[rows] = _any(self.of[one], low[rows], high[rows])
        return found


def sure(plan: Plan, found: FoundColumns, changes: Changes) -> Mask:
    """Return which of some matches, which were matches before some changes, surely are so after them too.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> plan = assumed_plan(acep.regex("ab", within=5))
    >>> one = np.array([1])
    >>> trail = {"offsets": np.array([0, 2]), "ids": np.array([7, 9]), "vars": np.array([0, 1])}
    >>> match = FoundColumns(one, one + 3, one, one, 1, (), **trail, variables=("a", "b"))
    >>> came = Changes(np.array([2]), None, None)
    >>> sure(plan, match, came).tolist()
    [True]
    >>> went = Changes(np.array([4]), None, Batch(np.array([4]), None, np.array([9]), {}))
    >>> sure(plan, match, went).tolist()
    [False]
    """
    whole = np.ones(len(found), bool)
    if not len(found):
        return whole
    if len(changes.gone):
        whole = ~np.logical_or.reduceat(np.isin(found.ids, changes.gone), found.offsets[:-1])
    negations, window = plan.automaton.negations, plan.window
    if by_itself(plan):
        return whole
    low, high = found.start, found.end
    if any(one.leading or one.trailing for one in negations):
        if window.counted or window.span is None:
            return np.zeros(len(found), bool)
        low, high = low - window.span, high + window.span
    hashes = hashes_of_columns(found.keys, len(found)) if found.keys else np.zeros(len(found), np.uint64)
    return whole & ~changes.within(low, high, hashes)


def by_itself(plan: Plan) -> bool:
    """Return whether a match depends on its own events alone, so that other events neither make nor break it."""
    alone = plan.query.strategy is Strategy.SKIP_TILL_ANY_MATCH and plan.query.graph is None
    return alone and not plan.automaton.negations and not plan.window.counted


def _any(ts: Ints, low: Ints, high: Ints) -> Mask:
    """Return for each span whether one of the times, which rise, is in it."""
    found: Mask = np.searchsorted(ts, low) < np.searchsorted(ts, high, "right")
    return found
