"""Define a batch of events as columns, the form in which engines take their input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.records import Events, Id
from acep.pattern.expressions import Value
from acep.plan.schema import Kind, Schema

__all__ = ["Batch", "Column", "batch_of_events", "column_of_values"]

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.signedinteger[Any]] | npt.NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """n values of one ``kind``.

    ``values``: (n,) float64 for floats, else int64: integers, ticks, 0 or 1 for truth values. For texts they are
    indices into ``texts``, of any signed integer type. They may share memory with a table, so never write to them.
    ``valid``: (n,) uint8, 0 for null (``None``: there are no nulls). A NaN is null, and the value of a null is 0.
    """

    kind: Kind
    values: Numbers
    valid: npt.NDArray[np.uint8] | None = None
    texts: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: npt.NDArray[np.intp] | slice) -> Column:
        """Return the values of some rows."""
        valid = None if self.valid is None else self.valid[rows]
        return Column(self.kind, self.values[rows], valid, self.texts)

    def copy(self) -> Column:
        """Return the column in memory of its own, but for its texts."""
        return Column(self.kind, self.values.copy(), None if self.valid is None else self.valid.copy(), self.texts)

    def to_list(self) -> list[Value]:
        """Return Python values, ``None`` for null.

        >>> Column(Kind.STRING, np.array([1, 0]), np.array([1, 0], np.uint8), ["a", "b"]).to_list()
        ['b', None]
        """
        array: npt.NDArray[Any] = self.values
        if self.kind is Kind.BOOL:
            array = self.values.astype(bool)
        elif self.kind is Kind.STRING:
            array = np.array([*(self.texts or ()), None], dtype=object)[self.values]
        if self.valid is not None:
            array = array.astype(object)
            array[self.valid == 0] = None
        values: list[Value] = array.tolist()
        return values


def column_of_values(values: Sequence[Value], kind: Kind) -> Column:
    """Return Python values as a column.

    >>> column_of_values([True, None], Kind.BOOL).values.tolist()
    [1, 0]
    """
    null = np.fromiter((v is None for v in values), bool, len(values))
    valid = (~null).view(np.uint8) if null.any() else None
    if kind is Kind.STRING:
        codes: dict[Value, int] = {}
        numbers = [0 if v is None else codes.setdefault(v, len(codes)) for v in values]
        return Column(kind, np.array(numbers, np.int64), valid, [str(v) for v in codes])
    filled = [0 if v is None else v for v in values]
    return Column(kind, np.array(filled, np.float64) if kind is Kind.FLOAT else np.array(filled, np.int64), valid)


@dataclass(frozen=True)
class Batch:
    """n events of one stream, in stream order.

    ``ts``: (n,) ticks. ``types``: event types, ``None`` if the stream has none. ``ids``: (n,) integers, a range of
    n with step 1, or n texts; ``None``: positions within the partition. ``columns``: the attributes that plans read.
    ``order``: (n,) tie breakers within a timestamp (``seq``), used only to detect a batch out of order.
    """

    ts: Ints
    types: Column | None
    ids: Ints | range | list[str] | None
    columns: dict[str, Column]
    order: Ints | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def cuts(self, n_events: int) -> Iterator[slice]:
        """Yield the rows of parts of ``n_events`` events, or of more if the next events have the same time."""
        stop = 0
        while stop < len(self):
            begin, stop = stop, min(stop + n_events, len(self))
            stop = int(np.searchsorted(self.ts, self.ts[stop - 1], "right"))
            yield slice(begin, stop)

    def parts(self, n_events: int) -> Iterator[Batch]:
        """Yield the parts as batches.

        >>> batch = Batch(np.array([1, 2, 2, 3]), None, None, {})
        >>> [part.ts.tolist() for part in batch.parts(2)]
        [[1, 2, 2], [3]]
        """
        for rows in self.cuts(n_events):
            yield self.take(rows)

    def take(self, rows: slice | npt.NDArray[np.intp]) -> Batch:
        """Return some rows, in stream order."""
        ids = self.ids
        if ids is not None:
            if isinstance(rows, slice):
                ids = ids[rows]
            else:
                ids = [ids[row] for row in rows.tolist()] if isinstance(ids, list) else np.asarray(ids, np.int64)[rows]
        return Batch(
            ts=self.ts[rows],
            types=None if self.types is None else self.types.take(rows),
            ids=ids,
            columns={name: column.take(rows) for name, column in self.columns.items()},
            order=None if self.order is None else self.order[rows],
        )

    @cached_property
    def events(self) -> Events:
        """Return the batch as Python values, as the reference runtime takes them."""
        ids: list[Id] | None = None
        if self.ids is not None:
            ids = [*self.ids] if isinstance(self.ids, list | range) else self.ids.tolist()
        types: list[str | None] = [None] * len(self)
        if self.types is not None:
            types = [None if t is None else str(t) for t in self.types.to_list()]
        return Events(
            ts=self.ts.tolist(),
            types=types,
            ids=ids,
            columns={name: column.to_list() for name, column in self.columns.items()},
            order=None if self.order is None else self.order.tolist(),
        )


def batch_of_events(events: Events, schema: Schema) -> Batch:
    """Return Python values as a batch; ``schema`` has the kinds of the columns.

    >>> batch_of_events(Events([1], ["a"], None, {}), Schema(())).events.types
    ['a']
    """
    texts = events.ids is not None and any(isinstance(i, str) for i in events.ids)
    ids: Any = None
    if events.ids is not None:
        ids = [str(i) for i in events.ids] if texts else np.array(events.ids, np.int64)
    return Batch(
        ts=np.array(events.ts, np.int64),
        types=column_of_values(events.types, Kind.STRING),
        ids=ids,
        columns={name: column_of_values(values, schema.engine_kind(name)) for name, values in events.columns.items()},
        order=None if events.order is None else np.array(events.order, np.int64),
    )
