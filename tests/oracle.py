"""The judge of the engines: all matches of a query by enumeration, read off docs/reference/semantics.md.

Nothing here knows an automaton, a register or a node. A run is built step by step on the pattern's *tree*: what is
left of the walk is a list of frames, and :meth:`Walks.legs` says every way to walk on until an event is bound or the
pattern ends. Predicates, ignore rules, negations, errors and the output follow in the order of the page. It is as
slow as that sounds: made for a dozen events and a handful of components.

>>> from acep.pattern.tree import Component, Query, Repeat, Sequence, Strategy
>>> pattern = Sequence((Repeat(Component("a", ("A",)), 1, None), Component("b", ("B",))))
>>> stream = [{"type": t, "ts": i} for i, t in enumerate("ABB")]
>>> for m in oracle(Query("", pattern, Strategy.SKIP_TILL_NEXT_MATCH), stream):
...     print(m.bindings, m.error)
{'a': (0,), 'b': (1,)} 0
{'a': (0,), 'b': (2,)} 0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any

from acep.pattern import expressions as x
from acep.pattern import tree
from acep.pattern.tree import Output, Query, Strategy
from tests.oracle_values import aggregate, leaves, value

__all__ = ["OracleMatch", "TooManyStepsError", "oracle"]

Number = int | Fraction
Path = tuple[int, ...]  # where a node stands in the tree: the indexes from the root
Iterations = tuple[tuple[Path, int], ...]  # the repetitions around a place, outermost first: which, and which iteration
Scope = tuple[Path, Iterations]  # one walk through a repetition or a set: which, and the iterations around it
Env = dict[str, list["Event"]]

INFINITE = Fraction(10**9)
"""Stands for an infinite weight: more than any budget."""


NANOSECONDS = {"ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}


class TooManyStepsError(Exception):
    """The enumeration was stopped: the case is too large for it."""


@dataclass(frozen=True)
class OracleMatch:
    """One match, as a caller sees it."""

    key: dict[str, Any]
    start: int
    end: int
    error: Number
    bindings: dict[str, tuple[Any, ...]]
    bundle: int
    values: dict[str, Any] = field(default_factory=dict)


# Streams


@dataclass(frozen=True, eq=False)
class Event:
    """An event: its place in the whole stream, its position (in its partition, or in the stream if strict)."""

    id: Any
    ts: int
    type: Any
    place: int
    position: int
    values: Mapping[str, Any]

    def get(self, name: str) -> Any:
        """An attribute; ``ts`` and ``type`` name the time and type columns unless there are columns of these names."""
        if name in self.values:
            got = self.values[name]
            return None if got != got else got
        return {"ts": self.ts, "type": self.type}.get(name)


def oracle(
    query: Query,
    events: Sequence[Mapping[str, Any]],
    *,
    ts: str = "ts",
    type: str = "type",
    id: str | None = None,
    seq: str | None = None,
    unit: str | None = None,
    limit: int = 10**6,
) -> list[OracleMatch]:
    """All matches of ``query``, in output order. Gives up with :class:`TooManyStepsError` after ``limit`` steps."""
    if query.sources:
        events, ts, type, id, seq = composed(query, events, ts, type, id, seq, unit, limit), "ts", "type", None, None
    if query.within is not None and query.within.unit == "ns" and unit is not None:
        query = replace(query, within=tree.Within(query.within.amount / NANOSECONDS[unit], "ticks"))
    reading = Reading(query)
    rows = sorted(range(len(events)), key=lambda r: (events[r][ts], events[r][seq] if seq else 0, r))
    partitions: dict[tuple[Any, ...], list[Event]] = {}
    strict = query.strategy is Strategy.STRICT_CONTIGUITY
    for place, row in enumerate(rows):
        values = events[row]
        event = Event(values[id] if id else row, values[ts], values[type], place, place, values)
        key = tuple(event.get(name) for name in reading.partition)
        if None in key:
            continue  # it belongs to no partition, but it had its place
        members = partitions.setdefault(key, [])
        members.append(event if strict else replace(event, position=len(members)))
    steps = [limit]
    found: list[Candidate] = []
    for key, members in partitions.items():
        for binding, error in Runs(reading, members, steps).bindings().items():
            candidate = Candidate(key, binding, error)
            if query.having is None or value(query.having, candidate.look) is True:
                found.append(candidate)
    return give(reading, found)


def composed(
    query: Query,
    events: Sequence[Mapping[str, Any]],
    ts: str,
    type: str,
    id: str | None,
    seq: str | None,
    unit: str | None,
    limit: int,
) -> list[dict[str, Any]]:
    """The matches of the inner queries as events, in their order: ties in the order of FROM, then of the output."""
    rows = []
    for source in query.sources:
        inner = oracle(source.query, events, ts=ts, type=type, id=id, seq=seq, unit=unit, limit=limit)
        for m in inner:
            told = {"start": m.start, "end": m.end, "error": m.error, **m.key, **m.values}
            rows.append({**told, "ts": m.end, "type": source.type})
    return sorted(rows, key=lambda row: int(row["ts"]))


# What the query says, before any event


def behind(leaf: x.Attribute | x.Length | x.Aggregate) -> int:
    """How many events before ``a[i]`` a reference needs: n of ``a[i-n]``, and one for ``a[..i-1]``."""
    if isinstance(leaf, x.Aggregate):
        return int(leaf.scope == "before")
    if isinstance(leaf, x.Length) or not isinstance(leaf.index, str) or leaf.index in ("i", "last"):
        return 0
    return int(leaf.index.split("-")[1])


@dataclass(frozen=True, eq=False)
class Conjunct:
    """A conjunct of WHERE, or one that the closure of equalities adds."""

    expr: x.Expr
    vars: frozenset[str]
    whole: frozenset[str]
    """The variables of which it speaks once their repetition is left (``a[a.LEN]``, ``a.LEN``, ``avg(a[].x)``)."""
    previous: Mapping[str, int]
    """For the variables with ``a[i-n]`` or ``a[..i-1]``, the greatest n: it speaks of ``i > n`` only."""
    each: frozenset[str]
    """The variables with plain ``a.x`` or ``a[i].x``: it speaks of each event."""
    anchors: Mapping[str, int]
    """For the variables with ``[i]``, the greatest n of an ``a[n]`` beside it: it speaks of ``i > n`` only."""

    @staticmethod
    def of(expr: x.Expr, kleene: set[str]) -> Conjunct:
        used = list(leaves(expr))
        attributes = [leaf for leaf in used if isinstance(leaf, x.Attribute)]
        walking = {leaf.var for leaf in attributes if leaf.index == "i" or behind(leaf)}
        anchors: dict[str, int] = {}
        for leaf in attributes:
            if leaf.var in walking and isinstance(leaf.index, int):
                anchors[leaf.var] = max(anchors.get(leaf.var, 0), leaf.index)

        def those(wanted: Any) -> frozenset[str]:
            return frozenset(leaf.var for leaf in used if wanted(leaf))

        return Conjunct(
            expr,
            those(lambda leaf: True),
            those(
                lambda leaf: (
                    leaf.var in kleene  # of a variable that binds one event there is nothing to wait for
                    and (
                        isinstance(leaf, x.Length)
                        or (isinstance(leaf, x.Aggregate) and leaf.scope == "all")
                        or (isinstance(leaf, x.Attribute) and leaf.index == "last")
                    )
                )
            ),
            {leaf.var: max(behind(other) for other in used if other.var == leaf.var) for leaf in used if behind(leaf)},
            those(lambda leaf: isinstance(leaf, x.Attribute) and leaf.index in (None, "i")),
            anchors,
        )

    def holds(self, env: Env) -> bool:
        """Whether it is true of the events bound, for all combinations of those it speaks of one by one."""
        names = sorted({*self.previous, *self.each})
        ranges = [range(max(self.previous.get(name, 0), self.anchors.get(name, 0)), len(env[name])) for name in names]
        return all(self._holds(env, dict(zip(names, at, strict=True))) for at in product(*ranges))

    def _holds(self, env: Env, at: dict[str, int]) -> bool:
        def look(leaf: x.Attribute | x.Length | x.Aggregate) -> Any:
            events = env[leaf.var]
            match leaf:
                case x.Length():
                    return len(events)
                case x.Aggregate():
                    over = events[: at[leaf.var]] if leaf.scope == "before" else events
                    return over_events(leaf, over)
                case x.Attribute(index="last"):
                    return events[-1].get(leaf.name)
                case x.Attribute(index=int(n)):
                    return events[n - 1].get(leaf.name)
                case x.Attribute():
                    return events[at[leaf.var] - behind(leaf)].get(leaf.name)

        # a[3] where only two are bound: dropped.
        for leaf in leaves(self.expr):
            if isinstance(leaf, x.Attribute) and isinstance(leaf.index, int) and leaf.index > len(env[leaf.var]):
                return True
        return value(self.expr, look) is True


def over_events(leaf: x.Aggregate, events: Sequence[Event]) -> Any:
    """An aggregate over these events."""
    if leaf.name is None:
        return len(events)
    name = leaf.name
    return aggregate(leaf.function, [event.get(name) for event in events])


class Reading:
    """A query as docs/reference/semantics.md reads it: weights, groups, conjuncts, partition attributes."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.contiguous = query.strategy.contiguous
        self.budget = query.errors
        self.surplus = INFINITE if query.surplus is None else query.surplus
        self.weights = dict(query.weights)
        self.variables: set[str] = set()
        self.negated: set[str] = set()
        self.kleene: set[str] = set()
        self.in_group: set[str] = set()
        self.groups: set[Path] = set()
        self._survey(query.pattern, (), False)
        self._close_equalities()

    def weight(self, var: str) -> Number:
        """What it costs that a component is missing (for a negation: that an event breaks it)."""
        given = self.weights.get(var, None if var in self.negated else 1)
        return INFINITE if given is None else given

    def _survey(self, node: tree.Node, path: Path, in_group: bool) -> None:
        match node:
            case tree.Component(var=var) | tree.Negation(var=var):
                self.variables.add(var)
                if isinstance(node, tree.Negation):
                    self.negated.add(var)
                if in_group:
                    self.in_group.add(var)
            case tree.Repeat(item=item, high=high):
                group = not isinstance(item, tree.Component) and high != 1
                if group:
                    self.groups.add(path)
                if isinstance(item, tree.Component) and high != 1:
                    self.kleene.add(item.var)
                self._survey(item, (*path, 0), in_group or group)
            case tree.Sequence(items=items) | tree.Choice(items=items) | tree.EventSet(items=items):
                for i, item in enumerate(items):
                    self._survey(item, (*path, i), in_group)

    def _close_equalities(self) -> None:
        """Put the top-level equalities into classes; all pairs of a class must be equal."""
        others: list[x.Expr] = []
        pairs: list[set[x.Expr]] = []
        for conjunct in self.query.where:
            joined = self._sides(conjunct)
            if len(joined) < 2 or all(isinstance(side, x.Literal) for side in joined):
                others.append(conjunct)
            else:
                pairs.append(joined)
        # A negated variable connects nothing: its equalities matter to itself only.
        positive = self.variables - self.negated
        of_positive = [pair for pair in pairs if spoken(pair) <= positive]
        of_each = {n: [pair for pair in pairs if spoken(pair) <= positive | {n}] for n in sorted(self.negated)}

        ties = self.partition = self.query.ties

        for n, own in of_each.items():
            for known in in_classes(own):
                for left, right in combinations(sorted(known, key=repr), 2):
                    if n in spoken((left, right)) and not (
                        plain_of(left) == plain_of(right) and plain_of(left) in ties
                    ):
                        others.append(equal(left, right))
        for known in in_classes(of_positive):
            members = sorted(known, key=repr)
            for left, right in combinations(members, 2):
                if not any(isinstance(side, x.Attribute) for side in (left, right)):
                    continue  # two constants bind nothing
                if plain_of(left) is not None and plain_of(left) == plain_of(right) and plain_of(left) in ties:
                    continue  # the partition sees to it
                others.append(equal(left, right))
            for ref in members:
                # A reference to each event of a repetition is many: they are pairs among themselves. Not in a repeated
                # group, where the equality speaks of one iteration only.
                var = ref.var if isinstance(ref, x.Attribute) and ref.index is None else None
                several = var in self.kleene - self.in_group and ties_events(known, var)
                if isinstance(ref, x.Attribute) and several and ref.name not in ties:
                    others.append(x.Binary("=", ref, x.Attribute(ref.var, "i-1", ref.name)))
        conjuncts = [Conjunct.of(expr, self.kleene) for expr in others]
        self.conjuncts = [c for c in conjuncts if not c.vars & self.negated]
        self.of_negations = [c for c in conjuncts if c.vars & self.negated]

    def _sides(self, conjunct: x.Expr) -> set[x.Expr]:
        """The two sides of an equality as members of a class, spelled in one way; fewer than two if it is none."""
        match conjunct:
            case x.Binary(op="=", left=left, right=right) | x.Unary(op="not", operand=x.Binary("!=", left, right)):
                pass
            case x.In(operand=left, values=(right,), negated=False):
                pass
            case x.Unary(op="not", operand=x.In(operand=left, values=(right,), negated=True)):
                pass
            case x.Unary(op="not", operand=x.Unary(op="not", operand=inner)):
                return self._sides(inner)
            case _:
                return set()
        sides: set[x.Expr] = set()
        for side in (left, right):
            match side:
                case x.Literal(value=constant):
                    sides.add(x.Literal(constant))
                case x.Attribute(var=var, index=(None | "i" | 1 | "last") as index, name=name):
                    each = index == "i" or var not in self.kleene
                    sides.add(x.Attribute(var, None if each else index, name))
                case _:
                    return set()
        return sides


