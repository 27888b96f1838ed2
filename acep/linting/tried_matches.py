"""Match the events of a lint within a bound on the work, to say what is true of the matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acep.events.batch import Batch
from acep.matches.records import Found
from acep.plan.compile import Plan
from acep.runtime.bounded_run import BoundedRun

__all__ = ["TriedMatches", "match_number", "tried_matches"]

EFFORT = 1_000_000  # touches, and matches that are made
SLOWER = 20  # how many times dearer a touch of the reference runtime is
MATCH_LIMIT = 20_000  # matches that are looked at


@dataclass(frozen=True)
class TriedMatches:
    """The first ``matches``. ``is_all``: they are all matches of all events."""

    matches: Sequence[Found]
    is_all: bool


def tried_matches(plan: Plan, batch: Batch) -> TriedMatches:
    """Return the matches of the first events, of as many as :data:`EFFORT` permits, and :data:`MATCH_LIMIT` at most."""
    run = BoundedRun(plan, EFFORT, EFFORT)
    so_far: list[Found] = []
    for matches in run.parts(batch):
        so_far += matches[: MATCH_LIMIT - len(so_far)]
        if len(so_far) >= MATCH_LIMIT:
            return TriedMatches(so_far, False)
    return TriedMatches(so_far, run.is_whole)


def match_number(plan: Plan, batch: Batch) -> int | None:
    """Return the number of matches; ``None`` if it takes more work than :data:`EFFORT` to count them."""
    run, number = BoundedRun(plan, EFFORT, EFFORT, "count"), 0
    if not run.is_native:
        run.touches //= SLOWER
    for matches in run.parts(batch):
        counted = run.stream.take_counted(0)
        number += counted if isinstance(counted, int) else len(matches)
    return number if run.is_whole else None
