"""Group matches by partition and match bundle, or by partition and match point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns, ops_of
from acep.matches.group_columns import Groups, merge_groups, object_keys, objects
from acep.matches.records import Found

__all__ = ["bundle_count", "group_matches", "groups_of_counts", "point_changes"]


def group_matches(records: Sequence[Found], by: str) -> Groups:
    """Return the groups of matches with equal key and equal ``by`` (``"bundle"`` or ``"end"``), sorted by ``by``.

    >>> list(group_matches([Found((), 1, end, error, (), 5) for end, error in ((5, 1), (7, 0))], "bundle"))
    [Group(key=(), first=5, last=7, matches=2, best=0)]
    """
    return merge_groups(_single(records, by))


def point_changes(records: Sequence[Found]) -> Groups:
    """Return how many more matches of each partition, match point and error there are after matches that come and go.
    ``matches`` of a group is this difference, and ``best`` the error; groups without a difference are left out. They
    are sorted by match point.

    >>> list(point_changes([Found((), 1, 5, 0, (("a", (i,)),), 5, op=op) for i, op in ((1, -1), (2, -1), (3, 1))]))
    [Group(key=(), first=5, last=5, matches=-1, best=0)]
    """
    changes = merge_groups(_single(records, "end", signed=True), apart=True)
    return changes.take(np.flatnonzero(changes.matches))


def _single(records: Sequence[Found], by: str, *, signed: bool = False) -> Groups:
    """Return a group for each match; ``signed``: of -1 match for one that is taken back."""
    if isinstance(records, FoundColumns):
        matches = ops_of(records) if signed else np.ones(len(records), np.int64)
        return Groups(records.keys, getattr(records, by), records.end, matches, records.error, records.scale)
    begin, end, ops = (np.array([getattr(match, name) for match in records], np.int64) for name in (by, "end", "op"))
    matches = ops if signed else np.ones(len(records), np.int64)
    return Groups(object_keys([m.key for m in records]), begin, end, matches, objects([m.error for m in records]), 1)


def groups_of_counts(counted: Counted, by: str) -> Groups:
    """Return the same groups for counted matches. ``by`` is ``"end"`` where rows are match points, and ``"bundle"``
    where they are bundles, or match points without a number of matches."""
    has_numbers = by == "bundle" and len(counted.matches)
    matches = counted.matches if has_numbers else np.ones(len(counted), np.int64)
    begin = counted.bundle if by == "bundle" else counted.last
    return merge_groups(Groups(counted.keys, begin, counted.last, matches, counted.error, counted.scale))


def bundle_count(records: Sequence[Found]) -> int:
    """Return the number of bundles."""
    return len(group_matches(records, "bundle"))