def in_classes(pairs: Iterable[set[x.Expr]]) -> list[set[x.Expr]]:
    """Equal pairs, put together where they share a member."""
    classes: list[set[x.Expr]] = []
    for pair in pairs:
        joined = set(pair).union(*(known for known in classes if known & pair))
        classes = [known for known in classes if not known & pair] + [joined]
    return classes


def spoken(sides: Iterable[x.Expr]) -> set[str]:
    """The variables of which an equality, or a class, speaks."""
    return {side.var for side in sides if isinstance(side, x.Attribute)}


def ties_events(known: set[x.Expr], var: str | None) -> bool:
    """Whether a class holds more than references to one and the same event of a variable."""
    return any(not isinstance(m, x.Attribute) or m.var != var or m.index is not None for m in known)


def equal(left: x.Expr, right: x.Expr) -> x.Expr:
    """An equality of two members of a class; of ``a.x`` and ``a[1].x`` it is ``a[i].x = a[1].x``."""
    for one, other in ((left, right), (right, left)):
        match one, other:
            case x.Attribute(index=None), x.Attribute(index=1) if one.var == other.var:
                return x.Binary("=", replace(one, index="i"), other)
    return x.Binary("=", left, right)


def plain_of(ref: x.Expr) -> str | None:
    """The name of the attribute, for ``a.x``."""
    return ref.name if isinstance(ref, x.Attribute) and ref.index is None else None


