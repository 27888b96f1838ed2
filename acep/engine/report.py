"""What a run did and what it gave up: events, work, matches, and an estimate of the recall."""

from __future__ import annotations

from dataclasses import dataclass

from acep.engine.found import Counts

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """What a run did.

    ``events`` seen, ``late`` ones refused; match nodes ``made``, ``kept`` as long as they could matter, and ``shed``
    for want of budget (events that were not let in count too); ``work`` in touches (arcs tried, and what deciding is
    charged with); ``matches`` given; ``seconds`` of wall time; the most bytes of ``memory`` that were held, where the
    budget bounds them (0: it does not). ``recall`` is the share of the exact answer that was
    found, with an ``interval`` of 95 % confidence: 1 and (1, 1) where nothing was shed, ``None`` where it is not
    estimated.

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
    matches: int = 0
    seconds: float = 0.0
    memory: int = 0
    recall: float | None = 1.0
    interval: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def of(cls, counts: Counts, seconds: float = 0.0) -> Report:
        """The report of a run.

        >>> Report.of(Counts(events=5, nodes=2, touches=7, matches=1)).work
        7
        """
        return cls(
            events=counts.events,
            late=counts.late,
            made=counts.nodes,
            kept=max(0, counts.nodes - counts.shed),
            shed=counts.shed,
            work=counts.touches,
            matches=counts.matches,
            seconds=seconds,
            memory=counts.memory,
            recall=1.0 if counts.shed == 0 else None,
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
        """Nodes, work, and what was given up, as a line."""
        done = f"{_count(self.made, 'node')} made, {_count(self.work, 'touch', 'touches')}; "
        if self.memory:
            done += f"at most {self.memory / 2**20:,.1f} MB held; "
        if self.exact:
            return done + "exact: nothing was shed"
        done += f"{self.shed:,} shed; "
        if self.recall is None:
            return done + "matches may be missing"
        low, high = self.interval
        return f"{done}estimated recall {self.recall:.1%} ({low:.1%} to {high:.1%})"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
