"""Matching in one process: a whole table at once, or a stream batch by batch."""

from __future__ import annotations

import binascii
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep.budget import Budget, tolerant
from acep.budget.policies import policy_of
from acep.engine.batch import Batch
from acep.engine.compiled import chosen, warn_if_missing
from acep.engine.compressed import Compressed
from acep.engine.counted import Counted
from acep.engine.found import Counts, Found
from acep.engine.grouping import groups_of_counts
from acep.engine.learned import read_learned
from acep.engine.limits import Limits, want_a_bound
from acep.engine.matches import Matches, Report, bundles_of, points_of
from acep.engine.no_rows import told
from acep.engine.sealing import seal, unseal
from acep.engine.stream import Stream, together
from acep.engine.tables import batch_of, schema_of, to_table
from acep.errors import DataError, EngineError, QueryError, SnapshotError, suggest
from acep.pattern.asked import Queries, asked_for
from acep.pattern.printing import canonical
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Schema

if TYPE_CHECKING:
    from acep.engine.batches import Batches

__all__ = ["ENGINES", "OUTPUTS", "Matcher", "match", "reported"]

OUTPUTS = ("matches", "points", "bundles", "count", "compressed")
EXISTS_PART = 4096  # events between two looks at whether a match was found
ENGINES = ("auto", "native", "reference")


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
) -> Any:
    """Find a pattern in a table of events.

    ``query`` may also be a list of queries, or a dict of names and queries: they share one pass over the events, and
    a list or a dict is given of what each of them alone would have given.

    ``events``: a pandas or polars DataFrame, a pyarrow Table, or whatever :func:`acep.engine.tables.to_table`
    reads; it is sorted by (``ts``, ``seq``, row) first. ``ts``, ``type``, ``seq`` and ``id`` name its columns;
    ``unit`` is the length of a tick of an integer ``ts``. ``output``: ``"matches"`` (a :class:`Matches`), ``"points"``
    (the list of :meth:`Matches.points`), ``"bundles"`` (that of :meth:`Matches.bundles`), ``"count"`` (an int), or
    ``"compressed"`` (a :class:`Compressed`). Where no predicate ties events together, all but the first are found
    without making a match. ``"exists"`` says whether there is a match (a bool), and looks no further than the first
    one. With ``counts=False`` bundles come without the number of their matches (``matches`` is ``None``). Existence,
    match points and such bundles need only some of the partial matches (docs/dominance.md).

    With ``"batches"`` the matches come as Arrow record batches that are made one by one
    (:class:`acep.engine.batches.Batches`): the fastest way to read very many of them, in bounded memory where each
    match is decided by its last event. ``engine``: ``"native"`` or ``"reference"``, or ``"auto"``, which takes the
    native core where it is there and can run the query (where it is not there, a warning says so once).
    ``policy`` chooses what is kept where the ``budget`` does not suffice for all: one of
    :data:`acep.budget.policies.POLICIES` by name, or an object with the methods of
    :class:`acep.learning.policy.Policy`; ``seed`` is what it draws its chances from. ``history`` is what it begins
    with: what :func:`acep.learn` gave, or the file that holds it, or a list of these where there are several queries.

    Raises :class:`QueryError`, :class:`DataError`, :class:`EngineError`, or :class:`SnapshotError` for a history that
    is damaged or of another query.

    >>> import acep
    >>> rows = {"ts": [1, 2, 3, 4, 5], "type": list("cdaeb")}
    >>> [(m.bindings, m.error) for m in acep.match(rows, acep.regex("a(b|c)db", within=5, errors=1))]
    [({'b': (4,), 'c': (0,), 'd': (1,)}, 1)]
    """
    how: dict[str, Any] = {"ts": ts, "type": type, "seq": seq, "id": id, "unit": unit, "engine": engine}
    how |= {"budget": budget, "policy": policy, "seed": seed, "history": history}
    return reported(events, query, output=output, counts=counts, **how)[0]


def reported(events: Any, query: Queries, *, output: str, counts: bool, **how: Any) -> tuple[Any, Report]:
    """As :func:`match`, with the report of the run, whatever is asked for; ``how`` is what :class:`Matcher` takes."""
    known = (*OUTPUTS, "exists", "batches")
    if not isinstance(output, str) or output not in known:
        raise QueryError(f"unknown output {output!r}", hint=suggest(str(output), known))
    matcher = Matcher(query, **how)
    if not isinstance(counts, bool) or (not counts and output not in ("points", "bundles")):
        raise QueryError("counts= is True, or for bundles and points False", hint='output="bundles", counts=False')
    return matcher._whole(to_table(events), output, counts), matcher.report


