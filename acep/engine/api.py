"""Matching in one process: a whole table at once, or a stream batch by batch."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from acep.budget import Budget, tolerant
from acep.engine.batches import Batches, blocks_of
from acep.engine.compiled import chosen, warn_if_missing
from acep.engine.compressed import Compressed
from acep.engine.found import Counts, Found
from acep.engine.grouping import groups_of_counts
from acep.engine.matches import Matches, Report, bundles_of, points_of
from acep.engine.sealing import seal, unseal
from acep.engine.stream import Stream, together
from acep.engine.tables import batch_of, schema_of, to_table
from acep.errors import DataError, EngineError, QueryError, SnapshotError, suggest
from acep.pattern.check import checked_query
from acep.pattern.printing import canonical
from acep.pattern.tree import Query
from acep.plan.choice import COUNTED
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Schema

__all__ = ["ENGINES", "OUTPUTS", "Matcher", "match"]

OUTPUTS = ("matches", "points", "bundles", "count", "compressed")
ENGINES = ("auto", "native", "reference")


def match(
    events: Any,
    query: Query,
    *,
    budget: Budget | None = None,
    ts: str = "ts",
    type: str | None = "type",
    seq: str | None = None,
    id: str | None = None,
    unit: str | None = None,
    output: str = "matches",
    engine: str = "auto",
) -> Any:
    """Find a pattern in a table of events.

    ``events``: a pandas or polars DataFrame, a pyarrow Table, or whatever :func:`acep.engine.tables.to_table`
    reads; it is sorted by (``ts``, ``seq``, row) first. ``ts``, ``type``, ``seq`` and ``id`` name its columns;
    ``unit`` is the length of a tick of an integer ``ts``. ``output``: ``"matches"`` (a :class:`Matches`), ``"points"``
    (the list of :meth:`Matches.points`), ``"bundles"`` (that of :meth:`Matches.bundles`), ``"count"`` (an int), or
    ``"compressed"`` (a :class:`Compressed`). Where no predicate ties events together, all but the first are found
    without making a match. With ``"batches"`` the matches come as Arrow record batches that are made one by one
    (:class:`acep.engine.batches.Batches`): the fastest way to read very many of them, in bounded memory where each
    match is decided by its last event. ``engine``: ``"native"`` or ``"reference"``, or ``"auto"``, which takes the
    native core where it is there and can run the query (where it is not there, a warning says so once).

    Raises :class:`QueryError`, :class:`DataError` or :class:`EngineError`.

    >>> import acep
    >>> rows = {"ts": [1, 2, 3, 4, 5], "type": list("cdaeb")}
    >>> [(m.bindings, m.error) for m in acep.match(rows, acep.regex("a(b|c)db", within=5, errors=1))]
    [({'b': (4,), 'c': (0,), 'd': (1,)}, 1)]
    """
    known = (*OUTPUTS, "batches")
    if not isinstance(output, str) or output not in known:
        raise QueryError(f"unknown output {output!r}", hint=suggest(str(output), known))
    matcher = Matcher(query, budget=budget, ts=ts, type=type, seq=seq, id=id, unit=unit, engine=engine)
    table = to_table(events)
    if output == "batches":
        return matcher._batches(table)
    if output != "matches" and (summary := matcher._summary(table, output)) is not None:
        return summary
    found = together([matcher._push(table), matcher._end()])
    matches = matcher._matches(found)
    if output == "compressed":
        return Compressed(None, matches)
    if output == "points":
        return matches.points()
    if output == "bundles":
        return matches.bundles()
    return matches.count() if output == "count" else matches


class Matcher:
    """A query over a stream that comes batch by batch, in order of time.

    The arguments are those of :func:`match`. Event ids, where no column is named, count rows from the first batch on.

    >>> import acep
    >>> matcher = Matcher(acep.regex("ab", within=5))
    >>> len(matcher.push({"ts": [1], "type": ["a"]})), len(matcher.push({"ts": [2], "type": ["b"]}))
    (0, 1)
    """

    def __init__(
        self,
        query: Query,
        *,
        budget: Budget | None = None,
        ts: str = "ts",
        type: str | None = "type",
        seq: str | None = None,
        id: str | None = None,
        unit: str | None = None,
        engine: str = "auto",
    ) -> None:
        checked_query(query)
        if not isinstance(engine, str) or engine not in ENGINES:
            raise EngineError(f"there is no engine {engine!r}", hint=f"one of {', '.join(ENGINES)}")
        warn_if_missing(engine)
        self._engine = engine
        self.query = tolerant(query, budget)
        self._names: dict[str, Any] = {"ts": ts, "type": type, "seq": seq, "id": id, "unit": unit}
        self._arrow: pa.Schema | None = None
        self._schema: Schema | None = None
        self._plan: Plan | None = None
        self._stream: Stream | None = None
        self._rows = 0
        self._seconds = 0.0
        self._finished = False

    @property
    def report(self) -> Report:
        """The work done so far."""
        counts = self._stream.counts if self._stream else Counts()
        return Report.of(counts, self._seconds)

    def push(self, batch: Any) -> Matches:
        """Feed events; the matches that are certain now.

        Raises :class:`DataError`, with nothing of the batch taken in, if it is older than what has been seen,
        or its columns do not fit those of the first batch.
        """
        return self._matches(self._push(to_table(batch)))

    def finish(self) -> Matches:
        """The stream has ended: the matches that waited for that."""
        return self._matches(self._end())

    def snapshot(self) -> bytes:
        """The state so far, as bytes for :meth:`restore`."""
        payload = {
            "arrow": _text(self._arrow.serialize().to_pybytes()) if self._arrow is not None else None,
            "stream": _text(self._stream.snapshot()) if self._stream else None,
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
        other._names = self._names
        try:
            other._rows = int(payload["rows"])
            other._finished = payload["finished"] is True
            if payload["arrow"] is not None:
                other._prepare(pa.ipc.read_schema(pa.py_buffer(_bytes(payload["arrow"]))))
                assert other._plan is not None
                other._stream = Stream.restore([other._plan], _bytes(payload["stream"]), self._engine)
        except SnapshotError:
            raise
        except (KeyError, TypeError, ValueError, binascii.Error, pa.ArrowException, OSError):
            raise SnapshotError("the snapshot does not hold a state of this query") from None
        self.__dict__.update(other.__dict__)

    def _fingerprint(self) -> str:
        return canonical(self.query) + repr(sorted(self._names.items()))

    def _prepare(self, arrow: pa.Schema) -> None:
        self._schema = schema_of(arrow, **self._names)
        self._plan = compile_query(self.query, self._schema)
        self._stream = Stream([self._plan], self._engine)
        self._arrow = pa.schema([f.remove_metadata() for f in arrow])

    def _push(self, table: pa.Table) -> Sequence[Found]:
        started = time.perf_counter()
        if self._finished:
            raise DataError("the stream has been finished: no more events can be pushed", hint="make a new Matcher")
        if not table.num_columns and not table.num_rows:
            return []
        if self._stream is None:
            self._prepare(table.schema)
        assert self._stream is not None
        assert self._schema is not None
        assert self._plan is not None
        if schema_of(table.schema, **self._names).instants != self._schema.instants:
            raise DataError(
                f"column `{self._schema.ts}` is now {table.schema.field(self._schema.ts).type}, as it was not before"
            )
        batch = batch_of(table, self._schema, self._plan.columns, base=self._rows)
        (found,) = self._stream.push(batch)
        self._rows += table.num_rows
        self._seconds += time.perf_counter() - started
        return found

    def _summary(self, table: pa.Table, output: str) -> Any:
        """What is asked of a whole table, where no match need be made for it; else ``None``."""
        if not table.num_columns and not table.num_rows:
            return None
        self._prepare(table.schema)
        assert self._plan is not None
        assert self._schema is not None
        choice = chosen(self._plan, self._engine, output)
        if choice.alone not in (*COUNTED, "compressed"):
            return None
        from acep.engine.native_session import NativeSession

        session = NativeSession([self._plan], [choice.engine])
        session.push(batch_of(table, self._schema, self._plan.columns))
        session.finish()
        if output == "count":
            return session.total(0)
        if output == "compressed":
            return Compressed(session.take_compressed(0), self._matches([]), lambda given: session.columns(0, given))
        counted = session.take_counts(0, last=True)
        if output == "points":
            return points_of(groups_of_counts(counted, "end"), self._plan.keys, self._schema)
        return bundles_of(groups_of_counts(counted, "bundle"), self._plan.keys, self._schema)

    def _batches(self, table: pa.Table) -> Batches:
        if not table.num_columns and not table.num_rows:
            return Batches(iter(()), self._matches([]), fractional=False)
        self._prepare(table.schema)
        plan, schema = self._plan, self._schema
        assert plan is not None
        assert schema is not None
        batch = batch_of(table, schema, plan.columns)
        blocks = blocks_of(plan, self._engine, batch)
        return Batches(blocks, self._matches([]), fractional=plan.automaton.costs.scale != 1)

    def _end(self) -> Sequence[Found]:
        started = time.perf_counter()
        found: Sequence[Found] = []
        if self._stream is not None and not self._finished:
            (found,) = self._stream.finish()
        self._finished = True
        self._seconds += time.perf_counter() - started
        return found

    def _matches(self, found: Sequence[Found]) -> Matches:
        plan, schema = self._plan, self._schema or Schema(())
        return Matches.from_found(
            found,
            schema=schema,
            keys=plan.keys if plan else (),
            returns=tuple(n for n, _ in plan.returns) if plan else (),
            report=self.report,
            window=plan.window if plan else None,
            return_kinds=plan.return_kinds if plan else (),
        )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: Any) -> bytes:
    if not isinstance(text, str):
        raise ValueError("bytes")
    return base64.b64decode(text, validate=True)
