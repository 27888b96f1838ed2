"""The ids of events that may be taken back, and the retractions whose events have not come yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError, DataWarning, warn_caller
from acep.events.punctuations import Key

__all__ = ["Retractions", "signs_of"]

Bools = npt.NDArray[np.bool_]


class Retractions:
    """The events that the column with +1 and -1 has named by their ids. A retraction has the time of its event. If it
    comes before its event, it waits, and both are left out. ``drop``: a row that comes again is left out; else it is
    refused.

    A call replaces what it changes, so that a copy stays as it is.

    >>> retractions, ticks, everything = Retractions(), np.array([1, 2, 2]), np.ones(3, bool)
    >>> stay, _, removed = retractions.apply(
    ...     np.array([1, 1, -1]), ["a", "b", "b"], ticks, everything, 0, lambda tick: True)
    >>> stay.tolist(), removed
    ([True, False, False], [])
    >>> retractions.apply(np.array([-1]), ["a"], ticks[:1], everything[:1], 3, lambda tick: True)[2]
    [0]
    """

    def __init__(self, *, drop: bool = False) -> None:
        self.drop = drop
        self._events: dict[Any, tuple[int, int]] = {}  # arrival number and time of each event that may be taken back
        self._waiting: dict[Any, int] = {}  # time of each retraction whose event has not come
        self._gone: set[int] = set()  # arrival numbers of held events that were retracted
        self._keys: dict[Any, Key] = {}  # the keys and the type of each id and each retraction that waits

    @property
    def held(self) -> int:
        """Return how many events are held that were retracted."""
        return len(self._gone)

    @property
    def placed(self) -> bool:
        """Return whether the key and the type of each id are known."""
        return len(self._keys) == len(self._events) + len(self._waiting)

    def apply(
        self,
        signs: npt.NDArray[np.int64],
        names: Sequence[Any],
        ticks: npt.NDArray[np.int64],
        fresh: Bools,
        first: int,
        was_given: Callable[[int], bool],
        row_keys: Sequence[Key] | None = None,
    ) -> tuple[Bools, Bools, list[int]]:
        """Take in the signs, ids and times of rows that are ``fresh``. Return which rows are events that may stay,
        which come again and are left out, and the arrival numbers of events that were given and are taken back.

        ``first``: the arrival number of the first row; ``was_given``: whether an event at a time, of an earlier push,
        was given; ``row_keys``: the keys and the type of each row, where they matter.

        Raises :class:`DataError`, with nothing taken in, for an id that is inserted or retracted twice, or a retraction
        with another time than its event.
        """
        events, waiting, gone, keys_by_id = dict(self._events), dict(self._waiting), set(self._gone), dict(self._keys)
        taken_back: set[int] = set()
        stays, repeats = signs > 0, np.zeros(len(signs), bool)
        for row in np.flatnonzero(fresh).tolist():
            name, tick, sign = names[row], int(ticks[row]), signs[row]
            if sign > 0 and name in waiting:
                _same_time(name, tick, waiting.pop(name))
                keys_by_id.pop(name, None)
                stays[row] = False
            elif sign > 0:
                if name in events:
                    if not self.drop:
                        raise DataError(
                            f"the event with id {name!r} comes twice",
                            hint='retract it first, with op -1; or where the source repeats events: duplicates="drop"',
                            code="data_order",
                        )
                    stays[row], repeats[row] = False, True
                    continue
                events[name] = (first + row, tick)
                if row_keys is not None:
                    keys_by_id[name] = row_keys[row]
            elif name in events:
                number, event_tick = events.pop(name)
                keys_by_id.pop(name, None)
                _same_time(name, tick, event_tick)
                gone.add(number)
                if number < first and was_given(event_tick):
                    taken_back.add(number)
            elif name in waiting:
                if not self.drop:
                    raise DataError(
                        f"the event with id {name!r} is retracted twice",
                        hint='where the source repeats events: duplicates="drop"',
                        code="data_order",
                    )
                repeats[row] = True
            else:
                waiting[name] = tick
                if row_keys is not None:
                    keys_by_id[name] = row_keys[row]
        inside = {number for number in gone if number >= first}
        stays[[number - first for number in inside]] = False
        self._events, self._waiting, self._gone, self._keys = events, waiting, gone - inside - taken_back, keys_by_id
        return stays, repeats, sorted(taken_back)

    def drop_retracted(self, rows: pa.Table, number: str) -> pa.Table | None:
        """Return the rows that were not retracted, of held ones that are given now; ``None``: there are none.
        ``number`` is the column of arrival numbers."""
        if not self._gone:
            return rows
        numbers = rows.column(number).to_numpy()
        is_gone = np.isin(numbers, np.fromiter(self._gone, np.int64, len(self._gone)))
        self._gone = self._gone.difference(numbers[is_gone].tolist())
        return rows.filter(pa.array(~is_gone)) if not is_gone.all() else None

    def forget(self, final: int | None) -> None:
        """Forget the ids of events before a time (``None``: of all), which nothing takes back any more, and warn of
        retractions whose event did not come."""
        ids = (*self._events, *self._waiting)
        self._forget({event_id for event_id in ids if final is None or self._time(event_id) < final})

    def forget_each(self, final: Callable[[Key], int]) -> None:
        """Forget the same by the time that ``final`` gives for the keys and the type of an event."""
        self._forget({event_id for event_id, key in self._keys.items() if self._time(event_id) < final(key)})

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data."""
        ids = [[event_id, *arrival] for event_id, arrival in self._events.items()]
        state = {"ids": ids, "waiting": [*map(list, self._waiting.items())], "gone": sorted(self._gone)}
        # States from before there were conditions have no places.
        return state | ({"at": [[event_id, *key] for event_id, key in self._keys.items()]} if self._keys else {})

    def load(self, data: Mapping[str, Any]) -> None:
        """Read the data of :meth:`dump`. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for other
        data."""
        self._events = {event_id: (int(number), int(tick)) for event_id, number, tick in data["ids"]}
        self._waiting = {event_id: int(tick) for event_id, tick in data["waiting"]}
        self._gone = {int(number) for number in data["gone"]}
        self._keys = {event_id: tuple(key) for event_id, *key in data.get("at", ())}
        if not self._keys.keys() <= self._events.keys() | self._waiting.keys():
            raise ValueError("at")

    def _time(self, name: Any) -> int:
        return self._events[name][1] if name in self._events else self._waiting[name]

    def _forget(self, final_ids: Collection[Any]) -> None:
        self._events = {event_id: arrival for event_id, arrival in self._events.items() if event_id not in final_ids}
        self._keys = {event_id: key for event_id, key in self._keys.items() if event_id not in final_ids}
        if unmatched := [event_id for event_id in self._waiting if event_id in final_ids]:
            self._waiting = {event_id: tick for event_id, tick in self._waiting.items() if event_id not in final_ids}
            message = (
                f"{len(unmatched)} retractions name events that never came or were final, first id {unmatched[0]!r}"
            )
            warn_caller(message, DataWarning)


def signs_of(op: str, rows: pa.Table) -> npt.NDArray[np.int64]:
    """Return the column with +1 and -1. Raises :class:`DataError` if there is none, or if it holds anything else."""
    if op not in rows.column_names:
        raise DataError(f"there is no column `{op}`", hint="op= names the column with +1 and -1", code="data_column")
    column = rows.column(op)
    values = column.to_numpy() if pa.types.is_integer(column.type) and not column.null_count else np.zeros(1)
    if not np.isin(values, (1, -1)).all():
        raise DataError(
            f"column `{op}` must hold the integers +1 and -1",
            hint="+1 is an event, -1 takes one back",
            code="data_type",
        )
    return values.astype(np.int64)


def _same_time(name: Any, tick: int, event_tick: int) -> None:
    if tick != event_tick:
        raise DataError(f"the retraction of id {name!r} has another time than its event", code="data_order")
