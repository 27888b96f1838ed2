"""Know the ids of events that are not final, so that an event that is delivered again is noticed, by file and row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.events.columns import ticks_of
from acep.events.fields import repeat_error
from acep.events.seen_ids import SeenIds
from acep.events.tables import InputSchema

__all__ = ["RecentIds"]

Ticks = npt.NDArray[np.int64]


class RecentIds:
    """The ids of events that are not final: those that a stream kept (``kept_ids``: ids, and times in ticks), and those
    of :meth:`leave_out_repeats` since. ``final`` is the tick before which times are final, ``latest`` the last one that
    a time may have (``None``: there is none). Events before or after these are not used, so their ids are not looked
    at.

    >>> from acep.events.tables import schema_of
    >>> rows = pa.table({"ts": [5, 6, 6], "id": [1, 2, 1]})
    >>> recent = RecentIds(schema_of(rows.schema, id="id"))
    >>> recent.leave_out_repeats(rows, str, drop=True).to_pydict()
    {'ts': [5, 6], 'id': [1, 2]}
    >>> recent.forget(6)
    >>> recent.leave_out_repeats(rows.slice(0, 1), str, drop=False).num_rows
    1
    """

    def __init__(
        self, schema: InputSchema, final: int | None = None, kept_ids: tuple[pa.Array, Ticks] | None = None
    ) -> None:
        self.schema = schema
        self.latest: int | None = None
        self._seen = SeenIds(str(schema.id))
        self._seen.forget(final)
        if kept_ids is not None:
            self._seen.see(pa.chunked_array([kept_ids[0]]), kept_ids[1])

    def leave_out_repeats(self, rows: pa.Table, place_of: Callable[[int], str], *, drop: bool) -> pa.Table:
        """Return the rows of a file whose ids did not come before. Others are left out (``drop``). ``place_of`` gives
        the words for the place of a row.

        Raises :class:`DataError` for the first other one, without ``drop``.
        """
        if not rows.num_rows:
            return rows
        schema, final = self.schema, self._seen.final
        ticks, _ = ticks_of(schema.ts, rows.column(schema.ts), schema.tick_ns or 1)
        is_used = np.ones(len(ticks), bool) if final is None else ticks >= final
        if self.latest is not None:
            is_used &= ticks <= self.latest
        ids = rows.column(self._seen.name)
        is_repeated = self._seen.see(ids, ticks, is_used)
        if not is_repeated.any():
            return rows
        if not drop:
            row = int(np.argmax(is_repeated))
            raise repeat_error(self._seen.name, ids[row].as_py(), row, place_of(row))
        return rows.filter(pa.array(~is_repeated))

    def forget(self, final: int | None, latest: int | None = None) -> None:
        """Forget the events before the tick ``final``, which are final now. ``latest`` holds for the next ones."""
        self._seen.forget(final)
        self.latest = latest
