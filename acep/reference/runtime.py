"""Run one plan over one stream in plain Python: keep partitions and their partial matches, and release matches.

A complete match passes these steps: negations, HAVING, the wait for a trailing negation, the selection of the output,
and the release in the order of match points, where it gets its bundle.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from acep.automaton.arcs import Accept, Crossing
from acep.events.computed_columns import computed_values
from acep.events.records import Events
from acep.matches.records import Counts, Found
from acep.pattern.expressions import Value
from acep.pattern.tree import Output
from acep.plan.compile import Plan, Window
from acep.reference.bindings import count_breaks, crossings_of, having_holds, return_values
from acep.reference.choosing import (
    Complete,
    Prospect,
    choose_by_first_event,
    choose_earliest_maximal,
    choose_non_overlapping,
)
from acep.reference.engine import CrossingHistory, Event, MatchNode, ReferenceEngine, Trail

__all__ = ["Partition", "ReferenceRuntime", "Undecided"]

FEW = 1_000  # partitions beyond twice those kept before all are looked at, where time does not end them

Key = tuple[Value, ...]
Option = tuple[int, CrossingHistory | None, tuple[Crossing, ...]]
TypedEvent = tuple[Event, str | None]
Typed = list[TypedEvent]


@dataclass
class Undecided:
    """A binding that waits for its trailing negations. ``options``: its runs, as (error so far, history, crossings)."""

    trail: Trail
    options: list[Option]


@dataclass
class Partition:
    """The state of one partition. ``recent``: the events that may break a negation, with their types."""

    position: int = 0
    nodes: list[MatchNode] = field(default_factory=list)
    recent: Typed = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)
    waiting: list[Complete] = field(default_factory=list)
    ready: list[Complete] = field(default_factory=list)
    last: tuple[int, int] | None = None  # ts and position of the last match point released
    bundle: int = 0


class ReferenceRuntime:
    """The state of one plan over one stream; ``clock`` is the latest time seen."""

    def __init__(self, plan: Plan) -> None:
        self.change(plan)
        self.counts = Counts()
        self.partitions: dict[Key, Partition] = {}
        self.position = 0  # in the whole stream
        self.clock: int | None = None
        self.swept: int | None = None
        self.n_swept = 0  # partitions when all were last looked at
        self.keeps_positions = False  # ids are positions, so idle partitions must be kept

    def change(self, plan: Plan) -> None:
        """Go on with another plan, whose states, registers and negations are those of this one and more."""
        self.plan, self.engine = plan, ReferenceEngine(plan)
        self.waits = any(n.trailing for n in plan.automaton.negations)
        self.negated = [n.types for n in plan.automaton.negations]

    def push(self, events: Events) -> list[Found]:
        """Push events in stream order; return the matches that are certain after the last one."""
        return self._finish_batch(self._take_in(events))

    def revise(self, removed: Events | None, events: Events, n_rematched: int) -> list[Found]:
        """Forget the partitions of the events ``removed`` and of the first ``n_rematched`` of ``events`` (under
        strict contiguity, all partitions), and push ``events``. Time passes only by what is newer than all before."""
        clock = self.clock
        keys = [] if removed is None else [key for _, _, key, _ in self._rows(removed)]
        keys += [key for n, (_, _, key, _) in enumerate(self._rows(events)) if n < n_rematched]
        for key in keys:
            self.partitions.pop(key or (), None)
        if self.plan.strict:
            self.partitions.clear()
        n_events, self.counts.events = self.counts.events, 0
        touched = self._take_in(events)
        self.counts.events = n_events
        if clock is not None:  # the events may be older, and newer, than what was seen
            self.clock = max(clock, self.clock or clock)
        return self._finish_batch(touched)

    def _take_in(self, events: Events) -> dict[Key, None]:
        """Take in events in stream order; return the partitions that have changed."""
        touched: dict[Key, None] = {}
        self.keeps_positions |= events.ids is None
        for i, event, key, kind in self._rows(events):
            self.counts.events += 1
            self.clock = event.ts
            if key is None:
                continue
            partition = self.partitions.get(key)
            if partition is None:
                partition = self.partitions[key] = Partition()
            position = self.position - 1 if self.plan.strict else partition.position
            identity = partition.position if events.ids is None else events.ids[i]
            partition.position += 1
            touched.setdefault(key)
            self._feed(key, partition, Event(position, event.ts, identity, event.row), kind)
            if partition.waiting and self.plan.query.output is Output.NON_OVERLAP:
                # What is chosen ends the partial matches that overlap it, before the next event makes more of them.
                self._choose_output({key: None})
        return touched

    def advance(self, clock: int) -> list[Found]:
        """Advance the time: no event with ``ts <= clock`` will come any more."""
        if self.clock is None or clock >= self.clock:
            self.clock = clock + 1
        return self._finish_batch(self.partitions)

    def finish(self) -> list[Found]:
        """End the stream: decide everything, and return the remaining matches."""
        for key, partition in self.partitions.items():
            partition.nodes.clear()
            self._decide(key, partition, None)
        matches = self._release_matches(dict.fromkeys(self.partitions))
        self.partitions.clear()
        return matches

    @property
    def live(self) -> int:
        """Return the number of partial matches that have not expired."""
        return self.live_in(range(len(self.plan.arcs.states)))

    def live_in(self, states: Collection[int]) -> int:
        """Return the number of partial matches in some states that have not expired."""
        return sum(1 for _ in self.live_nodes(states))

    def live_nodes(self, states: Collection[int]) -> Iterator[tuple[Key, MatchNode]]:
        """Yield the partial matches in some states that have not expired, with their partition keys."""
        has_expired, strict = self.engine.has_expired, self.plan.strict
        for key, partition in self.partitions.items():
            last = (self.position if strict else partition.position) - 1
            for node in partition.nodes:
                if node.state in states and not has_expired(node, last, self.clock or 0):
                    yield key, node

    def earliest_open_end(self) -> int | None:
        """Return the earliest match point that may still come out (``None``: any)."""
        if self.clock is None:
            return None
        points = [self.clock]
        for p in self.partitions.values():
            points += [u.trail.event.ts for u in p.undecided]
            points += [m.events[-1][1] for m in (*p.waiting, *p.ready)]
        return min(points)

    def _rows(self, events: Events) -> Iterator[tuple[int, Event, Key | None, str | None]]:
        """Yield each event with its row number, partition key (``None``: none) and type; count its position."""
        computed = {definition.name: definition for definition in self.plan.computed}

        def values(name: str) -> Sequence[Any]:
            if name in computed and name not in events.columns:
                return computed_values(computed[name], values, len(events))
            return events.values(name, self.plan.schema)

        rows = [values(name) for name in self.plan.row]
        keys = [events.values(name, self.plan.schema) for name in self.plan.keys]
        for i in range(len(events)):
            self.position += 1
            key: Key | None = tuple(column[i] for column in keys)
            if any(v is None for v in key or ()):
                key = None
            row = tuple(column[i] for column in rows)
            yield i, Event(0, events.ts[i], 0, row), key, events.types[i]

    def _feed(self, key: Key, partition: Partition, event: Event, kind: str | None) -> None:
        if partition.undecided:
            self._decide(key, partition, (event.position, event.ts))
        has_expired = self.engine.has_expired
        live = [n for n in partition.nodes if not has_expired(n, event.position, event.ts)]
        partition.nodes, complete = self.engine.feed(live, event, kind, self.counts)
        if complete:
            self._complete(key, partition, complete)
        if any(not types or kind in types for types in self.negated):
            partition.recent.append((event, kind))

    def _complete(self, key: Key, partition: Partition, complete: list[tuple[MatchNode, Accept]]) -> None:
        """Handle the bindings that end with the current event; of runs with the same binding the least error counts."""
        bindings: dict[object, tuple[MatchNode, list[Option]]] = {}
        for node, accept in complete:
            error = node.error + accept.cost + self._negation_cost(partition, node)
            if error <= self.engine.budget:
                # Runs of a hand-written automaton are told apart by the final state and the registers as well.
                apart = (node.state, node.registers) if self.plan.query.graph else ()
                _, options = bindings.setdefault((id(node.trail), apart), (node, []))
                options.append((error, node.history, accept.crossings))
        for node, options in bindings.values():
            steps = node.trail.steps()
            if not having_holds(self.plan, steps):
                continue
            if any(crossings for _, _, crossings in options):
                partition.undecided.append(Undecided(node.trail, options))
                continue
            values = self._registers(node) if self.plan.query.graph else None
            self._choose(key, partition, node.trail, min(error for error, _, _ in options), values)
            first_come = self.plan.query.output is Output.NON_OVERLAP and self.plan.is_unambiguous
            if first_come and any(accept.cost == 0 for accepted, accept in complete if accepted is node):
                # A longer match with this beginning has no smaller error, ends no earlier, and overlaps what it does.
                partition.nodes = [match_node for match_node in partition.nodes if match_node is not node]

    def _registers(self, node: MatchNode) -> tuple[Value, ...]:
        """Return the values of a match of a hand-written automaton: the final state and the registers."""
        return (self.plan.arcs.states[node.state].var, *node.registers)

    def _negation_cost(self, partition: Partition, node: MatchNode) -> int:
        """Return the cost of the negations broken before the last event of a run."""
        if node.history is None:
            return 0
        steps = node.trail.steps()
        window = self.plan.window
        cost = 0
        for j, crossing in crossings_of(node.history):
            if j:
                low, high = steps[j - 1][0].position + 1, steps[j][0].position
                events = partition.recent[_place(partition, low) : _place(partition, high)]
            else:
                first, last = steps[0][0], steps[-1][0]
                events = [*_earlier_events(partition, first, last, window)]
            cost += self._cost(node.trail, node.history, j, crossing, events)
        return cost

    def _cost(self, trail: Trail, history: CrossingHistory | None, j: int, crossing: Crossing, events: Typed) -> int:
        negation = self.plan.automaton.negations[crossing.negation]
        suspects = [e for e, kind in events if not negation.types or kind in negation.types]
        if negation.since is not None:
            suspects = [e for e in suspects if e.ts >= negation.since]
        count = count_breaks(self.plan, trail.steps(), history, j, crossing, suspects) if suspects else 0
        if not count:
            return 0
        return self.engine.budget + 1 if negation.weight is None else count * negation.weight

    def _decide(self, key: Key, partition: Partition, now: tuple[int, int] | None) -> None:
        """Decide the trailing negations whose time has passed at position and time ``now`` (``None``: all)."""
        window = self.plan.window
        assert window.span is not None or not partition.undecided
        still_undecided = []
        for undecided in partition.undecided:
            first, last = undecided.trail.first, undecided.trail.event
            if now is not None and window.covers(now[0] - first.position, now[1] - first.ts):
                still_undecided.append(undecided)
                continue
            later = partition.recent[_place(partition, last.position + 1) :]
            events = [(e, k) for e, k in later if window.covers(e.position - first.position, e.ts - first.ts)]
            steps = undecided.trail.steps()
            errors = []
            for error, history, crossings in undecided.options:
                costs = (self._cost(undecided.trail, history, len(steps), c, events) for c in crossings)
                errors.append(error + sum(costs))
            if min(errors) <= self.engine.budget:
                self._choose(key, partition, undecided.trail, min(errors))
        partition.undecided = still_undecided

    def _choose(
        self, key: Key, partition: Partition, trail: Trail, error: int, values: tuple[Value, ...] | None = None
    ) -> None:
        steps = trail.steps()
        events = tuple((e.position, e.ts, e.id, var) for e, var in steps)
        match = Complete(key, error, return_values(self.plan, steps) if values is None else values, events)
        if self.plan.query.output is Output.ALL:
            partition.ready.append(match)
        else:
            partition.waiting.append(match)

    def _finish_batch(self, touched: dict[Key, None] | dict[Key, Partition]) -> list[Found]:
        """Finish a batch: expire and decide by the clock, select and release matches, and drop idle state."""
        span, clock = self.plan.window.span, self.clock
        if clock is None:
            return []
        timed = span is not None and not self.plan.window.counted
        if timed and (self.swept is None or clock - self.swept > (span or 0)):
            self.swept = clock
            touched = self.partitions
        if not timed and len(self.partitions) > 2 * self.n_swept + FEW:
            touched = self.partitions
        keys = dict.fromkeys(touched)
        if self.waits or self.plan.query.output is not Output.ALL:
            keys |= dict.fromkeys(k for k, p in self.partitions.items() if p.undecided or p.waiting)
        if timed:
            for key in keys:
                partition = self.partitions[key]
                partition.nodes = [n for n in partition.nodes if not self.engine.has_expired(n, 0, clock)]
                self._decide(key, partition, (0, clock))
        matches = self._release_matches(keys)
        for key in keys:
            self._forget(key)
        if touched is self.partitions:
            self.n_swept = len(self.partitions)
        return matches

    def _release_matches(self, keys: dict[Key, None]) -> list[Found]:
        if self.plan.query.output is not Output.ALL:
            self._choose_output(keys)
        matches: list[Found] = []
        for key in keys:
            partition = self.partitions[key]
            undecided = [u.trail.event.position for u in partition.undecided]
            limit = min([*undecided, *(m.last for m in partition.waiting)], default=None)
            releasable = [m for m in partition.ready if limit is None or m.last <= limit]
            partition.ready = [m for m in partition.ready if not (limit is None or m.last <= limit)]
            # Bundles chain match points in stream order; among equal times the output order differs from it.
            matches += [self._release(partition, m) for m in sorted(releasable, key=lambda m: m.last)]
        self.counts.matches += len(matches)
        return matches

    def _choose_output(self, keys: dict[Key, None]) -> None:
        if self.plan.query.output.is_sequential and self.plan.strict:
            self._choose_in_turn(self.partitions)
            return
        for key in keys:
            partition = self.partitions[key]
            if self.plan.query.output.is_sequential:
                self._choose_in_turn({key: partition})
            elif partition.waiting:
                chosen, still_waiting = choose_earliest_maximal(partition.waiting, set(_starts(partition)))
                self._distribute(chosen, still_waiting, {key: partition})

    def _choose_in_turn(self, partitions: dict[Key, Partition]) -> None:
        """Choose matches that do not overlap among those of some partitions."""
        goes_on = True
        while goes_on and (waiting := [match for partition in partitions.values() for match in partition.waiting]):
            goes_on = False
            if self.plan.query.output is Output.NON_OVERLAP:
                prospects = [match for partition in partitions.values() for match in self._prospects(partition)]
                chosen, still_waiting = choose_non_overlapping(waiting, prospects)
                goes_on = bool(chosen)  # fewer matches may come now, so more of those that wait may be decided
                for partition in partitions.values():
                    _end_runs(partition, chosen)
            else:
                horizons = [h for partition in partitions.values() if (h := self._horizon(partition)) is not None]
                chosen, still_waiting = choose_by_first_event(waiting, min(horizons, default=None), self.plan.query)
            self._distribute(chosen, still_waiting, partitions)

    def _prospects(self, partition: Partition) -> Iterator[Prospect]:
        """Yield the matches that the active runs of a partition may become."""
        assert self.clock is not None
        for node in partition.nodes:
            error = node.error + (self.engine.states[node.state].cost_to_end or 0)
            yield Prospect(node.trail.first.position, error, self.clock)
        for run in partition.undecided:
            error = min(error for error, _, _ in run.options)
            yield Prospect(run.trail.first.position, error, run.trail.event.ts)

    def _distribute(
        self, chosen: list[Complete], still_waiting: list[Complete], partitions: dict[Key, Partition]
    ) -> None:
        for partition in partitions.values():
            partition.waiting = []
        for match in still_waiting:
            self.partitions[match.key].waiting.append(match)
        for match in chosen:
            self.partitions[match.key].ready.append(match)

    def _horizon(self, partition: Partition) -> int | None:
        """Return the earliest position at which a future match of the active runs may start."""
        return min(_starts(partition), default=None)

    def _release(self, partition: Partition, match: Complete) -> Found:
        position, point = match.events[-1][0], match.events[-1][1]
        last = partition.last
        if last is None or not self.plan.window.covers(position - last[1], point - last[0]):
            partition.bundle = point
        partition.last = (point, position)
        bound: dict[str, list[int | str]] = {}
        for _, _, identity, var in match.events:
            bound.setdefault(var, []).append(identity)
        return Found(
            key=match.key,
            start=match.events[0][1],
            end=point,
            error=self.plan.automaton.costs.unscale(match.error),
            bindings=tuple((v, tuple(bound[v])) for v in self.plan.variables if v in bound),
            bundle=partition.bundle,
            values=match.values,
            trail=tuple((e[2], e[3]) for e in match.events),
            apart=self.plan.query.graph is not None,
        )

    def _forget(self, key: Key) -> None:
        """Drop the recent events that no run can need any more, and the partition if nothing is left of it."""
        partition = self.partitions[key]
        window, clock = self.plan.window, self.clock
        assert clock is not None
        if partition.recent:
            oldest = self._horizon(partition)
            leading = any(n.leading for n in self.plan.automaton.negations)

            def is_needed(event: Event) -> bool:
                if oldest is not None and event.position >= oldest:
                    return True
                if not leading or window.span is None:
                    return False
                # An older event is more than a window before every event that is bound from now on.
                newest = self.position if self.plan.strict else partition.position
                return window.covers(newest - event.position, clock - event.ts)

            partition.recent = [(e, k) for e, k in partition.recent if is_needed(e)]
        position = self.position if self.plan.strict else partition.position  # of the next event
        waiting = partition.undecided or partition.waiting or partition.ready or partition.recent
        if waiting or self.keeps_positions:
            return
        if not all(self.engine.has_expired(node, position - 1, clock) for node in partition.nodes):  # some are live
            return
        # A match point that comes later may belong to the bundle of the last one, unless a window has passed.
        if partition.last is None or not window.covers(position - partition.last[1], clock - partition.last[0]):
            del self.partitions[key]


def _end_runs(partition: Partition, chosen: list[Complete]) -> None:
    """End the active runs that overlap matches which have been chosen. Those that go on reach beyond them."""
    last_position = max((match.last for match in chosen), default=-1)
    partition.nodes = [node for node in partition.nodes if node.trail.first.position > last_position]

    def is_free(run: Undecided) -> bool:
        first, last = run.trail.first.position, run.trail.event.position
        return not any(first <= match.last and match.first <= last for match in chosen)

    partition.undecided = [run for run in partition.undecided if is_free(run)]


def _earlier_events(
    partition: Partition, first: Event, last: Event, window: Window
) -> Iterator[tuple[Event, str | None]]:
    """Yield the recent events before ``first`` in the window that ends with ``last``, the newest one first."""
    for i in range(_place(partition, first.position) - 1, -1, -1):
        event, kind = partition.recent[i]
        if not window.covers(last.position - event.position, last.ts - event.ts):
            return
        yield event, kind


def _place(partition: Partition, position: int) -> int:
    """Return how many of the recent events stand before a position."""
    return bisect_left(partition.recent, position, key=lambda pair: pair[0].position)


def _starts(partition: Partition) -> list[int]:
    """Return the positions of the first events of all active runs."""
    trails = [*(node.trail for node in partition.nodes), *(undecided.trail for undecided in partition.undecided)]
    return [trail.first.position for trail in trails]
