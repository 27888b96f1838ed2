"""Matching of patterns in one process: in a whole table at once, or in a stream batch by batch."""

from __future__ import annotations

import binascii
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import pyarrow as pa

from acep.budget import Budget, tolerant
from acep.budget.policies import policy_of
from acep.errors import DataError, EngineError, QueryError, SnapshotError, memory_errors, suggest
from acep.events.batch import Batch
from acep.events.empty_schema import told
from acep.events.given import given_table
from acep.events.tables import batch_of, schema_of, to_table
from acep.matches.answers import Bundles, Count, Points
from acep.matches.batches import ROWS
from acep.matches.compressed import Compressed
from acep.matches.counted import Counted
from acep.matches.grouping import groups_of_counts
from acep.matches.matches import Matches, Report, bundles_of, points_of
from acep.matches.records import Counts, Found
from acep.native.compiled import chosen, warn_if_missing
from acep.pattern.asked import Queries, asked_for
from acep.pattern.printing import canonical
from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Schema
from acep.runtime.absent import Absent
from acep.runtime.options import MatchOptions
from acep.runtime.stream import Stream, together
from acep.shedding.history_file import read_learned
from acep.shedding.limits import Limits, want_a_bound
from acep.storage.sealing import seal, unseal

if TYPE_CHECKING:
    from acep.matches.batches import Batches

__all__ = ["ENGINES", "OUTPUTS", "Matcher", "match"]

OUTPUTS = ("matches", "points", "bundles", "count", "compressed")
EXISTS_PART = 4096  # events between two checks for a match
ENGINES = ("auto", "native", "reference")


@overload
def match(
    events: Any, query: Query | str, *, output: Literal["matches"] = "matches", **how: Unpack[MatchOptions]
) -> Matches: ...
@overload
def match(events: Any, query: Query | str, *, output: Literal["count"], **how: Unpack[MatchOptions]) -> Count: ...
@overload
def match(events: Any, query: Query | str, *, output: Literal["points"], **how: Unpack[MatchOptions]) -> Points: ...
@overload
def match(events: Any, query: Query | str, *, output: Literal["bundles"], **how: Unpack[MatchOptions]) -> Bundles: ...
@overload
def match(events: Any, query: Query | str, *, output: Literal["exists"], **how: Unpack[MatchOptions]) -> bool: ...
@overload
def match(
    events: Any, query: Query | str, *, output: Literal["compressed"], **how: Unpack[MatchOptions]
) -> Compressed: ...
@overload
def match(events: Any, query: Query | str, *, output: Literal["batches"], **how: Unpack[MatchOptions]) -> Batches: ...
@overload
def match(events: Any, query: Queries, *, output: str = "matches", **how: Unpack[MatchOptions]) -> Any: ...
def match(
    events: Any,
    query: Queries,
    *,
    budget: Budget | None = None,
    ts: str = "ts",
    type: str | None = "type",
    seq: str | None = None,
    id: str | None = None,
    unit: str | None = None,
    output: str = "matches",
    counts: bool = True,
    engine: str = "auto",
    policy: Any = "history",
    seed: int = 0,
    history: Any = None,
    limit: int | None = None,
) -> Any:
    """Find a pattern in a table of events.

    ``query`` is the result of :func:`acep.parse` or :func:`acep.regex`, or a text for the first of them. It may also
    be a list of queries, or a dict of names and queries. These share one pass over the events, and the result is a
    list or dict of the results that each would give alone.

    ``events``: a pandas or polars DataFrame, a pyarrow Table, or anything that :func:`acep.events.tables.to_table`
    reads, or the paths of files, as for :func:`acep.read_events`. They are first sorted by (``ts``, ``seq``, row).
    ``ts``, ``type``, ``seq`` and ``id`` name columns; ``unit`` is the length of a tick of an integer ``ts``.

    ``output``: ``"matches"`` (a :class:`Matches`), ``"points"`` (:class:`Points`, as of :meth:`Matches.points`),
    ``"bundles"`` (:class:`Bundles`, as of :meth:`Matches.bundles`), ``"count"`` (a :class:`Count`, which equals an
    int), or ``"compressed"`` (a :class:`Compressed`). The first four have the ``report`` of the run, and ``exact``:
    whether the ``budget`` sufficed for a complete result. If no predicate ties events together, all but the first are
    found without making matches. ``"exists"`` (a bool) stops at the first match. With ``counts=False`` bundles have no
    number of matches (``matches`` is ``None``). Existence, match points and such bundles need only some of the partial
    matches (docs/internals/dominance.md).

    ``"batches"`` gives the matches as Arrow record batches, made one by one (:class:`acep.matches.batches.Batches`).
    This is the fastest way to read very many, in bounded memory if each match is decided by its last event.
    ``engine``: ``"native"``, ``"reference"``, or ``"auto"``: the native core if it is installed and can run the query
    (one warning if it is not installed). ``policy`` decides which partial matches to keep when the ``budget`` is
    insufficient: a name in :data:`acep.budget.policies.POLICIES`, or an object with the methods of
    :class:`acep.learning.policy.Policy`; ``seed`` seeds its random choices. ``history`` is its initial state: the
    result of :func:`acep.learn`, a file that holds it, or a list of these for several queries.

    ``limit``: return at most so many matches of each query. They are the same each time, but not always the first in
    output order. The work stops once they are found, and takes no more memory than they and the partial matches need.
    It is only for ``output="matches"``.

    Warns (:class:`acep.DataWarning`) if an event type of a query never occurs, or a partition attribute is null in
    every event.

    Raises :class:`QueryError`, :class:`DataError`, :class:`EngineError`, or :class:`SnapshotError` for a history that
    is damaged or of another query.

    >>> import acep
    >>> rows = {"ts": [1, 2, 3, 4, 5], "type": list("cdaeb")}
    >>> [(m.bindings, m.error) for m in acep.match(rows, acep.regex("a(b|c)db", within=5, errors=1))]
    [({'b': (4,), 'c': (0,), 'd': (1,)}, 1)]
    """
    how: dict[str, Any] = {"ts": ts, "type": type, "seq": seq, "id": id, "unit": unit, "engine": engine}
    how |= {"budget": budget, "policy": policy, "seed": seed, "history": history}
    known = (*OUTPUTS, "exists", "batches")
    if not isinstance(output, str) or output not in known:
        raise QueryError(f"unknown output {output!r}", hint=suggest(str(output), known))
    matcher = Matcher(query, **how)
    if not isinstance(counts, bool) or (not counts and output not in ("points", "bundles")):
        raise QueryError("counts= is True, or for bundles and points False", hint='output="bundles", counts=False')
    if limit is not None and output != "matches":
        raise QueryError("limit= is for matches", hint='output="matches"')
    most = None if limit is None else _number(limit)
    with memory_errors():
        table = given_table(events, matcher._asked, **matcher._names)
        return matcher._whole(table, output, counts) if most is None else matcher._some(table, most)


