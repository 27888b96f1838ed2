"""Decide what a micro-batch sheds before its events travel, and account for it afterwards (no Spark)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acep.learning.estimation.recall import Tally
from acep.overload.batch_log import BatchLog, Decision, RunningTotals, decide
from acep.overload.event_choice import Explored, Exploring
from acep.overload.key_utility import CellUtility, share_of
from acep.overload.load import SENT, Load, Measured
from acep.overload.sampled_recall import POINTS, points_in, tally_of, with_shed
from acep.overload.time_bound import TimeBound
from acep.overload.unit_admission import CELLS, UnitAdmission
from acep.streaming.progress import Progress
from acep.streaming.time_spent import spent_of
from acep.streaming.totals import COMPACT

__all__ = [
    "DECISION",
    "EarlyShedding",
    "carried_after",
    "decision_in",
    "pack_decision",
    "sheds_nothing",
    "with_carried",
]

DECISION = "decision "
"""The prefix of the texts of :func:`pack_decision`."""


@dataclass(frozen=True)
class EarlyShedding:
    """The shedding of a job before its events travel. ``bound`` is the time bound of a micro-batch: ``admission``, the
    first one, sheds events to keep it, and so do the workers if they are ``paced``; both are ``None`` without a bound
    of time. ``delay`` is that of the watermark, in ticks. ``exploring`` says which single events may be shed;
    ``has_cells`` whether match points are counted by cell of their key."""

    admission: UnitAdmission | None
    bound: TimeBound | None
    paced: bool
    delay: int
    exploring: Exploring | None = None
    has_cells: bool = False

    def decide(self, decision: Decision) -> Decision:
        """Decide which events are admitted from now on."""
        share, events = 1.0, replace(decision.events, n_cells=None)
        if self.admission is not None and self.bound is not None:
            last = decision.admission or self.admission
            now = share_of(last.newest, last.favoured[-1], decision.utility.events)
            now *= 1.0 if self.exploring is None else decision.events.share(self.exploring.utility)
            target = self.bound.target(decision.core_time)
            share = decision.load.share(target, now, self.bound.least_share)
            if self.exploring is not None and share < 1:
                events = decision.events if share == now else events.choose(self.exploring.utility, share)
            if share != now:
                decision = replace(decision, load=decision.load.skip_next())
        decision = replace(decision, events=events)
        share = 1.0 if events.n_cells is not None else share
        return decide(decision, self.admission, share, self.delay)

    def begin_batch(self, log: BatchLog, batch: int, seen: int | None) -> Decision:
        """Return the decision of a micro-batch, which whoever comes first makes and writes. ``seen`` is the greatest
        tick of earlier micro-batches. Without the counts of the one before, its own decision is gone on from."""
        if (begun := log.read_begin(batch)) is not None:
            return begun
        decision = log.read_end(batch - 1) if batch else None
        uncounted = log.read_begin(batch - 1) if batch and decision is None else None
        decision = decision or uncounted or Decision(admission=self.admission)
        carried = decision.carried
        ticks = [tick for tick in (carried.seen, seen) if tick is not None]
        carried = replace(carried, seen=max(ticks, default=None), uncounted=carried.uncounted + (uncounted is not None))
        return log.begin(batch, self.decide(replace(decision, carried=carried)))

    def next_decision(
        self, decision: Decision, counts: Mapping[str, Any], metrics: Sequence[str], seconds: float
    ) -> Decision:
        """Return the decision with which the next micro-batch begins. ``counts`` are those of the rows of this one, and
        ``metrics`` what its buckets reported."""
        n_needed, n_sent = int(counts["needed"]), int(counts[SENT])
        carried = carried_after(decision, counts, metrics)
        by_cell, _, explored, _ = points_in(metrics)
        greatest, before = counts["seen"], decision.carried.seen
        carrying = seconds
        if self.paced:  # the workers bound the time of matching themselves
            lines = [json.loads(text) for text in metrics if not text.startswith((POINTS, DECISION))]
            carrying = spent_of(lines, seconds).carrying
        load = decision.load.add_seconds(seconds) if self.paced else decision.load
        load = load.add_batch(Measured(int(counts["rows"]), n_needed, n_sent, carrying))
        utility = decision.utility
        if self.has_cells and decision.events.n_cells is None:
            utility = utility.add_batch(by_cell[0], by_cell[2], _chances(decision, greatest))
        core_time = decision.core_time
        if self.bound is not None and greatest is not None:
            ticks = 0 if before is None else max(0, greatest - before)
            core_time = self.bound.account_for(core_time, ticks=ticks, seconds=seconds)
        events = decision.events.add_counts(explored)
        return Decision(
            decision.admission, load, carried, utility, core_time=core_time, events=events, version=decision.version
        )

    def is_out_of_reach(self, decision: Decision) -> bool:
        """Return whether a micro-batch with this decision takes longer than its bound whatever is shed."""
        return self.bound is not None and decision.load.is_out_of_reach(self.bound.target(decision.core_time))

    def is_behind(self, outcome: Decision) -> bool:
        """Return whether micro-batches take longer than their bound, and shedding does not help or does not suffice."""
        if self.bound is None or self.admission is None:
            return False
        return outcome.load.is_behind(self.bound.target(outcome.core_time), self.bound.least_share)

    def behind_text(self, outcome: Decision, seconds: float) -> str:
        """Return the warning for a stream that falls behind, whose last micro-batch took ``seconds``."""
        assert self.bound is not None
        bound = self.bound.bound_text(outcome.core_time)
        return (
            f"the stream falls behind {bound}: a micro-batch took {seconds:.2g} s"
            f"{outcome.load.behind_reason(self.bound.target(outcome.core_time))}"
            " (fewer events a micro-batch, or more cores)"
        )


def sheds_nothing(decision: Decision) -> bool:
    """Return whether no event has been shed up to the end of a micro-batch with this decision."""
    admits_all = decision.admission is None or decision.admission.admits_all
    return admits_all and decision.events.n_cells is None and decision.carried.shed == 0


def pack_decision(decision: Decision) -> str:
    """Pack the decision of a micro-batch into a text for :func:`decision_in`, without what progress does not need."""
    short = replace(decision, load=Load(), utility=CellUtility.empty(), versions=(), version=0)
    return DECISION + json.dumps(short.dump(), separators=COMPACT)


def decision_in(texts: Sequence[str]) -> Decision | None:
    """Return the decision of a micro-batch from the texts of its partitions."""
    packed = next((text for text in texts if text.startswith(DECISION)), None)
    return None if packed is None else Decision.load_from(json.loads(packed.removeprefix(DECISION)))


def carried_after(decision: Decision, counts: Mapping[str, Any], metrics: Sequence[str]) -> RunningTotals:
    """Return the totals after a micro-batch with this decision."""
    so_far = decision.carried
    shed, greatest, late = int(counts["needed"]) - int(counts[SENT]), counts["seen"], int(counts.get("late", 0))
    by_cell, length, explored, has_points_by_key = points_in(metrics)
    n_points = int(by_cell[2].sum())
    tally, inside = Tally(), Explored()
    if decision.events.n_cells is not None:
        inside = Explored(float(counts["needed"]), float(n_points), *explored[-4:].tolist())
    else:
        crossing = _crossing_share(decision.admission, n_points, length)
        tally = tally_of(by_cell, _chances(decision, greatest), int(counts["needed"]), crossing)
    return RunningTotals(
        rows=so_far.rows + int(counts["rows"]),
        events=so_far.events + int(counts["events"]),
        idle=so_far.idle + int(counts["events"]) - int(counts["needed"]) - late,
        shed=so_far.shed + shed,
        seen=max((tick for tick in (so_far.seen, greatest) if tick is not None), default=None),
        points=so_far.points + tally,
        has_points_by_key=so_far.has_points_by_key and has_points_by_key,
        late=so_far.late + late,
        ahead=so_far.ahead + int(counts.get("ahead", 0)),
        explored=so_far.explored + inside,
        uncounted=so_far.uncounted,
    )


def _chances(decision: Decision, greatest: int | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the probability that an event was admitted in a micro-batch whose greatest tick is ``greatest``, by
    cell."""
    if decision.admission is None or greatest is None:
        return np.ones(CELLS)
    seen = decision.carried.seen
    return decision.admission.chances(greatest if seen is None else (seen + greatest) // 2)


def _crossing_share(admission: UnitAdmission | None, points: int, length: int) -> float:
    """Estimate the chance that a match crosses into the next sampling unit, from the sum of match lengths."""
    if admission is None or not points:
        return 0.0
    usual = admission.span / 2 if length < 0 else length / points
    return min(usual / admission.length, 1.0)


def with_carried(progress: Progress, carried: RunningTotals, counts: Mapping[str, Any], *, several: bool) -> Progress:
    """Add the events that did not travel to the progress of the workers. ``carried`` are the totals after a
    micro-batch whose rows have these ``counts``."""
    not_carried = carried.idle + carried.shed
    if not not_carried + carried.late + carried.ahead:
        return progress
    report = with_shed(progress.report, carried, several=several)
    reports = {
        name: with_shed(query_report, carried, several=several) for name, query_report in progress.reports.items()
    }
    return replace(
        progress,
        events=progress.events + not_carried,
        late=progress.late + carried.late,
        ahead=progress.ahead + carried.ahead,
        late_now=progress.late_now + int(counts.get("late", 0)),
        ahead_now=progress.ahead_now + int(counts.get("ahead", 0)),
        shed=progress.shed + carried.shed,
        report=report,
        reports=reports,
    )
