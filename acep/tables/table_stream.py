"""Match the queries of a user over a stream of tables: the first table determines the schema and the plans."""

from __future__ import annotations

import binascii
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acep import logs
from acep.arrivals.released_events import ReleasedEvents
from acep.budget import tolerant
from acep.errors import DataError, QueryError, SnapshotError, naming_query
from acep.events.batch import Batch
from acep.events.columns import ticks_of
from acep.events.computed_columns import add_computed
from acep.events.empty_schema import choose_types
from acep.events.fields import column_at, repeat_error
from acep.events.files.casts import casts_of, check_time_cast
from acep.events.punctuations import key_values, type_names
from acep.events.tables import batch_of, schema_of, ticks_to_input
from acep.events.user_rows import OwnRows
from acep.matches.counted import Counted
from acep.matches.flat import Layout
from acep.matches.match_form import MatchForm
from acep.matches.matches import Matches, Report
from acep.matches.records import Counts, Found
from acep.native.compiled import warn_if_missing
from acep.pattern.query_arguments import Queries, read_queries, reduce_to_existence
from acep.pattern.state_text import state_text
from acep.plan.compile import Plan, compile_query
from acep.plan.reactions import attributes_of_input, types_of_all
from acep.plan.schema import Schema
from acep.runtime.execution import Execution
from acep.runtime.options import StreamOptions, thread_count
from acep.runtime.stream import Stream, merge_matches
from acep.storage.snapshot import seal, unseal
from acep.tables.absent_inputs import Absent
from acep.tables.snapshot_origin import difference_of, difference_of_casts, origin_of

# Streams of late events, and what they stand on, are imported where such a stream begins: most tables are in order.
if TYPE_CHECKING:
    from acep.arrivals.arrivals import Arrivals
    from acep.events.seen_ids import SeenIds
    from acep.revision.revised_stream import RevisedStream

__all__ = ["TableStream", "as_bytes"]

UNREADABLE = (QueryError, AttributeError, KeyError, TypeError, ValueError, binascii.Error, pa.ArrowException, OSError)
"""The errors of a state that is not what it should be."""


