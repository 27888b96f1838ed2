"""Compile a Thompson automaton to arcs that each bind one event: the 2016 paper's ``propagate``, computed once.

A *state* stands for the letter that was bound last; state 0 is the start. An *arc* joins two states. It stands for all
walks of the Thompson automaton from one letter to the next, with empty, missing, negation and again edges composed
away. Walks that differ only in cost form one arc with several gaps.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from acep.automaton.thompson import Edge, Gap, Thompson, pareto
from acep.errors import QueryError

__all__ = ["MOST_STEPS", "Accept", "Arc", "Arcs", "Crossing", "State", "compose"]

MOST_STEPS = 250_000
"""The greatest number of steps that all walks between letters may take together."""


@dataclass(frozen=True, order=True)
class Crossing:
    """A negation that a walk passes: its number, and the groups whose next iteration was entered before it."""

    negation: int
    entered: tuple[int, ...]


@dataclass(frozen=True)
class Accept:
    """A possible end of the pattern: its scaled cost, and the (trailing) negations that are passed."""

    cost: int
    crossings: tuple[Crossing, ...]


@dataclass(frozen=True)
class Arc:
    """A transition from ``source`` to ``target`` that binds an event to ``var``.

    ``gaps`` are the alternatives of what may be missing on the way: (scaled weight, letters) pairs, lightest first.
    ``resets`` are the groups of which it enters a new iteration. ``closes`` are the Kleene variables whose repetition
    it leaves. A ``blocking`` arc skips no letter and stays inside the innermost open repetition, so that under skip
    till next match a run that can take it must not ignore the event. An arc of a hand-written automaton, or of a
    version of a query, takes only events from the tick ``since`` on and before ``until`` (``None``: without limit).
    ``number`` is its place among the arcs of all versions, also of those that are left out (-1: there are none).
    """

    source: int
    target: int
    var: str
    types: tuple[str, ...]
    gaps: tuple[Gap, ...]
    crossings: tuple[Crossing, ...]
    resets: tuple[int, ...]
    closes: tuple[str, ...]
    blocking: bool
    since: int | None = None
    until: int | None = None
    number: int = -1

    def valid(self, tick: int) -> bool:
        """Return whether an event of this time may take the arc."""
        return (self.since is None or tick >= self.since) and (self.until is None or tick < self.until)

    @property
    def weight(self) -> int:
        """Return the least scaled weight of its gaps."""
        return self.gaps[0][0]


@dataclass(frozen=True)
class State:
    """A state in which ``var`` was bound last. ``open`` are the Kleene variables whose repetition has not been left,
    ``accepts`` the possible ends, and ``cost_to_end`` the least scaled cost of reaching an end (``None``: it cannot be
    reached)."""

    number: int
    var: str
    open: tuple[str, ...]
    accepts: tuple[Accept, ...]
    cost_to_end: int | None

    @property
    def name(self) -> str:
        """Return the state as people read it: its number, and the variable that was bound last."""
        return f"{self.number} ({self.var})" if self.number else "0, nothing bound"


@dataclass(frozen=True)
class Arcs:
    """The automaton that is executed. ``states[0]`` is the start; ``arcs[s]`` are the arcs that leave state ``s``."""

    states: tuple[State, ...]
    arcs: tuple[tuple[Arc, ...], ...]


@dataclass(frozen=True)
class _Label:
    """The state of a walk, apart from its cost."""

    place: int
    entered: frozenset[int]  # groups of which a new iteration was entered
    copies: frozenset[int]  # iterations that have begun and have bound nothing yet
    stays: frozenset[int]  # repetitions that the walk has not left
    crossings: tuple[Crossing, ...]


def compose(automaton: Thompson) -> Arcs:
    """Compose empty, missing, negation and again edges away, and return the states and arcs.

    States and arcs are numbered in the order of the pattern, so that equal queries give equal plans.

    Raises :class:`QueryError` if there are too many walks between letters, because too much may be left out.
    """
    leaving: list[list[Edge]] = [[] for _ in automaton.places]
    for edge in automaton.edges:
        leaving[edge.source].append(edge)
    variables: dict[int, dict[str, None]] = {}  # the Kleene variables of each repetition or set
    for letter in automaton.letters:
        if letter.kleene is not None:
            variables.setdefault(letter.kleene, {}).setdefault(letter.var)
    states, arcs, taken = [], [], 0
    for number in range(len(automaton.letters) + 1):
        state, state_arcs, steps = _state(automaton, leaving, variables, number, MOST_STEPS - taken)
        taken += steps
        states.append(state)
        arcs.append(state_arcs)
    return Arcs(_with_costs_to_end(states, arcs), tuple(arcs))


def _state(
    automaton: Thompson, leaving: list[list[Edge]], variables: dict[int, dict[str, None]], number: int, max_steps: int
) -> tuple[State, tuple[Arc, ...], int]:
    """Return the state of a letter (0: the start) without its ``cost_to_end``, the arcs that leave it, and the number
    of steps of its walks, at most ``max_steps``."""
    letter = automaton.letters[number - 1] if number else None
    inside = letter.inside if letter else ()
    stays = frozenset(i for i, _ in inside)
    opened = {v: i for i in stays for v in variables.get(i, ())}
    innermost = next((i for i, is_open in reversed(inside) if is_open), None)
    start = _Label(letter.target if letter else automaton.start, frozenset(), frozenset(), stays, ())
    gaps_of_arc: dict[tuple[int, tuple[Crossing, ...], tuple[int, ...], tuple[str, ...]], list[Gap]] = {}
    blocking = set()
    accepts: dict[tuple[Crossing, ...], int] = {}
    reached, steps = _walks(automaton, leaving, start, max_steps)
    for label, gaps in reached.items():
        closes = tuple(sorted(v for v, i in opened.items() if i not in label.stays))
        if label.place == automaton.final and letter:
            trailing = tuple(c for c in label.crossings if automaton.negations[c.negation].trailing)
            accepts[trailing] = min(gaps[0][0], accepts.get(trailing, gaps[0][0]))
        for edge in leaving[label.place]:
            if edge.kind == "letter":
                resets = tuple(g for g in automaton.letters[edge.number].groups if g in label.entered)
                crossings = tuple(c for c in label.crossings if letter or automaton.negations[c.negation].leading)
                key = (edge.number + 1, crossings, resets, closes)
                gaps_of_arc.setdefault(key, []).extend(gaps)
                if gaps[0][0] == 0 and (innermost is None or innermost in label.stays):
                    blocking.add(key)
    arcs = []
    for key in sorted(gaps_of_arc):
        target, crossings, resets, closes = key
        to = automaton.letters[target - 1]
        gaps = pareto(gaps_of_arc[key], automaton.costs)
        arcs.append(Arc(number, target, to.var, to.types, gaps, crossings, resets, closes, key in blocking))
    endings = tuple(Accept(cost, crossings) for crossings, cost in sorted(accepts.items()))
    return State(number, letter.var if letter else "", tuple(sorted(opened)), endings, None), tuple(arcs), steps


def _walks(
    automaton: Thompson, leaving: list[list[Edge]], start: _Label, max_steps: int
) -> tuple[dict[_Label, tuple[Gap, ...]], int]:
    """Return all walks from a place that bind nothing, with their Pareto-optimal gaps, and the number of steps."""
    ends = dict(automaton.copies)
    reached: dict[_Label, tuple[Gap, ...]] = {start: ((0, 0),)}
    todo = deque([start])
    steps = 0
    while todo:
        label = todo.popleft()
        steps += 1
        if steps > max_steps:
            raise QueryError(
                "there are too many ways through the pattern",
                hint="fewer components that may be left out or be missing, or a smaller error budget",
                code="query_size",
            )
        gaps = reached[label]
        for edge in leaving[label.place]:
            if edge.kind == "letter":
                continue
            if edge.target in ends and ends[edge.target] in label.copies:
                continue  # an iteration must bind something
            after, cost = _step(automaton, label, edge), gaps
            if edge.kind == "missing":
                cost = pareto([(a + c, b + d) for a, b in gaps for c, d in edge.gaps], automaton.costs)
            old_gaps = reached.get(after, ())
            best = pareto([*old_gaps, *cost], automaton.costs)
            if best != old_gaps:
                reached[after] = best
                todo.append(after)
    return reached, steps


def _step(automaton: Thompson, label: _Label, edge: Edge) -> _Label:
    place = automaton.places[edge.target]
    entered, copies, crossings = label.entered, label.copies, label.crossings
    if place.copy_start is not None:
        copies = copies | {place.copy_start}
    if edge.kind == "again":
        entered = entered | {edge.number}
    elif edge.kind == "negation":
        around = automaton.negations[edge.number].groups
        crossing = Crossing(edge.number, tuple(g for g in around if g in entered))
        if crossing not in crossings:
            crossings = tuple(sorted((*crossings, crossing)))
    return _Label(edge.target, entered, copies, label.stays.intersection(place.inside), crossings)


def _with_costs_to_end(states: list[State], arcs: list[tuple[Arc, ...]]) -> tuple[State, ...]:
    costs: list[int | None] = [min((a.cost for a in s.accepts), default=None) for s in states]
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(arcs))):  # mostly from the end to the start, so that few rounds suffice
            for arc in arcs[number]:
                onward = costs[arc.target]
                if onward is None:
                    continue
                cost, old_cost = arc.weight + onward, costs[number]
                if old_cost is None or cost < old_cost:
                    costs[number], changed = cost, True
    return tuple(State(s.number, s.var, s.open, s.accepts, costs[s.number]) for s in states)
