"""Explain why a partition has no match: find the furthest partial match, and what failed there.

The reference engine runs over the partition, and every partial match that it makes is examined. Those that lack the
fewest events are kept; then the reason is found why each later event was not bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from acep.display import MOST_TEXT, preformatted
from acep.errors import QueryError
from acep.events.records import Events, Id
from acep.events.times import value_text
from acep.explain.automaton_report import automaton_report, registers_of
from acep.explain.failure_report import Failure, FailureReport, nothing_begun, refused, unfinished
from acep.explain.recorder import Watching
from acep.pattern.expressions import Value
from acep.plan.compile import Plan
from acep.reference.engine import MatchNode, bound_events

__all__ = ["Failure", "Furthest", "furthest"]

_MOST = 10


@dataclass(frozen=True, repr=False)
class Furthest:
    """How far the matching of a partition came.

    ``events``: the number of its events; ``matches``: the number of matches found. ``state`` says in words how far
    the furthest partial match came, ``bound`` has the event ids that it bound by variable, ``failed`` the events that
    could not extend it, and ``ended`` says how it ended. ``key``: the partition attributes. ``registers``: of a
    hand-written automaton, those that the furthest partial match holds. ``shown``: the events of ``ids``, as lines.

    >>> one = Failure(9, "b", "b.price < a.price does not hold (b.price = 5, a.price = 4)")
    >>> print(Furthest(3, 0, "b is needed next", {"a": (0, 3)}, (one,), "the stream ended", {"k": "x"}))
    k=x: 3 events, no match
    furthest: a=0,3; b is needed next
      event 9 is no b: b.price < a.price does not hold (b.price = 5, a.price = 4)
    then the stream ended
    """

    events: int
    matches: int
    state: str
    bound: dict[str, tuple[Id, ...]]
    failed: tuple[Failure, ...]
    ended: str
    key: dict[str, Any] = field(default_factory=dict)
    registers: dict[str, Any] = field(default_factory=dict)
    shown: tuple[str, ...] = ()

    @property
    def ids(self) -> list[Id]:
        """Return the ids of the events that are named: those bound, and the first that failed."""
        return [*(one for ids in self.bound.values() for one in ids), *(one.id for one in self.failed[:_MOST])]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformatted(str(self), MOST_TEXT)

    def _lines(self) -> Iterator[str]:
        name = ", ".join(f"{column}={value_text(value)}" for column, value in self.key.items()) or "the stream"
        number = {0: "no match", 1: "1 match"}.get(self.matches, f"{self.matches:,} matches")
        yield f"{name}: {self.events:,} event{'' if self.events == 1 else 's'}, {number}"
        if self.matches:
            return
        bound = " ".join(f"{var}={','.join(map(str, ids))}" for var, ids in self.bound.items())
        yield f"furthest: {bound + '; ' if bound else ''}{self.state}"
        for failure in self.failed[:_MOST]:
            how = "breaks" if failure.arc.startswith("~") else "is refused by" if failure.arc == "HAVING" else "is no"
            how = "takes no arc" if failure.takes else how
            yield f"  event {failure.id} {how} {failure.arc}: {failure.reason}"
        if len(self.failed) > _MOST:
            yield f"  ... and {len(self.failed) - _MOST:,} more"
        yield f"then {self.ended}"
        yield from (f"  {line}" for line in self.shown)


def furthest(plan: Plan, events: Events, key: tuple[Value, ...] = ()) -> Furthest:
    """Find how far the partition ``key`` of a stream came. ``events``: the whole stream, or that partition alone.

    Raises :class:`QueryError` for a composed query (one over the matches of other queries).

    >>> from acep.events.tables import events_of, schema_of, to_table
    >>> from acep.pattern.sase import parse
    >>> from acep.plan.compile import compile_query
    >>> table = to_table({"ts": [1, 2, 3], "type": ["A", "C", "B"], "x": [5, 0, 4]})
    >>> schema = schema_of(table.schema)
    >>> plan = compile_query(parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9"), schema)
    >>> found = furthest(plan, events_of(table, schema, plan.columns))
    >>> found.state, found.bound, found.failed[0].reason
    ('b is needed next', {'a': (0,)}, 'a.x < b.x does not hold (a.x = 5, b.x = 4)')
    """
    if plan.sources:
        raise QueryError("a query over the matches of others cannot be explained", hint="ask about the inner query")
    watching = Watching(plan, key)
    matches = sum(found.key == key for found in watching.push(events) + watching.finish())
    graph, best = plan.query.graph is not None, None
    told = automaton_report(watching, None) if graph else nothing_begun(watching)
    bound = dict[str, tuple[Id, ...]]()
    if watching.tracing.best:
        # Of equally far partial matches, prefer one that an event failed to extend: it explains more.
        tellings = [(_reported(watching, node), node) for node in watching.tracing.best]
        told, best = min(tellings, key=lambda telling: not telling[0][1])
        bound = {var: tuple(e.id for e in some) for var, some in bound_events(best.trail.steps()).items()}
    state, failed, ended = told
    registers = registers_of(plan, best) if graph else {}
    return Furthest(len(watching.seen), matches, state, bound, tuple(failed), ended, registers=registers)


def _reported(watching: Watching, node: MatchNode) -> FailureReport:
    if watching.plan.query.graph is not None:
        return automaton_report(watching, node)
    return unfinished(watching, node) if watching.tracing.need(node) else refused(watching, node)