class TableStream:
    """Queries over tables that come in order of time, or in any order within ``lateness`` or with numbers.

    ``query_set``: the queries, with the errors of the budget; ``columns``: the names of columns with a role; ``limits``
    (``None``: no bound). Once the columns are known: ``schema``, ``plans``, ``stream``, and ``absent``, the types and
    keys that never occurred (``None`` where it is not known which came before). ``rows`` were taken in, in
    ``seconds``. ``arrivals`` hold events that may come in any order; they are ``None`` if events come in order. Then
    ``seen`` are the ids of the events at the latest time."""

    dynamic = False
    """Whether the queries may change: those of a :class:`acep.changing.changing_tables.ChangingTables` may."""

    def __init__(self, query: Queries, options: StreamOptions) -> None:
        asked = read_queries(query)
        warn_if_missing(options.engine)
        self.engine, self.columns = options.engine, options.columns
        self.query_set = replace(
            asked, queries=tuple(tolerant(asked_query, options.budget) for asked_query in asked.queries)
        )
        self.limits = options.limits()
        self.is_paced = self.limits is not None and self.limits.budget.is_paced
        self.threads, self.fewer_threads = thread_count(options.threads), ""  # those that may match, and why not more
        self.first, self.budget = self.query_set.queries, options.budget
        self.lateness, self.op, self.speculation = options.lateness, options.op, options.speculation
        self.first_number, self.duplicates = options.first_number, options.duplicates
        self.casts = casts_of(options.cast)
        check_time_cast(options.ts, self.casts)
        if self.first_number is not None and self.lateness is None:
            self.lateness = "inf"  # events are final by their numbers alone
        self.arrivals: Arrivals | None = None
        self.arrow: pa.Schema | None = None
        self.schema: Schema | None = None
        self._checked: pa.Schema | None = None  # of the last table whose columns were found to fit
        self.plans: tuple[Plan, ...] = ()
        self.stream: Stream | None = None
        self.revised: RevisedStream | None = None
        self.absent: Absent | None = None
        self.rows = 0
        self.left_out = 0  # rows that came again, where there are no arrivals
        self.seen: SeenIds | None = None  # of events at the latest time, where these come in order
        self.seconds = 0.0
        self.finished = False
        self.is_whole = False  # all events come as one table
        self.is_file = False  # all matches may come at the end
        self._layouts: dict[int, tuple[Plan, Layout]] = {}
        # Of a whole table that a user gave. Where duplicates are dropped, an id may be that of several rows.
        self.own_rows = OwnRows(first=True) if self.duplicates == "drop" and self.columns["id"] is not None else None
        self.groups: dict[str, int] = {}  # match points or bundles returned for a whole table

    def new_stream(self, query: Queries | None = None) -> TableStream:
        """Return another stream of one of the queries, or of all, with the same columns and engine and no limits."""
        queries = self.query_set.arrange(self.first) if query is None else query
        options: dict[str, Any] = {"engine": self.engine, "lateness": self.lateness, "op": self.op}
        options["dynamic"], options["duplicates"] = self.dynamic, self.duplicates
        options["speculation"] = self.speculation
        options["seq_gaps"] = False if self.first_number is None else self.first_number
        other = type(self)(queries, StreamOptions(**self.columns, **options))
        other.own_rows, other.casts = self.own_rows, self.casts
        return other

    def prepare(self, arrow: pa.Schema, output: str = "matches", *, counts: bool = True) -> None:
        """Make the plans for the columns of the events, and the engines for what is wanted."""
        if output == "bundles" and not counts:
            output = "points"  # of which such bundles are made
        if self.limits is not None and self.limits.budget.recover:
            output = "matches"
        self.schema = schema_of(arrow, **self.columns)
        if output == "exists":
            self.first = tuple(reduce_to_existence(query) for query in self.first)
        if self.first_number is not None:
            from acep.arrivals.numbered_arrivals import NumberedArrivals

            self.arrivals = NumberedArrivals(arrow, self.schema, self.lateness, self.first_number, self.duplicates)
        elif self.lateness is not None:
            from acep.arrivals.arrivals import Arrivals

            late = (self.lateness, self.op, self.speculation)
            self.arrivals = Arrivals(arrow, self.schema, *late, duplicates=self.duplicates)
        elif self.schema.id is not None:
            from acep.events.seen_ids import SeenIds

            self.seen = SeenIds(self.schema.id)
        self.plans = self._first_plans()
        if self.arrivals is not None and self.arrivals.speculates:
            from acep.revision.revised_stream import RevisedStream

            self.revised = RevisedStream(self.plans, self.engine, self.limits)
        else:
            self.stream = Stream(
                self.plans,
                self.engine,
                output,
                self.limits,
                names=self.query_set.names,
                execution=Execution(
                    threads=self.usable_threads,
                    is_whole=self.is_whole and self.arrivals is None,
                    is_file=self.is_file and self.arrivals is None,
                ),
            )
        self._make_first_changes()
        self.absent = Absent(self.plans, self.query_set.names)
        self.arrow = pa.schema([f.remove_metadata() for f in arrow])
        if self.arrivals is not None:
            self.arrivals.conditions(attributes_of_input(self.plans), types_of_all(self.plans))

    def _first_plans(self) -> tuple[Plan, ...]:
        """Return the plans of the queries with which the stream began."""
        assert self.schema is not None
        plans = []
        for name, query in zip(self.query_set.names, self.first, strict=True):
            with naming_query(name):
                plans.append(compile_query(query, self.schema))
        return tuple(plans)

    def _make_first_changes(self) -> None:
        """Go on with the queries that have changed before the first event: none can here."""

    def make_changes(self) -> None:
        """Make the changes of queries that wait for the next events: there are none here."""

    def is_ready(self, table: pa.Table) -> bool:
        """Return whether there are events to take in. Raises :class:`DataError` if they cannot be taken in."""
        if self.finished:
            raise DataError(
                "the stream has been finished: no more events can be pushed",
                hint="make a new Matcher",
                code="data_order",
            )
        self.make_changes()
        if not table.num_rows:
            if self.schema is None and table.num_columns:
                self.choose_types(table.schema)
            return False
        if self.schema is None:
            self.prepare(table.schema)
        assert self.schema is not None
        if self._checked is not None and table.schema.equals(self._checked):
            return True
        if schema_of(table.schema, **self.columns).instants != self.schema.instants:
            raise DataError(
                f"column `{self.schema.ts}` is now {table.schema.field(self.schema.ts).type}, as it was not before",
                code="data_type",
            )
        self._checked = table.schema
        return True

    def choose_types(self, arrow: pa.Schema) -> pa.Schema:
        """Return the columns of a table without rows, with types that the queries can use."""
        return choose_types(arrow, self.query_set.queries, self.columns)

    def batch(self, table: pa.Table, numbers: Any = None, *, unique: bool = True) -> Batch:
        """Return events as the engines take them. ``numbers``: those of their arrival, in the order of the stream,
        which are their ids where there is no column of ids. ``unique``: no id may come twice. An error names rows by
        their place among all that have come."""
        assert self.schema is not None
        columns = dict.fromkeys(column for plan in self.plans for column in plan.columns)
        batch = batch_of(table, self.schema, tuple(columns), base=self.came, unique=unique, threads=self.usable_threads)
        if numbers is not None and self.schema.id is None:
            batch = Batch(batch.ts, batch.types, numbers, batch.columns, batch.order)
        for name, plan in zip(self.query_set.names, self.plans, strict=True):
            if plan.computed and not plan.sources:
                with naming_query(name):
                    batch = add_computed(batch, plan.computed, plan.schema)
        if self.absent is not None:
            self.absent.record_batch(batch)
        return batch

    @property
    def came(self) -> int:
        """Return how many rows have come in earlier pushes, whether they were used or not."""
        return self.rows + self.left_out if self.arrivals is None else self.arrivals.arrived

    def push(self, table: pa.Table) -> list[Sequence[Found]]:
        """Feed events; return the matches of each query that are certain now. Raises as :meth:`is_ready` does."""
        started = time.perf_counter()
        matches = self._no_matches()
        if self.is_ready(table):
            with self._push_atomically(table):
                matches = self.feed(self.release_events(table))
        self.seconds += time.perf_counter() - started
        return matches

    @contextmanager
    def _push_atomically(self, table: pa.Table) -> Iterator[None]:
        """Guard one push of a table: if its events are refused, none of them was taken in."""
        mark = None if self.arrivals is None else self.arrivals.mark()
        state_before = self.seen, self.left_out
        try:
            yield
        except DataError:
            self.seen, self.left_out = state_before
            if self.arrivals is not None and mark is not None:
                self.arrivals.back_to(mark)
                if self.arrivals.speculation is None:
                    self.batch(table, unique=False)  # raises the same, with the row among all that came
            raise

    def release_events(self, table: pa.Table) -> ReleasedEvents:
        """Return the events that are due after a table came. Raises :class:`DataError` if they cannot be taken in."""
        if self.arrivals is None:
            return ReleasedEvents(self.without_repeated(table))
        if self.arrivals.speculation is not None:  # else they are converted now
            self.batch(table, unique=False)
        return self.arrivals.push(table)

    def without_repeated(self, table: pa.Table) -> pa.Table:
        """Return the rows of a table without those that come again. Raises :class:`DataError` for one that does, if it
        is refused."""
        if self.seen is None or not table.num_rows:
            return table
        assert self.schema is not None
        ticks, _ = ticks_of(self.schema.ts, column_at(table, self.schema.ts), self.schema.tick_ns or 1)
        column, seen = column_at(table, self.seen.name), copy(self.seen)
        assert column is not None
        is_repeated = seen.see(column, ticks, base=self.came)
        if is_repeated.any():
            row = int(np.argmax(is_repeated))
            if self.duplicates == "refuse":
                raise repeat_error(seen.name, column[row].as_py(), self.came + row)
            table, ticks = table.filter(pa.array(~is_repeated)), ticks[~is_repeated]
            self.left_out += int(np.count_nonzero(is_repeated))
        if len(ticks):
            seen.forget(int(ticks.max()))
        self.seen = seen
        return table

    def _due_batch(self, due: ReleasedEvents, numbers: Any = None) -> Batch:
        """Return the rows that are due as a batch. ``numbers``: ``due.numbers``, where they are known."""
        if self.arrivals is None:
            return self.batch(due.rows, unique=False)
        # The ids were looked at when they came.
        return self.batch(due.rows, due.numbers if numbers is None else numbers, unique=False)

    def blocks(self, table: pa.Table) -> Iterator[list[Sequence[Found]]]:
        """Feed events like :meth:`push`, and yield the matches in blocks, in bounded memory where events are final."""
        if not self.is_ready(table):
            return
        if self.stream is None:
            with self._push_atomically(table):
                matches = self.feed(self.release_events(table))
            yield matches
            return
        with self._push_atomically(table):
            due = self.release_events(table)
            batch = None if due.rows is None else self._due_batch(due)
        if batch is not None:
            yield from self.stream.blocks(batch)
            self.rows += len(batch)
        if self.arrivals is not None and self.arrivals.passed is not None:
            yield self.stream.advance(self.arrivals.passed)

    def advance(self, ts: Any, key: Any = None, type: Any = None) -> list[Sequence[Found]]:
        """Declare that no event at or before ``ts`` will come, of a ``key`` or a ``type`` if they are given; return the
        matches that are certain now."""
        if self.lateness is None:
            raise QueryError("advance() is for events that may come late", hint="give lateness=", code="option_invalid")
        if key is not None or type is not None:
            return self._promise(ts, key, type)
        if self.arrivals is None or self.schema is None or self.finished:
            return self._no_matches()
        self.make_changes()
        return self.feed(self.arrivals.advance(self._tick(ts)))

    def _promise(self, ts: Any, key: Any, type: Any) -> list[Sequence[Found]]:
        """Declare the same for events of a key or a type."""
        if self.first_number is not None:
            raise QueryError(
                "with seq_gaps= events are final by their numbers, whatever their key and type",
                hint="advance(ts) gives up numbers; leave key= and type= out",
                code="option_invalid",
            )
        if self.finished:
            return self._no_matches()
        if self.arrivals is None or self.schema is None or self.arrow is None:
            raise QueryError("the columns are not known before the first events", hint="push() before advance()")
        attributes = attributes_of_input(self.plans)
        values = {} if key is None else key_values(key, attributes, self.arrow, self.schema)
        types = None if type is None else type_names(type, self.schema)
        return self.feed(self.arrivals.promise(self._tick(ts), values, types))

    def _tick(self, time: Any) -> int:
        """Return a time that has the form of the time column, in ticks."""
        assert self.arrivals is not None
        assert self.schema is not None
        values = pa.chunked_array([self.arrivals.time(time)])
        return int(ticks_of(self.schema.ts, values, self.schema.tick_ns or 1)[0][0])

    def _times(self) -> tuple[int | None, int | None]:
        """Return the latest time that has come, and the time before which no event is matched any more, in ticks."""
        if self.arrivals is not None:
            if self.revised is not None:
                oldest, final = self.revised.oldest, self.arrivals.final
                certain = final if oldest is None or final is None else min(oldest, final)
                return self.arrivals.greatest, certain
            passed = self.arrivals.passed
            return self.arrivals.greatest, None if passed is None else passed + 1
        newest = None if self.stream is None else self.stream.newest
        return newest, newest

    def _no_matches(self) -> list[Sequence[Found]]:
        return [[]] * len(self.query_set.queries)

    def feed(self, due: ReleasedEvents) -> list[Sequence[Found]]:
        """Feed the events that are due, and the time that has passed; return the matches that are due."""
        if self.revised is not None:
            return self._feed_revised(self.revised, due)
        assert self.stream is not None
        matches = self._no_matches()
        if due.rows is not None:
            matches = self.stream.push(self._due_batch(due))
            self.rows += due.rows.num_rows
        if self.arrivals is not None and self.arrivals.passed is not None:
            passed = self.stream.advance(self.arrivals.passed)
            matches = [merge_matches(parts) for parts in zip(matches, passed, strict=True)]
        return matches

    def _feed_revised(self, stream: RevisedStream, due: ReleasedEvents) -> list[Sequence[Found]]:
        """Feed events that are due to a stream that can be revised."""
        assert self.arrivals is not None
        stream.begin(self.arrivals.final)
        steps = []
        stream.punctuate(self.arrivals.punctuations, at_once=self.arrivals.speculation is None)
        if due.rows is not None or due.removed:
            numbers = due.numbers
            batch = None if due.rows is None else self._due_batch(due, numbers)
            steps.append(stream.push(batch, numbers, due.inserted, due.removed))
            self.rows += len(numbers)
        if self.arrivals.passed is not None:
            steps.append(stream.advance(self.arrivals.passed))
        stream.forget_final(self.arrivals.final)
        return [merge_matches(parts) for parts in zip(*steps, strict=True)] if steps else self._no_matches()

    @property
    def final(self) -> Any:
        """Return the time up to which no match point changes any more, in the form of the time column."""
        if self.finished or self.arrivals is None or self.schema is None:
            return None
        if self.revised is not None:
            certain = None if self.arrivals.final is None else self.revised.certain_until(self.arrivals.final)
        elif self.arrivals.passed is None:
            return None
        else:
            assert self.stream is not None
            lows = [self.stream.earliest_open_end(number) for number in range(len(self.plans))]
            certain = None if None in lows else min(low for low in lows if low is not None) - 1
        return None if certain is None else ticks_to_input((certain,), self.schema)[0]

    @property
    def held(self) -> int | None:
        """Return the number of events that wait, or are kept to revise the stream."""
        if self.arrivals is None:
            return None
        return len(self.arrivals) + (0 if self.revised is None else self.revised.held)

    def end(self) -> list[Sequence[Found]]:
        """End the stream; return the matches of each query that waited for its end."""
        started = time.perf_counter()
        matches = self._no_matches()
        source = self.stream or self.revised
        if source is not None and not self.finished:
            self.make_changes()
            last_matches = self.feed_held()
            matches = [merge_matches(parts) for parts in zip(last_matches, source.finish(), strict=True)]
            self.warn()
        self.finished = True
        self.seconds += time.perf_counter() - started
        return matches

    def feed_held(self) -> list[Sequence[Found]]:
        """Feed all events that are still held, before the end."""
        return self._no_matches() if self.arrivals is None else self.feed(self.arrivals.finish())

    def warn(self) -> None:
        """Warn of types and keys that never occurred, if the whole stream was seen."""
        if self.absent is not None:
            self.absent.warn()

    def finish_blocks(self) -> Iterator[list[Sequence[Found]]]:
        """End the stream like :meth:`end`, and yield the matches in blocks."""
        if self.stream is None:
            yield self.end()
            return
        if not self.finished:
            self.make_changes()
            if self.arrivals is not None:
                yield self.feed_held()
            self.finished = True
            yield from self.stream.finish_blocks()
            self.warn()

    # Results ----------------------------------------------------------------------------------------

    def give_matches(self, matches_by_query: Sequence[Sequence[Found]]) -> Any:
        """Return the matches of the queries in the form in which the queries were given."""
        return self.query_set.arrange(
            [self.matches(number, matches) for number, matches in enumerate(matches_by_query)]
        )

    def matches(self, number: int, matches: Sequence[Found], report: Report | None = None) -> Matches:
        """Return matches of a query as a user sees them."""
        report_or_later = report or self.report_of(number)
        if not self.plans:
            return Matches(matches, MatchForm(self.schema_of(number)), report=report_or_later)
        plan = self.plans[number]
        form = MatchForm.of_plan(
            plan,
            self.schema_of(number),
            revised=self.revised is not None,
            ops=self.lateness is not None,
            layout=self._layout(number, plan),
            query=plan.query,
        )
        return Matches(matches, form, report=report_or_later, rows=self.own_rows)

    def partial_matches(self, limit: int, *, apart: bool) -> Any:
        """Return the live partial matches of the queries, in the form in which the queries were given."""
        from acep.tables.listed_partials import listed_partials  # few matchers are asked for them

        return self.query_set.arrange(
            [listed_partials(self, number, limit, apart=apart) for number in range(len(self.first))]
        )

    def schema_of(self, number: int) -> Schema:
        """Return the schema of the events of a query: those of a query with FROM are matches."""
        if self.plans and self.plans[number].sources:
            return self.plans[number].schema
        return self.schema or Schema(())

    def _layout(self, number: int, plan: Plan) -> Layout:
        """Return the layout of the matches of a plan, which is made once for each plan."""
        entry = self._layouts.get(number)
        if entry is None or entry[0] is not plan:
            entry = self._layouts[number] = plan, Layout.of_plans([plan])
        return entry[1]

    def has_match(self, batch: Batch) -> bool:
        """Feed events in order of time until the only query has a match, and return whether it has one."""
        assert self.stream is not None
        if self.stream.flows:
            return any(len(block[0]) for block in self.stream.blocks(batch, 1, 1))
        return self.has_any(self.stream.push(batch)[0])

    def has_any(self, matches: Sequence[Found]) -> bool:
        """Return whether the first query has a match, by what the last call returned or counted."""
        assert self.stream is not None
        counted = self.stream.take_counted(0)
        return len(matches) > 0 or (isinstance(counted, Counted) and len(counted) > 0)

    def count_groups(self, output: str, number: int) -> None:
        """Add ``number`` returned ``"points"`` or ``"bundles"`` to the report."""
        self.groups[output] = self.groups.get(output, 0) + number

    @property
    def report(self) -> Report:
        """Return the report of the work done so far, for all queries together."""
        source = self.stream or self.revised
        counts = self._with_late(source.counts if source else Counts())
        chosen = any(plan.chooses for plan in self.plans)
        report = Report.of(counts, self.seconds, chosen=chosen, threads=self._threads_used())
        return replace(report, points=self.groups.get("points"), bundles=self.groups.get("bundles"))

    def report_of(self, number: int) -> Callable[[], Report]:
        """Return a function that makes the report of one query as of now."""
        source = self.stream or self.revised
        counts = self._with_late(source.counts_of(number) if source else Counts())
        chosen = bool(self.plans) and self.plans[number].chooses
        return partial(Report.of, counts, self.seconds, chosen=chosen, threads=self._threads_used())

    def use_one_thread(self, why: str) -> None:
        """Match in one thread from the start, and report why."""
        if self.threads > 1:
            self.fewer_threads = why

    @property
    def usable_threads(self) -> int:
        """Return how many threads may be used, so far as it is known."""
        return 1 if self.fewer_threads else self.threads

    def _threads_used(self) -> tuple[int, str]:
        """Return how many threads match, and why they are fewer than were asked for."""
        if self.fewer_threads or self.threads == 1:
            return 1, self.fewer_threads
        if self.revised is not None:
            return 1, "a stream that is revised is matched in one thread"
        return (1, "") if self.stream is None else self.stream.threads

    def _with_late(self, counts: Counts) -> Counts:
        """Return the counts with the events that came too late or again, which were no events to the engines, and with
        those that no engine had to see."""
        if self.arrivals is None:
            return counts.replace(duplicates=self.left_out) if self.left_out else counts
        late, unseen, duplicates = self.arrivals.late_count, self.arrivals.unseen, self.arrivals.duplicates
        if not (late or unseen or duplicates):
            return counts
        return counts.replace(late=counts.late + late, events=counts.events + unseen, duplicates=duplicates)

    # State ------------------------------------------------------------------------------------------

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint that a snapshot must have."""
        queries = "\n".join(state_text(query) for query in self.first)
        options_text = "" if self.lateness is None else f"{self.lateness!r}{self.op!r}"
        options_text += f"{self.speculation!r}" if self.speculation else ""
        options_text += "dynamic" if self.dynamic else ""
        options_text += "" if self.first_number is None else f"numbers from {self.first_number}"
        return f"{queries}{self.query_set.names}{sorted(self.columns.items())}{options_text}"

    @property
    def origin(self) -> dict[str, Any]:
        """Return what a snapshot says of the queries and options with which it is taken."""
        options = {**self.columns, "lateness": self.lateness, "op": self.op, "speculation": self.speculation or 0}
        options |= {"dynamic": self.dynamic, "seq_gaps": False if self.first_number is None else self.first_number}
        options["cast"] = {name: cast.text for name, cast in sorted(self.casts.items())}
        return origin_of(self.first, self.query_set.names, options, self.budget)

    def snapshot(self) -> bytes:
        """Return the state so far as bytes."""
        source = self.stream or self.revised
        if self.revised is not None and self.arrivals is not None:
            self.revised.forget_final(self.arrivals.final, now=True)
        payload: dict[str, Any] = {
            "arrow": bytes(self.arrow.serialize().to_pybytes()) if self.arrow is not None else None,
            "stream": None if source is None else source.snapshot(),
            "rows": self.rows,
            "finished": self.finished,
            "origin": self.origin,
        }
        if self.arrivals is not None:
            payload["arrivals"] = self.arrivals.dump()
        if self.seen is not None:
            payload["seen"] = {"ids": self.seen.dump(), "left_out": self.left_out}
        return seal(payload | self._dump_queries(), self.fingerprint)

    def _dump_queries(self) -> dict[str, Any]:
        """Return what a snapshot says of queries that have changed: nothing here."""
        return {}

    def _load_queries(self, payload: Mapping[str, Any]) -> None:
        """Take up the queries of a snapshot that have changed: none can here."""

    def _load_stream(self, payload: Mapping[str, Any]) -> None:
        """Take up the engines' state of a snapshot."""
        if self.revised is not None:
            self.revised.restore(payload["stream"])
        else:
            self.stream = Stream.restore(
                self.plans,
                as_bytes(payload["stream"]),
                self.engine,
                limits=self.limits,
                execution=Execution(threads=self.usable_threads),
            )

    def restore(self, data: bytes) -> TableStream:
        """Return a stream with the state of :meth:`snapshot`. Raises :class:`SnapshotError` for other bytes."""
        payload = unseal(data, self.fingerprint, partial(difference_of, self.origin))
        if (other_casts := difference_of_casts(self.origin, payload)) is not None:
            raise other_casts
        other = self.new_stream()
        other.limits, other.budget = self.limits, self.budget
        other.threads, other.fewer_threads = self.threads, self.fewer_threads
        try:
            other._load_queries(payload)
            other.rows = int(payload["rows"])
            other.finished = payload["finished"] is True
            if payload["arrow"] is not None:
                other.prepare(pa.ipc.read_schema(pa.py_buffer(as_bytes(payload["arrow"]))))
                other._load_stream(payload)
                other.absent = None  # the snapshot does not hold the types that came before
                if other.arrivals is not None:
                    other.arrivals.load(payload["arrivals"])
                if other.seen is not None and (seen := payload.get("seen")) is not None:  # states of before have none
                    other.seen.load(as_bytes(seen["ids"]))
                    other.left_out = int(seen["left_out"])
        except SnapshotError as error:
            raise difference_of(self.origin, payload) or error from None
        except UNREADABLE:
            damaged = SnapshotError("the snapshot does not hold a state of this query", code="state_damaged")
            raise difference_of(self.origin, payload) or damaged from None
        logs.info(__name__, "the state of a stream was restored: %d events had come", other.rows)
        return other


def as_bytes(data: Any) -> bytes:
    """Return the data if they are bytes. Raises :class:`ValueError` for others."""
    if not isinstance(data, bytes):
        raise ValueError("bytes")
    return data
