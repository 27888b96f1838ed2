"""Report on the furthest partial match: what it needed, which events failed it, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from acep.automaton.arcs import Arc
from acep.events.records import Id
from acep.events.tables import key_to_input, time_types
from acep.explain.recorder import Tracing, Watching
from acep.matches.json_records import plain
from acep.pattern import expressions as ex
from acep.pattern.evaluation import Compiled
from acep.pattern.printing import expression_text
from acep.pattern.tree import Output
from acep.pattern.walk import steps_back
from acep.plan.compile import Plan
from acep.reference.bindings import aggregate, breaks, crossings_of, having_holds
from acep.reference.engine import Event, MatchNode, bound_events
from acep.reference.program import Move

__all__ = ["Failure", "FailureReport", "input_value", "nothing_begun", "refused", "unfinished"]


@dataclass(frozen=True)
class Failure:
    """An event that did not fit: its id, the use tried (a variable, ``~b`` or ``HAVING``), and the reason. ``takes``:
    ``arc`` is an arc of a hand-written automaton, such as ``begin -> end``."""

    id: Id
    arc: str
    reason: str
    takes: bool = False


FailureReport = tuple[str, list[Failure], str]
"""How far a partial match came, the events that failed it, and how it ended."""


def nothing_begun(watching: Watching) -> FailureReport:
    """Explain why no event began a match."""
    moves = watching.tracing.moves[0]
    failed = [f for event, kind in watching.seen for f in _attempts(watching, moves, None, event, kind)]
    types = dict.fromkeys(t for move in moves for t in move.arc.types)
    ended = "no event could begin a match" if failed or not watching.seen else f"there is no event of type {_or(types)}"
    return f"nothing is bound: {_or(dict.fromkeys(m.arc.var for m in moves))} is needed first", failed, ended


def unfinished(watching: Watching, best: MatchNode) -> FailureReport:
    """Explain why the events after a partial match did not complete it."""
    engine = watching.tracing
    need = engine.need(best)
    moves = [m for m in engine.moves[best.state] if _affordable(engine, m.arc, best.error)]
    needed = dict.fromkeys(m.arc.var for m in moves)
    failed: list[Failure] = []
    taken: set[str | None] = set()
    ended = "the stream ended"
    for event, kind in watching.seen:
        if event.position <= best.trail.event.position:
            continue
        if engine.expired(best, event.position, event.ts):
            ended = f"the window closed (event {event.id} is too late)"
            break
        failed += _attempts(watching, moves, best, event, kind)
        waits, bound = _next(watching, best, event, kind)
        taken |= {kind} if bound else set()
        if waits:
            continue
        if engine.strategy.contiguous:
            ended = f"{engine.strategy.value.replace('_', ' ')}: event {event.id} came in between"
        else:
            ended = f"event {event.id} had to be bound to {_or(bound)}, which led no further: skip till next match"
        return f"{_or(needed)} is needed next", failed, ended
    # Events for arcs that lead no nearer to an end are not missing.
    onward = [m for m in moves if engine.nearest(m.arc.target, best.error + m.arc.weight) < need]
    types = dict.fromkeys(t for move in onward for t in move.arc.types if t not in taken)
    if not failed and types and not engine.strategy.contiguous:
        ended = f"no event of type {_or(types)} came before {ended}"
    return f"{_or(needed)} is needed next", failed, ended


def _next(watching: Watching, node: MatchNode, event: Event, kind: str | None) -> tuple[bool, dict[str, None]]:
    """Return whether a partial match may wait on after an event, and the variables to which it binds the event."""
    waits, made = watching.next_of(node, event, kind)
    return waits, dict.fromkeys(n.trail.var for n in made)


def _attempts(
    watching: Watching, moves: Sequence[Move], node: MatchNode | None, event: Event, kind: str | None
) -> Iterator[Failure]:
    """Yield the reasons why an event of the right type could not be bound."""
    engine, costs = watching.tracing, watching.plan.automaton.costs
    registers, so_far = (node.registers, node.error) if node is not None else ((), 0)
    between = event.position - node.trail.event.position - 1 if node is not None else 0
    for move in moves:
        if move.arc.types and kind not in move.arc.types:
            continue
        number = move.failed(registers, event.row)
        error = so_far + engine.cost(move.arc, between)
        if number is not None:
            reason = _not_held(watching.plan, watching.plan.predicates[number], node, move, event)
        elif engine.strategy.contiguous and costs.of_gap(move.arc.gaps, between) is None:
            reason = _surplus(between, max(letters for _, letters in move.arc.gaps))
        elif error + engine.rest(move.arc) > engine.budget:
            reason = f"it would miss {costs.unscaled(error)}, and {costs.unscaled(engine.budget)} may be missing"
        else:
            continue
        yield Failure(event.id, move.arc.var, reason)


def _surplus(between: int, places: int) -> str:
    """Return what is said of so many events ``between``, of which as many may come as may be missing: ``places``.

    >>> _surplus(2, 1)
    '1 of 2 events in between is surplus: 1 may be missing there'
    >>> _surplus(1, 0)
    'the event in between is surplus: nothing is missing there'
    """
    if places == 0:
        what = "the event in between is" if between == 1 else f"the {between} events in between are"
        return f"{what} surplus: nothing is missing there"
    number = between - places
    what = f"{number} of {between} events in between {'is' if number == 1 else 'are'}"
    return f"{what} surplus: {places} may be missing there"


def _affordable(engine: Tracing, arc: Arc, error: int) -> bool:
    return any(error + arc.weight + cost <= engine.budget for cost, _ in engine.ways[arc.target])


def _not_held(plan: Plan, predicate: Compiled, node: MatchNode | None, move: Move, event: Event) -> str:
    steps = node.trail.steps() if node is not None else []
    bound = bound_events([*steps, (event, move.arc.var)])
    shown = []
    for leaf in predicate.leaves:
        value = _value(plan, leaf, bound, move.arc.var)
        shown.append(f"{expression_text(leaf)} = {'null' if value is None else value}")
    return f"{_text(predicate)} does not hold ({', '.join(shown)})"


def _text(condition: Compiled) -> str:
    return expression_text(condition.told)


def _value(plan: Plan, leaf: ex.Leaf, bound: dict[str, list[Event]], var: str) -> Any:
    """Return the value of a reference once an event is bound to ``var``, as it is in the input."""
    value = _held(plan, leaf, bound, var)
    if not isinstance(leaf, ex.Attribute | ex.Aggregate) or leaf.name is None:
        return value
    if isinstance(leaf, ex.Aggregate) and leaf.function == "count":
        return value
    return input_value(plan, leaf.name, value)


def input_value(plan: Plan, name: str, value: Any) -> Any:
    """Return a value of a column as it is in the input."""
    if not isinstance(value, int):
        return value
    (shown,) = key_to_input((value,), (name,), plan.schema).values()
    held = time_types(plan.schema).get(name)
    return shown if held is None else plain(shown, getattr(held, "tz", None) is not None)


def _held(plan: Plan, leaf: ex.Leaf, bound: dict[str, list[Event]], var: str) -> Any:
    events = bound.get(leaf.var, [])
    match leaf:
        case ex.Length():
            return len(events)
        case ex.Attribute(index=index, name=name):
            at = index - 1 if isinstance(index, int) else -1 - steps_back(index)
            return events[at].row[plan.row.index(name)] if -len(events) <= at < len(events) else None
        case ex.Aggregate(function=function, scope=scope, name=name):
            if scope == "before" and leaf.var == var:
                events = events[:-1]
            if name is None:
                return len(events)
            return aggregate(function, [e.row[plan.row.index(name)] for e in events], plan.schema.scale(name) or 0)


def refused(watching: Watching, best: MatchNode) -> FailureReport:
    """Explain why a complete run is no match: a predicate at its end, a negation, HAVING or the output's choice."""
    engine, plan = watching.tracing, watching.plan
    steps = best.trail.steps()
    last = steps[-1][0]
    state = "everything is bound"
    for check, holds in zip(plan.program.ending[best.state], engine.ending[best.state], strict=True):
        if not holds(best.registers, ()):
            text = _text(plan.predicates[check.predicate])
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
        text = _text(plan.having)
        return state, [Failure(last.id, "HAVING", f"{text} does not hold")], "HAVING leaves it out"
    return state, [], "it was found" if plan.query.output is Output.ALL else "the output chose between it and others"


def _forbidden(plan: Plan, steps: list[tuple[Event, str]], j: int, event: Event) -> bool:
    """Return whether an event lies where a negation before step ``j`` forbids it."""
    first, last, window = steps[0][0], steps[-1][0], plan.window
    if j == 0:
        near = window.covers(last.position - event.position, last.ts - event.ts)
        return event.position < first.position and near
    if j == len(steps):
        near = window.covers(event.position - first.position, event.ts - first.ts)
        return event.position > last.position and near
    return steps[j - 1][0].position < event.position < steps[j][0].position


def _or(names: dict[str, None]) -> str:
    return " or ".join(names) or "nothing"
