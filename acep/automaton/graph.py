"""Compile a hand-written automaton to states, arcs and registers (AFA 2010, section 2.2).

Epsilon arcs are composed away: an arc that takes an event is followed by every chain of epsilon arcs, in which the new
values of registers replace the registers. State 0 of the result is the start, where nothing is bound and no register
is held; the states of the graph follow in the order in which they are named.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from acep.automaton.arcs import Accept, Arc, Arcs, State
from acep.automaton.registers import Assign, Check, Ignore, Program, Register, Step, ValueSource
from acep.automaton.thompson import Costs, Letter, Thompson
from acep.errors import QueryError
from acep.pattern import expressions as ex
from acep.pattern.graph_check import EVENT, REGISTER
from acep.pattern.tree import GraphArc, StateGraph
from acep.pattern.walk import children, leaves_of, with_children

__all__ = [
    "MOST_WALKS",
    "OF_REGISTER",
    "GraphStep",
    "GraphSteps",
    "arcs_of",
    "named_apart",
    "program_of",
    "rebind",
    "steps_of",
    "thompson_of",
]

MOST_WALKS = 10_000
"""The greatest number of arcs that a graph may have once its epsilon arcs are composed."""

OF_REGISTER = "register "
"""The prefix of the name of a register where it is used as that of a column."""


@dataclass(frozen=True)
class GraphStep:
    """An arc with the epsilon arcs after it. ``fence`` are conditions that must all hold. ``transfer`` has the new
    value of each register that changes; ``var`` is empty for an ignorable arc. ``since`` and ``until`` are ticks."""

    source: int
    target: int
    fence: tuple[ex.Expr, ...]
    transfer: tuple[tuple[str, ex.Expr], ...]
    var: str
    since: int | None
    until: int | None


@dataclass(frozen=True)
class GraphSteps:
    """The composed arcs of each state, and the ignorable arcs of each state."""

    taking: tuple[tuple[GraphStep, ...], ...]
    ignoring: tuple[tuple[GraphStep, ...], ...]


def steps_of(graph: StateGraph, tick: Callable[[ex.Expr], int]) -> GraphSteps:
    """Compose the epsilon arcs of a graph. ``tick`` returns the first tick that is not before a time.

    Raises :class:`QueryError` if there are too many chains of them.
    """
    names = {name: number for number, name in enumerate(graph.states, 1)}
    leaving: dict[str, list[GraphArc]] = {}
    for arc in graph.arcs:
        leaving.setdefault(arc.source, []).append(arc)
    taking: list[list[GraphStep]] = [[] for _ in range(len(names) + 1)]
    ignoring: list[list[GraphStep]] = [[] for _ in range(len(names) + 1)]
    initial = {r.name: ex.Literal(r.initial) for r in graph.registers}
    walks = _Walks(leaving, tick)
    begins = [(0, walk) for walk in walks.epsilon(_Walk(graph.start, (), initial))]
    stays = [(number, _Walk(name, (), {})) for name, number in names.items()]
    walk_count = 0
    for number, before in (*begins, *stays):
        for arc in leaving.get(before.state, ()):
            if arc.epsilon:
                continue
            after = walks.follow(before, arc)
            if arc.ignorable:
                if number:
                    ignoring[number].append(GraphStep(number, number, after.fence, (), "", after.since, after.until))
                continue
            for walk in walks.epsilon(after):
                walk_count += 1
                if walk_count > MOST_WALKS:
                    raise QueryError(
                        "there are too many chains of epsilon arcs", hint=f"at most {MOST_WALKS}", code="query_size"
                    )
                ends = number, names[walk.state]
                values = tuple(walk.values.items())
                taking[number].append(GraphStep(*ends, walk.fence, values, arc.var, walk.since, walk.until))
    return GraphSteps(tuple(map(tuple, taking)), tuple(map(tuple, ignoring)))


@dataclass(frozen=True)
class _Walk:
    """A walk to a state: its conditions, the new values of registers by what they were before it, and the ticks
    between which all of its arcs are valid."""

    state: str
    fence: tuple[ex.Expr, ...]
    values: Mapping[str, ex.Expr]
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True)
class _Walks:
    """The ways along the arcs ``leaving`` each state."""

    leaving: Mapping[str, list[GraphArc]]
    tick: Callable[[ex.Expr], int]

    def epsilon(self, walk: _Walk) -> Iterator[_Walk]:
        """Yield a walk, and all walks that go on from it along epsilon arcs."""
        stack, walk_count = [walk], 0
        while stack:
            current = stack.pop()
            walk_count += 1
            if walk_count > MOST_WALKS:
                raise QueryError(
                    "there are too many chains of epsilon arcs", hint=f"at most {MOST_WALKS}", code="query_size"
                )
            yield current
            further = [
                self.follow(current, arc) for arc in reversed(self.leaving.get(current.state, ())) if arc.epsilon
            ]
            stack += [walk for walk in further if walk.since is None or walk.until is None or walk.since < walk.until]

    def follow(self, walk: _Walk, arc: GraphArc) -> _Walk:
        """Return the walk followed by an arc."""
        fence = list(walk.fence)
        if arc.fence is not None:
            fence += _conjuncts(_replace_registers(arc.fence, walk.values))
        values = {**walk.values, **{name: _replace_registers(value, walk.values) for name, value in arc.transfer}}
        since = [tick for tick in (walk.since, None if arc.since is None else self.tick(arc.since)) if tick is not None]
        until = [tick for tick in (walk.until, None if arc.until is None else self.tick(arc.until)) if tick is not None]
        return _Walk(arc.target, tuple(fence), values, max(since, default=None), min(until, default=None))


def _conjuncts(expr: ex.Expr) -> Iterator[ex.Expr]:
    if isinstance(expr, ex.Binary) and expr.op == "and":
        yield from _conjuncts(expr.left)
        yield from _conjuncts(expr.right)
    else:
        yield expr


def _replace_registers(expr: ex.Expr, values: Mapping[str, ex.Expr]) -> ex.Expr:
    """Return an expression with values in place of registers."""
    if isinstance(expr, ex.Attribute):
        return values.get(expr.name, expr) if expr.var == REGISTER else expr
    parts = children(expr)
    after = [_replace_registers(part, values) for part in parts]
    is_same = all(map(operator.is_, after, parts))  # compilations know an expression that stays by its identity
    return expr if is_same else with_children(expr, after)


def thompson_of(graph: StateGraph) -> Thompson:
    """Return what plans know of a pattern's Thompson automaton: there are no errors and no negations, and each variable
    may be bound to several events."""
    letters = tuple(Letter(var, (), (), (), 0, 0, 0) for var in graph.variables)
    return Thompson((), (), letters, (), (), (), 0, 0, Costs(1, 0, (), contiguous=True))


def arcs_of(graph: StateGraph, steps: GraphSteps) -> Arcs:
    """Return the states and arcs that engines run."""
    names = ("", *graph.states)
    # Arcs that come later may lead on from any state.
    remaining_costs: list[int | None] = [0 if name in graph.final or graph.dynamic else None for name in names]
    changed = True
    while changed:
        changed = False
        for state_steps in steps.taking:
            for step in state_steps:
                if remaining_costs[step.target] is not None and remaining_costs[step.source] is None:
                    remaining_costs[step.source], changed = 0, True
    states = tuple(
        State(number, name, (), (Accept(0, ()),) if name in graph.final else (), remaining_costs[number])
        for number, name in enumerate(names)
    )
    arcs = tuple(
        tuple(Arc(s.source, s.target, s.var, (), ((0, 0),), (), (), (), False, s.since, s.until) for s in state_steps)
        for state_steps in steps.taking
    )
    return Arcs(states, arcs)


def program_of(
    graph: StateGraph,
    arcs: Arcs,
    steps: GraphSteps,
    number: Callable[[ex.Expr], tuple[int, tuple[ex.Leaf, ...]]],
    assigned: Callable[[str, ex.Expr], tuple[int, tuple[ex.Leaf, ...]]],
) -> Program:
    """Return the checks and assignments of each arc, and the registers of each state.

    ``number`` returns the number of a condition among the predicates of the plan, with its references; ``assigned``
    that of the value of a register among the transfers. A state keeps the registers that are read later, and a final
    state all, as they are part of the match.
    """

    def check(expr: ex.Expr) -> Check:
        predicate, leaves = number(expr)
        return Check(predicate, tuple(map(_source, leaves)), ())

    everything = [_register(r.name) for r in graph.registers]
    compiled_arcs: list[list[tuple[GraphStep, Arc, tuple[Check, ...], dict[Register, Assign]]]] = []
    for state_steps, of_state in zip(steps.taking, arcs.arcs, strict=True):
        compiled_arcs.append([])
        for step, arc in zip(state_steps, of_state, strict=True):
            assigns = {}
            for name, expr in step.transfer:
                transfer, leaves = assigned(name, expr)
                assigns[_register(name)] = Assign(_register(name), transfer, tuple(map(_source, leaves)))
            compiled_arcs[-1].append((step, arc, tuple(check(fence) for fence in step.fence), assigns))
    ignoring = tuple(
        tuple(Ignore(tuple(check(fence) for fence in step.fence), step.since, step.until) for step in state_steps)
        for state_steps in steps.ignoring
    )
    keeps_all = [bool(state.accepts) or (graph.dynamic and state.number > 0) for state in arcs.states]
    layouts = [set(everything) if all_of_them else set[Register]() for all_of_them in keeps_all]
    for number_of, here_ignored in enumerate(ignoring):
        layouts[number_of] |= {r for arc in here_ignored for fence_check in arc.checks for r in fence_check.reads()}
    changed = True
    while changed:
        changed = False
        for source, here_made in enumerate(compiled_arcs):
            for step, _, checks, assigns in here_made:
                needed = {r for fence_check in checks for r in fence_check.reads()}
                for register in layouts[step.target]:
                    needed |= assigns[register].reads() if register in assigns else {register}
                if not needed <= layouts[source]:
                    layouts[source] |= needed
                    changed = True
    assert not layouts[0]
    taking = tuple(
        tuple(
            Step(arc, (), (), checks, (), tuple(a for r, a in assigns.items() if r in layouts[step.target]))
            for step, arc, checks, assigns in here_made
        )
        for here_made in compiled_arcs
    )
    kept_layouts = tuple(tuple(r for r in everything if r in layout) for layout in layouts)
    return Program(kept_layouts, taking, ((),) * len(arcs.states), ignoring)


def _register(name: str) -> Register:
    return Register("field", "", name)


def _source(leaf: ex.Leaf) -> ValueSource:
    assert isinstance(leaf, ex.Attribute)
    if leaf.var == EVENT:
        return ValueSource("event", name=leaf.name)
    return ValueSource("register", (_register(leaf.name.removeprefix(OF_REGISTER)),))


def named_apart(expr: ex.Expr) -> ex.Expr:
    """Return an expression in which no register has the name of a column of events."""
    if isinstance(expr, ex.Attribute) and expr.var == REGISTER:
        return replace(expr, name=OF_REGISTER + expr.name)
    parts = children(expr)
    return with_children(expr, [named_apart(part) for part in parts]) if parts else expr


def rebind(program: Program, predicates: Sequence[ex.Expr], transfers: Sequence[ex.Expr]) -> Program:
    """Return the program for other forms of the same predicates and transfers, which may read other columns."""

    def check(old_check: Check) -> Check:
        return replace(old_check, sources=tuple(map(_source, leaves_of(predicates[old_check.predicate]))))

    def assign(old_assign: Assign) -> Assign:
        return replace(old_assign, sources=tuple(map(_source, leaves_of(transfers[old_assign.transfer]))))

    steps = tuple(
        tuple(
            replace(step, binding=tuple(map(check, step.binding)), assigns=tuple(map(assign, step.assigns)))
            for step in state_steps
        )
        for state_steps in program.steps
    )
    ignoring = tuple(
        tuple(replace(arc, checks=tuple(map(check, arc.checks))) for arc in ignored) for ignored in program.ignoring
    )
    return replace(program, steps=steps, ignoring=ignoring)
