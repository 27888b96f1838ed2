"""Plans on the native node engine, straight on its tables, next to the reference: for tests of what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from acep.events.records import Events
from acep.native import _native
from acep.pattern.expressions import Value
from acep.plan.compile import Plan
from acep.plan.derive import Derived
from acep.plan.lower.tables import SharedTables, lower
from acep.plan.schema import Kind
from acep.reference.runtime import ReferenceRuntime

__all__ = ["Running", "by_native", "by_reference"]

Told = tuple[Any, ...]


def by_reference(plan: Plan, events: Events) -> list[Told]:
    """All matches of a stream, as :meth:`Running.take` tells them."""
    core = ReferenceRuntime(plan)
    found = core.push(events) + core.finish()
    return [(f.key, f.start, f.end, f.error, f.trail, f.bundle, f.values) for f in found]


def by_native(plan: Plan, events: Events, step: int | None = None, early: bool = False) -> list[Told]:
    """The same by the node engine, in batches of ``step``; with ``early`` time is told to pass after each."""
    running = Running(plan)
    n, found = len(events), []
    for start in range(0, n, step or max(n, 1)):
        end = min(n, start + (step or n))
        running.push(events, start, end)
        if early and end < n:
            running.session.advance(events.ts[end])
        found += running.take(events)
    running.session.finish()
    return found + running.take(events)


class Running:
    """One plan on the node engine."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.texts = _native.Texts()
        self.shared = SharedTables()
        tables = lower(plan, self.shared, self.texts.intern)
        self.return_kinds = tables.return_kinds
        programs = [_native.BlockProgram(words(p.code), p.slots, p.leaves) for p in self.shared.programs]
        classes = [
            (
                words([self.texts.intern(t) for t in c.types]) if c.types else None,
                [(p, words([x for s in sources for x in s])) for p, sources in c.checks],
            )
            for c in self.shared.classes
        ]
        self.arrays = {name: words(values) for name, values in tables.arrays.items()}
        self.arrays["meta"][8:10] = len(self.shared.classes), len(self.shared.columns)
        keys = [(list(columns), positions) for columns, positions in self.shared.keys.items()]
        self.made = self.texts, programs, classes, len(self.shared.columns), keys
        self.begin()

    def begin(self) -> None:
        """Begins a stream anew."""
        self.session = _native.Session(*self.made)
        self.number = self.session.add("nodes", self.arrays)

    def push(self, events: Events, start: int, end: int) -> None:
        """Rows [start, end) of a stream."""
        types, valid = self._words(list(events.types[start:end]), Kind.STRING)
        if events.ids is None:
            ids = None
        elif named(events):
            ids = np.arange(start, end)
        else:
            ids = words([int(i) for i in events.ids[start:end]])
        columns = [self._column(events, name, d, start, end) for name, d in self.shared.columns.items()]
        self.session.push(words(events.ts[start:end]), types, valid, ids, columns)

    def take(self, events: Events) -> list[Told]:
        """What was found since: (key, start, end, error, trail, bundle, values) each."""
        given = self.session.take(self.number)
        plan, found = self.plan, []
        kinds = [plan.schema.kind(k) or (Kind.STRING if k == plan.schema.type else Kind.INT) for k in plan.keys]
        n = len(given["start"])
        keys = given["keys"].reshape(n, len(kinds)).tolist()
        rows = given["values"].reshape(n, len(self.return_kinds)).tolist()
        valid = given["valid"].reshape(n, len(self.return_kinds)).tolist()
        for i, start in enumerate(given["start"].tolist()):
            span = slice(given["offsets"][i], given["offsets"][i + 1])
            ids = given["ids"][span].tolist()
            if named(events) and events.ids is not None:
                ids = [events.ids[number] for number in ids]
            trail = tuple(zip(ids, (plan.variables[v] for v in given["vars"][span]), strict=True))
            key = tuple(self._value(w, kind) for w, kind in zip(keys[i], kinds, strict=True))
            values = tuple(
                self._value(w, kind) if known else None
                for w, known, kind in zip(rows[i], valid[i], self.return_kinds, strict=True)
            )
            error = plan.automaton.costs.unscaled(int(given["error"][i]))
            found.append((key, start, int(given["end"][i]), error, trail, int(given["bundle"][i]), values))
        return found

    def _column(self, events: Events, name: str, derived: Derived | None, start: int, end: int) -> Any:
        schema = self.plan.schema
        source = derived.source if derived else name
        values: Sequence[Value]
        if source == schema.ts:
            values = events.ts[start:end]
        elif source == schema.type:
            values = events.types[start:end]
        elif source == schema.id and source not in events.columns:
            assert events.ids is not None
            values = events.ids[start:end]
        else:
            values = events.columns[source][start:end]
        kind = derived.kind if derived else schema.kind(source) or (Kind.STRING if source == schema.type else Kind.INT)
        return self._words([derived.compiled.run([v]) for v in values] if derived else values, kind)

    def _words(self, values: Sequence[Value], kind: Kind) -> Any:
        valid = np.array([v is not None for v in values], np.uint8)
        found: Any
        if kind is Kind.FLOAT:
            found = np.array([0.0 if v is None else float(v) + 0.0 for v in values], np.float64).view(np.int64)
        elif kind is Kind.STRING:
            found = words([0 if v is None else self.texts.intern(str(v)) for v in values])
        else:
            found = words([0 if v is None else int(v) for v in values])
        return found, None if valid.all() else valid

    def _value(self, word: int, kind: Kind) -> Value:
        match kind:
            case Kind.NULL:
                return None
            case Kind.FLOAT:
                return float(np.array([word]).view(np.float64)[0])
            case Kind.STRING:
                return self.texts.text(word)
            case Kind.BOOL:
                return bool(word)
        return word


def named(events: Events) -> bool:
    """Whether ids are texts, for which numbers stand in the core."""
    return bool(events.ids) and isinstance((events.ids or [0])[0], str)


def words(values: Sequence[int]) -> Any:
    """64-bit integers as the core takes them."""
    return np.array(values, np.int64)
