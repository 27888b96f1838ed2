"""The reference runtime: matches one partition, one event at a time, in plain Python (docs/reference/semantics.md).

It follows the sections "Strategies" and "Errors" of that page. A partial match (:class:`MatchNode`) has a state,
registers, an error so far, and a *trail*, the chain of bound events. Partial matches that bound the same events and
are alike in all that can matter later become one, with the least error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from acep.automaton.arcs import Accept, Arc, Crossing
from acep.events.records import Id
from acep.matches.records import Counts
from acep.pattern.tree import Strategy
from acep.plan.compile import Plan
from acep.reference.program import Registers, Row, moves_of

__all__ = ["CrossingHistory", "Event", "MatchNode", "ReferenceEngine", "Trail", "bound_events", "path_of"]


class Event(NamedTuple):
    """An event as a trail keeps it: its position, time and id, and its row where that is needed later."""

    position: int
    ts: int
    id: Id
    row: Row


class Trail:
    """A chain of bound events, newest first: ``event`` is bound to ``var``. There is one object per binding."""

    __slots__ = ("event", "first", "previous", "var")

    def __init__(self, event: Event, var: str, previous: Trail | None) -> None:
        self.event = event
        self.var = var
        self.previous = previous
        self.first: Event = previous.first if previous else event

    def steps(self) -> list[tuple[Event, str]]:
        """Return the events with their variables, oldest first."""
        steps = []
        trail: Trail | None = self
        while trail is not None:
            steps.append((trail.event, trail.var))
            trail = trail.previous
        steps.reverse()
        return steps


class CrossingHistory(NamedTuple):
    """The negations crossed and groups reset at each step, newest first; kept only where the pattern has negations."""

    crossings: tuple[Crossing, ...]
    resets: tuple[int, ...]
    previous: CrossingHistory | None


class MatchNode(NamedTuple):
    """A partial match. ``error`` is scaled (``Costs``)."""

    state: int
    registers: Registers
    error: int
    trail: Trail
    history: CrossingHistory | None


class ReferenceEngine:
    """An executable plan; it holds no state of a stream."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.moves, self.ending = moves_of(plan)
        self.states = plan.arcs.states
        self.budget = plan.automaton.costs.budget
        self.scale = plan.automaton.costs.scale
        self.strategy = plan.query.strategy
        self.keeps_history = bool(plan.automaton.negations)
        self.keeps_rows = self.keeps_history or plan.having is not None or bool(plan.returns)

    def feed(
        self, nodes: list[MatchNode], event: Event, kind: str | None, counts: Counts
    ) -> tuple[list[MatchNode], list[tuple[MatchNode, Accept]]]:
        """Process one event. Return the partial matches that go on, and those that may end here with the ways they may.

        ``nodes`` are the partial matches of the event's partition, none of them expired; ``kind`` is the event's type.
        """
        made: dict[Any, MatchNode] = {}
        trails: dict[tuple[int, str], Trail] = {}
        kept = event if self.keeps_rows else event._replace(row=())
        waiting = [node for node in nodes if self._try(node, event, kept, kind, made, trails, counts)]
        self._begin(event, kept, kind, made, trails, counts)
        counts.nodes += len(made)
        complete = [(node, accept) for node in made.values() for accept in self._endings(node)]
        waiting += [node for node in made.values() if self.moves[node.state]]
        return waiting, complete

    def expired(self, node: MatchNode, position: int, ts: int) -> bool:
        """Return whether no event at this position and time, or later, can belong to the partial match."""
        window = self.plan.window
        if window.span is None:
            return False
        first = node.trail.first
        return (position - first.position if window.counted else ts - first.ts) > window.span

    def _try(
        self,
        node: MatchNode,
        event: Event,
        kept: Event,
        kind: str | None,
        made: dict[Any, MatchNode],
        trails: dict[tuple[int, str], Trail],
        counts: Counts,
    ) -> bool:
        """Bind the event in every way to a partial match; return whether it may also ignore the event and wait."""
        taken = False
        next_match = self.strategy is Strategy.SKIP_TILL_NEXT_MATCH
        between = event.position - node.trail.event.position - 1
        for move in self.moves[node.state]:
            arc = move.arc
            if arc.types and kind not in arc.types:
                continue
            counts.touches += 1
            error = node.error + self._cost(arc, between)
            affordable = error + self._rest(arc) <= self.budget
            decides = next_match and arc.blocking and not taken
            if not (affordable or decides) or move.failed(node.registers, event.row) is not None:
                continue
            taken = taken or decides
            if affordable:
                trail = trails.get((id(node.trail), arc.var))
                if trail is None:
                    trail = trails[id(node.trail), arc.var] = Trail(kept, arc.var, node.trail)
                registers = move.update(node.registers, event.row)
                self._make(arc, registers, error, trail, node.history, made)
        if self.strategy.contiguous:
            return self._can_pay(node, between + 1)
        return not taken

    def _begin(
        self,
        event: Event,
        kept: Event,
        kind: str | None,
        made: dict[Any, MatchNode],
        trails: dict[tuple[int, str], Trail],
        counts: Counts,
    ) -> None:
        for move in self.moves[0]:
            arc = move.arc
            if arc.types and kind not in arc.types:
                continue
            counts.touches += 1
            if arc.weight + self._rest(arc) > self.budget or move.failed((), event.row) is not None:
                continue
            trail = trails.get((0, arc.var))
            if trail is None:
                trail = trails[0, arc.var] = Trail(kept, arc.var, None)
            self._make(arc, move.update((), event.row), arc.weight, trail, None, made)

    def _make(
        self,
        arc: Arc,
        registers: Registers,
        error: int,
        trail: Trail,
        history: CrossingHistory | None,
        made: dict[Any, MatchNode],
    ) -> None:
        walked = (id(history), arc.crossings, arc.resets) if self.keeps_history else None
        key = (arc.target, registers, id(trail), walked)
        known = made.get(key)
        if known is None or error < known.error:
            if self.keeps_history:
                history = CrossingHistory(arc.crossings, arc.resets, history)
            made[key] = MatchNode(arc.target, registers, error, trail, history)

    def _cost(self, arc: Arc, between: int) -> int:
        """Return the cost of binding an event, with ``between`` events since the one bound before."""
        if not self.strategy.contiguous:
            return arc.weight
        return min(weight + self.scale * max(0, between - letters) for weight, letters in arc.gaps)

    def _rest(self, arc: Arc) -> int:
        rest = self.states[arc.target].rest
        return self.budget + 1 if rest is None else rest

    def _can_pay(self, node: MatchNode, between: int) -> bool:
        """Return whether some arc is still affordable under contiguity, after ``between`` events."""
        return any(
            node.error + self._cost(m.arc, between) + self._rest(m.arc) <= self.budget for m in self.moves[node.state]
        )

    def _endings(self, node: MatchNode) -> Iterator[Accept]:
        accepts = self.states[node.state].accepts
        if accepts and all(holds(node.registers, ()) for holds in self.ending[node.state]):
            yield from (a for a in accepts if node.error + a.cost <= self.budget)


def path_of(history: CrossingHistory | None) -> list[tuple[tuple[Crossing, ...], tuple[int, ...]]]:
    """Return the crossings and resets before each step, oldest first."""
    steps: list[tuple[tuple[Crossing, ...], tuple[int, ...]]] = []
    while history is not None:
        steps.append((history.crossings, history.resets))
        history = history.previous
    steps.reverse()
    return steps


def bound_events(steps: Iterable[tuple[Event, str]]) -> dict[str, list[Event]]:
    """Return the events of each variable, oldest first."""
    bound: dict[str, list[Event]] = {}
    for event, var in steps:
        bound.setdefault(var, []).append(event)
    return bound
