"""Warn of streams in which a query's event types never occur or its partition attributes are always null."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from acep.errors import DataWarning, slip, suggest, warn_caller
from acep.events.batch import Batch, Column
from acep.pattern.tree import Choice, Component, Negation, Node, Repeat
from acep.pattern.walk import components, parts
from acep.plan.compile import Plan

__all__ = ["Absent", "lacking"]

MANY = 1_000
"""The most event types kept for spelling suggestions; in a stream with more, nobody types them by hand."""

FIRST = 4_096  # rows of a batch that are looked at first
GROWTH = 4  # how many times as many have been looked at after each further step


class Absent:
    """The event types and partition attributes of some queries not seen yet in a stream.

    A batch costs a pass over its types until all types of the queries, or all of the batch, have occurred, and nothing
    once those of the queries have.
    """

    def __init__(self, plans: Iterable[Plan]) -> None:
        self._plans = tuple(one for plan in plans for one in _over_events(plan))
        self._types = {name for plan in self._plans for name in _types(plan.query.pattern)}
        self._keys = {key for plan in self._plans for key in plan.keys}
        self._known: dict[str, None] = {}
        self._events = 0

    def saw(self, batch: Batch) -> None:
        """Record the types and keys of a batch."""
        self._events += len(batch)
        for key in [*self._keys]:
            column = batch.columns.get(key)
            if column is None or column.valid is None or column.valid.any():
                self._keys.discard(key)
        if self._types and batch.types is not None:
            self._look(batch.types)

    def _look(self, types: Column) -> None:
        texts = types.texts or ()
        marks = np.zeros(len(texts), bool)
        names: set[str] = set()
        end = 0
        while end < len(types.values) and not (marks.all() or names.issuperset(self._types)):
            rows = slice(end, max(FIRST, GROWTH * end))
            values = types.values[rows]
            marks[values if types.valid is None else values[types.valid[rows] != 0]] = True
            names = {texts[place] for place in np.flatnonzero(marks).tolist()}
            end = rows.stop
        self._types -= names
        self._known |= dict.fromkeys(sorted(names)[: MANY - len(self._known)])

    def lines(self) -> Iterator[str]:
        """Yield a line for each missing type or key; none if there were no events at all."""
        if not self._events:
            return
        for key in sorted(self._keys):
            yield f"the partition attribute `{key}` is null in every event, so that nothing matches"
        said: set[str] = set()
        for plan in self._plans:
            named = _types(plan.query.pattern)
            needed = lacking(plan.query.pattern, self._types)
            why = "it is missing from every match" if plan.query.errors else "nothing matches"
            for name in needed:
                yield from _once(f"no event is of type `{name}`, so that {why}", suggest(name, self._known), said)
            # Any other missing type may just be rare: report it only if it looks misspelt.
            for name in [name for name in named if name in self._types and name not in needed]:
                like = [one for one in self._known if one not in named or one.casefold() == name.casefold()]
                if hint := slip(name, like):
                    yield from _once(f"no event is of type `{name}`, which the query names", hint, said)

    def warn(self) -> None:
        """Issue the lines as warnings, located at the line that called acep."""
        for line in self.lines():
            warn_caller(line, DataWarning)


def _once(text: str, hint: str | None, said: set[str]) -> Iterator[str]:
    if text not in said:
        said.add(text)
        yield f"{text}; {hint}" if hint else text


def _over_events(plan: Plan) -> Iterator[Plan]:
    """Yield the plan, or for a composed one those of its sources that read the events themselves."""
    if not plan.sources:
        yield plan
    for source, _ in plan.sources:
        yield from _over_events(source)


def _types(pattern: Node) -> dict[str, None]:
    """Return the event types that a pattern names, also in negations, in the order of the text."""
    return {name: None for one in components(pattern) for name in one.types}


def lacking(node: Node, absent: set[str]) -> dict[str, None]:
    """Return the absent types that keep a node from being matched whole; empty if none does.

    >>> a, b = Component("a", ("A",)), Component("b", ("B",))
    >>> [*lacking(Choice((a, b)), {"A"})], [*lacking(Choice((a, b)), {"A", "B"})], [*lacking(Repeat(a, 0, 1), {"A"})]
    ([], ['A', 'B'], [])
    """
    match node:
        case Negation() | Repeat(low=0):
            return {}
        case Component(types=types):
            return dict.fromkeys(types) if types and absent.issuperset(types) else {}
        case Choice(items=items):
            found = [lacking(item, absent) for item in items]
            return {name: None for one in found for name in one} if all(found) else {}
        case _:
            return {name: None for part in parts(node) for name in lacking(part, absent)}
