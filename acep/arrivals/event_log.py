"""Keep the last events of a stream in stream order, so that they can be matched again after a late event."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.arrivals.ordered_rows import HASH, NUMBER, ORDER, TIME, OrderedRows, bucket_of
from acep.events.batch import Batch, Column
from acep.events.hashes import Hashes, hashes_of_columns
from acep.events.punctuations import Key, distinct
from acep.plan.schema import Kind, Schema

__all__ = ["EventLog"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]
Buckets = npt.NDArray[np.bool_] | None

FEW = 256  # texts that are given with each batch, whether it has them or not
OBJECT = 170  # bytes of a text and its number beside its characters
SPARE = 4096  # texts beyond twice as many as there are events, before those of events that are gone are removed
FIRST, LAST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
IDS, TYPES = object(), object()  # names of columns that are no attributes


class _Values:
    """How the values of a column are words: texts are numbered as they come. ``word``: the number of the column of
    words; ``flag``: that of the flags of values that are not null (``None``: there are no nulls)."""

    def __init__(self, kind: Kind, word: int) -> None:
        self.kind, self.word = kind, word
        self.flag: int | None = None
        self.texts: dict[str, int] = {}
        self._n_characters = 0  # characters of the texts, and the texts counted so far
        self._counted = 0

    def words(self, column: Column) -> Ints:
        values: Any = column.values
        if self.kind is Kind.STRING:
            texts, column_texts = self.texts, column.texts or [""]
            if len(column_texts) > len(values):  # a dictionary shared by many batches
                used, values = np.unique(values, return_inverse=True)
                column_texts = [column_texts[code] for code in used.tolist()]
            values = np.array([texts.setdefault(text, len(texts)) for text in column_texts], np.int64)[values]
        elif self.kind is Kind.FLOAT:
            values = values.view(np.int64)
        return np.ascontiguousarray(values, np.int64)

    def column(self, words: Ints, valid: Flags | None) -> Column:
        if valid is not None and valid.all():
            valid = None
        if self.kind is not Kind.STRING:
            return Column(self.kind, words.view(np.float64) if self.kind is Kind.FLOAT else words, valid)
        texts = [*self.texts]
        if len(texts) <= FEW:
            return Column(self.kind, words, valid, texts)
        used, places = np.unique(words, return_inverse=True)
        return Column(self.kind, places.astype(np.int64), valid, [texts[code] for code in used.tolist()])

    def column_of_rows(self, words: Sequence[Ints], flags: Sequence[Flags]) -> Column:
        """Return the column of some rows."""
        return self.column(words[self.word], None if self.flag is None else flags[self.flag])

    @property
    def bytes(self) -> int:
        self._n_characters += sum(map(len, islice(self.texts, self._counted, None)))
        self._counted = len(self.texts)
        return OBJECT * self._counted + self._n_characters


class EventLog:
    """The events of a stream from some time on, in stream order, by the partition attributes ``keys``.

    ``number`` of an event is its place in the order of arrival; it decides between events of one time and ``order``.
    ``counted``: :meth:`earliest_of_last` will be asked for. ``rows``: the class that holds them.

    >>> log = EventLog((), Schema(()))
    >>> event = lambda *ts: Batch(np.array(ts), None, np.array(ts) * 10, {})
    >>> log.add(event(1, 3, 5), np.arange(3))
    >>> log.add(event(2, 3), np.array([3, 4]))
    >>> log.remove(np.array([0])).ids.tolist()
    [10]
    >>> log.events_since(None, None, 1)[0].ids.tolist()
    [20, 30, 30, 50]
    """

    def __init__(
        self,
        keys: tuple[str, ...],
        schema: Schema,
        *,
        counted: bool = False,
        rows: type[OrderedRows] = OrderedRows,
    ) -> None:
        self.keys, self.schema, self.counted = keys, schema, counted
        self._new_rows = rows
        self._rows = rows(ORDER, False)
        self._tied = False
        self._values: dict[Any, _Values] = {}  # by attribute, IDS or TYPES, in the order of their words
        self._valid: list[Flags | None] = []  # a None for each column with nulls
        self._added = 0  # rows added since the memory of those that are gone was freed
        self._last = np.zeros(0, np.uint16)
        self._later: list[tuple[Batch, Ints]] = []  # events after these, which were not asked for yet

    def empty(self) -> EventLog:
        """Return a log like this one, without events."""
        return EventLog(self.keys, self.schema, counted=self.counted, rows=self._new_rows)

    def __len__(self) -> int:
        return len(self._rows) + sum(len(batch) for batch, _ in self._later)

    @property
    def ts(self) -> Ints:
        """Return the times of the events, in stream order."""
        times: Ints = self._rows.column(TIME)
        return times

    @property
    def oldest(self) -> int | None:
        """Return the time of the first event; ``None`` if there is none."""
        times = [int(self._events_at(np.zeros(1, np.int64)).ts[0])] if len(self._rows) else []
        return min([*times, *(int(batch.ts[0]) for batch, _ in self._later)], default=None)

    @property
    def hashes(self) -> Hashes:
        """Return the hash of the partition of each event."""
        hashes: Hashes = self._rows.column(HASH).view(np.uint64)
        return hashes

    def hashes_of(self, batch: Batch) -> Hashes:
        """Return the hash of the partition of each event of a batch."""
        return hashes_of_columns([self._key(batch, name) for name in self.keys], len(batch))

    def add(self, batch: Batch, numbers: Ints) -> None:
        """Add events, each at its place in the order of the stream; those of the batch are in order."""
        if len(batch):
            self._later.append((batch, numbers))

    def _catch_up(self) -> None:
        later_batches, self._later = self._later, []
        for batch, numbers in later_batches:
            self._add(batch, numbers)

    def _add(self, batch: Batch, numbers: Ints) -> None:
        ids, order = batch.ids, batch.order
        if isinstance(ids, list):
            columns: dict[Any, Column] = {IDS: Column(Kind.STRING, np.arange(len(ids)), None, ids)}
        else:
            columns = {IDS: Column(Kind.INT, np.asarray(ids))}
        if batch.types is not None:
            columns[TYPES] = batch.types
        columns |= batch.columns
        if not self._values:
            self._tied = order is not None
            first = ORDER + self._tied
            self._values = {
                name: _Values(column.kind, word) for word, (name, column) in enumerate(columns.items(), first)
            }
            self._rows = self._new_rows(first + len(columns), self._tied)
        hashes = self.hashes_of(batch)
        self._last = bucket_of(hashes)
        words = [batch.ts, numbers, hashes.view(np.int64), *([] if order is None else [order])]
        valid = self._valid.copy()
        for name, values in self._values.items():
            column = columns[name]
            words.append(values.words(column))
            if column.valid is not None:
                if values.flag is None:
                    values.flag = len(self._valid)
                    self._rows.add_flags()
                    self._valid.append(None)
                    valid.append(None)
                valid[values.flag] = np.ascontiguousarray(column.valid)
        self._rows.insert([np.ascontiguousarray(column_words) for column_words in words], valid)
        self._added += len(batch)

    def remove(self, numbers: Ints) -> Batch:
        """Remove the events with these numbers, and return them."""
        self._catch_up()
        return self._remove(np.isin(self._rows.column(NUMBER), np.asarray(numbers, np.int64)))

    def _remove(self, is_gone: npt.NDArray[np.bool_]) -> Batch:
        removed = self._events_at(np.flatnonzero(is_gone))
        self._rows.keep((~is_gone).view(np.uint8))
        return removed

    def partitions(self, buckets: Buckets) -> tuple[Ints, Ints, list[Key]]:
        """Return the places of the events of the partitions in ``buckets`` (``None``: all) among all that are kept, the
        number of the partition of each, and the key of each partition."""
        self._catch_up()
        places = np.arange(len(self._rows))
        if buckets is not None:
            places = places[buckets[bucket_of(self.hashes)]]
        batch = self._events_at(places) if len(places) else None
        columns = [] if batch is None else [self._key(batch, name) for name in self.keys]
        codes, keys = distinct(columns, len(places))
        return places, codes, keys

    def earliest_of_last(self, tick: int, n_events: int, buckets: Buckets, *, together: bool) -> int:
        """Return the earliest time of the last ``n_events`` events before ``tick`` of each partition in ``buckets``, or
        (``together``) of all partitions."""
        self._catch_up()
        ts, hashes = self.ts, self.hashes
        end = int(np.searchsorted(ts, tick))
        places = np.arange(end)
        if not together and buckets is not None:
            places = places[buckets[bucket_of(hashes[:end])]]
        if not len(places) or not n_events:
            return tick
        if together or not self.keys:
            return int(ts[max(0, end - n_events)])
        hashes = hashes[places]
        order = np.argsort(hashes, kind="stable")
        begins = np.flatnonzero(np.concatenate([[True], hashes[order][1:] != hashes[order][:-1]]))
        sizes = np.diff(np.append(begins, len(order)))
        return int(ts[places[order[begins + np.maximum(sizes - n_events, 0)]]].min())

    def events_since(self, tick: int | None, buckets: Buckets, later: int) -> tuple[Batch, int]:
        """Return the events at ``tick`` or later (``None``: all) of the partitions in ``buckets`` (``None``: all), and
        how many they are, followed by the last ``later`` events of all partitions."""
        self._catch_up()
        begin = 0 if tick is None else self._first_place(tick)
        end = max(begin, len(self._rows) - later)
        n_chosen, words, flags = self._rows.chosen(begin, end, None if buckets is None else buckets.view(np.uint8))
        return self._batch(words, flags), n_chosen

    def buckets_of_last(self, n_events: int) -> npt.NDArray[np.uint16]:
        """Return the buckets of the first ``n_events`` events of the batch that was added last."""
        self._catch_up()
        return self._last[:n_events]

    def forget(self, tick: int) -> None:
        """Forget the events before ``tick``."""
        self._rows.drop(self._first_place(tick))
        if not len(self._rows):
            past = next((n for n, (batch, _) in enumerate(self._later) if int(batch.ts[-1]) >= tick), len(self._later))
            del self._later[:past]
        self._let_go()

    def take(self, n_events: int, before: int | None) -> tuple[Batch, Ints]:
        """Remove the first ``n_events`` events, and more if the next ones have the same time, of those before a time
        (``None``: of all); return them with their numbers."""
        self._catch_up()
        ts = self.ts
        end = len(ts) if before is None else int(np.searchsorted(ts, before))
        if n_events < end:
            end = min(end, int(np.searchsorted(ts, ts[n_events - 1], "right")))
        words, flags = self._rows.at(np.arange(end))
        self._rows.drop(end)
        first_events = self._batch(words, flags), words[NUMBER]
        self._let_go()
        return first_events

    @property
    def bytes(self) -> int:
        """Return the bytes that the events take; a text that is stored counts as so many characters and an object."""
        self._catch_up()
        return int(self._rows.bytes) + sum(values.bytes for values in self._values.values())

    def forget_each(self, begins: Ints) -> Batch:
        """Forget each event that is before its time in ``begins``, and return them."""
        self._catch_up()
        batch = self._remove(self.ts < begins)
        self._let_go()
        return batch

    def all_events(self) -> tuple[Batch, Ints]:
        """Return all events with their numbers, in stream order."""
        self._catch_up()
        words, flags = self._rows.at(np.arange(len(self._rows)))
        return self._batch(words, flags), words[NUMBER]

    def compact(self) -> None:
        """Keep no memory for events that are gone."""
        self._catch_up()
        if self._added > len(self._rows):
            self._rebuild()

    def _first_place(self, tick: int) -> int:
        """Return the place of the first event at ``tick`` or later, which may be beyond 64 bits."""
        return self._rows.lower(min(max(tick, FIRST), LAST))

    def _let_go(self) -> None:
        """Keep no memory for texts of events that are gone, if they are many."""
        if max((len(values.texts) for values in self._values.values()), default=0) > 2 * len(self._rows) + SPARE:
            self._rebuild()

    def _rebuild(self) -> None:
        later_batches, self._later = self._later, []
        batch, numbers = self.all_events()
        vars(self).update(vars(self.empty()))
        self._later = [(batch, numbers), *later_batches] if len(batch) else later_batches

    def _events_at(self, places: Ints) -> Batch:
        return self._batch(*self._rows.at(places))

    def _batch(self, words: Sequence[Ints], flags: Sequence[Flags]) -> Batch:
        columns = {name: values.column_of_rows(words, flags) for name, values in self._values.items()}
        id_column = columns.pop(IDS, Column(Kind.INT, words[NUMBER]))  # without events there is no such column
        ids: Any = id_column.to_list() if id_column.kind is Kind.STRING else id_column.values
        return Batch(
            ts=words[TIME],
            types=columns.pop(TYPES, None),
            ids=ids,
            columns=columns,
            order=words[ORDER] if self._tied else None,
        )

    def _key(self, batch: Batch, name: str) -> Column:
        if name in batch.columns:
            return batch.columns[name]
        if name == self.schema.ts:
            return Column(Kind.INT, batch.ts)
        assert batch.types is not None
        return batch.types
