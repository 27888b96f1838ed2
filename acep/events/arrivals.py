"""Events in the order of their arrival: hold them until no earlier one can come, and take back the retracted ones.

An event is *late* if its time is less than the greatest time up to the push before, less ``lateness``, or not after the
last :meth:`Arrivals.advance`. Late events are not used; :attr:`Arrivals.late` has those of the last push.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError, DataWarning, SnapshotError, warn_caller
from acep.events.columns import ticks_of
from acep.events.disorder import HoldBack
from acep.events.tables import InputSchema
from acep.pattern.times import window_of

__all__ = ["ARRIVAL", "Arrivals", "lateness_ticks"]

ARRIVAL = "__arrival"
"""The column with the number of a row, in the order of arrival."""
FLATTEN = "leave lateness= out, or make it a column of its own"


def lateness_ticks(lateness: Any, schema: InputSchema) -> int:
    """Return a lateness in ticks: of a text such as ``"10 s"``, a timedelta, or ticks of an integer ``ts``.

    Raises :class:`DataError` if the length of a tick is not known, :class:`QueryError` for anything else.

    >>> from fractions import Fraction
    >>> lateness_ticks("10 s", InputSchema((), tick_ns=Fraction(10**6))), lateness_ticks(5, InputSchema(()))
    (10000, 5)
    """
    told = window_of(lateness)
    if told is None or told.unit == "events":
        raise DataError(f"lateness={lateness!r} is no span of time", hint='write lateness="10 s"')
    if told.unit == "ticks":
        if schema.instants:
            raise DataError(f"lateness={lateness!r} has no unit of time", hint='write lateness="10 s"')
        return -int(-told.amount // 1)
    if schema.tick_ns is None:
        raise DataError(
            f"lateness={lateness!r} needs to know how long a tick of the integer `{schema.ts}` is",
            hint='name the unit (unit="s"), or give the lateness in ticks',
        )
    return -int(-told.amount // schema.tick_ns)


class Arrivals:
    """The events of a stream that are held until no earlier one can come.

    ``op`` names the column with +1 for an event and -1 for the retraction of the event with the same id. A retraction
    has the time of its event. It takes effect while the event is held; if it comes before its event, both are left out.

    >>> from acep.events.tables import schema_of
    >>> columns = pa.schema({"ts": pa.int64()})
    >>> held = Arrivals(columns, schema_of(columns), lateness=2)
    >>> [None if rows is None else rows["ts"].to_pylist() for rows in map(held.push, (
    ...     pa.table({"ts": [3, 5]}), pa.table({"ts": [4, 9]})))]
    [None, [3, 4, 5]]
    >>> held.push(pa.table({"ts": [6]})), held.late.to_pydict()
    (None, {'ts': [6]})
    """

    def __init__(self, arrow: pa.Schema, schema: InputSchema, lateness: Any, op: str | None = None) -> None:
        self.lateness, self.op, self.schema = lateness_ticks(lateness, schema), op, schema
        self._arrow = pa.schema([field for field in arrow.remove_metadata() if field.name != op])
        for name in (schema.ts, schema.seq, schema.id):
            if name is not None and name not in self._arrow.names:
                raise DataError(f"column `{name}` is a field of another, and events are held by columns", hint=FLATTEN)
        then = [] if schema.seq is None else [schema.seq]
        self._held = HoldBack(schema.ts, [*then, ARRIVAL], schema.tick_ns or 1)
        self.late: pa.Table | None = None
        self.late_count = 0
        self._arrived = 0
        self._ids: dict[Any, tuple[int, int]] = {}  # arrival number and time of each held event, with ``op``
        self._waiting: dict[Any, int] = {}  # time of each retraction whose event has not come
        self._gone: set[int] = set()  # arrival numbers of held events that were retracted

    def __len__(self) -> int:
        return len(self._held) - len(self._gone)

    @property
    def final(self) -> int | None:
        """Return the time before which nothing changes any more, in ticks; ``None`` before the first push."""
        return self._held.released

    def push(self, rows: pa.Table) -> pa.Table | None:
        """Take in rows in any order; return those that are certain now, in the order of the stream.

        Raises :class:`DataError`, with nothing taken in, for a null time, id or seq, a column ``op`` that is not +1 or
        -1, an id that is inserted twice, or a retraction whose time is not that of its event.
        """
        same, ticks = self._same(rows), self._ticks(rows)
        fresh = np.ones(len(ticks), bool) if self.final is None else ticks >= self.final
        numbers = np.arange(self._arrived, self._arrived + len(rows))
        kept = fresh if self.op is None else fresh & self._operated(rows, ticks, numbers, fresh)
        self._arrived += len(rows)
        self.late = rows.filter(pa.array(~fresh))
        self.late_count += self.late.num_rows
        self._held.add(same.append_column(ARRIVAL, pa.array(numbers)).filter(pa.array(kept)))
        if not fresh.any():
            return None
        self._held.see(int(ticks[fresh].max()))
        assert self._held.greatest is not None
        return self._released(self._held.greatest - self.lateness)

    def advance(self, tick: int) -> pa.Table | None:
        """Declare that no event at or before ``tick`` will come; return the rows that are certain now."""
        return self._released(tick + 1)

    def finish(self) -> pa.Table | None:
        """Return all remaining rows: no event will come."""
        rows = self._held.drain()
        self._settle(None)
        return self._stay(rows)

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data with bytes."""
        told = {"held": self._held.dumps(), "released": self._held.released, "greatest": self._held.greatest}
        told |= {"late": self.late_count, "arrived": self._arrived}
        ids = [[one, *both] for one, both in self._ids.items()]
        return told | {"ids": ids, "waiting": [*map(list, self._waiting.items())], "gone": sorted(self._gone)}

    def load(self, data: Mapping[str, Any]) -> None:
        """Read the data of :meth:`dump`. Raises :class:`SnapshotError` if it is invalid."""
        try:
            self._held.loads(data["held"])
            self._held.released, self._held.greatest = (_tick(data[name]) for name in ("released", "greatest"))
            self.late_count, self._arrived = int(data["late"]), int(data["arrived"])
            self._ids = {one: (int(number), int(tick)) for one, number, tick in data["ids"]}
            self._waiting = {one: int(tick) for one, tick in data["waiting"]}
            self._gone = {int(one) for one in data["gone"]}
        except (KeyError, TypeError, ValueError, pa.ArrowException):
            raise SnapshotError("the snapshot does not hold a state of this stream") from None

    def time(self, ts: Any) -> pa.Array:
        """Return a time, in the form of the time column, as an Arrow value. Raises :class:`DataError` for another."""
        try:
            return pa.array([ts], self._arrow.field(self.schema.ts).type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise DataError(f"advance() takes a time like those of column `{self.schema.ts}`, not {ts!r}") from None

    def _same(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the columns of the first push. Raises :class:`DataError` if these do not fit."""
        try:
            return rows.select(self._arrow.names).cast(self._arrow)
        except KeyError as missing:
            raise DataError(f"the events have other columns than before: {missing.args[0]}") from None
        except pa.ArrowException as bad:
            raise DataError(f"the events have other types than before: {str(bad).splitlines()[0]}") from None

    def _ticks(self, rows: pa.Table) -> Any:
        ticks, null = ticks_of(self.schema.ts, rows.column(self.schema.ts), self.schema.tick_ns or 1)
        if null is not None and null.any():
            raise DataError(f"column `{self.schema.ts}` is null in some event", hint="fill it in, or drop the row")
        for name in (self.schema.seq, self.schema.id):
            if name is not None and rows.column(name).null_count:
                raise DataError(f"column `{name}` is null in some event", hint="fill it in, or drop the row")
        return ticks

    def _released(self, before: int) -> pa.Table | None:
        if self.final is not None and before <= self.final:
            return None
        rows = self._held.release(before)
        self._settle(before)
        return self._stay(rows)

    def _stay(self, rows: pa.Table | None) -> pa.Table | None:
        """Return the rows that were not retracted."""
        if rows is None or not self._gone:
            return rows
        numbers = rows.column(ARRIVAL).to_numpy()
        gone = np.isin(numbers, np.fromiter(self._gone, np.int64, len(self._gone)))
        self._gone.difference_update(numbers[gone].tolist())
        return rows.filter(pa.array(~gone)) if not gone.all() else None

    def _settle(self, before: int | None) -> None:
        """Forget the ids of events that are final, and warn of retractions whose event did not come."""
        if self.op is None:
            return
        self._ids = {one: both for one, both in self._ids.items() if before is not None and both[1] >= before}
        waiting = {one: tick for one, tick in self._waiting.items() if before is not None and tick >= before}
        if lost := len(self._waiting) - len(waiting):
            some = next(one for one in self._waiting if one not in waiting)
            warn_caller(f"{lost} retractions name events that never came or were final, first id {some!r}", DataWarning)
        self._waiting = waiting

    def _operated(self, rows: pa.Table, ticks: Any, numbers: Any, fresh: Any) -> Any:
        """Apply the column ``op``, and return which rows are events that may stay."""
        signs = _signs(str(self.op), rows)
        ids, waiting, gone = dict(self._ids), dict(self._waiting), set(self._gone)
        stay = signs > 0
        names = rows.column(str(self.schema.id)).to_pylist()
        for at in np.flatnonzero(fresh).tolist():
            name, tick, sign = names[at], int(ticks[at]), signs[at]
            if sign > 0 and name in waiting:
                _same_time(name, tick, waiting.pop(name))
                stay[at] = False
            elif sign > 0:
                if name in ids:
                    raise DataError(f"the event with id {name!r} comes twice", hint="retract it first, with op -1")
                ids[name] = (int(numbers[at]), tick)
            elif name in ids:
                number, known = ids.pop(name)
                _same_time(name, tick, known)
                gone.add(number)
            elif name in waiting:
                raise DataError(f"the event with id {name!r} is retracted twice")
            else:
                waiting[name] = tick
        inside = {number for number in gone if number >= self._arrived}
        stay[[number - self._arrived for number in inside]] = False
        self._ids, self._waiting, self._gone = ids, waiting, gone - inside
        return stay


def _signs(op: str, rows: pa.Table) -> Any:
    if op not in rows.column_names:
        raise DataError(f"there is no column `{op}`", hint="op= names the column with +1 and -1")
    column = rows.column(op)
    values = column.to_numpy() if pa.types.is_integer(column.type) and not column.null_count else np.zeros(1)
    if not np.isin(values, (1, -1)).all():
        raise DataError(f"column `{op}` must hold the integers +1 and -1", hint="+1 is an event, -1 takes one back")
    return values.astype(np.int64)


def _same_time(name: Any, tick: int, known: int) -> None:
    if tick != known:
        raise DataError(f"the retraction of id {name!r} has another time than its event")


def _tick(value: Any) -> int | None:
    return None if value is None else int(value)
