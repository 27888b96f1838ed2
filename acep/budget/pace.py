"""The controller of ``cpu`` and ``latency``: how many touches an event the next stretch of events may take."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from acep.budget.budget import Budget
from acep.budget.cost import CostModel
from acep.errors import QueryError

__all__ = ["Pace", "pace_of"]

STRETCH, LONGEST = 4096, 65_536  # events between two looks at the clock: at first, and where they are soon done
SHORT = 2e-3  # seconds that may pass between these, but
PARTS = 16  # of a batch's seconds no more than one part in so many
CARRIED = 10.0  # seconds of the stream whose share is carried over at most
FIRST = 1.0  # seconds of the stream whose share there is before the first event
SPREAD, LONG = 4, 16  # stretches over which what was carried over, or overdrawn, is spread
LEAST = 0.25  # of the share, that a stretch has however much was overdrawn
MARGIN = 0.9  # of a batch's seconds; the rest is for what is not foreseen
SMOOTH = 0.8  # what is left of old averages after a new number


@dataclass
class Pace:
    """Seconds into touches. ``cpu``: the share of a core against the clock of the events, whose ticks take ``tick``
    seconds; ``latency``: seconds that a batch may take. What is measured is processor time of this thread for ``cpu``,
    and wall time for ``latency``, of the whole call and not of the core alone.

    The order of calls for a batch: ``begin``; for each stretch of it ``rate`` and ``measured``; ``end``.
    """

    cpu: float | None = None
    latency: float | None = None
    tick: float = 0.0
    work: CostModel = field(default_factory=CostModel)  # processor time
    wall: CostModel = field(default_factory=CostModel)
    balance: float = 0.0  # seconds of the processor that may still be used
    clock: int | None = None  # time of the last event that was paid for
    around: list[float] = field(default_factory=lambda: [0.0, 0.0])  # an event, beside the core: processor, wall
    learning: float = 0.0  # what a policy takes to learn, on average
    rates: list[float] = field(default_factory=list)  # of the stretches of this batch
    stretch: int = STRETCH  # events that the next one may have

    def begin(self, events: int, clock: int) -> None:
        """A batch of so many events is there, of which the first has time ``clock``."""
        if self.clock is None:
            self.clock, self.balance = clock, (self.cpu or 0.0) * FIRST
        self._events = self._left = events
        self._inside = [0.0, 0.0]
        self._began = _clocks()
        self.rates = []

    def rate(self, events: int, clock: int, *, learns: bool) -> float:
        """Touches an event that the next ``events`` of the batch may take, which end at time ``clock``; ``learns``:
        a policy learns after them."""
        found = math.inf
        if self.cpu is not None:
            assert self.clock is not None
            income, before = self.cpu * (clock - self.clock) * self.tick, self.balance
            self.balance = min(before + income, self.cpu * CARRIED)
            self.clock = clock
            # What the call takes around the core is set aside. What was overdrawn, as by a policy that learned, is
            # paid back little by little: without any allowance all that waits would be lost.
            due = max(self.balance - before + before / (SPREAD if before > 0 else LONG), LEAST * income)
            seconds = due - self.around[0] * events
            found = min(found, self.work.touches(max(seconds, 0.0), events) / max(events, 1))
        if self.latency is not None:
            # What is left of the batch's time is for all its events alike.
            used = _clocks()[1] - self._began[1]
            rest = self.latency * MARGIN - used - self.around[1] * self._events - (self.learning if learns else 0.0)
            found = min(found, self.wall.touches(max(rest, 0.0), self._left) / max(self._left, 1))
        self._left = max(0, self._left - events)
        self.rates.append(found)
        self._started = _clocks()
        return found

    def measured(self, events: int, touches: float, learning: float) -> None:
        """The stretch is done; ``learning``: seconds of it in which policies learned."""
        spent = [now - then for now, then in zip(_clocks(), self._started, strict=True)]
        self._inside = [a + b for a, b in zip(self._inside, spent, strict=True)]
        short = SHORT if self.latency is None else min(SHORT, self.latency / PARTS)
        if spent[1] > short:
            self.stretch = max(self.stretch // 2, STRETCH)
        elif 2 * spent[1] < short and events >= self.stretch:
            self.stretch = min(2 * self.stretch, LONGEST)
        if learning > 0:
            self.learning = learning if self.learning == 0 else SMOOTH * self.learning + (1 - SMOOTH) * learning
        self.balance -= spent[0]
        self.work.learn(events, touches, max(0.0, spent[0] - learning))
        self.wall.learn(events, touches, max(0.0, spent[1] - learning))

    def end(self, processor: float, wall: float) -> None:
        """The call is over, which took so many seconds."""
        if not getattr(self, "_events", 0):
            return
        for k, whole in enumerate((processor, wall)):
            outside = max(0.0, whole - self._inside[k])
            if k == 0:
                self.balance -= outside
            own = outside / self._events
            self.around[k] = own if self.around[k] == 0 else SMOOTH * self.around[k] + (1 - SMOOTH) * own
        if self.cpu is not None:
            self.balance = max(self.balance, -self.cpu * CARRIED)
        self._events = 0

    def dump(self) -> dict[str, Any]:
        """Its state as JSON-like data."""
        numbers = {"balance": self.balance, "clock": self.clock, "learning": self.learning, "around": self.around}
        return {"work": self.work.state(), "wall": self.wall.state(), **numbers}

    def load(self, data: Mapping[str, Any]) -> None:
        """Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for what is no such state."""
        self.work, self.wall = CostModel.restore(data["work"]), CostModel.restore(data["wall"])
        self.clock = None if data["clock"] is None else int(data["clock"])
        numbers = [float(x) for x in (data["balance"], data["learning"], *data["around"])]
        if len(numbers) != 4 or not all(math.isfinite(x) for x in numbers):
            raise ValueError("pace")
        self.balance, self.learning, self.around = numbers[0], numbers[1], numbers[2:]


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
