"""Match patterns in one process: in a whole table at once, or in a stream batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from numbers import Integral
from typing import TYPE_CHECKING, Any, Generic, Literal, Unpack, overload

from acep.changing.changing_tables import ChangingTables, tables_of
from acep.errors import QueryError, memory_errors, suggest
from acep.events.input_tables import input_table
from acep.events.table_casts import with_casts
from acep.events.tables import to_table
from acep.matches.answers import Bundles, Count, Points
from acep.matches.compressed import Compressed
from acep.matches.matches import Matches, Report
from acep.matching.one_table import limited_matches, whole_result
from acep.pattern.automata import Automaton, moment_of
from acep.pattern.query_arguments import Queries, is_clause, query_of
from acep.pattern.tree import GraphArc, Query
from acep.runtime.options import MatcherKeywords, MatchKeywords, StreamOptions, ThreadKeywords, lists_options
from acep.tables.table_stream import TableStream

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import TypeVar

    from acep.matches.batches import Batches

    Result = TypeVar("Result", default=Any)
else:
    from typing import TypeVar

    Result = TypeVar("Result")

__all__ = ["OUTPUTS", "Matcher", "match"]

OUTPUTS = ("matches", "points", "bundles", "count", "compressed")

AnyQuery = Query | Automaton | str
Listed = Sequence[AnyQuery]
Named = Mapping[str, AnyQuery]
MatchesOutput = Literal["matches"]
ByName = dict[str, Matches]


@overload
def match(
    events: Any, query: AnyQuery, *, output: MatchesOutput = "matches", **how: Unpack[MatchKeywords]
) -> Matches: ...
@overload
def match(events: Any, query: AnyQuery, *, output: Literal["count"], **how: Unpack[MatchKeywords]) -> Count: ...
@overload
def match(events: Any, query: AnyQuery, *, output: Literal["points"], **how: Unpack[MatchKeywords]) -> Points: ...
@overload
def match(events: Any, query: AnyQuery, *, output: Literal["bundles"], **how: Unpack[MatchKeywords]) -> Bundles: ...
@overload
def match(events: Any, query: AnyQuery, *, output: Literal["exists"], **how: Unpack[MatchKeywords]) -> bool: ...
@overload
def match(
    events: Any, query: AnyQuery, *, output: Literal["compressed"], **how: Unpack[MatchKeywords]
) -> Compressed: ...
@overload
def match(events: Any, query: AnyQuery, *, output: Literal["batches"], **how: Unpack[MatchKeywords]) -> Batches: ...
@overload
def match(events: Any, query: Named, *, output: MatchesOutput = "matches", **how: Unpack[MatchKeywords]) -> ByName: ...
@overload
def match(
    events: Any, query: Listed, *, output: MatchesOutput = "matches", **how: Unpack[MatchKeywords]
) -> list[Matches]: ...
@overload
def match(events: Any, query: Queries, *, output: str = "matches", **how: Unpack[MatchKeywords]) -> Any: ...
@lists_options(ThreadKeywords)
def match(
    events: Any,
    query: Queries,
    *,
    output: str = "matches",
    counts: bool = True,
    limit: int | None = None,
    **options: Unpack[ThreadKeywords],
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
    matches (docs/internals/dominance.md), or none (docs/internals/search.md).

    ``"batches"`` gives the matches as Arrow record batches, made one by one (:class:`acep.matches.batches.Batches`).
    This is the fastest way to read very many, in bounded memory if each match is decided by its last event.
    ``engine``: ``"native"``, ``"reference"``, or ``"auto"``: the native core if it is installed and can run the query
    (one warning if it is not installed). ``policy`` decides which partial matches to keep when the ``budget`` is
    insufficient: a name in :data:`acep.budget.policies.POLICIES`, or an object with the methods of
    :class:`acep.learning.policy.Policy`; ``seed`` seeds its random choices. ``history`` is its initial state: the
    result of :func:`acep.learn`, a file that holds it, or a list of these for several queries.

    ``duplicates``: with ``id`` each id is the name of one event, and a row whose id came before is refused
    (``"refuse"``) or left out (``"drop"``; ``report.duplicates`` counts them).

    ``threads``: how many may match at once, or ``"all"``, one for each core. Partitions are dealt out to them, and the
    queries of a list that have none, so the result is the same and comes in the same order. Where they cannot be used,
    one does all; ``report.threads`` says how many there were, and ``report.fewer_threads`` why not more
    (docs/howto/threads.md).

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
    outputs = (*OUTPUTS, "exists", "batches")
    if not isinstance(output, str) or output not in outputs:
        raise QueryError(f"unknown output {output!r}", hint=suggest(str(output), outputs), code="option_invalid")
    tables = TableStream(query, StreamOptions.from_keywords("match", options, ThreadKeywords))
    if not isinstance(counts, bool) or (not counts and output not in ("points", "bundles")):
        raise QueryError(
            "counts= is True, or for bundles and points False",
            hint='output="bundles", counts=False',
            code="option_invalid",
        )
    if limit is not None and output != "matches":
        raise QueryError("limit= is for matches", hint='output="matches"', code="option_invalid")
    number = None if limit is None else whole_number(limit, "limit", "of matches")
    with memory_errors():
        table, rows = input_table(
            events, tables.query_set, **tables.columns, duplicates=tables.duplicates, threads=tables.threads
        )
        rows.first = tables.duplicates == "drop"
        tables.own_rows = rows
        if number is not None:
            return limited_matches(tables, table, number)
        return whole_result(tables, table, output, counts=counts)


class Matcher(Generic[Result]):
    """A query over a stream that comes batch by batch, in order of time.

    The arguments are those of :func:`match`; for a list or dict of queries the methods return a list or dict. Without
    an id column, event ids count rows from the first batch on.

    The first batch with events settles the types of the columns. ``cast`` gives a column a type as
    :func:`acep.read_events` does, also one that is null in the first batch or comes later.

    With ``lateness`` (a text such as ``"10 s"``, a timedelta, or ticks of an integer ``ts``) events may come in any
    order. They are held until no earlier one can come: until an event is later by more than ``lateness``, or until
    :meth:`advance`. Events that come too late even so are not used: ``report.late`` counts them, :attr:`late` has them.
    ``op`` names a column with +1 for an event and -1 to take back the event with the same id; it needs ``id``.

    With ``duplicates="drop"`` an event that comes again is left out, and ``report.duplicates`` counts it; else it is
    refused. An event is known by its ``id`` until it is final, and with ``seq_gaps`` by its number.

    With ``speculation`` (a time of the same form, or ``"inf"``) events are matched that long before they are final. A
    match may then be taken back: it comes again with ``op`` -1 and the same ``id``. Such matches have no ``bundle``.
    The matches given, less those taken back, are always those of the sorted, corrected events so far; under a budget
    that does not suffice, some of these. Match points up to :attr:`final` do not change any more
    (docs/howto/late_events.md).

    With ``seq_gaps`` the numbers in column ``seq`` count every event of the stream in the order of time, without holes,
    from 0 (``True``) or another number. Events may come in any order, and an event is final as soon as all smaller
    numbers have come. Nothing is given across a gap, unless ``lateness`` is given too and the time has passed by it.
    :attr:`gap` is the number that is waited for.

    ``threads`` share batches of some thousand events and more. A snapshot may be restored with another number of them.

    With ``dynamic`` the arcs of an :class:`acep.Automaton` may come and go while the stream runs (:meth:`change`), and
    a query may be replaced by another version (:meth:`replace`).

    The query may also be a MATCH_RECOGNIZE clause of SQL, or a SELECT of columns of one
    (docs/reference/sql.md#streams).

    >>> import acep
    >>> matcher = Matcher(acep.regex("ab", within=5))
    >>> len(matcher.push({"ts": [1], "type": ["a"]})), len(matcher.push({"ts": [2], "type": ["b"]}))
    (0, 1)
    >>> matcher = Matcher(acep.regex("ab", within=5), lateness=3)
    >>> len(matcher.push({"ts": [2, 1], "type": ["b", "a"]})), len(matcher.push({"ts": [9], "type": ["b"]}))
    (0, 1)
    >>> matcher = Matcher(acep.regex("ab", within=5), seq="n", seq_gaps=True)
    >>> len(matcher.push({"ts": [2], "type": ["b"], "n": [1]})), matcher.gap
    (0, 0)
    >>> len(matcher.push({"ts": [1], "type": ["a"], "n": [0]})), matcher.gap
    (1, None)
    >>> matcher = Matcher("PATTERN SEQ(a p, b q) WHERE q.x > 5 WITHIN 9", cast={"x": "int"})
    >>> len(matcher.push([{"ts": 1, "type": "a"}])), len(matcher.push([{"ts": 2, "type": "b", "x": 7}]))
    (0, 1)
    >>> matcher = Matcher("ORDER BY ts MEASURES count(*) AS n PATTERN (A+) DEFINE A AS x > 1")
    >>> matcher.push({"ts": [1, 2], "x": [5, 6]}), matcher.push({"ts": [3], "x": [0]})
    ({'n': []}, {'n': [2]})
    """

    @lists_options(MatcherKeywords)
    def __new__(cls, query: Any, **options: Any) -> Any:
        """Return a matcher of a query; of a clause of SQL a :class:`acep.matching.clause_matcher.ClauseMatcher`."""
        if cls is Matcher and is_clause(query):
            from acep.matching.clause_matcher import ClauseMatcher  # few matchers have a clause

            return ClauseMatcher(query, **options)
        return object.__new__(cls)

    @overload
    def __init__(self: Matcher[Matches], query: AnyQuery, **options: Unpack[MatcherKeywords]) -> None: ...
    @overload
    def __init__(self: Matcher[ByName], query: Named, **options: Unpack[MatcherKeywords]) -> None: ...
    @overload
    def __init__(self: Matcher[list[Matches]], query: Listed, **options: Unpack[MatcherKeywords]) -> None: ...
    @lists_options(MatcherKeywords)
    def __init__(self, query: Queries, **options: Unpack[MatcherKeywords]) -> None:
        stream_options = StreamOptions.from_keywords("Matcher.__init__", options, MatcherKeywords)
        self._tables = tables_of(query, stream_options)
        self.query = self._tables.query_set.arrange(self._tables.query_set.queries)

    @property
    def _changing(self) -> ChangingTables:
        if not isinstance(self._tables, ChangingTables):
            raise QueryError(
                "this Matcher's queries do not change", hint="Matcher(query, dynamic=True)", code="query_change"
            )
        return self._tables

    @property
    def report(self) -> Report:
        """Return the report of the work done so far, for all queries together."""
        return self._tables.report

    def push(self, batch: Any) -> Result:
        """Feed a batch of events; return the matches that are certain now.

        Raises :class:`DataError`, with nothing of the batch taken in, if its events are older than earlier ones or its
        columns do not fit those of the first batch.
        """
        tables = self._tables
        started = (time.thread_time(), time.perf_counter()) if tables.is_paced else None
        result: Result = tables.give_matches(tables.push(with_casts(to_table(batch), tables.casts)))
        if started is not None and (source := tables.stream or tables.revised) is not None:
            source.record_seconds(time.thread_time() - started[0], time.perf_counter() - started[1])
        return result

    def advance(self, ts: Any, key: Mapping[str, Any] | None = None, type: str | Iterable[str] | None = None) -> Result:
        """Declare that no event at or before the time ``ts`` will come; return the matches that are certain now.

        With ``key``, values of partition attributes by name, this is said of the events that have these values; with
        ``type``, of the events of one type, or of each of several. Events that come even so are late. Such a
        punctuation frees memory under speculation; without one it can make matches certain earlier
        (docs/howto/late_events.md). :attr:`final` stays as it is.

        ``ts`` has the form of the time column. Raises :class:`QueryError` without ``lateness`` and ``seq_gaps``, and
        with ``key`` or ``type`` also before the first events, with ``seq_gaps``, and for a column that is no partition
        attribute of a query; :class:`DataError` for a time of another form, and for a value that does not fit.

        >>> import acep
        >>> matcher = Matcher(acep.regex("ab", within=5), lateness=100)
        >>> len(matcher.push({"ts": [2, 1], "type": ["b", "a"]})), len(matcher.advance(2))
        (0, 1)
        >>> query = "PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 5"
        >>> matcher = Matcher(query, lateness="inf", speculation="inf")
        >>> len(matcher.push({"ts": [1, 2, 1], "type": list("aba"), "k": list("xxy")})), matcher.held
        (1, 3)
        >>> len(matcher.advance(10, key={"k": "x"})), len(matcher.push({"ts": [3], "type": ["b"], "k": ["x"]}))
        (0, 0)
        >>> matcher.report.late
        1
        """
        result: Result = self._tables.give_matches(self._tables.advance(ts, key, type))
        return result

    def change(
        self,
        add: Iterable[GraphArc] = (),
        remove: Iterable[GraphArc] = (),
        *,
        final: str | Iterable[str] = (),
        since: int | str | date | None = None,
        query: str = "",
    ) -> int:
        """Add arcs to an automaton and remove others from now on; return the number of partial matches that go on.

        "Now" is the latest time of an event so far: events up to that time take the arcs as they were, also if they
        come later, and events after it the new ones (AFA 2010, section 2.3). Arcs are removed as they were added, or as
        :func:`acep.arc` makes them again. Arcs may lead to new states; ``final`` names those of them that are final.
        ``query`` is the name of the automaton if there are several. Registers stay as they are.

        With ``since`` the change is declared ahead: events before that time, which is yet to come, take the arcs as
        they were. An arc that is removed is the first that was added of those valid then, else the first that begins
        later. On the native core arcs that were there before are not compiled again.

        Raises :class:`QueryError`, and changes nothing, without ``dynamic``, for an arc that is not there, for one that
        begins before the change, or for a ``since`` that is not after all events that have come.

        >>> import acep
        >>> up = acep.arc("begin", "end", "e.x > 1")
        >>> matcher = Matcher(acep.Automaton([up], final="end"), type=None, dynamic=True)
        >>> len(matcher.push({"ts": [1, 2], "x": [5, 0]}))
        1
        >>> matcher.change(add=[acep.arc("begin", "end", "e.x < 1")], remove=[up])
        0
        >>> [m.start for m in matcher.push({"ts": [3, 4], "x": [5, 0]})]
        [4]
        >>> matcher.change(add=[up], since=7)
        1
        >>> [m.start for m in matcher.push({"ts": [6, 7], "x": [5, 5]})]
        [7]
        """
        names = (final,) if isinstance(final, str) else tuple(final)
        moment = None if since is None else moment_of(since, "since")
        return self._changing.change(query, tuple(add), tuple(remove), names, moment)

    def replace(self, new: Query | Automaton | str, *, query: str = "") -> int:
        """Replace a query by another version from now on; return the number of partial matches that go on.

        "Now" is as in :meth:`change`. Partial matches of an automaton go on in the states of the same name. Those of a
        query in SASE+ go on in the states that both versions share: their events came along the same variables, types,
        predicates and negations, and they keep the same values. A negation is of the version that binds the event after
        it, or at the end the one before it. ``query`` is the name of the query if there are several.

        Raises :class:`QueryError`, and changes nothing, without ``dynamic``; if two automata differ in more than arcs
        and new states; if two queries differ in more than pattern and conditions, or a query has FROM.

        >>> import acep
        >>> matcher = Matcher("PATTERN SEQ(A a, B b, C c) WITHIN 9", dynamic=True)
        >>> len(matcher.push({"ts": [1, 2], "type": ["A", "B"]}))
        0
        >>> matcher.replace("PATTERN SEQ(A a, B b, D d) WITHIN 9")
        2
        >>> matcher.push({"ts": [3, 4], "type": ["C", "D"]})
        1 match in 1 bundle
          1..4  a=0  b=1  d=3
        """
        return self._changing.replace(query, query_of(new))

    def revise(self, new: Query | Automaton | str, since: Any, *, query: str = "") -> Result:
        """Replace a query by another version from a time on that events may have passed; return the matches that come
        and go.

        ``since`` is the first time of an event that the new version holds for, in the form of the time column. It
        reaches back as far as events are not final: ``lateness`` is the bound, and ``speculation`` is needed. The
        result is that of a stream in which the query was replaced at that time: versions that began later are given up.
        What may change is as for :meth:`replace`.

        Raises :class:`QueryError`, and changes nothing, as :meth:`replace` does, and for a time that is final or
        yet to come.

        >>> import acep
        >>> options = {"lateness": 10, "speculation": "inf", "dynamic": True}
        >>> matcher = Matcher("PATTERN SEQ(A a, B b, C c) WITHIN 9", **options)
        >>> [(m.op, m.end) for m in matcher.push({"ts": [1, 2, 3, 4], "type": ["A", "B", "C", "D"]})]
        [(1, 3)]
        >>> [(m.op, m.end) for m in matcher.revise("PATTERN SEQ(A a, B b, D d) WITHIN 9", since=3)]
        [(-1, 3), (1, 4)]
        """
        result: Result = self._tables.give_matches(self._changing.revise(query, query_of(new), since))
        return result

    @property
    def final(self) -> Any:
        """Return the time up to which no match point changes any more, in the form of the time column; ``None``: it is
        not known. It is known with ``lateness`` or ``seq_gaps``; without a speculation all matches given are final.

        >>> import acep
        >>> matcher = Matcher(acep.regex("ab", within=5), lateness=3, speculation="inf")
        >>> [(m.op, m.end) for m in matcher.push({"ts": [1, 9], "type": ["a", "x"]})], matcher.final
        ([], 5)
        >>> [(m.op, m.end) for m in matcher.push({"ts": [6], "type": ["b"]})], matcher.final
        ([(1, 6)], 5)
        """
        return self._tables.final

    @property
    def held(self) -> int | None:
        """Return the number of events that are kept because others may come before them; ``None`` without
        ``lateness`` and ``seq_gaps``, or before a push."""
        return self._tables.held

    @property
    def gap(self) -> int | None:
        """Return the smallest number of ``seq`` that has not come while events with greater ones are held; ``None``:
        no event is held, or there is no ``seq_gaps``."""
        return None if self._tables.arrivals is None else self._tables.arrivals.gap

    @property
    def late(self) -> pa.Table | None:
        """Return the events of the last push that came too late; ``None`` without ``lateness`` and
        ``seq_gaps``, or before a push."""
        return None if self._tables.arrivals is None else self._tables.arrivals.late

    def blocks(self, batch: Any) -> Iterator[Result]:
        """Feed a batch like :meth:`push`, but yield the matches in blocks of some 10,000, in bounded memory. Blocks are
        in the order of match points. If very many matches share one match point, their order within it is not the
        output order, but the same each time.

        Read all blocks before the next call. The events are taken in only when the first block is read.

        >>> import acep
        >>> matcher = Matcher(acep.regex("ab", within=5))
        >>> [len(some) for some in matcher.blocks({"ts": [1, 2, 3], "type": list("aab")})]
        [2]
        """
        tables, table = self._tables, with_casts(to_table(batch), self._tables.casts)
        started = time.perf_counter()
        for block in tables.blocks(table):
            tables.seconds += time.perf_counter() - started
            yield tables.give_matches(block)
            started = time.perf_counter()
        tables.seconds += time.perf_counter() - started

    def finish_blocks(self) -> Iterator[Result]:
        """Finish the stream like :meth:`finish`, but yield the matches in blocks."""
        for block in self._tables.finish_blocks():
            yield self._tables.give_matches(block)

    def finish(self) -> Result:
        """End the stream; return the matches that waited for its end. Warns (:class:`acep.DataWarning`) of event types
        of the query that never occurred, and of partition attributes that were always null."""
        result: Result = self._tables.give_matches(self._tables.end())
        return result

    def partial_matches(self, most: int = 1000, *, apart: bool = False) -> Any:
        """Return the partial matches that may still become matches: a :class:`PartialMatches`, or for a list or dict of
        queries a list or dict of these. Nothing changes by it.

        At most ``most`` of each query are listed, those that were extended last; ``total`` is the number of all. One
        partial match of the native core may stand for many ``sequences`` of bound events, and is then listed with one
        of those that began last. ``apart``: each sequence is listed (docs/howto/partial_matches.md).

        Raises :class:`QueryError` for a ``most`` that is no number.

        >>> import acep
        >>> matcher = Matcher("PATTERN SEQ(A a, B b, C c) WITHIN 9")
        >>> len(matcher.push({"ts": [1, 2, 3], "type": ["A", "A", "B"]}))
        0
        >>> matcher.partial_matches(apart=True)
        4 partial matches
          state 1 (a)  1..1  a=0  until=10
          state 1 (a)  2..2  a=1  until=11
          state 2 (b)  1..3  a=0 b=2  until=10
          state 2 (b)  2..3  a=1 b=2  until=11
        >>> matcher.partial_matches()[-1].sequences
        2
        """
        return self._tables.partial_matches(whole_number(most, "most", "of partial matches"), apart=bool(apart))

    def snapshot(self) -> bytes:
        """Return the state so far, as bytes for :meth:`restore`."""
        return self._tables.snapshot()

    def restore(self, data: bytes) -> None:
        """Continue from a snapshot of a Matcher with the same query, column names and casts.

        Raises :class:`SnapshotError`, and keeps the present state, if the bytes are damaged or of another query.
        """
        self._tables = self._tables.restore(data)


def whole_number(number: Any, name: str, what: str) -> int:
    """Return an argument that is a number of results. Raises :class:`QueryError` for another one."""
    if isinstance(number, bool) or not isinstance(number, Integral) or int(number) < 0:
        hint = "a whole number, or None for all" if name == "limit" else "a whole number"
        raise QueryError(f"{name}={number!r} is not a number {what}", hint=hint, code="option_invalid")
    return int(number)
