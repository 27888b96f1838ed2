"""Match the events of a lint within a bound on the work, to say what is true of the matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from acep.budget import Budget
from acep.budget.policies import policy_of
from acep.events.batch import Batch
from acep.matches.records import Found
from acep.native.compiled import chosen
from acep.plan.compile import Plan
from acep.runtime.stream import Stream
from acep.shedding.limits import Limits

__all__ = ["TriedMatches", "match_number", "tried_matches"]

EFFORT = 1_000_000  # touches
MOST = 20_000  # matches that are looked at
PART = 1024  # events between two looks at the work
BURST = 4  # how many times the mean work of the bound a part may need


@dataclass(frozen=True)
class TriedMatches:
    """The ``matches`` in the first ``events`` events. ``is_all``: they are all matches of all events."""

    matches: Sequence[Found]
    events: int
    is_all: bool


def tried_matches(plan: Plan, batch: Batch) -> TriedMatches:
    """Return the matches of the first events, of as many as :data:`EFFORT` permits, and about :data:`MOST` of them."""
    so_far: list[Found] = []
    events = 0
    for part, stream in _parts(plan, batch, "matches"):
        (matches,) = stream.push(part)
        if _exceeds(stream):
            return TriedMatches(so_far, events, False)
        events += len(part)
        so_far += matches[: MOST - len(so_far)]
        if events == len(batch):
            (matches,) = stream.finish()
            so_far += matches[: MOST - len(so_far)]
        if len(so_far) >= MOST:
            return TriedMatches(so_far, events, False)
    return TriedMatches(so_far, events, True)


def match_number(plan: Plan, batch: Batch) -> int | None:
    """Return the number of matches; ``None`` if it takes more work than :data:`EFFORT` to count them."""
    number, events = 0, 0
    for part, stream in _parts(plan, batch, "count"):
        (matches,) = stream.push(part)
        events += len(part)
        if _exceeds(stream):
            return None
        counted = stream.counted(0)
        number += counted if isinstance(counted, int) else len(matches)
        if events == len(batch):
            (matches,) = stream.finish()
            counted = stream.counted(0)
            number += counted if isinstance(counted, int) else len(matches)
    return number


def _parts(plan: Plan, batch: Batch, output: str) -> Iterator[tuple[Batch, Stream]]:
    """Yield parts of the events, each with the stream to push it to."""
    if not len(batch):
        return
    limits, size, work = None, 1, max(BURST * EFFORT / len(batch), 1.0)
    if not plan.sources and chosen(plan.finer or plan, "auto", output).engine != "reference":
        limits, size = Limits(policy_of("newest"), Budget(work=work, estimate=0)), PART
    stream = Stream([plan], output=output, limits=limits)
    for part in batch.parts(size):
        stream.allow(work, len(part), EFFORT)  # one partial match may stand for very many matches
        yield part, stream


def _exceeds(stream: Stream) -> bool:
    counts = stream.counts
    return counts.shed > 0 or max(counts.touches, counts.matches) > EFFORT
