"""Build a Thompson automaton from the pattern tree (RC-ACEP 2016, section 2 and Figure 1).

Edges join places: a *letter* edge binds an event, a *missing* edge skips letters at a cost, a *negation* edge passes a
negation, an *again* edge enters the next iteration of a group, and an *empty* edge does nothing. A repetition
``{m,n}`` is unrolled into copies. The edge that leaves it carries the cost of its missing iterations, so that the
present iterations are numbered from one; under contiguity they may be missing anywhere. A set has a place for each
combination of the numbers of events that its items have bound. Weights are integers, scaled by ``Costs.scale``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm, prod

from acep.errors import QueryError
from acep.pattern.tree import Choice, Component, EventSet, Negation, Node, Query, Repeat, Sequence, StateGraph
from acep.pattern.walk import binds, variables

__all__ = ["Costs", "Edge", "Gap", "Letter", "Negated", "Place", "Thompson", "build", "costs_of", "pareto"]

Gap = tuple[int, int]  # scaled weight of the skipped letters, and their number
SET_PLACES = 4096


@dataclass(frozen=True)
class Costs:
    """The error budget and the weights as integers: a weight of 1 is ``scale``; ``None`` means never missing.
    ``surplus`` is what an event costs that is more than the missing letters of its gap (``None``: it may not be)."""

    scale: int
    budget: int
    weights: tuple[tuple[str, int | None], ...]
    contiguous: bool
    surplus: int | None = None

    def weight(self, var: str) -> int | None:
        """Return the scaled weight of a variable's letter (``None``: it may not be missing)."""
        return dict(self.weights).get(var, self.scale)

    def of_gap(self, gaps: Iterable[Gap], between: int) -> int | None:
        """Return the least cost of a gap under contiguity, if there are so many events ``between`` its ends; ``None``:
        they break it.

        >>> Costs(1, 2, (), True).of_gap([(0, 0), (1, 1)], 1), Costs(1, 2, (), True, surplus=2).of_gap([(1, 1)], 2)
        (1, 3)
        """
        costs = [weight for weight, letters in gaps if between <= letters]
        if self.surplus is not None:
            costs += [weight + self.surplus * (between - letters) for weight, letters in gaps if between > letters]
        return min(costs, default=None)

    def unscale(self, cost: int) -> int | Fraction:
        """Return a scaled cost in the user's units."""
        value = Fraction(cost, self.scale)
        return int(value) if value.denominator == 1 else value


def costs_of(query: Query) -> Costs:
    """Scale a query's errors and weights to integers, so that sums are exact."""
    exact_weights = [w for w in (*(w for _, w in query.weights), query.surplus) if w is not None]
    scale = lcm(*(w.denominator for w in exact_weights)) if exact_weights else 1
    weights = tuple((v, None if w is None else int(w * scale)) for v, w in query.weights)
    surplus = None if query.surplus is None else int(query.surplus * scale)
    return Costs(scale, int(query.errors * scale), weights, query.strategy.contiguous, surplus)


@dataclass(frozen=True)
class Place:
    """A place between letters; ``inside`` are the repetitions and sets (instances) around it."""

    inside: tuple[int, ...]
    copy_start: int | None = None


@dataclass(frozen=True)
class Edge:
    """``kind`` is letter, missing, negation, again or empty; ``number`` that of the letter, negation or group."""

    source: int
    target: int
    kind: str
    number: int = -1
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True)
class Letter:
    """A letter edge, which becomes a state of the plan: the variable it binds, and its context in the pattern.

    ``inside`` are (instance, open) pairs, outermost first: the repetitions and sets around the letter, and whether
    each can take another event after it. ``groups`` are the repeated groups around it. ``kleene`` is the instance of
    the repetition (or set) that makes its variable a Kleene variable.
    """

    var: str
    types: tuple[str, ...]
    inside: tuple[tuple[int, bool], ...]
    groups: tuple[int, ...]
    kleene: int | None
    source: int
    target: int


