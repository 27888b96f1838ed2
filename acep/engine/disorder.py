"""Rows that wait until time has passed them, so that disorder within the watermark changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep.engine.columns import ticks_of
from acep.errors import DataError, SnapshotError

__all__ = ["HoldBack"]


class HoldBack:
    """Holds the rows of a stream and gives them back in stream order once no earlier row can come.

    ``ts`` names the time column, ``tick_ns`` is the length of its tick in nanoseconds (1 for an integer column of
    unknown unit). Rows are ordered by ``ts``, then by the columns ``then``, then by all other columns in the order
    of their names; NaN comes after the numbers, null last. So rows that compare equal hold the same values, and
    the order does not depend on how the rows arrived.

    ``clock`` is the time up to which rows have been released (ticks, ``None`` before the first release);
    ``late`` counts the rows refused because they came after that.

    >>> held = HoldBack("ts", ["seq"])
    >>> held.add(pa.table({"ts": [3, 1, 2, 2], "seq": [1, 2, 4, 3]}))
    0
    >>> held.release(2).to_pydict(), len(held)
    ({'ts': [1, 2, 2], 'seq': [2, 3, 4]}, 1)
    >>> held.add(pa.table({"ts": [2, 4], "seq": [5, 6]}))
    1
    """

    def __init__(self, ts: str, then: Sequence[str] = (), tick_ns: Fraction | int = 1) -> None:
        self.ts = ts
        self.then = tuple(then)
        self.tick_ns = tick_ns
        self.clock: int | None = None
        self.late = 0
        self._held: list[pa.Table] = []

    def __len__(self) -> int:
        return sum(table.num_rows for table in self._held)

    def add(self, rows: pa.Table) -> int:
        """Hold ``rows``, except the late ones; how many were late.

        Raises :class:`DataError`, with nothing held, if a time is null.
        """
        if not rows.num_rows:
            return 0
        ticks = self._ticks(rows)
        late = 0
        if self.clock is not None:
            fresh = ticks > self.clock
            late = rows.num_rows - int(fresh.sum())
            if late:
                rows = rows.filter(pa.array(fresh))
        if rows.num_rows:
            self._held.append(rows)
        self.late += late
        return late

    def release(self, clock: int) -> pa.Table | None:
        """The rows with ``ts <= clock`` in stream order, ``None`` if there are none. What comes after them is late."""
        if self.clock is None or clock > self.clock:
            self.clock = clock
        if not self._held:
            return None
        rows = pa.concat_tables(self._held)
        due = self._ticks(rows) <= clock
        if not due.any():
            self._held = [rows]
            return None
        if due.all():
            self._held = []
            return self._ordered(rows)
        # take() copies, so that the rows that stay do not keep the others alive.
        self._held = [rows.take(pa.array(np.flatnonzero(~due)))]
        return self._ordered(rows.take(pa.array(np.flatnonzero(due))))

    def drain(self) -> pa.Table | None:
        """All rows that are left, in stream order: the stream has ended."""
        rows = pa.concat_tables(self._held) if self._held else None
        self._held = []
        return None if rows is None else self._ordered(rows)

    def dumps(self) -> bytes:
        """The rows held, as an Arrow IPC stream; no bytes if there are none."""
        if not self._held:
            return b""
        rows = pa.concat_tables(self._held)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows.combine_chunks())
        return bytes(sink.getvalue().to_pybytes())

    def loads(self, data: bytes) -> None:
        """Hold the rows of :meth:`dumps` instead of those held now.

        Raises :class:`SnapshotError` if the bytes cannot be read.
        """
        try:
            self._held = [pa.ipc.open_stream(data).read_all()] if data else []
        except (pa.ArrowException, OSError, ValueError):
            raise SnapshotError("the rows held back cannot be read: the state is damaged") from None

    def _ticks(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        ticks, null = ticks_of(self.ts, rows.column(self.ts), self.tick_ns)
        if null is not None and null.any():
            raise DataError(f"column `{self.ts}` is null in some event", hint="fill it in, or drop the row")
        return np.asarray(ticks, np.int64)

    def _ordered(self, rows: pa.Table) -> pa.Table:
        first = (self.ts, *self.then)
        names = [*first, *sorted(set(rows.column_names) - set(first))]
        order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in names])
        return rows.take(order)
