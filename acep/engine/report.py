"""What a run did and what it gave up: events, work, matches, and an estimate of the recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from acep.engine.found import Counts

if TYPE_CHECKING:
    from acep.learning.recall import Tally

__all__ = ["Report"]

Interval = tuple[float, float]


@dataclass(frozen=True)
class Report:
    """What a run did.

    ``events`` seen, ``late`` ones refused; match nodes ``made``, ``kept`` as long as they could matter, and ``shed``
    for want of budget (events that were not let in count too); ``work`` in touches: arcs tried, and what ``deciding``
    is charged with; ``matches`` given; ``seconds`` of wall time; the most bytes of ``memory`` that were held, where the
    budget bounds them (0: it does not). ``recall`` is the share of all match points that were
    found, ``bundle_recall`` that of match bundles of which one match was, each with an interval that has it with a
    confidence of 90 % (docs/best_effort.md): 1 and (1, 1) where nothing was shed; ``None`` and (0, 1) where nothing is
    known, and then ``unknown`` says why. Under ``Budget(recover=)`` so many match bundles were
    ``recovered``, by an exact look at the events around what was found of them, and so many were not, for want of
    allowance (``unrecovered``); ``recovering`` of the touches went into that.

    >>> print(Report(events=1000, made=40, work=2000, matches=3, seconds=0.5))
    1,000 events, 3 matches in 0.50 s (2,000 events/s)
    40 nodes made, 2,000 touches; exact: nothing was shed
    """

    events: int = 0
    late: int = 0
    made: int = 0
    kept: int = 0
    shed: int = 0
    work: int = 0
    deciding: int = 0
    matches: int = 0
    seconds: float = 0.0
    memory: int = 0
    recall: float | None = 1.0
    interval: Interval = (1.0, 1.0)
    bundle_recall: float | None = 1.0
    bundle_interval: Interval = (1.0, 1.0)
    unknown: str = ""
    recovering: int = 0
    recovered: int = 0
    unrecovered: int = 0

    @classmethod
    def of(cls, counts: Counts, seconds: float = 0.0) -> Report:
        """The report of a run.

        >>> Report.of(Counts(events=5, nodes=2, touches=7, matches=1)).work
        7
        """
        points, point_interval = _estimated(counts, "points")
        bundles, bundle_interval = _estimated(counts, "bundles")
        return cls(
            events=counts.events,
            late=counts.late,
            made=counts.nodes,
            kept=max(0, counts.nodes - counts.shed),
            shed=counts.shed,
            work=counts.touches,
            deciding=counts.deciding,
            matches=counts.matches,
            seconds=seconds,
            memory=counts.memory,
            recall=points,
            interval=point_interval,
            bundle_recall=bundles,
            bundle_interval=bundle_interval,
            unknown=counts.unknown if points is None else "",
            recovering=counts.recovering,
            recovered=counts.recovered,
            unrecovered=counts.unrecovered,
        )

    @property
    def exact(self) -> bool:
        """Whether nothing was given up for want of budget."""
        return self.shed == 0

    def __str__(self) -> str:
        first = f"{_count(self.events, 'event')}, {_count(self.matches, 'match', 'matches')}"
        if self.seconds > 0:
            first += f" in {self.seconds:.2f} s ({self.events / self.seconds:,.0f} events/s)"
        if self.late:
            first += f"; {_count(self.late, 'event')} came too late"
        return f"{first}\n{self.effort}"

    @property
    def effort(self) -> str:
        """Nodes, work, what was given up, and what that may have cost, as one line or two."""
        done = f"{_count(self.made, 'node')} made, {_count(self.work, 'touch', 'touches')}"
        if not self.exact:
            done += f" ({self.deciding:,} of them to decide)"
        if self.memory:
            done += f", at most {self.memory / 2**20:,.1f} MB held"
        if self.exact:
            return f"{done}; exact: nothing was shed"
        done += f"; {self.shed:,} shed\n"
        if self.recovered or self.unrecovered:
            many = _count(self.recovered, "bundle")
            done += f"{many} recovered with {_count(self.recovering, 'touch', 'touches')}, {self.unrecovered:,} not\n"
        if self.recall is None:
            return f"{done}matches may be missing: {self.unknown or 'how many is not known'}"
        done += f"estimated recall of match points {_share(self.recall, self.interval)}"
        if self.bundle_recall is not None:
            done += f", of match bundles {_share(self.bundle_recall, self.bundle_interval)}"
        return done


def _estimated(counts: Counts, of: str) -> tuple[float | None, Interval]:
    if counts.shed == 0:
        return 1.0, (1.0, 1.0)
    tally: Tally | None = getattr(counts, of)
    found = None if tally is None else tally.estimate()
    return (None, (0.0, 1.0)) if found is None else (found.recall, (found.low, found.high))


def _share(recall: float, interval: Interval) -> str:
    return f"{recall:.1%} ({interval[0]:.1%} to {interval[1]:.1%})"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
