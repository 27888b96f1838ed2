"""Match several plans, also of composed queries, over one stream in one pass; ``Matcher`` and Spark call it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from traceback import clear_frames
from typing import TYPE_CHECKING, Any

import numpy as np

from acep import logs
from acep.errors import DataError, EngineError, SnapshotError, memory_error, naming_query
from acep.events.batch import Batch
from acep.events.tables import InputSchema
from acep.events.times import from_ticks, value_text
from acep.matches.batches import ROWS
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns, concatenate, sort_matches
from acep.matches.records import Counts, Found, output_order
from acep.native.compiled import native_sort
from acep.plan.compile import Plan
from acep.plan.lanes import MOST_LANES
from acep.runtime.execution import IN_ONE_THREAD, Execution
from acep.runtime.executors import AnyExecutor, NativeExecutor, NativeExecutors, RuntimeExecutor, matches_of
from acep.runtime.finer_partitions import FinerExecutor
from acep.runtime.steps import StreamStep
from acep.shedding.limits import Limits
from acep.storage.snapshot import seal, unseal

if TYPE_CHECKING:
    from acep.matches.partials.partial_columns import PartialColumns
    from acep.native.session import NativeSession
    from acep.runtime.stream_figures import SheddingFigures

__all__ = ["EVENTS", "SEVERAL", "Stream", "check_plans", "merge_matches"]


FIRST = 256  # events in the first part of a batch; later parts have as many as their matches permit
EVENTS = 4096  # the most events in a part of a batch whose matches are returned in blocks
THREAD_EVENTS = 1 << 16  # the same where threads share a part

INTERRUPTED = "an earlier call was interrupted, of which only a part was done"
UNREAD = "not all blocks of an earlier batch were read"
GIVEN_UP = ("shed", "skipped", "withheld")
"""The counts of what was given up for want of budget."""
SEVERAL = "each query has a recall of its own, in the report of its matches"


def check_plans(
    plans: Sequence[Plan], engine: str, output: str, limits: Limits | None = None, *, names: Sequence[str] = ()
) -> None:
    """Raise :class:`EngineError` for a plan that a stream cannot run; ``names`` are those of the plans, for errors."""
    _executors_of(NativeExecutors(engine, output, limits), plans, names)


def _executors_of(natives: NativeExecutors, plans: Sequence[Plan], names: Sequence[str]) -> list[AnyExecutor]:
    executors = []
    for name, plan in zip(names or [""] * len(plans), plans, strict=True):
        with naming_query(name):
            executors.append(natives.executor_of(plan))
    return executors


class Stream:
    """The state of ``plans`` over one stream.

    ``finer``: events may be kept apart by what equalities tie. It must not be where ids are positions in a partition.
    Batches come in stream order: no event may be older, by ``(ts, order)``, than one pushed before. Each method
    that returns matches returns one list per plan, in output order. If the requested ``output`` can be counted
    without making matches, the list is empty, and :meth:`take_counted` returns the counts.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        engine: str = "auto",
        output: str = "matches",
        limits: Limits | None = None,
        *,
        names: Sequence[str] = (),
        finer: bool = True,
        execution: Execution = IN_ONE_THREAD,
    ) -> None:
        """Begin a stream. ``names`` are those of the plans, for errors.

        Raises :class:`EngineError` for a plan that the engine cannot run.
        """
        self.plans = tuple(plans)
        self._natives = NativeExecutors(engine, output, limits, finer=finer, execution=execution)
        self._executors = _executors_of(self._natives, self.plans, names)
        self._natives.start()
        self._newest: tuple[int, int | None] | None = None
        self._events = 0
        self._finished = False
        self._halfway = ""  # why it is unknown which events were processed

    @property
    def _session(self) -> NativeSession | None:
        """Return the session on the native core that the plans share, if some of them run there."""
        return self._natives.session

    @property
    def flows(self) -> bool:
        """Return whether :meth:`blocks` stops within the events that are pushed, once there are enough matches."""
        executor = self._executors[0]
        alone = len(self._executors) == 1 and isinstance(executor, NativeExecutor | FinerExecutor) and executor.flows
        return alone and self._session is not None and self._session.flows

    @property
    def threads(self) -> tuple[int, str]:
        """Return how many threads run the plans, and why they are fewer than were asked for."""
        natives = self._natives
        if natives.threads == 1:
            return 1, ""
        if natives.session is None:
            is_reference = all(isinstance(executor, RuntimeExecutor) for executor in self._executors)
            return 1, f"the {'reference' if is_reference else 'ordered'} engine runs in one thread"
        threads, why = min(natives.threads, natives.session.shares), natives.fewer_threads
        if natives.session.sliced and threads < natives.threads:
            why = (
                "there is no partition attribute, and the table is too short for its windows to be cut into more slices"
            )
        return threads, why

    @property
    def natively(self) -> bool:
        """Return whether all plans run on the native core, so that matches are columns."""
        return all(isinstance(executor, NativeExecutor | FinerExecutor) for executor in self._executors)

    @property
    def _peak(self) -> int:
        """Return the most bytes that were held, where there is a bound on them."""
        return 0 if self._session is None else self._session.budget.peak

    @property
    def counts(self) -> Counts:
        """Return the events seen by the stream, and the work of all plans."""
        if len(self.plans) == 1:
            return self.counts_of(0)
        parts = [self.counts_of(number) for number in range(len(self.plans))]
        names = (*GIVEN_UP, "nodes", "touches", "deciding", "matches", "recovering", "recovered", "unrecovered")
        match_memory = max((part.match_memory for part in parts), default=0)
        return self._sum(parts, names, SEVERAL).replace(
            counted=all(part.counted for part in parts), match_memory=match_memory
        )

    def counts_of(self, plan: int) -> Counts:
        """Return the events seen by the stream, and the work of plan number ``plan`` and its sources."""
        if not self._executors:
            return Counts(events=self._events)
        parts = self._executors[plan].all_counts()
        if len(parts) == 1:
            return parts[0].replace(events=self._events, memory=self._peak)
        unknown = "what matches of matches were lost is not known"
        return self._sum(parts, (*GIVEN_UP, "nodes", "touches", "deciding"), unknown).replace(matches=parts[0].matches)

    def _sum(self, parts: Sequence[Counts], names: Sequence[str], unknown: str) -> Counts:
        """Return the sums of some counts over all parts; ``unknown``: why the recall is not known."""
        sums: dict[str, Any] = {name: sum(getattr(part, name) for part in parts) for name in names}
        return Counts(events=self._events, memory=self._peak, unknown=unknown, **sums)

    def expect_end(self) -> None:
        """Note that no event comes after the next batch."""
        if self._session is not None:
            self._session.is_last = True

    def ignore_future(self) -> None:
        """Make partial matches whatever later events of a batch say, so that the work does not depend on batches."""
        if self._session is not None:
            self._session.ignore_future()

    def push(self, batch: Batch) -> list[Sequence[Found]]:
        """Push events and return the matches.

        Raises :class:`DataError`, with nothing pushed, for a batch that is out of order or older than what was
        seen, and after :meth:`finish`.
        """
        with self._guard_call():
            self._check_order(batch)
            shed_before = self.counts.shed if self._tells_shed else 0
            self._events += len(batch)
            self._halfway = INTERRUPTED
            step = self._natives.push(batch)
            self._halfway = ""
            matches = self._matches_of(step)
            if self._tells_shed and (shed := self.counts.shed - shed_before):
                message = "%d partial matches and events were shed in a batch of %d events"
                logs.debug(__name__, message, shed, len(batch))
            return matches

    def _matches_of(self, step: StreamStep) -> list[Sequence[Found]]:
        """Return the matches of each plan that a step makes certain, in output order."""
        return [in_output_order(matches_of(executor, step)) for executor in self._executors]

    @property
    def _tells_shed(self) -> bool:
        return self._session is not None and logs.listens(__name__)

    def change(self, number: int, plan: Plan) -> None:
        """Go on with another plan in place of plan ``number``: a hand-written automaton that has changed."""
        with self._guard_call():
            self._executors[number].change(plan)
            self.plans = (*self.plans[:number], plan, *self.plans[number + 1 :])

    def extend(self, number: int, plan: Plan) -> None:
        """Give the native core the arcs of an automaton in addition to those of plan ``number``, which has the same
        states; they are valid at no time until :meth:`renew`. The columns that they read are added to the plan."""
        with self._guard_call():
            executor = self._executors[number]
            assert isinstance(executor, NativeExecutor)
            extended_plan = executor.extend(plan)
            self.plans = (*self.plans[:number], extended_plan, *self.plans[number + 1 :])

    def renew(self, number: int, words: list[int]) -> int:
        """Set the times at which arcs of plan ``number`` are valid in the native core: four words each, the number of
        the arc, that of an arc that it is like in all else, and the first and the last tick. Return the number of
        partial matches, as :meth:`live_of` does."""
        self._check_usable()
        assert self._session is not None
        try:  # without a context manager, which would take as long as the call
            return self._session.renew(number, words)
        except MemoryError as error:
            raise self._give_up(error) from None

    def check(self, number: int, plan: Plan) -> None:
        """Raise :class:`EngineError` for a plan that :meth:`change` would refuse."""
        self._executors[number].check(plan)

    @property
    def newest(self) -> int | None:
        """Return the time before which no event can come, in ticks; ``None``: none has come."""
        return None if self._newest is None else self._newest[0]

    @contextmanager
    def _guard_call(self) -> Iterator[None]:
        """Guard one call. After a call that ran out of memory, or whose blocks were not all read, the state is
        undefined and every call raises :class:`EngineError`."""
        self._check_usable()
        try:
            yield
        except MemoryError as error:
            raise self._give_up(error) from None

    def _check_usable(self) -> None:
        if self._halfway:
            raise EngineError(self._halfway, hint="make a new Matcher, or restore a snapshot")

    def _give_up(self, error: MemoryError) -> Exception:
        """Give up the state after a call that ran out of memory, and return the error to raise."""
        self._halfway = "memory was too small for an earlier call, of which only a part was done"
        self._natives.session = None  # to free memory
        self._executors.clear()
        clear_frames(error.__traceback__)
        return memory_error()

    def blocks(
        self, batch: Batch, block_size: int = ROWS, sort_limit: int | None = None
    ) -> Iterator[list[Sequence[Found]]]:
        """Push like :meth:`push`, but yield about ``block_size`` matches at a time, with at most ``sort_limit`` of one
        match point (docs/internals/native.md). Read all blocks before the next call."""
        with self._guard_call():
            self._check_order(batch)
            self._halfway = UNREAD
            self._events += len(batch)
            yield from self._push_in_blocks(batch, block_size, sort_limit)
            self._halfway = ""

    def _push_in_blocks(self, batch: Batch, block_size: int, sort_limit: int | None) -> Iterator[list[Sequence[Found]]]:
        """Do the same in a frame of its own, because only frames that have ended can be cleared to free memory."""
        session, executor = self._session, self._executors[0]
        if session is not None and self.flows:
            for block in session.blocks(batch, block_size, sort_limit):
                yield [executor.release_matches(block) if isinstance(executor, FinerExecutor) else block]
        else:
            yield from self._push_in_parts(
                batch, block_size, paced=session is not None and session.budget.pace is not None
            )

    def _push_in_parts(self, batch: Batch, block_size: int, *, paced: bool) -> Iterator[list[Sequence[Found]]]:
        """Push like :meth:`push`, in parts with about ``block_size`` matches each. ``paced``: time bounds how many."""
        most_events = EVENTS if self.threads[0] == 1 else THREAD_EVENTS
        size, begin = EVENTS if paced or most_events > EVENTS else FIRST, 0
        while begin < len(batch):
            remainder = batch.take(slice(begin, None))
            part = remainder.take(next(remainder.cuts(size)))
            begin += len(part)
            matches = self._matches_of(self._natives.push(part))
            yield from _split_blocks(matches, block_size)
            if not paced:
                n_fitting = block_size * len(part) // (2 * max([1, *map(len, matches)]))
                size = max(1, min(most_events, 2 * len(part), n_fitting))

    def finish_blocks(self, block_size: int = ROWS) -> Iterator[list[Sequence[Found]]]:
        """End the stream like :meth:`finish`, but yield the matches in blocks."""
        yield from _split_blocks(self.finish(), block_size)

    def record_seconds(self, processor: float, wall: float) -> None:
        """Record the seconds that the whole call took that pushed the last batch; a budget of time counts them."""
        if self._session is not None and self._session.budget.pace is not None:
            self._session.budget.pace.end(processor, wall)

    def allow(self, rate: float, events: int, matches: float) -> None:
        """Allow ``rate`` touches for each of the next ``events``, and so many ``matches``; for callers that keep a
        budget of time for the stream."""
        if self._session is not None:
            self._session.budget.allow(rate, events, matches)

    @property
    def walked(self) -> int:
        """Return the matches made under a budget since the stream was made or restored, before any choice."""
        return 0 if self._session is None else self._session.budget.walked

    @property
    def live(self) -> int:
        """Return how many partial matches of all plans have a window that is not over. The native core counts
        merged ones as one, and leaves out those that begin with events that it still holds back."""
        return 0 if self._finished else sum(executor.live() for executor in self._executors)

    @property
    def refers_to_nothing(self) -> bool:
        """Return whether no event of before is needed by later ones; ``False`` where that is not known."""
        return self.natively and self._session is not None and self._session.refers_to_nothing

    def live_of(self, number: int) -> int:
        """Return how many partial matches of a plan that may change are in states of its last version."""
        if self._finished:
            return 0
        plan, executor = self.plans[number], self._executors[number]
        return executor.live_in(plan.current) if plan.parts else executor.live()

    def live_by_state(self, number: int) -> tuple[tuple[str, int], ...]:
        """Return the number of partial matches of a plan in each state, with the name of the state.

        Raises :class:`EngineError` for an engine that does not tell states apart, or if there are too many."""
        from acep.runtime.stream_figures import count_by_state  # few streams are watched

        if self._finished:
            return ()
        with self._guard_call():
            return count_by_state(self.plans[number], self._executors[number])

    def shedding_figures(self, number: int) -> SheddingFigures | None:
        """Return what the budget of a plan has given up so far; ``None`` for a plan without a bound."""
        from acep.runtime.stream_figures import shedding_figures  # few streams are watched

        return None if self._finished else shedding_figures(self.plans[number], self._executors[number])

    def partial_matches(self, number: int, limit: int, *, apart: bool) -> PartialColumns:
        """Return the ``limit`` last partial matches of a plan; of one that may change, those in states of its last
        version. ``apart``: with a row for each sequence of bound events.

        Raises :class:`EngineError` for an engine that keeps none with their events.
        """
        with self._guard_call():
            plan = self.plans[number]
            states = plan.current if plan.parts else range(1, len(plan.arcs.states))
            if self._finished or not states:
                from acep.matches.partials.partial_columns import PartialColumns  # few matchers are asked for them

                return PartialColumns.of_rows((), 0)
            return self._executors[number].partial_matches(limit, tuple(states), apart=apart)

    def epochs(self, events: int) -> int:
        """Return how many epochs of policies end within the next ``events``."""
        return 0 if self._session is None else self._session.budget.epochs(events)

    @property
    def learning(self) -> float:
        """Return the seconds in which policies have learned since the stream was made or restored."""
        return 0.0 if self._session is None else self._session.budget.learning

    def advance(self, clock: int) -> list[Sequence[Found]]:
        """Advance the time: no event with ``ts <= clock`` (ticks) will come any more. Return what this decides."""
        if self._newest is None or clock >= self._newest[0]:
            self._newest = (clock + 1, None)
        with self._guard_call():
            self._halfway = INTERRUPTED
            step = self._natives.advance(clock)
            self._halfway = ""
            return self._matches_of(step)

    def revise(self, removed: Batch | None, batch: Batch, n_rematched: int, n_fresh: int = 0) -> list[Sequence[Found]]:
        """Push events that may be older than others were, and return the matches, in no order. The partitions of the
        events ``removed`` and of the first ``n_rematched`` of the batch are forgotten before; ``n_fresh`` of these
        come for the first time. Only for a stream that is ``revisable``."""
        with self._guard_call():
            step = self._natives.revise(removed, batch, n_rematched, n_fresh)
            return [matches_of(executor, step) for executor in self._executors]

    def leave_out(self, n_rematched: int, n_fresh: int) -> bool:
        """Return whether to shed ``n_fresh`` late events, since matching ``n_rematched`` for them would cost more than
        they gain under the budget. They count as events that came."""
        return self._session is not None and self._session.budget.leave_out(n_rematched, n_fresh)

    def finish(self) -> list[Sequence[Found]]:
        """End the stream and return the remaining matches."""
        self._finished = True
        with self._guard_call():
            self._halfway = INTERRUPTED
            step = self._natives.finish()
            self._halfway = ""
            return self._matches_of(step)

    def take_counted(self, plan: int) -> Counted | int | None:
        """Return what plan number ``plan`` has counted since the last call: the number of matches, or rows of match
        points or of bundles (later additions to a bundle come as another row of it); ``None`` where matches are
        made. To keep snapshots, call this before each."""
        return self._executors[plan].take_counted() if self._executors else None

    def earliest_open_end(self, plan: int) -> int | None:
        """Return the time before which no match of plan number ``plan`` ends any more; ``None`` if it is unknown."""
        return self._executors[plan].earliest_open_end()

    def snapshot(self) -> bytes:
        """Return the whole state as bytes that :meth:`restore` reads."""
        with self._guard_call():
            return self._seal()

    def _seal(self) -> bytes:
        payload = {
            "newest": self._newest,
            "events": self._events,
            "finished": self._finished,
            "cores": [executor.dump() for executor in self._executors],
            "engines": self._natives.engines,
            "ordered": self._ordered,
            "native": None if self._session is None else self._session.dump(),
        }
        return seal(payload, self.fingerprint)

    @property
    def _ordered(self) -> list[int]:
        """Return the numbers of the plans whose chosen matches are found in their order."""
        in_order = self._natives.in_order
        return [
            number for number, executor in enumerate(self._executors) if any(executor is other for other in in_order)
        ]

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint that a snapshot must have."""
        return fingerprint_of(self.plans)

    @classmethod
    def restore(
        cls,
        plans: Sequence[Plan],
        data: bytes,
        engine: str = "auto",
        output: str = "matches",
        limits: Limits | None = None,
        first: Sequence[Plan] | None = None,
        *,
        finer: bool = True,
        execution: Execution = IN_ONE_THREAD,
    ) -> Stream:
        """Restore the stream that a snapshot was taken of. ``first`` are the plans with which it began, if they have
        changed since. The stream has the lanes of the snapshot, and finds matches in order if the snapshot did,
        whatever the ``execution``.

        Raises :class:`SnapshotError` if the bytes are damaged or belong to other plans.
        """
        payload = unseal(data, fingerprint_of(plans))
        try:
            # A state of before has no such numbers: then all matches are made, as they were.
            in_order = [int(number) for number in payload.get("ordered", ())]
            one_lane = None if execution.threads == 1 else 1
            lanes = lanes_of(payload) if lanes_of(payload) > 1 else one_lane
            engines = [str(name) for name in payload["engines"]]
            stream = cls(
                first or plans,
                "reference" if engine == "auto" and not engines and not in_order else engine,
                output,
                limits,
                finer=finer,
                execution=replace(execution, lanes=lanes, ordered=bool(in_order)),
            )
            stream.plans = tuple(plans)
            if in_order != stream._ordered or engines != stream._natives.engines:
                raise SnapshotError(
                    f"the snapshot was taken by {_engines_text(engines)}, "
                    f"and here runs {_engines_text(stream._natives.engines)}",
                    hint="restore it with the engine= that it was taken with, where the native core is installed",
                    code="state_version",
                )
            newest = payload["newest"]
            if newest is not None:
                ts, order = newest
                if not isinstance(ts, int) or not (order is None or isinstance(order, int)):
                    raise ValueError("newest")
                stream._newest = (ts, order)
            stream._events = int(payload["events"])
            stream._finished = payload["finished"] is True
            if stream._session is not None:
                stream._session.load(payload["native"], () if first is None else stream.plans)
            for executor, plan, dumped in zip(stream._executors, stream.plans, payload["cores"], strict=True):
                if first is not None:
                    executor.change(plan)
                executor.load(dumped)
        except SnapshotError:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            raise SnapshotError("the snapshot does not hold a state of this query", code="state_damaged") from None
        return stream

    def _check_order(self, batch: Batch) -> None:
        if self._finished:
            raise DataError(
                "the stream has been finished: no more events can be pushed",
                hint="make a new Matcher",
                code="data_order",
            )
        if not len(batch):
            return
        ts, order = batch.ts, batch.order
        older = ts[1:] < ts[:-1]  # than the one before, from the second event on
        if order is not None:
            older |= (ts[1:] == ts[:-1]) & (order[1:] < order[:-1])
        first = False
        if (newest := self._newest) is not None:  # in Python's integers: a clock may exceed 64 bits
            tied = order is not None and newest[1] is not None and int(order[0]) < newest[1]
            first = int(ts[0]) < newest[0] or (int(ts[0]) == newest[0] and tied)
        if first or older.any():
            i = 0 if first else int(np.argmax(older)) + 1
            latest = ts[i - 1] if i or newest is None else newest[0]
            raise DataError(
                f"event {i} of the batch (ts {self._time_text(ts[i])}) is older than what was seen before "
                f"(ts {self._time_text(latest)})",
                hint="push events in order of time, or say how late they may come, with lateness=",
                code="data_order",
            )
        self._newest = (int(ts[-1]), None if order is None else int(order[-1]))

    def _time_text(self, tick: int) -> str:
        """Write a time as it is in the input."""
        schema = self.plans[0].schema
        time_type = dict(schema.times).get(schema.ts) if isinstance(schema, InputSchema) else None
        return str(tick) if time_type is None else value_text(from_ticks([int(tick)], schema.tick_ns, time_type)[0])


def fingerprint_of(plans: Sequence[Plan]) -> str:
    """Return the fingerprint that a snapshot of plans must have."""
    return "+".join(plan.fingerprint for plan in plans)


def lanes_of(payload: Any) -> int:
    """Return the number of lanes of a stream, from its state. Raises :class:`ValueError` for too many."""
    native = payload["native"]
    lanes = len(native["core"]) if native is not None and isinstance(native["core"], list) else 1
    if not 1 <= lanes <= MOST_LANES:
        raise ValueError("lanes")
    return lanes


def _engines_text(engines: Sequence[str]) -> str:
    return f"the native engine ({', '.join(engines)})" if engines else "the reference engine"


def in_output_order(matches: Sequence[Found]) -> Sequence[Found]:
    """Return matches in output order."""
    return (
        sort_matches(matches, native_sort()) if isinstance(matches, FoundColumns) else sorted(matches, key=output_order)
    )


def _split_blocks(matches_by_plan: list[Sequence[Found]], block_size: int) -> Iterator[list[Sequence[Found]]]:
    """Yield what each plan returned, at most so many matches of each at a time; nothing where there are none."""
    for start in range(0, max(map(len, matches_by_plan)), block_size):
        yield [matches[start : start + block_size] for matches in matches_by_plan]


def merge_matches(parts: Sequence[Sequence[Found]]) -> Sequence[Found]:
    """Merge what one plan returned at several times, each part in output order, in that order."""
    filled = [part for part in parts if len(part)]
    if len(filled) == 1:
        return filled[0]
    columns = [part for part in parts if isinstance(part, FoundColumns)]
    if columns and all(isinstance(part, FoundColumns) or not len(part) for part in parts):
        return sort_matches(concatenate(columns), native_sort())
    return sorted((match for part in parts for match in part), key=output_order)
