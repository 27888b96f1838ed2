"""Explain why a partition has no match, or no further one: find the nearest miss, and what failed there.

The reference engine runs over the partition, and records the nearest miss (:mod:`acep.explain.recorder`); then the
reason is found why each later event was not bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from acep.display import MOST_TEXT, preformat
from acep.errors import QueryError, printable
from acep.events.batch import Batch
from acep.events.records import Id
from acep.events.times import value_text
from acep.explain.automaton_report import automaton_report, registers_of
from acep.explain.failure_report import Failure, FailureReport, explain_incomplete, explain_no_start, explain_refusal
from acep.explain.key_matches import KeyMatches, events_of_key, ids_of, matches_of_key
from acep.explain.recorder import MissRecorder, NearMiss, Stage, Wanted
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.pattern.tree import Output
from acep.plan.compile import Plan
from acep.reference.engine import MatchNode, bound_events

__all__ = ["Failure", "Furthest", "Key", "check_sources", "furthest", "nearest_key", "nearest_keys"]

MOST_LINES = 10
"""The most events and rows that are listed."""

Key = tuple[Value, ...]
Bindings = dict[str, tuple[Id, ...]]


@dataclass(frozen=True, repr=False)
class Furthest:
    """How far the matching of a partition came.

    ``events``: the number of its events, of which the first ``looked_at`` were looked at; ``matches``: the number of
    matches found, of all but the last ``unmatched`` events, where that would take too long; ``examples``: the bindings
    of the first ones, event ids by variable. ``rows``: the ids of the events that the user named; then ``matches`` and
    ``examples`` are those that bind all of them. ``state`` says in words how far the nearest miss came, ``bound`` has
    the event ids that it bound by variable, ``failed`` the events that could not extend it, the nearest first, and
    ``ended`` says how it ended. ``key``: the partition attributes; ``keys``: of how many keys it came nearest, if none
    was named. ``registers``: of a hand-written automaton, those that the nearest miss holds. ``notes``: event types
    that the stream lacks, and what was not looked at. ``shown``: the events of ``ids``, as lines.

    >>> failure = Failure(9, "b", "b.price < a.price does not hold (b.price = 5, a.price = 4)")
    >>> print(Furthest(3, 0, "b is needed next", {"a": (0, 3)}, (failure,), "the stream ended", {"k": "x"}))
    k=x: 3 events, no match
    furthest: a=0,3; b is needed next
      event 9 is no b: b.price < a.price does not hold (b.price = 5, a.price = 4)
    then the stream ended
    """

    events: int
    matches: int
    state: str
    bound: Bindings
    failed: tuple[Failure, ...]
    ended: str
    key: dict[str, Any] = field(default_factory=dict)
    registers: dict[str, Any] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    examples: tuple[Bindings, ...] = ()
    rows: tuple[Id, ...] = ()
    looked_at: int | None = None
    unmatched: int = 0
    keys: int = 0
    notes: tuple[str, ...] = ()

    @property
    def ids(self) -> list[Id]:
        """Return the ids of the events that are named: those bound, the first that failed, and those of the user."""
        bound = [identity for ids in self.bound.values() for identity in _ends(ids)]
        return [*bound, *(failure.id for failure in self.failed[:MOST_LINES]), *self.rows[:MOST_LINES]]

    def __str__(self) -> str:
        return "\n".join(map(printable, self._lines()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformat(str(self), MOST_TEXT)

    def _lines(self) -> Iterator[str]:
        yield from self._heads()
        if self.state:
            bound = f"{bindings_text(self.bound)}; " if self.bound else ""
            yield f"{'nearest of the rest' if self.matches else 'furthest'}: {bound}{self.state}"
        for failure in self.failed[:MOST_LINES]:
            how = "breaks" if failure.arc.startswith("~") else "is refused by" if failure.arc == "HAVING" else "is no"
            how = "takes no arc" if failure.takes else how
            yield f"  event {failure.id} {how} {failure.arc}: {failure.reason}"
        if len(self.failed) > MOST_LINES:
            yield f"  ... and {len(self.failed) - MOST_LINES:,} more"
        if self.ended:
            yield f"then {self.ended}" if self.state else self.ended
        yield from (f"  {line}" for line in self.shown)

    def _heads(self) -> Iterator[str]:
        """Yield the key, the numbers of events and matches, the matches, and notes."""
        name = ", ".join(f"{column}={value_text(value)}" for column, value in self.key.items()) or "the stream"
        number = {0: "no match", 1: "1 match"}.get(self.matches, f"{self.matches:,} matches")
        if self.rows:
            exactly = all({*chain(*bindings.values())} == {*self.rows} for bindings in self.examples)
            number += f" of row{'' if len(self.rows) == 1 else 's'} {_list_ids(self.rows)}"
            number += "" if exactly else " and others"
        nearest = f", the nearest of {self.keys:,} keys" if self.keys > 1 else ""
        yield f"{name}{nearest}: {self.events:,} event{'' if self.events == 1 else 's'}, {number}"
        if self.unmatched:
            yield f"the last {self.unmatched:,} events were not matched, which would take too long"
        if self.looked_at is not None and self.looked_at < self.events:
            yield f"only the first {self.looked_at:,} events were looked at: more of them would take too long"
            yield "name a key with fewer events, or rows: these are followed alone"
        yield from self.notes
        yield from (f"  match: {bindings_text(bindings)}" for bindings in self.examples)
        if self.matches > len(self.examples):
            yield f"  ... and {self.matches - len(self.examples):,} more"


def bindings_text(bindings: Bindings) -> str:
    """Return bindings as text; of many events of a variable the first and the last ones.

    >>> bindings_text({"a": (0, 3), "b": ("x",)})
    'a=0,3 b=x'
    >>> bindings_text({"a": tuple(range(100))})
    'a=0,1,2,3,4,...,95,96,97,98,99 (100 events)'
    """
    return " ".join(f"{variable}={_ids_text(ids)}" for variable, ids in bindings.items())


def _ids_text(ids: Sequence[Id]) -> str:
    ends = _ends(ids)
    if len(ends) == len(ids):
        return ",".join(map(str, ids))
    begin, end = ends[: MOST_LINES // 2], ends[MOST_LINES // 2 :]
    return f"{','.join(map(str, begin))},...,{','.join(map(str, end))} ({len(ids):,} events)"


def _ends(ids: Sequence[Id]) -> Sequence[Id]:
    """Return the first and the last ids, at most :data:`MOST_LINES`."""
    return ids if len(ids) <= MOST_LINES else (*ids[: MOST_LINES // 2], *ids[-MOST_LINES // 2 :])


def furthest(plan: Plan, batch: Batch, key: Key = (), rows: Sequence[Id] = ()) -> Furthest:
    """Find how far the partition ``key`` of a stream came. ``batch``: the whole stream, or that partition alone.
    ``rows``: the ids of events of the partition in stream order; then it is said why exactly they are no match.

    Raises :class:`QueryError` for a composed query (one over the matches of other queries).

    >>> from acep.events.tables import batch_of, schema_of, to_table
    >>> from acep.pattern.text.sase import parse
    >>> from acep.plan.compile import compile_query
    >>> table = to_table({"ts": [1, 2, 3], "type": ["A", "C", "B"], "x": [5, 0, 4]})
    >>> schema = schema_of(table.schema)
    >>> plan = compile_query(parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9"), schema)
    >>> report = furthest(plan, batch_of(table, schema, plan.columns))
    >>> report.state, report.bound, report.failed[0].reason
    ('b (type B) is needed next', {'a': (0,)}, 'a.x < b.x does not hold (a.x = 5, b.x = 4)')
    """
    check_sources(plan)
    batch, n_events = events_of_key(plan, batch, key)
    matches, numbers = matches_of_key(plan, batch, key, rows), {identity: n for n, identity in enumerate(rows, 1)}
    report = Furthest(
        n_events, matches.number, "", {}, (), "", rows=tuple(rows), unmatched=len(batch) - matches.n_events,
        examples=tuple(dict(match.bindings) for match in matches.examples), looked_at=n_events,
    )  # fmt: skip
    if rows and matches.number:
        return report
    recorder = MissRecorder(plan, Wanted(key, frozenset() if rows else frozenset(matches.ids), numbers))
    followed = [match for match in recorder.run(batch.events) if rows and ids_of(match) == {*rows}]
    if followed and report.unmatched and plan.query.output is Output.ALL:
        return replace(report, matches=1, examples=(dict(followed[0].bindings),))
    return _with_reasons(replace(report, looked_at=recorder.n_seen), recorder, matches)


def check_sources(plan: Plan) -> None:
    """Raise :class:`QueryError` for a composed query."""
    if plan.sources:
        raise QueryError("a query over the matches of others cannot be explained", hint="ask about the inner query")


def nearest_key(plan: Plan, batch: Batch) -> tuple[Key | None, int]:
    """Return the key whose nearest miss came nearest to a match, of those without a match if there are any (``None``:
    no event was near one), and the number of events that were looked at."""
    recorder = MissRecorder(plan, Wanted(None))
    keys, matched = nearest_keys(recorder, batch)
    return (keys[0] if keys else next(iter(matched), None)), recorder.n_looked_at(len(batch))


def nearest_keys(recorder: MissRecorder, batch: Batch) -> tuple[list[Key], set[Key]]:
    """Return the keys whose events came near a match, the nearest first and those without a match before the others,
    and the keys that have matches. The recorder wants misses of each key."""
    matched = {match.key for match in recorder.run(batch.events)}
    misses = recorder.tracing.best
    ranked = [(key in matched, near.rank, index, key) for index, (key, near) in enumerate(misses.items())]
    return [key for *_, key in sorted(ranked)], matched


def _list_ids(ids: Sequence[Id]) -> str:
    more = f", ... ({len(ids):,} in all)" if len(ids) > MOST_LINES else ""
    return f"{', '.join(map(str, ids[:MOST_LINES]))}{more}"


def _with_reasons(report: Furthest, recorder: MissRecorder, matches: KeyMatches) -> Furthest:
    """Add the nearest miss, and what failed there."""
    plan, near = recorder.plan, recorder.tracing.best.get(recorder.wanted.key or ())
    node = None if near is None else near.node
    if near is None and matches.number and not recorder.wanted.rows:
        return replace(report, ended=_nothing_waited(recorder))
    state, failed, ended = _reasons(recorder, near)
    if near is not None and near.stage is Stage.NOT_CHOSEN and node is not None and plan.query.output is not Output.ALL:
        chosen = _chosen_instead(node, matches.chosen)
        ended = "nothing refuses it, but the output may choose others" if report.unmatched else f"{ended}{chosen}"
    bound = (
        {}
        if node is None
        else {var: tuple(e.id for e in events) for var, events in bound_events(node.trail.steps()).items()}
    )
    registers = registers_of(plan, node) if plan.query.graph is not None else {}
    return replace(report, state=state, bound=bound, failed=tuple(failed), ended=ended, registers=registers)


def _nothing_waited(recorder: MissRecorder) -> str:
    """Return what became of the events that are in no match, where none of them was near one."""
    letters = recorder.plan.automaton.letters
    types = None if any(not letter.types for letter in letters) else {t for letter in letters for t in letter.types}
    matched = recorder.wanted.matched
    unmatched = [
        event.id for event, kind in recorder.events if event.id not in matched and (types is None or kind in types)
    ]
    if not unmatched:
        return "every event that the pattern can bind is in a match"
    return f"no partial match waited for the other events that it can bind: {_list_ids(unmatched)}"


def _reasons(recorder: MissRecorder, near: NearMiss | None) -> FailureReport:
    node = None if near is None else near.node
    if recorder.plan.query.graph is not None:
        return automaton_report(recorder, node)
    if near is None or node is None:
        return explain_no_start(recorder)
    is_refused = near.stage not in (Stage.TRIED, Stage.NOT_TRIED)
    return explain_refusal(recorder, near, node) if is_refused else explain_incomplete(recorder, node)


def _chosen_instead(node: MatchNode, matches: Sequence[Found]) -> str:
    """Return the match that the output chose in place of a run, if one overlaps with it."""
    ids = {event.id for event, _ in node.trail.steps()}
    first, last = node.trail.first.ts, node.trail.event.ts
    near = [match for match in matches if match.start <= last and match.end >= first]
    chosen = max(near, key=lambda match: len(ids & ids_of(match)), default=None)
    return "" if chosen is None else f": {bindings_text(dict(chosen.bindings))} overlaps with it"
