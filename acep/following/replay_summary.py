"""Define what a replay has done: its metrics, for a user to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from acep.display import rate_text
from acep.matches.flat import Layout
from acep.matches.report import Report, count_text
from acep.streaming.progress import Progress, length_text
from acep.streaming.time_spent import Spent

__all__ = ["ReplaySummary"]


@dataclass(eq=False, kw_only=True)
class ReplaySummary:
    """The metrics of a replay.

    ``events`` accepted, ``late`` events refused, ``matches`` and ``bundles`` found, micro-``batches`` and ``seconds``
    of this run, and the split ``spent`` of their time. ``report`` corresponds to :attr:`acep.Matches.report`, and
    ``allowance`` is the number of transition evaluations that a budget allowed (0: no budget). The maxima over all
    micro-batches are bytes of ``state``, ``live`` partial matches and seconds of ``lag``. ``layout`` says which columns
    the flat table of the matches has.
    """

    events: int
    late: int
    matches: int
    bundles: int
    batches: int
    seconds: float
    report: Report
    allowance: int
    spent: Spent = field(default_factory=Spent)
    state: int = 0
    live: int = 0
    lag: float = 0.0
    layout: Layout = field(repr=False, default=Layout((), frozenset()))

    @staticmethod
    def maxima(progresses: Sequence[Progress]) -> dict[str, Any]:
        """Return the fields that sum up the micro-batches of a run, by name."""
        return {
            "batches": len(progresses),
            "spent": sum((progress.spent for progress in progresses), Spent()),
            "state": max((progress.state for progress in progresses), default=0),
            "live": max((progress.live for progress in progresses), default=0),
            "lag": max((progress.lag or 0.0 for progress in progresses), default=0.0),
        }

    def __str__(self) -> str:
        rate = rate_text(self.events, self.seconds) if self.batches else ""
        speed = f" ({rate} events/s)" if rate else ""
        late = f"; {self.report.refused}" if self.report.refused else ""
        late += f"; {self.report.duplicates:,} came twice" if self.report.duplicates else ""
        batches, bundles = count_text(self.batches, "micro-batch", "micro-batches"), count_text(self.bundles, "bundle")
        text = (
            f"{count_text(self.events, 'event')} in {batches}, {self.seconds:.1f} s{speed}{late}\n"
            f"{count_text(self.matches, 'match', 'matches')} in {bundles}"
        )
        if self.batches:
            live = count_text(self.live, "live partial match", "live partial matches")
            text += (
                f"\nat most {self.state / 1e6:,.2f} MB of state, {live} and a lag of"
                f" {length_text(self.lag)}\ntime of micro-batches: {self.spent}"
            )
        return f"{text}\n{self.report.effort}" if self.allowance else text
