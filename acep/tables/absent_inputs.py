"""Warn of streams in which a query's event types never occur or its partition attributes are always null."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from acep.errors import DataWarning, slip, suggest, warn_caller
from acep.events.batch import Batch, Column
from acep.pattern.tree import Choice, Component, Negation, Node, Repeat
from acep.pattern.walk import components, parts
from acep.plan.compile import Plan

__all__ = ["Absent", "lacking_types"]

TYPE_LIMIT = 1_000
"""The most event types kept for spelling suggestions; in a stream with more, nobody types them by hand."""

FIRST = 4_096  # rows of a batch that are looked at first
GROWTH = 4  # how many times as many have been looked at after each further step


class Absent:
    """The event types and partition attributes of some queries not seen yet in a stream. ``names`` are those of the
    queries where there are several.

    A batch costs a pass over its types until all types of the queries, or all of the batch, have occurred, and nothing
    once those of the queries have.
    """

    def __init__(self, plans: Sequence[Plan], names: Sequence[str] = ()) -> None:
        by_name = zip(plans, names or [""] * len(plans), strict=True)
        self._named_plans = tuple((name, inner) for plan, name in by_name for inner in _over_events(plan))
        self._plans = tuple(plan for _, plan in self._named_plans)
        self._types = {name for plan in self._plans for name in _types(plan.query.pattern)}
        self._keys = {key for plan in self._plans for key in plan.keys}
        self._seen_types: dict[str, None] = {}
        self._events = 0

    def record_batch(self, batch: Batch) -> None:
        """Record the types and keys of a batch."""
        self._events += len(batch)
        for key in [*self._keys]:
            column = batch.columns.get(key)
            if column is None or column.valid is None or column.valid.any():
                self._keys.discard(key)
        if self._types and batch.types is not None:
            self._record_types(batch.types)

    def _record_types(self, types: Column) -> None:
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
        self._seen_types |= dict.fromkeys(sorted(names)[: TYPE_LIMIT - len(self._seen_types)])

    def lines(self) -> Iterator[str]:
        """Yield a line for each missing type or key, with the queries that it concerns; none if there were no events
        at all."""
        if not self._events:
            return
        queries_of_line: dict[str, dict[str, None]] = {}
        for key in sorted(self._keys):
            line = f"the partition attribute `{key}` is null in every event, so that nothing matches"
            queries_of_line[line] = dict.fromkeys(name for name, plan in self._named_plans if key in plan.keys)
        reported: set[tuple[str, str]] = set()
        for query, plan in self._named_plans:
            for text, hint in self._lines_of(plan):
                if (query, text) not in reported:
                    reported.add((query, text))
                    queries_of_line.setdefault(f"{text}; {hint}" if hint else text, {})[query] = None
        for line, queries in queries_of_line.items():
            yield f"{_queries_text([*queries])}{line}"

    def _lines_of(self, plan: Plan) -> Iterator[tuple[str, str | None]]:
        """Yield what is to be said of the missing types of one query, each with a hint."""
        named = _types(plan.query.pattern)
        needed = lacking_types(plan.query.pattern, self._types)
        why = "it is missing from every match" if plan.query.errors else "nothing matches"
        for name in needed:
            yield f"no event is of type `{name}`, so that {why}", suggest(name, self._seen_types)
        # Any other missing type may just be rare: report it only if it looks misspelt.
        for name in [name for name in named if name in self._types and name not in needed]:
            like = [near for near in self._seen_types if near not in named or near.casefold() == name.casefold()]
            if hint := slip(name, like):
                yield f"no event is of type `{name}`, which the query names", hint

    def warn(self) -> None:
        """Issue the lines as warnings, located at the line that called acep."""
        for line in self.lines():
            warn_caller(line, DataWarning)


def _queries_text(names: Sequence[str]) -> str:
    """Return the beginning of a line about some queries of several; empty for a query that is alone.

    >>> _queries_text([""]), _queries_text(["up"]), _queries_text(["a", "b", "c", "d"])
    ('', 'query `up`: ', 'queries `a`, `b` and 2 more: ')
    """
    shown = [f"`{name}`" for name in names if name]
    if len(shown) < 2:
        return f"query {shown[0]}: " if shown else ""
    ending = "" if len(shown) == 2 else f" and {len(shown) - 2} more"
    return f"queries {(', ' if ending else ' and ').join(shown[:2])}{ending}: "


def _over_events(plan: Plan) -> Iterator[Plan]:
    """Yield the plan, or for a composed one those of its sources that read the events themselves."""
    if not plan.sources:
        yield plan
    for source, _ in plan.sources:
        yield from _over_events(source)


def _types(pattern: Node) -> dict[str, None]:
    """Return the event types that a pattern names, also in negations, in the order of the text."""
    return {name: None for component in components(pattern) for name in component.types}


def lacking_types(node: Node, absent: set[str]) -> dict[str, None]:
    """Return the absent types that keep a node from being matched whole; empty if none does.

    >>> a, b = Component("a", ("A",)), Component("b", ("B",))
    >>> [*lacking_types(Choice((a, b)), {"A"})], [*lacking_types(Choice((a, b)), {"A", "B"})]
    ([], ['A', 'B'])
    >>> [*lacking_types(Repeat(a, 0, 1), {"A"})]
    []
    """
    match node:
        case Negation() | Repeat(low=0):
            return {}
        case Component(types=types):
            return dict.fromkeys(types) if types and absent.issuperset(types) else {}
        case Choice(items=items):
            absent_types = [lacking_types(item, absent) for item in items]
            return {name: None for names in absent_types for name in names} if all(absent_types) else {}
        case _:
            return {name: None for part in parts(node) for name in lacking_types(part, absent)}