@dataclass(frozen=True)
class Negated:
    """A negation: ``leading`` if no component stands before it, ``trailing`` if none stands after it. Events before the
    tick ``since`` do not break it (``None``: any may)."""

    var: str
    types: tuple[str, ...]
    weight: int | None
    groups: tuple[int, ...]
    leading: bool
    trailing: bool
    since: int | None = None


@dataclass(frozen=True)
class Thompson:
    """The automaton: ``start`` and ``final`` are places, ``copies`` are pairs of the last place of an iteration and the
    number of its copy, and ``groups`` are the variables of each repeated group."""

    places: tuple[Place, ...]
    edges: tuple[Edge, ...]
    letters: tuple[Letter, ...]
    negations: tuple[Negated, ...]
    groups: tuple[tuple[str, ...], ...]
    copies: tuple[tuple[int, int], ...]
    start: int
    final: int
    costs: Costs

    @property
    def kleene(self) -> frozenset[str]:
        """Return the Kleene variables: those of letters that a repetition or a set may bind more than once."""
        return frozenset(letter.var for letter in self.letters if letter.kleene is not None)


def pareto(gaps: Iterable[Gap], costs: Costs) -> tuple[Gap, ...]:
    """Return the Pareto-optimal gaps: within the budget, and none is lighter with at least as many letters."""
    best: list[Gap] = []
    for weight, letters in sorted(set(gaps), key=lambda g: (g[0], -g[1])):
        if weight <= costs.budget and (not best or letters > best[-1][1]):
            best.append((weight, letters))
    return tuple(best)


def build(query: Query) -> Thompson:
    """Build the Thompson automaton of a query's pattern.

    Raises :class:`QueryError` if a set has too many items to be unrolled.
    """
    builder = _Builder(costs_of(query))
    start = builder.place(())
    final = builder.node(query.pattern, start, _Around())
    return builder.finish(start, final)


@dataclass(frozen=True)
class _Around:
    """The context of a pattern node: the instances around it (and whether each is open), and the repeated groups."""

    inside: tuple[tuple[int, bool], ...] = ()
    groups: tuple[int, ...] = ()
    path: tuple[int, ...] = ()
    before: bool = False  # whether a component stands before the node in the sequences around it
    after: bool = False

    def child(self, i: int, items: tuple[Node, ...] = ()) -> _Around:
        before = self.before or any(map(binds, items[:i]))
        after = self.after or any(map(binds, items[i + 1 :]))
        return replace(self, path=(*self.path, i), before=before, after=after)

    def enter(self, inside: tuple[tuple[int, bool], ...], groups: tuple[int, ...]) -> _Around:
        return replace(self, inside=inside, groups=groups, path=(*self.path, 0))


