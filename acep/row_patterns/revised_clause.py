"""Run a clause over rows that are held until they are final, and with a speculation also over those that are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.arrivals.arrivals import Arrivals
from acep.arrivals.released_events import ReleasedEvents
from acep.errors import DataError, QueryError
from acep.events.columns import ticks_of
from acep.events.tables import attribute_tick
from acep.events.times import values_of_column
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.row_patterns.clause_stream import ClauseStream
from acep.row_patterns.match_rows import check_values
from acep.row_patterns.partition_states import NEVER

__all__ = ["OP", "RevisedClause", "plan_ticks"]

OP = "op"
"""The column that tells rows that come (1) from those that are taken back (-1), with a speculation."""

Flags = npt.NDArray[np.bool_]


def plan_ticks(plan: OrderedPlan, arrivals: Arrivals) -> Fraction:
    """Return a tick of the arrivals in ticks of the plan."""
    tick, of_plan = arrivals.schema.tick_ns, attribute_tick(plan.schema)
    if not arrivals.schema.instants or tick is None or of_plan is None:
        return Fraction(1)
    return Fraction(tick) / Fraction(of_plan)


class RevisedClause:
    """A clause over ``arrivals``, which give rows once they are final. ``ahead``: how many ticks before that rows are
    searched (0: not before, ``None``: at once). ``select`` makes the result of the rows of the clause.

    ``spoken`` are the rows of the result that rows have given which are not final; they may be taken back. ``matches``
    and ``retracted`` count rows of the result."""

    def __init__(
        self,
        stream: ClauseStream,
        arrivals: Arrivals,
        ahead: int | None = 0,
        select: Callable[[pa.Table], pa.Table] = lambda table: table,
    ) -> None:
        self.stream, self.arrivals, self.ahead, self.select = stream, arrivals, ahead, select
        self.tick_ratio = plan_ticks(stream.plan, arrivals)
        self.speculative_rows: pa.Table | None = None
        self._speculative_texts: list[str] = []  # of its rows
        self.rows = self.matches = self.retracted = 0
        self.failure: DataError | None = None  # of a match that cannot be answered for
        if ahead != 0 and OP in self.empty_result().column_names:
            raise QueryError(f"`{OP}` tells rows that come from those taken back", hint="give the measure another name",
                             code="query_name")  # fmt: skip

    def empty_result(self) -> pa.Table:
        """Return the columns of the result but ``op``, without rows."""
        return self.select(self.stream.empty_result())

    def no_changes(self) -> pa.Table:
        """Return the columns of what :meth:`push` gives, without rows."""
        empty = self.empty_result()
        return empty if self.ahead == 0 else empty.append_column(OP, pa.array([], pa.int64()))

    def push(self, due: ReleasedEvents, reached: int | None) -> pa.Table:
        """Take in rows that are due; return the rows of the result that come and go. ``reached``: the earliest time of
        a row that comes after them, in ticks of the arrivals (``None``: it is not known).

        Raises :class:`DataError` for a match that cannot be answered for, with this call and each later one."""
        if self.failure is not None:
            raise self.failure
        rows = None if due.rows is None else self._fit(stream_rows(due))
        self.rows += 0 if rows is None else rows.num_rows
        try:
            final = self.stream.empty_result() if reached is None else self.stream.push(rows, self._clock(reached))
            return self._changes(final, self._speculate())
        except DataError as error:
            self.failure = error
            raise

    def finish(self) -> pa.Table:
        """End the stream; return the rows of the result that come and go."""
        if self.failure is not None:
            raise self.failure
        greatest = self.arrivals.greatest
        due = self.arrivals.finish()
        parts = []
        if due.rows is not None and greatest is not None:
            rows = self._fit(stream_rows(due))
            self.rows += rows.num_rows
            parts.append(self.stream.push(rows, self._clock(greatest)))
        return self._changes(pa.concat_tables([*parts, self.stream.finish()]), self.stream.empty_result())

    def check_values(self, rows: pa.Table) -> None:
        """Raise :class:`DataError` for rows that the clause cannot compute with."""
        check_values(self.stream.plan, self._fit(rows))

    def _fit(self, rows: pa.Table) -> pa.Table:
        """Return the columns of the clause."""
        rows = rows.select(self.stream.arrow.names)
        return rows if rows.schema.equals(self.stream.arrow) else rows.cast(self.stream.arrow)

    def _clock(self, tick: int) -> int:
        """Return a time in ticks of the plan; one behind all times is the greatest."""
        return min(int(tick * self.tick_ratio), NEVER)

    def _speculate(self) -> pa.Table:
        """Return the rows of the clause that rows add which are not final."""
        rows = None if self.ahead == 0 else self.arrivals.peek(self.ahead)
        if rows is None or not rows.num_rows:
            return self.stream.empty_result()
        schema = self.arrivals.schema
        ticks, _ = ticks_of(schema.ts, rows.column(schema.ts).slice(rows.num_rows - 1), schema.tick_ns or 1)
        try:
            return self.stream.copy().push(self._fit(rows), self._clock(int(ticks[0])))
        except DataError:  # it counts once the rows are final
            return self.stream.empty_result()

    def _changes(self, final: pa.Table, speculative: pa.Table) -> pa.Table:
        """Return the rows that come, and with a speculation those that are taken back, before them."""
        final = self.select(final)
        if self.ahead == 0:
            self.matches += final.num_rows
            return final
        speculative = self.select(speculative)
        before = speculative.slice(0, 0) if self.speculative_rows is None else self.speculative_rows
        coming = pa.concat_tables([final, speculative])
        texts = row_texts(coming)
        stays, goes = changes(self._speculative_texts, texts)
        self.speculative_rows, self._speculative_texts = speculative, texts[final.num_rows :]
        retracted_rows, new_rows = before.filter(pa.array(goes)), coming.filter(pa.array(~stays))
        self.matches += new_rows.num_rows - retracted_rows.num_rows
        self.retracted += retracted_rows.num_rows
        ops = pa.array([-1] * retracted_rows.num_rows + [1] * new_rows.num_rows, pa.int64())
        return pa.concat_tables([retracted_rows, new_rows]).append_column(OP, ops)

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data with bytes. The rows that may be taken back are found again from it.

        Raises :class:`DataError` after a match that cannot be answered for, as nothing can go on from there."""
        if self.failure is not None:
            raise self.failure
        counts = [self.rows, self.matches, self.retracted]
        return {"arrivals": self.arrivals.dump(), "stream": self.stream.dump(), "counts": counts}

    def load(self, data: Mapping[str, Any]) -> None:
        """Read the state of :meth:`dump`. Raises :class:`SnapshotError`, :class:`ValueError`, :class:`KeyError`,
        :class:`TypeError` or :class:`pyarrow.ArrowException` for other data."""
        self.arrivals.load(data["arrivals"])
        self.stream.load(data["stream"])
        self.rows, self.matches, self.retracted = (int(count) for count in data["counts"])
        if self.ahead != 0:
            self.speculative_rows = self.select(self._speculate())
            self._speculative_texts = row_texts(self.speculative_rows)


def stream_rows(due: ReleasedEvents) -> pa.Table:
    """Return rows that are due, in the order of the stream."""
    return due.rows if due.order is None or due.rows is None else due.rows.take(pa.array(due.order))


def row_texts(table: pa.Table) -> list[str]:
    """Return a text for each row; equal rows have equal texts."""
    columns = [values_of_column(column) for column in table.columns]
    return [repr(row) for row in zip(*columns, strict=True)]


def changes(before: list[str], after: list[str]) -> tuple[Flags, Flags]:
    """Return which of the rows after were there before, and which of those before are gone.

    >>> [flags.tolist() for flags in changes(["a", "b", "a"], ["c", "a"])]
    [[False, True], [False, True, True]]
    """
    counts = Counter(before)
    stays = np.zeros(len(after), bool)
    for index, row in enumerate(after):
        if counts[row] > 0:
            counts[row] -= 1
            stays[index] = True
    goes = np.zeros(len(before), bool)
    for index in range(len(before) - 1, -1, -1):
        if counts[before[index]] > 0:
            counts[before[index]] -= 1
            goes[index] = True
    return stays, goes