# Walks: how a run goes through the pattern


@dataclass(frozen=True)
class At:
    """A node that is to be walked next."""

    node: tree.Node
    path: Path
    within: Iterations


@dataclass(frozen=True)
class Round:
    """A repetition at the end of its iteration number ``begun``; ``empty`` until the iteration has bound an event.

    ``missed`` counts iterations missing as a whole: under contiguity they may stand anywhere between the others. Then
    there are ``low`` iterations in all, as none is missing of more.
    """

    node: tree.Repeat
    path: Path
    within: Iterations
    begun: int = 0
    missed: int = 0
    empty: bool = False


@dataclass(frozen=True)
class Among:
    """Inside a set: how many events each item has bound, and how many it misses."""

    node: tree.EventSet
    path: Path
    within: Iterations
    bound: tuple[int, ...]
    missed: tuple[int, ...]


Frame = At | Round | Among
Rest = tuple[Frame, ...]


@dataclass(frozen=True)
class Negated:
    """A negation that a run walks past."""

    node: tree.Negation
    path: Path
    within: Iterations


@dataclass(frozen=True)
class Place:
    """A component about to bind an event: ``home`` is its own repetition or set, ``scopes`` all those around it."""

    var: str
    types: tuple[str, ...]
    within: Iterations
    home: Scope
    scopes: frozenset[Scope]