@dataclass
class _Builder:
    costs: Costs
    places: list[Place] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    negations: list[Negated] = field(default_factory=list)
    negation_numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    group_numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    group_vars: list[tuple[str, ...]] = field(default_factory=list)
    copies: dict[int, int] = field(default_factory=dict)
    instances: int = 0
    n_copies: int = 0

    def place(self, inside: tuple[tuple[int, bool], ...], copy: int | None = None) -> int:
        self.places.append(Place(tuple(i for i, _ in inside), copy))
        return len(self.places) - 1

    def edge(self, source: int, target: int, kind: str = "empty", number: int = -1, gaps: tuple[Gap, ...] = ()) -> None:
        self.edges.append(Edge(source, target, kind, number, gaps))

    def missing(self, source: int, target: int, gaps: tuple[Gap, ...]) -> None:
        if gaps == ((0, 0),):
            self.edge(source, target)
        elif gaps:
            self.edge(source, target, "missing", gaps=gaps)

    def letter(self, item: Component, source: int, target: int, around: _Around, kleene: int | None) -> None:
        self.letters.append(Letter(item.var, item.types, around.inside, around.groups, kleene, source, target))
        self.edge(source, target, "letter", len(self.letters) - 1)

    def node(self, node: Node, start: int, around: _Around) -> int:
        match node:
            case StateGraph():
                raise AssertionError("a hand-written automaton is compiled by acep.automaton.graph")
            case Component():
                end = self.place(around.inside)
                self.letter(node, start, end, around, None)
                self.missing(start, end, self.absent(node))
                return end
            case Sequence(items=items):
                for i, item in enumerate(items):
                    start = self.node(item, start, around.child(i, items))
                return start
            case Choice(items=items):
                ends = []
                for i, item in enumerate(items):
                    first = self.place(around.inside)
                    self.edge(start, first)
                    ends.append(self.node(item, first, around.child(i)))
                end = self.place(around.inside)
                for last in ends:
                    self.edge(last, end)
                return end
            case Repeat():
                return self.repeat(node, start, around)
            case EventSet():
                return self.event_set(node, start, around)
            case Negation():
                return self.negation(node, start, around)

    def repeat(self, node: Repeat, start: int, around: _Around) -> int:
        """Add the copies of a repetition, one after another; the edges that leave it cost its missing iterations."""
        item, low, high = node.item, node.low, node.high
        contiguous = self.costs.contiguous
        instance = self.instances
        self.instances += 1
        group = -1 if isinstance(item, Component) or high == 1 else self.group(item, around)
        groups = around.groups if group < 0 else (*around.groups, group)
        end = self.place(around.inside)
        self.missing(start, end, ((0, 0),) if low == 0 else () if contiguous else self.iterations(item, low))
        copies = max(low, 1) if high is None else high
        next_iteration = ("again", group) if group >= 0 else ("empty", -1)

        def iteration(j: int, before: int) -> tuple[int, int]:
            """Add copy number ``j``; return its first and its last place."""
            copy = self.n_copies
            self.n_copies += 1
            inside = (*around.inside, (instance, high is None or j < high))
            first = self.place(inside, copy)
            self.edge(before, first, *(next_iteration if j > 1 else ("empty", -1)))
            last = self.copy(item, first, around.enter(inside, groups), instance if high != 1 else None)
            self.copies[last] = copy
            return first, last

        # Where gaps count, a missing iteration may be anywhere among the first `low`. Then these are all: with more
        # iterations none would be missing. So what has missed one goes on in copies of its own.
        absent = self.absent(item) if contiguous and low else ()
        before, lacking = start, -1
        for j in range(1, copies + 1):
            first, after = iteration(j, before)
            if absent and j <= low:
                missed = self.place((*around.inside, (instance, high is None or j < high)))
                self.missing(before, missed, absent)
                if high == low:  # there are no more, whether one is missing or not
                    self.edge(after, missed)
                    after = missed
                elif lacking >= 0:
                    self.missing(lacking, missed, absent)
                    self.edge(iteration(j, lacking)[1], missed)
                if high != low:
                    lacking = missed
            self.missing(after, end, ((0, 0),) if j >= low else () if contiguous else self.iterations(item, low - j))
            before = after
        if lacking >= 0:
            self.edge(lacking, end)
        if high is None:
            self.edge(before, first, *next_iteration)
        return end

    def copy(self, item: Node, first: int, around: _Around, kleene: int | None) -> int:
        """Add one iteration that starts at place ``first``, and return its last place."""
        if not isinstance(item, Component):
            return self.node(item, first, around)
        last = self.place(around.inside)
        self.letter(item, first, last, around, kleene)
        return last

    def event_set(self, node: EventSet, start: int, around: _Around) -> int:
        """Add a place for each combination of the events that the items have bound, and under contiguity missed."""
        instance = self.instances
        self.instances += 1
        items: list[tuple[Component, int, int | None]] = []
        for part in node.items:
            if isinstance(part, Component):
                items.append((part, 1, 1))
            else:
                assert isinstance(part.item, Component)
                items.append((part.item, part.low, part.high))
        caps = [max(low, 1) if high is None else high for _, low, high in items]
        if prod(c + 1 for c in caps) > SET_PLACES:
            raise QueryError(
                f"a set of {len(items)} items needs more than {SET_PLACES} places",
                hint="use fewer items, smaller repetitions, or split the set",
                code="query_size",
            )
        inner = (*around.inside, (instance, True))
        zero = ((0, False),) * len(items)  # of each item, its number of events, and whether one is missing
        where = {zero: self.place(inner)}
        self.edge(start, where[zero])
        end = self.place(around.inside)
        todo = [zero]

        def place_of(counts: tuple[tuple[int, bool], ...]) -> int:
            if counts not in where:
                where[counts] = self.place(inner)
                todo.append(counts)
            return where[counts]

        while todo:
            counts = todo.pop()
            remaining_gaps: tuple[Gap, ...] = ((0, 0),)
            for (item, low, _), (number, _) in zip(items, counts, strict=True):
                remaining_gaps = self.sums(remaining_gaps, self.iterations(item, low - number))
            if not self.costs.contiguous or all(n >= low for (_, low, _), (n, _) in zip(items, counts, strict=True)):
                self.missing(where[counts], end, remaining_gaps)
            for i, (item, low, high) in enumerate(items):
                number, misses = counts[i]
                # Of an item that misses an event there are as many as are needed.
                if (high is None or number < high) and not (misses and number >= low):
                    after = (*counts[:i], (min(number + 1, caps[i]), misses), *counts[i + 1 :])
                    is_open = any(h is None or n < h for (_, _, h), (n, _) in zip(items, after, strict=True))
                    inside = (*around.inside, (instance, is_open))
                    to = place_of(after)
                    kleene = instance if high != 1 else None
                    self.letter(item, where[counts], to, around.enter(inside, around.groups), kleene)
                if self.costs.contiguous and number < low and (gaps := self.absent(item)):
                    after = (*counts[:i], (number + 1, high != low), *counts[i + 1 :])
                    self.missing(where[counts], place_of(after), gaps)
        return end

    def negation(self, node: Negation, start: int, around: _Around) -> int:
        if around.path not in self.negation_numbers:
            self.negation_numbers[around.path] = len(self.negations)
            weight = dict(self.costs.weights).get(node.var)
            leading, trailing = not around.before, not around.after
            self.negations.append(Negated(node.var, node.types, weight, around.groups, leading, trailing))
        end = self.place(around.inside)
        self.edge(start, end, "negation", self.negation_numbers[around.path])
        return end

    def group(self, item: Node, around: _Around) -> int:
        if around.path not in self.group_numbers:
            self.group_numbers[around.path] = len(self.group_vars)
            self.group_vars.append(variables(item))
        return self.group_numbers[around.path]

    def absent(self, node: Node) -> tuple[Gap, ...]:
        """Return the gaps of passing ``node`` with no event bound."""
        match node:
            case StateGraph():
                return ()
            case Component(var=var):
                weight = self.costs.weight(var)
                letters = 1 if self.costs.contiguous else 0
                return () if weight is None else pareto([(weight, letters)], self.costs)
            case Sequence(items=items) | EventSet(items=items):
                total: tuple[Gap, ...] = ((0, 0),)
                for item in items:
                    total = self.sums(total, self.absent(item))
                return total
            case Choice(items=items):
                return pareto([g for item in items for g in self.absent(item)], self.costs)
            case Repeat(item=item, low=low):
                return self.times(self.absent(item), low)
            case Negation():
                return ((0, 0),)

    def iterations(self, item: Node, count: int) -> tuple[Gap, ...]:
        """Return the gaps of ``count`` missing iterations."""
        return self.times(self.absent(item), count)

    def times(self, part_gaps: tuple[Gap, ...], count: int) -> tuple[Gap, ...]:
        """Return the gaps of passing ``count`` parts, of which each has the gaps ``part_gaps``."""
        total: tuple[Gap, ...] = ((0, 0),)
        for _ in range(count):
            total = self.sums(total, part_gaps)
            if not total:  # beyond the budget
                break
        return total

    def sums(self, left: tuple[Gap, ...], right: tuple[Gap, ...]) -> tuple[Gap, ...]:
        return pareto([(a + c, b + d) for a, b in left for c, d in right], self.costs)

    def finish(self, start: int, final: int) -> Thompson:
        return Thompson(
            tuple(self.places),
            tuple(self.edges),
            tuple(self.letters),
            tuple(self.negations),
            tuple(self.group_vars),
            tuple(self.copies.items()),
            start,
            final,
            self.costs,
        )
