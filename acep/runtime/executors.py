"""Run each plan of a stream: on a native engine in the session that the plans share, or on the reference engine. A
composed query runs on the reference engine over the matches of other plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from acep.errors import EngineError
from acep.events.batch import Batch
from acep.events.records import Events
from acep.matches.bundle_chain import BundleChain
from acep.matches.counted import Counted
from acep.matches.records import Counts, Found, output_order
from acep.native.compiled import choose_engine
from acep.pattern.expressions import Value
from acep.pattern.tree import Output
from acep.plan.choice import (
    BY_POINTS,
    COUNTED,
    TALLIED,
    UNITS,
    WINDOWS,
    EngineChoice,
    base_engine,
    decides_at_once,
    tables_for,
    waits_from,
    with_allowance,
    with_partial_matches,
)
from acep.plan.compile import Plan
from acep.plan.lanes import MOST_LANES, most_lanes, why_no_slices
from acep.plan.lower.stream_tables import StreamTables
from acep.reference.runtime import ReferenceRuntime
from acep.reference.state import dump_runtime, load_runtime
from acep.runtime.execution import IN_ONE_THREAD, Execution
from acep.runtime.finer_partitions import FinerExecutor, join_matches, plain_record, record_of
from acep.runtime.steps import EventReader, EventsCame, EventsRevised, StreamEnded, StreamStep, TimePassed
from acep.shedding.controller import SheddingController
from acep.shedding.limits import Limits
from acep.shedding.partition_sampler import PartitionSampler
from acep.shedding.recovery.recovery import Recovery

if TYPE_CHECKING:
    from acep.matches.partials.partial_columns import PartialColumns
    from acep.native.session import NativeSession
    from acep.shedding.search_sampler import SearchSampler

__all__ = ["AnyExecutor", "NativeExecutors", "bounded_engine", "matches_of"]


class Executor(Protocol):
    """The runtime of one plan, which :func:`matches_of` gives its steps."""

    def change(self, plan: Plan) -> None:
        """Go on with another plan, whose states and registers are those of the plan so far and more."""

    def check(self, plan: Plan) -> None:
        """Raise :class:`EngineError` if the engine cannot go on with another plan."""

    def take_counted(self) -> Counted | int | None:
        """Return what was counted since the last call; ``None`` where matches are made."""

    def earliest_open_end(self) -> int | None:
        """Return a time before which no more matches will end; ``None`` before the first event, and where it is not
        known."""

    def all_counts(self) -> list[Counts]:
        """Return the work of the plan, then that of its sources."""

    def live(self) -> int:
        """Return how many partial matches, of the plan and its sources, have a window that is not over."""

    def live_in(self, states: Sequence[int]) -> int:
        """Return how many of the partial matches are in some states of the plan."""

    def partial_matches(self, limit: int, states: Sequence[int], *, apart: bool) -> PartialColumns:
        """Return the ``limit`` last of the partial matches in some states of the plan; ``apart``: with a row for each
        sequence of bound events. Raises :class:`EngineError` where none are kept."""

    def dump(self) -> Any:
        """Return the state, as :meth:`load` reads it."""

    def load(self, data: Any) -> None:
        """Restore the state. Raises :class:`ValueError`, :class:`LookupError` or :class:`TypeError` for other data."""


class ReadingExecutor(Executor, EventReader, Protocol):
    """An executor that reads the events itself."""


class NativeExecutors:
    """The plans of a stream that run on the native core, in one session. ``finer``: those for which there is a finer
    plan run as that one. The executors ``in_order`` find chosen matches in their order. Once started,
    ``fewer_threads`` says why the lanes are fewer than the threads, and ``chains`` are those of the bundles of plans
    that run over slices of the table."""

    def __init__(
        self,
        engine: str,
        output: str,
        limits: Limits | None = None,
        *,
        finer: bool = True,
        execution: Execution = IN_ONE_THREAD,
    ) -> None:
        self.engine = engine
        self.ordered, self.in_order = execution.ordered, list[ReadingExecutor]()
        self.limits = limits
        self.revisable = execution.revisable
        self.threads = execution.threads
        self.lanes, self.fewer_threads = execution.lanes, ""
        self.is_file = execution.is_file
        self.is_whole, self.chains = execution.is_whole, dict[int, BundleChain]()
        self.finer = finer and not execution.revisable
        self.efforts: dict[int, SheddingController | PartitionSampler | SearchSampler] = {}
        self.recoveries: dict[int, Recovery] = {}
        self.output = output
        self.plans: list[Plan] = []
        self.engines: list[str] = []
        self.lowered = StreamTables()  # those of the plans
        self.session: NativeSession | None = None
        self.inner: set[int] = set()  # plans whose matches are events of another plan
        self.uncounted: set[int] = set()  # plans whose matches are made though they may only be counted

    def executor_of(self, plan: Plan, *, inner: bool = False) -> AnyExecutor:
        """Return the runtime of a plan; ``inner``: its matches are the events of another plan."""
        if self.limits is not None and plan.sources:
            self.limits.compose(plan)
        if plan.sources:
            return ComposedExecutor(plan, [self.executor_of(p, inner=True) for p, _ in plan.sources])
        running_plan = self._running_plan(plan)
        choice = self._choose_engine(running_plan, "matches" if inner else self.output)
        if not inner and (ordered := self._ordered_executor(plan)) is not None:
            return ordered
        if self.limits is None and (choice.engine == "reference" or (inner and not decides_at_once(plan))):
            return ReferenceExecutor(plan)
        if self.limits is not None:
            executor = self._bounded_executor(running_plan, choice, self.limits, inner=inner)
        else:
            # Match windows hold events back, by ids that rise in the order of the stream.
            executor = self._native_executor(
                running_plan, choice, choice.base if self.revisable else choice.engine, inner=inner
            )
        if running_plan is plan:
            return executor
        if self.output in ("points", "bundles") and not decides_at_once(plan):
            self.uncounted.add(executor.number)  # what is counted comes in no order
        return FinerExecutor(plan, executor)

    def _ordered_executor(self, plan: Plan) -> ReadingExecutor | None:
        """Return the runtime of a plan whose chosen matches are found in their order; ``None`` if it has none."""
        is_alone = self.limits is None and not self.revisable and self.ordered
        if not (is_alone and plan.query.output.is_sequential) or self.engine == "reference" or self.output == "exists":
            return None  # whether there is a match is known before it is final
        from acep.ordered.ordered_choice import open_matches, ordered_search  # few queries choose among their matches

        find = ordered_search(plan)
        if find is None:
            return None
        run_otherwise = partial(self._run_otherwise, plan)
        if self.is_whole:
            from acep.ordered.ordered_executor import OrderedExecutor

            return OrderedExecutor(plan, find, run_otherwise)
        if self.is_file and not plan.window.counted:
            from acep.ordered.ordered_parts import OrderedPartsExecutor

            return OrderedPartsExecutor(plan, find, run_otherwise)
        still_open = open_matches(plan)
        if still_open is None:
            return None
        from acep.ordered.ordered_stream import OrderedStreamExecutor

        list_partials = partial(self._list_otherwise, plan)
        self.in_order.append(
            OrderedStreamExecutor(plan, find, run_otherwise, open=still_open, list_partials=list_partials)
        )
        return self.in_order[-1]

    def _run_otherwise(self, plan: Plan, batch: Batch) -> tuple[Sequence[Found], Counts]:
        """Return the matches of a batch, and the work, by the engine that makes all matches."""
        natives, executor = self._other_engine(plan)
        parts = [matches_of(executor, natives.push(batch)), matches_of(executor, natives.finish())]
        return join_matches(parts), executor.all_counts()[0]

    def _list_otherwise(
        self, plan: Plan, batch: Batch, next_ts: int, limit: int, states: Sequence[int]
    ) -> PartialColumns:
        """Return the ``limit`` last partial matches in a batch that this engine has at a time."""
        natives, executor = self._other_engine(plan)
        matches_of(executor, natives.push(batch))
        matches_of(executor, natives.advance(next_ts - 1))
        return executor.partial_matches(limit, states, apart=True)

    def _other_engine(self, plan: Plan) -> tuple[NativeExecutors, AnyExecutor]:
        """Return a new engine that makes all matches of a plan."""
        natives = NativeExecutors(self.engine, "matches", execution=Execution(ordered=False))
        executor = natives.executor_of(plan)
        natives.start()
        return natives, executor

    def _running_plan(self, plan: Plan) -> Plan:
        """Return the plan that runs in place of a plan: it may be the finer one."""
        if plan.finer is None or not self.finer or self.engine == "reference":
            return plan
        if self.limits is not None and self.limits.recovery(plan) is not None:  # bundles of partitions come as they end
            return plan
        return plan.finer

    def _choose_engine(self, plan: Plan, output: str) -> EngineChoice:
        """Return the engine that runs a plan, with its tables after those of the native plans so far."""
        return choose_engine(plan, self.engine, output, self.lowered)

    def _native_executor(self, plan: Plan, choice: EngineChoice, engine: str, *, inner: bool) -> NativeExecutor:
        assert choice.lowered is not None
        self.lowered = tables_for(engine, choice.lowered)
        number = len(self.plans)
        self.plans.append(plan)
        self.engines.append(engine)
        if inner:
            self.inner.add(number)
        return NativeExecutor(self, number)

    def _bounded_executor(self, plan: Plan, choice: EngineChoice, limits: Limits, *, inner: bool) -> NativeExecutor:
        if choice.engine == "reference":
            raise EngineError(
                f"only the native core keeps to a budget of work, time or memory: {choice.why}",
                hint="leave these bounds out of the Budget",
            )
        if self.revisable or not limits.searches(plan):
            choice = with_partial_matches(plan, choice)
        number, recovery, memory = len(self.plans), limits.recovery(plan), limits.memory is not None
        if self.revisable:
            choice = replace(choice, engine=choice.base)
        engine = bounded_engine(choice, windows=not memory) if memory or recovery else with_allowance(choice)
        if choice.base == "search":
            from acep.shedding.search_sampler import SearchSampler  # only budgets of searches need it

            self.efforts[number] = SearchSampler(limits.seed + number, limits.budget.work, limits.budget.estimate)
        elif UNITS in engine:
            self.efforts[number] = PartitionSampler(limits.seed + number, limits.budget.work)
        else:
            self.efforts[number] = limits.effort(number, plan)
        if recovery is not None:
            self.recoveries[number] = recovery
        return self._native_executor(plan, choice, engine, inner=inner)

    def start(self) -> None:
        """Start the session, once all plans are known."""
        if self.limits is not None:
            self.limits.check(self.plans)
        if self.plans:
            from acep.native.session import NativeSession, SessionBounds

            pace = None if self.limits is None else self.limits.pace(self.plans[0].schema)
            memory = None if self.limits is None else self.limits.memory
            lanes = self._lanes()
            self.session = NativeSession(
                self.plans,
                self.engines,
                SessionBounds(self.efforts, pace, memory, self.recoveries),
                lowered=self.lowered,
                revisable=self.revisable,
                lanes=lanes,
                threads=self.threads,
                sliced=bool(self.chains),
            )
            for number in range(len(self.plans)):
                if self.tallies(number):
                    self.session.tally(number, self.tally)

    def push(self, batch: Batch) -> StreamStep:
        """Push events in stream order to the session, and return this step."""
        return EventsCame(() if self.session is None else self.session.push(batch), batch)

    def advance(self, clock: int) -> StreamStep:
        """Advance the time of the session, and return this step."""
        return TimePassed(() if self.session is None else self.session.advance(clock), clock)

    def finish(self) -> StreamStep:
        """End the stream of the session, and return this step."""
        return StreamEnded(() if self.session is None else self.session.finish())

    def revise(self, removed: Batch | None, batch: Batch, n_rematched: int, n_fresh: int) -> StreamStep:
        """Push events to the session that may be older than others were, and return this step."""
        native = () if self.session is None else self.session.revise(removed, batch, n_rematched, n_fresh)
        return EventsRevised(native, removed, batch, n_rematched)

    def _lanes(self) -> int:
        """Return in how many lanes the plans run."""
        if self.threads == 1 and self.lanes is None:
            return 1
        lanes, self.fewer_threads = most_lanes(self.plans, self.threads)
        waiting_plans = [n for n, plan in enumerate(self.plans) if self.tallies(n) and not decides_at_once(plan)]
        if self.limits is not None:
            lanes, self.fewer_threads = 1, "a budget is spent in one thread"
        elif waiting_plans and self.output != "count":
            lanes, self.fewer_threads = 1, "matches that wait for the end of their window are counted in one thread"
        elif lanes == 1 and self.is_whole and not (self.plans[0].keys or self.inner):
            if (why := why_no_slices(self.plans[0])) is None:
                self.chains[0] = BundleChain(0, self.plans[0].window.span)
                lanes, why = min(self.threads, MOST_LANES), ""
            self.fewer_threads = why
        if self.lanes is not None and self.lanes != lanes:
            lanes = self.lanes
            self.fewer_threads = "" if lanes >= self.threads else "the state that was restored has no more lanes"
        return lanes

    @property
    def tally(self) -> str:
        """Return by what the node engine counts matches, where they are only counted."""
        return "points" if self.output == TALLIED else self.output

    def tallies(self, number: int) -> bool:
        """Return whether the matches of a plan are only counted, though they are made one by one."""
        is_made = number in self.inner | self.uncounted or number in self.recoveries
        return self.output in (*COUNTED, TALLIED) and not is_made and base_engine(self.engines[number]) == "nodes"


def bounded_engine(choice: EngineChoice, *, windows: bool = True) -> str:
    """Return the native engine that sheds partial matches, in place of the chosen one. ``windows``: it may stay
    behind match windows, which keep no bound on memory."""
    nodes = "dominance" if choice.base == "dominance" else "nodes"
    return WINDOWS + nodes if windows and choice.engine.startswith(WINDOWS) else nodes


@dataclass
class NativeExecutor:
    """A plan over the stream itself, on the native core."""

    natives: NativeExecutors
    number: int
    n_given: int = 0  # counted matches returned so far

    @property
    def session(self) -> NativeSession:
        """Return the session, once it has been started."""
        assert self.natives.session is not None
        return self.natives.session

    @property
    def engine(self) -> str:
        """Return the name of the engine, without match windows before it."""
        return base_engine(self.natives.engines[self.number])

    @property
    def flows(self) -> bool:
        """Return whether matches of a part of a batch are those that end in this part."""
        return True

    @property
    def counts_only(self) -> bool:
        """Return whether matches are only counted."""
        return self.engine in BY_POINTS or self.natives.tallies(self.number) or self.engine in COUNTED

    @property
    def counts_points(self) -> bool:
        """Return whether matches are counted without their number."""
        tallied = self.natives.tallies(self.number) and self.natives.tally == "points"
        return tallied or self.engine in (*BY_POINTS, "points")

    def take_counted(self) -> Counted | int | None:
        counted, chain = self._take_unchained(), self.natives.chains.get(self.number)
        return chain.chain_counts(counted) if chain is not None and isinstance(counted, Counted) else counted

    def _take_unchained(self) -> Counted | int | None:
        if self.engine in BY_POINTS:
            return self.session.take_points(self.number)
        if self.natives.tallies(self.number):
            return self.session.take_tally(self.number, self.natives.tally)
        if self.engine not in COUNTED:
            return None
        if self.engine != "count":
            rows = self.session.take_counts(self.number, last=True)
            self.n_given += int(sum(rows.matches.tolist()))
            return rows
        before, self.n_given = self.n_given, self.session.total(self.number)
        return self.n_given - before

    def matches(self, step: StreamStep) -> Sequence[Found]:
        if self.engine in BY_POINTS:
            return []  # take_counted() returns match points
        matches, chain = step.native[self.number], self.natives.chains.get(self.number)
        return matches if chain is None else chain.matches(matches)

    def change(self, plan: Plan) -> None:
        self.session.change(self.number, plan)
        self.natives.plans[self.number] = plan

    def extend(self, plan: Plan) -> Plan:
        self.natives.plans[self.number] = plan = self.session.extend(self.number, plan)
        return plan

    def check(self, plan: Plan) -> None:
        self.session.check(plan)

    def earliest_open_end(self) -> int | None:
        plan, clock = self.natives.plans[self.number], self.session.clock
        if clock is None or plan.query.output is not Output.ALL or self.number in self.natives.recoveries:
            return None
        if decides_at_once(plan):
            return clock
        # A match waits for its trailing negations until a window after its first event.
        begun = waits_from(plan)
        if plan.window.counted or plan.window.span is None or begun is None:
            return None
        return min(clock, max(clock - plan.window.span, begun))

    def all_counts(self) -> list[Counts]:
        counts = self.session.counts(self.number)
        if self.engine == "count":
            counts.matches = self.session.total(self.number)
        elif self.engine == "bundles":
            counts.matches = self.n_given  # since a restart; the receiver has those given before
        counts.counted = self.engine not in (*BY_POINTS, "points")
        return [counts]

    def live(self) -> int:
        return self.session.live(self.number)

    def live_in(self, states: Sequence[int]) -> int:
        return self.session.live_in(self.number, states)

    def partial_matches(self, limit: int, states: Sequence[int], *, apart: bool) -> PartialColumns:
        from acep.runtime.live_partials import check_lists  # few matchers are asked for them

        check_lists(self.engine)
        return self.session.partial_matches(self.number, limit, states, apart=apart)

    def dump(self) -> None:
        """Return nothing: the session has the state."""

    def load(self, data: Any) -> None:
        if data is not None:
            raise ValueError("state")
        self.take_counted()  # dropped: it was given before


@dataclass
class RuntimeExecutor:
    """A plan on the reference engine, whatever its events are."""

    plan: Plan
    runtime: ReferenceRuntime = field(init=False)

    def __post_init__(self) -> None:
        self.runtime = ReferenceRuntime(self.plan)

    def change(self, plan: Plan) -> None:
        self.plan = plan
        self.runtime.change(plan)

    def check(self, plan: Plan) -> None:
        """Do nothing: the engine runs every plan."""

    def take_counted(self) -> None:
        return None

    def earliest_open_end(self) -> int | None:
        return self.runtime.earliest_open_end()

    def all_counts(self) -> list[Counts]:
        return [self.runtime.counts]

    def live(self) -> int:
        return self.runtime.live

    def live_in(self, states: Sequence[int]) -> int:
        return self.runtime.live_in(states)

    def partial_matches(self, limit: int, states: Sequence[int], *, apart: bool) -> PartialColumns:  # noqa: ARG002
        from acep.runtime.live_partials import partials_of  # few matchers are asked for them

        return partials_of(self.runtime, limit, states)

    def dump(self) -> Any:
        return dump_runtime(self.runtime)

    def load(self, data: Any) -> None:
        load_runtime(self.runtime, data)


@dataclass
class ReferenceExecutor(RuntimeExecutor):
    """A plan on the reference engine, over the stream itself."""

    def push(self, batch: Batch) -> list[Found]:
        return self.runtime.push(batch.events)

    def advance(self, clock: int) -> list[Found]:
        return self.runtime.advance(clock)

    def finish(self) -> list[Found]:
        return self.runtime.finish()

    def revise(self, removed: Batch | None, batch: Batch, n_rematched: int) -> list[Found]:
        return self.runtime.revise(None if removed is None else removed.events, batch.events, n_rematched)


@dataclass
class ComposedExecutor(RuntimeExecutor):
    """A plan over the matches of other plans; it gets them in order, once no earlier one can come."""

    inner: list[AnyExecutor] = field(default_factory=list)
    pending: list[tuple[int, Found]] = field(default_factory=list)
    n_given: int = 0

    def matches(self, step: StreamStep) -> list[Found]:
        self.pending += [(i, match) for i, executor in enumerate(self.inner) for match in matches_of(executor, step)]
        if not isinstance(step, StreamEnded):
            return self._match_certain()
        matches = self.runtime.push(self._events(self.pending))
        self.pending = []
        return matches + self.runtime.finish()

    def all_counts(self) -> list[Counts]:
        return [self.runtime.counts, *(c for executor in self.inner for c in executor.all_counts())]

    def live(self) -> int:
        return self.runtime.live + sum(executor.live() for executor in self.inner)

    def _match_certain(self) -> list[Found]:
        """Match those pending matches before which none can come any more."""
        lows = [executor.earliest_open_end() for executor in self.inner]
        if any(low is None for low in lows):
            return []
        low = min(x for x in lows if x is not None)
        certain = [(i, f) for i, f in self.pending if f.end < low]
        self.pending = [(i, f) for i, f in self.pending if f.end >= low]
        return self.runtime.push(self._events(certain)) + self.runtime.advance(low - 1)

    def _events(self, matches: list[tuple[int, Found]]) -> Events:
        matches.sort(key=lambda item: (item[1].end, item[0], output_order(item[1])))
        computed = {column.name for column in self.plan.computed}
        names = [n for n, _ in self.plan.schema.kinds if n not in ("ts", "type") and n not in computed]
        rows = [self._attributes(i, f) for i, f in matches]
        columns: dict[str, list[Value]] = {n: [row.get(n) for row in rows] for n in names}
        ids = list(range(self.n_given, self.n_given + len(matches)))
        self.n_given += len(matches)
        types: list[str | None] = [self.plan.sources[i][1] for i, _ in matches]
        return Events([f.end for _, f in matches], types, list(ids), columns)

    def _attributes(self, i: int, match: Found) -> dict[str, Value]:
        inner = self.plan.sources[i][0]
        error = match.error if isinstance(match.error, int) else float(match.error)
        if inner.automaton.costs.scale != 1:
            error = float(error)
        row: dict[str, Value] = {"start": match.start, "end": match.end, "error": error}
        row.update(zip(inner.keys, match.key, strict=True))
        row.update(zip((n for n, _ in inner.returns), match.values, strict=True))
        return row

    def dump(self) -> Any:
        pending = [[i, *plain_record(match)] for i, match in self.pending]
        inner = [executor.dump() for executor in self.inner]
        return {"core": dump_runtime(self.runtime), "inner": inner, "held": pending, "given": self.n_given}

    def load(self, data: Any) -> None:
        load_runtime(self.runtime, data["core"])
        for executor, dumped in zip(self.inner, data["inner"], strict=True):
            executor.load(dumped)
        self.n_given = int(data["given"])
        self.pending = [(int(i), record_of(self.plan.sources[int(i)][0], record)) for i, *record in data["held"]]


AnyExecutor: TypeAlias = NativeExecutor | FinerExecutor | ComposedExecutor | ReadingExecutor


def matches_of(executor: AnyExecutor, step: StreamStep) -> Sequence[Found]:
    """Return the matches of a plan that a step makes certain."""
    if isinstance(executor, NativeExecutor | FinerExecutor | ComposedExecutor):
        return executor.matches(step)
    return step.read_by(executor)
