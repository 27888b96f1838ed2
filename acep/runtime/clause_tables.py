"""Run a MATCH_RECOGNIZE clause over a stream of tables: what a ``Matcher`` does with a clause."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError, QueryError, SnapshotError
from acep.events.arrivals import ARRIVAL, Arrivals, Due, span_ticks
from acep.events.columns import ticks_of
from acep.events.files.casts import casts_of
from acep.events.numbered_arrivals import NumberedArrivals
from acep.events.tables import InputSchema, attribute_tick, schema_of, ticks_to_input
from acep.matches.records import Counts
from acep.matches.report import Report
from acep.row_patterns.clause_stream import ClauseStream, time_column
from acep.row_patterns.clause_text import read_clause
from acep.row_patterns.match_rows import convert_to
from acep.runtime.options import StreamOptions
from acep.storage.snapshot import seal, unseal

__all__ = ["ClauseTables"]

OP = "op"
"""The column that tells rows that come (1) from those that are taken back (-1), with a speculation."""


class ClauseTables:
    """A clause over tables that come in the order of time, or in any order within ``lateness`` or with numbers.

    The first table determines the plan. With a speculation the rows that are not final are searched too, and
    ``spoken`` are the rows of the result that they have given, which may be taken back."""

    def __init__(self, text: str, options: StreamOptions) -> None:
        _check_options(options)
        self.text, self.clause, self.options = text, read_clause(text), options
        self.casts = casts_of(options.cast)
        self.form = "arrow"
        self.arrow: pa.Schema | None = None  # the columns as they came
        self.schema: InputSchema | None = None
        self.arrivals: Arrivals | None = None
        self.stream: ClauseStream | None = None
        self.tick_ratio = Fraction(1)  # a tick of the arrivals in ticks of the plan
        self.latest: tuple[int, int | None] | None = None  # time and seq of the last row, where rows come in order
        self.ahead: int | None = 0
        self.spoken: pa.Table | None = None
        self.rows = self.matches = self.retracted = 0
        self.seconds = 0.0
        self.finished = False
        self.failure: DataError | None = None  # of a match that cannot be answered for

    @property
    def is_ordered(self) -> bool:
        """Return whether rows must come in the order of time."""
        return self.options.lateness is None and self.options.first_number is None

    def prepare(self, arrow: pa.Schema) -> None:
        """Make the plan for the columns of the rows."""
        options = self.options
        columns = pa.schema([field for field in arrow.remove_metadata() if field.name != options.op])
        plan = self.clause.make_plan(columns)
        try:
            name = time_column(plan)
        except QueryError as error:
            error.text = None
            raise self.clause.place_error(error) from None
        if options.ts not in ("ts", name):
            hint = f'ts="{name}", or leave it out'
            raise QueryError(f"the clause has the times in `{name}`, and ts={options.ts!r}", hint=hint,
                             code="option_invalid")  # fmt: skip
        schema = schema_of(arrow, ts=name, type=None, seq=options.seq, id=options.id, unit=options.unit)
        duplicates = options.duplicates
        if options.first_number is not None:
            lateness = "inf" if options.lateness is None else options.lateness
            self.arrivals = NumberedArrivals(arrow, schema, lateness, options.first_number, duplicates)
        elif options.lateness is None:
            # Rows that come in order are given at once, and known by their ids as long as time stands still.
            self.arrivals = Arrivals(arrow, schema, 0, speculation=None, duplicates=duplicates)
        else:
            self.arrivals = Arrivals(arrow, schema, options.lateness, options.op, duplicates=duplicates)
        self.ahead = span_ticks("speculation", options.speculation, schema)
        self.stream = ClauseStream(plan, columns)
        if self.ahead != 0 and OP in self.stream.empty_result().column_names:
            raise QueryError(f"`{OP}` tells rows that come from those taken back", hint="give the measure another name",
                             code="query_name")  # fmt: skip
        plan_tick = attribute_tick(plan.schema)
        if schema.instants and schema.tick_ns is not None and plan_tick is not None:
            self.tick_ratio = Fraction(schema.tick_ns) / Fraction(plan_tick)
        self.arrow, self.schema = arrow, schema

    def push(self, table: pa.Table, form: str = "arrow") -> pa.Table:
        """Take in rows; return the rows of the result that are decided now. Raises :class:`DataError`, with nothing
        taken in, for rows that do not fit. ``form``: that in which results are given."""
        started = time.perf_counter()
        self.form = form
        if self.finished:
            raise DataError("the stream has been finished: no more events can be pushed", hint="make a new Matcher",
                            code="data_order")  # fmt: skip
        if self.arrivals is None:
            if not table.num_columns:
                return pa.table({})
            self.prepare(table.schema)
        assert self.arrivals is not None
        mark, latest = self.arrivals.mark(), self.latest
        try:
            self._check_order(table)
            due = self.arrivals.push(table)
        except DataError:
            self.arrivals.back_to(mark)
            self.latest = latest
            raise
        result = self._search(due)
        self.seconds += time.perf_counter() - started
        return result

    def _check_order(self, table: pa.Table) -> None:
        """Raise :class:`DataError` for rows that come before others, where they must come in order."""
        if not self.is_ordered or not table.num_rows:
            return
        assert self.schema is not None
        ts, seq = self.schema.ts, self.schema.seq
        if ts not in table.column_names:
            return  # the arrivals say so
        ticks, nulls = ticks_of(ts, table.column(ts), self.schema.tick_ns or 1)
        if nulls is not None and nulls.any():
            return
        numbers = np.zeros(len(ticks), np.int64)
        if seq is not None and table.column(seq).null_count == 0:
            numbers, _ = ticks_of(seq, table.column(seq), self.schema.tick_ns or 1)
        before, after = self.latest or (int(ticks[0]), int(numbers[0])), (int(ticks[-1]), int(numbers[-1]))
        ticks_before, numbers_before = (np.concatenate([[first], column[:-1]])
                                        for first, column in zip(before, (ticks, numbers), strict=True))  # fmt: skip
        is_early = (ticks < ticks_before) | ((ticks == ticks_before) & (numbers < numbers_before))
        if is_early.any():
            row = int(np.argmax(is_early))
            time_text, time_before = ticks_to_input((int(ticks[row]), int(ticks_before[row])), self.schema)
            raise DataError(
                f"event {row} of the batch ({ts} {time_text}) is older than what was seen before ({ts} {time_before})",
                hint="push events in order of time, or say how late they may come, with lateness=",
                code="data_order",
            )
        self.latest = after

    def advance(self, ts: Any, key: Any = None, type: Any = None) -> pa.Table:
        """Declare that no row at or before ``ts`` will come; return the rows of the result that are decided now."""
        if self.is_ordered:
            raise QueryError("advance() is for events that may come late", hint="give lateness=", code="option_invalid")
        if key is not None or type is not None:
            raise QueryError("a clause takes the time of all rows alone", hint="leave key= and type= out",
                             code="option_invalid")  # fmt: skip
        if self.arrivals is None or self.schema is None or self.finished:
            return self._nothing()
        times = pa.chunked_array([self.arrivals.time(ts)])
        return self._search(self.arrivals.advance(int(ticks_of(self.schema.ts, times, self.schema.tick_ns or 1)[0][0])))

    def _nothing(self) -> pa.Table:
        return pa.table({}) if self.stream is None else self._shown(self.stream.empty_result(), None)

    def _search(self, due: Due) -> pa.Table:
        """Search the rows that are due, and those that are not final with a speculation."""
        assert self.arrivals is not None
        assert self.stream is not None
        if self.failure is not None:
            raise self.failure
        rows = _stream_rows(due)
        self.rows += 0 if rows is None else rows.num_rows
        reached = self.arrivals.greatest if self.is_ordered else self.arrivals.passed
        try:
            if reached is None:
                result = self.stream.empty_result()
            else:
                result = self.stream.push(rows, self._clock(reached + (not self.is_ordered)))
            return self._shown(result, self._speculate())
        except DataError as error:
            self.failure = error
            raise

    def _clock(self, tick: int) -> int:
        """Return a tick of the arrivals as one of the plan."""
        return int(tick * self.tick_ratio)

    def _speculate(self) -> pa.Table | None:
        """Return what the rows that are not final add to the result; ``None`` without a speculation."""
        assert self.arrivals is not None
        assert self.stream is not None
        if self.ahead == 0:
            return None
        assert self.schema is not None
        rows = self.arrivals.pending(self.ahead)
        if rows is None or not rows.num_rows:
            return self.stream.empty_result()
        ticks, _ = ticks_of(
            self.schema.ts, rows.column(self.schema.ts).slice(rows.num_rows - 1), self.schema.tick_ns or 1
        )
        try:
            return self.stream.copy().push(rows.drop_columns([ARRIVAL]), self._clock(int(ticks[0])))
        except DataError:  # it counts once the rows are final
            return self.stream.empty_result()

    def _shown(self, final: pa.Table, speculative: pa.Table | None) -> pa.Table:
        """Return the rows that come, and with a speculation those that are taken back, before them."""
        final = self.clause.select(final)
        if self.ahead == 0:
            self.matches += final.num_rows
            return final
        assert self.stream is not None
        speculative = self.clause.select(self.stream.empty_result() if speculative is None else speculative)
        before = speculative.slice(0, 0) if self.spoken is None else self.spoken
        coming = pa.concat_tables([final, speculative])
        stays, goes = _changes(_row_texts(before), _row_texts(coming))
        self.spoken = speculative
        back, fresh = before.filter(pa.array(goes)), coming.filter(pa.array(~stays))
        self.matches += fresh.num_rows - back.num_rows
        self.retracted += back.num_rows
        ops = pa.array([-1] * back.num_rows + [1] * fresh.num_rows, pa.int64())
        return pa.concat_tables([back, fresh]).append_column(OP, ops)

    def end(self) -> pa.Table:
        """End the stream; return the rows of the result that waited for its end."""
        if self.stream is None or self.arrivals is None or self.finished:
            self.finished = True
            return self._nothing()
        if self.failure is not None:
            raise self.failure
        rows = _stream_rows(self.arrivals.finish())
        self.rows += 0 if rows is None else rows.num_rows
        self.finished = True
        parts = []
        if rows is not None:
            greatest = self.arrivals.greatest
            assert greatest is not None
            parts.append(self.stream.push(rows, self._clock(greatest)))
        return self._shown(pa.concat_tables([*parts, self.stream.finish()]), None)

    def give(self, result: pa.Table) -> Any:
        """Return a result in the form in which the last rows came."""
        return convert_to(self.form, result)

    @property
    def final(self) -> Any:
        """Return the time up to which rows are final, in the form of the time column; ``None``: it is not known."""
        if self.finished or self.is_ordered or self.arrivals is None or self.schema is None:
            return None
        return None if self.arrivals.final is None else ticks_to_input((self.arrivals.final - 1,), self.schema)[0]

    @property
    def held(self) -> int | None:
        """Return the number of rows that wait until they are final; ``None`` where rows come in order."""
        return None if self.is_ordered or self.arrivals is None else len(self.arrivals)

    @property
    def late(self) -> pa.Table | None:
        """Return the rows of the last push that came too late."""
        return None if self.is_ordered or self.arrivals is None else self.arrivals.late

    @property
    def gap(self) -> int | None:
        """Return the number that is waited for."""
        return None if self.is_ordered or self.arrivals is None else self.arrivals.gap

    @property
    def report(self) -> Report:
        """Return the report so far; ``matches`` counts rows of the result."""
        counts = Counts(events=self.rows, matches=self.matches, retracted=self.retracted)
        if self.arrivals is not None:
            counts = counts.other(late=self.arrivals.late_count, duplicates=self.arrivals.duplicates)
        return Report.of(counts, self.seconds)

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint that a snapshot must have."""
        options = self.options
        names = ("seq", "id", "unit", "lateness", "op", "speculation", "seq_gaps", "duplicates")
        casts = {name: cast.text for name, cast in sorted(self.casts.items())}
        return f"{self.text}{[(name, getattr(options, name)) for name in names]}{casts}"

    def snapshot(self) -> bytes:
        """Return the state so far as bytes."""
        payload: dict[str, Any] = {"finished": self.finished, "arrow": None, "latest": self.latest,
                                   "counts": [self.rows, self.matches, self.retracted]}  # fmt: skip
        if self.arrow is not None and self.arrivals is not None and self.stream is not None:
            payload["arrow"] = bytes(self.arrow.serialize().to_pybytes())
            payload |= {"arrivals": self.arrivals.dump(), "stream": self.stream.dump()}
        return seal(payload, self.fingerprint)

    def restored(self, data: bytes) -> ClauseTables:
        """Return a stream with the state of :meth:`snapshot`. Raises :class:`SnapshotError` for other bytes."""
        payload = unseal(data, self.fingerprint)
        other = ClauseTables(self.text, self.options)
        try:
            other._load(payload)
        except SnapshotError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, QueryError, DataError, pa.ArrowException, OSError):
            raise SnapshotError("the snapshot does not hold a state of this clause", code="state_damaged") from None
        other.form = self.form
        return other

    def _load(self, payload: Mapping[str, Any]) -> None:
        self.finished = payload["finished"] is True
        self.rows, self.matches, self.retracted = (int(count) for count in payload["counts"])
        if payload["latest"] is not None:
            ts, seq = payload["latest"]
            self.latest = int(ts), int(seq)
        if payload["arrow"] is not None:
            self.prepare(pa.ipc.read_schema(pa.py_buffer(payload["arrow"])))
            assert self.arrivals is not None
            assert self.stream is not None
            self.arrivals.load(payload["arrivals"])
            self.stream.load(payload["stream"])
            speculative = self._speculate()
            if speculative is not None:
                self.spoken = self.clause.select(speculative)