@dataclass(frozen=True)
class Leg:
    """A stretch of the walk: from one bound event to the next (``to``) or to the pattern's end (``to is None``)."""

    weight: Number
    letters: int
    negations: tuple[Negated, ...]
    to: Place | None
    rest: Rest


def limits(item: tree.Node) -> tuple[int, int | None]:
    """How many events an item of a set binds, at least and at most."""
    return (item.low, item.high) if isinstance(item, tree.Repeat) else (1, 1)


def below(count: int, high: int | None) -> bool:
    return high is None or count < high


class Walks:
    """All ways through a pattern."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.contiguous = reading.contiguous
        self.known: dict[Rest, tuple[Leg, ...]] = {}

    def start(self) -> Rest:
        return (At(self.reading.query.pattern, (), ()),)

    def legs(self, rest: Rest) -> tuple[Leg, ...]:
        """Every way to walk on from ``rest`` until an event is bound or the pattern ends, within the budget."""
        if rest not in self.known:
            self.known[rest] = tuple(dict.fromkeys(self._legs(rest, Leg(0, 0, (), None, ()))))
        return self.known[rest]

    def _legs(self, rest: Rest, leg: Leg) -> Iterator[Leg]:
        if leg.weight > self.reading.budget:
            return
        if not rest:
            yield leg
            return
        frame, tail = rest[0], rest[1:]
        match frame:
            case At(node=tree.Component() as node, path=path, within=within):
                yield self._bind(node, path, within, None, tail, leg)
                yield from self._legs(tail, missing(leg, self.reading.weight(node.var)))
            case At(node=tree.Negation() as node, path=path, within=within):
                yield from self._legs(tail, replace(leg, negations=(*leg.negations, Negated(node, path, within))))
            case At(node=tree.Sequence(items=items), path=path, within=within):
                ahead = tuple(At(item, (*path, i), within) for i, item in enumerate(items))
                yield from self._legs(ahead + tail, leg)
            case At(node=tree.Choice(items=items), path=path, within=within):
                for i, item in enumerate(items):
                    yield from self._legs((At(item, (*path, i), within), *tail), leg)
            case At(node=tree.Repeat() as node, path=path, within=within):
                yield from self._round(Round(node, path, within), tail, leg)
            case At(node=tree.EventSet() as node, path=path, within=within):
                none = (0,) * len(node.items)
                yield from self._among(Among(node, path, within, none, none), tail, leg)
            case Round():
                # An iteration that binds nothing is not an iteration.
                if not frame.empty:
                    yield from self._round(frame, tail, leg)
            case Among():
                yield from self._among(frame, tail, leg)

    def _bind(
        self, node: tree.Component, path: Path, within: Iterations, home: Scope | None, tail: Rest, leg: Leg
    ) -> Leg:
        around = {(which, within[:i]) for i, (which, _) in enumerate(within)}
        if home is None:
            home = (path, within)
            if within and within[-1][0] == path[:-1]:
                home = (path[:-1], within[:-1])  # the repetition of which the component is the item
        place = Place(node.var, node.types, within, home, frozenset(around | {home}))
        rest = tuple(replace(f, empty=False) if isinstance(f, Round) else f for f in tail)
        return replace(leg, to=place, rest=rest)

    def _round(self, at: Round, tail: Rest, leg: Leg) -> Iterator[Leg]:
        node = at.node
        if below(at.begun, node.low - at.missed if at.missed else node.high):
            begun = at.begun + 1
            item = At(node.item, (*at.path, 0), (*at.within, (at.path, begun)))
            yield from self._legs((item, replace(at, begun=begun, empty=True), *tail), leg)
        if self.contiguous and at.begun + at.missed < node.low:
            for weight, letters in self.missing_ways(node.item):
                if letters:
                    ahead = (replace(at, missed=at.missed + 1), *tail)
                    yield from self._legs(ahead, missing(leg, weight, letters))
        # Fewer than ``low`` iterations: the rest is missing, each at the least cost of one. Under contiguity these are
        # the iterations missed above, so that they can make up for the events of a gap.
        lacking = max(0, node.low - at.begun - at.missed)
        least = self.least(node.item)
        if not (self.contiguous and lacking and least):
            yield from self._legs(tail, missing(leg, lacking * least, 0) if lacking else leg)

    def _among(self, at: Among, tail: Rest, leg: Leg) -> Iterator[Leg]:
        home = (at.path, at.within)
        lacking: Number = 0
        for i, item in enumerate(at.node.items):
            low, high = limits(item)
            component = item.item if isinstance(item, tree.Repeat) else item
            assert isinstance(component, tree.Component)
            weight = self.reading.weight(component.var)
            if below(at.bound[i], low - at.missed[i] if at.missed[i] else high):
                more = replace(at, bound=one_more(at.bound, i))
                yield self._bind(component, (*at.path, i), at.within, home, (more, *tail), leg)
            if self.contiguous and at.bound[i] + at.missed[i] < low:
                more = replace(at, missed=one_more(at.missed, i))
                yield from self._legs((more, *tail), missing(leg, weight))
            lacking += max(0, low - at.bound[i] - at.missed[i]) * weight
        if not (self.contiguous and lacking):
            yield from self._legs(tail, missing(leg, lacking, 0))

    def least(self, node: tree.Node) -> Number:
        """The least cost of walking a node with everything missing."""
        match node:
            case tree.Component(var=var):
                return self.reading.weight(var)
            case tree.Negation():
                return 0
            case tree.Repeat(item=item, low=low):
                return low * self.least(item) if low else 0
            case tree.Choice(items=items):
                return min(self.least(item) for item in items)
            case tree.Sequence(items=items) | tree.EventSet(items=items):
                return sum(self.least(item) for item in items)

    def missing_ways(self, node: tree.Node) -> set[tuple[Number, int]]:
        """The (weight, number) of letters of every walk through a node with everything missing, within the budget."""
        match node:
            case tree.Component(var=var):
                ways: set[tuple[Number, int]] = {(self.reading.weight(var), 1)}
            case tree.Negation():
                ways = {(0, 0)}
            case tree.Repeat(item=item, low=low):
                ways = {(0, 0)}
                for _ in range(low):
                    ways = self._then(ways, self.missing_ways(item))
            case tree.Choice(items=items):
                ways = set().union(*(self.missing_ways(item) for item in items))
            case tree.Sequence(items=items) | tree.EventSet(items=items):
                ways = {(0, 0)}
                for item in items:
                    ways = self._then(ways, self.missing_ways(item))
        return {way for way in ways if way[0] <= self.reading.budget}

    def _then(self, first: Iterable[tuple[Number, int]], second: Iterable[tuple[Number, int]]) -> set[Any]:
        both = {(w + v, m + n) for w, m in first for v, n in second}
        return {way for way in both if way[0] <= self.reading.budget}


def missing(leg: Leg, weight: Number, letters: int = 1) -> Leg:
    return replace(leg, weight=leg.weight + weight, letters=leg.letters + letters)


def one_more(counts: tuple[int, ...], i: int) -> tuple[int, ...]:
    return (*counts[:i], counts[i] + 1, *counts[i + 1 :])


def innermost_open(rest: Rest) -> Rest:
    """What is left of the walk inside the innermost open repetition or set; all of it where none is open."""
    for i, frame in enumerate(rest):
        if isinstance(frame, Round) and below(frame.begun, frame.node.high):
            return rest[: i + 1]
        if isinstance(frame, Among):
            items = zip(frame.node.items, frame.bound, strict=True)
            if any(below(bound, limits(item)[1]) for item, bound in items):
                return rest[: i + 1]
    return rest


# Runs: walks over the events of a partition

Steps = tuple[tuple[Event, Place], ...]
Walked = tuple[tuple[Negated, int], ...]  # the negations walked past, with the number of events bound before
Binding = tuple[tuple[Event, str], ...]  # in stream order


class Runs:
    """The runs over one partition."""

    def __init__(self, reading: Reading, events: Sequence[Event], steps_left: list[int]) -> None:
        self.reading = reading
        self.events = events
        self.walks = Walks(reading)
        self.steps_left = steps_left
        self.found: dict[Binding, Number] = {}

    def bindings(self) -> dict[Binding, Number]:
        """Every binding of a run that is permitted, with its least error."""
        for first in range(len(self.events)):
            for leg in self.walks.legs(self.walks.start()):
                if self._binds((), leg, self.events[first]):
                    self._go_on(((self.events[first], leg.to),), first, leg.rest, leg.weight, walked(leg, 0))  # type: ignore[arg-type]
        return self.found

    def _go_on(self, steps: Steps, last: int, rest: Rest, error: Number, negations: Walked) -> None:
        """From a run that has just bound event number ``last``, to all runs that it is the beginning of."""
        self.steps_left[0] -= 1
        if self.steps_left[0] < 0:
            raise TooManyStepsError
        legs = self.walks.legs(rest)
        for leg in legs:
            if leg.to is None:
                self._end(steps, error + leg.weight, negations + walked(leg, len(steps)))
        for following in range(last + 1, len(self.events)):
            event = self.events[following]
            if not self._in_window(steps[0][0], event):
                break
            for leg in legs:
                cost = error + self._cost(leg, steps[-1][0], event)
                if cost <= self.reading.budget and self._binds(steps, leg, event):
                    assert leg.to is not None
                    more = (*steps, (event, leg.to))
                    self._go_on(more, following, leg.rest, cost, negations + walked(leg, len(steps)))
            if not self._may_ignore(steps, rest, event):
                break

    def _in_window(self, first: Event, last: Event) -> bool:
        within = self.reading.query.within
        if within is None:
            return True
        if within.unit == "events":
            return last.position - first.position <= within.amount - 1
        return last.ts - first.ts <= within.amount

    def _cost(self, leg: Leg, before: Event, event: Event) -> Number:
        """The cost of a leg between two bound events: under contiguity also the events between that are surplus."""
        if not self.reading.contiguous:
            return leg.weight
        between = event.position - before.position - 1
        return leg.weight + self.reading.surplus * max(0, between - leg.letters)

    # Strategies

    def _may_ignore(self, steps: Steps, rest: Rest, event: Event) -> bool:
        """Whether a run that waits may ignore the event."""
        if self.reading.query.strategy is not Strategy.SKIP_TILL_NEXT_MATCH:
            return True  # contiguity lets the cost decide
        possible = self.walks.legs(innermost_open(rest))
        return not any(leg.weight == 0 and self._binds(steps, leg, event) for leg in possible)

    # Predicates

    def _binds(self, steps: Steps, leg: Leg, event: Event) -> bool:
        """Whether the run can bind the event at the end of the leg: its type is right and the predicates hold."""
        place = leg.to
        if place is None or (place.types and event.type not in place.types):
            return False
        if not self._left(steps, place.scopes):
            return False
        asked = [conjunct for conjunct in self.reading.conjuncts if place.var in conjunct.vars]
        if not asked:
            return True
        env, homes = self._environment((*steps, (event, place)))
        for conjunct in asked:
            if not all(env.get(var) for var in conjunct.vars):
                continue
            if any(homes[var] in place.scopes for var in conjunct.whole):
                continue  # decided once it has been left
            if not conjunct.holds(env):
                return False
        return True

    def _left(self, steps: Steps, scopes: frozenset[Scope]) -> bool:
        """Whether the conjuncts hold that speak of a whole repetition which the run leaves now."""
        waiting = [conjunct for conjunct in self.reading.conjuncts if conjunct.whole]
        if not waiting or not steps:
            return True
        env, homes = self._environment(steps)
        inside = steps[-1][1].scopes
        for conjunct in waiting:
            if not all(env.get(var) for var in conjunct.vars) or any(homes[var] in scopes for var in conjunct.whole):
                continue
            if any(homes[var] in inside for var in conjunct.whole) and not conjunct.holds(env):
                return False
        return True

    def _environment(self, steps: Steps) -> tuple[Env, dict[str, Scope]]:
        """What each variable means now: entering a new iteration of a group unbinds the group's variables."""
        groups = self.reading.groups
        current: dict[Path, Iterations] = {}
        if groups:
            for _, place in steps:
                for i, (path, _) in enumerate(place.within):
                    if path in groups:
                        current[path] = place.within[: i + 1]
        env: Env = {}
        homes: dict[str, Scope] = {}
        for event, place in steps:
            if all(current[p] == place.within[: i + 1] for i, (p, _) in enumerate(place.within) if p in groups):
                env.setdefault(place.var, []).append(event)
                homes[place.var] = place.home
        return env, homes

    # The end of a run

    def _end(self, steps: Steps, error: Number, negations: Walked) -> None:
        if error > self.reading.budget or not self._left(steps, frozenset()):
            return
        for negated, before in negations:
            broken = self._breaking(steps, negated, before)
            if broken:
                error += broken * self.reading.weight(negated.node.var)
        if error > self.reading.budget:
            return
        binding = tuple((event, place.var) for event, place in steps)
        known = self.found.get(binding)
        self.found[binding] = error if known is None else min(known, error)

    # Negation

    def _breaking(self, steps: Steps, negated: Negated, before: int) -> int:
        """How many events break a negation."""
        env = self._seen_from(steps, negated)
        conjuncts = [c for c in self.reading.of_negations if negated.node.var in c.vars]
        if not all(env.get(var) for c in conjuncts for var in c.vars - {negated.node.var}):
            return 0  # a conjunct mentions a variable with no bound event
        for leaf in (leaf for c in conjuncts for leaf in leaves(c.expr)):
            count = 1 if leaf.var == negated.node.var else len(env[leaf.var])
            if isinstance(leaf, x.Attribute) and isinstance(leaf.index, int) and leaf.index > count:
                return 0  # one mentions an event that is not bound
        types = negated.node.types
        return sum(
            (not types or event.type in types) and all(c.holds({**env, negated.node.var: [event]}) for c in conjuncts)
            for event in self._looked_at(steps, negated, before)
        )

    def _looked_at(self, steps: Steps, negated: Negated, before: int) -> list[Event]:
        """The events among which one might break a negation."""
        first, last = steps[0][0], steps[-1][0]
        pattern = self.reading.query.pattern
        if before == 0:
            if component_stands(pattern, negated.path, -1):
                return []
            early = [event for event in self.events if event.place < first.place]
            return [event for event in early if self._in_window(event, last)]
        if before == len(steps):
            if component_stands(pattern, negated.path, 1):
                return []
            late = [event for event in self.events if event.place > last.place]
            return [event for event in late if self._in_window(first, event)]
        low, high = steps[before - 1][0].place, steps[before][0].place
        return [event for event in self.events if low < event.place < high]

    def _seen_from(self, steps: Steps, negated: Negated) -> Env:
        """What variables mean in the conjuncts of a negation: of a repeated group around it, the iteration in which it
        was walked past; of any other, the last."""
        groups = self.reading.groups
        around = dict(negated.within)
        shared = [
            (event, place)
            for event, place in steps
            if all(around.get(path, n) == n for path, n in place.within if path in groups)
        ]
        return self._environment(tuple(shared))[0]


