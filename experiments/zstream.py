"""A join-tree matcher after ZStream (Mei and Madden, SIGMOD 2009), as the match windows paper (2012) compares with it.

A leaf of the tree buffers the events of one variable; a node joins the records of two subtrees that are in order
(``SEQ``), or in any order within a set (``CONJ``), hashed by the partition attributes, and checks each predicate at the
lowest node that has its variables. A Kleene variable's leaf holds all sequences of its events. All matches are found
(skip till any match). Like every algorithm of :mod:`experiments.two_phase` it takes the window of an event and gives
the matches that begin with that event.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from acep.events.records import Events
from acep.pattern.evaluation import Compiled
from acep.pattern.expressions import Attribute
from acep.pattern.tree import Component, EventSet, Node, Output, Repeat
from acep.pattern.tree import Sequence as InOrder
from acep.plan.compile import Plan

__all__ = ["Joined", "SetPattern", "Variable", "join_tree", "pattern_of"]

Bindings = dict[str, tuple[int, ...]]  # rows by variable
Shape = Literal["left", "right"]


@dataclass(frozen=True)
class Variable:
    """``v`` or ``v+`` (``plus``) of a stage; its events are of one of ``types`` (empty: any)."""

    name: str
    types: tuple[str, ...]
    plus: bool
    stage: int


@dataclass(frozen=True)
class SetPattern:
    """A sequence of sets of variables (2012 paper, Definition 1). ``filters``: predicates on one event of a variable;
    ``steps``: on an event of a Kleene variable and the one before it; ``ties``: on several variables."""

    variables: tuple[Variable, ...]
    span: int
    key: tuple[str, ...]
    filters: dict[str, tuple[Compiled, ...]]
    steps: dict[str, tuple[Compiled, ...]]
    ties: tuple[tuple[frozenset[str], Compiled], ...]
    ts: str
    type: str | None

    def value(self, events: Events, row: int, name: str) -> Any:
        """Return a column's value in a row."""
        if name in events.columns:
            return events.columns[name][row]
        return events.ts[row] if name == self.ts else events.types[row]

    def fits(self, events: Events, row: int, variable: Variable) -> bool:
        """Return whether an event may be bound to a variable by the conditions on it alone (the variable's
        properties)."""
        if variable.types and events.types[row] not in variable.types:
            return False
        return all(self.holds(c, events, {variable.name: (row,)}) for c in self.filters.get(variable.name, ()))

    def follows(self, events: Events, before: int, row: int, variable: Variable) -> bool:
        """Return whether an event may be bound to a Kleene variable after another."""
        for check in self.steps.get(variable.name, ()):
            values = [
                self.value(
                    events, before if isinstance(leaf, Attribute) and leaf.index == "i-1" else row, str(leaf.name)
                )
                for leaf in check.leaves
                if isinstance(leaf, Attribute)
            ]
            if check.run(values) is not True:
                return False
        return True

    def holds(self, check: Compiled, events: Events, bound: Bindings) -> bool:
        """Return whether a predicate holds for all combinations of the events bound to its variables."""
        leaves = [leaf for leaf in check.leaves if isinstance(leaf, Attribute)]
        names = sorted({leaf.var for leaf in leaves})
        for rows in product(*(bound[name] for name in names)):
            row_of = dict(zip(names, rows, strict=True))
            if check.run([self.value(events, row_of[leaf.var], leaf.name) for leaf in leaves]) is not True:
                return False
        return True

    def key_of(self, events: Events, row: int) -> tuple[Any, ...] | None:
        """Return the values of the partition attributes; ``None`` if one is null."""
        values = tuple(self.value(events, row, name) for name in self.key)
        return None if None in values else values


def pattern_of(plan: Plan) -> SetPattern:
    """Return a plan's pattern as a sequence of sets.

    Raises :class:`ValueError` for one that is none, or has other predicates.
    """
    if plan.automaton.negations or plan.automaton.costs.budget or plan.having or plan.query.output is not Output.ALL:
        raise ValueError("neither negations nor errors, HAVING nor a choice of the output")
    if plan.window.span is None or plan.window.counted:
        raise ValueError("a window in time is needed")
    root = plan.query.pattern
    stages = root.items if isinstance(root, InOrder) else (root,)
    variables = tuple(v for stage, node in enumerate(stages) for v in _variables(node, stage))
    filters: dict[str, tuple[Compiled, ...]] = {}
    steps: dict[str, tuple[Compiled, ...]] = {}
    ties: list[tuple[frozenset[str], Compiled]] = []
    for check in plan.predicates:
        leaves = [leaf for leaf in check.leaves if isinstance(leaf, Attribute)]
        names = frozenset(leaf.var for leaf in leaves)
        indices = {leaf.index for leaf in leaves}
        if len(leaves) < len(check.leaves) or not indices <= {None, "i", "i-1"}:
            raise ValueError("predicates on single events, on pairs of them, and with `prev` alone")
        if "i-1" in indices:
            if len(names) > 1:
                raise ValueError("`prev` with events of one variable alone")
            [name] = names
            steps[name] = (*steps.get(name, ()), check)
        elif len(names) == 1:
            [name] = names
            filters[name] = (*filters.get(name, ()), check)
        else:
            ties.append((names, check))
    schema = plan.schema
    return SetPattern(variables, plan.window.span, plan.keys, filters, steps, tuple(ties), schema.ts, schema.type)


