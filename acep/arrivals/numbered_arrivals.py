"""Events with numbers of their source: hold those behind a gap, and give all others at once.

The numbers count every event of the stream without holes, in the order of time. So an event is final as soon as all
smaller numbers have come. With a ``lateness``, and after :meth:`NumberedArrivals.advance`, it is also final by its
time; the numbers before it that have not come are given up then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.arrivals.arrivals import Arrivals
from acep.arrivals.hold_back import HoldBack
from acep.arrivals.released_events import ARRIVAL, ReleasedEvents
from acep.errors import DataError, SnapshotError
from acep.events.buffers import selectable
from acep.events.columns import ticks_of
from acep.events.tables import InputSchema

__all__ = ["NumberedArrivals"]

Ints = npt.NDArray[np.int64]
NONE: Ints = np.zeros(0, np.int64)


class NumberedArrivals(Arrivals):
    """The events of a stream that are held until all events with smaller numbers have come, or until they are final
    by their time. ``first`` is the number of the first event of the stream.

    A late event is not used, but it has come: its number is no gap. Numbers that were given up are late when they
    come. A number that comes again is refused, or with ``duplicates="drop"`` its row is left out.

    >>> from acep.events.tables import schema_of
    >>> columns = pa.schema({"ts": pa.int64(), "n": pa.int64()})
    >>> arrivals = NumberedArrivals(columns, schema_of(columns, seq="n"), "inf", first=0)
    >>> [None if due.rows is None else due.rows["n"].to_pylist() for due in map(arrivals.push, (
    ...     pa.table({"ts": [3, 5], "n": [0, 2]}), pa.table({"ts": [4, 9], "n": [1, 4]})))]
    [[0], [1, 2]]
    >>> arrivals.gap, len(arrivals), arrivals.final
    (3, 1, 5)
    """

    def __init__(
        self, arrow: pa.Schema, schema: InputSchema, lateness: Any, first: int, duplicates: str | None = None
    ) -> None:
        super().__init__(arrow, schema, lateness, duplicates=duplicates)
        assert schema.seq is not None
        self._seq, self.first = schema.seq, first
        data_type = self._arrow.field(self._seq).type
        if not pa.types.is_integer(data_type):
            raise DataError(
                f"column `{self._seq}` is {data_type}, and seq_gaps= is for numbers of events",
                hint="cast it to integers, or leave seq_gaps= out",
                code="data_type",
            )
        self._held = HoldBack(self._seq, unique=True)  # in the order of the numbers, which is that of the stream
        self._newest: int | None = None
        self._next = first  # the smallest number that has neither come nor been given up
        self._lost: int | None = None  # the greatest number that was given up
        self._last: int | None = None  # the time of the greatest number before ``_next``
        self._numbers, self._times = NONE, NONE  # of the held events, in the order of the numbers

    @property
    def gap(self) -> int | None:
        """Return the smallest number that has not come while greater ones are held; ``None``: no event is held."""
        return self._next if len(self._held) else None

    @property
    def greatest(self) -> int | None:
        """Return the latest time that has come, in ticks; ``None``: none has."""
        return self._newest

    @property
    def passed(self) -> int | None:
        """Return the time up to which no more events will be given; ``None``: not known."""
        return None if self.final is None else self.final - 1

    def push(self, rows: pa.Table) -> ReleasedEvents:
        """Take in rows in any order; return those that are final now, in the order of the stream.

        Raises :class:`DataError`, with nothing taken in, for a null time, id or number, a number that comes twice or
        is smaller than the first, and numbers that are not in the order of time.
        """
        rows = selectable(rows)
        aligned, ticks = self._align(rows), self._ticks(rows)
        numbers, _ = ticks_of(self._seq, aligned.column(self._seq), 1)
        arrived = np.arange(self.arrived, self.arrived + len(rows))
        repeats = self._find_repeats(numbers) if self._drop else np.zeros(len(rows), bool)
        if repeats.any():
            rows, aligned = (table.filter(pa.array(~repeats)) for table in (rows, aligned))
            ticks, numbers, arrived = ticks[~repeats], numbers[~repeats], arrived[~repeats]
        fresh = self._find_on_time(ticks)
        held_numbers, held_times = self._merge_numbers(numbers, ticks, fresh)
        self._find_new(rows, ticks, fresh, drop=False)
        self.arrived += int(np.count_nonzero(repeats))
        self.duplicates += int(np.count_nonzero(repeats))
        self._count(rows, fresh)
        self._numbers, self._times = held_numbers, held_times
        if fresh.any():
            newest = int(ticks[fresh].max())
            self._newest = newest if self._newest is None else max(newest, self._newest)
            self._held.add(aligned.append_column(ARRIVAL, pa.array(arrived)).filter(pa.array(fresh)))
        return ReleasedEvents(
            self._release_final(self.final if self._newest is None else self._final_after(self._newest))
        )

    def advance(self, tick: int) -> ReleasedEvents:
        """Declare that no event at or before ``tick`` will come; return the rows that are final now."""
        return ReleasedEvents(self._release_final(tick + 1 if self.final is None else max(tick + 1, self.final)))

    def finish(self) -> ReleasedEvents:
        """Return all remaining rows, whatever the gaps: no event will come."""
        self._numbers, self._times = NONE, NONE
        return super().finish()

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data with bytes."""
        waiting = [self._numbers.tolist(), self._times.tolist()]
        return super().dump() | {"numbers": [self._next, self._lost, self._last, self._newest], "waits": waiting}

    def load(self, data: Mapping[str, Any]) -> None:
        """Read the data of :meth:`dump`. Raises :class:`SnapshotError` if it is invalid."""
        super().load(data)
        try:
            number, *bounds = data["numbers"]
            self._next = int(number)
            self._lost, self._last, self._newest = (None if bound is None else int(bound) for bound in bounds)
            self._numbers, self._times = (np.array(values, np.int64) for values in data["waits"])
            if not len(self._numbers) == len(self._times) == len(self._held):
                raise ValueError("waits")
        except (KeyError, TypeError, ValueError, OverflowError):
            raise SnapshotError("the snapshot does not hold a state of this stream", code="state_damaged") from None

    def _find_repeats(self, numbers: Ints) -> npt.NDArray[np.bool_]:
        """Return which numbers have come before, or stand in an earlier row."""
        repeats = np.ones(len(numbers), bool)
        repeats[np.unique(numbers, return_index=True)[1]] = False
        came = numbers < self._next if self._lost is None else (numbers < self._next) & (numbers > self._lost)
        repeats |= (came & (numbers >= self.first)) | np.isin(numbers, self._numbers)
        return repeats

    def _merge_numbers(self, numbers: Ints, ticks: Ints, fresh: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Return the numbers and the times of the held events and of those that come, in the order of the numbers."""
        if (is_early := numbers < self.first).any():
            number = int(numbers[is_early][0])
            raise DataError(
                f"column `{self._seq}` has the number {number}, and the first is {self.first}",
                hint=f"seq_gaps={number}" if number >= 0 else "numbers count from 0 on",
                code="data_order",
            )
        is_before_next = numbers < self._next
        came = is_before_next if self._lost is None else is_before_next & (numbers > self._lost)
        if came.any():
            raise self._repeat_error(int(numbers[came][0]))
        if (is_before_next & fresh).any():  # a greater number is at a time that is over
            raise self._disorder_error(int(numbers[is_before_next & fresh][0]))
        all_numbers = np.concatenate([self._numbers, numbers[~is_before_next]])
        order = np.argsort(all_numbers, kind="stable")
        all_numbers, times = all_numbers[order], np.concatenate([self._times, ticks[~is_before_next]])[order]
        if (is_same := all_numbers[1:] == all_numbers[:-1]).any():
            raise self._repeat_error(int(all_numbers[1:][is_same][0]))
        is_earlier = times[1:] < times[:-1]
        if is_earlier.any():
            raise self._disorder_error(int(all_numbers[1:][is_earlier][0]))
        if self._last is not None and len(times) and times[0] < self._last:
            raise self._disorder_error(int(all_numbers[0]))
        return all_numbers, times

    def _repeat_error(self, number: int) -> DataError:
        return DataError(
            f"the number {number} of column `{self._seq}` comes twice",
            hint='with seq_gaps= each event has a number of its own; duplicates="drop" leaves one out that comes again',
            code="data_order",
        )

    def _disorder_error(self, number: int) -> DataError:
        return DataError(
            f"number {number} of column `{self._seq}` is not in the order of time",
            hint="with seq_gaps= a greater number is no earlier",
            code="data_order",
        )

    def _release_final(self, certain: int | None) -> pa.Table | None:
        """Return the held rows that are final once ``certain`` is the time before which nothing changes."""
        numbers, times = self._numbers, self._times
        n_final = 0 if certain is None else int(np.count_nonzero(times < certain))
        if n_final:
            follows_gap = numbers[:n_final] != np.concatenate([[self._next], numbers[: n_final - 1] + 1])
            if follows_gap.any():
                self._lost = int(numbers[:n_final][follows_gap][-1]) - 1
            self._next = int(numbers[n_final - 1]) + 1
        # A run without gaps goes on from there.
        steps = numbers[n_final:] - np.arange(len(numbers) - n_final) == self._next
        n_final += len(steps) if steps.all() else int(np.argmin(steps))
        if n_final:
            self._next, self._last = int(numbers[n_final - 1]) + 1, int(times[n_final - 1])
            # Events of the same time with greater numbers may still come.
            certain = self._last if certain is None else max(certain, self._last)
            self._numbers, self._times = numbers[n_final:], times[n_final:]
        self._settle(certain)
        return self._held.release(self._next)
