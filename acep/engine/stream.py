"""Several plans over one stream in one pass, composed queries among them: what ``Matcher`` and Spark call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.engine.batch import Batch
from acep.engine.compiled import chosen
from acep.engine.core import Core
from acep.engine.counted import Counted
from acep.engine.found import Counts, Events, Found, output_order
from acep.engine.found_columns import FoundColumns, concatenate, ordered
from acep.engine.sealing import seal, unseal
from acep.engine.state import dump_core, load_core
from acep.errors import DataError, SnapshotError
from acep.pattern.expressions import Value
from acep.plan.choice import COUNTED, WINDOWS, decides_at_once
from acep.plan.compile import Plan

if TYPE_CHECKING:
    from acep.engine.native_session import NativeSession

__all__ = ["Stream", "together"]


class Stream:
    """The state of ``plans`` over one stream.

    Batches come in stream order: no event may be older, by ``(ts, order)``, than one pushed before. Each method
    that gives matches gives one list for each plan, in output order. Where all that is asked for, ``output``, can be
    counted without making matches, the list is empty, and :meth:`counted` says what was counted.
    """

    def __init__(self, plans: Sequence[Plan], engine: str = "auto", output: str = "matches") -> None:
        self.plans = tuple(plans)
        self._natives = _Natives(engine, output)
        self._cores = [self._natives.core(plan) for plan in self.plans]
        self._natives.start()
        self._newest: tuple[int, int | None] | None = None
        self._events = 0
        self._finished = False

    @property
    def counts(self) -> Counts:
        """Events seen by the stream, and the work of all plans."""
        total = Counts(events=self._events)
        for core in self._cores:
            parts = core.all_counts()
            for part in parts:
                total.nodes += part.nodes
                total.touches += part.touches
            total.matches += parts[0].matches
        return total

    def push(self, batch: Batch) -> list[Sequence[Found]]:
        """Feed events.

        Raises :class:`DataError`, with nothing fed, for a batch that is out of order or older than what was
        seen, and after :meth:`finish`.
        """
        self._check_order(batch)
        self._events += len(batch)
        self._natives.push(batch)
        return [in_order(core.push(batch)) for core in self._cores]

    def advance(self, clock: int) -> list[Sequence[Found]]:
        """No event with ``ts <= clock`` (ticks) will come any more: decide what waited for that."""
        if self._newest is None or clock >= self._newest[0]:
            self._newest = (clock + 1, None)
        self._natives.advance(clock)
        return [in_order(core.advance(clock)) for core in self._cores]

    def finish(self) -> list[Sequence[Found]]:
        """The stream has ended."""
        self._finished = True
        self._natives.finish()
        return [in_order(core.finish()) for core in self._cores]

    def counted(self, plan: int) -> Counted | int | None:
        """What plan number ``plan`` has counted since this was last called: the number of matches, or rows of match
        points or of bundles (what is added to a bundle later comes as another row of it); ``None`` where matches are
        made. Whoever keeps snapshots calls this first."""
        core = self._cores[plan]
        return core.counted() if isinstance(core, _Native) else None

    def snapshot(self) -> bytes:
        """The whole state as bytes that :meth:`restore` reads."""
        payload = {
            "newest": self._newest,
            "events": self._events,
            "finished": self._finished,
            "cores": [core.dump() for core in self._cores],
            "engines": self._natives.engines,
            "native": None if self._natives.session is None else self._natives.session.dump(),
        }
        return seal(payload, self.fingerprint)

    @property
    def fingerprint(self) -> str:
        """What a snapshot must have been taken with."""
        return "+".join(plan.fingerprint for plan in self.plans)

    @classmethod
    def restore(cls, plans: Sequence[Plan], data: bytes, engine: str = "auto", output: str = "matches") -> Stream:
        """The stream that a snapshot was taken of.

        Raises :class:`SnapshotError` if the bytes are damaged or belong to other plans.
        """
        stream = cls(plans, engine, output)
        payload = unseal(data, stream.fingerprint)
        try:
            engines = [str(name) for name in payload["engines"]]
            if engine == "auto" and not engines:
                stream = cls(plans, "reference", output)
            if engines != stream._natives.engines:
                raise SnapshotError(
                    f"the snapshot was taken by {_listed(engines)}, and here runs {_listed(stream._natives.engines)}",
                    hint="restore it with the engine= that it was taken with, where the native core is installed",
                )
            newest = payload["newest"]
            if newest is not None:
                ts, order = newest
                if not isinstance(ts, int) or not (order is None or isinstance(order, int)):
                    raise ValueError("newest")
                stream._newest = (ts, order)
            stream._events = int(payload["events"])
            stream._finished = payload["finished"] is True
            if stream._natives.session is not None:
                stream._natives.session.load(payload["native"])
            for core, dumped in zip(stream._cores, payload["cores"], strict=True):
                core.load(dumped)
        except SnapshotError:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            raise SnapshotError("the snapshot does not hold a state of this query") from None
        return stream

    def _check_order(self, batch: Batch) -> None:
        if self._finished:
            raise DataError("the stream has been finished: no more events can be pushed", hint="make a new Matcher")
        if not len(batch):
            return
        ts, order = batch.ts, batch.order
        older = ts[1:] < ts[:-1]  # than the one before, from the second event on
        if order is not None:
            older |= (ts[1:] == ts[:-1]) & (order[1:] < order[:-1])
        first = False
        if (newest := self._newest) is not None:  # in Python's integers: a clock may have passed all of 64 bits
            tied = order is not None and newest[1] is not None and int(order[0]) < newest[1]
            first = int(ts[0]) < newest[0] or (int(ts[0]) == newest[0] and tied)
        if first or older.any():
            i = 0 if first else int(np.argmax(older)) + 1
            seen = ts[i - 1] if i or newest is None else newest[0]
            raise DataError(
                f"event {i} of the batch (ts {ts[i]}) is older than what was seen before (ts {seen})",
                hint="push batches in order of time",
            )
        self._newest = (int(ts[-1]), None if order is None else int(order[-1]))


class _Natives:
    """The plans among those of a stream that the native core runs, in one session."""

    def __init__(self, engine: str, output: str) -> None:
        self.engine = engine
        self.output = output
        self.plans: list[Plan] = []
        self.engines: list[str] = []
        self.session: NativeSession | None = None

    def core(self, plan: Plan, *, inner: bool = False) -> _Plain | _Composed | _Native:
        """What runs a plan; ``inner``: its matches are the events of another."""
        if plan.sources:
            return _Composed(plan, [self.core(p, inner=True) for p, _ in plan.sources])
        choice = chosen(plan, self.engine, "matches" if inner else self.output)
        if choice.engine == "reference" or (inner and not decides_at_once(plan)):
            return _Plain(Core(plan))
        self.plans.append(plan)
        self.engines.append(choice.engine)
        return _Native(self, len(self.plans) - 1)

    def start(self) -> None:
        """All plans are known."""
        if self.plans:
            from acep.engine.native_session import NativeSession

            self.session = NativeSession(self.plans, self.engines)

    def push(self, batch: Batch) -> None:
        if self.session is not None:
            self.session.push(batch)

    def advance(self, clock: int) -> None:
        if self.session is not None:
            self.session.advance(clock)

    def finish(self) -> None:
        if self.session is not None:
            self.session.finish()


def _listed(engines: Sequence[str]) -> str:
    return f"the native engine ({', '.join(engines)})" if engines else "the reference engine"


def in_order(found: Sequence[Found]) -> Sequence[Found]:
    """Matches in the order of the output."""
    return ordered(found) if isinstance(found, FoundColumns) else sorted(found, key=output_order)


def together(parts: Sequence[Sequence[Found]]) -> Sequence[Found]:
    """What one plan gave at several times, each in the order of the output, in that order."""
    filled = [part for part in parts if len(part)]
    if len(filled) == 1:
        return filled[0]
    columns = [part for part in parts if isinstance(part, FoundColumns)]
    if columns and all(isinstance(part, FoundColumns) or not len(part) for part in parts):
        return ordered(concatenate(columns))
    return sorted((found for part in parts for found in part), key=output_order)


@dataclass
class _Native:
    """A plan over the stream itself, on the native core."""

    natives: _Natives
    number: int
    given: int = 0  # of the matches that were counted

    def counted(self) -> Counted | int | None:
        session = self.natives.session
        engine = self.natives.engines[self.number].removeprefix(WINDOWS)
        assert session is not None
        if engine not in COUNTED:
            return None
        if engine != "count":
            return session.take_counts(self.number, last=True)
        before, self.given = self.given, session.total(self.number)
        return self.given - before

    def _take(self) -> FoundColumns:
        assert self.natives.session is not None
        return self.natives.session.take(self.number)

    def push(self, batch: Batch) -> FoundColumns:  # noqa: ARG002 - the session has it
        return self._take()

    def advance(self, clock: int) -> FoundColumns:  # noqa: ARG002
        return self._take()

    def finish(self) -> FoundColumns:
        return self._take()

    def low(self) -> int | None:
        assert self.natives.session is not None
        return self.natives.session.clock

    def all_counts(self) -> list[Counts]:
        assert self.natives.session is not None
        return [self.natives.session.counts(self.number)]

    def dump(self) -> None:
        """Its state is the session's."""

    def load(self, data: Any) -> None:
        if data is not None:
            raise ValueError("state")
        self.counted()  # was given before


