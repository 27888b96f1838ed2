"""Keep the last events of a stream in stream order, so that they can be matched again after a late event."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch, Column
from acep.events.hashes import Hashes, hashes_of_columns
from acep.plan.schema import Kind, Schema

__all__ = ["BUCKETS", "EventLog", "bucket_of"]

Ints = npt.NDArray[np.int64]

BUCKETS = 1 << 16
"""Number of buckets into which partitions fall by their hash."""
SPARE = 4096  # rows of events that are gone, beyond as many as there are left, before they are removed


class _Growing:
    """An array that grows at its end, at a constant cost for each value."""

    def __init__(self, kind: Any) -> None:
        self._all = np.empty(1024, kind)
        self.size = 0

    def extend(self, values: Any) -> None:
        size = self.size + len(values)
        if size > len(self._all):
            grown = np.empty(2 * size, self._all.dtype)
            grown[: self.size] = self._all[: self.size]
            self._all = grown
        self._all[self.size : size] = values
        self.size = size

    @property
    def now(self) -> Any:
        return self._all[: self.size]


class _Values:
    """A column of all rows, with texts numbered as they come."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.values = _Growing(np.float64 if kind is Kind.FLOAT else np.int64)
        self.valid: _Growing | None = None
        self.texts: dict[str, int] = {}

    def extend(self, column: Column) -> None:
        values: Any = column.values
        if self.kind is Kind.STRING:
            texts = self.texts
            used, places = np.unique(values, return_inverse=True)
            held = column.texts or [""]
            own = [texts.setdefault(held[code], len(texts)) for code in used.tolist()]
            values = np.array(own, np.int64)[places]
        if column.valid is not None and self.valid is None:
            self.valid = _Growing(np.uint8)
            self.valid.extend(np.ones(self.values.size, np.uint8))
        if self.valid is not None:
            self.valid.extend(np.ones(len(values), np.uint8) if column.valid is None else column.valid)
        self.values.extend(values)

    def at(self, rows: Ints) -> Column:
        values = self.values.now[rows]
        valid = None if self.valid is None else self.valid.now[rows]
        if valid is not None and valid.all():
            valid = None
        if self.kind is not Kind.STRING:
            return Column(self.kind, values, valid)
        used, places = np.unique(values, return_inverse=True)
        texts = [*self.texts]
        return Column(self.kind, places.astype(np.int64), valid, [texts[code] for code in used.tolist()])


