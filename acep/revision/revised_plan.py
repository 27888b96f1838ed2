"""Match one plan over a stream whose events may still come, or be taken back: match partitions again, and compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.arrivals.event_log import EventLog
from acep.arrivals.ordered_rows import BUCKETS, OrderedRows, bucket_of
from acep.errors import EngineError, QueryError
from acep.events.batch import Batch, column_of_values
from acep.events.batch_state import batch_of_plain, plain_of_batch
from acep.events.hashes import hashes_of_columns
from acep.events.punctuations import Punctuations
from acep.matches.found_columns import taken_back
from acep.matches.found_state import found_of, plain_of
from acep.matches.match_ids import kind_of_value
from acep.matches.records import Counts, Found
from acep.native.compiled import native_rows
from acep.pattern.expressions import Value
from acep.pattern.tree import Output
from acep.plan.choice import waits_from
from acep.plan.compile import Plan
from acep.revision.chosen_matches import ChosenMatches
from acep.revision.final_partitions import FinalPartitions
from acep.revision.revision_memory import RevisionMemory, match_all_waiting, match_waiting, take_in_events
from acep.revision.revocable_matches import RevocableColumns, RevocableRecords
from acep.revision.sure_matches import Changes, depends_on_itself, surely_remain
from acep.runtime.execution import Execution
from acep.runtime.stream import Stream, in_output_order, merge_matches
from acep.shedding.limits import Limits

__all__ = ["RevisedPlan"]

Ints = npt.NDArray[np.int64]
Buckets = npt.NDArray[np.bool_] | None
SELDOM = 32  # calls between two looks at what may be forgotten


class RevisedPlan:
    """One plan over the stream. ``log``: the events that a change may concern; ``given``: the matches that it may
    take back; ``matches`` and ``retracted``: how many were given in all and not taken back, and taken back."""

    def __init__(self, plan: Plan, engine: str, limits: Limits | None = None) -> None:
        if plan.sources:
            raise QueryError(
                "matches of matches are final, and cannot be revised", hint="speculation=0", code="query_change"
            )
        is_sequential = plan.query.output.is_sequential
        self.chosen = ChosenMatches(plan.query, together=plan.strict) if is_sequential else None
        self.engine = engine
        self._set_plan(plan)
        plan = self.first = self.plan
        self.past = Counts()  # the work of streams before this one
        memory_bytes = None
        if limits is not None and limits.memory is not None:
            # One half is for events and matches that may have to be taken back, the other for partial matches.
            memory_bytes = limits.memory // 2
            limits = replace(limits, part=limits.memory - memory_bytes)
        self.limits = limits
        self.stream = Stream([plan], engine, limits=limits, execution=Execution(revisable=True))
        self.final: int | None = None
        rows = native_rows() if self.stream.natively else OrderedRows
        self.log = EventLog(plan.keys, plan.schema, counted=plan.window.counted, rows=rows)
        self.memory = None if memory_bytes is None else RevisionMemory(memory_bytes, self.log.empty())
        self.revocable: Any = RevocableColumns() if self.stream.natively else RevocableRecords()
        self.matches = self.retracted = 0
        self.clock: int | None = None  # the time to which the engine has come
        self._calls = 0
        self.punctuations, self.at_once = Punctuations(), False

    def _set_plan(self, plan: Plan) -> None:
        """Take another plan. Its engine gives all matches where ``chosen`` chooses among them."""
        self.plan = (
            plan if self.chosen is None else replace(plan, query=replace(plan.query, output=Output.ALL, skip=None))
        )
        self.leads = any(negation.leading for negation in plan.automaton.negations)
        self.waits = waits_from(plan)

    def change(self, plan: Plan) -> None:
        """Go on with another plan."""
        old_plan = self.plan
        self._set_plan(plan)
        try:
            self.stream.change(0, self.plan)
        except EngineError:
            self._set_plan(old_plan)
            raise

    def push(self, batch: Batch | None, numbers: Ints, inserted: int, removed: Ints) -> Sequence[Found]:
        """Push a batch, the first ``inserted`` of which are older than others were, and remove events by their numbers.
        Return the matches that come and go."""
        if self.memory is None:
            return self._count_changes(self._choose(self.feed(batch, numbers, inserted, removed)))
        return self._count_changes(take_in_events(self, self.memory, batch, numbers, removed))

    def feed(self, batch: Batch | None, numbers: Ints, inserted: int, removed: Ints) -> Sequence[Found]:
        """Match events now; return the matches that come and go, before any choice among them."""
        matches: Sequence[Found] = []
        gone = self.log.remove(removed) if len(removed) else None
        if gone is not None and not len(gone):  # forgotten, as they could change nothing
            gone = None
        if batch is not None:
            self.log.add(batch, numbers)
            if self.chosen is not None:
                self.chosen.add(batch, numbers.tolist())
        if inserted or gone is not None:
            matches = in_output_order(self._revise(batch, inserted, gone))
        elif batch is not None:
            self._advance_clock(batch)
            matches = self.stream.push(batch)[0]
            self.revocable.add(matches)
        return matches

    def change_since(self, plan: Plan, since: int) -> Sequence[Found]:
        """Match all events that are kept again, by another plan."""
        old_stream, (cut, _) = self.stream, self.reach(since)
        self.stream = Stream([self.first], self.engine, execution=Execution(revisable=True))
        try:
            self.change(plan)  # which the engine may refuse
        except EngineError:
            self.stream = old_stream
            raise
        old_counts, (batch, _) = old_stream.counts, self.log.all_events()
        self.past = self.past.replace(
            nodes=self.past.nodes + old_counts.nodes, touches=self.past.touches + old_counts.touches
        )
        matches = self.stream.push(batch)[0] if len(batch) else []
        if self.clock is not None:
            matches = merge_matches([matches, self.stream.advance(self.clock - 1)[0]])
        return self._count_changes(self._choose(in_output_order(self.revocable.revise(matches, cut, None))))

    def advance(self, clock: int) -> Sequence[Found]:
        """Declare that no event with ``ts <= clock`` will be pushed as one of the next, only as one inserted."""
        waited: Sequence[Found] = []
        if self.memory is not None:
            waited = self._count_changes(match_waiting(self, self.memory))
            if self.final is None:
                return waited
            clock = min(clock, self.final - 1)  # events that wait, or are still to come, are matched as the next ones
        if self.clock is not None and clock < self.clock:
            return waited
        self.clock = clock + 1
        matches = self._count_changes(self._choose(self._record_given(self.stream.advance(clock)[0])))
        return merge_matches([waited, matches]) if len(waited) else matches

    def finish(self) -> Sequence[Found]:
        """End the stream and return the remaining matches."""
        if self.memory is not None:
            waited = match_all_waiting(self, self.memory)
            return self._count_changes(in_output_order(merge_matches([*waited, self.stream.finish()[0]])))
        matches = self._choose(self._record_given(self.stream.finish()[0]))
        if self.chosen is not None:
            matches = [*matches, *self.chosen.finish()]
        return self._count_changes(in_output_order(matches))

    def _choose(self, matches: Sequence[Found]) -> Sequence[Found]:
        """Return the matches that come and go among those that are chosen."""
        return (
            matches if self.chosen is None else in_output_order(self.chosen.revise(matches, self._earliest_new_start))
        )

    def _earliest_new_start(self, key: tuple[Value, ...]) -> int | None:
        """Return the time from which matches of a partition that are yet to come may begin; ``None``: from any."""
        window = self.plan.window
        if self.clock is None or window.span is None:
            return None
        if not window.counted:
            return self._earliest(self.clock, window.span)
        buckets = None
        if self.plan.keys and not self.plan.strict:
            buckets = np.zeros(BUCKETS, bool)
            columns = [column_of_values([value], kind_of_value(value)) for value in key]
            buckets[bucket_of(hashes_of_columns(columns, 1))] = True
        return self._counted_back(self.clock + 1, window.span + 1, buckets, together=self.plan.strict)

    def _revise(self, batch: Batch | None, inserted: int, removed: Batch | None) -> Sequence[Found]:
        """Push a batch, the first ``inserted`` of which are older than others were, after the events ``removed``
        went. Partitions that these changes concern are matched again."""
        changed = [int(batch.ts[0])] if batch is not None and inserted else []
        buckets = None
        if not self.plan.strict and self.plan.keys:
            buckets = np.zeros(BUCKETS, bool)
            if inserted:
                buckets[self.log.buckets_of_last(inserted)] = True
            if removed is not None:
                buckets[bucket_of(self.log.hashes_of(removed))] = True
        if removed is not None:
            changed.append(int(removed.ts[0]))
        cut, begin = self.reach(min(changed), buckets, together=self.plan.strict)
        final = self._final_partitions(buckets)
        rematched, n_rematched = self.log.events_since(begin, buckets, 0 if batch is None else len(batch) - inserted)
        if (
            removed is None
            and self.limits is not None
            and depends_on_itself(self.plan)
            and self.stream.leave_out(n_rematched, inserted)
        ):
            assert batch is not None
            matches = self.stream.push(batch.take(slice(inserted, None)))[0]
            self._advance_clock(batch)
            self.revocable.add(matches)
            return matches
        self._advance_clock(rematched)
        matches = self.stream.revise(removed, rematched, n_rematched, inserted)[0]
        if self.limits is None or self.stream.counts.whole:
            cuts = None if final is None else final.cut
            return self.revocable.revise(matches, cut, buckets, cuts=cuts)  # type: ignore[no-any-return]
        changes = self._changes(batch, inserted, removed)
        return self.revocable.revise(matches, cut, buckets, lambda lost: surely_remain(self.plan, lost, changes))  # type: ignore[no-any-return]

    def _changes(self, batch: Batch | None, inserted: int, removed: Batch | None) -> Changes:
        parts = [] if removed is None else [removed]
        if batch is not None and inserted:
            parts.append(batch.take(slice(0, inserted)))
        alone = self.plan.strict or not self.plan.keys
        hashes = None if alone else np.concatenate([self.log.hashes_of(part) for part in parts])
        return Changes(np.concatenate([part.ts for part in parts]), hashes, removed)

    @property
    def held(self) -> int:
        """Return the number of events that are kept for revisions, or wait for memory."""
        return len(self.log) + (0 if self.memory is None else len(self.memory.waiting))

    def forget_final(self, final: int | None, *, now: bool) -> None:
        """Forget what only an event before ``final`` could change (``None``: no time is final), or what punctuations
        make final: in one of :data:`SELDOM` calls, or ``now``."""
        self._calls += 1
        if self._calls % SELDOM and not now:
            return
        if final is not None:
            self._forget_before(final)
        if (partitions := self._final_partitions()) is not None:
            begins = partitions.begins(None if self.chosen is None else self.chosen.first_needed_start_in)
            self.revocable.forget_each(partitions.cut)
            forgotten = self.log.forget_each(begins)
            if self.chosen is not None:
                self.chosen.forget_each(partitions.cut, forgotten.events.ids or ())

    def _final_partitions(self, buckets: Buckets = None) -> FinalPartitions | None:
        """Return the partitions that punctuations make final; ``None``: there are none."""
        if not len(self.punctuations) or self.plan.strict or self.plan.window.span is None or self.limits is not None:
            return None
        # Matches that wait, and events that were not pushed yet, are decided by the time to which the engine has come.
        until = None
        if self.waits is not None or self.chosen is not None or not self.at_once:
            if self.clock is None:
                return None
            until = self.clock
        waits = 1 if self.waits is None else 2
        return FinalPartitions(
            self.plan, self.log, self.punctuations, waits, self._n_events_before(waits), self.leads, until, buckets
        )

    def _forget_before(self, final: int) -> None:
        cut, begin = self.reach(final)
        if cut is None or begin is None:
            return
        self.revocable.forget(cut)
        if self.chosen is not None:
            # A snapshot has events alone, and open clusters are found again from theirs.
            begin = min(begin, self._lookback_start(self.chosen.first_needed_start(cut)))
            self.chosen.forget(cut, begin)
        self.log.forget(begin)

    def certain_until(self, final: int) -> int | None:
        """Return the time up to which no match point changes any more, if no event before ``final`` changes."""
        if self.chosen is not None:
            cut, _ = self.reach(final)
            return None if cut is None else self.chosen.first_needed_start(cut) - 1
        if self.waits is None:
            return final - 1
        window = self.plan.window
        if window.span is None:
            return None
        cut = self.reach(final)[0] if window.counted else final - window.span
        return None if cut is None else min(final, max(cut, self.waits)) - 1

    def dump(self) -> Any:
        """Return the state as plain data: the events that are kept, and under limits what cannot be found again."""
        state = _events(self.log)
        fields = [state, self.matches, self.retracted, self.clock]
        if self.limits is None:
            return fields
        # Shed partial matches cannot be found again from the events.
        memory_state = None if self.memory is None else {**self.memory.dump(), "waiting": _events(self.memory.waiting)}
        stream = np.frombuffer(self.stream.snapshot(), np.uint8)
        bounded_state = {
            "stream": stream,
            "given": [plain_of(part) for part in self.revocable.all_parts()],
            "room": memory_state,
        }
        return [*fields, bounded_state]

    def _load_bounded(self, data: Any) -> None:
        """Restore the state of a plan under limits."""
        *_, bounded_state = data
        self.log, waiting = self._log_of(data[0]), None
        self.stream = Stream.restore(
            [self.plan],
            bounded_state["stream"].tobytes(),
            self.engine,
            limits=self.limits,
            execution=Execution(revisable=True),
        )
        self.revocable = RevocableColumns()
        for part in bounded_state["given"]:
            matches = found_of(part, self.plan.variables)
            if len(matches.keys) != len(self.plan.keys) or len(matches.values) != len(self.plan.returns):
                raise ValueError("matches")
            self.revocable.add(matches)
        if (self.memory is None) != (bounded_state["room"] is None):
            raise ValueError("memory")
        if self.memory is not None:
            waiting = self._log_of(bounded_state["room"]["waiting"])
            self.memory = self.memory.with_state(bounded_state["room"], waiting)
        self.matches, self.retracted = int(data[1]), int(data[2])
        self.clock = None if data[3] is None else int(data[3])

    def _log_of(self, state: Any) -> EventLog:
        log = self.log.empty()
        if state is not None:
            log.add(*_batch_of(state))
        return log

    def load(self, data: Any) -> None:
        """Restore the state of :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError`, :class:`AttributeError` or
        :class:`TypeError` for other data."""
        if self.limits is not None:
            self._load_bounded(data)
            return
        state, matches, retracted, clock = data
        if state is not None:
            batch, numbers = _batch_of(state)
            self.push(batch, numbers, 0, numbers[:0])
        if clock is not None and clock != self.clock:
            self.advance(int(clock) - 1)
        self.matches, self.retracted = int(matches), int(retracted)

    def _advance_clock(self, batch: Batch) -> None:
        if len(batch):
            latest = int(batch.ts[-1])
            self.clock = latest if self.clock is None else max(self.clock, latest)

    def _record_given(self, matches: Sequence[Found]) -> Sequence[Found]:
        self.revocable.add(matches)
        return matches

    def _count_changes(self, matches: Sequence[Found]) -> Sequence[Found]:
        n_taken_back = taken_back(matches)
        self.matches += len(matches) - 2 * n_taken_back
        self.retracted += n_taken_back
        return matches

    def reach(self, tick: int, buckets: Buckets = None, *, together: bool = False) -> tuple[int | None, int | None]:
        """Return the earliest start of a match that a change at ``tick`` may concern, and the time from which events
        must be matched again to find these matches (``None``: from the first one on). A match that waits for others
        may wait for a window more, and leading negations look a window back. ``together``: positions count the events
        of all partitions. (A match that waits is decided by an event of its own partition, also under strict
        contiguity.)"""
        span = self.plan.window.span
        if span is None:
            return None, None
        if not self.plan.window.counted:
            cut = self._earliest(tick, span)
            return cut, self._lookback_start(cut)
        # A match that waits for others is decided by an event beyond its window.
        cut = self._counted_back(tick, span if self.chosen is None else span + 1, buckets, together=together)
        return cut, self._lookback_start(cut, buckets, together=together)

    def _earliest(self, tick: int, span: int) -> int:
        """Return the earliest start of a match that has an event at ``tick`` or later, or waits then. Matches wait if
        they end with ``waits`` or later, so that none begins a window before it."""
        if self.waits is None:
            return tick - span
        return min(tick - span, max(tick - 2 * span, self.waits - span))

    def _counted_back(self, tick: int, n_events: int, buckets: Buckets, *, together: bool) -> int:
        """Return the same where the window counts events; a match has at most ``n_events`` of them before ``tick``."""

        def time_before(tick: int, n_events: int) -> int:
            return self.log.earliest_of_last(tick, n_events, buckets, together=together)

        span = self.plan.window.span
        assert span is not None
        first = time_before(tick, n_events)
        return (
            first
            if self.waits is None
            else min(first, max(time_before(tick, 2 * (span + 1)), time_before(self.waits, n_events)))
        )

    def _n_events_before(self, waits: int) -> int:
        """Return how many events before a change it may concern, where positions are counted."""
        # A match that waits, for others too, is decided by an event beyond its window.
        span = self.plan.window.span or 0
        return waits * (span + 1) if self.waits is not None or self.chosen else span

    def _lookback_start(self, start: int, buckets: Buckets = None, *, together: bool = False) -> int:
        """Return the time of the first event that matches look at which begin at ``start`` or later."""
        span = self.plan.window.span
        if span is None or not self.leads:
            return start
        if not self.plan.window.counted:
            return start - span
        return self.log.earliest_of_last(start, span, buckets, together=together)


def _events(log: EventLog) -> Any:
    """Return the events of a log as plain data; ``None``: there are none."""
    batch, numbers = log.all_events()
    return [plain_of_batch(batch), numbers] if len(batch) else None


def _batch_of(state: Any) -> tuple[Batch, Ints]:
    """Restore events with their numbers. Raises :class:`ValueError` for other data."""
    batch, numbers = batch_of_plain(state[0]), state[1]
    if numbers.dtype != np.int64 or numbers.shape != (len(batch),):
        raise ValueError("numbers")
    return batch, numbers
