"""Say how far back a change may reach in each partition, where punctuations make some partitions final earlier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from acep.arrivals.event_log import EventLog
from acep.events.punctuations import BEGINNING, Key, Punctuations
from acep.plan.compile import Plan
from acep.plan.reactions import reacting_types

__all__ = ["FinalPartitions"]

Ints = npt.NDArray[np.int64]
Buckets = npt.NDArray[np.bool_] | None


@dataclass
class FinalPartitions:
    """The partitions of one plan that punctuations make final up to a time of their own, as they are now.

    ``waits``: how many windows after its first event a match is decided; ``n_events``: how many events before a change
    are concerned, where positions are counted; ``leads``: matches look at a window before them. ``until``: the time
    from which nothing counts as final (``None``: there is none). ``buckets``: only these partitions will be asked for.
    """

    plan: Plan
    log: EventLog
    punctuations: Punctuations
    waits: int
    n_events: int
    leads: bool
    until: int | None
    buckets: Buckets = None
    _cuts: dict[Key, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.plan.window.span is not None
        assert not self.plan.strict
        self._span = self.plan.window.span
        self._types = reacting_types(self.plan)
        if self.plan.window.counted:
            places, codes, keys = self.log.partitions(self.buckets)
            cuts = _last_before(self.log.ts[places], codes, [self._final(key) for key in keys], self.n_events)
            self._cuts = dict(zip(keys, cuts, strict=True))

    def cut(self, key: Key) -> int:
        """Return the earliest start of a match of a partition that may still change, by the punctuations."""
        if key not in self._cuts:
            final = self._final(key)
            back = 0 if self.plan.window.counted else self.waits * self._span
            self._cuts[key] = max(BEGINNING, final - back)
        return self._cuts[key]

    def begins(self, since: Callable[[Key, int], int] | None) -> Ints:
        """Return for each event of the log the time from which the events of its partition are needed. ``since(key,
        cut)``: the first time of the matches that are needed, if none that begins before ``cut`` changes."""
        _, codes, keys = self.log.partitions(None)
        starts = [self.cut(key) for key in keys]
        if since is not None:
            starts = [min(cut, since(key, cut)) for key, cut in zip(keys, starts, strict=True)]
        if self.leads and self.plan.window.counted:
            starts = _last_before(self.log.ts, codes, starts, self._span)
        elif self.leads:
            starts = [max(BEGINNING, start - self._span) for start in starts]
        return np.array(starts, np.int64)[codes]

    def _final(self, key: Key) -> int:
        final = self.punctuations.final(self.plan.keys, key, self._types)
        if final is None:
            return BEGINNING
        return final if self.until is None else min(final, self.until)


def _last_before(ts: Ints, codes: Ints, ticks: Sequence[int], n_events: int) -> list[int]:
    """Return for each partition the time of the last of ``n_events`` events before its tick, or of its first event
    where there are fewer; the tick itself where there is none. ``codes``: the partition of each event.

    >>> _last_before(np.array([1, 2, 3, 4, 5]), np.array([0, 1, 0, 0, 1]), [4, 2], 2)
    [1, 2]
    """
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(ticks) + 1))
    times = list(ticks)
    for number, tick in enumerate(ticks):
        partition_times = ts[order[bounds[number] : bounds[number + 1]]]
        end = int(np.searchsorted(partition_times, tick))
        if end and n_events:
            times[number] = int(partition_times[max(0, end - n_events)])
    return times
