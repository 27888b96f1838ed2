"""Keep the matches that were given and may still be taken back, and compare them with those found again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import column_of_values
from acep.events.event_log import bucket_of
from acep.events.hashes import hashes_of_columns
from acep.matches.found_columns import FoundColumns, concatenate
from acep.matches.match_ids import contents, kind_of_value
from acep.matches.records import Found

__all__ = ["GivenMatches"]

Buckets = npt.NDArray[np.bool_] | None
GONE = np.iinfo(np.int64).min
MOST_PARTS = 16  # parts that are kept apart; joining them takes time in proportion to all


@dataclass
class _Part:
    """Matches as columns, their starts (``GONE``: taken back), and the buckets of their partitions once needed."""

    found: FoundColumns
    start: npt.NDArray[np.int64]
    buckets: npt.NDArray[np.intp] | None = None

    def those(self, cut: int | None, buckets: Buckets) -> npt.NDArray[np.intp]:
        """Return which began at ``cut`` or later, in some buckets of partitions."""
        there = self.start > GONE if cut is None else self.start >= max(cut, GONE + 1)
        if buckets is not None and there.any():
            if self.buckets is None:
                self.buckets = bucket_of(hashes_of_columns(self.found.keys, len(self.found)))
            there = there & buckets[self.buckets]
        return np.flatnonzero(there)


class GivenMatches:
    """The matches of one plan that were given: columns of the native core, or records of the reference engine."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._records: list[Found] = []

    def __len__(self) -> int:
        return len(self._records) + sum(int(np.count_nonzero(part.start > GONE)) for part in self._parts)

    def add(self, found: Sequence[Found]) -> None:
        """Record that matches were given."""
        if not len(found):
            return
        if not isinstance(found, FoundColumns):
            self._records += found
            return
        self._parts.append(_Part(found, found.start.copy()))
        if len(self._parts) > MOST_PARTS:
            self._join()

    def revise(self, found: Sequence[Found], cut: int | None, buckets: Buckets) -> Sequence[Found]:
        """Compare ``found``, all matches that began at ``cut`` or later in some partitions (``None``: in all) as they
        are now, with those that were given. Return the difference, which is given from now on."""
        if isinstance(found, FoundColumns):
            return self._revise_columns(found, cut, buckets)
        gone = self._revise_records([one for one in found if cut is None or one.start >= cut], cut, buckets)
        if not self._parts:
            return gone
        empty = self._parts[0].found.take(np.zeros(0, np.intp))  # the native core may give an empty list
        return [*gone, *self._revise_columns(empty, cut, buckets)]

    def forget(self, cut: int) -> None:
        """Forget the matches that began before ``cut``."""
        self._records = [one for one in self._records if one.start >= cut]
        for part in self._parts:
            part.start[part.start < cut] = GONE
        if sum(len(part.found) for part in self._parts) > 2 * len(self):
            self._join()

    def _join(self) -> None:
        kept = [part.found.take(np.flatnonzero(part.start > GONE)) for part in self._parts]
        kept = [one for one in kept if len(one)]
        self._parts = []
        if kept:
            joined = concatenate(kept)
            self._parts = [_Part(joined, joined.start.copy())]

    def _revise_columns(self, found: FoundColumns, cut: int | None, buckets: Buckets) -> Sequence[Found]:
        fresh = found if cut is None else found.take(np.flatnonzero(found.start >= cut))
        places = [(part, part.those(cut, buckets)) for part in self._parts]
        places = [(part, at) for part, at in places if len(at)]
        new = contents(fresh)
        if not places:
            self.add(fresh)
            return fresh
        old = np.concatenate([contents(part.found.take(at)) for part, at in places])
        gone = ~np.isin(old, new)
        taken = []
        begin = 0
        for part, at in places:
            lost = at[gone[begin : begin + len(at)]]
            begin += len(at)
            if len(lost):
                taken.append(replace(part.found.take(lost), ops=np.full(len(lost), -1)))
                part.start[lost] = GONE
        come = fresh.take(np.flatnonzero(~np.isin(new, old)))
        self.add(come)
        return concatenate([*taken, come]) if taken else come

    def _revise_records(self, fresh: list[Found], cut: int | None, buckets: Buckets) -> list[Found]:
        there = [one for one in self._records if cut is None or one.start >= cut]
        if buckets is not None and there:
            keys = [
                column_of_values(values, kind_of_value(values[0]))
                for values in zip(*(f.key for f in there), strict=True)
            ]
            held = buckets[bucket_of(hashes_of_columns(keys, len(there)))]
            there = [one for one, wanted in zip(there, held.tolist(), strict=True) if wanted]
        old, new = Counter(map(_content, there)), Counter(map(_content, fresh))
        gone, added = old - new, new - old
        come = [one for one in fresh if _content(one) in added]
        taken = [one for one in there if _content(one) in gone]
        lost = {id(one) for one in taken}
        self._records = [one for one in self._records if id(one) not in lost] + come
        return [replace(one, op=-1) for one in taken] + come


def _content(found: Found) -> Any:
    return found.key, found.trail, found.start, found.end, found.error, found.values
