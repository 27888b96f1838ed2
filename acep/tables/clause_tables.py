"""Run a MATCH_RECOGNIZE clause over a stream of tables: what a ``Matcher`` does with a clause."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from acep.arrivals.arrivals import Arrivals, span_ticks
from acep.arrivals.numbered_arrivals import NumberedArrivals
from acep.arrivals.released_events import ReleasedEvents
from acep.errors import DataError, QueryError, SnapshotError
from acep.events.buffers import selectable
from acep.events.columns import ticks_of
from acep.events.files.casts import casts_of
from acep.events.tables import InputSchema, schema_of, ticks_to_input
from acep.matches.records import Counts
from acep.matches.report import Report
from acep.pattern.sql.scanner import scan
from acep.row_patterns.clause_stream import ClauseStream
from acep.row_patterns.clause_text import read_clause
from acep.row_patterns.match_rows import convert_to, no_columns_error
from acep.row_patterns.revised_clause import OP, RevisedClause
from acep.row_patterns.stream_time import check_time_option, time_column
from acep.runtime.options import StreamOptions
from acep.storage.snapshot import seal, unseal
from acep.tables.clause_options import check_clause_options, check_partitions, clause_budget

__all__ = ["ClauseTables"]


class ClauseTables:
    """A clause over tables that come in the order of time, or in any order within ``lateness`` or with numbers. The
    first table determines the plan, and with it ``schema`` and ``revised``."""

    def __init__(self, text: str, options: StreamOptions) -> None:
        check_clause_options(options)
        self.budget = clause_budget(options)
        check_partitions(text, self.budget)
        self.text, self.clause, self.options = text, read_clause(text), options
        self.casts = casts_of(options.cast)
        self.form = "arrow"  # in which results are given
        self.arrow: pa.Schema | None = None  # the columns as they came
        self.schema: InputSchema | None = None
        self.revised: RevisedClause | None = None
        self.latest: tuple[int, int] | None = None  # time and seq of the last row, where rows come in order
        self.seconds = 0.0
        self.finished = False

    @property
    def is_ordered(self) -> bool:
        """Return whether rows must come in the order of time."""
        return self.options.lateness is None and self.options.first_number is None

    def prepare(self, arrow: pa.Schema) -> RevisedClause:
        """Make the plan for the columns of the rows."""
        options = self.options
        columns = pa.schema([field for field in arrow.remove_metadata() if field.name != options.op])
        columns = selectable(columns.empty_table()).schema
        plan = self.clause.make_plan(columns)
        try:
            name = time_column(plan)
        except QueryError as error:
            raise self.clause.place_error(error) from None
        check_time_option(options.ts, name)
        schema = schema_of(arrow, ts=name, type=None, seq=options.seq, id=options.id, unit=options.unit)
        if not plan.output_names:
            raise self.clause.place_error(no_columns_error())
        arrivals = _arrivals_of(arrow, schema, options)
        ahead = span_ticks("speculation", options.speculation, schema)
        choice = None if self.budget is None else self.budget.make_choice(plan, schema)
        self.revised = RevisedClause(ClauseStream(plan, columns, choice), arrivals, ahead, self.clause.select)
        self.arrow, self.schema = arrow, schema
        return self.revised

    def push(self, table: pa.Table, form: str = "arrow") -> pa.Table:
        """Take in rows; return the rows of the result that are decided now. Raises :class:`DataError`, with nothing
        taken in, for rows that do not fit. ``form``: that in which results are given."""
        started = time.perf_counter()
        self.form = form
        if self.finished:
            raise DataError("the stream has been finished: no more events can be pushed", hint="make a new Matcher",
                            code="data_order")  # fmt: skip
        if not table.num_rows and (self.revised is not None or any(map(pa.types.is_null, table.schema.types))):
            return self._no_changes()  # columns without values settle no types
        is_first = self.revised is None
        revised = self.revised or self.prepare(table.schema)
        choice = revised.stream.choice
        pace = None if choice is None else choice.pace
        began = 0.0 if pace is None else pace.read_clock()
        mark, latest = revised.arrivals.mark(), self.latest
        try:
            self._check_zones(table)
            self._check_order(table)
            due = revised.arrivals.push(table)
            revised.check_values(table)
        except DataError:
            revised.arrivals.back_to(mark)
            self.latest = latest
            if is_first:  # a later batch settles the columns
                self.revised = self.arrow = self.schema = None
            raise
        result = self._push(revised, due)
        if choice is not None and pace is not None:
            choice.end_push(pace.read_clock() - began)
        self.seconds += time.perf_counter() - started
        return result

    def _push(self, revised: RevisedClause, due: ReleasedEvents) -> pa.Table:
        passed = revised.arrivals.passed
        after = None if passed is None else passed + 1
        return revised.push(due, revised.arrivals.greatest if self.is_ordered else after)

    def _check_zones(self, table: pa.Table) -> None:
        """Raise :class:`DataError` for times with a zone where there were none before, or without one."""
        assert self.arrow is not None
        if table.schema.equals(self.arrow):
            return
        for field in table.schema:
            before = self.arrow.field(field.name).type if field.name in self.arrow.names else field.type
            if not (pa.types.is_timestamp(field.type) and pa.types.is_timestamp(before)):
                continue
            if (field.type.tz is None) != (before.tz is None):
                raise DataError(f"column `{field.name}` is now {field.type}, and was {before} before", code="data_type",
                                hint="give all times a zone, or none")  # fmt: skip

    def _check_order(self, table: pa.Table) -> None:
        """Raise :class:`DataError` for rows that come before others, where they must come in order."""
        if not self.is_ordered or not table.num_rows:
            return
        assert self.schema is not None
        ts, seq, tick = self.schema.ts, self.schema.seq, self.schema.tick_ns or 1
        if any(name is not None and (name not in table.column_names or table.column(name).null_count)
               for name in (ts, seq)):  # fmt: skip
            return  # the arrivals say so
        ticks, _ = ticks_of(ts, table.column(ts), tick)
        numbers = np.zeros(len(ticks), np.int64) if seq is None else ticks_of(seq, table.column(seq), tick)[0]
        first, last = (int(ticks[0]), int(numbers[0])), (int(ticks[-1]), int(numbers[-1]))
        ticks_before, numbers_before = (
            np.concatenate([[value], column[:-1]])
            for value, column in zip(self.latest or first, (ticks, numbers), strict=True)
        )
        is_early = (ticks < ticks_before) | ((ticks == ticks_before) & (numbers < numbers_before))
        if is_early.any():
            row = int(np.argmax(is_early))
            time_of_row, before = ticks_to_input((int(ticks[row]), int(ticks_before[row])), self.schema)
            raise DataError(
                f"event {row} of the batch ({ts} {time_of_row}) is older than what was seen before ({ts} {before})",
                hint="push events in order of time, or say how late they may come, with lateness=",
                code="data_order",
            )
        self.latest = last

    def advance(self, ts: Any, key: Any = None, type: Any = None) -> pa.Table:
        """Declare that no row at or before ``ts`` will come; return the rows of the result that are decided now."""
        if self.is_ordered:
            raise QueryError("advance() is for events that may come late", hint="give lateness=", code="option_invalid")
        if key is not None or type is not None:
            raise QueryError("a clause takes the time of all rows alone", hint="leave key= and type= out",
                             code="option_invalid")  # fmt: skip
        if self.revised is None or self.schema is None or self.finished:
            return self._no_changes()
        times = pa.chunked_array([self.revised.arrivals.time(ts)])
        tick = int(ticks_of(self.schema.ts, times, self.schema.tick_ns or 1)[0][0])
        return self._push(self.revised, self.revised.arrivals.advance(tick))

    def _no_changes(self) -> pa.Table:
        return pa.table({}) if self.revised is None else self.revised.no_changes()

    def end(self) -> pa.Table:
        """End the stream; return the rows of the result that waited for its end."""
        was_finished, self.finished = self.finished, True
        return self._no_changes() if self.revised is None or was_finished else self.revised.finish()

    def untyped_result(self, arrow: pa.Schema) -> pa.Table | None:
        """Return the columns of the result, without rows and types, for columns that have no types yet; ``None`` if
        these are not those of the clause."""
        columns = pa.schema([field for field in arrow.remove_metadata() if field.name != self.options.op])
        try:
            names = self.clause.make_plan(columns).output_names
            result = self.clause.select(pa.table({name: pa.nulls(0) for name in names}))
        except (QueryError, DataError):
            return None
        return result if self.options.speculation == 0 else result.append_column(OP, pa.nulls(0))

    def give(self, result: pa.Table) -> Any:
        """Return a result in the form in which the last rows came."""
        return convert_to(self.form, result)

    @property
    def disordered(self) -> Arrivals | None:
        """Return the rows that may come in any order; ``None`` where they come in order, or none came."""
        return None if self.is_ordered or self.revised is None else self.revised.arrivals

    @property
    def final(self) -> Any:
        """Return the time up to which rows are final, in the form of the time column; ``None``: it is not known."""
        arrivals = self.disordered
        if self.finished or arrivals is None or self.schema is None or arrivals.final is None:
            return None
        return ticks_to_input((arrivals.final - 1,), self.schema)[0]

    @property
    def report(self) -> Report:
        """Return the report so far; ``matches`` counts rows of the result."""
        if self.revised is None:
            return replace(Report.of(Counts(), self.seconds), is_clause=True)
        revised, arrivals = self.revised, self.revised.arrivals
        counts = Counts(events=revised.rows, matches=revised.matches, retracted=revised.retracted)
        counts = counts.replace(late=arrivals.late_count, duplicates=arrivals.duplicates)
        if revised.stream.choice is not None:
            counts = revised.stream.choice.add_to(counts)
        return replace(Report.of(counts, self.seconds), is_clause=True)

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint that a snapshot has: blanks and comments of the clause do not matter."""
        tokens = [self.text[token.start : token.end] for token in scan(self.text)]
        return self._fingerprint_of(" ".join(tokens))

    def _fingerprint_of(self, text: str) -> str:
        """Return the fingerprint of a stream of a clause with this text."""
        names = ("seq", "id", "unit", "lateness", "op", "speculation", "seq_gaps", "duplicates")
        casts = {name: cast.text for name, cast in sorted(self.casts.items())}
        return f"{self._budget_text}{text}{[(name, getattr(self.options, name)) for name in names]}{casts}"

    @property
    def _budget_text(self) -> str:
        return "" if self.budget is None else repr(self.budget)

    def _describe_difference(self, payload: Any) -> SnapshotError | None:
        """Return the error for the payload of a snapshot that another fingerprint has; ``None`` where the budget is
        the same."""
        if not isinstance(payload, dict) or payload.get("budget", self._budget_text) == self._budget_text:
            return None
        return SnapshotError(
            "the snapshot was made under another budget, policy or seed, or by another clause",
            hint="restore it with the clause and the budget that it was taken with, or start without it",
        )

    def snapshot(self) -> bytes:
        """Return the state so far as bytes."""
        payload: dict[str, Any] = {"finished": self.finished, "arrow": None, "latest": self.latest}
        payload["budget"] = self._budget_text
        if self.arrow is not None and self.revised is not None:
            payload["arrow"] = bytes(self.arrow.serialize().to_pybytes())
            payload["revised"] = self.revised.dump()
        return seal(payload, self.fingerprint)

    def restore(self, data: bytes) -> ClauseTables:
        """Return a stream with the state of :meth:`snapshot`. Raises :class:`SnapshotError` for other bytes."""
        try:
            payload = unseal(data, self.fingerprint)
        except SnapshotError as error:
            if error.code != "state_other":
                raise
            # Snapshots of earlier versions have the fingerprint of the text as it is.
            payload = unseal(data, self._fingerprint_of(self.text), self._describe_difference)
        other = ClauseTables(self.text, self.options)
        other.form = self.form
        try:
            other.finished = payload["finished"] is True
            if payload["latest"] is not None:
                ts, seq = payload["latest"]
                other.latest = int(ts), int(seq)
            if payload["arrow"] is not None:
                other.prepare(pa.ipc.read_schema(pa.py_buffer(payload["arrow"]))).load(payload["revised"])
        except SnapshotError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, QueryError, DataError, pa.ArrowException, OSError):
            raise SnapshotError("the snapshot does not hold a state of this clause", code="state_damaged") from None
        return other


def _arrivals_of(arrow: pa.Schema, schema: InputSchema, options: StreamOptions) -> Arrivals:
    """Return what holds rows until they are final."""
    if options.first_number is not None:
        lateness = "inf" if options.lateness is None else options.lateness
        return NumberedArrivals(arrow, schema, lateness, options.first_number, options.duplicates)
    if options.lateness is None:
        # Rows that come in order are given at once, and known by their ids as long as time stands still.
        return Arrivals(arrow, schema, 0, speculation=None, duplicates=options.duplicates)
    return Arrivals(arrow, schema, options.lateness, options.op, duplicates=options.duplicates)