class Matcher:
    """A query over a stream that comes batch by batch, in order of time.

    The arguments are those of :func:`match`; with a list or a dict of queries, so is what the methods give. Event
    ids, where no column is named, count rows from the first batch on.

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
        self._rows = 0
        self._seconds = 0.0
        self._finished = False

    @property
    def report(self) -> Report:
        """The work done so far, of all queries."""
        counts = self._stream.counts if self._stream else Counts()
        return Report.of(counts, self._seconds)

    def push(self, batch: Any) -> Any:
        """Feed events; the matches that are certain now.

        Raises :class:`DataError`, with nothing of the batch taken in, if it is older than what has been seen,
        or its columns do not fit those of the first batch.
        """
        started, processor = time.perf_counter(), time.thread_time()
        found = self._given(self._push(to_table(batch)))
        if self._stream is not None:
            self._stream.took(time.thread_time() - processor, time.perf_counter() - started)
        return found

    def finish(self) -> Any:
        """The stream has ended: the matches that waited for that."""
        return self._given(self._end())

    def snapshot(self) -> bytes:
        """The state so far, as bytes for :meth:`restore`."""
        payload = {
            "arrow": bytes(self._arrow.serialize().to_pybytes()) if self._arrow is not None else None,
            "stream": self._stream.snapshot() if self._stream else None,
            "rows": self._rows,
            "finished": self._finished,
        }
        return seal(payload, self._fingerprint())

    def restore(self, data: bytes) -> None:
        """Go on from a snapshot of a Matcher with the same query and the same column names.

        Raises :class:`SnapshotError`, with the present state untouched, if the bytes are damaged or of another query.
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
        self._arrow = pa.schema([f.remove_metadata() for f in arrow])

    def _push(self, table: pa.Table) -> list[Sequence[Found]]:
        started = time.perf_counter()
        if self._finished:
            raise DataError("the stream has been finished: no more events can be pushed", hint="make a new Matcher")
        if not table.num_rows:
            if self._stream is None and table.num_columns:
                told(table.schema, self._asked.queries, self._names)
            return [[]] * len(self._asked.queries)
        if self._stream is None:
            self._prepare(table.schema)
        assert self._stream is not None
        assert self._schema is not None
        if schema_of(table.schema, **self._names).instants != self._schema.instants:
            raise DataError(
                f"column `{self._schema.ts}` is now {table.schema.field(self._schema.ts).type}, as it was not before"
            )
        found = self._stream.push(self._batch(table))
        self._rows += table.num_rows
        self._seconds += time.perf_counter() - started
        return found

    def _batch(self, table: pa.Table) -> Batch:
        assert self._schema is not None
        columns = dict.fromkeys(column for plan in self._plans for column in plan.columns)
        return batch_of(table, self._schema, tuple(columns), base=self._rows)

    def _end(self) -> list[Sequence[Found]]:
        started = time.perf_counter()
        found: list[Sequence[Found]] = [[]] * len(self._asked.queries)
        if self._stream is not None and not self._finished:
            found = self._stream.finish()
        self._finished = True
        self._seconds += time.perf_counter() - started
        return found

    def _given(self, found: Sequence[Sequence[Found]]) -> Any:
        return self._asked.give([self._matches(n, one) for n, one in enumerate(found)])

    def _matches(self, number: int, found: Sequence[Found]) -> Matches:
        plan, schema = self._plans[number] if self._plans else None, self._schema or Schema(())
        counts = self._stream.counts_of(number) if self._stream else Counts()
        return Matches.from_found(
            found,
            schema=schema,
            keys=plan.keys if plan else (),
            returns=tuple(n for n, _ in plan.returns) if plan else (),
            report=partial(Report.of, counts, self._seconds),
            window=plan.window if plan else None,
            return_kinds=plan.return_kinds if plan else (),
        )

    def _whole(self, table: pa.Table, output: str, counts: bool = True) -> Any:
        """What is asked of a table that is the whole stream."""
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
        return self._asked.give([self._summary(number, found[number], output, counts) for number in numbers])

    def _summary(self, number: int, found: Sequence[Found], output: str, counts: bool) -> Any:
        counted = self._stream.counted(number) if self._stream else None
        if isinstance(counted, int):
            return counted
        if isinstance(counted, Counted):
            keys, schema = self._plans[number].keys, self._schema or Schema(())
            if output == "points":
                return points_of(groups_of_counts(counted, "end"), keys, schema)
            return bundles_of(groups_of_counts(counted, "bundle"), keys, schema, counts=counts)
        matches = self._matches(number, found)
        if output == "points":
            return matches.points()
        if output == "bundles":
            return matches.bundles(counts=counts)
        return matches.count() if output == "count" else matches

    def _exists(self, number: int, table: pa.Table, empty: bool) -> bool:
        """Whether a query has a match, by the part of the table that tells."""
        if empty:
            return False
        schema = schema_of(table.schema, **self._names)
        plan = compile_query(self._asked.queries[number], schema)
        stream = Stream([plan], self._engine, "exists")

        def some(found: Sequence[Sequence[Found]]) -> bool:
            counted = stream.counted(0)
            return bool(len(found[0])) or (isinstance(counted, Counted) and len(counted) > 0)

        whole = batch_of(table, schema, plan.columns, base=0)
        return any(some(stream.push(part)) for part in whole.parts(EXISTS_PART)) or some(stream.finish())

    def _compressed(self, number: int, table: pa.Table, empty: bool) -> Compressed:
        choice = None if empty else chosen(self._plans[number], self._engine, "compressed")
        if choice is None or choice.alone != "compressed":
            alone = Matcher(self._asked.queries[number], engine=self._engine)
            alone._names = self._names
            return Compressed(None, alone._whole(table, "matches"))
        from acep.engine.native_session import NativeSession

        session = NativeSession([self._plans[number]], [choice.engine])
        session.push(self._batch(table))
        session.finish()
        graph = session.take_compressed(0)
        return Compressed(graph, self._matches(number, []), lambda given: session.columns(0, given))

    def _batches(self, number: int, table: pa.Table, empty: bool) -> Batches:
        from acep.engine.batches import Batches, blocks_of

        if empty:
            return Batches(iter(()), self._matches(number, []), fractional=False)
        if self._stream is None:
            self._prepare(table.schema)
        plan = self._plans[number]
        blocks = blocks_of(plan, self._engine, self._batch(table))
        return Batches(blocks, self._matches(number, []), fractional=plan.automaton.costs.scale != 1)


def _bytes(data: Any) -> bytes:
    if not isinstance(data, bytes):
        raise ValueError("bytes")
    return data
