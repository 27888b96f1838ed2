"""An account of Flink CEP for small streams of one key: states with edges that take, ignore or pass on an event.

It is derived from what Flink publishes: its documentation of the pattern API, the rules by which it makes an automaton
of a pattern, and the results that its own tests expect (``PUBLISHED`` in ``flink_cases.py``). It shares no code with
acep.

A step becomes states. An edge ``take`` binds the event and leads on, an edge ``ignore`` leaves it out, and an edge
``proceed`` hands the event to another state. Every edge has a condition on the event. A partial match that can neither
take nor ignore an event is gone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]
Bound = tuple[tuple[str, int], ...]  # name of the step and place of the event, in the order of the stream
Context = Callable[[str], list[Event]]  # the events of a step so far
Condition = Callable[[Event, Context], bool]

STRICT, RELAXED, ANY = "strict", "relaxed", "any"
TAKE, IGNORE, PROCEED = "take", "ignore", "proceed"
MANY = math.inf


@dataclass(frozen=True)
class Step:
    """A step: its condition, its contiguity to the event before, how often it comes, and what may not come first."""

    name: str
    fits: Condition
    contiguity: str = RELAXED  # next, followedBy, followedByAny
    low: int = 1
    high: float = 1  # MANY: oneOrMore, timesOrMore
    inner: str = RELAXED  # between the events of a loop: consecutive, the default, allowCombinations
    greedy: bool = False
    until: Condition | None = None
    not_next: Condition | None = None
    not_followed: Condition | None = None


def kind(*types: str) -> Condition:
    """Be of one of these types."""
    return lambda event, _: event["type"] in types


def always(_event: Event, _context: Context) -> bool:
    return True


def negated(condition: Condition | None) -> Condition:
    """Do not satisfy the condition; without one, always hold."""
    return lambda event, context: condition is None or not condition(event, context)


def both(*conditions: Condition) -> Condition:
    return lambda event, context: all(condition(event, context) for condition in conditions)


@dataclass(eq=False)
class State:
    """A state. ``pending``: a partial match in it is a match once its time is over."""

    step: str
    edges: list[tuple[str, Condition, State]] = field(default_factory=list)
    pending: bool = False

    def add(self, action: str, condition: Condition, target: State) -> None:
        self.edges.append((action, condition, target))

    def copy(self) -> State:
        """Return a state that does the same. What leads back to this one leads back to the copy there."""
        copy = State(self.step, pending=self.pending)
        copy.edges = [(action, holds, copy if target is self else target) for action, holds, target in self.edges]
        return copy


@dataclass
class Compiler:
    """The states of a pattern, made from its last step to its first. A partial match in ``stop`` is given up."""

    end: State = field(default_factory=lambda: State("end"))
    stop: State = field(default_factory=lambda: State("stop"))

    def compile(self, steps: Sequence[Step], not_at_end: Condition | None) -> State:
        """Return the state in which a match begins. ``not_at_end``: notFollowedBy as the last step."""
        assert steps[0].low > 0, "an optional first step is left out here"
        sink = self.end
        if not_at_end is not None:
            sink = State("not", pending=True)
            sink.add(PROCEED, not_at_end, self.stop)
            sink.add(IGNORE, negated(not_at_end), sink)
        for step, following in zip(reversed(steps), [None, *reversed(steps[1:])], strict=True):
            sink = self._states_of(step, sink, following)
        return sink

    def _states_of(self, step: Step, sink: State, following: Step | None) -> State:
        assert step.low > 0 or step.not_followed is None, "an optional step behind notFollowedBy is left out here"
        take = both(step.fits, negated(step.until))
        inner = ignoring(step.inner, step.fits)
        if inner is not None:
            inner = both(inner, negated(step.until))
        last_times = max(step.low, 1)
        # A greedy loop: what follows may not touch an event that the loop could take, unless the loop was stopped.
        after_until = sink.copy() if step.greedy and step.until is not None else None
        if step.greedy and step.high > last_times:
            sink.edges = [(action, both(condition, negated(step.fits)), to) for action, condition, to in sink.edges]
        beyond = following.not_followed if following is not None else None
        first = sink
        if step.high == MANY:
            first = self._looping(step, take, inner, sink, after_until)
            self._forbid(first, beyond)
        for optional in [True] * int(step.high - last_times if step.high < MANY else 0) + [False] * (last_times - 1):
            first = self._single(step, take, inner, first, [(always, sink)] if optional else [])
            self._forbid(first, beyond)
        # The first event: no condition of until bounds the time before it.
        ways_past = self._ways_past(step, sink, after_until) if not step.low else []
        first = self._single(step, take, ignoring(step.contiguity, step.fits), first, ways_past)
        self._forbid(first, step.not_followed)
        if step.not_next is None:
            return first
        before = State("not")
        before.add(PROCEED, negated(step.not_next), first)
        before.add(PROCEED, step.not_next, self.stop)
        return before

    @staticmethod
    def _ways_past(step: Step, sink: State, after_until: State | None) -> list[tuple[Condition, State]]:
        if after_until is None:
            return [(always, sink)]
        assert step.until is not None
        return [(step.until, after_until), (negated(step.until), sink)]

    def _looping(
        self, step: Step, take: Condition, ignore: Condition | None, sink: State, after_until: State | None
    ) -> State:
        looping = State(step.name)
        for condition, target in self._ways_past(step, sink, after_until):
            looping.add(PROCEED, condition, target)
        looping.add(TAKE, take, looping)
        if ignore is not None:
            waiting = State(step.name)
            waiting.add(TAKE, take, looping)
            waiting.add(IGNORE, ignore, waiting)
            looping.add(IGNORE, ignore, waiting)
        return looping

    @staticmethod
    def _single(
        step: Step,
        take: Condition,
        ignore: Condition | None,
        sink: State,
        ways_past: list[tuple[Condition, State]],
    ) -> State:
        state = State(step.name)
        state.add(TAKE, take, sink)
        for condition, target in ways_past:
            state.add(PROCEED, condition, target)
        if ignore is not None:
            waiting = state
            if ways_past:  # the event has been handed on already: only one of the two goes on with the next step
                waiting = State(step.name)
                waiting.add(TAKE, take, sink)
                waiting.add(IGNORE, ignore, waiting)
            state.add(IGNORE, ignore, waiting)
        return state

    def _forbid(self, state: State, condition: Condition | None) -> None:
        """Let an event end the partial matches in a state, and in those that wait behind it."""
        if condition is not None:
            for place in {state, *(target for action, _, target in state.edges if action == IGNORE)}:
                place.add(PROCEED, condition, self.stop)


def ignoring(contiguity: str, fits: Condition) -> Condition | None:
    """Return which events may be left out; ``None``: none."""
    return {STRICT: None, RELAXED: negated(fits), ANY: always}[contiguity]


@dataclass(frozen=True)
class Partial:
    """A partial match in a state."""

    state: State
    bound: Bound

    @property
    def first(self) -> float:
        return self.bound[0][1] if self.bound else math.inf


@dataclass
class Machine:
    """Partial matches over events. ``within`` bounds a match, ``pace`` the time from an event to the next one.

    With a skip strategy a match waits until no partial match that began earlier is left.
    """

    compiler: Compiler
    start: State
    events: Sequence[Event]
    within: float
    pace: float
    skip: str
    matches: set[Bound] = field(default_factory=set)

    def run(self) -> set[Bound]:
        partials = [Partial(self.start, ())]
        completed: list[Bound] = []
        for place, event in enumerate(self.events):
            partials, expired = self._expire(partials, event["ts"])
            partials, completed = self._give(partials, completed + expired)
            advanced: list[Partial] = []
            for partial in partials:
                following, ended = self._advance(partial, place)
                advanced += following
                completed += ended
            partials, completed = self._give(advanced, completed)
        partials, expired = self._expire(partials, math.inf)
        self._give(partials, completed + expired)
        return self.matches

    def _expire(self, partials: list[Partial], now: float) -> tuple[list[Partial], list[Bound]]:
        """Take out the partial matches whose time is over. Flink's windows do not include their end."""
        over = [
            bool(p.bound)
            and (
                now - self.events[p.bound[0][1]]["ts"] >= self.within < math.inf
                or now - self.events[p.bound[-1][1]]["ts"] >= self.pace < math.inf
            )
            for p in partials
        ]
        pairs = list(zip(partials, over, strict=True))
        return [p for p, late in pairs if not late], [p.bound for p, late in pairs if late and p.state.pending]

    def _advance(self, partial: Partial, place: int) -> tuple[list[Partial], list[Bound]]:
        """Show an event to a partial match; return those that come of it, and the matches."""
        event, following, ended, stopped = self.events[place], list[Partial](), list[Bound](), False

        def context(name: str) -> list[Event]:
            return [self.events[at] for step, at in partial.bound if step == name]

        for action, source, target in self._edges(partial.state, event, context):
            if target is self.compiler.stop:
                stopped = True
            elif action == TAKE:
                after = Partial(target, (*partial.bound, (source.step, place)))
                following += [after] if target is not self.compiler.end else []
                if self._reaches_end(target, event, context):
                    ended.append(after.bound)
            elif partial.bound:
                following.append(Partial(target, partial.bound))
        return ([] if stopped else following) + ([] if partial.bound else [partial]), ended

    def _edges(self, state: State, event: Event, context: Context) -> Iterator[tuple[str, State, State]]:
        """The edges for an event, with where they begin and lead, also of the states that it is handed on to."""
        for action, condition, target in state.edges:
            if condition(event, context):
                if action == PROCEED and target is not self.compiler.stop:
                    yield from self._edges(target, event, context)
                else:
                    yield action, state, target

    def _reaches_end(self, state: State, event: Event, context: Context) -> bool:
        return state is self.compiler.end or any(
            self._reaches_end(target, event, context)
            for action, condition, target in state.edges
            if action == PROCEED and target is not self.compiler.stop and condition(event, context)
        )

    def _give(self, partials: list[Partial], completed: list[Bound]) -> tuple[list[Partial], list[Bound]]:
        """Give the matches that need not wait; return the partial matches and the matches that are left."""
        if self.skip == "none":
            self.matches.update(completed)
            return partials, []
        completed = sorted(set(completed), key=lambda bound: bound[0][1])
        while completed and completed[0][0][1] <= min((p.first for p in partials), default=math.inf):
            first, last = completed[0][0][1], completed[0][-1][1]
            ties = [bound for bound in completed if bound[0][1] == first]
            assert len(ties) == 1, (
                "two matches of one event are complete at once: Flink does not say which one it takes"
            )
            self.matches.add(completed[0])
            ends = {"past": last, "next": first}
            cut = ends[self.skip] if self.skip in ends else self._before_target(completed[0])
            completed = [bound for bound in completed[1:] if bound[0][1] > cut]
            partials = [p for p in partials if p.first > cut]
        return partials, completed

    def _before_target(self, bound: Bound) -> int:
        """The place before the first or last event of the step that is skipped to; without one nothing is skipped."""
        way, name = self.skip.split()
        targets = [place for step, place in bound if step == name]
        return (min if way == "first" else max)(targets) - 1 if targets else -1


def matches(
    steps: Sequence[Step],
    events: Sequence[Event],
    *,
    skip: str = "none",
    within: float = math.inf,
    pace: float = math.inf,
    not_at_end: Condition | None = None,
) -> set[Bound]:
    """The matches of steps over events in order of time. ``skip``: ``"none"``, ``"next"``, ``"past"`` the last
    event, or to the ``"first b"`` or ``"last b"`` event of a step ``b``.

    ``not_at_end``: notFollowedBy as the last step, with ``within``.
    """
    compiler = Compiler()
    start = compiler.compile(steps, not_at_end)
    return Machine(compiler, start, events, within, pace, skip).run()