class Matcher:
    """A query over a stream that comes batch by batch, in order of time.

    The arguments are those of :func:`match`; for a list or dict of queries the methods return a list or dict. Without
    an id column, event ids count rows from the first batch on.

    >>> import acep
    >>> matcher = Matcher(acep.regex("ab", within=5))
    >>> len(matcher.push({"ts": [1], "type": ["a"]})), len(matcher.push({"ts": [2], "type": ["b"]}))
    (0, 1)
    """

    def __init__(
        self,
        query: Queries,
        *,
        budget: Budget | None = None,
        ts: str = "ts",
        type: str | None = "type",
        seq: str | None = None,
        id: str | None = None,
        unit: str | None = None,
        engine: str = "auto",
        policy: Any = "history",
        seed: int = 0,
        history: Any = None,
    ) -> None:
        asked = asked_for(query)
        if not isinstance(engine, str) or engine not in ENGINES:
            raise EngineError(f"there is no engine {engine!r}", hint=f"one of {', '.join(ENGINES)}")
        warn_if_missing(engine)
        self._engine = engine
        maker = policy_of(policy)
        self._limits: Limits | None = None
        self._asked = replace(asked, queries=tuple(tolerant(one, budget) for one in asked.queries))
        if budget is not None and budget.limited:
            self._limits = Limits(maker, budget, seed, {} if history is None else read_learned(history))
        else:
            want_a_bound(policy, history)
        self.query = self._asked.give(self._asked.queries)
        self._names: dict[str, Any] = {"ts": ts, "type": type, "seq": seq, "id": id, "unit": unit}
        self._arrow: pa.Schema | None = None
        self._schema: Schema | None = None
        self._plans: tuple[Plan, ...] = ()
        self._stream: Stream | None = None
        self._absent: Absent | None = None
        self._rows = 0
        self._seconds = 0.0
        self._finished = False
        self._groups: dict[str, int] = {}  # match points or bundles returned for a whole table

    @property
    def report(self) -> Report:
        """Return the report of the work done so far, for all queries together."""
        counts = self._stream.counts if self._stream else Counts()
        report = Report.of(counts, self._seconds, chosen=any(plan.chooses for plan in self._plans))
        return replace(report, points=self._groups.get("points"), bundles=self._groups.get("bundles"))

    def push(self, batch: Any) -> Any:
        """Feed a batch of events; return the matches that are certain now.

        Raises :class:`DataError`, with nothing of the batch taken in, if its events are older than earlier ones or its
        columns do not fit those of the first batch.
        """
        started, processor = time.perf_counter(), time.thread_time()
        found = self._given(self._push(to_table(batch)))
        if self._stream is not None:
            self._stream.took(time.thread_time() - processor, time.perf_counter() - started)
        return found

    def blocks(self, batch: Any) -> Iterator[Any]:
        """Feed a batch like :meth:`push`, but yield the matches in blocks of some 10,000, in bounded memory. Blocks are
        in the order of match points. If very many matches share one match point, their order within it is not the
        output order, but the same each time.

        Read all blocks before the next call. The events are taken in only when the first block is read.

        >>> import acep
        >>> matcher = Matcher(acep.regex("ab", within=5))
        >>> [len(some) for some in matcher.blocks({"ts": [1, 2, 3], "type": list("aab")})]
        [2]
        """
        table = to_table(batch)
        started = time.perf_counter()
        if self._ready(table):
            assert self._stream is not None
            for found in self._stream.blocks(self._batch(table)):
                self._seconds += time.perf_counter() - started
                yield self._given(found)
                started = time.perf_counter()
            self._rows += table.num_rows
        self._seconds += time.perf_counter() - started

    def finish_blocks(self) -> Iterator[Any]:
        """Finish the stream like :meth:`finish`, but yield the matches in blocks."""
        if self._stream is not None and not self._finished:
            self._finished = True
            for found in self._stream.finish_blocks():
                yield self._given(found)
            self._warn()
        self._finished = True

    def finish(self) -> Any:
        """End the stream; return the matches that waited for its end. Warns (:class:`acep.DataWarning`) of event types
        of the query that never occurred, and of partition attributes that were always null."""
        return self._given(self._end())

    def snapshot(self) -> bytes:
        """Return the state so far, as bytes for :meth:`restore`."""
        payload = {
            "arrow": bytes(self._arrow.serialize().to_pybytes()) if self._arrow is not None else None,
            "stream": self._stream.snapshot() if self._stream else None,
            "rows": self._rows,
            "finished": self._finished,
        }
        return seal(payload, self._fingerprint())

    def restore(self, data: bytes) -> None:
        """Continue from a snapshot of a Matcher with the same query and column names.

        Raises :class:`SnapshotError`, and keeps the present state, if the bytes are damaged or of another query.
        """
        payload = unseal(data, self._fingerprint())
        other = Matcher(self.query, engine=self._engine)
        other._names, other._limits = self._names, self._limits
        try:
            other._rows = int(payload["rows"])
            other._finished = payload["finished"] is True
            if payload["arrow"] is not None:
                other._prepare(pa.ipc.read_schema(pa.py_buffer(_bytes(payload["arrow"]))))
                other._stream = Stream.restore(
                    other._plans, _bytes(payload["stream"]), self._engine, limits=self._limits
                )
                other._absent = None  # the snapshot does not hold the types that came before
        except SnapshotError:
            raise
        except (KeyError, TypeError, ValueError, binascii.Error, pa.ArrowException, OSError):
            raise SnapshotError("the snapshot does not hold a state of this query") from None
        self.__dict__.update(other.__dict__)

    def _fingerprint(self) -> str:
        queries = "\n".join(canonical(query) for query in self._asked.queries)
        return f"{queries}{self._asked.names}{sorted(self._names.items())}"

    def _prepare(self, arrow: pa.Schema, output: str = "matches") -> None:
        self._schema = schema_of(arrow, **self._names)
        self._plans = tuple(compile_query(query, self._schema) for query in self._asked.queries)
        self._stream = Stream(self._plans, self._engine, output, self._limits)
        self._absent = Absent(self._plans)
        self._arrow = pa.schema([f.remove_metadata() for f in arrow])

    def _push(self, table: pa.Table) -> list[Sequence[Found]]:
        started = time.perf_counter()
        if not self._ready(table):
            return [[]] * len(self._asked.queries)
        assert self._stream is not None
        found = self._stream.push(self._batch(table))
        self._rows += table.num_rows
        self._seconds += time.perf_counter() - started
        return found

    def _ready(self, table: pa.Table) -> bool:
        """Return whether there are events to take in. Raises :class:`DataError` if they cannot be taken in."""
        if self._finished:
            raise DataError("the stream has been finished: no more events can be pushed", hint="make a new Matcher")
        if not table.num_rows:
            if self._stream is None and table.num_columns:
                told(table.schema, self._asked.queries, self._names)
            return False
        if self._stream is None:
            self._prepare(table.schema)
        assert self._stream is not None
        assert self._schema is not None
        if schema_of(table.schema, **self._names).instants != self._schema.instants:
            raise DataError(
                f"column `{self._schema.ts}` is now {table.schema.field(self._schema.ts).type}, as it was not before"
            )
        return True

    def _batch(self, table: pa.Table) -> Batch:
        assert self._schema is not None
        columns = dict.fromkeys(column for plan in self._plans for column in plan.columns)
        batch = batch_of(table, self._schema, tuple(columns), base=self._rows)
        if self._absent is not None:
            self._absent.saw(batch)
        return batch

    def _warn(self) -> None:
        """Warn of types and keys that never occurred, if the whole stream was seen."""
        if self._absent is not None:
            self._absent.warn()

    def _end(self) -> list[Sequence[Found]]:
        started = time.perf_counter()
        found: list[Sequence[Found]] = [[]] * len(self._asked.queries)
        if self._stream is not None and not self._finished:
            found = self._stream.finish()
            self._warn()
        self._finished = True
        self._seconds += time.perf_counter() - started
        return found

    def _given(self, found: Sequence[Sequence[Found]]) -> Any:
        return self._asked.give([self._matches(n, one) for n, one in enumerate(found)])

    def _matches(self, number: int, found: Sequence[Found], report: Report | None = None) -> Matches:
        plan, schema = self._plans[number] if self._plans else None, self._schema or Schema(())
        return Matches.from_found(
            found,
            schema=schema,
            keys=plan.keys if plan else (),
            returns=tuple(n for n, _ in plan.returns) if plan else (),
            report=report or self._report(number),
            window=plan.window if plan else None,
            return_kinds=plan.return_kinds if plan else (),
            return_scales=plan.return_scales if plan else (),
            return_times=plan.return_times if plan else (),
        )

    def _whole(self, table: pa.Table, output: str, counts: bool = True) -> Any:
        """Return the requested output for a table that is the whole stream."""
        numbers = range(len(self._asked.queries))
        empty = not table.num_columns and not table.num_rows
        if not empty and not table.num_rows:
            table = told(table.schema, self._asked.queries, self._names).empty_table()
        if self._limits is not None and output in ("batches", "exists", "compressed"):
            raise QueryError(
                f'output="{output}" keeps to no budget of work, time or memory',
                hint='"matches", "points", "bundles" or "count", which then say what was found',
            )
        if output == "batches":
            return self._asked.give([self._batches(number, table, empty) for number in numbers])
        if output == "exists":
            return self._asked.give([self._exists(number, table, empty) for number in numbers])
        if not empty:
            # Bundles without counts are made from match points.
            asked = {"compressed": "matches", "bundles": "bundles" if counts else "points"}.get(output, output)
            if self._limits is not None and self._limits.budget.recover:
                asked = "matches"
            self._prepare(table.schema, asked)
        if output == "compressed":
            return self._asked.give([self._compressed(number, table, empty) for number in numbers])
        found = [together(parts) for parts in zip(self._push(table), self._end(), strict=True)]
        given = [self._summary(number, found[number], output, counts) for number in numbers]
        for one in given:
            if isinstance(one, Points | Bundles):
                self.gave(output, len(one))
        return self._asked.give(given)

    def gave(self, output: str, number: int) -> None:
        """Add ``number`` returned ``"points"`` or ``"bundles"`` to the report."""
        self._groups[output] = self._groups.get(output, 0) + number

    def _some(self, table: pa.Table, limit: int) -> Any:
        """Return at most ``limit`` matches of each query in a table that is the whole stream."""
        found: list[list[Sequence[Found]]] = [[] for _ in self._asked.queries]
        if not table.num_rows and table.num_columns:
            table = told(table.schema, self._asked.queries, self._names).empty_table()
        started = time.perf_counter()
        if self._ready(table) and limit:
            assert self._stream is not None
            most = min(ROWS, limit)
            for block in chain(self._stream.blocks(self._batch(table), most, most), self._stream.finish_blocks(most)):
                for kept, one in zip(found, block, strict=True):
                    kept.append(one[: limit - sum(map(len, kept))])
                if all(sum(map(len, kept)) == limit for kept in found):
                    break
            self._warn()
        self._finished = True
        self._seconds += time.perf_counter() - started
        return self._asked.give([self._limited(n, together(parts), limit) for n, parts in enumerate(found)])

    def _limited(self, number: int, found: Sequence[Found], limit: int) -> Matches:
        """Return some matches of a query, with a report that says whether there may be more."""
        return self._matches(
            number, found, replace(self._report(number)(), matches=len(found), limited=len(found) == limit)
        )

    def _summary(
        self, number: int, found: Sequence[Found], output: str, counts: bool
    ) -> Matches | Count | Points | Bundles:
        counted = self._stream.counted(number) if self._stream else None
        if isinstance(counted, int):
            return Count(counted, self._report(number)())
        if isinstance(counted, Counted):
            keys, schema = self._plans[number].keys, self._schema or Schema(())
            by = "end" if output == "points" else "bundle"
            groups, report = groups_of_counts(counted, by), self._report(number)()
            if output == "points":
                return Points(points_of(groups, keys, schema), replace(report, points=len(groups)))
            bundles = bundles_of(groups, keys, schema, counts=counts)
            return Bundles(bundles, replace(report, bundles=len(groups)))
        matches = self._matches(number, found)
        if output == "points":
            return matches.points()
        if output == "bundles":
            return matches.bundles(counts=counts)
        return matches.count() if output == "count" else matches

    def _report(self, number: int) -> Callable[[], Report]:
        """Return a function that makes the report of one query as of now."""
        counts = self._stream.counts_of(number) if self._stream else Counts()
        chosen = bool(self._plans) and self._plans[number].chooses
        return partial(Report.of, counts, self._seconds, chosen=chosen)

    def _exists(self, number: int, table: pa.Table, empty: bool) -> bool:
        """Return whether a query has a match; stop reading the table at the first one."""
        if empty:
            return False
        schema = schema_of(table.schema, **self._names)
        plan = compile_query(self._asked.queries[number], schema)
        stream = Stream([plan], self._engine, "exists")

        def some(found: Sequence[Sequence[Found]]) -> bool:
            counted = stream.counted(0)
            return bool(len(found[0])) or (isinstance(counted, Counted) and len(counted) > 0)

        whole = batch_of(table, schema, plan.columns, base=0)
        if any(some(stream.push(part)) for part in whole.parts(EXISTS_PART)) or some(stream.finish()):
            return True
        absent = Absent([plan])
        absent.saw(whole)
        absent.warn()
        return False

    def _compressed(self, number: int, table: pa.Table, empty: bool) -> Compressed:
        choice = None if empty else chosen(self._plans[number], self._engine, "compressed")
        if choice is None or choice.alone != "compressed":
            alone = Matcher(self._asked.queries[number], engine=self._engine)
            alone._names = self._names
            return Compressed(None, alone._whole(table, "matches"))
        from acep.native.session import NativeSession

        session = NativeSession([self._plans[number]], [choice.engine])
        session.push(self._batch(table))
        session.finish()
        self._warn()
        graph = session.take_compressed(0)
        return Compressed(graph, self._matches(number, []), lambda given: session.columns(0, given))

    def _batches(self, number: int, table: pa.Table, empty: bool) -> Batches:
        from acep.matches.batches import Batches
        from acep.runtime.blocks import blocks_of

        if empty:
            return Batches(iter(()), self._matches(number, []), fractional=False)
        if self._stream is None:
            self._prepare(table.schema)
        plan = self._plans[number]
        absent, batch = Absent([plan]), self._batch(table)
        absent.saw(batch)
        absent.warn()
        blocks = blocks_of(plan, self._engine, batch)
        return Batches(blocks, self._matches(number, []), fractional=plan.automaton.costs.scale != 1)


def _number(limit: Any) -> int:
    if isinstance(limit, bool) or not isinstance(limit, Integral) or int(limit) < 0:
        raise QueryError(f"limit={limit!r} is not a number of matches", hint="a whole number, or None for all")
    return int(limit)


def _bytes(data: Any) -> bytes:
    if not isinstance(data, bytes):
        raise ValueError("bytes")
    return data
