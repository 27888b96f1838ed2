"""Keep events of many partitions in the order in which they came, and forget those before a position in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch, Column
from acep.matches.found_columns import concatenate_columns
from acep.plan.compile import Plan

__all__ = ["EventChunks", "KeptEvents", "columns_of", "join_batches", "join_events", "plain_columns"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]

FEW = 64
"""Texts that no event has are kept up to this number, and up to that of the events."""


@dataclass(frozen=True)
class KeptEvents:
    """Events with the codes of their partitions, and their positions there."""

    batch: Batch
    codes: Ints
    positions: Ints

    def __len__(self) -> int:
        return len(self.codes)

    def select_events(self, rows: npt.NDArray[np.intp]) -> KeptEvents:
        """Return some of the events."""
        return KeptEvents(with_used_texts(self.batch.take(rows)), self.codes[rows], self.positions[rows])

    @classmethod
    def from_state(cls, batch: Batch, codes: Any, positions: Any, sizes: Ints) -> KeptEvents:
        """Return events from a state, of partitions with as many events as ``sizes`` says. Raises :class:`ValueError`
        or :class:`AttributeError` for other data."""
        for words in (codes, positions):
            if words.dtype != np.int64 or words.shape != (len(batch),) or (words < 0).any():
                raise ValueError("events")
        if (codes >= len(sizes)).any() or (positions >= sizes[codes]).any():
            raise ValueError("positions")
        return cls(batch, codes, positions)

    def with_ids(self) -> KeptEvents:
        """Return the events with their ids, which are their positions where they have no others."""
        return self if self.batch.ids is not None else replace(self, batch=replace(self.batch, ids=self.positions))

    def from_positions(self, begins: Ints) -> KeptEvents:
        """Return the events from a position on in each partition."""
        stays = self.positions >= begins[self.codes]
        return self if stays.all() else self.select_events(np.flatnonzero(stays))

    def last_events(self, number: int) -> KeptEvents:
        """Return the last events of each partition.

        >>> codes, positions = np.array([0, 0, 1, 0]), np.array([4, 5, 0, 6])
        >>> KeptEvents(Batch(positions, None, None, {}), codes, positions).last_events(2).positions.tolist()
        [5, 0, 6]
        """
        order = np.argsort(self.codes, kind="stable")
        in_order = self.codes[order]
        after = np.searchsorted(in_order, in_order, "right")
        return self.select_events(np.sort(order[after - np.arange(len(order)) <= number]))


@dataclass(frozen=True)
class EventChunks:
    """Events in chunks that get smaller, so that adding some costs little."""

    chunks: tuple[KeptEvents, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def add(self, events: KeptEvents | None, begins: Ints) -> EventChunks:
        """Return the events with others behind them. Those before the positions at which partitions begin are forgotten
        where chunks become one."""
        if events is None or not len(events):
            return self
        chunks = [*self.chunks, events]
        while len(chunks) > 1 and len(chunks[-2]) <= 2 * len(chunks[-1]):
            chunks[-2:] = [join_events([chunk.from_positions(begins) for chunk in chunks[-2:]])]
        return EventChunks(tuple(chunks))

    def of_partitions(self, is_wanted: Bits, begins: Ints) -> KeptEvents | None:
        """Return the events of some partitions, by code; ``None``: there are none."""
        parts = []
        for chunk in self.chunks:
            rows = np.flatnonzero(is_wanted[chunk.codes] & (chunk.positions >= begins[chunk.codes]))
            if len(rows):
                parts.append(chunk.select_events(rows))
        return join_events(parts) if parts else None

    def all_events(self, begins: Ints) -> KeptEvents | None:
        """Return all events that were not forgotten; ``None``: there are none."""
        return self.of_partitions(np.ones(len(begins), bool), begins)


def with_used_texts(batch: Batch) -> Batch:
    """Return a batch whose columns have few texts besides those of its events."""

    def without_unused(column: Column) -> Column:
        texts = column.texts
        if texts is None or len(texts) <= 2 * len(column) + FEW:
            return column
        codes, values = np.unique(column.values, return_inverse=True)
        return replace(column, values=values.astype(np.int64), texts=[texts[code] for code in codes.tolist()] or [""])

    types = None if batch.types is None else without_unused(batch.types)
    return replace(batch, types=types, columns={name: without_unused(column) for name, column in batch.columns.items()})


def columns_of(plan: Plan) -> tuple[str, ...]:
    """Return the names of the columns of events, besides those of times and types, that a plan reads."""
    return tuple(sorted({*plan.row, *plan.keys} - {plan.schema.ts, plan.schema.type}))


def plain_columns(batch: Batch, names: Sequence[str]) -> Batch:
    """Return a batch with some columns, whose numbers are those that a state has, without what tells the order of
    events of one time."""

    def plain(column: Column) -> Column:
        kind = np.float64 if column.values.dtype == np.float64 else np.int64
        texts = column.texts if column.texts or column.texts is None else ("",)  # which nulls refer to
        values: Any = column.values.astype(kind, copy=False)
        return replace(column, values=values, texts=texts)

    types = None if batch.types is None else plain(batch.types)
    columns = {name: plain(batch.columns[name]) for name in names}
    return with_used_texts(replace(batch, types=types, columns=columns, order=None))


def join_events(parts: Sequence[KeptEvents]) -> KeptEvents:
    """Return events one after another."""
    if len(parts) == 1:
        return parts[0]
    codes, positions = (np.concatenate([getattr(part, name) for part in parts]) for name in ("codes", "positions"))
    return KeptEvents(join_batches([part.batch for part in parts]), codes, positions)


def join_batches(batches: Sequence[Batch]) -> Batch:
    """Return batches as one."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    ids: Any = None
    if isinstance(first.ids, list):
        ids = [event for batch in batches for event in batch.ids or ()]
    elif first.ids is not None:
        ids = np.concatenate([np.asarray(batch.ids, np.int64) for batch in batches])
    types = [batch.types for batch in batches if batch.types is not None]
    return Batch(
        ts=np.concatenate([batch.ts for batch in batches]),
        types=concatenate_columns(types) if types else None,
        ids=ids,
        columns={name: concatenate_columns([batch.columns[name] for batch in batches]) for name in first.columns},
    )
