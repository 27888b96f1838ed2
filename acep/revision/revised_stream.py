"""Match a stream whose events may still come, or be taken back, before others that were matched already.

The stream is always the sorted, corrected stream of the events so far. A change at the time t concerns only matches
whose window may hold t, so their partitions are matched again from a window before t on, and the difference to the
matches given before is given: a match that is new, or one that is taken back (docs/internals/disorder.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch
from acep.events.punctuations import Punctuations
from acep.matches.bundle_chain import with_keys
from acep.matches.records import Counts, Found
from acep.plan.compile import Plan
from acep.reference.single_events import matches_one_event
from acep.revision.revised_plan import RevisedPlan
from acep.runtime.stream import GIVEN_UP, SEVERAL
from acep.shedding.limits import Limits
from acep.storage.plain_data import from_json, to_plain

if TYPE_CHECKING:
    from acep.matches.partials.partial_columns import PartialColumns

__all__ = ["RevisedStream"]

Ints = npt.NDArray[np.int64]

SUMMED = (*GIVEN_UP, "nodes", "touches", "deciding", "matches", "retracted", "memory")  # over several plans


def _run_as(plan: Plan, engine: str) -> Plan:
    """Return the plan that runs in place of a plan: the finer one where it finds all matches, which have no bundles."""
    finer = None if engine == "reference" or matches_one_event(plan) else plan.finer
    return plan if finer is None else finer


class RevisedStream:
    """The state of plans over one stream that may be revised; each plan runs alone.

    Batches come with the arrival numbers of their events. Matches are those of :class:`acep.runtime.stream.Stream`
    over the events so far, with ``op`` -1 where one that was given is taken back; they have no bundles. Under
    ``limits`` they are some of these.
    """

    def __init__(self, plans: Sequence[Plan], engine: str = "auto", limits: Limits | None = None) -> None:
        self.plans = tuple(plans)
        shares = [None if limits is None else limits.share(self.plans, n) for n in range(len(self.plans))]
        runs = [_run_as(plan, engine) for plan in self.plans]
        self._parts = [RevisedPlan(plan, engine, share) for plan, share in zip(runs, shares, strict=True)]
        self._events = 0

    def push(self, batch: Batch | None, numbers: Ints, inserted: int, removed: Sequence[int]) -> list[Sequence[Found]]:
        """Push events in stream order, the first ``inserted`` of which belong before others that were pushed earlier.
        Remove events by their arrival numbers. Return the matches that come and go."""
        self._events += (0 if batch is None else len(batch)) - len(removed)
        gone = np.array(removed, np.int64)
        return self._with_plan_keys([part.push(batch, numbers, inserted, gone) for part in self._parts])

    def _with_plan_keys(self, matches: list[Sequence[Found]]) -> list[Sequence[Found]]:
        """Return matches of each plan with its keys, where a finer one runs."""
        return [
            with_keys(of_plan, len(plan.keys)) if len(part.plan.keys) > len(plan.keys) else of_plan
            for of_plan, plan, part in zip(matches, self.plans, self._parts, strict=True)
        ]

    def change(self, number: int, plan: Plan) -> None:
        """Go on with another plan in place of plan ``number``: a query that has changed."""
        self._parts[number].change(plan)
        self.plans = (*self.plans[:number], plan, *self.plans[number + 1 :])

    def check(self, number: int, plan: Plan) -> None:
        """Raise :class:`EngineError` for a plan that :meth:`change` would refuse."""
        self._parts[number].stream.check(0, plan)

    def change_since(self, number: int, plan: Plan, since: int) -> Sequence[Found]:
        """Go on with another plan, which is another one for events from the tick ``since`` on. Return the matches that
        come and go."""
        matches = self._parts[number].change_since(plan, since)
        self.plans = (*self.plans[:number], plan, *self.plans[number + 1 :])
        return matches

    @property
    def oldest(self) -> int | None:
        """Return the time of the oldest event that may be matched again, in ticks; ``None``: there is none."""
        times = [oldest for part in self._parts if (oldest := part.log.oldest) is not None]
        return min(times, default=None)

    @property
    def live(self) -> int:
        """Return the number of partial matches of all plans whose window is not over."""
        return sum(part.stream.live for part in self._parts)

    def live_of(self, number: int) -> int:
        """Return how many partial matches of a plan that may change are in states of its last version."""
        return self._parts[number].stream.live_of(0)

    def advance(self, clock: int) -> list[Sequence[Found]]:
        """Declare that no event with ``ts <= clock`` will be pushed as one of the next, only as one inserted."""
        return self._with_plan_keys([part.advance(clock) for part in self._parts])

    def finish(self) -> list[Sequence[Found]]:
        """End the stream and return the remaining matches."""
        return self._with_plan_keys([part.finish() for part in self._parts])

    def begin(self, final: int | None) -> None:
        """Declare that no event before ``final`` will come or go, before what comes next."""
        for part in self._parts:
            part.final = final

    def punctuate(self, punctuations: Punctuations, *, at_once: bool) -> None:
        """Take these punctuations for what may be forgotten. ``at_once``: all events that have come were pushed."""
        for part in self._parts:
            part.punctuations, part.at_once = punctuations, at_once

    def forget_final(self, final: int | None, *, now: bool = False) -> None:
        """Forget what only an event before ``final`` could change (``None``: no time is final), or what punctuations
        make final: in one of some calls, or ``now``."""
        for part in self._parts:
            part.forget_final(final, now=now)

    def certain_until(self, final: int) -> int | None:
        """Return the time up to which no match point changes any more, if no event before ``final`` changes.
        ``None``: it is not known."""
        times = [part.certain_until(final) for part in self._parts]
        return None if None in times else min(time for time in times if time is not None)

    @property
    def counts(self) -> Counts:
        """Return the events and the work of all plans; ``matches`` is the number of those given and not taken back."""
        parts = [self.counts_of(number) for number in range(len(self.plans))]
        if len(parts) == 1:
            return parts[0]
        sums: dict[str, Any] = {name: sum(getattr(part, name) for part in parts) for name in SUMMED}
        return replace(parts[0], **sums, unknown=SEVERAL)

    def counts_of(self, plan: int) -> Counts:
        """Return the events, and the work and matches of plan number ``plan``."""
        part = self._parts[plan]
        counts, past = part.stream.counts, part.past
        if part.room is not None:
            # What a room gives up are events and matches.
            counts = counts.replace(
                shed=counts.shed + part.room.shed,
                skipped=counts.skipped + part.room.shed,
                memory=counts.memory + part.room.peak,
            )
        return counts.replace(
            nodes=counts.nodes + past.nodes,
            touches=counts.touches + past.touches,
            events=self._events,
            matches=part.matches,
            retracted=part.retracted,
        )

    def partial_matches(self, number: int, limit: int, *, apart: bool) -> PartialColumns:
        """Return the ``limit`` last partial matches of a plan, as of all events that have been matched."""
        return self._parts[number].stream.partial_matches(0, limit, apart=apart).with_keys(len(self.plans[number].keys))

    def record_seconds(self, processor: float, wall: float) -> None:
        """Record the seconds that the whole call took that pushed the last events; a budget of time counts them."""
        for part in self._parts:
            part.stream.record_seconds(processor / len(self._parts), wall / len(self._parts))

    @property
    def held(self) -> int:
        """Return the number of events that are kept for revisions, by the plan that keeps most."""
        return max(part.held for part in self._parts)

    def events(self) -> Batch | None:
        """Return the events that are kept for revisions; ``None``: there are none."""
        batch, _ = self._parts[0].log.all_events()
        return batch if len(batch) else None

    def snapshot(self) -> Any:
        """Return the state: the events that are kept. The matches that may be taken back are found again from them."""
        return to_plain({"parts": [part.dump() for part in self._parts], "events": self._events})

    def restore(self, data: Any) -> None:
        """Restore the state of :meth:`snapshot` in a new stream. Raises :class:`ValueError`, :class:`KeyError`,
        :class:`AttributeError` or :class:`TypeError` for other data."""
        payload = from_json(data)
        states, self._events = payload["parts"], int(payload["events"])
        for part, state in zip(self._parts, states, strict=True):
            part.load(state)