class EventLog:
    """The events of a stream from some time on, in stream order, by the partition attributes ``keys``.

    ``number`` of an event is its place in the order of arrival; it decides between events of one time and ``order``.

    >>> log = EventLog((), Schema(()))
    >>> event = lambda *ts: Batch(np.array(ts), None, np.array(ts) * 10, {})
    >>> log.add(event(1, 3, 5), np.arange(3))
    >>> log.add(event(2, 3), np.array([3, 4]))
    >>> log.remove(np.array([0]))
    >>> log.since(None, None).ids.tolist()
    [20, 30, 30, 50]
    """

    def __init__(self, keys: tuple[str, ...], schema: Schema) -> None:
        self.keys, self.schema = keys, schema
        self._columns: dict[str, _Values] = {}
        self._types: _Values | None = None
        self._ids: Any = None  # a growing array of integers, or values that are texts
        self._rows = 0
        # The order of the stream: by place, the time, order, number, row and partition hash of each event.
        self._ts, self._order, self._number, self._row = (_Growing(np.int64) for _ in range(4))
        self._hash = _Growing(np.uint64)
        self._begin = 0

    def __len__(self) -> int:
        return self._ts.size - self._begin

    @property
    def ts(self) -> Ints:
        """Return the times of the events, in stream order."""
        found: Ints = self._ts.now[self._begin :]
        return found

    @property
    def hashes(self) -> Hashes:
        """Return the hash of the partition of each event."""
        found: Hashes = self._hash.now[self._begin :]
        return found

    def hashes_of(self, batch: Batch) -> Hashes:
        """Return the hash of the partition of each event of a batch."""
        return hashes_of_columns([self._key(batch, name) for name in self.keys], len(batch))

    def add(self, batch: Batch, numbers: Ints) -> None:
        """Add events, each at its place in the order of the stream; those of the batch are in order."""
        if not len(batch):
            return
        if self._types is None and batch.types is not None:
            self._types = _Values(batch.types.kind)
        if not self._columns:
            self._columns = {name: _Values(column.kind) for name, column in batch.columns.items()}
        for name, values in self._columns.items():
            values.extend(batch.columns[name])
        if self._types is not None and batch.types is not None:
            self._types.extend(batch.types)
        self._add_ids(batch.ids)
        added = len(batch)
        first = int(batch.ts[0])
        behind = len(self) > 0 and first <= int(self._ts.now[-1])
        self._ts.extend(batch.ts)
        self._order.extend(np.zeros(added, np.int64) if batch.order is None else batch.order)
        self._number.extend(numbers)
        self._row.extend(np.arange(self._rows, self._rows + added))
        self._hash.extend(self.hashes_of(batch))
        self._rows += added
        if behind:
            self._sort(int(np.searchsorted(self._ts.now[self._begin : -added], first)) + self._begin)

    def remove(self, numbers: Ints) -> Batch:
        """Remove the events with these numbers, and return them."""
        gone = np.isin(self._number.now[self._begin :], np.asarray(numbers, np.int64))
        found = self._batch(np.flatnonzero(gone) + self._begin)
        stay = np.flatnonzero(~gone) + self._begin
        for growing in self._by_place():
            values = growing.now[stay]
            growing.size = self._begin
            growing.extend(values)
        return found

    def before(self, tick: int, many: int, buckets: npt.NDArray[np.bool_] | None, *, together: bool) -> int:
        """Return the earliest time of the last ``many`` events before ``tick`` of each partition in ``buckets``, or
        (``together``) of all partitions."""
        end = int(np.searchsorted(self.ts, tick))
        places = np.arange(end)
        if not together and buckets is not None:
            places = places[buckets[bucket_of(self.hashes[:end])]]
        if not len(places) or not many:
            return tick
        if together or not self.keys:
            return int(self.ts[max(0, end - many)])
        hashes = self.hashes[places]
        order = np.argsort(hashes, kind="stable")
        begins = np.flatnonzero(np.concatenate([[True], hashes[order][1:] != hashes[order][:-1]]))
        sizes = np.diff(np.append(begins, len(order)))
        return int(self.ts[places[order[begins + np.maximum(sizes - many, 0)]]].min())

    def since(self, tick: int | None, buckets: npt.NDArray[np.bool_] | None) -> Batch:
        """Return the events at ``tick`` or later (``None``: all), of the partitions in ``buckets`` (``None``: all)."""
        begin = self._begin
        if tick is not None:
            begin += int(np.searchsorted(self.ts, tick))
        places = np.arange(begin, self._ts.size)
        if buckets is not None:
            places = places[buckets[bucket_of(self._hash.now[begin:])]]
        return self._batch(places)

    def forget(self, tick: int) -> None:
        """Forget the events before ``tick``."""
        self._begin += int(np.searchsorted(self.ts, tick))
        if self._rows > 2 * len(self) + SPARE:
            self._rebuild()

    def whole(self) -> tuple[Batch, Ints]:
        """Return all events with their numbers, in stream order."""
        return self.since(None, None), self._number.now[self._begin :].copy()

    def _rebuild(self) -> None:
        """Remove the rows of events that are gone."""
        batch, numbers = self.whole()
        self.__init__(self.keys, self.schema)  # type: ignore[misc]
        self.add(batch, numbers)

    def _batch(self, places: Ints) -> Batch:
        rows = self._row.now[places]
        ids: Any = None
        if isinstance(self._ids, _Values):
            ids = self._ids.at(rows).to_list()
        elif self._ids is not None:
            ids = self._ids.now[rows]
        return Batch(
            ts=self._ts.now[places],
            types=None if self._types is None else self._types.at(rows),
            ids=ids,
            columns={name: values.at(rows) for name, values in self._columns.items()},
            order=self._order.now[places],
        )

    def _add_ids(self, ids: Any) -> None:
        if isinstance(ids, list):
            self._ids = self._ids or _Values(Kind.STRING)
            self._ids.extend(Column(Kind.STRING, np.arange(len(ids)), None, ids))
            return
        if self._ids is None:
            self._ids = _Growing(np.int64)
        self._ids.extend(ids)

    def _key(self, batch: Batch, name: str) -> Column:
        if name in batch.columns:
            return batch.columns[name]
        if name == self.schema.ts:
            return Column(Kind.INT, batch.ts)
        assert batch.types is not None
        return batch.types

    def _by_place(self) -> tuple[_Growing, ...]:
        return self._ts, self._order, self._number, self._row, self._hash

    def _sort(self, begin: int) -> None:
        """Put the events from place ``begin`` on in order."""
        tail = slice(begin, self._ts.size)
        order = np.lexsort((self._number.now[tail], self._order.now[tail], self._ts.now[tail]))
        for growing in self._by_place():
            growing.now[tail] = growing.now[tail][order]


def bucket_of(hashes: Hashes) -> npt.NDArray[np.intp]:
    """Return the bucket of each hash of a partition."""
    return (hashes >> np.uint64(48)).astype(np.intp)
