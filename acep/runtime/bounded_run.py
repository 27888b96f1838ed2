"""Run a plan over events exactly, and stop where a bound on the work does not suffice: no input takes for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from acep.budget import Budget
from acep.events.batch import Batch
from acep.matches.records import Counts, Found
from acep.native.compiled import choose_engine
from acep.plan.compile import Plan
from acep.runtime.options import StreamOptions
from acep.runtime.stream import Stream

__all__ = ["A_TOUCH", "BoundedRun", "cost_of"]

FIRST = 16  # events in the first parts
EIGHTH = 8  # later parts have one event for each so many that came before them,
PART = 1024  # but no more than this
UNBOUNDED = 1e15  # touches an event: more than any part is allowed

A_TOUCH = 20
"""So many matches that are made or counted one by one take about the time of a touch."""


@dataclass
class BoundedRun:
    """A run of a ``plan`` with a bound on the ``touches`` and on the ``matches``. ``output`` and ``engine`` are
    those of :class:`acep.runtime.stream.Stream`. ``n_events``: so many of the first events were processed; they were
    all if it ``is_whole``."""

    plan: Plan
    touches: int
    matches: float
    output: str = "matches"
    engine: str = "auto"
    n_events: int = 0
    is_whole: bool = False
    stream: Stream = field(init=False)

    def __post_init__(self) -> None:
        self.is_native = (
            not self.plan.sources and choose_engine(self.plan.finer or self.plan, self.engine).engine != "reference"
        )
        limits = None
        if self.is_native:
            options = StreamOptions(budget=Budget(work=UNBOUNDED, estimate=0), policy="newest")
            limits = options.limits()
        self.stream = Stream([self.plan], self.engine, self.output, limits)

    def parts(self, batch: Batch) -> Iterator[Sequence[Found]]:
        """Yield the matches of a batch part by part, the last ones at its end; stop, without the matches of the last
        part, where the bounds do not suffice."""
        n_matches = 0
        for part in _growing_parts(batch) if self.is_native else batch.parts(1):
            if self.is_native:
                left = self.touches - cost_of(self.stream.counts) + 1
                self.stream.allow(left / len(part), len(part), min(left * A_TOUCH, self.matches - n_matches + 1))
            (matches,) = self.stream.push(part)
            n_matches += len(matches)
            counts = self.stream.counts
            if not counts.whole or cost_of(counts) >= self.touches or n_matches > self.matches:
                return
            self.n_events += len(part)
            yield matches
        self.is_whole = True
        yield self.stream.finish()[0]


def cost_of(counts: Counts) -> int:
    """Return the touches of a run, and what its matches cost."""
    return counts.touches + counts.matches // A_TOUCH


def _growing_parts(batch: Batch) -> Iterator[Batch]:
    """Yield a batch in parts that grow, so that a cut between two of them loses a small share of what fits."""
    begin = 0
    for rows in batch.cuts(FIRST):
        if rows.stop - begin >= min(PART, max(FIRST, begin // EIGHTH)) or rows.stop == len(batch):
            yield batch.take(slice(begin, rows.stop))
            begin = rows.stop
