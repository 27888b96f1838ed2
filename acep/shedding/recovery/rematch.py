"""Match a part of a stream once more, exactly, within a given number of touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.events.pushed_rows import Pushed, rows_of
from acep.matches.found_columns import FoundColumns, concatenate
from acep.shedding.recovery.pending import ALWAYS, NEVER, select_matches

if TYPE_CHECKING:
    from acep.shedding.native_protocol import PlanSession

__all__ = ["SHED", "AskedMatches", "Rematch", "rematch"]

PART = 256  # events between two reads of matches
SHED = ("refused", "dropped", "passed_over", "withheld")
"""The core's counters of what it sheds."""


@dataclass(frozen=True)
class AskedMatches:
    """Which matches are to be found: those that end from ``begin`` to ``stop``, but no later than ``span`` (a window)
    after the last one; ``last``: a match point already known (``ALWAYS``: all up to ``stop``)."""

    begin: int
    stop: int
    last: int
    span: int

    def reach(self, last: int) -> int:
        """Return the latest time at which a match may end, where the last one so far ends at ``last``."""
        return min(self.stop, last + self.span)


@dataclass(frozen=True)
class Rematch:
    """An exact run over a part of the stream: its ``matches``; ``exact_until``, the time up to which they are complete;
    ``last``, the last match point; ``enough``: whether the allowance sufficed; and the touches ``spent``."""

    matches: FoundColumns | None
    exact_until: int
    last: int
    enough: bool
    spent: int = 0


def rematch(
    session: PlanSession,
    plan: int,
    shedding_table: dict[str, Any],
    events: Pushed | None,
    asked: AskedMatches,
    allowance: int,
) -> Rematch:
    """Return those of the matches of ``events`` that are ``asked`` for, exactly, at ``allowance`` touches."""
    last, reach = asked.last, asked.reach(asked.last)
    if events is None or int(events[0][0]) > reach:
        return Rematch(None, reach, last, True)
    if allowance < 1:
        return Rematch(None, NEVER, last, False)
    ts = events[0]
    core = session.another_core(plan, shedding_table)
    core.allow(0, float(allowance), np.inf)
    # The whole allowance is granted with the first event.
    core.push(*rows_of(events, slice(0, 1)))
    core.allow(0, 0.0, np.inf)
    parts: list[FoundColumns] = []
    position, exact_until, enough = 1, NEVER, True
    while True:
        counts = core.shedding_counts(0)
        if any(counts[name] for name in SHED):
            enough = False
            break
        matches = session.columns(plan, core.take(0))
        matches = select_matches(matches, matches.end >= asked.begin)
        if len(matches):
            parts.append(matches)
            last = max(last, int(matches.end.max())) if last < ALWAYS else last
            reach = asked.reach(last)
        if position == len(ts) or ts[position] > ts[position - 1]:
            exact_until = int(ts[position - 1])
        if position == len(ts) or int(ts[position]) > reach:
            break
        # Events of one time are pushed together.
        stop_position = int(np.searchsorted(ts, min(reach, ts[min(position + PART, len(ts)) - 1]), "right"))
        core.push(*rows_of(events, slice(position, stop_position)))
        position = stop_position
    if enough:
        exact_until = reach
    everything = concatenate(parts) if parts else None
    if everything is not None:
        everything = select_matches(everything, everything.end <= exact_until)
    return Rematch(everything, exact_until, last, enough, int(core.shedding_counts(0)["spent"]))