def _check_options(options: StreamOptions) -> None:
    """Raise :class:`QueryError` for options that a clause does not have."""
    hints = {"budget": "a clause keeps to no budget", "history": "a clause keeps to no budget"}
    unused = [name for name in ("budget", "history") if getattr(options, name) is not None]
    unused += [name for name, usual in (("dynamic", False), ("threads", 1), ("engine", "auto"), ("policy", "history"),
               ("seed", 0)) if getattr(options, name) != usual]  # fmt: skip
    if options.type not in ("type", None):
        unused.append("type")
    if unused:
        hint = hints.get(unused[0], "leave it out")
        raise QueryError(f"{unused[0]}= is not for MATCH_RECOGNIZE", hint=hint, code="option_invalid")


def _stream_rows(due: Due) -> pa.Table | None:
    """Return rows that are due, in the order of the stream."""
    rows = due.rows
    if rows is None:
        return None
    if due.order is not None:
        rows = rows.take(pa.array(due.order))
    return rows.drop_columns([ARRIVAL]) if due.arrived is None else rows


def _row_texts(table: pa.Table) -> list[str]:
    """Return a text for each row; equal rows have equal texts."""
    columns = [column.to_pylist() for column in table.columns]
    return [repr(row) for row in zip(*columns, strict=True)]


def _changes(before: list[str], after: list[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return which of the rows after were there before, and which of those before are gone.

    >>> [flags.tolist() for flags in _changes(["a", "b", "a"], ["c", "a"])]
    [[False, True], [False, True, True]]
    """
    counts = Counter(before)
    stays = np.zeros(len(after), bool)
    for place, row in enumerate(after):
        if counts[row] > 0:
            counts[row] -= 1
            stays[place] = True
    goes = np.zeros(len(before), bool)
    for place in range(len(before) - 1, -1, -1):
        if counts[before[place]] > 0:
            counts[before[place]] -= 1
            goes[place] = True
    return stays, goes