def walked(leg: Leg, bound: int) -> Walked:
    return tuple((negated, bound) for negated in leg.negations)


def component_stands(node: tree.Node, path: Path, side: int) -> bool:
    """Whether the pattern has a component before (``side`` -1) or after (1) the place that ``path`` leads to."""
    if not path:
        return False
    items = (node.item,) if isinstance(node, tree.Repeat) else getattr(node, "items", ())
    at = path[0]
    if isinstance(node, tree.Sequence):
        beside = items[:at] if side < 0 else items[at + 1 :]
        if any(has_component(item) for item in beside):
            return True
    return component_stands(items[at], path[1:], side)


def has_component(node: tree.Node) -> bool:
    match node:
        case tree.Component():
            return True
        case tree.Negation():
            return False
        case tree.Repeat(item=item):
            return has_component(item)
        case _:
            return any(has_component(item) for item in node.items)


# HAVING and output


@dataclass(frozen=True, eq=False)
class Candidate:
    """A match before the output is chosen."""

    key: tuple[Any, ...]
    binding: Binding
    error: Number

    @property
    def first(self) -> Event:
        return self.binding[0][0]

    @property
    def last(self) -> Event:
        return self.binding[-1][0]

    @cached_property
    def ids(self) -> tuple[Any, ...]:
        return tuple(event.id for event, _ in self.binding)

    @cached_property
    def vars(self) -> tuple[str, ...]:
        return tuple(var for _, var in self.binding)

    def of(self, var: str) -> tuple[Event, ...]:
        """The events bound to a variable, in all iterations."""
        return self._by_var.get(var, ())

    @cached_property
    def _by_var(self) -> dict[str, tuple[Event, ...]]:
        return {var: tuple(event for event, v in self.binding if v == var) for var in set(self.vars)}

    def look(self, leaf: x.Attribute | x.Length | x.Aggregate) -> Any:
        """What a reference means in HAVING: what is not bound is null there."""
        events = self.of(leaf.var)
        match leaf:
            case x.Length():
                return len(events)
            case x.Aggregate():
                return over_events(leaf, events)
            case x.Attribute(index=int(n)):
                return events[n - 1].get(leaf.name) if n <= len(events) else None
            case x.Attribute():
                return events[-1].get(leaf.name) if events else None


