"""Run plans on the native core (C++): columns of each batch go in, columns of matches come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from acep.budget.pace import Pace
from acep.errors import EngineError
from acep.events.batch import Batch
from acep.events.pushed_rows import Pushed, rows_of
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns, ranks_of, sort_matches
from acep.matches.records import Counts
from acep.native import _native
from acep.native.codes import Codes, words_of
from acep.native.decoding import Decoder
from acep.native.encoding import Encoder
from acep.native.lanes import Lanes
from acep.native.session_budget import SessionBudget
from acep.native.slices import Slices
from acep.plan.choice import BY_POINTS, WINDOWS, base_engine, tables_for
from acep.plan.compile import Plan
from acep.plan.lower.stream_tables import StreamTables
from acep.plan.lower.tables import NotNativeError, PlanTables, SharedTables, TableLowering
from acep.plan.prefilter import necessary, reason_against
from acep.shedding.controller import SheddingController
from acep.shedding.partition_sampler import PartitionSampler
from acep.shedding.policy_context import context_of
from acep.shedding.recovery.recovery import KEPT_WINDOWS, Recovery

if TYPE_CHECKING:
    from acep.matches.partials.partial_columns import PartialColumns
    from acep.native.session_budget import Effort

__all__ = ["NativeSession", "SessionBounds"]

EARLIEST, LATEST = -(2**63), 2**63 - 1  # the least and the largest time
SORTED = 1 << 16  # matches of one match point that are sorted together
PART = 4096  # events between two reads of matches

STRATEGIES = (0, 0)
"""When the core takes an index over partial matches, and the known future: 0 where it pays, 1 never, 2 always. All
answers are the same; tests set it."""

GREATEST = 1 << 40
"""The greatest number of partial matches that is asked for."""

NEVER = 1
"""Of ``STRATEGIES``, the number of one that is never taken."""

TALLIES = ("matches", "count", "points", "bundles")  # `Tally` in output.hpp

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SearchStep:
    """A variable whose event is looked for, and the columns by which it is found: those that are ``equal`` to ones of
    events that are bound, or ``near`` to them."""

    variable: str
    equal: tuple[str, ...]
    near: tuple[str, ...]


@dataclass(frozen=True)
class SearchPath:
    """The order in which the events of a match are looked for, from its ``last`` variable back. ``error``: what is
    missing in such a match costs so much (scaled)."""

    error: int
    last: str
    steps: tuple[SearchStep, ...]


@dataclass(frozen=True)
class SessionBounds:
    """The parts that keep the plans of a session to their budgets, under the names that they have in
    :class:`acep.native.session_budget.SessionBudget`."""

    efforts: Mapping[int, Effort] = field(default_factory=dict)
    pace: Pace | None = None
    memory: int | None = None
    recoveries: Mapping[int, Recovery] = field(default_factory=dict)


class NativeSession:
    """The state of several plans over one stream. ``engines`` names the native engine of each plan; ``bounds`` keep
    them to their budgets. Without these, there may be several ``lanes``, which are a part of the state, and ``threads``
    to run them (:class:`acep.native.lanes.Lanes`). ``sliced``: the only batch is a table, and each thread runs a slice
    of it (:class:`acep.native.slices.Slices`).

    ``lowered``: the tables of the plans; if they are not given, the plans are lowered.

    Raises :class:`NotNativeError` where the core cannot run one of the plans.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        engines: Sequence[str],
        bounds: SessionBounds | None = None,
        *,
        lowered: StreamTables | None = None,
        revisable: bool = False,
        lanes: int = 1,
        threads: int = 1,
        sliced: bool = False,
    ) -> None:
        bounds = bounds or SessionBounds()
        assert lanes == 1 or not (bounds.efforts or revisable)
        self.plans = tuple(plans)
        lowered = lowered or _lower_plans(plans, engines)
        tables = lowered.plans
        self._codes = codes = Codes()
        text_codes = [codes.constant(text) for text in lowered.texts]
        assert text_codes == [*range(len(text_codes))]
        self._shared = lowered.shared.copy()
        self._registers = [table.registers for table in tables]
        self.key_tables: Sequence[tuple[int, ...]] = [*self._shared.keys]  # each as the columns of its key
        self.width = len(self._shared.columns)  # columns that the core takes
        self.lanes, self.sliced = lanes, sliced
        self._session = self._make_core(tables, engines, lanes, threads)
        self.is_last = False  # no event comes after the batches that are pushed from now on
        self.tallies = False  # whether matches of some plan are only counted
        retention_span = self._start_efforts(bounds, tables)
        self._encoder = Encoder(
            codes,
            self._session,
            self.plans[0].schema,
            self._shared.columns,
            self._shared.computed,
            retention_span,
        )
        self._decoders = [
            Decoder(plan, table.return_kinds, codes, self._encoder.id_texts)
            for plan, table in zip(self.plans, tables, strict=True)
        ]
        self.budget = SessionBudget(
            self._session,
            self._encoder,
            self._decoders,
            bounds.efforts,
            bounds.pace,
            bounds.memory,
            bounds.recoveries,
            revisable,
        )
        self._numbers = range(len(self.plans))
        self._no_matches = {  # of plans that give match points alone: nothing has come yet
            number: self._take(number) for number in self._numbers if base_engine(engines[number]) in BY_POINTS
        }

    def _make_core(
        self, tables: Sequence[PlanTables], engines: Sequence[str], lanes: int, threads: int
    ) -> _native.Session:
        """Return a core session with the plans; several lanes are joined to one."""
        programs, classes = self._programs_and_classes(self._shared, [], [])
        keys = [(list(columns), positions) for columns, positions in self._shared.keys.items()]
        self._core_arguments = programs, classes, self.width, keys
        cores = [_native.Session(self._codes.texts, *self._core_arguments) for _ in range(lanes)]
        self._engine_tables = [
            (engine, self._arrays(table) | _needs(plan, engine))
            for plan, table, engine in zip(self.plans, tables, engines, strict=True)
        ]
        for core in cores:
            for engine_tables in self._engine_tables:
                core.add(*engine_tables)
        self._joint_session = None if lanes == 1 else self._join_cores(cores, threads)
        session = cores[0] if self._joint_session is None else cast("_native.Session", self._joint_session)
        session.choose_search_ways(*STRATEGIES)
        return session

    def _start_efforts(self, bounds: SessionBounds, tables: Sequence[PlanTables]) -> int | None:
        """Start what chooses and recovers under budgets. Return how long texts and ids are needed beside those that the
        core refers to; ``None``: no longer than these."""
        n_classes = len(self._core_arguments[1])
        for number, effort in bounds.efforts.items():
            if not isinstance(effort, SheddingController | PartitionSampler):
                effort.kinds = tuple(self.plans[number].schema.kind(name) for name in self._shared.columns)
            effort.start(self._session, number, context_of(self.plans[number], tables[number], n_classes))
        retention_span: int | None = None
        for number, recovery in bounds.recoveries.items():
            span, effort = self.plans[number].window.span, bounds.efforts[number]
            assert span is not None
            assert isinstance(effort, SheddingController)
            key_indexes = [list(self._shared.columns).index(key) for key in self.plans[number].keys]
            recovery.start(self, number, key_indexes, span, effort.context)
            retention_span = max(retention_span or 0, (KEPT_WINDOWS + 2) * span)
        return retention_span

    def _join_cores(self, cores: Sequence[_native.Session], threads: int) -> Lanes:
        """Return several core sessions as one."""
        if not self.sliced:
            return Lanes(cores, threads)
        span = max(plan.window.span or 0 for plan in self.plans)
        return Slices(cores, threads, span=span, engines=[engine for engine, _ in self._engine_tables])

    @property
    def refers_to_nothing(self) -> bool:
        """Return whether no event of before is needed by later ones; ``False`` of engines that do not say so."""
        engines = {base_engine(engine) for engine, _ in self._engine_tables}
        return engines <= {"merged", "nodes"} and not len(self._session.used_ids())

    @property
    def shares(self) -> int:
        """Return in how many lanes or slices the work is shared."""
        return self._joint_session.used if isinstance(self._joint_session, Slices) else self.lanes

    def _programs_and_classes(
        self, shared: SharedTables, programs: list[Any], classes: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Return the programs and event classes as the core takes them, those that are given followed by the others."""
        programs = [
            *programs,
            *(_native.BlockProgram(words_of(p.code), p.slots, p.leaves) for p in [*shared.programs][len(programs) :]),
        ]
        for event_class in [*shared.classes][len(classes) :]:
            types = self._codes.constants(event_class.types) if event_class.types else None
            checks = [(n, words_of([w for s in sources for w in s])) for n, sources in event_class.checks]
            classes = [*classes, (types, checks)]
        return programs, classes

    def change(self, number: int, plan: Plan) -> None:
        """Go on with another plan in place of plan ``number``: a query that has changed.

        Raises :class:`EngineError`, and changes nothing, where the core cannot run it.
        """
        tables = self._set_tables(number, plan, adds_arcs=False)
        self._engine_tables[number] = (self._engine_tables[number][0], self._arrays(tables))
        self.plans = (*self.plans[:number], plan, *self.plans[number + 1 :])
        self._decoders[number] = Decoder(plan, tables.return_kinds, self._codes, self._encoder.id_texts)

    def extend(self, number: int, plan: Plan) -> Plan:
        """Take the arcs of a plan besides those of plan ``number``, a hand-written automaton that has the same states.
        Return that plan with the columns of both.

        Raises :class:`EngineError`, and changes nothing, where the core cannot run it.
        """
        self._set_tables(number, plan, adds_arcs=True)
        old_plan = self.plans[number]
        new_plan = replace(old_plan, columns=tuple(sorted({*old_plan.columns, *plan.columns})))
        self.plans = (*self.plans[:number], new_plan, *self.plans[number + 1 :])
        return new_plan

    def renew(self, number: int, words: list[int]) -> int:
        """Set the times of arcs of plan ``number``, as :meth:`acep.runtime.stream.Stream.renew` describes them."""
        clock = self._encoder.clock
        return self._session.renew(number, words, -LATEST if clock is None else clock)

    def _set_tables(self, number: int, plan: Plan, *, adds_arcs: bool) -> PlanTables:
        """Give the core the tables of a plan, in place of those of plan ``number`` or besides them, and return them."""
        shared, tables = self._lower(plan)
        programs, classes = self._programs_and_classes(shared, *self._core_arguments[:2])
        old_shared, self._shared = self._shared, shared
        try:
            self._session.change(number, programs, classes, len(shared.columns), self._arrays(tables), adds_arcs)
        except BaseException:
            self._shared = old_shared
            raise
        self.width = len(shared.columns)
        self._core_arguments = programs, classes, self.width, self._core_arguments[3]
        self._encoder.columns, self._encoder.computed = shared.columns, shared.computed
        return tables

    def check(self, plan: Plan) -> None:
        """Raise :class:`EngineError` for a plan that the core cannot run in place of another one."""
        self._lower(plan)

    def _lower(self, plan: Plan) -> tuple[SharedTables, PlanTables]:
        """Return the tables of a plan in place of another one, and the shared tables that go with them."""
        shared = self._shared.copy()
        try:
            return shared, TableLowering(plan, shared, self._codes.constant).tables()
        except NotNativeError as why:
            raise EngineError(
                f"the native core cannot run this version: {why}", hint='engine="reference" runs every query'
            ) from None

    def ignore_future(self) -> None:
        """Make partial matches whatever later events of a batch say, so that the work does not depend on batches."""
        self._session.choose_search_ways(STRATEGIES[0], NEVER)

    def push(self, batch: Batch) -> list[FoundColumns]:
        """Push events in stream order and return the matches of each plan that they make certain. Where bundles are
        recovered, these are the matches of bundles that have ended; of an engine that only counts, there are none."""
        if len(batch):
            if self.budget.efforts:
                self.budget.push(batch, last=self.is_last)
            else:
                self._session.push(*self._encoder.words(batch), last=self.is_last)
        return self._take_all()

    def revise(self, removed: Batch | None, batch: Batch, n_rematched: int, n_fresh: int = 0) -> list[FoundColumns]:
        """Forget the partitions of the events ``removed`` and of the first ``n_rematched`` of a batch, push the batch,
        and return the matches as :meth:`push` does. Of these events, ``n_fresh`` come for the first time."""
        if removed is not None:
            self._session.reset(*self._encoder.words(removed), rows=len(removed))
            self._encoder.repeated += len(removed)
        if len(batch):
            words = self._encoder.words(batch)
            self._session.reset(*words, rows=n_rematched)
            if self.budget.efforts:
                self.budget.revise(words, n_rematched, n_fresh, 0 if removed is None else len(removed))
            else:
                self._session.push(*words, hold=True)
        if self.clock is not None:
            self._session.advance(self.clock)
        return self._take_all()

    def another_core(self, plan: int, shedding_table: dict[str, Any]) -> _native.Session:
        """Return another core for one plan, which takes the same words; its budget is still to be set."""
        core = _native.Session(self._codes.texts, *self._core_arguments)
        core.add(*self._engine_tables[plan])
        core.start_shedding(0, 0)
        core.set_shedding_table(0, shedding_table)
        return core

    @property
    def flows(self) -> bool:
        """Return whether :meth:`blocks` can be called: one plan in one lane, without a budget, that makes matches one
        by one."""
        names = [base_engine(engine) for engine, _ in self._engine_tables]
        return len(names) == 1 and self.lanes == 1 and not self.budget.efforts and names[0] in ("merged", "nodes")

    def blocks(self, batch: Batch, block_size: int, sort_limit: int | None = None) -> Iterator[FoundColumns]:
        """Push a batch and yield the matches of the only plan in bounded memory: about ``block_size`` at a time, in the
        order of their match points. Those of one match point are in output order if they are no more than
        ``sort_limit`` (:data:`SORTED` by default). No other call may come between two blocks."""
        sort_limit = SORTED if sort_limit is None else sort_limit
        if not len(batch):
            return
        words = self._encoder.words(batch)
        if self._engine_tables[0][0] != "merged":
            yield from self._push_in_parts(words, block_size, sort_limit)
            return
        self._session.set_lazy(0, True)
        for rows in batch.cuts(PART):  # matches of one time are sorted together
            self._session.push(*rows_of(words, rows))
            while self._session.make_ordered_block(
                0, block_size, sort_limit, isinstance(batch.ids, list)
            ):  # text ids sort differently from their numbers
                yield sort_matches(self._take(0), _native.output_order)
        self._session.set_lazy(0, False)

    def _push_in_parts(self, words: Pushed, block_size: int, sort_limit: int) -> Iterator[FoundColumns]:
        """Do the same for an engine that makes the matches of an event at once, unless there are too many."""
        self._session.limit_waiting_matches(0, sort_limit)
        row, n_rows = 0, len(words[0])
        while row < n_rows:
            row = self._session.push(*words, row, block_size)
            matches = self._take(0)
            if len(matches):
                yield sort_matches(matches, _native.output_order)
        self._session.limit_waiting_matches(0, 0)

    @property
    def clock(self) -> int | None:
        """Return the latest time seen."""
        return self._encoder.clock

    def advance(self, clock: int) -> list[FoundColumns]:
        """Advance the time: no event with ``ts <= clock`` will come any more. Return the matches as :meth:`push`
        does."""
        if self.clock is None or clock >= self.clock:
            self._encoder.clock = min(clock + 1, LATEST)
            self._session.advance(self._encoder.clock)
        return self._take_all()

    def finish(self) -> list[FoundColumns]:
        """End the stream, which decides everything, and return the matches as :meth:`push` does."""
        self._session.finish()
        self.budget.finish()
        return self._take_all()

    def shed_counts(self, plan: int) -> dict[str, Any]:
        """Return what a plan under a budget has spent and shed."""
        return dict(self._session.shedding_counts(plan))

    def _take_all(self) -> list[FoundColumns]:
        """Return the matches of each plan since the last call. Match points stay in the core for
        :meth:`take_points`."""
        return [self._no_matches[plan] if plan in self._no_matches else self._take(plan) for plan in self._numbers]

    def _take(self, plan: int) -> FoundColumns:
        """Return the matches, or match points, of a plan since the last call."""
        matches = self.budget.recoveries[plan].take() if plan in self.budget.recoveries else None
        if matches is not None:
            return matches
        if self._joint_session is None:
            return self.columns(plan, self._session.take(plan))
        # Text ids have another order than their numbers; values may tell matches with the same events apart.
        by_numbers = not self._encoder.id_texts and self.plans[plan].query.graph is None
        if by_numbers and base_engine(self._engine_tables[plan][0]) not in BY_POINTS:
            return self.columns(plan, self._joint_session.take_in_order(plan, ranks_of(self.plans[plan].variables)))
        return replace(
            sort_matches(self.columns(plan, self._joint_session.take(plan)), _native.output_order), in_order=True
        )

    def columns(self, plan: int, arrays: dict[str, Any]) -> FoundColumns:
        """Return the matches that the core gave for a plan."""
        return self._decoders[plan].decode_matches(arrays)

    def take_compressed(self, plan: int) -> Any:
        """Return the graph of all matches, once the stream has ended (``_native.Compressed``)."""
        return self._session.take_compressed(plan, True)

    def take_counts(self, plan: int, *, last: bool = False) -> Counted:
        """Return what a counting engine counted since the last call; ``last``: also bundles that may still grow."""
        arrays = self._session.take_counts(plan, last)
        matches: Any = arrays["count"]
        if arrays["large"]:
            matches = matches.astype(object)
            for row, number in arrays["large"]:
                matches[row] = number
        return self._decoders[plan].decode_counted(arrays, matches)

    def take_points(self, plan: int) -> Counted:
        """Return the match points, with the least error of each, that an engine which gives only these found since the
        last call; one row for each event that ends a match."""
        assert plan in self._no_matches
        matches = self._take(plan)
        return Counted(
            matches.keys, matches.end, matches.end, matches.bundle, matches.error, matches.scale, np.zeros(0, np.int64)
        )

    def tally(self, plan: int, output: str) -> None:
        """Only count the matches of a plan on the node engine from now on, as ``output`` says (one of
        :data:`TALLIES`)."""
        self._session.tally(plan, TALLIES.index(output))
        self.tallies = True

    def take_tally(self, plan: int, output: str) -> Counted | int:
        """Return what was counted since the last call: a number, or rows."""
        arrays = self._session.take_tally(plan)
        if output == "count":
            return int(arrays["total"])
        return self._decoders[plan].decode_counted(
            arrays, arrays["count"] if output == "bundles" else np.zeros(0, np.int64)
        )

    def total(self, plan: int) -> int:
        """Return the number of all matches so far, from the engine that counts them."""
        return sum(number for _, number in self._session.count_totals(plan))

    def counts(self, plan: int) -> Counts:
        """Return the work done for a plan."""
        nodes, touches, matches = self._session.work(plan)
        counts = Counts(events=self._encoder.events, nodes=nodes, touches=touches, matches=matches)
        self.budget.count(plan, counts)
        return counts

    def live(self, plan: int) -> int:
        """Return the number of a plan's partial matches whose window is not over, as the engine holds them."""
        return 0 if self.clock is None else self._session.partial_matches(plan, self.clock)

    def live_in(self, plan: int, states: Sequence[int]) -> int:
        """Return the number of partial matches, as :meth:`live` does, in some states of a plan that may change."""
        return 0 if self.clock is None or not states else self._session.partial_matches_in(plan, states, self.clock)

    def partial_matches(self, plan: int, limit: int, states: Sequence[int], *, apart: bool) -> PartialColumns:
        """Return the ``limit`` last of a plan's partial matches in some states; ``apart``: with a row for each
        sequence of bound events.

        Raises :class:`ValueError` for an engine that keeps none with their events.
        """
        clock = EARLIEST if self.clock is None else self.clock
        listed = self._session.list_partial_matches(plan, min(limit, GREATEST), apart, list(states), clock)
        from acep.matches.partials.partial_columns import sorted_columns  # few matchers are asked for them

        return sorted_columns(self._decoders[plan].decode_partials(listed), limit)

    @property
    def bytes(self) -> int:
        """Return the bytes reserved by engines and partition tables and held by policies; under a memory bound also
        those of texts and ids."""
        return self._session.bytes + self.budget.held

    def arc_keys(self, plan: int) -> list[tuple[int, int, list[str]]]:
        """Return, of each arc of a plan on the node engine that compares registers with attributes for equality, its
        state, the state after it, and these registers as ``variable.attribute``."""
        names = [{slot: f"{var}.{name}" for slot, var, name, _ in state} for state in self._registers[plan]]
        return [
            (source, target, [names[source][slot] for slot in slots])
            for source, target, slots in self._session.arc_keys(plan)
        ]

    def search_paths(self, plan: int) -> list[SearchPath]:
        """Return the ways in which a plan on the search engine looks for the events of a match, with the least error
        first."""
        names, columns = self.plans[plan].variables, list(self._shared.columns)

        def step(var: int, equal: list[int], near: list[int]) -> SearchStep:
            return SearchStep(names[var], *(tuple(columns[n] for n in part) for part in (equal, near)))

        return [
            SearchPath(error, names[last], tuple(step(*parts) for parts in steps))
            for error, last, steps in self._session.search_paths(plan)
        ]

    def asks_future(self, plan: int) -> bool:
        """Return whether a plan on the node engine asks what a batch tells of the events after one."""
        return self._session.foresees(plan)

    def count_windowed(self, plan: int) -> tuple[int, int]:
        """Return how many events came for a plan behind match windows, and how many of them reached its engine."""
        return self._session.windowed(plan)

    def dump(self) -> dict[str, Any]:
        """Return the whole state as JSON-like data, with bytes."""
        key_counts = self._session.kept()
        sizes = {"kept_keys": key_counts} if any(key_counts) else {}  # states of before have none
        return {"core": self._session.dump(), **sizes, **self._encoder.dump(), **self.budget.dump()}

    def load(self, data: Any, changed: Sequence[Plan] = ()) -> None:
        """Fill a new session from :meth:`dump`; ``changed`` are the plans that it had then, if it had others at first.
        Raises :class:`ValueError`, :class:`TypeError` or :class:`KeyError`
        for other data."""
        self.budget.check(data)
        self._encoder.load(data)
        for number, plan in enumerate(changed):
            self.change(number, plan)
        states = [data["core"]] if self.lanes == 1 else data["core"]
        if len(states) != self.lanes or not all(isinstance(state, bytes) for state in states):
            raise ValueError("core")
        self._session.load(data["core"], EARLIEST if self.clock is None else self.clock)
        if "kept_keys" in data:
            self._session.set_kept([int(number) for number in data["kept_keys"]])
        self.budget.load(data)

    def _arrays(self, table: PlanTables) -> dict[str, Ints]:
        arrays = {name: words_of(values) for name, values in table.arrays.items()}
        arrays["meta"][8:10] = len(self._shared.classes), len(self._shared.columns)
        return arrays


def _lower_plans(plans: Sequence[Plan], engines: Sequence[str]) -> StreamTables:
    lowered = StreamTables()
    for plan, engine in zip(plans, engines, strict=True):
        lowered = tables_for(engine, lowered.add(plan))
    return lowered


def _needs(plan: Plan, engine: str) -> dict[str, Ints]:
    """Return the tables of an engine behind match windows (``windows+nodes``): the events that a window must have."""
    if not engine.startswith(WINDOWS):
        return {}
    conditions = necessary(plan)
    if conditions is None:
        raise NotNativeError(reason_against(plan) or "a window needs no event in particular")
    return {name: words_of(values) for name, values in conditions.arrays(plan.variables).items()}
