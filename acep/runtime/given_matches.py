"""Keep the matches that were given and may still be taken back, and compare them with those found again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column, column_of_values
from acep.events.event_log import bucket_of
from acep.events.growing import Growing
from acep.events.hashes import hashes_of_columns
from acep.events.punctuations import Key, distinct
from acep.matches.found_columns import FoundColumns, concatenate
from acep.matches.match_ids import kind_of_value
from acep.matches.records import Found

__all__ = ["GivenColumns", "GivenRecords", "differences", "found_bytes"]

Buckets = npt.NDArray[np.bool_] | None
Ints = npt.NDArray[np.int64]
Stays = Callable[[FoundColumns], npt.NDArray[np.bool_]]
Cuts = Callable[[Key], int]
"""The earliest start of a match of each partition that may change, where partitions differ in that."""
GONE = np.iinfo(np.int64).min
OBJECT = 49  # bytes of a text beside its characters
SPARE = 4096  # matches that are gone, beyond as many as there are left, before they are removed


class GivenColumns:
    """The matches of one plan that the native core found, in parts as they were given. Of each match there are its
    start (``GONE``: it is not kept any more), a hash of all that is given of it, and the bucket of its partition."""

    def __init__(self) -> None:
        self._parts: list[FoundColumns] = []
        self._later: list[FoundColumns] = []  # parts that were not asked for yet
        self._held = 0  # bytes of all parts
        self._start, self._hash, self._part, self._row = (Growing(np.int64) for _ in range(4))
        self._bucket = Growing(np.uint16)

    def add(self, found: FoundColumns) -> None:
        """Record that matches were given."""
        if len(found):
            self._later.append(found)
            self._held += found_bytes(found)

    def keep_last(self, many: int) -> FoundColumns:
        """Keep only the first ``many`` of the matches that were added last; return them."""
        last = self._later.pop()
        self._held -= found_bytes(last)
        last = last.take(np.arange(many))
        self.add(last)
        return last

    def not_before(self, tick: int | None) -> FoundColumns | list[Found]:
        """Take back the matches that end at ``tick`` or later (``None``: all); return them."""
        parts = [part.take(np.flatnonzero(part.end >= tick)) if tick is not None else part for part in self.whole()]
        parts = [replace(part, ops=np.full(len(part), -1)) for part in parts if len(part)]
        return concatenate(parts) if parts else []

    def compact(self) -> None:
        """Keep no memory for matches that are gone."""
        parts = self.whole()
        self.__init__()  # type: ignore[misc]
        if parts:
            self.add(concatenate(parts))

    def revise(
        self,
        found: FoundColumns | Sequence[Found],
        cut: int | None,
        buckets: Buckets,
        stays: Stays | None = None,
        cuts: Cuts | None = None,
    ) -> Sequence[Found]:
        """Compare ``found``, which has all matches that began at ``cut`` or later in some partitions (``None``: in all)
        as they are now, with those that were given. Return the difference, which is given from now on, with matches of
        other partitions, which are new. ``stays`` says which matches stay given, though they are not found again.
        ``cuts``: matches of these partitions before a time of their own are left out of both."""
        from acep.native import _native  # here, as only the native core finds matches as columns

        self._catch_up()
        there = self._start.now >= (GONE + 1 if cut is None else max(cut, GONE + 1))
        if buckets is not None:
            there &= buckets[self._bucket.now]
        at = np.flatnonzero(there)
        if cuts is not None:
            at = at[self._start.now[at] >= self._cuts(at, cuts)]
        taken, new = list[FoundColumns](), np.zeros(0, np.int64)
        if isinstance(found, FoundColumns):
            first = np.full(len(found), GONE if cut is None else max(cut, GONE))
            if cuts is not None:
                first = np.maximum(first, _cuts_of(found.keys, len(found), cuts))
            if (early := found.start < first).any():
                if buckets is not None:
                    early &= buckets[bucket_of(hashes_of_columns(found.keys, len(found)))]
                found = found.take(np.flatnonzero(~early))
            new = _contents(found)
        old = self._hash.now[at]
        come, gone = _native.missing(new, old), at[_native.missing(old, new)]
        if isinstance(found, FoundColumns) and len(come) < len(found):
            found, new = found.take(come), new[come]
        for part in sorted({*self._part.now[gone].tolist()}):
            places, lost = self._among(part, gone)
            if stays is not None and (away := ~stays(lost)).any():
                places, lost = places[away], lost.take(np.flatnonzero(away))
            elif stays is not None:
                continue
            self._start.now[places] = GONE
            taken.append(replace(lost, ops=np.full(len(lost), -1)))
        if isinstance(found, FoundColumns) and len(found):
            self._add(found, new)
            self._held += found_bytes(found)
            taken.append(found)
        return concatenate(taken) if taken else found

    def forget(self, cut: int) -> None:
        """Forget the matches that began before ``cut``."""
        later, self._later = self._later, [part for part in self._later if int(part.start.max()) >= cut]
        if len(later) > len(self._later):
            self._held = sum(map(found_bytes, (*self._parts, *self._later)))
        start = self._start.now
        start[start < cut] = GONE
        stay = np.flatnonzero(start > GONE)
        if len(start) <= 2 * len(stay) + SPARE:
            return
        parts, numbers = np.unique(self._part.now[stay], return_inverse=True)
        self._parts = [self._parts[part] for part in parts.tolist()]
        self._held = sum(map(found_bytes, (*self._parts, *self._later)))
        self._part.now[stay] = numbers
        for growing in (self._start, self._hash, self._part, self._row, self._bucket):
            growing.keep(stay)

    def forget_each(self, cuts: Cuts) -> None:
        """Forget the matches of each partition that began before a time of its own."""
        self._catch_up()
        at = np.flatnonzero(self._start.now > GONE)
        start = self._start.now
        start[at[start[at] < self._cuts(at, cuts)]] = GONE

    def _catch_up(self) -> None:
        later, self._later = self._later, []
        for part in later:
            self._add(part, _contents(part))

    def _cuts(self, at: Ints, cuts: Cuts) -> Ints:
        """Return the cut of each of the matches in the places ``at``, which rise."""
        parts, begins = np.unique(self._part.now[at], return_index=True)
        found = np.zeros(len(at), np.int64)
        for part, begin, end in zip(parts.tolist(), begins, [*begins, len(at)][1:], strict=True):
            rows = self._row.now[at[begin:end]]
            found[begin:end] = _cuts_of([column.at(rows) for column in self._parts[part].keys], len(rows), cuts)
        return found

    def _add(self, part: FoundColumns, hashes: Ints) -> None:
        zeros = np.zeros(len(part), np.int64)
        self._part.extend(zeros + len(self._parts))
        self._row.extend(np.arange(len(part)))
        self._start.extend(part.start)
        self._hash.extend(hashes)
        self._bucket.extend(bucket_of(hashes_of_columns(part.keys, len(part))) if part.keys else zeros)
        self._parts.append(part)

    def _among(self, part: int, places: Ints) -> tuple[Ints, FoundColumns]:
        """Return those of some places whose matches are in a part, and these matches."""
        own = places[self._part.now[places] == part]
        return own, self._parts[part].take(self._row.now[own])

    def whole(self) -> list[FoundColumns]:
        """Return all matches that are kept, in parts."""
        stay = np.flatnonzero(self._start.now > GONE)
        parts = [self._among(part, stay)[1] for part in sorted({*self._part.now[stay].tolist()})]
        return parts + self._later

    @property
    def bytes(self) -> int:
        """Return the bytes that the matches take."""
        columns = self._start, self._hash, self._part, self._row, self._bucket
        return sum(one.bytes for one in columns) + self._held


def differences(some: FoundColumns, others: FoundColumns) -> tuple[Ints, Ints]:
    """Return the rows of each that are not among the other ones; of equal ones each is counted."""
    from acep.native import _native

    one, other = _contents(some), _contents(others)
    return _native.missing(one, other), _native.missing(other, one)


def found_bytes(found: FoundColumns) -> int:
    """Return the bytes that matches take; texts that are ids count as so many characters and an object."""
    columns = (*found.keys, *found.values)
    arrays = [found.start, found.end, found.bundle, found.error, found.offsets, found.ids, found.vars]
    arrays += [one.values for one in columns] + [one.valid for one in columns if one.valid is not None]
    texts = sum(OBJECT + len(one) for one in found.ids) if found.ids.dtype == object else 0
    return texts + sum(int(one.nbytes) for one in arrays)


def _cuts_of(keys: Sequence[Column], size: int, cuts: Cuts) -> Ints:
    """Return the cut of the partition of each of some matches."""
    codes, found = distinct(keys, size)
    return np.array([cuts(key) for key in found], np.int64)[codes]


def _contents(found: FoundColumns) -> Ints:
    """Return a hash of all that is given of each match but its bundle."""
    from acep.native import _native

    columns = [found.start, found.error]
    if found.keys or found.values:
        columns.append(hashes_of_columns((*found.keys, *found.values), len(found)).view(np.int64))
    ids = found.ids
    if ids.dtype == object:
        ids = np.fromiter(map(hash, ids.tolist()), np.int64, len(ids))
    return _native.contents(found.end, found.offsets, ids, found.vars, columns)


class GivenRecords:
    """The matches of one plan that the reference engine found, as records. The methods are those of
    :class:`GivenColumns`."""

    def __init__(self) -> None:
        self._found: list[Found] = []

    def add(self, found: Sequence[Found]) -> None:
        """Record that matches were given."""
        self._found += found

    def revise(
        self, found: Sequence[Found], cut: int | None, buckets: Buckets, cuts: Cuts | None = None
    ) -> list[Found]:
        """Compare matches as they are now with those given, and return the difference."""

        def may_change(one: Found) -> bool:
            return (cut is None or one.start >= cut) and (cuts is None or one.start >= cuts(one.key))

        there = [one for one in self._found if may_change(one)]
        there = [one for one, again in zip(there, _among(there, buckets), strict=True) if again]
        again = _among(found, buckets)
        fresh = [one for one, same in zip(found, again, strict=True) if not same or may_change(one)]
        old, new = Counter(map(_content, there)), Counter(map(_content, fresh))
        gone, added = old - new, new - old
        come = [one for one in fresh if _content(one) in added]
        taken = [one for one in there if _content(one) in gone]
        lost = {id(one) for one in taken}
        self._found = [one for one in self._found if id(one) not in lost] + come
        return [replace(one, op=-1) for one in taken] + come

    def forget(self, cut: int) -> None:
        """Forget the matches that began before ``cut``."""
        self._found = [one for one in self._found if one.start >= cut]

    def forget_each(self, cuts: Cuts) -> None:
        """Forget the matches of each partition that began before a time of its own."""
        self._found = [one for one in self._found if one.start >= cuts(one.key)]


def _among(found: Sequence[Found], buckets: Buckets) -> list[bool]:
    """Return for each match whether its partition is in ``buckets``."""
    if buckets is None or not found:
        return [True] * len(found)
    columns = zip(*(one.key for one in found), strict=True)
    keys = [column_of_values(values, kind_of_value(values[0])) for values in columns]
    held: list[bool] = buckets[bucket_of(hashes_of_columns(keys, len(found)))].tolist()
    return held


def _content(found: Found) -> Any:
    return found.key, found.trail, found.start, found.end, found.error, found.values
