"""Record the partial matches that come furthest, while the reference engine runs over one partition of a stream."""

from __future__ import annotations

from typing import Any

from acep.automaton.arcs import Arc
from acep.matches.records import Counts
from acep.pattern.expressions import Value
from acep.plan.compile import Plan
from acep.reference.engine import Event, MatchNode, ReferenceEngine, Trail
from acep.reference.runtime import Key, Partition, ReferenceRuntime

__all__ = ["Tracing", "Watching"]

MOST_ALIKE = 32
"""The most equally far partial matches that are kept."""


class Tracing(ReferenceEngine):
    """An engine that keeps the partial matches that lack the fewest events; of those, the ones with the most bound."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.keeps_rows = True
        self.best: list[MatchNode] = []
        self.ways = ways_of(plan)
        self._rank: tuple[int, int] = (len(self.states) + 1, 0)
        self._depths: dict[int, tuple[int, Trail]] = {}

    def need(self, node: MatchNode) -> int:
        """Return the least number of events that a partial match still has to bound."""
        return self.nearest(node.state, node.error)

    def nearest(self, state: int, error: int) -> int:
        """Return the least number of events from a state to an end, with an ``error`` so far."""
        counts = [count for cost, count in self.ways[state] if error + cost <= self.budget]
        return min(counts, default=len(self.states))

    def _make(self, arc: Arc, node: MatchNode, made: dict[Any, MatchNode]) -> None:
        super()._make(arc, node, made)
        node = self._walked(arc, node)
        rank = (self.need(node), -self._depth(node.trail))
        if rank < self._rank:
            self.best, self._rank = [node], rank
        elif rank == self._rank and len(self.best) < MOST_ALIKE:
            self.best.append(node)

    def _depth(self, trail: Trail) -> int:
        if id(trail) not in self._depths:
            before = self._depth(trail.previous) if trail.previous is not None else 0
            self._depths[id(trail)] = (before + 1, trail)  # the trail is kept, so that its id is not reused
        return self._depths[id(trail)][0]


class Watching(ReferenceRuntime):
    """A runtime that records one partition and its events; other partitions run only where they may overlap with it."""

    def __init__(self, plan: Plan, key: tuple[Value, ...]) -> None:
        super().__init__(plan)
        self.tracing = Tracing(plan)
        self.asked = ReferenceEngine(plan)  # for later checks, which are not recorded
        self.key = key
        self.plain = self.engine if plan.strict and plan.query.output.apart else None
        self.seen: list[tuple[Event, str | None]] = []

    def next_of(self, node: MatchNode, event: Event, kind: str | None) -> tuple[bool, list[MatchNode]]:
        """Return whether a partial match may wait on after an event, and those that are made of it by binding it."""
        waiting, complete = self.asked.feed([node], event, kind, Counts())
        made = [n for n in (*waiting, *(n for n, _ in complete)) if n.trail.previous is node.trail]
        return any(n is node for n in waiting), made

    def _feed(self, key: Key, partition: Partition, event: Event, kind: str | None) -> None:
        engine = self.tracing if key == self.key else self.plain
        if engine is self.tracing:
            self.seen.append((event, kind))
        if engine is not None:
            self.engine = engine
            super()._feed(key, partition, event, kind)


def ways_of(plan: Plan) -> list[list[tuple[int, int]]]:
    """Return for each state the ways to an end, as (scaled cost, events): none both dearer and longer than another."""
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
