"""Keep the last events of a stream in stream order, so that they can be matched again after a late event."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch, Column
from acep.events.growing import Growing
from acep.events.hashes import Hashes, hashes_of_columns
from acep.events.punctuations import BEGINNING, Key, distinct
from acep.plan.schema import Kind, Schema

__all__ = ["BUCKETS", "EventLog", "bucket_of"]

Ints = npt.NDArray[np.int64]

BUCKETS = 1 << 16
"""Number of buckets into which partitions fall by their hash."""
FEW = 256  # texts that are given with each batch, whether it has them or not
OBJECT = 170  # bytes of a text and its number beside its characters
SPARE = 4096  # rows of events that are gone, beyond as many as there are left, before they are removed


class _Values:
    """A column of all rows, with texts numbered as they come."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.values = Growing(np.float64 if kind is Kind.FLOAT else np.int64)
        self.valid: Growing | None = None
        self.texts: dict[str, int] = {}
        self._long = 0  # characters of the texts, and the texts counted so far
        self._counted = 0

    def extend(self, column: Column) -> None:
        values: Any = column.values
        if self.kind is Kind.STRING:
            texts, held = self.texts, column.texts or [""]
            if len(held) > len(values):  # a dictionary shared by many batches
                used, values = np.unique(values, return_inverse=True)
                held = [held[code] for code in used.tolist()]
            values = np.array([texts.setdefault(text, len(texts)) for text in held], np.int64)[values]
        if column.valid is not None and self.valid is None:
            self.valid = Growing(np.uint8)
            self.valid.extend(np.ones(self.values.size, np.uint8))
        if self.valid is not None:
            self.valid.extend(np.ones(len(values), np.uint8) if column.valid is None else column.valid)
        self.values.extend(values)

    @property
    def bytes(self) -> int:
        held = self.values.bytes + (0 if self.valid is None else self.valid.bytes)
        self._long += sum(map(len, islice(self.texts, self._counted, None)))
        self._counted = len(self.texts)
        return held + OBJECT * self._counted + self._long

    def at(self, rows: Ints) -> Column:
        values = self.values.now[rows]
        valid = None if self.valid is None else self.valid.now[rows]
        if valid is not None and valid.all():
            valid = None
        if self.kind is not Kind.STRING:
            return Column(self.kind, values, valid)
        texts = [*self.texts]
        if len(texts) <= FEW:
            return Column(self.kind, values, valid, texts)
        used, places = np.unique(values, return_inverse=True)
        return Column(self.kind, places.astype(np.int64), valid, [texts[code] for code in used.tolist()])