def give(reading: Reading, found: list[Candidate]) -> list[OracleMatch]:
    """Choose the output, order it, and name the bundles."""
    match reading.query.output:
        case Output.NON_OVERLAP:
            found = non_overlap(reading, sorted(found, key=lambda m: (m.error, m.last.ts, m.first.ts, m.ids, m.vars)))
        case Output.LONGEST_NON_OVERLAP | Output.LONGEST_AFTER_SKIP:
            found = non_overlap(
                reading,
                sorted(found, key=lambda m: (m.error, m.first.place, -m.last.place, -len(m.ids), m.ids, m.vars)),
            )
        case Output.SHORTEST_NON_OVERLAP | Output.SHORTEST_AFTER_SKIP:
            order = sorted(found, key=lambda m: (m.error, m.first.place, m.last.place, m.ids, m.vars))
            found = non_overlap(reading, order)
        case Output.EARLIEST_MAXIMAL:
            found = earliest_maximal(found)
    found = sorted(found, key=lambda m: (m.last.ts, m.ids, m.vars))
    bundles = bundles_of(reading, found)
    return [
        OracleMatch(
            dict(zip(reading.partition, m.key, strict=True)),
            m.first.ts,
            m.last.ts,
            m.error,
            {var: tuple(event.id for event in m.of(var)) for var in sorted(set(m.vars))},
            bundles[m],
            {name: value(expr, m.look) for name, expr in reading.query.returns},
        )
        for m in found
    ]


