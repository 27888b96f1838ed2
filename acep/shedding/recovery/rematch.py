"""Match a part of a stream once more, exactly, within a given number of touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.events.pushed_rows import Pushed, rows_of
from acep.matches.found_columns import FoundColumns, concatenate
from acep.shedding.recovery.pending import ALWAYS, NEVER, where

if TYPE_CHECKING:
    from acep.shedding.native_protocol import PlanSession

__all__ = ["SHED", "Rematch", "rematch"]

PART = 256  # events between two reads of matches
SHED = ("refused", "dropped", "passed_over", "withheld")
"""The core's counters of what it sheds."""


@dataclass(frozen=True)
class Rematch:
    """An exact run over a part of the stream: its matches (``found``); ``done``, the time up to which they are
    complete; ``last``, the last match point; ``enough``: whether the allowance sufficed; and the touches ``spent``."""

    found: FoundColumns | None
    done: int
    last: int
    enough: bool
    spent: int = 0


def rematch(
    session: PlanSession,
    plan: int,
    shedding_table: dict[str, Any],
    events: Pushed | None,
    begin: int,
    stop: int,
    last: int,
    span: int,
    most: int,
) -> Rematch:
    """Return the matches of ``events`` that end from ``begin`` to ``stop``, exactly, at ``most`` touches, but no later
    than ``span`` (a window) after the last one; ``last``: a known match point (``ALWAYS``: all up to ``stop``)."""
    reach = min(stop, last + span)
    if events is None or int(events[0][0]) > reach:
        return Rematch(None, reach, last, True)
    if most < 1:
        return Rematch(None, NEVER, last, False)
    ts = events[0]
    core = session.another_core(plan, shedding_table)
    core.allow(0, float(most), np.inf)
    # The whole allowance is granted with the first event.
    core.push(*rows_of(events, slice(0, 1)))
    core.allow(0, 0.0, np.inf)
    found: list[FoundColumns] = []
    at, done, enough = 1, NEVER, True
    while True:
        counts = core.shedding_counts(0)
        if any(counts[name] for name in SHED):
            enough = False
            break
        own = session.columns(plan, core.take(0))
        own = where(own, own.end >= begin)
        if len(own):
            found.append(own)
            last = max(last, int(own.end.max())) if last < ALWAYS else last
            reach = min(stop, last + span)
        if at == len(ts) or ts[at] > ts[at - 1]:
            done = int(ts[at - 1])
        if at == len(ts) or int(ts[at]) > reach:
            break
        # Events of one time are pushed together.
        upto = int(np.searchsorted(ts, min(reach, ts[min(at + PART, len(ts)) - 1]), "right"))
        core.push(*rows_of(events, slice(at, upto)))
        at = upto
    if enough:
        done = reach
    everything = concatenate(found) if found else None
    if everything is not None:
        everything = where(everything, everything.end <= done)
    return Rematch(everything, done, last, enough, int(core.shedding_counts(0)["spent"]))
