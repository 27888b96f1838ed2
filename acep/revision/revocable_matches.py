"""Keep the matches that were given and may still be taken back, and compare them with those found again."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.arrivals.growing_array import Growing
from acep.arrivals.ordered_rows import bucket_of
from acep.events.batch import Column, column_of_values
from acep.events.hashes import Hashes, hashes_of_columns
from acep.events.punctuations import Key, distinct
from acep.matches.found_columns import FoundColumns, concatenate
from acep.matches.match_ids import kind_of_value
from acep.matches.records import Found
from acep.revision.gathering import gather_matches

__all__ = ["RevocableColumns", "RevocableRecords", "differences", "found_bytes"]

Buckets = npt.NDArray[np.bool_] | None
Ints = npt.NDArray[np.int64]
Stays = Callable[[FoundColumns], npt.NDArray[np.bool_]]
Cuts = Callable[[Key], int]
"""The earliest start of a match of each partition that may change, where partitions differ in that."""
GONE = np.iinfo(np.int64).min
OBJECT = 49  # bytes of a text beside its characters
SPARE = 4096  # matches that are gone, beyond as many as there are left, before they are removed


class RevocableColumns:
    """The matches of one plan that the native core found, in parts as they were given. Of each match there are its
    start (``GONE``: it is not kept any more), a hash of all that is given of it, and the bucket of its partition."""

    def __init__(self) -> None:
        self._parts: list[FoundColumns] = []
        self._begins: list[int] = []  # the place of the first match of each part
        self._latest: list[int] = []  # the latest start of a match of each part and of those before it
        self._later: list[FoundColumns] = []  # parts that were not asked for yet
        self._part_bytes = 0  # bytes of all parts
        self._start, self._hash, self._bucket = Growing(np.int64), Growing(np.int64), Growing(np.uint16)

    def add(self, matches: FoundColumns) -> None:
        """Record that matches were given."""
        if len(matches):
            self._later.append(matches)
            self._part_bytes += found_bytes(matches)

    def keep_last(self, n_matches: int) -> FoundColumns:
        """Keep only the first ``n_matches`` of the matches that were added last; return them."""
        last = self._later.pop()
        self._part_bytes -= found_bytes(last)
        last = last.take(np.arange(n_matches))
        self.add(last)
        return last

    def not_before(self, tick: int | None) -> FoundColumns | list[Found]:
        """Take back the matches that end at ``tick`` or later (``None``: all); return them."""
        parts = [part.take(np.flatnonzero(part.end >= tick)) if tick is not None else part for part in self.all_parts()]
        parts = [part.to_take_back() for part in parts if len(part)]
        return concatenate(parts) if parts else []

    def compact(self) -> None:
        """Keep no memory for matches that are gone."""
        parts = self.all_parts()
        self.__init__()  # type: ignore[misc]
        if parts:
            self.add(concatenate(parts))

    def revise(
        self,
        matches: FoundColumns | Sequence[Found],
        cut: int | None,
        buckets: Buckets,
        stays: Stays | None = None,
        cuts: Cuts | None = None,
    ) -> Sequence[Found]:
        """Compare ``matches``, which has all that began at ``cut`` or later in some partitions (``None``: in all) as
        they are now, with those that were given. Return the difference, which is given from now on, with matches of
        other partitions, which are new. ``stays`` says which matches stay given, though they are not found again.
        ``cuts``: matches of these partitions before a time of their own are left out of both."""
        self._catch_up()
        first = GONE + 1 if cut is None else max(cut, GONE + 1)
        keyed, new = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        if isinstance(matches, FoundColumns):
            keyed = hashes_of_columns(matches.keys, len(matches))
            firsts = first if cuts is None else np.maximum(first, _cuts_of(matches.keys, len(matches), cuts))
            early = matches.start < firsts
            if buckets is not None and early.any():
                early &= buckets[bucket_of(keyed)]
            if early.any():
                matches, keyed = matches.take(np.flatnonzero(~early)), keyed[~early]
            new = _contents(matches, keyed)
        new_rows, lost_rows = self._changes(first, cuts, buckets, new)
        if stays is not None:
            stay_masks = [(number, rows, stays(self._parts[number].take(rows))) for number, rows in lost_rows]
            lost_rows = [(number, rows[~stay]) for number, rows, stay in stay_masks if not stay.all()]
        for number, rows in lost_rows:
            self._start.now[rows + self._begins[number]] = GONE
        if not len(new_rows) and not lost_rows:
            return []
        retracted = [(self._parts[number], rows) for number, rows in lost_rows]
        if not isinstance(matches, FoundColumns) or not len(new_rows):
            return gather_matches(retracted, [])[0]
        difference, order = gather_matches(retracted, [(matches, new_rows)])
        n_back = len(difference) - len(new_rows)
        new_matches, new_rows = difference.last(len(new_rows)), new_rows[order[n_back:] - n_back]
        self._add(new_matches, keyed[new_rows], new[new_rows])
        self._part_bytes += found_bytes(new_matches)
        return difference

    def forget(self, cut: int) -> None:
        """Forget the matches that began before ``cut``."""
        later, self._later = self._later, [part for part in self._later if int(part.start.max()) >= cut]
        if len(later) > len(self._later):
            self._part_bytes = sum(map(found_bytes, (*self._parts, *self._later)))
        start = self._start.now
        start[start < cut] = GONE
        if len(start) > 2 * int(np.count_nonzero(start > GONE)) + SPARE:
            self.compact()

    def forget_each(self, cuts: Cuts) -> None:
        """Forget the matches of each partition that began before a time of its own."""
        self._catch_up()
        self._start.now[:] = self._starts(GONE + 1, cuts)

    def _catch_up(self) -> None:
        later, self._later = self._later, []
        for part in later:
            keyed = hashes_of_columns(part.keys, len(part))
            self._add(part, keyed, _contents(part, keyed))

    def _starts(self, first: int, cuts: Cuts) -> Ints:
        """Return the start of each match, ``GONE`` for one at ``first`` or later that is before the cut of
        its partition."""
        start: Ints = self._start.now.copy()
        for places, part in self._matches_at(np.flatnonzero(start >= first)):
            start[places[part.start < _cuts_of(part.keys, len(part), cuts)]] = GONE
        return start

    def _add(self, part: FoundColumns, keyed: Hashes, hashes: Ints) -> None:
        self._begins.append(self._start.size)
        self._latest.append(max(int(part.start.max()), self._latest[-1] if self._latest else GONE))
        self._parts.append(part)
        self._start.extend(part.start)
        self._hash.extend(hashes)
        self._bucket.extend(bucket_of(keyed))

    def _changes(
        self, first: int, cuts: Cuts | None, buckets: Buckets, hashes_now: Ints
    ) -> tuple[Ints, list[tuple[int, Ints]]]:
        """Return the places of what comes among the hashes ``hashes_now``, and which matches go: the numbers of parts,
        and rows in them. They are among those that began at ``first`` or later."""
        from acep.native import _native

        start = self._start.now if cuts is None else self._starts(first, cuts)
        # Most matches are in parts that are too early.
        part = bisect_left(self._latest, first)
        past = self._begins[part] if part < len(self._begins) else len(start)
        flags = None if buckets is None else buckets.view(np.uint8)
        hashes, bucket = self._hash.now[past:], self._bucket.now[past:]
        new_rows, lost_places = _native.changes(start[past:], hashes, bucket, first, flags, hashes_now)
        return new_rows, [*self._rows(lost_places + past)]

    def _rows(self, places: Ints) -> Iterator[tuple[int, Ints]]:
        """Yield the matches in some places, which rise: the number of each part that has some, and their rows."""
        if not len(places):
            return
        numbers = np.searchsorted(self._begins, places, "right") - 1
        for number in np.unique(numbers).tolist():
            yield number, places[numbers == number] - self._begins[number]

    def _matches_at(self, places: Ints) -> Iterator[tuple[Ints, FoundColumns]]:
        """Yield the matches in some places, which rise, by the parts that they are in."""
        for number, rows in self._rows(places):
            yield rows + self._begins[number], self._parts[number].take(rows)

    def all_parts(self) -> list[FoundColumns]:
        """Return all matches that are kept, in parts."""
        return [part for _, part in self._matches_at(np.flatnonzero(self._start.now > GONE))] + self._later

    @property
    def bytes(self) -> int:
        """Return the bytes that the matches take."""
        return self._start.bytes + self._hash.bytes + self._bucket.bytes + self._part_bytes


def differences(first: FoundColumns, second: FoundColumns) -> tuple[Ints, Ints]:
    """Return the rows of each that are not among the other ones."""
    from acep.native import _native

    first_contents, second_contents = (
        _contents(matches, hashes_of_columns(matches.keys, len(matches))) for matches in (first, second)
    )
    zeros = np.zeros(len(second_contents), np.int64)
    first_only, second_only = _native.changes(zeros, second_contents, zeros.astype(np.uint16), 0, None, first_contents)
    return first_only, second_only


def found_bytes(matches: FoundColumns) -> int:
    """Return the bytes that matches take; texts that are ids count as so many characters and an object."""
    columns = (*matches.keys, *matches.values)
    arrays = [matches.start, matches.end, matches.bundle, matches.error, matches.offsets, matches.ids, matches.vars]
    arrays += [column.values for column in columns] + [column.valid for column in columns if column.valid is not None]
    texts = sum(OBJECT + len(text) for text in matches.ids) if matches.ids.dtype == object else 0
    return texts + sum(int(array.nbytes) for array in arrays)


def _cuts_of(keys: Sequence[Column], size: int, cuts: Cuts) -> Ints:
    """Return the cut of the partition of each of some matches."""
    codes, distinct_keys = distinct(keys, size)
    return np.array([cuts(key) for key in distinct_keys], np.int64)[codes]


def _contents(matches: FoundColumns, keyed: Hashes) -> Ints:
    """Return a hash of all that is given of each match but its bundle. ``keyed``: those of their partitions."""
    from acep.native import _native  # here, as only the native core finds matches as columns

    columns = [matches.start, matches.error, keyed.view(np.int64)]
    if matches.values:
        columns.append(hashes_of_columns(matches.values, len(matches)).view(np.int64))
    ids = matches.ids
    if ids.dtype == object:
        ids = np.fromiter(map(hash, ids.tolist()), np.int64, len(ids))
    return _native.contents(matches.end, matches.offsets, ids, matches.vars, columns)


class RevocableRecords:
    """The matches of one plan that the reference engine found, as records. The methods are those of
    :class:`RevocableColumns`."""

    def __init__(self) -> None:
        self._matches: list[Found] = []

    def add(self, matches: Sequence[Found]) -> None:
        """Record that matches were given."""
        self._matches += matches

    def revise(
        self, matches: Sequence[Found], cut: int | None, buckets: Buckets, cuts: Cuts | None = None
    ) -> list[Found]:
        """Compare matches as they are now with those given, and return the difference."""

        def may_change(match: Found) -> bool:
            return (cut is None or match.start >= cut) and (cuts is None or match.start >= cuts(match.key))

        old_matches = [match for match in self._matches if may_change(match)]
        old_matches = [
            match for match, is_among in zip(old_matches, _is_in_buckets(old_matches, buckets), strict=True) if is_among
        ]
        are_among = _is_in_buckets(matches, buckets)
        new_matches = [
            match for match, is_among in zip(matches, are_among, strict=True) if not is_among or may_change(match)
        ]
        old, new = Counter(map(_content, old_matches)), Counter(map(_content, new_matches))
        lost_contents, new_contents = old - new, new - old
        added = [match for match in new_matches if _content(match) in new_contents]
        retracted = [match for match in old_matches if _content(match) in lost_contents]
        retracted_ids = {id(match) for match in retracted}
        self._matches = [match for match in self._matches if id(match) not in retracted_ids] + added
        return [replace(match, op=-1) for match in retracted] + added

    def forget(self, cut: int) -> None:
        """Forget the matches that began before ``cut``."""
        self._matches = [match for match in self._matches if match.start >= cut]

    def forget_each(self, cuts: Cuts) -> None:
        """Forget the matches of each partition that began before a time of its own."""
        self._matches = [match for match in self._matches if match.start >= cuts(match.key)]


def _is_in_buckets(matches: Sequence[Found], buckets: Buckets) -> list[bool]:
    """Return for each match whether its partition is in ``buckets``."""
    if buckets is None or not matches:
        return [True] * len(matches)
    columns = zip(*(match.key for match in matches), strict=True)
    keys = [column_of_values(values, kind_of_value(values[0])) for values in columns]
    flags: list[bool] = buckets[bucket_of(hashes_of_columns(keys, len(matches)))].tolist()
    return flags


def _content(match: Found) -> Any:
    return match.key, match.trail, match.start, match.end, match.error, match.values
