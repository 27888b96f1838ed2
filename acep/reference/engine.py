"""Match one partition, one event at a time, in plain Python (docs/reference/semantics.md).

This follows the sections "Strategies" and "Errors" of that page. A partial match (:class:`MatchNode`) has a state,
registers, an error so far, and a *trail*, the chain of bound events. Partial matches that bound the same events and
are alike in all that can matter later become one, with the least error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from acep.automaton.arcs import Accept, Arc, Crossing
from acep.events.records import Id
from acep.matches.records import Counts
from acep.pattern.tree import Strategy
from acep.plan.compile import Plan
from acep.reference.program import Registers, Row, ending_events, ignoring_of, moves_of

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


START: Final[tuple[int, Registers, int, Trail | None, CrossingHistory | None]] = (0, (), 0, None, None)
"""The fields of a partial match that has bound nothing."""


@dataclass(frozen=True)
class _Feed:
    """An event that is processed: its form in trails, its type, the counts, and what it gave so far: partial matches by
    what makes them alike, and trails by the trail before them and the variable."""

    event: Event
    bound_event: Event
    kind: str | None
    counts: Counts
    new_nodes: dict[Any, MatchNode] = field(default_factory=dict)
    trails: dict[tuple[int, str], Trail] = field(default_factory=dict)


class ReferenceEngine:
    """An executable plan; it holds no state of a stream. ``ends_broken``: a partial match that can never be
    complete, as a negation is broken, is given up at once."""

    ends_broken = True

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.moves, self.ending = moves_of(plan)
        self.ignoring = ignoring_of(plan)
        self.ended = ending_events(plan)
        self.graph = plan.query.graph
        self.states = plan.arcs.states
        self.budget = plan.automaton.costs.budget
        self.strategy = plan.query.strategy
        negations = bool(plan.automaton.negations)
        self.keeps_history = negations or bool(plan.parts)  # a later version may have negations
        self.keeps_rows = negations or plan.having is not None or bool(plan.returns)

    def feed(
        self, nodes: list[MatchNode], event: Event, kind: str | None, counts: Counts
    ) -> tuple[list[MatchNode], list[tuple[MatchNode, Accept]]]:
        """Process one event. Return the partial matches that go on, and those that may end here with the ways they may.

        ``nodes`` are the partial matches of the event's partition, none of them expired; ``kind`` is the event's type.
        """
        feed = _Feed(event, event if self.keeps_rows else event._replace(row=()), kind, counts)
        waiting = [node for node in nodes if self._try(node, feed) and not self._is_broken(node, event, kind)]
        self._try(None, feed)
        new_nodes = feed.new_nodes.values()
        counts.nodes += len(new_nodes)
        complete = [(node, accept) for node in new_nodes for accept in self._endings(node)]
        return waiting + [node for node in new_nodes if self.plan.dynamic or self.moves[node.state]], complete

    def has_expired(self, node: MatchNode, position: int, ts: int) -> bool:
        """Return whether no event at this position and time, or later, can belong to the partial match."""
        first = node.trail.first
        return not self.plan.window.covers(position - first.position, ts - first.ts)

    def _try(self, node: MatchNode | None, feed: _Feed) -> bool:
        """Bind the event in every way to a partial match, or begin one with it (``None``). Return whether the partial
        match may also ignore the event and wait."""
        state, registers, error_so_far, trail, history = node or START
        event, kind = feed.event, feed.kind
        # A partial match of a hand-written automaton that is left has ignored each event between, perhaps by an arc
        # that is gone.
        between = event.position - trail.event.position - 1 if trail and not self.graph else 0
        next_match = self.strategy is Strategy.SKIP_TILL_NEXT_MATCH
        is_taken = False
        for move in self.moves[state]:
            arc = move.arc
            if (arc.types and kind not in arc.types) or not arc.valid(event.ts):
                continue
            feed.counts.touches += 1
            error = error_so_far + self.cost(arc, between)
            affordable = error + self.least_remaining_cost(arc) <= self.budget
            decides = next_match and arc.blocking and not is_taken
            if not (affordable or decides) or move.first_failure(registers, event.row) is not None:
                continue
            is_taken = is_taken or decides
            if affordable:
                key = (id(trail), arc.var)
                bound = feed.trails.get(key) or feed.trails.setdefault(key, Trail(feed.bound_event, arc.var, trail))
                new_registers = move.update(registers, event.row)
                self._make(arc, MatchNode(arc.target, new_registers, error, bound, history), feed.new_nodes)
        if self.strategy.contiguous:
            return node is not None and (self._can_pay(node, between + 1) or self._ignores(node, event))
        return not is_taken

    def _is_broken(self, node: MatchNode, event: Event, kind: str | None) -> bool:
        """Return whether the event breaks a negation that the partial match cannot go on without passing."""
        return self.ends_broken and any(
            (not types or kind in types) and all(holds(node.registers, event.row) for holds in conditions)
            for types, conditions in self.ended[node.state]
        )

    def _make(self, arc: Arc, node: MatchNode, new_nodes: dict[Any, MatchNode]) -> None:
        """Keep the partial match after an arc, unless one that is alike has no greater error. The history of ``node``
        is still that before the arc."""
        history_key = (id(node.history), arc.crossings, arc.resets) if self.keeps_history else None
        key = (node.state, node.registers, id(node.trail), history_key)
        equal_node = new_nodes.get(key)
        if equal_node is None or node.error < equal_node.error:
            new_nodes[key] = self._with_history(arc, node)

    def _with_history(self, arc: Arc, node: MatchNode) -> MatchNode:
        """Return a partial match with the crossings and resets of an arc added to its history, if it keeps one."""
        if not self.keeps_history:
            return node
        return node._replace(history=CrossingHistory(arc.crossings, arc.resets, node.history))

    def cost(self, arc: Arc, between: int) -> int:
        """Return the cost of binding an event, with ``between`` events since the one bound before; more than the budget
        if these break contiguity."""
        if not self.strategy.contiguous:
            return arc.weight
        cost = self.plan.automaton.costs.of_gap(arc.gaps, between)
        return self.budget + 1 if cost is None else cost

    def least_remaining_cost(self, arc: Arc) -> int:
        """Return the least cost of reaching an end after an arc."""
        least_cost = self.states[arc.target].cost_to_end
        return self.budget + 1 if least_cost is None else least_cost

    def _can_pay(self, node: MatchNode, between: int) -> bool:
        """Return whether some arc is still affordable under contiguity, after ``between`` events."""
        return any(
            node.error + self.cost(m.arc, between) + self.least_remaining_cost(m.arc) <= self.budget
            for m in self.moves[node.state]
        )

    def is_stuck(self, node: MatchNode, position: int) -> bool:
        """Return whether contiguity leaves a partial match no way to go on behind the event at a position. Under strict
        contiguity it is not fed events of other partitions, which break it."""
        between = position - node.trail.event.position
        return between > 0 and self.strategy.contiguous and not self.graph and not self._can_pay(node, between)

    def _ignores(self, node: MatchNode, event: Event) -> bool:
        """Return whether an ignorable arc lets the event pass."""
        arcs = self.ignoring[node.state] if self.ignoring else ()
        return any(
            arc.valid(event.ts) and all(holds(node.registers, event.row) for holds in conditions)
            for arc, conditions in arcs
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
