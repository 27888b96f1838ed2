"""Control ``cpu`` and ``latency``: compute how many touches and matches the next stretch of events may have."""

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

# Events between two readings of the clock: at first, while costs are unknown; normally; and at most, if they are fast.
SHORTEST, STRETCH, LONGEST = 256, 4096, 65_536
SHORT = 2e-3  # seconds that may pass between two readings,
PARTS = 16  # and at most one part in so many of a batch's seconds
CARRIED = 10.0  # the most seconds of the stream whose unused budget is carried over
FIRST = 1.0  # seconds of the stream whose budget is available before the first event
SPREAD, LONG = 4, 16  # stretches over which an unused budget, or an overdraft, is spread
LEAST = 0.25  # share of its budget that a stretch gets after any overdraft
MARGIN = 0.9  # share of a batch's seconds that is planned; the rest is a reserve
MATCHES = 0.5  # share of the time beside the events that matches may take, as their number is unknown in advance
BESIDE = 1e-7  # seconds that a match takes outside the native core, until it is measured
GROWTH = 3  # most touches or matches relative to the earlier maximum, if measured costs are used
SMOOTH = 0.8  # weight of an old average after a new number


@dataclass
class Pace:
    """The conversion of a time budget to touches. ``cpu`` is the share of a core relative to the clock of the events,
    whose ticks take ``tick`` seconds; ``latency`` is the time for a batch in seconds. The processor time of this thread
    is measured for ``cpu``, and wall time for ``latency``, both for the whole call and not only the native core.

    The costs of events, touches and matches are unknown at first and assumed to be high. The first stretches are short,
    so that they are soon measured.

    The order of calls for a batch is: ``begin``; ``rate`` and ``measured`` for each stretch of it; ``end``.
    """

    cpu: float | None = None
    latency: float | None = None
    tick: float = 0.0
    work: CostModel = field(default_factory=CostModel)  # processor time
    wall: CostModel = field(default_factory=CostModel)
    balance: float = 0.0  # processor seconds that may still be used
    clock: int | None = None  # time of the last event whose budget was added
    # The same two models for the time outside the native core, by events and matches.
    around: list[CostModel] = field(default_factory=lambda: [CostModel(0.0, TOUCH, BESIDE) for _ in range(2)])
    made: float | None = None  # average matches per event
    most: list[float] = field(default_factory=lambda: [0.0, 0.0])  # maxima of a stretch: touches per event, matches
    learning: float = 0.0  # average seconds in which a policy learns
    rates: list[float] = field(default_factory=list)  # touches per event of the stretches of this batch
    stretch: int = SHORTEST  # the most events of the next stretch
    each: float = 0.0  # average wall seconds of an event in the native core, while nothing is shed
    # What was measured while nothing is shed, until it is learned: events, touches, matches, both kinds of seconds; and
    # around the native core: events, matches, both kinds of seconds.
    pending: list[float] = field(default_factory=lambda: [0.0] * 5)
    pending_around: list[float] = field(default_factory=lambda: [0.0] * 4)

    def begin(self, events: int, clock: int) -> None:
        """Begin a batch of ``events``, the first of them at time ``clock``."""
        if self.clock is None:
            self.clock, self.balance = clock, (self.cpu or 0.0) * FIRST
        self._events = self._left = events
        self._inside, self._matches = [0.0, 0.0], 0
        self._began = _clocks()
        self.rates = []

    def rate(self, events: int, clock: int, *, learns: bool, is_resting: bool = False) -> tuple[float, float]:
        """Return the budget of the next ``events`` of the batch, which end at time ``clock``: touches per event, and
        matches in all. ``learns``: a policy learns after them. ``is_resting``: nothing has been shed of late; then they
        may use all the time that is left, if it suffices for the rest of the batch at the speed so far."""
        found = matches = math.inf
        if self.cpu is not None:
            assert self.clock is not None
            income, before = self.cpu * (clock - self.clock) * self.tick, self.balance
            self.balance = min(before + income, self.cpu * CARRIED)
            self.clock = clock
            # An overdraft, for example from the learning of a policy, is paid back gradually: without any budget
            # all partial matches would be lost. `_shared` sets aside the time outside the native core.
            spread = 1 if is_resting else SPREAD
            due = max(self.balance - before + before / (spread if before > 0 else LONG), LEAST * income)
            found, matches = self._shared(0, due, events, events)
        if self.latency is not None:
            # The rest of the batch's time is divided equally among its remaining events.
            used = _clocks()[1] - self._began[1]
            rest = self.latency * MARGIN - used - (self.learning if learns else 0.0)
            rest -= self.around[1].match * self._matches
            alone = is_resting and self.each * self._left <= rest
            both = self._shared(1, rest, events if alone else self._left, self._events)
            found, matches = min(found, both[0]), min(matches, both[1])
        self._left = max(0, self._left - events)
        self.rates.append(found)
        self._started = _clocks()
        return found, matches

    def _shared(self, clock: int, seconds: float, events: int, around: int) -> tuple[float, float]:
        """Return the touches per event, and the matches, that fit into ``seconds`` beside ``events`` in the native core
        and the time outside it for ``around`` events. Matches come in bursts: they may take up to half of the time, but
        only their likely time is kept from the touches. The costs of more than the earlier maxima are unknown: up to
        :data:`GROWTH` times as many are planned at measured costs, and more only at the initial costs."""
        model, beside = (self.work, self.wall)[clock], self.around[clock]
        rest = max(0.0, seconds - beside.event * around - model.event * events)
        each = model.match + beside.match
        likely = math.inf if self.made is None else self.made * each * events
        others = rest - min(likely, MATCHES * rest)
        touches = min(others / model.touch, max(GROWTH * self.most[0] * events, others / TOUCH))
        matches = min(MATCHES * rest / each, max(GROWTH * self.most[1], MATCHES * rest / (MATCH + BESIDE)))
        return touches / max(events, 1), matches

    def measured(
        self, events: int, touches: float, learning: float, *, matches: int = 0, is_resting: bool = False
    ) -> None:
        """Record the end of a stretch; ``learning`` is the part of its seconds in which policies learned.
        ``is_resting``: nothing was shed before it. Then the costs are learned from several short stretches together."""
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
        speed = spent[1] / events
        self.each = speed if self.each == 0 else self.each + min(1.0, events / STRETCH) * (speed - self.each)
        self._rests = is_resting
        used = [max(0.0, seconds - learning) for seconds in spent]
        self.pending = [a + b for a, b in zip(self.pending, (events, touches, matches, *used), strict=True)]
        if not is_resting or self.pending[0] >= SHORTEST:
            n_events, n_touches, n_matches, *seconds = self.pending
            for model, took in zip((self.work, self.wall), seconds, strict=True):
                model.learn(int(n_events), n_touches, took, matches=n_matches)
            self.pending = [0.0] * 5
        self._matches += matches
        own = matches / events
        self.most = [max(self.most[0], touches / events), max(self.most[1], matches)]
        self.made = own if self.made is None else max(own, SMOOTH * self.made + (1 - SMOOTH) * own)

    def end(self, processor: float, wall: float) -> None:
        """Record the end of the call, which took ``processor`` and ``wall`` seconds."""
        if not getattr(self, "_events", 0):
            return
        since = [now - then for now, then in zip(_clocks(), self._began, strict=True)]
        for k, took in enumerate((processor, wall)):
            ready = self.around[k].sums[0] > 0  # the preparation of a session happens only once
            outside = max(0.0, (took if ready else min(took, since[k])) - self._inside[k])
            if k == 0:
                self.balance -= outside
            self.pending_around[2 + k] += outside
        self.pending_around[0] += self._events
        self.pending_around[1] += self._matches
        n_events, n_matches, *seconds = self.pending_around
        if n_events >= SHORTEST or not getattr(self, "_rests", False) or self.around[0].sums[0] == 0:
            for model, outside in zip(self.around, seconds, strict=True):
                model.learn(int(n_events), 0, outside, SMOOTH, matches=n_matches)
            self.pending_around = [0.0] * 4
        if self.cpu is not None:
            self.balance = max(self.balance, -self.cpu * CARRIED)
        self._events = 0

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data."""
        numbers = {name: getattr(self, name) for name in ("balance", "clock", "learning", "made", "most")}
        models = {"work": self.work.state(), "wall": self.wall.state(), "around": [m.state() for m in self.around]}
        return models | numbers

    def load(self, data: Mapping[str, Any]) -> None:
        """Restore :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other data."""
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
    """Return the controller of the time budget for a stream with ticks of ``tick_ns`` nanoseconds; ``None`` if the
    budget has no bound on time.

    Raises :class:`QueryError` for ``cpu`` if the length of a tick is unknown.

    >>> pace_of(Budget(work=5), None) is None, pace_of(Budget(cpu=0.5, speed=10), 10**9).tick
    (True, 0.1)
    """
    if budget.cpu is None and budget.latency is None:
        return None
    if budget.cpu is not None and tick_ns is None:
        raise QueryError(
            "cpu= is a share of a core against the clock of the events, and the ticks of an integer ts have no length",
            hint='unit=, as in unit="ms"',
            code="option_invalid",
        )
    tick = 0.0 if tick_ns is None else float(Fraction(tick_ns) / 10**9) / budget.speed
    return Pace(budget.cpu, budget.latency, tick)


def _clocks() -> tuple[float, float]:
    return time.thread_time(), time.perf_counter()
