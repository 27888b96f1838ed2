"""The controller of ``cpu`` and ``latency``: how many touches and matches the next stretch of events may have."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from acep.budget.budget import Budget
from acep.budget.cost import MATCH, TOUCH, CostModel
from acep.errors import QueryError

__all__ = ["Pace", "pace_of"]

# Events between two looks at the clock: as long as costs are not known, then, and where they are soon done.
SHORTEST, STRETCH, LONGEST = 256, 4096, 65_536
SHORT = 2e-3  # seconds that may pass between these, but
PARTS = 16  # of a batch's seconds no more than one part in so many
CARRIED = 10.0  # seconds of the stream whose share is carried over at most
FIRST = 1.0  # seconds of the stream whose share there is before the first event
SPREAD, LONG = 4, 16  # stretches over which what was carried over, or overdrawn, is spread
LEAST = 0.25  # of the share, that a stretch has however much was overdrawn
MARGIN = 0.9  # of a batch's seconds; the rest is for what is not foreseen
MATCHES = 0.5  # of what there is beside the events, that matches may take: what is left by the rest is not known before
BESIDE = 1e-7  # seconds that a match takes beside the core, until it is measured
GROWTH = 3  # times as many touches or matches as ever before, at most, on the strength of what these cost
SMOOTH = 0.8  # what is left of old averages after a new number


@dataclass
class Pace:
    """Seconds into touches. ``cpu``: the share of a core against the clock of the events, whose ticks take ``tick``
    seconds; ``latency``: seconds that a batch may take. What is measured is processor time of this thread for ``cpu``,
    and wall time for ``latency``, of the whole call and not of the core alone.

    What events, touches and matches cost is not known at first, and supposed to be much; the first stretches are short,
    so that it is soon measured.

    The order of calls for a batch: ``begin``; for each stretch of it ``rate`` and ``measured``; ``end``.
    """

    cpu: float | None = None
    latency: float | None = None
    tick: float = 0.0
    work: CostModel = field(default_factory=CostModel)  # processor time
    wall: CostModel = field(default_factory=CostModel)
    balance: float = 0.0  # seconds of the processor that may still be used
    clock: int | None = None  # time of the last event that was paid for
    # Beside the core, as those: events and matches.
    around: list[CostModel] = field(default_factory=lambda: [CostModel(0.0, TOUCH, BESIDE) for _ in range(2)])
    made: float | None = None  # matches an event, on average
    most: list[float] = field(default_factory=lambda: [0.0, 0.0])  # of a stretch so far: touches an event, matches
    learning: float = 0.0  # what a policy takes to learn, on average
    rates: list[float] = field(default_factory=list)  # of the stretches of this batch
    stretch: int = SHORTEST  # events that the next one may have

    def begin(self, events: int, clock: int) -> None:
        """A batch of so many events is there, of which the first has time ``clock``."""
        if self.clock is None:
            self.clock, self.balance = clock, (self.cpu or 0.0) * FIRST
        self._events = self._left = events
        self._inside, self._matches = [0.0, 0.0], 0
        self._began = _clocks()
        self.rates = []

    def rate(self, events: int, clock: int, *, learns: bool) -> tuple[float, float]:
        """Touches an event that the next ``events`` of the batch may take, which end at time ``clock``, and matches
        that they may have in all; ``learns``: a policy learns after them."""
        found = matches = math.inf
        if self.cpu is not None:
            assert self.clock is not None
            income, before = self.cpu * (clock - self.clock) * self.tick, self.balance
            self.balance = min(before + income, self.cpu * CARRIED)
            self.clock = clock
            # What the call takes around the core is set aside. What was overdrawn, as by a policy that learned, is
            # paid back little by little: without any allowance all that waits would be lost.
            due = max(self.balance - before + before / (SPREAD if before > 0 else LONG), LEAST * income)
            found, matches = self._shared(0, due, events, events)
        if self.latency is not None:
            # What is left of the batch's time is for all its events alike.
            used = _clocks()[1] - self._began[1]
            rest = self.latency * MARGIN - used - (self.learning if learns else 0.0)
            rest -= self.around[1].match * self._matches
            both = self._shared(1, rest, self._left, self._events)
            found, matches = min(found, both[0]), min(matches, both[1])
        self._left = max(0, self._left - events)
        self.rates.append(found)
        self._started = _clocks()
        return found, matches

    def _shared(self, clock: int, seconds: float, events: int, around: int) -> tuple[float, float]:
        """Touches an event, and matches, for which ``seconds`` suffice beside ``events`` in the core and what is
        around it for so many. Matches come in bursts: there may be as many as half of it suffices for, and no more is
        kept from the touches than what they are likely to take. What more than there ever were of either cost is not
        known: by what was measured there may be so many times as much, and else what is supposed."""
        model, beside = (self.work, self.wall)[clock], self.around[clock]
        rest = max(0.0, seconds - beside.event * around - model.event * events)
        each = model.match + beside.match
        likely = math.inf if self.made is None else self.made * each * events
        others = rest - min(likely, MATCHES * rest)
        touches = min(others / model.touch, max(GROWTH * self.most[0] * events, others / TOUCH))
        matches = min(MATCHES * rest / each, max(GROWTH * self.most[1], MATCHES * rest / (MATCH + BESIDE)))
        return touches / max(events, 1), matches

    def measured(self, events: int, touches: float, learning: float, *, matches: int = 0) -> None:
        """The stretch is done; ``learning``: seconds of it in which policies learned."""
        spent = [now - then for now, then in zip(_clocks(), self._started, strict=True)]
        self._inside = [a + b for a, b in zip(self._inside, spent, strict=True)]
        short = SHORT if self.latency is None else min(SHORT, self.latency / PARTS)
        if self.stretch < STRETCH:
            self.stretch *= 2
        elif spent[1] > short:
            self.stretch = max(self.stretch // 2, STRETCH)
        elif 2 * spent[1] < short and events >= self.stretch:
            self.stretch = min(2 * self.stretch, LONGEST)
        if learning > 0:
            self.learning = learning if self.learning == 0 else SMOOTH * self.learning + (1 - SMOOTH) * learning
        self.balance -= spent[0]
        self.work.learn(events, touches, max(0.0, spent[0] - learning), matches=matches)
        self.wall.learn(events, touches, max(0.0, spent[1] - learning), matches=matches)
        self._matches += matches
        own = matches / events
        self.most = [max(self.most[0], touches / events), max(self.most[1], matches)]
        self.made = own if self.made is None else max(own, SMOOTH * self.made + (1 - SMOOTH) * own)

    def end(self, processor: float, wall: float) -> None:
        """The call is over, which took so many seconds."""
        if not getattr(self, "_events", 0):
            return
        since = [now - then for now, then in zip(_clocks(), self._began, strict=True)]
        for k, took in enumerate((processor, wall)):
            ready = self.around[k].sums[0] > 0  # what makes a session ready for its first batch comes once
            outside = max(0.0, (took if ready else min(took, since[k])) - self._inside[k])
            if k == 0:
                self.balance -= outside
            self.around[k].learn(self._events, 0, outside, SMOOTH, matches=self._matches)
        if self.cpu is not None:
            self.balance = max(self.balance, -self.cpu * CARRIED)
        self._events = 0

    def dump(self) -> dict[str, Any]:
        """Its state as JSON-like data."""
        numbers = {
            "balance": self.balance,
            "clock": self.clock,
            "learning": self.learning,
            "made": self.made,
            "most": self.most,
        }
        models = {"work": self.work.state(), "wall": self.wall.state(), "around": [m.state() for m in self.around]}
        return models | numbers

    def load(self, data: Mapping[str, Any]) -> None:
        """Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for what is no such state."""
        self.work, self.wall = CostModel.restore(data["work"]), CostModel.restore(data["wall"])
        self.clock = None if data["clock"] is None else int(data["clock"])
        processor, wall = data["around"]
        self.around = [CostModel.restore(processor), CostModel.restore(wall)]
        self.made = None if data["made"] is None else float(data["made"])
        self.balance, self.learning = float(data["balance"]), float(data["learning"])
        touches, matches = map(float, data["most"])
        self.most = [touches, matches]
        numbers = (self.learning, self.made or 0.0, *self.most)
        if not math.isfinite(self.balance) or not all(math.isfinite(x) and x >= 0 for x in numbers):
            raise ValueError("pace")


def pace_of(budget: Budget, tick_ns: int | Fraction | None) -> Pace | None:
    """What keeps a stream with ticks of ``tick_ns`` nanoseconds to the time that a budget gives it; ``None``: it
    sets no bound of time.

    Raises :class:`QueryError` for a share of a core against a clock whose ticks have no known length.

    >>> pace_of(Budget(work=5), None) is None, pace_of(Budget(cpu=0.5, speed=10), 10**9).tick
    (True, 0.1)
    """
    if budget.cpu is None and budget.latency is None:
        return None
    if budget.cpu is not None and tick_ns is None:
        raise QueryError(
            "cpu= is a share of a core against the clock of the events, and the ticks of an integer ts have no length",
            hint='unit=, as in unit="ms"',
        )
    tick = 0.0 if tick_ns is None else float(Fraction(tick_ns) / 10**9) / budget.speed
    return Pace(budget.cpu, budget.latency, tick)


def _clocks() -> tuple[float, float]:
    return time.thread_time(), time.perf_counter()
