"""Why a partition has no match: the partial match that came furthest, and what failed there.

The reference engine runs over the partition while every run that it makes is looked at. The one that lacks the
fewest events is kept; then the events after it are asked, one by one, why they were not bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from acep.automaton.arcs import Arc
from acep.engine.bindings import aggregate, breaks, crossings_of, having_holds
from acep.engine.core import Core, Key, Partition
from acep.engine.found import Events, Id
from acep.engine.program import Move, Registers
from acep.engine.reference import Event, History, MatchNode, Reference, Trail, bound_events
from acep.errors import QueryError
from acep.pattern.evaluation import Compiled, Leaf
from acep.pattern.expressions import Aggregate, Attribute, Length, Value
from acep.pattern.printing import expression_text
from acep.pattern.tree import Output
from acep.plan.compile import Plan

__all__ = ["Failure", "Furthest", "furthest"]


@dataclass(frozen=True)
class Failure:
    """An event that did not do: its id, what for (a variable, ``~b`` or ``HAVING``), and why not."""

    id: Id
    arc: str
    reason: str


@dataclass(frozen=True)
class Furthest:
    """How far a partition came.

    ``events`` it has, ``matches`` that were found. ``state`` says in words where the furthest partial match stands,
    ``bound`` what it has bound; ``failed`` are the events that could not carry it on, ``ended`` what became of it.
    """

    events: int
    matches: int
    state: str
    bound: dict[str, tuple[Id, ...]]
    failed: tuple[Failure, ...]
    ended: str


def furthest(plan: Plan, events: Events, key: tuple[Value, ...] = ()) -> Furthest:
    """How far the partition ``key`` of a stream came. ``events`` are the whole stream, or that partition's.

    Raises :class:`QueryError` for a query over the matches of others.

    >>> from acep.engine.tables import events_of, schema_of, to_table
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
    watching = _Watching(plan, key)
    matches = sum(found.key == key for found in watching.push(events) + watching.finish())
    best = watching.tracing.best
    if best is None:
        told, bound = _nothing_begun(watching), {}
    else:
        told = _unfinished(watching, best) if watching.tracing.need(best) else _refused(watching, best)
        bound = {var: tuple(e.id for e in some) for var, some in bound_events(best.trail.steps()).items()}
    state, failed, ended = told
    return Furthest(len(watching.seen), matches, state, bound, tuple(failed), ended)


Told = tuple[str, list[Failure], str]  # where a partial match stands, what failed there, what became of it


# Watching ---------------------------------------------------------------------------------------


