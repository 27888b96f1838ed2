"""Turn a bound on time into touches, where a clause runs over a stream: what a push costs is measured."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from acep.budget.budget import Budget
from acep.budget.pace import pace_of

__all__ = ["ClausePace", "CostLine"]

FORGET = 0.9
"""The weight of old measurements after a push."""
CONTRAST = 0.25
"""The standard deviation of touches, relative to their mean, from which on their cost is told from that of rows."""
RESERVE = 0.9
"""The share of a push's seconds that is planned."""
AHEAD = 1.0
"""Seconds of the stream whose budget is there before the first event, and may be taken ahead."""
LONGEST = 1e6
"""More seconds than any push takes."""
CARRIED = 10.0
"""The most seconds of the stream whose unused budget is carried over."""


@dataclass
class CostLine:
    """Seconds a row as a line over touches a row, by least squares with forgetting. As long as the touches hardly
    differ, all seconds are counted as those of touches.

    >>> line = CostLine()
    >>> line.add(2.0, 9.0)
    >>> line.touch, line.row
    (4.5, 0.0)
    >>> line.add(4.0, 11.0)
    >>> round(line.touch, 6), round(line.row, 6)
    (1.0, 7.0)
    """

    sums: list[float] = field(default_factory=lambda: [0.0] * 5)  # of 1, x, y, x * x, x * y
    shortest: float = math.inf  # seconds a row of the shortest push of late

    def add(self, touches: float, seconds: float) -> None:
        """Add what a row of a push took."""
        new = (1.0, touches, seconds, touches * touches, touches * seconds)
        self.sums = [FORGET * total + value for total, value in zip(self.sums, new, strict=True)]
        self.shortest = min(self.shortest / FORGET, seconds)

    @property
    def has_contrast(self) -> bool:
        """Return whether the touches have differed enough."""
        weight, x, _, xx, _ = self.sums
        return weight > 0 and weight * xx - x * x > (CONTRAST * x) ** 2

    @property
    def touch(self) -> float:
        """Return the seconds of a touch."""
        weight, x, y, xx, xy = self.sums
        if x <= 0:
            return 0.0
        slope = (weight * xy - x * y) / (weight * xx - x * x) if self.has_contrast else y / x
        return min(max(slope, 0.0), y / x)

    @property
    def row(self) -> float:
        """Return the seconds of a row, whatever is searched: no more than a push took, and 0 until touches differed."""
        weight, x, y, _, _ = self.sums
        return min(max(0.0, (y - self.touch * x) / weight), self.shortest) if self.has_contrast else 0.0


@dataclass
class ClausePace:
    """The time that a budget leaves for searching: ``latency`` seconds a push, on the clock; ``cpu``, the share of a
    core, in processor time against the clock of the events, whose ticks take ``tick`` seconds.

    ``beside``: seconds of a row outside the search, ``search``: those within it, both as the bound counts them.
    ``remark``: why the bound cannot be kept, whatever is given up."""

    latency: float | None
    cpu: float | None
    tick: float
    beside: float = 0.0
    search: CostLine = field(default_factory=CostLine)
    balance: float = 0.0
    clock: int | None = None
    remark: str = ""

    @classmethod
    def from_budget(cls, budget: Budget, tick_ns: Any) -> ClausePace | None:
        """Return the pace of a budget; ``None`` without a bound on time. Raises :class:`QueryError` for ``cpu=`` where
        the ticks have no length."""
        pace = pace_of(budget, tick_ns)
        return None if pace is None else cls(budget.latency, budget.cpu, pace.tick)

    def read_clock(self) -> float:
        """Return the seconds that the bound counts."""
        return time.perf_counter() if self.cpu is None else time.thread_time()

    def allow(self, n_rows: int, clock: int) -> float:
        """Return the touches that a push of ``n_rows`` may take, which ends at a time of the stream in ticks."""
        seconds = math.inf
        fixed = (self.beside + self.search.row) * n_rows
        if self.latency is not None:
            seconds = RESERVE * (self.latency - fixed)
            self._remark(
                seconds, f"latency={self.latency:g} is not kept: a push of {n_rows:,} rows takes {fixed:.2g} s"
            )
        if self.cpu is not None:
            elapsed = 0.0 if self.clock is None else (clock - self.clock) * self.tick
            self.balance = min(self.balance + self.cpu * elapsed, self.cpu * CARRIED)
            self.clock = clock
            left = self.balance + self.cpu * AHEAD - fixed
            if left <= 0 < elapsed:
                left = self.cpu * elapsed - fixed
                self._remark(left, f"cpu={self.cpu:g} is not kept: {fixed / elapsed:.2g} of a core is used")
            seconds = min(seconds, left)
        cost = self.search.touch
        # A bound that cannot be kept limits nothing.
        return math.inf if self.remark or not cost else max(seconds, 0.0) / cost

    def _remark(self, seconds: float, text: str) -> None:
        if seconds <= 0 and not self.remark:
            self.remark = f"{text} even where nothing is searched"

    def record(self, n_rows: int, touches: int, seconds: float, searching: float) -> None:
        """Record a push that took ``seconds``, so many of them ``searching``."""
        self.balance -= seconds if self.cpu is not None else 0.0
        if n_rows:
            beside = max(0.0, seconds - searching) / n_rows
            self.beside = FORGET * self.beside + (1 - FORGET) * beside if self.beside else beside
            self.search.add(touches / n_rows, searching / n_rows)

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data."""
        line = [*self.search.sums, min(self.search.shortest, LONGEST)]
        return {"beside": self.beside, "search": line, "balance": self.balance, "clock": self.clock}

    def load(self, data: Mapping[str, Any]) -> None:
        """Read the state of :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other
        data."""
        self.beside, self.balance = float(data["beside"]), float(data["balance"])
        self.clock = None if data["clock"] is None else int(data["clock"])
        *sums, shortest = (float(total) for total in data["search"])
        numbers = (self.beside, *sums, shortest)
        if len(sums) != len(self.search.sums) or not all(math.isfinite(x) and x >= 0 for x in numbers):
            raise ValueError("pace")
        if not math.isfinite(self.balance):
            raise ValueError("balance")
        self.search.sums, self.search.shortest = sums, shortest
