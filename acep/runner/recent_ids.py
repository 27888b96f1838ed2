"""Know the ids of events that are not final, so that an event that is delivered again is noticed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError
from acep.events.columns import ticks_of
from acep.events.files.options import BadLines
from acep.events.tables import InputSchema

__all__ = ["RecentIds"]

Ticks = npt.NDArray[np.int64]


class RecentIds:
    """The ids of events that are not final: those that a stream ``kept`` (ids, and times in ticks), and those of
    :meth:`once` since. ``final`` is the tick before which times are final, ``latest`` the last one that a time may have
    (``None``: there is none). Events before or after these are not used, so their ids are not looked at.

    >>> from acep.events.tables import schema_of
    >>> rows = pa.table({"ts": [5, 6, 6], "id": [1, 2, 1]})
    >>> recent = RecentIds(schema_of(rows.schema, id="id"))
    >>> recent.once(rows, "a.csv", BadLines(), skip=True).to_pydict()
    {'ts': [5, 6], 'id': [1, 2]}
    >>> recent.forget(6)
    >>> len(recent), recent.once(rows.slice(0, 1), "b.csv", BadLines(), skip=False).num_rows
    (1, 1)
    """

    def __init__(
        self, schema: InputSchema, final: int | None = None, kept: tuple[pa.Array, Ticks] | None = None
    ) -> None:
        self.schema, self.final = schema, final
        self.latest: int | None = None
        self._known: list[tuple[pa.Array, Ticks]] = [] if kept is None else [kept]

    def __len__(self) -> int:
        return sum(len(ticks) for _, ticks in self._known)

    def once(self, rows: pa.Table, where: str, bad: BadLines, *, skip: bool) -> pa.Table:
        """Return the rows of a file whose ids did not come before. With ``skip`` others are counted in ``bad``.

        Raises :class:`DataError` for the first other one, without ``skip``.
        """
        import pyarrow.compute as pc  # here, since its import is slow

        if not rows.num_rows:
            return rows
        schema = self.schema
        ticks, _ = ticks_of(schema.ts, rows.column(schema.ts), schema.tick_ns or 1)
        used = np.ones(len(ticks), bool) if self.final is None else ticks >= self.final
        live = np.flatnonzero(used if self.latest is None else used & (ticks <= self.latest))
        ids, ticks = rows.column(str(schema.id)).combine_chunks().take(pa.array(live)), ticks[live]
        again = np.ones(len(ids), bool)
        again[np.unique(ids.dictionary_encode().indices.to_numpy(), return_index=True)[1]] = False
        for known, _ in self._known:
            again |= pc.is_in(ids, value_set=known.cast(ids.type)).to_numpy(zero_copy_only=False)
        if again.any():
            row, value = int(live[again][0]), ids[int(np.argmax(again))].as_py()
            said = f"`{where}`, row {row} (rows count from 0): the id {value!r} of column `{schema.id}` came before"
            if not skip:
                hint = "was a file delivered twice? take it away, or leave such rows out: skip_bad_lines=True"
                raise DataError(said, hint=hint, code="data_order")
            bad.add(said, int(np.count_nonzero(again)))
            rows = rows.take(pa.array(np.delete(np.arange(rows.num_rows), live[again])))
            ids, ticks = ids.take(pa.array(np.flatnonzero(~again))), ticks[~again]
        self._known.append((ids, ticks))
        return rows

    def forget(self, final: int | None, latest: int | None = None) -> None:
        """Forget the events before the tick ``final``, which are final now. ``latest`` holds for the next ones."""
        self.final, self.latest = final, latest
        if self._known:
            ids = pa.concat_arrays([one for one, _ in self._known])
            ticks = np.concatenate([one for _, one in self._known])
            stay = slice(None) if final is None else np.flatnonzero(ticks >= final)
            self._known = [(ids if final is None else ids.take(pa.array(stay)), ticks[stay])]
