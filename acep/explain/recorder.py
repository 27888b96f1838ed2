"""Record the nearest miss of each partition while the reference engine runs over a stream.

A *near miss* is a partial match with an event that it could not bind, or a run that a negation, HAVING or the output
refused. The nearest one lacks the fewest events; of equal ones the fewest conditions failed, and then the most held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from acep.automaton.arcs import Accept, Arc
from acep.automaton.thompson import Negated
from acep.events.records import Id
from acep.explain.attempts import attempts
from acep.matches.records import Counts
from acep.pattern import expressions as ex
from acep.pattern.evaluation import Compiled, compile_expression
from acep.plan.compile import Plan
from acep.reference.bindings import having_holds
from acep.reference.engine import Event, MatchNode, ReferenceEngine, Trail
from acep.reference.runtime import Key, Partition, ReferenceRuntime

__all__ = [
    "MOST_LOOKS",
    "MissRecorder",
    "NearMiss",
    "Stage",
    "TracingEngine",
    "Wanted",
    "cheapest_completions",
    "having_parts",
]

MOST_LOOKS = 300_000
"""The looks at partial matches, one of each for an event, after which no further events are taken: some seconds."""


class Stage(IntEnum):
    """How far a near miss came: first of runs with enough events, the nearest first, then of those that lack some."""

    NOT_CHOSEN = 0
    HAVING_FAILED = 1
    NEGATION_BROKEN = 2
    ENDING_FAILED = 3
    TRIED = 4
    NOT_TRIED = 5


@dataclass(frozen=True)
class NearMiss:
    """A partial match (``None``: nothing is bound), its ``stage``, and a ``rank``, which is least for the nearest."""

    rank: tuple[int, ...]
    stage: Stage
    node: MatchNode | None


@dataclass(frozen=True)
class Wanted:
    """What is looked for: near misses of one ``key`` (``None``: of each), of no ``matched`` events alone, or, where
    the user named ``rows``, of exactly these in stream order, each with its number from 1."""

    key: Key | None = ()
    matched: frozenset[Id] = frozenset()
    rows: dict[Id, int] = field(default_factory=dict)


class TracingEngine(ReferenceEngine):
    """An engine that keeps the nearest miss of each partition; ``key`` is the partition that it works on."""

    ends_broken = False  # how far they would have come is what is asked

    def __init__(self, plan: Plan, wanted: Wanted) -> None:
        super().__init__(plan)
        self.keeps_rows = True
        self.completions = cheapest_completions(plan)
        self.wanted, self.key = wanted, wanted.key or ()
        self.best: dict[Key, NearMiss] = {}
        self._nearest: dict[tuple[int, int], int] = {}
        self._walks: dict[int, tuple[int, bool, Trail]] = {}

    def need(self, node: MatchNode | None) -> int:
        """Return the least number of events that a partial match still has to bound."""
        return self.nearest(0, 0) if node is None else self.nearest(node.state, node.error)

    def nearest(self, state: int, error: int) -> int:
        """Return the least number of events from a state to an end, with an ``error`` so far."""
        if (state, error) not in self._nearest:
            counts = [count for cost, count in self.completions[state] if error + cost <= self.budget]
            self._nearest[state, error] = min(counts, default=len(self.states))
        return self._nearest[state, error]

    def leads_on(self, node: MatchNode | None, arc: Arc) -> bool:
        """Return whether an arc leads a partial match nearer to an end."""
        return self.nearest(arc.target, (node.error if node else 0) + arc.weight) < self.need(node)

    def affords(self, node: MatchNode | None, arc: Arc) -> bool:
        """Return whether the error budget suffices for an arc, if no further event lies in between."""
        return (node.error if node else 0) + arc.weight + self.least_remaining_cost(arc) <= self.budget

    def lacks_rows(self, node: MatchNode) -> bool:
        """Return whether a partial match has not bound all rows that the user named."""
        return self._walk(node.trail)[0] < len(self.wanted.rows)

    def consider(
        self, node: MatchNode | None, stage: Stage, n_failed: int = 0, n_held: int = 0, *, is_unmatched: bool = False
    ) -> None:
        """Keep a near miss if it is nearer than the nearest so far. ``is_unmatched``: its event is in no match."""
        n_bound, is_fresh = (0, True) if node is None else self._walk(node.trail)
        if self.wanted.matched and not (is_unmatched or (node is not None and is_fresh)):
            return
        rows, need = len(self.wanted.rows), self.need(node)
        if rows:
            rank = (rows - n_bound, int(need > 0 and n_bound == rows), stage, n_failed, -n_held, need)
        else:
            rank = (int(node is None), need, stage, n_failed, -n_held, -n_bound)
        best = self.best.get(self.key)
        if best is None or rank < best.rank:
            self.best[self.key] = NearMiss(rank, stage, node)

    def _try(self, node: MatchNode | None, feed: Any) -> bool:
        n_made = len(feed.new_nodes)
        waits = super()._try(node, feed)
        # Of an automaton each event takes one of the arcs, or ends the run.
        is_taken = self.graph is not None and len(feed.new_nodes) > n_made
        if self._is_near(node, feed.event) and not is_taken:
            is_unmatched = feed.event.id not in self.wanted.matched
            for attempt in attempts(self, node, feed.event, feed.kind):
                if self.wanted.rows or self.leads_on(node, attempt.move.arc):
                    failed, minus_held = attempt.distance
                    self.consider(node, Stage.TRIED, failed, -minus_held, is_unmatched=is_unmatched)
        return waits

    def _is_near(self, node: MatchNode | None, event: Event) -> bool:
        """Return whether an attempt of a partial match may be the nearest miss so far."""
        if self.wanted.rows:
            number = self.wanted.rows.get(event.id)
            return number is not None and number == (1 if node is None else self._walk(node.trail)[0] + 1)
        best = self.best.get(self.key)
        return best is None or (int(node is None), self.need(node)) <= best.rank[:2]

    def _make(self, arc: Arc, node: MatchNode, successors: dict[Any, MatchNode]) -> None:
        super()._make(arc, node, successors)
        if self.wanted.rows and self.wanted.rows.get(node.trail.event.id) != self._walk(node.trail)[0]:
            return  # not exactly the named rows
        node = self._with_history(arc, node)
        if self.need(node) or self.lacks_rows(node):
            self.consider(node, Stage.NOT_TRIED)
        elif failed := sum(not holds(node.registers, ()) for holds in self.ending[node.state]):
            self.consider(node, Stage.ENDING_FAILED, failed, len(self.ending[node.state]) - failed)

    def _walk(self, trail: Trail) -> tuple[int, bool]:
        """Return the number of events of a trail, and whether one of them is in no match."""
        if id(trail) not in self._walks:
            number, is_fresh = self._walk(trail.previous) if trail.previous is not None else (0, False)
            is_fresh = is_fresh or trail.event.id not in self.wanted.matched
            self._walks[id(trail)] = number + 1, is_fresh, trail  # the trail is kept, so that its id is not reused
        return self._walks[id(trail)][:2]


class MissRecorder(ReferenceRuntime):
    """A runtime that records near misses, and the events of the partition that is wanted; others run only where
    their matches may overlap with its own. ``n_events``: those of the partitions that are wanted, of which the
    first ``n_seen`` were looked at."""

    def __init__(self, plan: Plan, wanted: Wanted, most_looks: int | None = None) -> None:
        super().__init__(plan)
        self.wanted = wanted
        self.most_looks = MOST_LOOKS if most_looks is None else most_looks
        self.tracing = TracingEngine(plan, wanted)
        self.later = ReferenceEngine(plan)  # for later checks, which are not recorded
        self.later.ends_broken = False
        self.plain = self.engine if plan.strict and plan.query.output.is_sequential else None
        self.events: list[tuple[Event, str | None]] = []
        self.n_events = self.n_seen = self.looks = 0
        self._having = having_parts(plan)
        self._open: dict[int, tuple[Key, MatchNode]] = {}  # runs that wait for a negation at their end

    def n_looked_at(self, n_rows: int) -> int:
        """Return how many of the events of a stream of ``n_rows`` were looked at; those without a key need no look."""
        return n_rows if self.n_seen == self.n_events else self.n_seen

    @property
    def end_text(self) -> str:
        """Return in words where the events end that were looked at."""
        return "the stream ended" if self.n_seen == self.n_events else "the events ended that were looked at"

    def next_of(self, node: MatchNode, event: Event, kind: str | None) -> tuple[bool, list[MatchNode]]:
        """Return whether a partial match may wait on after an event, and those that are made of it by binding it."""
        waiting, complete = self.later.feed([node], event, kind, Counts())
        successors = [n for n in (*waiting, *(n for n, _ in complete)) if n.trail.previous is node.trail]
        return any(n is node for n in waiting), successors

    def broken_negations(self, node: MatchNode, event: Event, kind: str | None) -> Iterator[Negated]:
        """Yield the negations that an event breaks so that the partial match can never be complete."""
        checks = self.later.ended[node.state]
        for ending, (types, conditions) in zip(
            self.plan.program.ended[node.state] if checks else (), checks, strict=True
        ):
            if (not types or kind in types) and all(holds(node.registers, event.row) for holds in conditions):
                yield self.plan.automaton.negations[ending.negation]

    def run(self, events: Any) -> list[Any]:
        """Run over a whole stream, and return its matches."""
        matches = self.push(events) + self.finish()
        for key, node in self._open.values():
            self.tracing.key = key
            self.tracing.consider(node, Stage.NEGATION_BROKEN)
        return matches

    def _feed(self, key: Key, partition: Partition, event: Event, kind: str | None) -> None:
        is_wanted = self.wanted.key is None or key == self.wanted.key
        self.n_events += is_wanted
        if self.looks > self.most_looks:
            return
        if is_wanted:
            self.n_seen += 1
            self.tracing.key = key
            if self.wanted.key is not None:
                self.events.append((event, kind))
        engine = self.tracing if is_wanted else self.plain
        if engine is None:
            return
        self.looks += len(partition.nodes)
        self.engine = engine
        super()._feed(key, partition, event, kind)
        if self.wanted.rows and is_wanted:
            ends_here = event.id in self.wanted.rows
            partition.nodes = [n for n in partition.nodes if (n.trail.event.position == event.position) is ends_here]
            partition.nodes = [n for n in partition.nodes if self._is_of_rows(n)]

    def _is_of_rows(self, node: MatchNode) -> bool:
        """Return whether a partial match has bound exactly the named rows up to its last event."""
        return self.wanted.rows.get(node.trail.event.id) == self.tracing._walk(node.trail)[0]

    def _complete(self, key: Key, partition: Partition, complete: list[tuple[MatchNode, Accept]]) -> None:
        if self.engine is self.tracing:
            if self.wanted.rows:
                complete = [(node, accept) for node, accept in complete if self._is_of_rows(node)]
            for node, accept in complete:
                if not self.tracing.lacks_rows(node):
                    self._consider_complete(key, partition, node, accept)
        super()._complete(key, partition, complete)

    def _consider_complete(self, key: Key, partition: Partition, node: MatchNode, accept: Accept) -> None:
        """Record a run with enough events that is no match, or may be none."""
        steps = node.trail.steps()
        if node.error + accept.cost + self._negation_cost(partition, node) > self.engine.budget:
            self.tracing.consider(node, Stage.NEGATION_BROKEN)
        elif not having_holds(self.plan, steps):
            results = [having_holds(self.plan, steps, part) for part in self._having]
            self.tracing.consider(node, Stage.HAVING_FAILED, results.count(False), results.count(True))
        elif accept.crossings:
            self._open[id(node.trail)] = key, node
        elif self.wanted.rows or not self.wanted.matched:
            self.tracing.consider(node, Stage.NOT_CHOSEN)

    def _choose(self, key: Key, partition: Partition, trail: Trail, *values: Any) -> None:
        super()._choose(key, partition, trail, *values)
        open_run = self._open.pop(id(trail), None)
        if open_run is not None and (self.wanted.rows or not self.wanted.matched):
            self.tracing.key = key
            self.tracing.consider(open_run[1], Stage.NOT_CHOSEN)


def having_parts(plan: Plan) -> list[Compiled]:
    """Return the conjuncts of HAVING."""
    if plan.having is None:
        return []
    pairs = zip(_conjuncts(plan.having.expr), _conjuncts(plan.having.written), strict=False)
    return [compile_expression(expr, plan.schema.tick_ns, written) for expr, written in pairs]


def _conjuncts(expr: ex.Expr) -> Iterator[ex.Expr]:
    if isinstance(expr, ex.Binary) and expr.op == "and":
        yield from _conjuncts(expr.left)
        yield from _conjuncts(expr.right)
    else:
        yield expr


def cheapest_completions(plan: Plan) -> list[list[tuple[int, int]]]:
    """Return for each state the ways to an end, as (scaled cost, events): none both dearer and longer than another."""
    budget = plan.automaton.costs.budget
    completions = [[(a.cost, 0) for a in state.accepts if a.cost <= budget] for state in plan.arcs.states]
    changed = True
    while changed:
        changed = False
        for state, arcs in enumerate(plan.arcs.arcs):
            seen = set(completions[state])
            for arc in arcs:
                seen |= {(cost + arc.weight, count + 1) for cost, count in completions[arc.target]}
            best: list[tuple[int, int]] = []
            for cost, count in sorted(seen):
                if cost <= budget and (not best or count < best[-1][1]):
                    best.append((cost, count))
            if best != completions[state]:
                completions[state], changed = best, True
    return completions
