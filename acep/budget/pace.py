"""Control ``cpu`` and ``latency``: compute how many touches and matches the next stretch of events may have."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from acep.budget.budget import Budget
from acep.budget.cost import MATCH, TOUCH, CostModel
from acep.errors import QueryError

__all__ = ["Pace", "pace_of"]

# Events between two readings of the clock: at first, while costs are unknown; normally; and at most, if they are fast.
SHORTEST, STRETCH, LONGEST = 32, 4096, 65_536
# Measurements after which costs are known well enough to be learned only after so many events.
KNOWN, RARELY = 4, 1024
SHORT = 2e-3  # seconds that may pass between two readings,
LONG_STRETCH = 0.05  # the same where there is enough time,
PARTS = 16  # and at most one part in so many of a batch's seconds
CARRIED = 10.0  # the most seconds of the stream whose unused budget is carried over
FIRST = 1.0  # seconds of the stream whose budget is available before the first event
SPREAD, LONG = 4, 16  # stretches over which an unused budget, or an overdraft, is spread
LEAST_SHARE = 0.25  # share of its budget that a stretch gets after any overdraft
MARGIN = 0.9  # share of a batch's seconds that is planned; the rest is a reserve
MATCHES = 0.5  # share of the time beside the events that matches may take, as their number is unknown in advance
BESIDE = 1e-7  # seconds that a match takes outside the native core, until it is measured
SLACK = 1 / 8  # share of a batch's seconds that may be used ahead
UNSURE = 1 / 4  # share of all the time there is that is planned for what has unknown costs
FADE = 0.995  # of what an exact run costs, at each stretch that is no exact run
PART = 1 / 8  # of the time of the events themselves that touches may take where that alone is more than the budget
SLOW_EVENT = 2e-5  # seconds that an event with its touches may take, until that is measured
GROWTH = 3  # most touches or matches relative to the earlier maximum, if measured costs are used
SMOOTH = 0.8  # weight of an old average after a new number
NUMBERS = ("balance", "clock", "learning", "matches_per_event", "maxima", "is_short", "exact")  # saved in the state
STORED_NAMES = {"matches_per_event": "made", "maxima": "most"}  # names of numbers in the state, where they differ


def _raised_mean(mean: float, number: float) -> float:
    """Return a smoothed mean after another number, at least that number."""
    return max(number, SMOOTH * mean + (1 - SMOOTH) * number)


@dataclass
class Pace:
    """The conversion of a time budget to touches. ``cpu`` is the share of a core relative to the clock of the events,
    whose ticks take ``tick`` seconds; ``latency`` is the time for a batch in seconds. The processor time of this thread
    is measured for ``cpu``, and wall time for ``latency``, both for the whole call and not only the native core.

    While the budget suffices, nothing is given up: with ``cpu`` as long as the balance is not negative, with
    ``latency`` as long as the rest of the batch probably fits into the rest of its time. Only what one stretch may take
    is bounded, by all the time that is left. The costs of events, touches and matches are unknown at first and assumed
    to be high. The first stretches are short, so that they are soon measured.

    The order of calls for a batch is: ``begin``; ``rate`` and ``record_stretch`` for each stretch of it; ``end``.
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
    matches_per_event: float | None = None  # average matches per event
    maxima: list[float] = field(default_factory=lambda: [0.0, 0.0])  # of a stretch: touches per event, matches
    learning: float = 0.0  # average seconds in which a policy learns
    rates: list[float] = field(default_factory=list)  # touches per event of the stretches of this batch
    stretch: int = SHORTEST  # the most events of the next stretch
    is_short: bool = False  # the processor time is used up, so that touches are bounded until some of it is left again
    exact: float = 0.0  # average wall seconds per event while nothing is given up
    remark: str = ""  # why the budget cannot be kept, whatever is given up
    shortage: list[float] = field(default_factory=lambda: [0.0, 0.0])  # while short: seconds used, and of the stream
    # Measurements while nothing is shed, until they are learned: events, touches, matches, both kinds of seconds; and
    # around the native core: events, matches, both kinds of seconds.
    pending: list[float] = field(default_factory=lambda: [0.0] * 5)
    pending_around: list[float] = field(default_factory=lambda: [0.0] * 4)

    def __post_init__(self) -> None:
        # The numbers of the clocks that a bound is about: 0 processor time, 1 wall time.
        self._bounded_clocks = tuple(k for k, bound in enumerate((self.cpu, self.latency)) if bound is not None)

    def begin(self, events: int, clock: int) -> None:
        """Begin a batch of ``events``, the first of them at time ``clock``."""
        if self.clock is None:
            self.clock, self.balance = clock, (self.cpu or 0.0) * FIRST
        if not (self.work, self.wall)[self._bounded_clocks[0]].sums[0]:  # nothing was measured
            seconds = min(math.inf if self.cpu is None else self.balance, self.latency or math.inf)
            self.stretch = int(min(max(seconds / SLOW_EVENT, SHORTEST), STRETCH))
        self._events = self._remaining = events
        self._inside, self._matches = [0.0, 0.0], 0
        self._began = self._read_clocks()
        self.rates = []

    def rate(self, events: int, clock: int, *, learns: bool) -> tuple[float, float]:
        """Return the budget of the next ``events`` of the batch, which end at time ``clock``: touches per event, and
        matches in all. ``learns``: a policy learns after them."""
        touches = matches = math.inf
        self._is_free = True
        if self.cpu is not None:
            assert self.clock is not None
            income, balance_before = self.cpu * (clock - self.clock) * self.tick, self.balance
            self.balance = min(balance_before + income, self.cpu * CARRIED)
            self.clock = clock
            self.is_short = self.balance < (self.cpu * FIRST if self.is_short else 0.0)
            if self.balance < -self.cpu * CARRIED:
                self._remark_cpu()
            if not self.is_short:
                touches, matches = self._exact_limits(0, self.balance + self.cpu * FIRST / 2, events)
            else:
                self.shortage[1] += income / self.cpu
                # An overdraft, for example from the learning of a policy, is paid back gradually: without any budget
                # all partial matches would be lost. `_shedding_limits` sets aside the time outside the native core.
                payable = max(
                    self.balance - balance_before + balance_before / (SPREAD if balance_before > 0 else LONG),
                    LEAST_SHARE * income,
                )
                touches, matches = self._shedding_limits(0, payable, events, events)
                self._is_free = False
        if self.latency is not None:
            elapsed = time.perf_counter() - self._began[1]
            seconds_left = self.latency * MARGIN - elapsed - (self.learning if learns else 0.0)
            seconds_left -= self.around[1].match * self._matches
            if self._is_exact_within(seconds_left, elapsed):
                bounds = self._exact_limits(1, max(0.0, seconds_left), events)
                touches, matches = min(touches, bounds[0]), min(matches, bounds[1])
            else:
                # The rest of the batch's time is divided equally among its remaining events.
                bounds = self._shedding_limits(1, seconds_left, self._remaining, self._events)
                self._remark_latency()
                touches, matches = min(touches, bounds[0]), min(matches, bounds[1])
                self._is_free = False
        self._remaining = max(0, self._remaining - events)
        self.rates.append(touches)
        self._started = self._read_clocks()
        return touches, matches

    def _exact_limits(self, clock: int, seconds: float, events: int) -> tuple[float, float]:
        """Return the touches per event, and the matches, of ``events`` that may take so many seconds, while the budget
        suffices: as in :meth:`_shedding_limits`, but the time of the events themselves is not set aside."""
        model, beside = (self.work, self.wall)[clock], self.around[clock]
        match_cost = model.match + beside.match
        for_touches = seconds - self._likely(seconds, match_cost, events)
        touches = max(
            min(for_touches / model.touch, GROWTH * self.maxima[0] * events),
            UNSURE * for_touches / max(model.touch, UNSURE * TOUCH),
        )
        for_matches = MATCHES * seconds
        matches = max(
            min(for_matches / match_cost, GROWTH * self.maxima[1]),
            UNSURE * for_matches / max(match_cost, UNSURE * (MATCH + BESIDE)),
        )
        return touches / max(events, 1), matches

    def _likely(self, seconds: float, match_cost: float, events: int) -> float:
        """Return the time that the matches of ``events`` will probably take, at ``match_cost`` seconds, up to
        their part."""
        likely = math.inf if self.matches_per_event is None else self.matches_per_event * match_cost * events
        return min(likely, MATCHES * seconds)

    def _is_exact_within(self, seconds_left: float, elapsed: float) -> bool:
        """Return whether the remaining events of the batch can probably be matched exactly in the ``seconds_left``
        of it, where some were ``elapsed``."""
        if self.exact == 0:  # it is not known what they take
            return elapsed <= SLACK * (self.latency or 0.0)
        return self.exact * self._remaining + self.around[1].event * self._events <= seconds_left

    def _shedding_limits(self, clock: int, seconds: float, events: int, around: int) -> tuple[float, float]:
        """Return the touches per event, and the matches, that fit into ``seconds`` beside ``events`` in the native core
        and the time outside it for ``around`` events. Matches come in bursts: they may take up to half of the time, but
        only their likely time is kept from the touches. The costs of more than the earlier maxima are unknown: up to
        :data:`GROWTH` times as many are planned at measured costs, and more only at the initial costs."""
        model, beside = (self.work, self.wall)[clock], self.around[clock]
        seconds_left = max(0.0, seconds - beside.event * around - model.event * events)
        match_cost = model.match + beside.match
        for_touches = seconds_left - self._likely(seconds_left, match_cost, events)
        touches = min(for_touches / model.touch, max(GROWTH * self.maxima[0] * events, for_touches / TOUCH))
        # Where the events alone take more than there is, what costs little beside them is still done.
        touches = max(touches, PART * (model.event + beside.event) * events / model.touch)
        matches = min(
            MATCHES * seconds_left / match_cost, max(GROWTH * self.maxima[1], MATCHES * seconds_left / (MATCH + BESIDE))
        )
        return touches / max(events, 1), matches

    def record_stretch(self, events: int, touches: float, learning: float, *, matches: int = 0) -> None:
        """Record the end of a stretch; ``learning`` is the part of its seconds in which policies learned. While nothing
        is given up, the costs are learned from several short stretches together."""
        spent = [now - started for now, started in zip(self._read_clocks(), self._started, strict=True)]
        self._inside = [a + b for a, b in zip(self._inside, spent, strict=True)]
        short = self._short
        if self.stretch < STRETCH:
            self.stretch *= 2
        elif spent[1] > short:
            self.stretch = max(self.stretch // 2, STRETCH)
        elif 2 * spent[1] < short and events >= self.stretch:
            self.stretch = min(2 * self.stretch, LONGEST)
        per_event = max(0.0, spent[1] - learning) / events
        if self._is_free:
            self.exact = per_event if self.exact == 0 else _raised_mean(self.exact, per_event)
        else:
            self.exact *= FADE
        if learning > 0:
            self.learning = learning if self.learning == 0 else SMOOTH * self.learning + (1 - SMOOTH) * learning
        self.balance -= spent[0]
        self.shortage[0] += spent[0] if self.is_short else 0.0
        costs = [max(0.0, seconds - learning) for seconds in spent]
        self.pending = [a + b for a, b in zip(self.pending, (events, touches, matches, *costs), strict=True)]
        if self._is_time_to_learn([self.work, self.wall], self.pending[0]):
            n_events, n_touches, n_matches, *seconds = self.pending
            for k in self._bounded_clocks:
                (self.work, self.wall)[k].learn(int(n_events), n_touches, seconds[k], matches=n_matches)
            self.pending = [0.0] * 5
        self._matches += matches
        mean, matches_per_event = self.matches_per_event, matches / events
        self.maxima = [max(self.maxima[0], touches / events), max(self.maxima[1], matches)]
        self.matches_per_event = matches_per_event if mean is None else _raised_mean(mean, matches_per_event)

    def end(self, processor: float, wall: float) -> None:
        """Record the end of the call, which took ``processor`` and ``wall`` seconds."""
        if not getattr(self, "_events", 0):
            return
        elapsed = [now - began for now, began in zip(self._read_clocks(), self._began, strict=True)]
        for k, took in enumerate((processor, wall)):
            ready = self.around[k].sums[0] > 0  # the preparation of a session happens only once
            outside = max(0.0, (took if ready else min(took, elapsed[k])) - self._inside[k])
            if k == 0:
                self.balance -= outside
            self.shortage[0] += outside if k == 0 and self.is_short else 0.0
            self.pending_around[2 + k] += outside
        self.pending_around[0] += self._events
        self.pending_around[1] += self._matches
        n_events, n_matches, *seconds = self.pending_around
        if self._is_time_to_learn(self.around, n_events) or self.around[self._bounded_clocks[0]].sums[0] == 0:
            for k in self._bounded_clocks:
                self.around[k].learn(int(n_events), 0, seconds[k], SMOOTH, matches=n_matches)
            self.pending_around = [0.0] * 4
        if self.cpu is not None:
            self.balance = max(self.balance, -self.cpu * CARRIED)
        self._events = 0

    def _is_time_to_learn(self, models: Sequence[CostModel], events: float) -> bool:
        """Return whether the models of the two clocks learn from ``events`` that were measured: from few of them while
        partial matches are given up, or costs are hardly known."""
        is_known = models[self._bounded_clocks[0]].n_measured >= KNOWN
        return not self._is_free or events >= (RARELY if is_known else SHORTEST)

    def _read_clocks(self) -> tuple[float, float]:
        """Return the processor time of this thread, which takes long to read on some machines and is 0 where no bound
        is about it, and wall time."""
        return (0.0 if self.cpu is None else time.thread_time()), time.perf_counter()

    @property
    def _short(self) -> float:
        """Return the seconds that may pass between two readings of the clock: more where much time is left."""
        if not self._is_free:
            return SHORT if self.latency is None else min(SHORT, self.latency / PARTS)
        bounds = [] if self.cpu is None else [max(SHORT, self.balance / PARTS)]
        bounds += [] if self.latency is None else [self.latency / PARTS]
        return min([LONG_STRETCH, *bounds])

    def _remark_cpu(self) -> None:
        """Note that more of a core is used than there is, as far as that was measured."""
        share = self.shortage[0] / self.shortage[1] if self.shortage[1] > 0 else 0.0
        if share > (self.cpu or 0.0) and not self.remark:
            self.remark = f"cpu={self.cpu:g} is not kept: {share:.2g} of a core is used even while work is shed"

    def _remark_latency(self) -> None:
        """Note that the events of the batch take more than its seconds, as far as their cost was measured."""
        seconds = (self.wall.event + self.around[1].event) * self._events
        if seconds > (self.latency or 0.0) and self.wall.sums[0] > 0 and not self.remark:
            self.remark = (
                f"latency={self.latency:g} is not kept: a batch of {self._events:,} events takes {seconds:.2g} s even "
                "where work is shed"
            )

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data."""
        numbers = {STORED_NAMES.get(name, name): getattr(self, name) for name in NUMBERS}
        models = {"work": self.work.state(), "wall": self.wall.state(), "around": [m.state() for m in self.around]}
        return models | numbers

    def load(self, data: Mapping[str, Any]) -> None:
        """Restore :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other data."""
        self.work, self.wall = CostModel.restore(data["work"]), CostModel.restore(data["wall"])
        self.clock = None if data["clock"] is None else int(data["clock"])
        processor, wall = data["around"]
        self.around = [CostModel.restore(processor), CostModel.restore(wall)]
        self.matches_per_event = None if data["made"] is None else float(data["made"])
        self.balance, self.learning = float(data["balance"]), float(data["learning"])
        # States of before have neither.
        self.is_short, self.exact = data.get("is_short", True) is True, float(data.get("exact", 0.0))
        touches, matches = map(float, data["most"])
        self.maxima = [touches, matches]
        numbers = (self.learning, self.matches_per_event or 0.0, self.exact, *self.maxima)
        if not math.isfinite(self.balance) or not all(math.isfinite(x) and x >= 0 for x in numbers):
            raise ValueError("pace")


def pace_of(budget: Budget, tick_ns: int | Fraction | None) -> Pace | None:
    """Return the controller of the time budget for a stream with ticks of ``tick_ns`` nanoseconds; ``None`` if the
    budget has no bound on time.

    Raises :class:`QueryError` for ``cpu`` if the length of a tick is unknown, and for ``min_recall``.

    >>> pace_of(Budget(work=5), None) is None, pace_of(Budget(cpu=0.5, speed=10), 10**9).tick
    (True, 0.1)
    """
    if not budget.is_paced:
        return None
    if budget.min_recall is not None:
        raise QueryError(
            "min_recall= is of a stream on Spark whose events are shed before they travel",
            hint="leave it out: where partial matches are shed, nobody knows in advance what that costs",
            code="option_invalid",
        )
    if budget.cpu is not None and tick_ns is None:
        raise QueryError(
            "cpu= is a share of a core against the clock of the events, and the ticks of an integer ts have no length",
            hint='unit=, as in unit="ms"',
            code="option_invalid",
        )
    tick = 0.0 if tick_ns is None else float(Fraction(tick_ns) / 10**9) / budget.speed
    return Pace(budget.cpu, budget.latency, tick)