@dataclass
class _Plain:
    """A plan over the stream itself."""

    core: Core

    def push(self, batch: Batch) -> list[Found]:
        return self.core.push(batch.events)

    def advance(self, clock: int) -> list[Found]:
        return self.core.advance(clock)

    def finish(self) -> list[Found]:
        return self.core.finish()

    def low(self) -> int | None:
        return self.core.low()

    def all_counts(self) -> list[Counts]:
        return [self.core.counts]

    def dump(self) -> dict[str, Any]:
        return dump_core(self.core)

    def load(self, data: Any) -> None:
        load_core(self.core, data)


@dataclass
class _Composed:
    """A plan over the matches of others, which it gets in order once no earlier one can come."""

    plan: Plan
    inner: list[_Plain | _Composed | _Native]
    core: Core = field(init=False)
    held: list[tuple[int, Found]] = field(default_factory=list)
    given: int = 0

    def __post_init__(self) -> None:
        self.core = Core(self.plan)

    def push(self, batch: Batch) -> list[Found]:
        return self._take([(i, f) for i, core in enumerate(self.inner) for f in core.push(batch)])

    def advance(self, clock: int) -> list[Found]:
        return self._take([(i, f) for i, core in enumerate(self.inner) for f in core.advance(clock)])

    def finish(self) -> list[Found]:
        self.held += [(i, f) for i, core in enumerate(self.inner) for f in core.finish()]
        found = self.core.push(self._events(self.held))
        self.held = []
        return found + self.core.finish()

    def low(self) -> int | None:
        return self.core.low()

    def all_counts(self) -> list[Counts]:
        return [self.core.counts, *(c for core in self.inner for c in core.all_counts())]

    def _take(self, found: list[tuple[int, Found]]) -> list[Found]:
        self.held += found
        lows = [core.low() for core in self.inner]
        if any(low is None for low in lows):
            return []
        low = min(x for x in lows if x is not None)
        certain = [(i, f) for i, f in self.held if f.end < low]
        self.held = [(i, f) for i, f in self.held if f.end >= low]
        return self.core.push(self._events(certain)) + self.core.advance(low - 1)

    def _events(self, found: list[tuple[int, Found]]) -> Events:
        found.sort(key=lambda item: (item[1].end, item[0], output_order(item[1])))
        names = [n for n, _ in self.plan.schema.kinds if n not in ("ts", "type")]
        rows = [self._attributes(i, f) for i, f in found]
        columns: dict[str, list[Value]] = {n: [row.get(n) for row in rows] for n in names}
        ids = list(range(self.given, self.given + len(found)))
        self.given += len(found)
        types: list[str | None] = [self.plan.sources[i][1] for i, _ in found]
        return Events([f.end for _, f in found], types, list(ids), columns)

    def _attributes(self, i: int, found: Found) -> dict[str, Value]:
        inner = self.plan.sources[i][0]
        error = found.error if isinstance(found.error, int) else float(found.error)
        if inner.automaton.costs.scale != 1:
            error = float(error)
        row: dict[str, Value] = {"start": found.start, "end": found.end, "error": error}
        row.update(zip(inner.keys, found.key, strict=True))
        row.update(zip((n for n, _ in inner.returns), found.values, strict=True))
        return row

    def dump(self) -> dict[str, Any]:
        held = [
            [i, list(f.key), f.start, f.end, str(f.error), [[v, list(x)] for v, x in f.bindings], f.bundle,
             list(f.values), [list(t) for t in f.trail]]
            for i, f in self.held
        ]  # fmt: skip
        return {
            "core": dump_core(self.core),
            "inner": [core.dump() for core in self.inner],
            "held": held,
            "given": self.given,
        }

    def load(self, data: Any) -> None:

        load_core(self.core, data["core"])
        for core, dumped in zip(self.inner, data["inner"], strict=True):
            core.load(dumped)
        self.given = int(data["given"])
        for i, key, start, end, error, bindings, bundle, values, trail in data["held"]:
            inner = self.plan.sources[int(i)][0]
            if len(key) != len(inner.keys) or len(values) != len(inner.returns):
                raise ValueError("held")
            cost = Fraction(error)
            self.held.append(
                (
                    int(i),
                    Found(
                        tuple(key),
                        int(start),
                        int(end),
                        int(cost) if cost.denominator == 1 else cost,
                        tuple((str(v), tuple(x)) for v, x in bindings),
                        int(bundle),
                        tuple(values),
                        tuple((x, str(v)) for x, v in trail),
                    ),
                )
            )
