"""Report on the nearest miss: what it needed, which events failed it, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from acep.automaton.arcs import Arc
from acep.automaton.thompson import Negated
from acep.events.records import Id
from acep.explain.attempts import Attempt, attempts
from acep.explain.condition_text import failed_condition_text
from acep.explain.recorder import MissRecorder, NearMiss, Stage, having_parts
from acep.pattern.times import duration_text, window_text
from acep.pattern.tree import Output
from acep.plan.compile import Plan
from acep.reference.bindings import count_breaks, crossings_of, having_holds
from acep.reference.engine import Event, MatchNode, bound_events

__all__ = ["Failure", "FailureReport", "explain_incomplete", "explain_no_start", "explain_refusal"]


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

Ranked = tuple[tuple[bool, int, int], Failure]


def explain_no_start(recorder: MissRecorder) -> FailureReport:
    """Explain why no event began a match."""
    moves, rows = recorder.tracing.moves[0], recorder.wanted.rows
    state = f"nothing is bound: {_with_types(m.arc for m in moves)} is needed first"
    if rows:
        event, kind = next((event, kind) for event, kind in recorder.events if event.id in rows)
        return state, _row_failures(recorder, None, event, kind), "the first row that was named could not begin a match"
    failed = _nearest_first([f for event, kind in recorder.events for f in _attempts(recorder, None, event, kind)])
    types = dict.fromkeys(t for move in moves for t in move.arc.types)
    ended = (
        "no event could begin a match"
        if failed or not recorder.events
        else f"there is no event of type {_join_by_or(types)}"
    )
    return state, failed, ended


def explain_incomplete(recorder: MissRecorder, node: MatchNode) -> FailureReport:
    """Explain why the events after a partial match did not complete it."""
    engine, rows = recorder.tracing, recorder.wanted.rows
    moves = [m for m in engine.moves[node.state] if engine.affords(node, m.arc)]
    needed = _with_types(m.arc for m in moves)
    state = f"{needed} {'is needed' if engine.need(node) else 'may come'} next" if moves else "everything is bound"
    failed: list[Ranked] = []
    broken: dict[str, Failure] = {}
    taken: set[str | None] = set()
    ended = "no other row was named" if rows else recorder.end_text
    for event, kind in recorder.events:
        if event.position <= node.trail.event.position:
            continue
        if rows and event.id in rows:
            failures = _row_failures(recorder, node, event, kind)
            return state, failures, f"event {event.id}, the next row that was named, could not be bound"
        if engine.has_expired(node, event.position, event.ts):
            if rows:
                continue  # the next row that was named says by how much it is too late
            ended = f"the window closed (event {event.id} is too late)"
            break
        if not rows:
            failed += _attempts(recorder, node, event, kind)
            for negation in recorder.broken_negations(node, event, kind):
                broken.setdefault(negation.var, _break_of(negation, event))
        waits, bound = _try_next(recorder, node, event, kind)
        taken |= {kind} if bound else set()
        if waits:
            continue
        if engine.strategy.contiguous:
            ended = f"{engine.strategy.value.replace('_', ' ')}: event {event.id} came in between"
        elif rows:
            ended = (
                f"event {event.id}, which was not named, had to be bound to {_join_by_or(bound)}: skip till next match"
            )
        else:
            ended = (
                f"event {event.id} had to be bound to {_join_by_or(bound)}, which led no further: skip till next match"
            )
        return state, [*broken.values(), *_nearest_first(failed)], ended
    # Events for arcs that lead no nearer to an end are not missing.
    onward = [m for m in moves if engine.leads_on(node, m.arc)]
    types = dict.fromkeys(t for move in onward for t in move.arc.types if t not in taken)
    if not failed and types and not engine.strategy.contiguous and not rows:
        ended = f"no event of type {_join_by_or(types)} came before {ended}"
    return state, [*broken.values(), *_nearest_first(failed)], ended


def _try_next(recorder: MissRecorder, node: MatchNode, event: Event, kind: str | None) -> tuple[bool, dict[str, None]]:
    """Return whether a partial match may wait on after an event, and the variables to which it binds the event."""
    waits, successors = recorder.next_of(node, event, kind)
    return waits, dict.fromkeys(n.trail.var for n in successors)


def _attempts(recorder: MissRecorder, node: MatchNode | None, event: Event, kind: str | None) -> Iterator[Ranked]:
    """Yield the reasons why an event of the right type could not be bound, each with a sort key: the nearest first."""
    engine = recorder.tracing
    for attempt in attempts(engine, node, event, kind):
        arc = attempt.move.arc
        rank = (not engine.leads_on(node, arc), *attempt.distance)
        yield rank, Failure(event.id, arc.var, "; ".join(_reasons(recorder.plan, attempt, node, event)))


def _nearest_first(ranked: list[Ranked]) -> list[Failure]:
    return [failure for _, failure in sorted(ranked, key=lambda pair: pair[0])]


def _reasons(plan: Plan, attempt: Attempt, node: MatchNode | None, event: Event) -> Iterator[str]:
    """Yield what does not hold of an attempt."""
    var, costs = attempt.move.arc.var, plan.automaton.costs
    bound = bound_events([*(node.trail.steps() if node is not None else ()), (event, var)])
    for number in attempt.failed:
        yield failed_condition_text(plan, plan.predicates[number], bound, var)
    if attempt.surplus is not None:
        yield _surplus_text(*attempt.surplus)
    if attempt.error is not None:
        yield f"it would miss {costs.unscale(attempt.error)}, and {costs.unscale(costs.budget)} may be missing"


def _surplus_text(between: int, places: int) -> str:
    """Return what is said of so many events ``between``, of which as many may come as may be missing: ``places``.

    >>> _surplus_text(2, 1)
    '1 of 2 events in between is surplus: 1 may be missing there'
    >>> _surplus_text(1, 0)
    'the event in between is surplus: nothing is missing there'
    """
    if places == 0:
        what = "the event in between is" if between == 1 else f"the {between} events in between are"
        return f"{what} surplus: nothing is missing there"
    number = between - places
    what = f"{number} of {between} events in between {'is' if number == 1 else 'are'}"
    return f"{what} surplus: {places} may be missing there"


def _row_failures(recorder: MissRecorder, node: MatchNode | None, event: Event, kind: str | None) -> list[Failure]:
    """Return why a row that the user named could not be the next one of a partial match."""
    engine = recorder.tracing
    arcs = [move.arc for move in engine.moves[0 if node is None else node.state] if engine.affords(node, move.arc)]
    fitting = dict.fromkeys(arc.var for arc in arcs if not arc.types or kind in arc.types)
    if not arcs:
        return []
    if not fitting:
        needed = _with_types(arcs)
        types = _join_by_or(dict.fromkeys(t for arc in arcs for t in arc.types))
        return [Failure(event.id, needed, "it has no type" if kind is None else f"its type is {kind}, not {types}")]
    if node is not None and engine.has_expired(node, event.position, event.ts):
        return [Failure(event.id, var, _lateness_text(recorder.plan, node.trail.first, event)) for var in fitting]
    return _nearest_first([*_attempts(recorder, node, event, kind)])


def _lateness_text(plan: Plan, first: Event, event: Event) -> str:
    """Return that an event comes after the window of a partial match."""
    assert plan.query.within is not None
    window = window_text(plan.query.within)
    if plan.window.counted:
        return (
            f"it is number {event.position - first.position + 1} from event {first.id} on, and the window is {window}"
        )
    ticks, tick = event.ts - first.ts, plan.schema.tick_ns
    later = str(ticks) if tick is None else duration_text(ticks * tick)
    return f"it comes {later} after event {first.id}, and the window is {window}"


def explain_refusal(recorder: MissRecorder, near: NearMiss, node: MatchNode) -> FailureReport:
    """Explain why a run with enough events is no match: a predicate at its end, a negation, HAVING or the output."""
    plan, steps = recorder.plan, node.trail.steps()
    state, last = "everything is bound", steps[-1][0]
    if near.stage is Stage.ENDING_FAILED:
        checks = zip(plan.program.ending[node.state], recorder.tracing.ending[node.state], strict=True)
        numbers = sorted(check.predicate for check, holds in checks if not holds(node.registers, ()))
        reason = "; ".join(
            failed_condition_text(plan, plan.predicates[number], bound_events(steps)) for number in numbers
        )
        return state, [Failure(last.id, steps[-1][1], reason)], "it is no match"
    if near.stage is Stage.NEGATION_BROKEN:
        return state, [*_breaking_events(recorder, node)], "a negation is broken"
    if near.stage is Stage.HAVING_FAILED:
        parts = [part for part in having_parts(plan) if not having_holds(plan, steps, part)]
        reason = "; ".join(failed_condition_text(plan, part, bound_events(steps)) for part in parts)
        return state, [Failure(last.id, "HAVING", reason)], "HAVING leaves it out"
    return state, [], "it was found" if plan.query.output is Output.ALL else "the output chose between it and others"


def _breaking_events(recorder: MissRecorder, node: MatchNode) -> Iterator[Failure]:
    """Yield the events that break the negations of a run."""
    plan, steps = recorder.plan, node.trail.steps()
    trailing = [(len(steps), c) for accept in recorder.tracing.states[node.state].accepts for c in accept.crossings]
    for j, crossing in [*crossings_of(node.history), *trailing]:
        negation = plan.automaton.negations[crossing.negation]
        for event, kind in recorder.events:
            is_of_type = not negation.types or kind in negation.types
            if not is_of_type or not _is_forbidden(plan, steps, j, event):
                continue
            if count_breaks(plan, steps, node.history, j, crossing, [event]):
                yield _break_of(negation, event)


def _break_of(negation: Negated, event: Event) -> Failure:
    return Failure(event.id, f"~{negation.var}", f"no such {' or '.join(negation.types) or 'event'} may come there")


def _is_forbidden(plan: Plan, steps: list[tuple[Event, str]], j: int, event: Event) -> bool:
    """Return whether an event lies where a negation before step ``j`` forbids it."""
    first, last, window = steps[0][0], steps[-1][0], plan.window
    if j == 0:
        near = window.covers(last.position - event.position, last.ts - event.ts)
        return event.position < first.position and near
    if j == len(steps):
        near = window.covers(event.position - first.position, event.ts - first.ts)
        return event.position > last.position and near
    return steps[j - 1][0].position < event.position < steps[j][0].position


def _with_types(arcs: Iterable[Arc]) -> str:
    """Return the variables of arcs with the types of their events, where these have other names."""
    types_of: dict[str, dict[str, None]] = {}
    for arc in arcs:
        types_of.setdefault(arc.var, {}).update(dict.fromkeys(arc.types))
    texts = (var if set(types) <= {var} else f"{var} (type {_join_by_or(types)})" for var, types in types_of.items())
    return _join_by_or(dict.fromkeys(texts))


def _join_by_or(names: dict[str, None]) -> str:
    return " or ".join(names) or "nothing"
