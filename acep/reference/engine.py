"""The reference engine: docs/semantics.md, "Strategies" and "Errors", one partition and one event at a time.

Plain Python, written to be read next to that page. A *match node* is a run that may go on: its state, registers,
error so far, and the *trail* of events that it has bound. Nodes that bound the same events, and are
alike in all that can matter later, are one node, with the least error.
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

__all__ = ["Event", "History", "MatchNode", "Reference", "Trail", "bound_events", "path_of"]


class Event(NamedTuple):
    """An event as a trail keeps it: its position, time and id, and its row where that is needed later."""

    position: int
    ts: int
    id: Id
    row: Row


class Trail:
    """The events bound so far, newest first: ``event`` is bound to ``var``. One object for each binding."""

    __slots__ = ("event", "first", "previous", "var")

    def __init__(self, event: Event, var: str, previous: Trail | None) -> None:
        self.event = event
        self.var = var
        self.previous = previous
        self.first: Event = previous.first if previous else event

    def steps(self) -> list[tuple[Event, str]]:
        """The events with their variables, oldest first."""
        steps = []
        trail: Trail | None = self
        while trail is not None:
            steps.append((trail.event, trail.var))
            trail = trail.previous
        steps.reverse()
        return steps


class History(NamedTuple):
    """What a run walked past at each step, newest first; kept only where the pattern has negations."""

    crossings: tuple[Crossing, ...]
    resets: tuple[int, ...]
    previous: History | None


class MatchNode(NamedTuple):
    """A partial match. ``error`` is scaled (``Costs``)."""

    state: int
    registers: Registers
    error: int
    trail: Trail
    history: History | None


class Reference:
    """A plan made runnable; it holds no state of a stream."""

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
        """One event: the nodes that live on, and those that may end here with the ways in which they may.

        ``nodes`` are the live nodes of the event's partition, none of them expired; ``kind`` is the event's type.
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
        """Whether no event at this position and time, or later, can belong to the run."""
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
        """Every way for the node to bind the event; whether it may also ignore it and wait."""
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
        history: History | None,
        made: dict[Any, MatchNode],
    ) -> None:
        walked = (id(history), arc.crossings, arc.resets) if self.keeps_history else None
        key = (arc.target, registers, id(trail), walked)
        known = made.get(key)
        if known is None or error < known.error:
            if self.keeps_history:
                history = History(arc.crossings, arc.resets, history)
            made[key] = MatchNode(arc.target, registers, error, trail, history)

    def _cost(self, arc: Arc, between: int) -> int:
        """What binding an event costs, with so many events between it and the one bound before."""
        if not self.strategy.contiguous:
            return arc.weight
        return min(weight + self.scale * max(0, between - letters) for weight, letters in arc.gaps)

    def _rest(self, arc: Arc) -> int:
        rest = self.states[arc.target].rest
        return self.budget + 1 if rest is None else rest

    def _can_pay(self, node: MatchNode, between: int) -> bool:
        """Under contiguity: whether some arc would still be affordable after so many events."""
        return any(
            node.error + self._cost(m.arc, between) + self._rest(m.arc) <= self.budget for m in self.moves[node.state]
        )

    def _endings(self, node: MatchNode) -> Iterator[Accept]:
        accepts = self.states[node.state].accepts
        if accepts and all(holds(node.registers, ()) for holds in self.ending[node.state]):
            yield from (a for a in accepts if node.error + a.cost <= self.budget)


def path_of(history: History | None) -> list[tuple[tuple[Crossing, ...], tuple[int, ...]]]:
    """What was walked past before each step, oldest first."""
    steps: list[tuple[tuple[Crossing, ...], tuple[int, ...]]] = []
    while history is not None:
        steps.append((history.crossings, history.resets))
        history = history.previous
    steps.reverse()
    return steps


def bound_events(steps: Iterable[tuple[Event, str]]) -> dict[str, list[Event]]:
    """The events of each variable, oldest first."""
    bound: dict[str, list[Event]] = {}
    for event, var in steps:
        bound.setdefault(var, []).append(event)
    return bound
