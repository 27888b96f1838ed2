"""Events in the order of their arrival: hold them until no earlier one can come, and take back the retracted ones.

An event is *late* if its time is less than the greatest time up to the push before, less ``lateness``, or not after the
last :meth:`Arrivals.advance`. Late events are not used; :attr:`Arrivals.late` has those of the last push. With a
``speculation`` events are given before that, and those that come or go later are given as a :class:`ReleasedEvents`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.arrivals.hold_back import HoldBack
from acep.arrivals.released_events import ARRIVAL, ReleasedEvents
from acep.arrivals.retractions import Retractions, signs_of
from acep.errors import DataError, SnapshotError
from acep.events.buffers import selectable
from acep.events.columns import column_of, ticks_of
from acep.events.fields import column_at, null_error, repeat_error
from acep.events.punctuations import BEGINNING, Key, Punctuations, distinct
from acep.events.seen_ids import SeenIds
from acep.events.tables import InputSchema, attribute_tick
from acep.pattern.times import window_of

__all__ = ["ENDLESS", "Arrivals", "span_ticks"]

ENDLESS = float("inf")
"""The length of a span without end."""
FLATTEN = "leave lateness= out, or make it a column of its own"


def span_ticks(name: str, span: Any, schema: InputSchema) -> int | None:
    """Return a span in ticks: of a text such as ``"10 s"``, a timedelta, or ticks of an integer ``ts``. ``None``: it is
    infinite, given as ``"inf"`` or ``math.inf``. ``name``: the name of the option.

    Raises :class:`DataError` if the length of a tick is not known, :class:`QueryError` for anything else.

    >>> from fractions import Fraction
    >>> span_ticks("lateness", "10 s", InputSchema((), tick_ns=Fraction(10**6)))
    10000
    """
    if span == ENDLESS or span == "inf":
        return None
    if span == 0:
        return 0
    window = window_of(span)
    if window is None or window.unit == "events":
        raise DataError(f"{name}={span!r} is no span of time", hint=f'write {name}="10 s"', code="option_invalid")
    if window.unit == "ticks":
        if schema.instants:
            raise DataError(f"{name}={span!r} has no unit of time", hint=f'write {name}="10 s"', code="option_invalid")
        return -int(-window.amount // 1)
    if schema.tick_ns is None:
        raise DataError(
            f"{name}={span!r} needs to know how long a tick of the integer `{schema.ts}` is",
            hint=f'name the unit (unit="s"), or give {name} in ticks',
            code="option_invalid",
        )
    return -int(-window.amount // schema.tick_ns)


class Arrivals:
    """The events of a stream that are held until no earlier one can come, or for a shorter time: with a ``speculation``
    events are given that long before they are final, and at once if it is ``None``.

    ``op`` names the column with +1 for an event and -1 for the retraction of the event with the same id. A retraction
    has the time of its event. It takes effect until the event is final. If it comes before its event, both are left
    out. ``duplicates``: an event that comes again, by its id, is refused (``"refuse"``) or left out (``"drop"``);
    ``None``: it is not looked for. With ``op`` it is always looked for.

    >>> from acep.events.tables import schema_of
    >>> columns = pa.schema({"ts": pa.int64()})
    >>> arrivals = Arrivals(columns, schema_of(columns), lateness=2)
    >>> [None if due.rows is None else due.rows["ts"].to_pylist() for due in map(arrivals.push, (
    ...     pa.table({"ts": [3, 5]}), pa.table({"ts": [4, 9]})))]
    [None, [3, 4, 5]]
    >>> arrivals.push(pa.table({"ts": [6]})).rows, arrivals.late.to_pydict()
    (None, {'ts': [6]})
    >>> arrivals = Arrivals(columns, schema_of(columns), lateness=2, speculation=None)
    >>> arrivals.push(pa.table({"ts": [3, 5]})).rows["ts"].to_pylist()
    [3, 5]
    >>> due = arrivals.push(pa.table({"ts": [6, 4]}))
    >>> due.rows["ts"].to_pylist(), due.order.tolist(), due.inserted
    ([6, 4], [1, 0], 1)
    """

    def __init__(
        self,
        arrow: pa.Schema,
        schema: InputSchema,
        lateness: Any,
        op: str | None = None,
        speculation: Any = 0,
        *,
        duplicates: str | None = None,
    ) -> None:
        self.lateness, self.op, self.schema = span_ticks("lateness", lateness, schema), op, schema
        ahead = span_ticks("speculation", ENDLESS if speculation is None else speculation, schema)
        at_once = ahead is None or (ahead > 0 and self.lateness is not None and ahead >= self.lateness)
        self.speculation = None if at_once else ahead
        self.final: int | None = None
        """The time before which nothing changes any more, in ticks; ``None``: not known yet."""
        columns = [field for field in arrow.remove_metadata() if field.name != op]
        self._arrow = selectable(pa.schema(columns).empty_table()).schema
        for name in (schema.ts, schema.seq, schema.id):
            if name is not None and name not in self._arrow.names:
                raise DataError(
                    f"column `{name}` is a field of another, and events are held by columns",
                    hint=FLATTEN,
                    code="data_type",
                )
        tie_breakers = [] if schema.seq is None else [schema.seq]
        self._held = HoldBack(schema.ts, [*tie_breakers, ARRIVAL], schema.tick_ns or 1, unique=True)
        self.late: pa.Table | None = None
        self.late_count = 0
        self.arrived = 0
        """The rows that have come, late ones and retractions among them."""
        self._drop = duplicates == "drop"
        self._retractions = Retractions(drop=self._drop)  # with ``op``
        looks_for_ids = schema.id is not None and op is None and duplicates is not None
        self._seen = SeenIds(str(schema.id)) if looks_for_ids else None  # with ``op`` the retractions know the ids
        self.duplicates = 0
        """The rows that were left out, as their events had come before."""
        self.punctuations = Punctuations()
        """The punctuations with a condition (:meth:`promise`)."""
        self.unseen = 0
        """The events that count and were not given, as events after them were given, which they could not change."""
        self._keys: tuple[str, ...] | None = None  # columns that a condition may name; ``None``: there is none
        self._types: frozenset[str] | None = None  # of the events that change something; ``None``: all may

    def __len__(self) -> int:
        return len(self._held) - self._retractions.held

    @property
    def held_rows(self) -> pa.Table | None:
        """Return the events that were not given; ``None``: there are none."""
        return None if self._held.rows is None else self._held.rows[0]

    def held_column(self, name: str) -> tuple[pa.Array, npt.NDArray[np.int64]] | None:
        """Return a column and the times, in ticks, of the events that were not given; ``None``: there are none."""
        return self._held.held_column(name)

    @property
    def speculates(self) -> bool:
        """Return whether events are given before they are final."""
        return self.speculation != 0

    @property
    def gap(self) -> int | None:
        """Return the smallest number that has not come while greater ones are held, where events have numbers."""
        return None

    @property
    def greatest(self) -> int | None:
        """Return the latest time that has come, in ticks; ``None``: none has."""
        return self._held.greatest

    @property
    def passed(self) -> int | None:
        """Return the time up to which no more events will be given as the next ones; ``None``: not known."""
        bound = self.final if self.speculation is None else self._held.released
        return None if bound is None else bound - 1

    def push(self, rows: pa.Table) -> ReleasedEvents:
        """Take in rows in any order; return those that are due now, in the order of the stream.

        Raises :class:`DataError`, with nothing taken in, for a null time, id or seq, a column ``op`` that is not +1 or
        -1, an event that comes again, or a retraction whose time is not that of its event.
        """
        aligned = rows
        if not rows.schema.equals(self._arrow):
            rows = selectable(rows)
            aligned = self._align(rows)
        ticks = self._ticks(rows)
        fresh = self._find_on_time(ticks)
        codes, key_values = self._keys_of_rows(aligned)
        if len(self.punctuations):
            fresh &= ticks >= np.array([self._final_of_key(place) for place in key_values], np.int64)[codes]
        numbers = np.arange(self.arrived, self.arrived + len(rows))
        keys = (codes, key_values) if self._forgets_each and self._seen is not None else None
        is_new = self._find_new(rows, ticks, fresh, drop=self._drop, keys=keys)
        stays, removed = is_new, list[int]()
        if self.op is not None:
            row_keys = None if self._keys is None else [key_values[code] for code in codes.tolist()]
            signs, ids = signs_of(self.op, rows), rows.column(str(self.schema.id)).to_pylist()
            may_stay, repeats, removed = self._retractions.apply(
                signs, ids, ticks, fresh, self.arrived, self._was_given, row_keys
            )
            stays, is_new = fresh & may_stay, fresh & ~repeats
            self.duplicates += int(np.count_nonzero(repeats))
        self._count(rows, fresh)
        if not is_new.any():
            return ReleasedEvents()
        all_new = bool(is_new.all())
        self._held.see(int((ticks if all_new else ticks[is_new]).max()))
        greatest, released = self._held.greatest, self._held.released
        assert greatest is not None
        if not all_new or not stays.all():
            aligned, ticks, numbers = aligned.filter(pa.array(stays)), ticks[stays], numbers[stays]
        certain = self._final_after(greatest)
        if self.speculation is None:
            # Without ``seq``, a later event of the same time comes after those before.
            self.reach(greatest + (self.schema.seq is not None))
            self._settle(certain)
            inserted = 0 if released is None else int(np.count_nonzero(ticks < released))
            return ReleasedEvents(
                aligned if len(ticks) else None, self._order(aligned, ticks), inserted, removed, numbers
            )
        aligned, early_rows = aligned.append_column(ARRIVAL, pa.array(numbers)), None
        if released is not None and (is_early := ticks < released).any():
            if self.speculates:
                early_rows = aligned.filter(pa.array(is_early))
                if (order := self._order(early_rows, ticks[is_early])) is not None:
                    early_rows = early_rows.take(pa.array(order))
            else:  # no query reacts to them, or they would be late
                self.unseen += int(np.count_nonzero(is_early))
            aligned = aligned.filter(pa.array(~is_early))
        if not self.speculates:
            self.unseen -= len(removed)
            removed = []
        self._held.add(aligned)
        due = self._release_due(certain)
        if early_rows is None:
            return ReleasedEvents(due, removed=removed)
        rows = early_rows if due is None else pa.concat_tables([early_rows, due])
        return ReleasedEvents(rows, inserted=early_rows.num_rows, removed=removed)

    def mark(self) -> dict[str, Any]:
        """Return the state as it is now, for :meth:`back_to`."""
        copies = {"_held": copy(self._held)}
        return vars(self) | (copies if self.op is None else copies | {"_retractions": copy(self._retractions)})

    def back_to(self, mark: Mapping[str, Any]) -> None:
        """Undo all that came since :meth:`mark`."""
        vars(self).update(mark)

    def advance(self, tick: int) -> ReleasedEvents:
        """Declare that no event at or before ``tick`` will come; return the rows that are due now."""
        certain = tick + 1 if self.final is None else max(tick + 1, self.final)
        if self.speculation is None:
            self._settle(certain)
            return ReleasedEvents()
        return ReleasedEvents(self._release_due(certain))

    def reach(self, tick: int) -> None:
        """Declare that time has come to ``tick``, which may be by an event elsewhere: events before it that come now
        belong before some that were given."""
        self._held.released = tick if self._held.released is None else max(tick, self._held.released)

    def conditions(self, keys: tuple[str, ...], types: frozenset[str] | None) -> None:
        """Allow :meth:`promise`, with conditions on the columns ``keys``. ``types``: those of the events that change
        anything where events are used (``None``: all may)."""
        self._keys, self._types = keys, types
        if self._seen is not None and self._forgets_each:
            self._seen.final_of = self._final_of_key

    def promise(self, tick: int, key: Mapping[str, Any], types: Sequence[str] | None) -> ReleasedEvents:
        """Declare that no event at or before ``tick`` will come that has the values of ``key`` and one of ``types``
        (``None``: any); return the rows that are due now.

        Raises :class:`DataError` where it is not known of which key and type events are that may be taken back.
        """
        if not self._retractions.placed:
            raise DataError(
                "the snapshot does not say of which key and type the events are that may be taken back",
                hint="advance(ts) without key= and type= first, so that they are final",
            )
        self.punctuations.add(key, types, tick + 1, self.final)
        self._retractions.forget_each(self._final_of_key)
        if self._seen is not None and self._forgets_each:
            self._seen.tidy()
        return ReleasedEvents() if self.speculation is None else ReleasedEvents(self._release_due(self.final))

    def peek(self, ahead: int | None) -> pa.Table | None:
        """Return the held events that are final within ``ahead`` ticks (``None``: all), in the order of the stream.
        They stay where they are."""
        buffer, retractions = copy(self._held), copy(self._retractions)
        if ahead is not None and self.final is None:
            return None
        rows = buffer.drain() if ahead is None else buffer.release((self.final or 0) + ahead)
        return None if rows is None else retractions.drop_retracted(rows, ARRIVAL)

    def finish(self) -> ReleasedEvents:
        """Return all remaining rows: no event will come."""
        rows = self._held.drain()
        self._settle(None, last=True)
        return ReleasedEvents(self._drop_retracted(rows))

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data with bytes."""
        state: dict[str, Any] = {
            "held": self._held.dumps(),
            "released": self._held.released,
            "greatest": self._held.greatest,
        }
        state |= {"late": self.late_count, "arrived": self.arrived, "final": self.final}
        state |= self._retractions.dump()
        # States from before there were conditions have none of these.
        if punctuations := self.punctuations.dump(self.final):
            state["said"] = punctuations
        # Nor have those from before events that come again were noticed.
        state |= {"duplicates": self.duplicates} if self.duplicates else {}
        state |= {} if self._seen is None else {"seen": self._seen.dump()}
        # Nor have those from before ids were forgotten by conditions.
        state |= {} if self._seen is None or not self._seen.keys else {"seen_of": [[*key] for key in self._seen.keys]}
        return state | ({"unseen": self.unseen} if self.unseen else {})

    def load(self, data: Mapping[str, Any]) -> None:
        """Read the data of :meth:`dump`. Raises :class:`SnapshotError` if it is invalid."""
        try:
            self._held.loads(data["held"])
            self._held.released, self._held.greatest = (_tick(data[name]) for name in ("released", "greatest"))
            self.final = _tick(data["final"])
            self.late_count, self.arrived = int(data["late"]), int(data["arrived"])
            self._retractions.load(data)
            self.punctuations.load(data.get("said", ()))
            self.unseen, self.duplicates = int(data.get("unseen", 0)), int(data.get("duplicates", 0))
            if self._seen is not None:
                self._seen.load(_bytes(data.get("seen", b"")), [tuple(key) for key in data.get("seen_of", ())])
                self._seen.forget(self.final)
        except (KeyError, TypeError, ValueError, pa.ArrowException):
            raise SnapshotError("the snapshot does not hold a state of this stream", code="state_damaged") from None

    def time(self, ts: Any) -> pa.Array:
        """Return a time, in the form of the time column, as an Arrow value. Raises :class:`DataError` for another."""
        try:
            return pa.array([ts], self._arrow.field(self.schema.ts).type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise DataError(
                f"{ts!r} is no time like those of column `{self.schema.ts}`", code="option_invalid"
            ) from None

    def _align(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the columns of the first push. Raises :class:`DataError` if these do not fit."""
        try:
            aligned = rows.select(self._arrow.names)
            return aligned if aligned.schema.equals(self._arrow) else aligned.cast(self._arrow)
        except KeyError as missing:
            raise DataError(
                f"the events have other columns than before: {missing.args[0]}", code="data_column"
            ) from None
        except pa.ArrowException as error:
            raise DataError(
                f"the events have other types than before: {str(error).splitlines()[0]}",
                hint="give every batch the types of the first one, or say them from the first one on: cast=",
                code="data_type",
            ) from None

    def _ticks(self, rows: pa.Table) -> Any:
        ticks, null = ticks_of(self.schema.ts, rows.column(self.schema.ts), self.schema.tick_ns or 1)
        if null is not None and null.any():
            raise null_error(self.schema.ts, self.arrived + int(np.argmax(null)))
        for name in (self.schema.seq, self.schema.id):
            if name is not None and rows.column(name).null_count:
                row = rows.column(name).is_null(nan_is_null=True).index(True).as_py()
                raise null_error(name, self.arrived + row)
        return ticks

    def _find_on_time(self, ticks: Any) -> Any:
        """Return which events of a push are not late; of the rows of Spark's buckets, ``HoldBack.add`` in hold_back.py
        does."""
        return np.ones(len(ticks), bool) if self.final is None else ticks >= self.final

    @property
    def _forgets_each(self) -> bool:
        """Return whether ids are forgotten by conditions, as they would never be otherwise."""
        return self._keys is not None and self.lateness is None

    def _find_new(
        self, rows: pa.Table, ticks: Any, fresh: Any, *, drop: bool, keys: tuple[Any, Sequence[Key]] | None = None
    ) -> Any:
        """Return which events of a push are neither late nor come again by their ids; ``keys``: the number of each row
        among keys with types. Raises :class:`DataError` for one that does, unless it is left out (``drop``)."""
        if self._seen is None:
            return fresh
        ids, column = copy(self._seen), rows.column(self._seen.name)
        repeats = ids.see(column, ticks, fresh, self.arrived, keys)
        if repeats.any() and not drop:
            row = int(np.argmax(repeats))
            raise repeat_error(ids.name, column[row].as_py(), self.arrived + row)
        self._seen = ids
        self.duplicates += int(np.count_nonzero(repeats))
        return fresh & ~repeats if repeats.any() else fresh

    def _keys_of_rows(self, aligned: pa.Table) -> tuple[npt.NDArray[np.int64], list[Key]]:
        """Return what conditions ask of rows, where it matters: the number of each row among the distinct ones, and of
        these the values of the columns that conditions may name, with the type at last."""
        by_key = self._forgets_each and self._seen is not None
        if self._keys is None or not (len(self.punctuations) or self.op is not None or by_key):
            return np.zeros(len(aligned), np.int64), [()]
        schema, tick = self.schema, attribute_tick(self.schema) or 1
        names = self._keys if schema.type is None else (*self._keys, schema.type)
        columns = [
            column_of(name, column_at(aligned, name), schema.engine_kind(name), tick, schema.scale(name))
            for name in names
        ]
        codes, keys = distinct(columns, len(aligned))
        return codes, keys if schema.type is not None else [(*key, None) for key in keys]

    def _final_of_key(self, key: Key) -> int:
        """Return the time before which all events of a key and a type are final, by the conditions alone."""
        assert self._keys is not None
        kind = key[-1]
        time = self.punctuations.final(self._keys, key[:-1], (None if kind is None else str(kind),))
        return BEGINNING if time is None else time

    def _count(self, rows: pa.Table, fresh: Any) -> None:
        """Count the rows of a push, and the late ones among them."""
        self.arrived += len(rows)
        self.late = rows.slice(0, 0) if fresh.all() else rows.filter(pa.array(~fresh))
        self.late_count += self.late.num_rows

    def _final_after(self, greatest: int) -> int | None:
        """Return the time before which nothing changes any more, once ``greatest`` was seen."""
        if self.lateness is None:
            return self.final
        return greatest - self.lateness if self.final is None else max(greatest - self.lateness, self.final)

    def _was_given(self, tick: int) -> bool:
        """Return whether an event that came before this push, at ``tick``, has been given."""
        return self.speculation is None or (self._held.released is not None and tick < self._held.released)

    def _order(self, rows: pa.Table, ticks: Any) -> npt.NDArray[np.intp] | None:
        """Return the places of rows in the order of the stream; ``None``: they are in order."""
        if self.schema.seq is not None:
            seq, _ = ticks_of(self.schema.seq, rows.column(self.schema.seq), self.schema.tick_ns or 1)
            return np.lexsort((seq, ticks))
        return np.argsort(ticks, kind="stable") if (ticks[1:] < ticks[:-1]).any() else None

    def _release_due(self, certain: int | None) -> pa.Table | None:
        """Release the held rows that are due once ``certain`` is the time before which nothing changes."""
        assert self.speculation is not None
        released_before, due = self._held.released, None if certain is None else certain + self.speculation
        if certain is not None:
            self._settle(certain)
        # Events of types to which no query reacts may still come, and change nothing.
        if self._types is not None and (early_due := self.punctuations.final((), (), self._types)) is not None:
            due = early_due if due is None else max(due, early_due)
        return (
            None
            if due is None or (released_before is not None and due <= released_before)
            else self._drop_retracted(self._held.release(due))
        )

    def _drop_retracted(self, rows: pa.Table | None) -> pa.Table | None:
        """Return the rows that were not retracted."""
        return None if rows is None else self._retractions.drop_retracted(rows, ARRIVAL)

    def _settle(self, certain: int | None, *, last: bool = False) -> None:
        """Forget the ids of events that are final, and warn of retractions whose event did not come."""
        if not last and (certain is None or certain == self.final):
            return
        self.final = certain if not last else self.final
        if self._seen is not None:
            self._seen.forget(self.final)
        if self.op is not None:
            self._retractions.forget(certain)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("bytes")
    return value


def _tick(value: Any) -> int | None:
    return None if value is None else int(value)
