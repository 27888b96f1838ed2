"""Bound the time of a bucket in a micro-batch: how many seconds it may take, and how many transition evaluations fit.

The allowance of a batch depends only on the state of the bucket and on what was recorded with the number of the batch
(its rows, its watermark, the time at which it began), so a retry gets the same one. Measured times go into the state
and affect later batches only.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from acep.budget import Budget
from acep.budget.cost import MATCH, CostModel
from acep.budget.pace import GROWTH, MATCHES, pace_of

__all__ = ["BatchPace"]

CARRIED = 10.0  # seconds of the stream whose share of a core is carried over, or overdrawn, at most
SPREAD, LONG = 4, 16  # batches over which a balance that is carried over, or overdrawn, is spread
FLOOR = 0.25  # least part of its share of a core that a bucket gets, however much was overdrawn
MIN_PART = 0.05  # least part of the seconds, of a batch and of a bucket in it, that is left for touches
GAIN = 0.4  # part of the deviation that the next batch corrects
RISE, MAX_MORE = 0.5, 3.0  # part of the deviation by which the factor `more` changes, and its maximum
CALM = 0.95  # factor of `more - 1` after a batch in which nothing is shed
LESS = 0.7  # least part of its seconds that a batch of few events gets
TAIL = 0.3  # seconds from the last bucket's end to the end of a batch; more counts as a pause
FORGET = 0.8  # weight of old measurements after a new one
UNSURE = 0.1  # relative deviation of a bucket's seconds below which the prior of `queue` outweighs the measurements


@dataclass
class BatchPace:
    """The time controller of one of ``buckets``; ``tick`` is the length of a tick of ``ts`` in seconds of the replay.

    ``latency``: a batch takes ``overhead + queue * seconds``, where ``seconds`` are those of a bucket, and ``queue`` is
    the number of buckets that a core steps in turn, learned from how batches vary. While input waits, batches follow
    each other without a pause, so the time from the beginning of one to that of the next is its duration, including
    Spark's own work. Part of the allowance stays unused even where something is shed, held back for a burst that does
    not come. So the allowance is multiplied by ``more``, learned from how far batches stay below the target. A batch of
    few events gets fewer seconds: otherwise its allowance per event would rise and that of the next batch would fall,
    and the utility threshold adapts only slowly. A batch of many events gets no extra seconds: its events came while
    the batch before took long, and the next batch would grow in turn.

    While ``is_out_of_reach``, a batch would take longer than ``latency`` whatever is shed, and so nothing is.

    ``cpu``: each bucket gets the same share of a core, against the clock of the events.

    The order of calls for a batch: ``begin``; ``touches``, where it has events; ``end``.
    """

    cpu: float | None
    latency: float | None
    buckets: int
    tick: float
    work: CostModel = field(default_factory=CostModel)  # processor time of a bucket, its state as bytes included
    wall: CostModel = field(default_factory=CostModel)
    learning: float = 0.0  # seconds that a policy takes to learn once
    began: int | None = None  # the last batch, in milliseconds on the clock of the stream
    took: float = 0.0  # seconds of this bucket in the last batch
    learned: float = 0.0  # part of `took` in which policies learned
    ended: float = 0.0  # seconds from the beginning of that batch to this bucket's end
    queue: float = 0.0
    sums: list[float] = field(default_factory=lambda: [0.0] * 5)  # 1, x, x * x, y, x * y: x of a bucket, y of the batch
    seconds: float = 0.0  # allowed for this batch by ``latency``
    shed: bool = False  # whether the last batch shed something
    matches_per_event: float = 0.0  # recent average of matches per event
    max_matches: float = 0.0  # greatest number of matches of a batch so far
    more: float = 1.0  # factor of the allowance by ``latency``
    events: float = 0.0  # average number of events of a batch
    balance: float = 0.0  # seconds of the processor that may still be used, by ``cpu``
    clock: int | None = None  # the stream's, up to which the balance has been paid
    is_out_of_reach: bool = False

    _started: tuple[float, float] | None = None  # processor and wall clock, while a batch runs
    _events: int = 0

    def __post_init__(self) -> None:
        self.queue = max(1.0, self.buckets / (os.cpu_count() or 1))
        if self.latency is not None:
            self.seconds = self.latency / 2 / self.queue

    def begin(self, now: int) -> None:
        """Begin a batch that Spark began at ``now`` (milliseconds)."""
        self._started, self._events = _clocks(), 0
        target = self.latency
        if target is not None and self.began is not None and now > self.began and self.took > 0:
            interval = (now - self.began) / 1000
            # A longer interval contains a pause or a restart.
            busy = min(self.ended + self.queue * self.took + TAIL, target + self.buckets * self.took)
            if interval <= busy:
                self._learn(self.took, interval)
            # Policies learn only in some batches; `touches` allows for these.
            usual = min(interval, busy) - self.queue * self.learned
            right = self.took - self.learned + (target - usual) / self.queue
            if self.shed:
                self.more *= 1 + RISE * min(max((target - usual) / target, -1.0), 1.0)
                self.more = min(max(self.more, 1.0), MAX_MORE)
            else:
                self.more = 1 + CALM * (self.more - 1)
            wanted_seconds = self.seconds + GAIN * (right * self.more - self.seconds)
            self.seconds = min(max(wanted_seconds, MIN_PART * target / self.queue), target)
        self.began, self.learned = now, 0.0

    def _learn(self, bucket_seconds: float, batch_seconds: float) -> None:
        for k, new in enumerate(
            (1.0, bucket_seconds, bucket_seconds * bucket_seconds, batch_seconds, bucket_seconds * batch_seconds)
        ):
            self.sums[k] = FORGET * self.sums[k] + new
        n, sx, sxx, sy, sxy = self.sums
        prior = max(1.0, self.buckets / (os.cpu_count() or 1))
        unsure = (UNSURE * sx / n) ** 2 * n
        slope = (sxy - sx * sy / n + unsure * prior) / (sxx - sx * sx / n + unsure)
        self.queue = min(max(slope, 1.0), float(self.buckets))

    def touches(self, events: int, first: int, last: int, epochs: int) -> tuple[float, float]:
        """Return the transition evaluations and the matches that the next ``events`` may have. Their times are from
        ``first`` to ``last``, and policies learn ``epochs`` times after them."""
        touches = matches = math.inf
        besides = self.learning * epochs
        if self.latency is not None:
            fullness = min(max(events / (self.events or events), LESS), 1.0)
            if not self.is_out_of_reach:
                touches, matches = self._fit_into(self.wall, self.seconds * fullness, besides, events)
            self.events = FORGET * (self.events or events) + (1 - FORGET) * events
        if self.cpu is not None:
            share, before = self.cpu / self.buckets, self.balance
            income = share * max(0, last - (first if self.clock is None else self.clock)) * self.tick
            self.balance = min(before + income, share * CARRIED)
            self.clock = last if self.clock is None else max(last, self.clock)
            due = self.balance - before + before / (SPREAD if before > 0 else LONG)
            by_cpu = self._fit_into(self.work, max(due, FLOOR * income), besides, events)
            touches, matches = min(touches, by_cpu[0]), min(matches, by_cpu[1])
        self._events += events
        return touches, matches

    def _fit_into(self, model: CostModel, seconds: float, besides: float, events: int) -> tuple[float, float]:
        """Return the touches and the matches that fit into ``seconds`` after the cost of ``events`` and the ``besides``
        seconds; always some, because without any all partial matches would be lost."""
        seconds_left = max(seconds - besides - model.event * events, MIN_PART * seconds)
        likely = min(self.matches_per_event * events * model.match, MATCHES * seconds_left)
        matches = min(
            MATCHES * seconds_left / model.match, max(GROWTH * self.max_matches, MATCHES * seconds_left / MATCH)
        )
        return (seconds_left - likely) / model.touch, matches

    def end(self, touches: int, shed: int, epochs: int, learning: float, *, matches: int = 0) -> None:
        """End a batch in which the bucket had so many touches and ``matches`` and ``shed`` so many partial matches and
        events; policies learned ``epochs`` times, in ``learning`` seconds."""
        if self._started is None:
            return
        cpu_seconds, self.took = (now - start for now, start in zip(_clocks(), self._started, strict=True))
        self._started, self.learned = None, learning
        self.ended = max(self.took, time.time() - (self.began or 0) / 1000)
        self.shed = shed > 0
        if self.cpu is not None:
            self.balance = max(self.balance - cpu_seconds, -self.cpu / self.buckets * CARRIED)
        if self._events:
            self.work.learn(self._events, touches, max(0.0, cpu_seconds - learning), FORGET, matches=matches)
            self.wall.learn(self._events, touches, max(0.0, self.took - learning), FORGET, matches=matches)
            self.max_matches = max(self.max_matches, matches)
            matches_per_event = matches / self._events
            self.matches_per_event = max(
                matches_per_event, FORGET * self.matches_per_event + (1 - FORGET) * matches_per_event
            )
        if epochs:
            seconds_per_epoch = learning / epochs
            self.learning = (
                seconds_per_epoch if self.learning == 0 else FORGET * self.learning + (1 - FORGET) * seconds_per_epoch
            )

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data."""
        numbers = {key: getattr(self, name) for key, name in NUMBERS.items()}
        models = {"work": self.work.state(), "wall": self.wall.state()}
        return numbers | {name: getattr(self, name) for name in ("sums", "began", "clock", "shed")} | models

    def load(self, data: Mapping[str, Any]) -> None:
        """Restore the state of :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError`."""
        self.work, self.wall = CostModel.restore(data["work"]), CostModel.restore(data["wall"])
        self.began, self.clock = (None if data[n] is None else int(data[n]) for n in ("began", "clock"))
        numbers = [float(x) for x in (*(data[key] for key in NUMBERS), *data["sums"])]
        if len(numbers) != len(NUMBERS) + 5 or not all(map(math.isfinite, numbers)):
            raise ValueError("pace")
        if not 1 <= float(data["more"]) <= MAX_MORE or float(data["events"]) < 0:
            raise ValueError("pace")
        self.shed = data["shed"] is True
        for name, number in zip(NUMBERS.values(), numbers, strict=False):
            setattr(self, name, number)
        self.sums = numbers[-5:]

    @classmethod
    def from_budget(cls, budget: Budget | None, buckets: int, tick_ns: Fraction | int | None) -> BatchPace | None:
        """Create the controller of one of ``buckets``; return ``None`` if the budget sets no bound of time.

        Raises :class:`QueryError` for a share of a core against a clock whose ticks have no known length.

        >>> BatchPace.from_budget(Budget(work=3), 8, 1) is None
        True
        """
        pace = None if budget is None else pace_of(budget, tick_ns)
        return None if pace is None else cls(pace.cpu, pace.latency, buckets, pace.tick)


NUMBERS = {
    name: name for name in ("learning", "took", "learned", "ended", "queue", "seconds", "balance", "more", "events")
} | {"made": "matches_per_event", "most": "max_matches"}
"""The attributes that are numbers, by the names that they have in a state."""


def _clocks() -> tuple[float, float]:
    return time.thread_time(), time.perf_counter()
