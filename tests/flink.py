"""An independent account of Flink CEP for small streams of one key: each match of a chain of steps, and skips.

It follows the documentation of Flink's pattern API and knows no automaton: it enumerates, for each event that a partial
match has bound, the events that may come next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]
Bound = tuple[tuple[str, int], ...]  # name of the step and place of the event, in the order of the stream
Condition = Callable[[Event, Callable[[str], list[Event]]], bool]  # the context gives the events of a step so far

STRICT, RELAXED, ANY = "strict", "relaxed", "any"


@dataclass(frozen=True)
class Step:
    """A step: its condition, its contiguity to the event before, how often it comes, and what may not come first."""

    name: str
    fits: Condition
    contiguity: str = RELAXED  # next, followedBy, followedByAny
    low: int = 1
    high: float = 1
    inner: str = RELAXED  # between the events of a loop: consecutive, the default, allowCombinations
    greedy: bool = False
    until: Condition | None = None
    not_next: Condition | None = None
    not_followed: Condition | None = None


def kind(*types: str) -> Condition:
    """Be of one of these types."""
    return lambda event, _: event["type"] in types


@dataclass(frozen=True)
class Found:
    """A match: what it binds, and the position of the event with which it is complete."""

    bound: Bound
    done: int

    @property
    def first(self) -> int:
        return self.bound[0][1]

    @property
    def last(self) -> int:
        return self.bound[-1][1]


@dataclass
class Search:
    """All matches of steps over events. ``within`` bounds a match, ``pace`` the time from an event to the next one."""

    steps: Sequence[Step]
    events: Sequence[Event]
    within: float = math.inf
    pace: float = math.inf
    not_at_end: Condition | None = None  # notFollowedBy as the last step
    found: set[Found] = field(default_factory=set)
    waits: dict[int, int] = field(default_factory=dict)  # by first event: where the last partial match has ended

    def all(self) -> set[Found]:
        first = self.steps[0]
        assert first.low > 0, "an optional first step is left out here"
        for place, event in enumerate(self.events):
            if first.fits(event, lambda _: []) and not (first.until and first.until(event, lambda _: [])):
                self._from(0, 1, ((first.name, place),))
        return self.found

    def _from(self, at: int, count: int, bound: Bound, closed: Condition | None = None) -> None:
        """Go on behind ``count`` events of a step. ``closed``: the condition of a greedy loop before it."""
        if at == len(self.steps):
            self._end(bound)
            return
        step = self.steps[at]
        if count < step.high:
            for place in self._next(at, count, bound, closed):
                self._from(at, count + 1, (*bound, (step.name, place)))
        if count >= step.low:
            self._from(at + 1, 0, bound, step.fits if step.greedy and step.low < step.high else None)

    def _next(self, at: int, count: int, bound: Bound, closed: Condition | None) -> Iterator[int]:
        """The places of the events that the step takes next."""
        step, last = self.steps[at], bound[-1][1]
        following = self.steps[at + 1].not_followed if at + 1 < len(self.steps) and count >= step.low else None
        forbids = [one for one in (step.until, closed, following) if one]
        forbids += [step.not_followed] if step.not_followed and not count else []
        how, place = step.inner if count else step.contiguity, last
        for place in range(last + 1, len(self.events)):
            event, context = self.events[place], self._context(bound)
            if self._late(bound, place) or any(forbidden(event, context) for forbidden in forbids):
                break
            if place == last + 1 and not count and step.not_next and step.not_next(event, context):
                break
            if fits := step.fits(event, context):
                yield place
            if how == STRICT or (how == RELAXED and fits):
                break
        else:
            place = len(self.events)
        self._waited(bound, place)

    def _end(self, bound: Bound) -> None:
        if self.not_at_end is None:
            self.found.add(Found(bound, bound[-1][1]))
            return
        for place in range(bound[-1][1] + 1, len(self.events)):
            if self._late(bound, place):
                break
            if self.not_at_end(self.events[place], self._context(bound)):
                self._waited(bound, place)
                return
        else:
            place = len(self.events)
        self._waited(bound, place)
        self.found.add(Found(bound, place))

    def _late(self, bound: Bound, place: int) -> bool:
        """Whether a partial match has timed out at the event: Flink's windows do not include their end."""
        now, (first, last) = self.events[place]["ts"], (self.events[bound[i][1]]["ts"] for i in (0, -1))
        return bool(now - first >= self.within or now - last >= self.pace)

    def _context(self, bound: Bound) -> Callable[[str], list[Event]]:
        return lambda name: [self.events[place] for step, place in bound if step == name]

    def _waited(self, bound: Bound, place: int) -> None:
        self.waits[bound[0][1]] = max(self.waits.get(bound[0][1], 0), place)


def matches(steps: Sequence[Step], events: Sequence[Event], *, skip: str = "none", **how: Any) -> set[Bound]:
    """The matches of steps over events in order of time. ``skip``: ``"none"``, ``"next"`` or ``"past"`` the last event.

    A match waits until no partial match that began earlier is left. Where two matches begin at one event and are
    complete with one event, Flink does not say which one it takes, so a skip strategy refuses them here.
    """
    search = Search(steps, events, **how)
    found = search.all()
    if skip == "none":
        return {one.bound for one in found}
    assert len({(one.first, one.done) for one in found}) == len(found), "two matches of one event are complete at once"
    given: set[Bound] = set()
    waiting: list[Found] = []
    cut = -1  # what begins here or earlier has been discarded
    for place in range(len(events) + 1):
        waiting += [one for one in found if one.done == place and one.first > cut]
        waiting.sort(key=lambda one: (one.first, one.done))
        while waiting:
            one = waiting[0]
            ended = place == len(events) and search.within < math.inf
            if not ended and any(cut < first < one.first and until > place for first, until in search.waits.items()):
                break
            given.add(one.bound)
            cut = one.last if skip == "past" else one.first
            waiting = [other for other in waiting if other.first > cut]
    return given