class _Tracing(Reference):
    """The engine, keeping the run that lacks the fewest events; of those that with the most events bound."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.keeps_rows = True
        self.best: MatchNode | None = None
        self.ways = _ways(plan)
        self._rank: tuple[int, int] = (0, 0)
        self._depths: dict[int, tuple[int, Trail]] = {}

    def need(self, node: MatchNode) -> int:
        """The least number of events that a run still has to bind."""
        counts = [count for cost, count in self.ways[node.state] if node.error + cost <= self.budget]
        return min(counts, default=len(self.states))

    def _make(
        self,
        arc: Arc,
        registers: Registers,
        error: int,
        trail: Trail,
        history: History | None,
        made: dict[Any, MatchNode],
    ) -> None:
        super()._make(arc, registers, error, trail, history, made)
        walked = History(arc.crossings, arc.resets, history) if self.keeps_history else history
        node = MatchNode(arc.target, registers, error, trail, walked)
        rank = (self.need(node), -self._depth(trail))
        if self.best is None or rank < self._rank:
            self.best, self._rank = node, rank

    def _depth(self, trail: Trail) -> int:
        if id(trail) not in self._depths:
            before = self._depth(trail.previous) if trail.previous is not None else 0
            self._depths[id(trail)] = (before + 1, trail)  # the trail is kept, so that its id stays its own
        return self._depths[id(trail)][0]


class _Watching(Core):
    """A core that looks at one partition, and remembers its events; others run only where they may overlap with it."""

    def __init__(self, plan: Plan, key: tuple[Value, ...]) -> None:
        super().__init__(plan)
        self.tracing = _Tracing(plan)
        self.key = key
        self.plain = self.engine if plan.strict and plan.query.output is Output.NON_OVERLAP else None
        self.seen: list[tuple[Event, str | None]] = []

    def _feed(self, key: Key, partition: Partition, event: Event, kind: str | None) -> None:
        engine = self.tracing if key == self.key else self.plain
        if engine is self.tracing:
            self.seen.append((event, kind))
        if engine is not None:
            self.engine = engine
            super()._feed(key, partition, event, kind)


def _ways(plan: Plan) -> list[list[tuple[int, int]]]:
    """For each state the ways to an end, as (scaled cost, events): none both dearer and longer than another."""
    budget = plan.automaton.costs.budget
    ways = [[(a.cost, 0) for a in state.accepts if a.cost <= budget] for state in plan.arcs.states]
    changed = True
    while changed:
        changed = False
        for state, arcs in enumerate(plan.arcs.arcs):
            known = set(ways[state])
            for arc in arcs:
                known |= {(cost + arc.weight, count + 1) for cost, count in ways[arc.target]}
            best: list[tuple[int, int]] = []
            for cost, count in sorted(known):
                if cost <= budget and (not best or count < best[-1][1]):
                    best.append((cost, count))
            if best != ways[state]:
                ways[state], changed = best, True
    return ways


# Telling ----------------------------------------------------------------------------------------


def _nothing_begun(watching: _Watching) -> Told:
    moves = watching.tracing.moves[0]
    failed = [f for event, kind in watching.seen for f in _attempts(watching, moves, None, 0, event, kind)]
    types = dict.fromkeys(t for move in moves for t in move.arc.types)
    ended = "no event could begin a match" if failed or not watching.seen else f"there is no event of type {_or(types)}"
    return f"nothing is bound: {_or(dict.fromkeys(m.arc.var for m in moves))} is needed first", failed, ended


def _unfinished(watching: _Watching, best: MatchNode) -> Told:
    """What the events after a partial match lacked."""
    engine = watching.tracing
    moves = [m for m in engine.moves[best.state] if _affordable(engine, m.arc, best.error)]
    needed = dict.fromkeys(m.arc.var for m in moves)
    failed: list[Failure] = []
    ended = "the stream ended"
    for event, kind in watching.seen:
        if event.position <= best.trail.event.position:
            continue
        if engine.expired(best, event.position, event.ts):
            ended = f"the window closed (event {event.id} is too late)"
            break
        between = event.position - best.trail.event.position - 1
        failed += _attempts(watching, moves, best, between, event, kind)
        if engine.strategy.contiguous and not engine._can_pay(best, between + 1):
            ended = f"{engine.strategy.value.replace('_', ' ')}: event {event.id} came in between"
            break
    types = dict.fromkeys(t for move in moves for t in move.arc.types)
    if not failed and types and not engine.strategy.contiguous:
        ended = f"no event of type {_or(types)} came before {ended}"
    return f"{_or(needed)} is needed next", failed, ended


def _attempts(
    watching: _Watching,
    moves: list[Move] | tuple[Move, ...],
    node: MatchNode | None,
    between: int,
    event: Event,
    kind: str | None,
) -> Iterator[Failure]:
    """Why an event of the right type could not be bound."""
    engine, costs = watching.tracing, watching.plan.automaton.costs
    registers, so_far = (node.registers, node.error) if node is not None else ((), 0)
    for move in moves:
        if move.arc.types and kind not in move.arc.types:
            continue
        number = move.failed(registers, event.row)
        error = so_far + engine._cost(move.arc, between)
        if number is not None:
            reason = _not_held(watching.plan, watching.plan.predicates[number], node, move, event)
        elif error + engine._rest(move.arc) > engine.budget:
            reason = f"it would miss {costs.unscaled(error)}, and {costs.unscaled(engine.budget)} may be missing"
        else:
            continue
        yield Failure(event.id, move.arc.var, reason)


def _affordable(engine: _Tracing, arc: Arc, error: int) -> bool:
    return any(error + arc.weight + cost <= engine.budget for cost, _ in engine.ways[arc.target])


def _not_held(plan: Plan, predicate: Compiled, node: MatchNode | None, move: Move, event: Event) -> str:
    steps = node.trail.steps() if node is not None else []
    bound = bound_events([*steps, (event, move.arc.var)])
    column = {name: i for i, name in enumerate(plan.row)}
    shown = []
    for leaf in predicate.leaves:
        value = _value(leaf, bound, move.arc.var, column)
        shown.append(f"{expression_text(leaf)} = {'null' if value is None else value}")
    return f"{expression_text(predicate.expr)} does not hold ({', '.join(shown)})"


def _value(leaf: Leaf, bound: dict[str, list[Event]], var: str, column: dict[str, int]) -> Any:
    """The value of a reference once an event is bound to ``var``."""
    events = bound.get(leaf.var, [])
    match leaf:
        case Length():
            return len(events)
        case Attribute(index=index, name=name):
            at = index - 1 if isinstance(index, int) else -2 if index == "i-1" else -1
            return events[at].row[column[name]] if -len(events) <= at < len(events) else None
        case Aggregate(function=function, scope=scope, name=name):
            if scope == "before" and leaf.var == var:
                events = events[:-1]
            return len(events) if name is None else aggregate(function, [e.row[column[name]] for e in events])


def _refused(watching: _Watching, best: MatchNode) -> Told:
    """Why a complete run is no match: a predicate at its end, a negation, or HAVING."""
    engine, plan = watching.tracing, watching.plan
    steps = best.trail.steps()
    last = steps[-1][0]
    state = "everything is bound"
    for check, holds in zip(plan.program.ending[best.state], engine.ending[best.state], strict=True):
        if not holds(best.registers, ()):
            text = expression_text(plan.predicates[check.predicate].expr)
            return state, [Failure(last.id, steps[-1][1], f"{text} does not hold")], "it is no match"
    failed = []
    trailing = [(len(steps), c) for accept in engine.states[best.state].accepts for c in accept.crossings]
    for j, crossing in [*crossings_of(best.history), *trailing]:
        negation = plan.automaton.negations[crossing.negation]
        for event, kind in watching.seen:
            right = not negation.types or kind in negation.types
            if right and _forbidden(plan, steps, j, event) and breaks(plan, steps, best.history, j, crossing, [event]):
                what = " or ".join(negation.types) or "event"
                failed.append(Failure(event.id, f"~{negation.var}", f"no such {what} may come there"))
    if failed:
        return state, failed, "a negation is broken"
    if plan.having is not None and not having_holds(plan, steps):
        text = expression_text(plan.having.expr)
        return state, [Failure(last.id, "HAVING", f"{text} does not hold")], "HAVING leaves it out"
    return state, [], "it was found" if plan.query.output is Output.ALL else "the output chose between it and others"


def _forbidden(plan: Plan, steps: list[tuple[Event, str]], j: int, event: Event) -> bool:
    """Whether an event lies where a negation before step ``j`` forbids it."""
    first, last, window = steps[0][0], steps[-1][0], plan.window

    def near(a: Event, b: Event) -> bool:
        distance = b.position - a.position if window.counted else b.ts - a.ts
        return window.span is None or distance <= window.span

    if j == 0:
        return event.position < first.position and near(event, last)
    if j == len(steps):
        return event.position > last.position and near(first, event)
    return steps[j - 1][0].position < event.position < steps[j][0].position


def _or(names: dict[str, None]) -> str:
    return " or ".join(names) or "nothing"
