"""Running of plans on the native core (C++): columns of each batch go in, columns of matches come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.budget.pace import Pace
from acep.events.batch import Batch, Column, column_of_values
from acep.events.pushed_rows import Pushed, Words, rows_of
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns, ordered
from acep.matches.records import Counts
from acep.native import _native
from acep.native.codes import LASTING, Codes, derived_of, words_of
from acep.native.id_dictionary import IdDictionary
from acep.pattern.tree import Output
from acep.plan.choice import WINDOWS, alone
from acep.plan.compile import Plan
from acep.plan.derive import Derived
from acep.plan.lower.tables import NotNativeError, PlanTables, SharedTables, lower
from acep.plan.prefilter import necessary, reason_against
from acep.plan.schema import Kind
from acep.shedding.controller import SheddingController
from acep.shedding.partition_sampler import PartitionSampler
from acep.shedding.policy_context import context_of, no_recall
from acep.shedding.recovery.bundles import KEPT, Recovery
from acep.shedding.recovery.rematch import SHED

__all__ = ["NativeSession"]

LATEST = 2**63 - 1  # the largest time
BESIDE = 8  # texts and ids get one part in so many of the memory
ROUNDS = 8  # attempts to shed partial matches to make room for texts
MOST = 2**62  # matches
SORTED = 1 << 16  # matches of one match point that are sorted together
PART = 4096  # events between two reads of matches

TALLIES = ("matches", "count", "points", "bundles")  # `Tally` in output.hpp

Ints = npt.NDArray[np.int64]


class NativeSession:
    """The state of several plans over one stream. ``engines`` names the native engine of each plan. ``efforts``
    keep plans to their budgets, ``pace`` keeps all of them to a time budget. ``memory``: the most bytes, in equal
    shares, that :attr:`bytes` may be after a call. ``recoveries`` recover the match bundles of some plans under a
    budget.

    Raises :class:`NotNativeError` where the core cannot run one of the plans.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        engines: Sequence[str],
        efforts: Mapping[int, SheddingController | PartitionSampler] | None = None,
        pace: Pace | None = None,
        memory: int | None = None,
        recoveries: Mapping[int, Recovery] | None = None,
    ) -> None:
        self.plans = tuple(plans)
        self._codes = Codes()
        self._shared = SharedTables()
        tables = [
            lower(plan, self._shared, self._codes.texts.intern, dominance=engine.endswith("dominance"))
            for plan, engine in zip(plans, engines, strict=True)
        ]
        self._return_kinds = [table.return_kinds for table in tables]
        programs = [_native.BlockProgram(words_of(p.code), p.slots, p.leaves) for p in self._shared.programs]
        classes = []
        for one in self._shared.classes:
            types = self._codes.texts.intern_all(one.types) if one.types else None
            classes.append((types, [(n, words_of([w for s in sources for w in s])) for n, sources in one.checks]))
        keys = [(list(columns), positions) for columns, positions in self._shared.keys.items()]
        self._made = programs, classes, len(self._shared.columns), keys
        self._session = _native.Session(self._codes.texts, *self._made)
        self._added = [
            (engine, self._arrays(table) | _needs(plan, engine))
            for plan, table, engine in zip(self.plans, tables, engines, strict=True)
        ]
        for added in self._added:
            self._session.add(*added)
        self.efforts = dict(efforts or {})
        self._choosing = {n: effort for n, effort in self.efforts.items() if isinstance(effort, SheddingController)}
        self.pace = pace
        for number, effort in self.efforts.items():
            effort.start(
                self._session, number, context_of(self.plans[number], tables[number], len(self._shared.classes))
            )
        self.memory = memory
        if memory is not None:
            for effort in self._choosing.values():
                effort.bound(self._session, (memory - memory // BESIDE) // len(self.efforts))
        self._names = IdDictionary()
        self._events = 0
        self.tallies = False  # whether matches of some plan are only counted
        # Texts bound longer ago than the longest window are not needed, unless matches wait for others or for the end.
        lasting = [engine.endswith("compressed") for engine in engines]
        spans = [None if last else _span(plan) for plan, last in zip(plans, lasting, strict=True)]
        self._span = max((s for s in spans if s is not None), default=0)
        self.recoveries = dict(recoveries or {})
        for number, recovery in self.recoveries.items():
            places = [list(self._shared.columns).index(key) for key in self.plans[number].keys]
            span = spans[number]
            assert span is not None
            recovery.start(self, number, places, span, self._choosing[number].context)
            self._choosing[number].reconciliation = recovery.reconciliation
            self._span = max(self._span, (KEPT + 2) * span)
        # Texts of these columns are kept for good, as some plan may look back at any event.
        self._lasting = {name for plan, span in zip(plans, spans, strict=True) if span is None for name in plan.columns}
        self._forgets = None not in spans
        self._codes.pin()
        self._peak = 0
        self.clock: int | None = None  # the latest time seen

    def push(self, batch: Batch) -> None:
        """Push events in stream order; :meth:`take` reads the matches."""
        if not len(batch):
            return
        if not self.efforts:
            self._session.push(*self._words(batch))
            return
        self._push(batch)
        if self.memory is not None:
            self._fit()

    def _push(self, batch: Batch) -> None:
        """Push events under a budget."""
        if self.pace is not None:
            self.pace.begin(len(batch), int(batch.ts[0]))
        before = self._events
        words = self._words(batch)
        at = 0
        cuts: list[SheddingController | PartitionSampler | Recovery] = [
            *self.efforts.values(),
            *self.recoveries.values(),
        ]
        while at < len(batch):
            upto = min([len(batch), *(at + one.left(before + at) for one in cuts)])
            upto = upto if self.pace is None else min(upto, at + self.pace.stretch)
            self._stretch(words, slice(at, upto), before + upto)
            if self.recoveries:
                self._recover(rows_of(words, slice(at, upto)), before + upto)
            at = upto

    def allow(self, rate: float, events: int, matches: float) -> None:
        """Allow all plans together ``rate`` touches for each of the next ``events``, and so many ``matches``."""
        most = int(min(matches / len(self.efforts), MOST)) if self.efforts else 0
        for number, effort in self.efforts.items():
            own = rate / len(self.efforts)
            if number in self.recoveries:
                own = self.recoveries[number].allow(own, events)
            effort.allow(self._session, own, events)
            self._session.allow_matches(number, most)

    @property
    def walked(self) -> int:
        """Return how many matches were made under a budget, before any choice among them."""
        return sum(self._session.walked(number) for number in self.efforts)

    @property
    def learning(self) -> float:
        """Return the seconds in which policies have learned in this session."""
        return sum(effort.seconds for effort in self.efforts.values())

    def epochs(self, events: int) -> int:
        """Return how many epochs of policies end within the next ``events``."""
        return sum(effort.epochs(self._events + events) for effort in self.efforts.values())

    def _stretch(self, words: Pushed, rows: slice, events: int) -> None:
        """Push some rows of a batch, up to event number ``events``; policies whose epoch ends there learn."""
        looks = [effort for effort in self.efforts.values() if effort.due(events)]
        many = int(rows.stop - rows.start)
        if self.pace is None:
            self._session.push(*rows_of(words, rows))
            for effort in looks:
                effort.look(self._session, events)
            return
        learns = any(effort.ends(events) for effort in looks)
        rate, matches = self.pace.rate(many, int(words[0][rows.stop - 1]), learns=learns)
        before, walked = [effort.touches(self._session) for effort in self.efforts.values()], self.walked
        self.allow(rate, many, matches)
        self._session.push(*rows_of(words, rows))
        touches = sum(e.touches(self._session) for e in self.efforts.values()) - sum(before)
        walked = self.walked - walked
        took = self.learning
        for effort in looks:
            effort.look(self._session, events)
        self.pace.measured(many, touches, self.learning - took, matches=walked)

    def _recover(self, rows: Pushed, events: int) -> None:
        """Pass the matches found in some rows, the last being event number ``events``, to the recovery of bundles."""
        for number, recovery in self.recoveries.items():
            if recovery.rate is not None and self.pace is None:
                recovery.grant(recovery.rate / recovery.share, len(rows[0]))
            given = self._session.take(number)
            before = recovery.lent
            recovery.saw(rows, events, self.columns(number, given), given["keys"], self._shed(number))
            if recovery.lent != before and recovery.rate is not None and self.pace is None:
                self._choosing[number].lend(self._session, recovery.rate if recovery.lent else 0.0)

    def _shed(self, plan: int) -> int:
        """Return how many partial matches and events a plan under a budget has shed."""
        told = self._session.shedding_counts(plan)
        return sum(int(told[name]) for name in SHED)

    def another_core(self, plan: int, shedding_table: dict[str, Any]) -> _native.Session:
        """Return another core for one plan, which takes the same words; its budget is still to be set."""
        core = _native.Session(self._codes.texts, *self._made)
        core.add(*self._added[plan])
        core.start_shedding(0, 0)
        core.set_shedding_table(0, shedding_table)
        return core

    @property
    def key_tables(self) -> Sequence[tuple[int, ...]]:
        """Return the partition tables, each as the columns of its key."""
        return [*self._shared.keys]

    @property
    def width(self) -> int:
        """Return how many columns the core takes."""
        return len(self._shared.columns)

    def _fit(self) -> None:
        """Fit texts and ids into the memory after a batch: drop those that nothing needs, and take what is still
        beyond their share from the memory of the partial matches."""
        assert self.memory is not None
        share = self.memory // BESIDE
        for _ in range(ROUNDS):
            if self._beside() > share:
                self._forget_texts()
            over = max(0, self._beside() - share) // len(self.efforts)
            if all(effort.beside >= over for effort in self._choosing.values()):
                break
            for effort in self._choosing.values():
                effort.set_beside(self._session, over)
        if over == 0:
            for effort in self._choosing.values():
                effort.set_beside(self._session, 0)
        self._peak = max(self._peak, self.bytes)

    def _beside(self) -> int:
        """Return the bytes of texts and ids."""
        return self._codes.bytes + self._names.bytes

    def _forget_texts(self) -> None:
        """Drop the texts and ids that nothing in the core refers to."""
        used = self._session.used_texts(self._codes.texts.capacity)
        self._codes.keep(used, self._now(lasting=not self._forgets))
        if self._names:
            self._names.keep(self._session.used_ids())

    @property
    def flows(self) -> bool:
        """Return whether :meth:`blocks` can be called: one plan, without a budget, that makes matches one by one."""
        names = [alone(engine) for engine, _ in self._added]
        return len(names) == 1 and not self.efforts and names[0] in ("merged", "nodes")

    def blocks(self, batch: Batch, most: int, together: int | None = None) -> Iterator[FoundColumns]:
        """Push a batch and yield the matches of the only plan in bounded memory: about ``most`` at a time, in the
        order of their match points. Those of one match point are in output order if they are no more than
        ``together`` (:data:`SORTED` by default). No other call may come between two blocks."""
        together = SORTED if together is None else together
        if not len(batch):
            return
        words = self._words(batch)
        if self._added[0][0] != "merged":
            yield from self._flow(words, most, together)
            return
        self._session.set_lazy(0, True)
        for rows in batch.cuts(PART):  # matches of one time are sorted together
            self._session.push(*rows_of(words, rows))
            while self._session.block(
                0, most, together, isinstance(batch.ids, list)
            ):  # text ids sort differently from their numbers
                yield ordered(self.take(0), _native.output_order)
        self._session.set_lazy(0, False)

    def _flow(self, words: Pushed, most: int, together: int) -> Iterator[FoundColumns]:
        """Do the same for an engine that makes the matches of an event at once, unless there are too many."""
        self._session.flow(0, together)
        at, rows = 0, len(words[0])
        while at < rows:
            at = self._session.push(*words, at, most)
            found = self.take(0)
            if len(found):
                yield ordered(found, _native.output_order)
        self._session.flow(0, 0)

    def _words(self, batch: Batch) -> Pushed:
        """Return a batch in the form that the core takes."""
        ids = batch.ids
        self._release()  # earlier matches have been taken
        self.clock = int(batch.ts[-1])
        if isinstance(ids, list):
            self._names.add(self._events, ids, self.clock)
            ids = range(self._events, self._events + len(batch))
        self._events += len(batch)
        types: Any = None
        valid = None
        if batch.types is not None:
            codes, valid = self._codes.of(batch.types, self._now(lasting=not self._forgets)), batch.types.valid
            types = (np.ascontiguousarray(batch.types.values), codes) if len(codes) else np.zeros(len(batch), np.int64)
        columns = [self._named(batch, name, derived) for name, derived in self._shared.columns.items()]
        return batch.ts, types, valid, ids.start if isinstance(ids, range) else ids, columns

    def advance(self, clock: int) -> None:
        """Advance the time: no event with ``ts <= clock`` will come any more."""
        if self.clock is None or clock >= self.clock:
            self.clock = min(clock + 1, LATEST)
            self._session.advance(self.clock)

    def finish(self) -> None:
        """End the stream: everything is decided."""
        self._session.finish()
        for number, recovery in self.recoveries.items():
            given = self._session.take(number)
            recovery.finish(self.columns(number, given), given["keys"], self._shed(number))

    def learn(self) -> None:
        """End the epoch here: each policy learns from the events since the last one."""
        for effort in self._choosing.values():
            if effort.events < self._events:
                effort.learn(self._session, self._events)

    def shed_counts(self, plan: int) -> dict[str, Any]:
        """Return what a plan under a budget has spent and shed."""
        return dict(self._session.shedding_counts(plan))

    def take(self, plan: int) -> FoundColumns:
        """Return the matches of a plan found since the last call; where bundles are recovered, only those of bundles
        that have ended."""
        if plan in self.recoveries:
            found = self.recoveries[plan].take()
            return self.columns(plan, self._session.take(plan)) if found is None else found
        return self.columns(plan, self._session.take(plan))

    def columns(self, plan: int, given: dict[str, Any]) -> FoundColumns:
        """Return what the core gave for a plan, as columns of matches."""
        this = self.plans[plan]
        ids: Any = given["ids"]
        if self._names:
            ids = self._names.of(ids)
        return FoundColumns(
            start=given["start"],
            end=given["end"],
            bundle=given["bundle"],
            error=given["error"],
            scale=this.automaton.costs.scale,
            keys=self._keys(plan, given["keys"]),
            offsets=given["offsets"],
            ids=ids,
            vars=given["vars"],
            variables=this.variables,
            values=self._returned(plan, given["values"], given["valid"]),
            shape=None if given["shape"] is None else tuple(given["shape"].tolist()),
            in_order=given["ordered"] and not self._names,
        )

    def take_compressed(self, plan: int) -> Any:
        """Return the graph of all matches, once the stream has ended (``_native.Compressed``)."""
        return self._session.take_compressed(plan, True)

    def take_counts(self, plan: int, *, last: bool = False) -> Counted:
        """Return what a counting engine counted since the last call; ``last``: also bundles that may still grow."""
        given = self._session.take_counts(plan, last)
        matches: Any = given["count"]
        if given["large"]:
            matches = matches.astype(object)
            for row, number in given["large"]:
                matches[row] = number
        columns = {name: given[name] for name in ("first", "last", "bundle", "error")}
        scale = self.plans[plan].automaton.costs.scale
        return Counted(self._keys(plan, given["keys"]), **columns, scale=scale, matches=matches)

    def take_points(self, plan: int) -> Counted:
        """Return the match points, with the least error of each, that the dominance engine found since the last
        call; one row for each event that ends a match."""
        found = self.take(plan)
        return Counted(
            found.keys,
            found.end,
            found.end,
            found.bundle,
            found.error,
            scale=found.scale,
            matches=np.zeros(0, np.int64),
        )

    def tally(self, plan: int, output: str) -> None:
        """Only count the matches of a plan on the node engine from now on, as ``output`` says (one of
        :data:`TALLIES`)."""
        self._session.tally(plan, TALLIES.index(output))
        self.tallies = True

    def take_tally(self, plan: int, output: str) -> Counted | int:
        """Return what was counted since the last call: a number, or rows."""
        given = self._session.take_tally(plan)
        if output == "count":
            return int(given["total"])
        columns = {name: given[name] for name in ("first", "last", "bundle", "error")}
        scale = self.plans[plan].automaton.costs.scale
        many = given["count"] if output == "bundles" else np.zeros(0, np.int64)
        return Counted(self._keys(plan, given["keys"]), **columns, scale=scale, matches=many)

    def total(self, plan: int) -> int:
        """Return the number of all matches so far, from the engine that counts them."""
        return sum(number for _, number in self._session.count_totals(plan))

    def counts(self, plan: int) -> Counts:
        """Return the work done for a plan."""
        nodes, touches, matches = self._session.work(plan)
        counts = Counts(events=self._events, nodes=nodes, touches=touches, matches=matches)
        effort = self.efforts.get(plan)
        if isinstance(effort, PartitionSampler):
            effort.tell(self._session, counts)
        elif effort is not None:
            told = self._session.shedding_counts(plan)
            counts.shed = sum(int(told[name]) for name in SHED)
            counts.touches = int(told["spent"])
            counts.deciding = int(told["deciding"])
            counts.unknown = no_recall(self.plans[plan])
            if not counts.unknown:
                away = int(told["turned_away"]) / max(self._events + 1, 1)
                counts.known = effort.recall(self._session, away)
                counts.unknown = "too little was watched to say how many"
        if plan in self.recoveries:
            recovery = self.recoveries[plan]
            counts.matches, counts.touches = recovery.given, counts.touches + recovery.spent
            counts.recovering, counts.recovered = recovery.spent, recovery.recovered
            counts.unrecovered = recovery.unrecovered
        return counts

    def live(self, plan: int) -> int:
        """Return the number of a plan's partial matches whose window is not over, as the engine holds them."""
        return 0 if self.clock is None else self._session.partial_matches(plan, self.clock)

    @property
    def bytes(self) -> int:
        """Return the bytes reserved by engines and partition tables and held by policies; under a memory bound also
        those of texts and ids."""
        held = sum(effort.held for effort in self.efforts.values())
        return self._session.bytes + held + (0 if self.memory is None else self._beside())

    @property
    def peak(self) -> int:
        """Return the most bytes held after an event; 0 where memory has no bound."""
        if self.memory is None:
            return 0
        cores = sum(int(self._session.shedding_counts(number)["peak"]) for number in self.efforts)
        return max(self._peak, cores)

    def windowed(self, plan: int) -> tuple[int, int]:
        """Return how many events came for a plan behind match windows, and how many of them reached its engine."""
        return self._session.windowed(plan)

    def _release(self) -> None:
        """Forget the texts that nothing refers to any more."""
        if self.clock is None:
            return
        low = self.clock - self._span
        if self._forgets:
            self._names.forget(low)
        self._codes.release(low, self._key_codes)

    def _key_codes(self) -> Ints:
        """Return the codes of texts in partition keys. Words of other kinds are among them, which does no harm."""
        keys = [self._session.keys(table) for table in range(len(self._shared.keys))]
        return np.unique(np.concatenate(keys))

    # State ------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return the whole state as JSON-like data, with bytes."""
        return {
            "core": self._session.dump(),
            **self._codes.dump(),
            "names": self._names.dump(),
            "events": self._events,
            "clock": self.clock,
            "efforts": {str(number): effort.dump() for number, effort in self.efforts.items()},
            "pace": None if self.pace is None else self.pace.dump(),
            "recoveries": {str(number): recovery.dump() for number, recovery in self.recoveries.items()},
        }

    def load(self, data: Any) -> None:
        """Fill a new session from :meth:`dump`. Raises :class:`ValueError`, :class:`TypeError` or :class:`KeyError`
        for other data."""
        self._codes.load(data)
        self._names.load(data["names"])
        self._events = int(data["events"])
        self.clock = None if data["clock"] is None else int(data["clock"])
        if not isinstance(data["core"], bytes):
            raise ValueError("core")
        self._session.load(data["core"])
        if set(data["efforts"]) != {str(number) for number in self.efforts}:
            raise ValueError("efforts")
        for number, effort in self.efforts.items():
            effort.load(self._session, data["efforts"][str(number)])
        if set(data["recoveries"]) != {str(number) for number in self.recoveries}:
            raise ValueError("recoveries")
        for number, recovery in self.recoveries.items():
            recovery.load(data["recoveries"][str(number)])
        if (self.pace is None) != (data["pace"] is None):
            raise ValueError("pace")
        if self.pace is not None:
            self.pace.load(data["pace"])

    # Columns ----------------------------------------------------------------------------------------

    def _arrays(self, table: PlanTables) -> dict[str, Ints]:
        arrays = {name: words_of(values) for name, values in table.arrays.items()}
        arrays["meta"][8:10] = len(self._shared.classes), len(self._shared.columns)
        return arrays

    def _named(self, batch: Batch, name: str, derived: Derived | None) -> Words:
        schema = self.plans[0].schema
        name = derived.source if derived else name
        if name == schema.ts and name not in batch.columns:
            column = Column(Kind.INT, batch.ts)
        elif name == schema.type and name not in batch.columns:
            assert batch.types is not None
            column = batch.types
        elif name == schema.id and isinstance(batch.ids, list):
            column = column_of_values(batch.ids, Kind.STRING)
        else:
            column = batch.columns[name]
        lasting = name in self._lasting or (not self._forgets and name in (schema.type, schema.id))
        return self._codes.words(derived_of(column, derived) if derived else column, self._now(lasting=lasting))

    def _now(self, *, lasting: bool) -> int:
        """Return the time of the latest batch, until which its texts are in use at least; ``lasting``: for good."""
        return LASTING if lasting else self.clock or 0

    def _keys(self, plan: int, words: Ints) -> tuple[Column, ...]:
        this = self.plans[plan]
        kinds = [this.schema.kind(k) or (Kind.STRING if k == this.schema.type else Kind.INT) for k in this.keys]
        table = words.reshape(-1, len(kinds)) if kinds else words
        return tuple(self._codes.column(table[:, i], kind) for i, kind in enumerate(kinds))

    def _returned(self, plan: int, words: Ints, valid: npt.NDArray[np.uint8]) -> tuple[Column, ...]:
        kinds = self._return_kinds[plan]
        if not kinds:
            return ()
        table, known = words.reshape(-1, len(kinds)), valid.reshape(-1, len(kinds))
        return tuple(self._codes.column(table[:, i], kind, known[:, i]) for i, kind in enumerate(kinds))


def _span(plan: Plan) -> int | None:
    """Return how long before the latest event a match may have begun, in ticks. ``None``: without limit, or a match
    waits for others."""
    return plan.window.span if not plan.window.counted and plan.query.output is Output.ALL else None


def _needs(plan: Plan, engine: str) -> dict[str, Ints]:
    """Return the tables of an engine behind match windows (``windows+nodes``): the events that a window must have."""
    if not engine.startswith(WINDOWS):
        return {}
    found = necessary(plan)
    if found is None:
        raise NotNativeError(reason_against(plan) or "a window needs no event in particular")
    return {name: words_of(values) for name, values in found.arrays(plan.variables).items()}
