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

__all__ = ["Changes", "depends_on_itself", "surely_remain"]

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Changes:
    """The events that came or went at once: their times by partition bucket, and the ids of those that went.

    ``hashes``: those of the partitions of the events, or ``None`` where an event bears on all partitions.
    """

    def __init__(self, ts: Ints, hashes: Hashes | None, removed: Batch | None) -> None:
        self.ts = np.sort(ts)
        self.ts_by_bucket: dict[int, Ints] | None = None
        if hashes is not None:
            buckets = bucket_of(hashes)
            self.ts_by_bucket = {int(bucket): np.sort(ts[buckets == bucket]) for bucket in np.unique(buckets)}
        self.removed_ids: Any = np.zeros(0, np.int64)
        if removed is not None and removed.ids is not None:
            self.removed_ids = (
                np.array(removed.ids, object) if isinstance(removed.ids, list) else np.asarray(removed.ids)
            )

    def has_change_inside(self, low: Ints, high: Ints, hashes: Hashes) -> Mask:
        """Return for each match, of a partition with this hash, whether an event came or went from ``low`` to
        ``high``."""
        if self.ts_by_bucket is None:
            return _any_inside(self.ts, low, high)
        mask = np.zeros(len(low), bool)
        buckets = bucket_of(hashes)
        for bucket in np.unique(buckets).tolist():
            if bucket in self.ts_by_bucket:
                rows = np.flatnonzero(buckets == bucket)
                mask[rows] = _any_inside(self.ts_by_bucket[bucket], low[rows], high[rows])
        return mask


def surely_remain(plan: Plan, matches: FoundColumns, changes: Changes) -> Mask:
    """Return which of some matches, which were matches before some changes, surely are so after them too.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> plan = assumed_plan(acep.regex("ab", within=5))
    >>> start = np.array([1])
    >>> trail = {"offsets": np.array([0, 2]), "ids": np.array([7, 9]), "vars": np.array([0, 1])}
    >>> match = FoundColumns(start, start + 3, start, start, 1, (), **trail, variables=("a", "b"))
    >>> came = Changes(np.array([2]), None, None)
    >>> surely_remain(plan, match, came).tolist()
    [True]
    >>> went = Changes(np.array([4]), None, Batch(np.array([4]), None, np.array([9]), {}))
    >>> surely_remain(plan, match, went).tolist()
    [False]
    """
    is_sure = np.ones(len(matches), bool)
    if not len(matches):
        return is_sure
    if len(changes.removed_ids):
        is_sure = ~np.logical_or.reduceat(np.isin(matches.ids, changes.removed_ids), matches.offsets[:-1])
    negations, window = plan.automaton.negations, plan.window
    if depends_on_itself(plan):
        return is_sure
    low, high = matches.start, matches.end
    if any(negation.leading or negation.trailing for negation in negations):
        if window.counted or window.span is None:
            return np.zeros(len(matches), bool)
        low, high = low - window.span, high + window.span
    hashes = hashes_of_columns(matches.keys, len(matches)) if matches.keys else np.zeros(len(matches), np.uint64)
    return is_sure & ~changes.has_change_inside(low, high, hashes)


def depends_on_itself(plan: Plan) -> bool:
    """Return whether a match depends on its own events alone, so that other events neither make nor break it."""
    alone = plan.query.strategy is Strategy.SKIP_TILL_ANY_MATCH and plan.query.graph is None
    return alone and not plan.automaton.negations and not plan.window.counted


def _any_inside(ts: Ints, low: Ints, high: Ints) -> Mask:
    """Return for each span whether one of the times, which rise, is in it."""
    mask: Mask = np.searchsorted(ts, low) < np.searchsorted(ts, high, "right")
    return mask
