"""Keep rows in stream order, into which late ones are merged; the native core has the same class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.arrivals.growing_array import Growing

__all__ = ["BUCKETS", "HASH", "NUMBER", "ORDER", "TIME", "OrderedRows", "bucket_of"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]
Columns = tuple[list[Ints], list[Flags]]

TIME, NUMBER, HASH, ORDER = range(4)
"""Columns of words: the time, the number, the hash of the partition, and (where rows are tied) the order of a row."""
BUCKETS = 1 << 16
"""Number of buckets into which partitions fall by their hash."""
SPARE = 4096  # rows that were dropped, beyond as many as there are left, before they are removed


class OrderedRows:
    """Rows of words and flags. They are sorted by time, and where they are ``tied`` by their order within a time; of
    equal rows the one that came first is first. The first words are :data:`TIME` and those after it.

    >>> rows = OrderedRows(3, tied=False)
    >>> for times in ([1, 3, 5], [2, 3]):
    ...     rows.insert([np.array(times), np.arange(len(times)), np.zeros(len(times), np.int64)], [])
    >>> rows.column(TIME).tolist(), rows.column(NUMBER).tolist()
    ([1, 2, 3, 3, 5], [0, 0, 1, 1, 2])
    """

    def __init__(self, words: int, tied: bool) -> None:
        self._words = [Growing(np.int64) for _ in range(words)]
        self._flags: list[Growing] = []
        self._tied = tied
        self._begin = 0

    def __len__(self) -> int:
        return self._words[TIME].size - self._begin

    def add_flags(self) -> None:
        """Add a column of flags, which are 1 in all rows so far."""
        self._flags.append(Growing(np.uint8))
        self._flags[-1].extend(np.ones(self._words[TIME].size, np.uint8))

    def insert(self, words: Sequence[Ints], flags: Sequence[Flags | None]) -> None:
        """Insert sorted rows, by their columns; flags that are not given are 1."""
        end, added = self._words[TIME].size, len(words[TIME])
        for growing, values in zip(self._words, words, strict=True):
            growing.extend(values)
        for growing, new_flags in zip(self._flags, flags, strict=True):
            growing.extend(np.ones(added, np.uint8) if new_flags is None else new_flags)
        if not added or end == self._begin:
            return
        times = self._words[TIME].now
        begin = int(np.searchsorted(times[self._begin : end], times[end])) + self._begin
        tail = slice(begin, end + added)
        # Both sorts are stable, and rows come in the order of their numbers.
        if self._tied:
            order = np.lexsort((self._words[ORDER].now[tail], times[tail]))
        else:
            order = np.argsort(times[tail], kind="stable")
        for growing in (*self._words, *self._flags):
            growing.now[tail] = growing.now[tail][order]

    def lower(self, ts: int) -> int:
        """Return the first place whose time is not before this one."""
        return int(np.searchsorted(self._words[TIME].now[self._begin :], ts))

    def chosen(self, begin: int, end: int, buckets: Flags | None) -> tuple[int, list[Ints], list[Flags]]:
        """Return the rows from ``begin`` to ``end`` whose partition is in a bucket with a flag (``None``: all), and
        after them all from ``end`` on; before both, how many the former are."""
        places = np.arange(begin, end)
        if buckets is not None:
            places = places[buckets[bucket_of(self.column(HASH)[begin:end].view(np.uint64))] != 0]
        return len(places), *self.at(np.concatenate([places, np.arange(end, len(self))]))

    def at(self, places: Ints) -> Columns:
        """Return the rows in some places."""
        rows = places + self._begin
        return [growing.now[rows] for growing in self._words], [growing.now[rows] for growing in self._flags]

    def column(self, which: int) -> Ints:
        """Return a column of words."""
        values: Ints = self._words[which].now[self._begin :].copy()
        return values

    def flags(self, which: int) -> Flags:
        """Return a column of flags."""
        values: Flags = self._flags[which].now[self._begin :].copy()
        return values

    def drop(self, rows: int) -> None:
        """Remove the first rows."""
        self._begin += rows
        if self._begin > len(self) + SPARE:
            remaining = np.arange(self._begin, self._words[TIME].size)
            for growing in (*self._words, *self._flags):
                growing.keep(remaining)
            self._begin = 0

    def keep(self, stay: Flags) -> None:
        """Remove all rows that have no flag in ``stay``."""
        places = np.flatnonzero(stay) + self._begin
        for growing in (*self._words, *self._flags):
            growing.keep(places, self._begin)

    @property
    def bytes(self) -> int:
        """Return the bytes that are reserved."""
        return sum(growing.bytes for growing in (*self._words, *self._flags))


def bucket_of(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """Return the bucket of each hash of a partition."""
    return (hashes >> np.uint64(48)).astype(np.uint16)