def non_overlap(reading: Reading, found: list[Candidate]) -> list[Candidate]:
    strict = reading.query.strategy is Strategy.STRICT_CONTIGUITY
    given: list[Candidate] = []
    for m in found:
        rivals = [g for g in given if strict or g.key == m.key]
        if not any(forbids(reading, g, m.first) or forbids(reading, m, g.first) for g in rivals):
            given.append(m)
    return given


def forbids(reading: Reading, match: Candidate, event: Event) -> bool:
    """Whether no other match may begin with an event once a match is given."""
    skip = reading.query.skip
    if event.place < match.first.place:
        return False
    if skip is None:
        return event.place <= match.last.place
    targets = match.of(skip.variable)
    if skip.place == "next" or not targets:
        return event.place == match.first.place
    target = targets[0] if skip.place == "first" else targets[-1]
    return event.place == match.first.place or event.place < target.place


def earliest_maximal(found: list[Candidate]) -> list[Candidate]:
    def beaten(m: Candidate, by: Candidate) -> bool:
        """Whether ``by`` binds all variables but one as ``m`` does, and that one to events that start earlier."""
        differ = [var for var in set(m.vars) | set(by.vars) if m.of(var) != by.of(var)]
        if len(differ) != 1:
            return False
        ours, theirs = m.of(differ[0]), by.of(differ[0])
        return bool(ours and theirs) and theirs[0].place < ours[0].place

    def extended(m: Candidate, by: Candidate) -> bool:
        """Whether ``by`` is ``m`` with one more event, after its first."""
        more = set(by.binding) - set(m.binding)
        return len(by.binding) == len(m.binding) + 1 and len(more) == 1 and next(iter(more))[0].place > m.first.place

    # One that begins with another event neither beats nor extends.
    rivals: dict[Event, list[Candidate]] = {}
    for m in found:
        rivals.setdefault(m.first, []).append(m)
    return [m for m in found if not any(beaten(m, by) or extended(m, by) for by in rivals[m.first])]


def bundles_of(reading: Reading, found: list[Candidate]) -> dict[Candidate, int]:
    """The bundle of each match: match points of a partition chained by gaps of at most the window."""
    within = reading.query.within
    bundles: dict[Candidate, int] = {}
    current: dict[tuple[Any, ...], tuple[int, Number]] = {}
    for m in sorted(found, key=lambda m: m.last.place):
        if within is None:
            point, reach = 0, Fraction(0)
        elif within.unit == "events":
            point, reach = m.last.position, within.amount - 1
        else:
            point, reach = m.last.ts, within.amount
        name, until = current.get(m.key, (m.last.ts, point))
        if point - until > reach:
            name = m.last.ts
        current[m.key] = (name, point)
        bundles[m] = name
    return bundles
