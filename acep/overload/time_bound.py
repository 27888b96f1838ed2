"""Bound the seconds of a micro-batch by a latency, and by a share of the cores against the clock of the events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acep.overload.load import MIN_SHARE

__all__ = ["CoreTime", "TimeBound"]

CARRIED = 10.0  # seconds of the stream whose share of the cores is carried over, or overdrawn, at most
SPREAD, LONG = 4, 16  # micro-batches over which a balance that is carried over, or overdrawn, is spread
FLOOR = 0.25  # least part of its share that a micro-batch gets, however much was overdrawn


@dataclass(frozen=True)
class CoreTime:
    """The account of a share of the cores: the ``balance`` in seconds, and the ``income`` of the last micro-batch with
    events (``None``: there was none yet).

    >>> CoreTime().add_batch(income=1.0, seconds=3.0, max_balance=5.0)
    CoreTime(balance=-2.0, income=1.0)
    """

    balance: float = 0.0
    income: float | None = None

    def add_batch(self, *, income: float, seconds: float, max_balance: float) -> CoreTime:
        """Account for a micro-batch that took ``seconds``; the balance stays between ``-max_balance`` and
        ``max_balance``."""
        return CoreTime(min(max(self.balance + income - seconds, -max_balance), max_balance), income)

    @property
    def target(self) -> float:
        """The seconds that the next micro-batch may take; infinite while no micro-batch had events."""
        if self.income is None:
            return math.inf
        return max(self.income + self.balance / (SPREAD if self.balance > 0 else LONG), FLOOR * self.income)

    def dump(self) -> dict[str, Any]:
        """Return the account as JSON-like data."""
        return {"balance": self.balance, "income": self.income}

    @classmethod
    def load(cls, data: Mapping[str, Any] | None) -> CoreTime:
        """Read the data of :meth:`dump`. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError`."""
        if data is None:  # the first versions had no such bound
            return cls()
        balance, income = float(data["balance"]), None if data["income"] is None else float(data["income"])
        if not math.isfinite(balance) or not 0 <= (income or 0.0) < math.inf:
            raise ValueError("core time")
        return cls(balance, income)


@dataclass(frozen=True)
class TimeBound:
    """The seconds that a micro-batch may take: at most ``latency``, and no more than ``cpu`` cores do while the clock
    of the events goes on, if a micro-batch occupies all ``cores``. A tick of that clock takes ``tick`` seconds. At
    least ``least_share`` of the events is carried, even if the bound is missed.

    >>> bound = TimeBound(latency=2.0, cpu=0.5, cores=2, tick=0.001)
    >>> after = bound.account_for(CoreTime(), ticks=4_000, seconds=1.0)
    >>> after, bound.target(after), bound.bound_text(after)
    (CoreTime(balance=0.0, income=1.0), 1.0, 'cpu=0.5')
    """

    latency: float | None
    cpu: float | None = None
    cores: int = 1
    tick: float = 0.0
    least_share: float = MIN_SHARE

    def target(self, core_time: CoreTime) -> float:
        """Return the seconds that the next micro-batch may take."""
        latency = math.inf if self.latency is None else self.latency
        return latency if self.cpu is None else min(latency, core_time.target)

    def bound_text(self, core_time: CoreTime) -> str:
        """Return the bound that is in effect, as the user has written it."""
        latency = self.latency is not None and self.target(core_time) == self.latency
        return f"latency={self.latency:g}" if latency else f"cpu={self.cpu:g}"

    def account_for(self, core_time: CoreTime, *, ticks: int, seconds: float) -> CoreTime:
        """Account for a micro-batch that took ``seconds``, while the clock of the events went on by ``ticks``."""
        if self.cpu is None:
            return core_time
        share = self.cpu / self.cores
        return core_time.add_batch(income=share * ticks * self.tick, seconds=seconds, max_balance=share * CARRIED)
