"""Budgets of time on Spark: how many seconds a bucket may take in a micro-batch, and what that is in touches.

What a batch is given follows from the state of the bucket and from what Spark has recorded with the number of the batch
(its rows, its watermark, the time at which it began): if it is tried again it is given the same. What clocks
measure goes into the state, for the batches to come.
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
from acep.budget.cost import CostModel
from acep.budget.pace import pace_of

__all__ = ["BatchPace"]

CARRIED = 10.0  # seconds of the stream whose share of a core is carried over, or overdrawn, at most
LEAST = 1e-3  # seconds that a bucket is given at least
GAIN = 0.7  # of the deviation, what the next batch makes good
TAIL = 0.3  # seconds from the last bucket's end to the end of a batch; more counts as a pause
FORGET = 0.8  # what is left of old measurements after a new one
UNSURE = 0.1  # deviation of a bucket's seconds, as a share of them, below which its effect is not believed


@dataclass
class BatchPace:
    """The controller of one of ``buckets``; ``tick`` is the length of a tick of ``ts`` in seconds of the replay.

    ``latency``: a batch takes ``overhead + queue * seconds``, where ``seconds`` are those of a bucket, and ``queue`` is
    how many of them a core has to step in turn, learned from how batches vary. While input waits, batches follow each
    other without a pause: so the time from the beginning of one to that of the next is what it took, Spark's own
    work included.

    ``cpu``: each bucket has the same share, against the clock of the events.
    """

    cpu: float | None
    latency: float | None
    buckets: int
    tick: float
    cost: CostModel = field(default_factory=CostModel)
    began: int | None = None  # the last batch, in milliseconds on Spark's clock
    took: float = 0.0  # seconds of this bucket in it
    ended: float = 0.0  # seconds from the beginning of that batch to this bucket's end
    queue: float = 0.0
    sums: list[float] = field(default_factory=lambda: [0.0] * 5)  # 1, x, x * x, y, x * y: x of a bucket, y of the batch
    seconds: float = 0.0  # for this batch, by ``latency``
    balance: float = 0.0  # seconds of the processor that may still be used, by ``cpu``
    clock: int | None = None  # the stream's, up to which the balance has been paid

    _started: tuple[float, float] | None = None  # wall and processor, where a batch is there
    _events: int = 0

    def __post_init__(self) -> None:
        self.queue = max(1.0, self.buckets / (os.cpu_count() or 1))
        if self.latency is not None:
            self.seconds = self.latency / 2 / self.queue

    def begin(self, now: int) -> None:
        """A batch is there, which began at ``now`` (milliseconds)."""
        self._started = time.perf_counter(), time.thread_time()
        self._events = 0
        target = self.latency
        if target is not None and self.began is not None and now > self.began and self.took > 0:
            interval = (now - self.began) / 1000
            # What is longer than this had a pause in it, or a restart.
            busy = min(self.ended + self.queue * self.took + TAIL, target + self.buckets * self.took)
            if interval <= busy:
                self._learn(self.took, interval)
            wanted = self.took + GAIN * (target - min(interval, busy)) / self.queue
            self.seconds = min(max(wanted, LEAST), target)
        self.began = now

    def _learn(self, own: float, batch: float) -> None:
        for k, new in enumerate((1.0, own, own * own, batch, own * batch)):
            self.sums[k] = FORGET * self.sums[k] + new
        n, sx, sxx, sy, sxy = self.sums
        prior = max(1.0, self.buckets / (os.cpu_count() or 1))
        unsure = (UNSURE * sx / n) ** 2 * n
        found = (sxy - sx * sy / n + unsure * prior) / (sxx - sx * sx / n + unsure)
        self.queue = min(max(found, 1.0), float(self.buckets))

    def touches(self, events: int, first: int, last: int) -> float:
        """What the next ``events`` may take, which have the times from ``first`` to ``last``."""
        given = math.inf
        if self.latency is not None:
            given = self.seconds
        if self.cpu is not None:
            share = self.cpu / self.buckets
            since = first if self.clock is None else self.clock
            self.balance = min(self.balance + share * max(0, last - since) * self.tick, share * CARRIED)
            self.clock = max(last, since)
            given = min(given, max(self.balance, LEAST * share))
        self._events += events
        return self.cost.touches(given, events)

    def end(self, touches: int) -> None:
        """The bucket is done, after so many touches."""
        if self._started is None:
            return
        (wall, processor), self._started = self._started, None
        self.took = time.perf_counter() - wall
        used = time.thread_time() - processor
        self.ended = max(self.took, time.time() - (self.began or 0) / 1000)
        if self.cpu is not None:
            least = -self.cpu / self.buckets * CARRIED
            self.balance = max(self.balance - used, least)
        if self._events:
            self.cost.learn(self._events, touches, self.took if self.latency is not None else used)

    def dump(self) -> dict[str, Any]:
        """Its state as JSON-like data."""
        names = ("began", "took", "ended", "queue", "sums", "seconds", "balance", "clock")
        return {name: getattr(self, name) for name in names} | {"cost": self.cost.state()}

    def load(self, data: Mapping[str, Any]) -> None:
        """Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for what is no such state."""
        self.cost = CostModel.restore(data["cost"])
        self.began, self.clock = (None if data[n] is None else int(data[n]) for n in ("began", "clock"))
        names = ("took", "ended", "queue", "seconds", "balance")
        numbers = [float(x) for x in (*(data[name] for name in names), *data["sums"])]
        if len(numbers) != 10 or not all(map(math.isfinite, numbers)):
            raise ValueError("pace")
        self.took, self.ended, self.queue, self.seconds, self.balance, *self.sums = numbers

    @classmethod
    def of(cls, budget: Budget | None, buckets: int, tick_ns: Fraction | int | None) -> BatchPace | None:
        """What keeps one of ``buckets`` to a budget of time; ``None``: it sets none.

        Raises :class:`QueryError` for a share of a core against a clock whose ticks have no known length.

        >>> BatchPace.of(Budget(work=3), 8, 1) is None
        True
        """
        pace = None if budget is None else pace_of(budget, tick_ns)
        return None if pace is None else cls(pace.cpu, pace.latency, buckets, pace.tick)