def _variables(node: Node, stage: int) -> Iterator[Variable]:
    match node:
        case Component(var=var, types=types):
            yield Variable(var, types, False, stage)
        case Repeat(item=Component(var=var, types=types), low=1, high=None):
            yield Variable(var, types, True, stage)
        case EventSet(items=items):
            for item in items:
                yield from _variables(item, stage)
        case _:
            raise ValueError("a sequence of sets of variables v and v+")


@dataclass(frozen=True)
class _Record:
    first: int  # rows, which are in the order of the stream
    last: int
    low: int  # stages
    high: int
    key: tuple[Any, ...] | None
    bound: Bindings


@dataclass(frozen=True)
class Joined:
    """The matches that begin with a window's first event, and how many pairs of records were looked at for them."""

    matches: list[Bindings]
    touches: int


def join_tree(pattern: SetPattern, events: Events, window: Sequence[int], shape: Shape = "left") -> Joined:
    """Run the join tree over a window: rows of events in order of the stream.

    The first event is bound to each variable of the first stage that it fits, in turn; all else comes after it.
    """
    tree = _Tree(pattern, events)
    first, later_rows = window[0], window[1:]
    matches: list[Bindings] = []
    for begins in pattern.variables:
        if begins.stage == 0 and pattern.fits(events, first, begins):
            leaves = [tree.leaf(v, later_rows, first if v is begins else None) for v in pattern.variables]
            if all(leaves):
                matches += [record.bound for record in tree.join_all(leaves, shape)]
    return Joined(matches, tree.touches)


class _Tree:
    def __init__(self, pattern: SetPattern, events: Events) -> None:
        self.pattern = pattern
        self.events = events
        self.touches = 0

    def leaf(self, variable: Variable, rows: Sequence[int], first: int | None) -> list[_Record]:
        """Return the records of a variable, by their last event; those that begin with ``first``, if it is given."""
        pattern, events = self.pattern, self.events
        fit = [row for row in rows if pattern.fits(events, row, variable)] if first is None or variable.plus else []
        grown: list[tuple[int, ...]] = [(row,) for row in fit] if first is None else [(first,)]
        chains: list[tuple[int, ...]] = []
        while grown:
            chains += grown
            if not variable.plus:
                break
            longer = []
            for chain in grown:
                for row in fit[bisect_right(fit, chain[-1]) :]:
                    self.touches += 1
                    if pattern.follows(events, chain[-1], row, variable) and self._key(chain[-1]) == self._key(row):
                        longer.append((*chain, row))
            grown = longer
        stage, name = variable.stage, variable.name
        records = [
            _Record(chain[0], chain[-1], stage, stage, self._key(chain[0]), {name: chain})
            for chain in chains
            if not pattern.key or self._key(chain[0]) is not None
        ]
        return sorted(records, key=lambda record: record.first)

    def _key(self, row: int) -> tuple[Any, ...] | None:
        return self.pattern.key_of(self.events, row)

    def join_all(self, leaves: list[list[_Record]], shape: Shape) -> list[_Record]:
        """Join all leaves, from the left or from the right."""
        if shape == "left":
            records = leaves[0]
            for leaf in leaves[1:]:
                records = self.join(records, leaf)
            return records
        records = leaves[-1]
        for leaf in reversed(leaves[:-1]):
            records = self.join(leaf, records)
        return records

    def join(self, left: list[_Record], right: list[_Record]) -> list[_Record]:
        """Join the records of both subtrees, hashed by the key; the stages of the left are not after those of the
        right."""
        if not left or not right:
            return []
        pattern, events = self.pattern, self.events
        names = frozenset({**left[0].bound, **right[0].bound})
        ties = [
            check
            for mentioned, check in pattern.ties
            if mentioned <= names and not mentioned <= left[0].bound.keys() and not mentioned <= right[0].bound.keys()
        ]
        is_after = left[0].high < right[0].low  # the whole left stands before the whole right
        by_key: dict[tuple[Any, ...] | None, list[_Record]] = {}
        for record in right:
            by_key.setdefault(record.key, []).append(record)
        firsts = {key: [record.first for record in records] for key, records in by_key.items()}
        records = []
        for a in left:
            partners = by_key.get(a.key, [])
            start = bisect_right(firsts[a.key], a.last) if is_after and partners else 0
            for b in partners[start:]:
                self.touches += 1
                bound = {**a.bound, **b.bound}
                if (is_after or self._is_ordered(a, b)) and all(pattern.holds(check, events, bound) for check in ties):
                    ends = min(a.first, b.first), max(a.last, b.last), a.low, b.high
                    records.append(_Record(*ends, a.key, bound))
        return sorted(records, key=lambda record: record.first)

    def _is_ordered(self, a: _Record, b: _Record) -> bool:
        """Return whether events of earlier stages come first, and none is bound twice."""
        stage = {v.name: v.stage for v in self.pattern.variables}
        return all(
            rows[-1] < other_rows[0] if stage[name] < stage[other] else not set(rows) & set(other_rows)
            for name, rows in a.bound.items()
            for other, other_rows in b.bound.items()
        )