class EventLog:
    """The events of a stream from some time on, in stream order, by the partition attributes ``keys``.

    ``number`` of an event is its place in the order of arrival; it decides between events of one time and ``order``.
    ``counted``: :meth:`before` will be asked for.

    >>> log = EventLog((), Schema(()))
    >>> event = lambda *ts: Batch(np.array(ts), None, np.array(ts) * 10, {})
    >>> log.add(event(1, 3, 5), np.arange(3))
    >>> log.add(event(2, 3), np.array([3, 4]))
    >>> log.remove(np.array([0])).ids.tolist()
    [10]
    >>> log.since(None, None, 1)[0].ids.tolist()
    [20, 30, 30, 50]
    """

    def __init__(self, keys: tuple[str, ...], schema: Schema, *, counted: bool = False) -> None:
        self.keys, self.schema, self.counted = keys, schema, counted
        self._columns: dict[str, _Values] = {}
        self._types: _Values | None = None
        self._ids: Any = None  # a growing array of integers, or values that are texts
        self._rows = 0
        # The order of the stream: by place, the time, order, number, row, partition hash and bucket of each event.
        self._ts, self._order, self._number, self._row = (Growing(np.int64) for _ in range(4))
        self._hash, self._bucket = Growing(np.uint64), Growing(np.uint16)
        self._begin = 0
        self._last = np.zeros(0, np.uint16)
        self._later: list[tuple[Batch, Ints]] = []  # events after these, which were not asked for yet

    def __len__(self) -> int:
        return self._ts.size - self._begin + sum(len(batch) for batch, _ in self._later)

    @property
    def ts(self) -> Ints:
        """Return the times of the events, in stream order."""
        found: Ints = self._ts.now[self._begin :]
        return found

    @property
    def oldest(self) -> int | None:
        """Return the time of the first event; ``None`` if there is none."""
        times = [int(self._ts.now[self._begin])] if self._ts.size > self._begin else []
        return min([*times, *(int(batch.ts[0]) for batch, _ in self._later)], default=None)

    @property
    def hashes(self) -> Hashes:
        """Return the hash of the partition of each event."""
        found: Hashes = self._hash.now[self._begin :]
        return found

    def hashes_of(self, batch: Batch) -> Hashes:
        """Return the hash of the partition of each event of a batch."""
        if not self.keys:
            return np.zeros(len(batch), np.uint64)
        return hashes_of_columns([self._key(batch, name) for name in self.keys], len(batch))

    def add(self, batch: Batch, numbers: Ints) -> None:
        """Add events, each at its place in the order of the stream; those of the batch are in order."""
        if len(batch):
            self._later.append((batch, numbers))

    def _catch_up(self) -> None:
        later, self._later = self._later, []
        for batch, numbers in later:
            self._add(batch, numbers)

    def _add(self, batch: Batch, numbers: Ints) -> None:
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
        behind = self._ts.size > self._begin and first <= int(self._ts.now[-1])
        self._ts.extend(batch.ts)
        if batch.order is not None:
            self._order.extend(batch.order)
        self._number.extend(numbers)
        self._row.extend(np.arange(self._rows, self._rows + added))
        hashes = self.hashes_of(batch)
        if self.counted:
            self._hash.extend(hashes)
        self._last = bucket_of(hashes)
        self._bucket.extend(self._last)
        self._rows += added
        if behind:
            self._sort(int(np.searchsorted(self._ts.now[self._begin : -added], first)) + self._begin)

    def remove(self, numbers: Ints) -> Batch:
        """Remove the events with these numbers, and return them."""
        self._catch_up()
        return self._remove(np.isin(self._number.now[self._begin :], np.asarray(numbers, np.int64)))

    def _remove(self, gone: npt.NDArray[np.bool_]) -> Batch:
        found = self._batch(np.flatnonzero(gone) + self._begin)
        stay = np.flatnonzero(~gone) + self._begin
        for growing in self._by_place():
            growing.keep(stay, self._begin)
        return found

    def partitions(self, buckets: npt.NDArray[np.bool_] | None) -> tuple[Ints, Ints, list[Key]]:
        """Return the places of the events of the partitions in ``buckets`` (``None``: all) among all that are kept, the
        number of the partition of each, and the key of each partition."""
        self._catch_up()
        places = np.arange(self._begin, self._ts.size)
        if buckets is not None:
            places = places[np.take(buckets, self._bucket.now[places])]
        columns = [self._key_at(places, name) for name in self.keys] if len(places) else []
        codes, keys = distinct(columns, len(places))
        return places - self._begin, codes, keys

    def before(self, tick: int, many: int, buckets: npt.NDArray[np.bool_] | None, *, together: bool) -> int:
        """Return the earliest time of the last ``many`` events before ``tick`` of each partition in ``buckets``, or
        (``together``) of all partitions."""
        self._catch_up()
        end = int(np.searchsorted(self.ts, tick))
        places = np.arange(end)
        if not together and buckets is not None:
            places = places[np.take(buckets, self._bucket.now[self._begin : self._begin + end])]
        if not len(places) or not many:
            return tick
        if together or not self.keys:
            return int(self.ts[max(0, end - many)])
        hashes = self.hashes[places]
        order = np.argsort(hashes, kind="stable")
        begins = np.flatnonzero(np.concatenate([[True], hashes[order][1:] != hashes[order][:-1]]))
        sizes = np.diff(np.append(begins, len(order)))
        return int(self.ts[places[order[begins + np.maximum(sizes - many, 0)]]].min())

    def since(self, tick: int | None, buckets: npt.NDArray[np.bool_] | None, later: int) -> tuple[Batch, int]:
        """Return the events at ``tick`` or later (``None``: all) of the partitions in ``buckets`` (``None``: all), and
        how many they are, followed by the last ``later`` events of all partitions."""
        self._catch_up()
        begin, size = self._begin, self._ts.size
        if tick is not None:
            begin += int(np.searchsorted(self.ts, tick))
        end = max(begin, size - later)
        if buckets is None:
            return self._batch(np.arange(begin, size)), end - begin
        places = np.flatnonzero(np.take(buckets, self._bucket.now[begin:end])) + begin
        return self._batch(np.concatenate([places, np.arange(end, size)])), len(places)

    def buckets_of_last(self, many: int) -> npt.NDArray[np.uint16]:
        """Return the buckets of the first ``many`` events of the batch that was added last."""
        self._catch_up()
        return self._last[:many]

    def forget(self, tick: int) -> None:
        """Forget the events before ``tick``."""
        self._begin += int(np.searchsorted(self.ts, tick))
        if self._begin == self._ts.size:
            past = next((n for n, (batch, _) in enumerate(self._later) if int(batch.ts[-1]) >= tick), len(self._later))
            del self._later[:past]
        if self._rows > 2 * (self._ts.size - self._begin) + SPARE:
            self._rebuild()

    def take(self, many: int, before: int | None) -> tuple[Batch, Ints]:
        """Remove the first ``many`` events, and more if the next ones have the same time, of those before a time
        (``None``: of all); return them with their numbers."""
        self._catch_up()
        ts = self.ts
        end = len(ts) if before is None else int(np.searchsorted(ts, before))
        if many < end:
            end = min(end, int(np.searchsorted(ts, ts[many - 1], "right")))
        places = np.arange(self._begin, self._begin + end)
        found = self._batch(places), self._number.now[places].copy()
        self._begin += end
        if self._rows > 2 * (self._ts.size - self._begin) + SPARE:
            self._rebuild()
        return found

    @property
    def bytes(self) -> int:
        """Return the bytes that the events take; a text that is stored counts as so many characters and an object."""
        self._catch_up()
        own = self._ts, self._order, self._number, self._row, self._hash, self._bucket, self._types, self._ids
        return sum(one.bytes for one in (*own, *self._columns.values()) if one is not None)

    def forget_each(self, begins: Ints) -> Batch:
        """Forget each event that is before its time in ``begins``, and return them."""
        self._catch_up()
        found = self._remove(self.ts < begins)
        self.forget(BEGINNING)  # which frees the memory of events that are gone
        return found

    def whole(self) -> tuple[Batch, Ints]:
        """Return all events with their numbers, in stream order."""
        self._catch_up()
        return self._batch(np.arange(self._begin, self._ts.size)), self._number.now[self._begin :].copy()

    def compact(self) -> None:
        """Keep no memory for events that are gone."""
        self._catch_up()
        if self._rows > self._ts.size - self._begin:
            self._rebuild()

    def _rebuild(self) -> None:
        """Remove the rows of events that are gone."""
        later, self._later = self._later, []
        batch, numbers = self.whole()
        self.__init__(self.keys, self.schema, counted=self.counted)  # type: ignore[misc]
        self._later = [(batch, numbers), *later] if len(batch) else later

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
            order=self._order.now[places] if self._order.size else None,
        )

    def _add_ids(self, ids: Any) -> None:
        if isinstance(ids, list):
            self._ids = self._ids or _Values(Kind.STRING)
            self._ids.extend(Column(Kind.STRING, np.arange(len(ids)), None, ids))
            return
        if self._ids is None:
            self._ids = Growing(np.int64)
        self._ids.extend(ids)

    def _key(self, batch: Batch, name: str) -> Column:
        if name in batch.columns:
            return batch.columns[name]
        if name == self.schema.ts:
            return Column(Kind.INT, batch.ts)
        assert batch.types is not None
        return batch.types

    def _key_at(self, places: Ints, name: str) -> Column:
        if name == self.schema.ts and name not in self._columns:
            return Column(Kind.INT, self._ts.now[places])
        values = self._columns.get(name, self._types)
        assert values is not None
        return values.at(self._row.now[places])

    def _by_place(self) -> tuple[Growing, ...]:
        growing = self._ts, self._order, self._number, self._row, self._hash, self._bucket
        return tuple(one for one in growing if one.size)

    def _sort(self, begin: int) -> None:
        """Put the events from place ``begin`` on in order."""
        tail = slice(begin, self._ts.size)
        # Both sorts are stable, and events come in the order of their numbers.
        if self._order.size:
            order = np.lexsort((self._order.now[tail], self._ts.now[tail]))
        else:
            order = np.argsort(self._ts.now[tail], kind="stable")
        for growing in self._by_place():
            growing.now[tail] = growing.now[tail][order]


def bucket_of(hashes: Hashes) -> npt.NDArray[np.uint16]:
    """Return the bucket of each hash of a partition."""
    return (hashes >> np.uint64(48)).astype(np.uint16)
