"""Hold rows back and release them in the order of time, so that disorder within the watermark changes nothing.

:meth:`HoldBack.add` judges which rows of Spark's buckets are late. Of a stream in one process,
``Arrivals._find_on_time`` in arrivals.py does.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError, SnapshotError
from acep.events.buffers import read_table, table_bytes
from acep.events.columns import ticks_of

__all__ = ["HoldBack"]

Ticks = npt.NDArray[np.int64]


class HoldBack:
    """A buffer that holds the rows of a stream, and releases them in stream order once no earlier row can come.

    ``ts`` names the time column; ``tick_ns`` is the length of its tick in nanoseconds (1 for an integer column of
    unknown unit). Rows are ordered by ``ts``, then by the columns ``tie_breakers``, then by all other columns
    in the order of their names; NaN comes after the numbers, null last. Rows that compare equal hold the same values,
    so the order does not depend on how the rows arrived. ``unique``: the columns ``tie_breakers`` tell all rows apart,
    and no other column is compared.

    ``released``: all rows before this time have been released (ticks, ``None`` before the first release).
    ``greatest``: the greatest time seen (ticks, ``None`` before the first row). ``late`` and ``ahead`` count the
    refused rows; ``refused`` has the late ones of the last call (``None``: there were none).

    >>> buffer = HoldBack("ts", ["seq"])
    >>> buffer.add(pa.table({"ts": [3, 1, 2, 2], "seq": [1, 2, 4, 3]}))
    0
    >>> buffer.release(3).to_pydict(), len(buffer)
    ({'ts': [1, 2, 2], 'seq': [2, 3, 4]}, 1)
    >>> buffer.add(pa.table({"ts": [2, 4], "seq": [5, 6]}))
    1
    """

    def __init__(
        self, ts: str, tie_breakers: Sequence[str] = (), tick_ns: Fraction | int = 1, *, unique: bool = False
    ) -> None:
        self.ts = ts
        self.tie_breakers = tuple(tie_breakers)
        self.unique = unique
        self.tick_ns = tick_ns
        self.released: int | None = None
        self.greatest: int | None = None
        self.late = self.ahead = 0
        self.refused: pa.Table | None = None
        self._held: list[tuple[pa.Table, Ticks]] = []

    def __copy__(self) -> HoldBack:
        copy = object.__new__(HoldBack)  # in less time than the usual way takes, as each push makes a copy
        vars(copy).update(vars(self))
        return copy

    def __len__(self) -> int:
        return sum(table.num_rows for table, _ in self._held)

    def add(self, rows: pa.Table, before: int | None = None, latest: int | None = None) -> int:
        """Hold ``rows``, except those that are late or ahead; return how many were late.

        A row is late if its time is less than ``before`` or :attr:`released`. It is ahead if its time is greater than
        ``latest``; such a time does not count as seen. Raises :class:`DataError`, and holds nothing, for a null time.
        """
        self.refused = None
        if not rows.num_rows:
            return 0
        ticks = self._ticks(rows)
        if latest is not None and ticks.max() > latest:
            is_near = ticks <= latest
            self.ahead += rows.num_rows - int(np.count_nonzero(is_near))
            rows, ticks = rows.filter(pa.array(is_near)), ticks[is_near]
            if not rows.num_rows:
                return 0
        self.see(int(ticks.max()))
        bounds = [bound for bound in (before, self.released) if bound is not None]
        n_late = 0
        if bounds:
            fresh = ticks >= max(bounds)
            n_late = rows.num_rows - int(np.count_nonzero(fresh))
            if n_late:
                self.refused = rows.filter(pa.array(~fresh))
                rows, ticks = rows.filter(pa.array(fresh)), ticks[fresh]
        if rows.num_rows:
            self._held = [*self._held, (rows, ticks)]  # a new list, so that a copy of the buffer stays as it is
        self.late += n_late
        return n_late

    @property
    def rows(self) -> tuple[pa.Table, Ticks] | None:
        """Return the rows that are held and their times, in ticks, in the order in which they came; ``None``: there are
        none."""
        return self._join_held() if self._held else None

    def keep(self, stay: npt.NDArray[np.bool_]) -> None:
        """Hold only some of the rows of :attr:`rows`."""
        rows, ticks = self._join_held()
        self._held = [(rows.filter(pa.array(stay)), ticks[stay])] if stay.any() else []

    def held_column(self, name: str) -> tuple[pa.Array, Ticks] | None:
        """Return a column and the times, in ticks, of the rows that are held; ``None``: there are none."""
        if not self._held:
            return None
        rows, ticks = self._join_held()
        return rows.column(name).combine_chunks(), ticks

    def see(self, tick: int) -> None:
        """Record a time as seen, though no row is held for it."""
        self.greatest = tick if self.greatest is None else max(tick, self.greatest)

    def release(self, before: int) -> pa.Table | None:
        """Release rows with ``ts < before`` in stream order, ``None`` if there are none. Later such rows are late."""
        if self.released is None or before > self.released:
            self.released = before
        if not self._held:
            return None
        rows, ticks = self._join_held()
        due = ticks < before
        n_due = int(np.count_nonzero(due))
        if not n_due:
            self._held = [(rows, ticks)]
            return None
        # take() copies, so the rows that stay do not hold on to the memory of the others.
        remaining = np.flatnonzero(~due)
        self._held = [(rows.take(pa.array(remaining)), ticks[remaining])] if len(remaining) else []
        if due[:n_due].all():
            return self._sort_rows(rows.slice(0, n_due), ticks[:n_due])
        return self._sort_rows(rows.take(pa.array(np.flatnonzero(due))), ticks[due])

    def drain(self) -> pa.Table | None:
        """Release all remaining rows in stream order, at the end of the stream; ``None`` if there are none."""
        if not self._held:
            return None
        rows, ticks = self._join_held()
        self._held = []
        return self._sort_rows(rows, ticks)

    def dumps(self) -> bytes:
        """Return the held rows as an Arrow IPC stream; no bytes if there are none."""
        if not self._held:
            return b""
        rows, _ = self._join_held()
        return table_bytes(rows)

    def loads(self, data: bytes) -> None:
        """Replace the held rows by those of :meth:`dumps`.

        Raises :class:`SnapshotError` if the bytes cannot be read.
        """
        try:
            rows = read_table(data) if data else None
        except (pa.ArrowException, OSError, ValueError):
            raise SnapshotError(
                "the rows held back cannot be read: the state is damaged", code="state_damaged"
            ) from None
        self._held = [] if rows is None else [(rows, self._ticks(rows))]

    def _join_held(self) -> tuple[pa.Table, Ticks]:
        tables, ticks = zip(*self._held, strict=True)
        return pa.concat_tables(tables), np.concatenate(ticks)

    def _ticks(self, rows: pa.Table) -> Ticks:
        ticks, null = ticks_of(self.ts, rows.column(self.ts), self.tick_ns)
        if null is not None and null.any():
            raise DataError(
                f"column `{self.ts}` is null in some event", hint="fill it in, or drop the row", code="data_null"
            )
        return np.asarray(ticks, np.int64)

    def _sort_rows(self, rows: pa.Table, ticks: Ticks) -> pa.Table:
        order = self.order(rows, ticks)
        return rows if order is None else rows.take(pa.array(order))

    def order(self, rows: pa.Table, ticks: Ticks) -> npt.NDArray[np.intp] | None:
        """Return the places of rows in stream order; ``None``: they are in order."""
        steps = np.diff(ticks)
        if (steps > 0).all():
            return None
        order = np.argsort(ticks, kind="stable")
        equal = np.diff(ticks[order]) == 0
        if equal.any():
            import pyarrow.compute as pc  # here, since its import is slow

            # Only ties are sorted by more than their time, since that takes several times as long.
            tied = np.zeros(len(ticks), bool)
            tied[1:] = equal
            tied[:-1] |= equal
            names = [self.ts, *self.tie_breakers]
            if not self.unique:
                names += sorted(set(rows.column_names) - set(names))
            tied_indices = order[tied]
            tied_rows = rows.select(names).take(pa.array(tied_indices))
            ranks = pc.sort_indices(tied_rows, sort_keys=[(name, "ascending") for name in names])
            order[tied] = tied_indices[ranks.to_numpy()]
        return order
