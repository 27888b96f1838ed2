"""Tell what a query waits for in vain: event types that never occur, and partition attributes that are always null."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from acep.errors import DataWarning, slip, suggest, warn_caller
from acep.events.batch import Batch, Column
from acep.pattern.tree import Choice, Component, Negation, Node, Repeat
from acep.pattern.walk import components, parts
from acep.plan.compile import Plan

__all__ = ["Absent"]

MANY = 1_000
"""Types of the stream that are kept for suggestions; a stream with more of them has types that nobody spells out."""


class Absent:
    """What of some queries has not come yet in a stream, batch by batch.

    A batch costs a look at the texts of its types, and nothing once all types of the queries have come.
    """

    def __init__(self, plans: Iterable[Plan]) -> None:
        self._plans = tuple(one for plan in plans for one in _over_events(plan))
        self._types = {name for plan in self._plans for name in _types(plan.query.pattern)}
        self._keys = {key for plan in self._plans for key in plan.keys}
        self._known: dict[str, None] = {}
        self._events = 0

    def saw(self, batch: Batch) -> None:
        """Take note of the types and the keys of more events."""
        self._events += len(batch)
        for key in [*self._keys]:
            column = batch.columns.get(key)
            if column is None or column.valid is None or column.valid.any():
                self._keys.discard(key)
        if self._types and batch.types is not None:
            self._look(batch.types)

    def _look(self, types: Column) -> None:
        texts = types.texts or ()
        used = np.zeros(len(texts), bool)
        used[types.values if types.valid is None else types.values[types.valid != 0]] = True
        there = {texts[place] for place in np.flatnonzero(used).tolist()}
        self._types -= there
        self._known |= dict.fromkeys(sorted(there)[: MANY - len(self._known)])

    def lines(self) -> Iterator[str]:
        """Say what never came, if any event did, a line for each."""
        if not self._events:
            return
        for key in sorted(self._keys):
            yield f"the partition attribute `{key}` is null in every event, so that nothing matches"
        said: set[str] = set()
        for plan in self._plans:
            named = _types(plan.query.pattern)
            needed = _lacking(plan.query.pattern, self._types)
            why = "it is missing from every match" if plan.query.errors else "nothing matches"
            for name in needed:
                yield from _once(f"no event is of type `{name}`, so that {why}", suggest(name, self._known), said)
            # Another may well be rare: only where it looks like a slip of the pen.
            for name in [name for name in named if name in self._types and name not in needed]:
                like = [one for one in self._known if one not in named or one.casefold() == name.casefold()]
                if hint := slip(name, like):
                    yield from _once(f"no event is of type `{name}`, which the query names", hint, said)

    def warn(self) -> None:
        """Warn of it, of the line that called acep."""
        for line in self.lines():
            warn_caller(line, DataWarning)


def _once(text: str, hint: str | None, said: set[str]) -> Iterator[str]:
    if text not in said:
        said.add(text)
        yield f"{text}; {hint}" if hint else text


def _over_events(plan: Plan) -> Iterator[Plan]:
    """The plan, or of a composed one those of its sources that see the events themselves."""
    if not plan.sources:
        yield plan
    for source, _ in plan.sources:
        yield from _over_events(source)


def _types(pattern: Node) -> dict[str, None]:
    """The event types that a pattern names, those of negations too, in the order of the text."""
    return {name: None for one in components(pattern) for name in one.types}


def _lacking(node: Node, absent: set[str]) -> dict[str, None]:
    """The types for want of which a node cannot be matched whole; none where it can.

    >>> a, b = Component("a", ("A",)), Component("b", ("B",))
    >>> [*_lacking(Choice((a, b)), {"A"})], [*_lacking(Choice((a, b)), {"A", "B"})], [*_lacking(Repeat(a, 0, 1), {"A"})]
    ([], ['A', 'B'], [])
    """
    match node:
        case Negation() | Repeat(low=0):
            return {}
        case Component(types=types):
            return dict.fromkeys(types) if types and absent.issuperset(types) else {}
        case Choice(items=items):
            found = [_lacking(item, absent) for item in items]
            return {name: None for one in found for name in one} if all(found) else {}
        case _:
            return {name: None for part in parts(node) for name in _lacking(part, absent)}
