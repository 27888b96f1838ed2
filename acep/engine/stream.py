"""Several plans over one stream in one pass, composed queries among them: what ``Matcher`` and Spark call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from acep.engine.core import Core
from acep.engine.found import Counts, Events, Found, output_order
from acep.engine.sealing import seal, unseal
from acep.engine.state import dump_core, load_core
from acep.errors import DataError, SnapshotError
from acep.pattern.expressions import Value
from acep.plan.compile import Plan

__all__ = ["Stream"]


class Stream:
    """The state of ``plans`` over one stream.

    Batches come in stream order: no event may be older, by ``(ts, order)``, than one pushed before. Each method
    that gives matches gives one list for each plan, in output order.
    """

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = tuple(plans)
        self._cores = [_Composed(plan) if plan.sources else _Plain(Core(plan)) for plan in self.plans]
        self._newest: tuple[int, int | None] | None = None
        self._events = 0
        self._finished = False

    @property
    def counts(self) -> Counts:
        """Events seen by the stream, and the work of all plans."""
        total = Counts(events=self._events)
        for core in self._cores:
            for part in core.all_counts():
                total.nodes += part.nodes
                total.touches += part.touches
            total.matches += core.core.counts.matches
        return total

    def push(self, events: Events) -> list[list[Found]]:
        """Feed events.

        Raises :class:`DataError`, with nothing fed, for a batch that is out of order or older than what was
        seen, and after :meth:`finish`.
        """
        self._check_order(events)
        self._events += len(events)
        return [sorted(core.push(events), key=output_order) for core in self._cores]

    def advance(self, clock: int) -> list[list[Found]]:
        """No event with ``ts <= clock`` (ticks) will come any more: decide what waited for that."""
        if self._newest is None or clock >= self._newest[0]:
            self._newest = (clock + 1, None)
        return [sorted(core.advance(clock), key=output_order) for core in self._cores]

    def finish(self) -> list[list[Found]]:
        """The stream has ended."""
        self._finished = True
        return [sorted(core.finish(), key=output_order) for core in self._cores]

    def snapshot(self) -> bytes:
        """The whole state as bytes that :meth:`restore` reads."""
        payload = {
            "newest": self._newest,
            "events": self._events,
            "finished": self._finished,
            "cores": [core.dump() for core in self._cores],
        }
        return seal(payload, self.fingerprint)

    @property
    def fingerprint(self) -> str:
        """What a snapshot must have been taken with."""
        return "+".join(plan.fingerprint for plan in self.plans)

    @classmethod
    def restore(cls, plans: Sequence[Plan], data: bytes) -> Stream:
        """The stream that a snapshot was taken of.

        Raises :class:`SnapshotError` if the bytes are damaged or belong to other plans.
        """
        stream = cls(plans)
        payload = unseal(data, stream.fingerprint)
        try:
            newest = payload["newest"]
            if newest is not None:
                ts, order = newest
                if not isinstance(ts, int) or not (order is None or isinstance(order, int)):
                    raise ValueError("newest")
                stream._newest = (ts, order)
            stream._events = int(payload["events"])
            stream._finished = payload["finished"] is True
            for core, dumped in zip(stream._cores, payload["cores"], strict=True):
                core.load(dumped)
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            raise SnapshotError("the snapshot does not hold a state of this query") from None
        return stream

    def _check_order(self, events: Events) -> None:
        if self._finished:
            raise DataError("the stream has been finished: no more events can be pushed", hint="make a new Matcher")
        newest = self._newest
        for i, ts in enumerate(events.ts):
            order = events.order[i] if events.order is not None else None
            if newest is not None:
                tied = newest[1] is not None and order is not None and order < newest[1]
                if ts < newest[0] or (ts == newest[0] and tied):
                    raise DataError(
                        f"event {i} of the batch (ts {ts}) is older than what was seen before (ts {newest[0]})",
                        hint="push batches in order of time",
                    )
            newest = (ts, order)
        self._newest = newest


@dataclass
class _Plain:
    """A plan over the stream itself."""

    core: Core

    def push(self, events: Events) -> list[Found]:
        return self.core.push(events)

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
    core: Core = field(init=False)
    inner: list[_Plain | _Composed] = field(init=False)
    held: list[tuple[int, Found]] = field(default_factory=list)
    given: int = 0

    def __post_init__(self) -> None:
        self.core = Core(self.plan)
        self.inner = [_Composed(p) if p.sources else _Plain(Core(p)) for p, _ in self.plan.sources]

    def push(self, events: Events) -> list[Found]:
        return self._take([(i, f) for i, core in enumerate(self.inner) for f in core.push(events)])

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
