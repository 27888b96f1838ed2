"""Join the versions of a query that changes to one automaton: a partial match goes on where both versions agree.

Two states of successive versions are one if a partial match in them is the same: its events came along the same arcs
with the same predicates and past the same negations, and it keeps the same registers. Each version's arcs are valid
from its own beginning until the next version's (AFA 2010, section 2.3). A negation belongs to the arc, or to the end,
that passes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from acep.automaton.arcs import Accept, Arc, Arcs, Crossing, State
from acep.automaton.registers import Check, Program, Register, Step, ValueSource, may_be_bound
from acep.automaton.thompson import Negated, Thompson
from acep.pattern import expressions as ex
from acep.pattern.walk import leaves_of

__all__ = ["VersionPart", "crossing", "joined", "numbered", "programs_of", "with_arcs"]

Conditions = Sequence[Sequence[ex.Expr]]


@dataclass(frozen=True)
class VersionPart:
    """One version: its ``automaton`` and ``arcs``, the number of each of its ``predicates`` and ``negations`` among
    those of all versions, and the ticks from which (``since``) and before which (``until``) it is valid. ``over``: no
    event before its end is matched any more. Its automaton has the negations and groups of all versions."""

    automaton: Thompson
    arcs: Arcs
    predicates: tuple[int, ...]
    negations: tuple[int, ...]
    since: int | None
    until: int | None
    over: bool


def crossing(
    automaton: Thompson,
    arcs: Arcs,
    negations: Sequence[int],
    groups: Sequence[int],
    every: tuple[Sequence[Negated], Sequence[tuple[str, ...]]],
) -> tuple[Thompson, Arcs]:
    """Return an automaton and its arcs with other numbers of its ``negations`` and ``groups``; ``every`` are those that
    they are among."""

    def crossed(some: Sequence[Crossing]) -> tuple[Crossing, ...]:
        return tuple(sorted(Crossing(negations[c.negation], tuple(groups[g] for g in c.entered)) for c in some))

    edges = []
    for edge in automaton.edges:
        numbers = {"negation": negations, "again": groups}.get(edge.kind)
        edges.append(edge if numbers is None else replace(edge, number=numbers[edge.number]))
    letters = tuple(replace(one, groups=tuple(groups[g] for g in one.groups)) for one in automaton.letters)
    states = []
    for state in arcs.states:
        accepts = [Accept(one.cost, crossed(one.crossings)) for one in state.accepts]
        states.append(replace(state, accepts=tuple(sorted(accepts, key=lambda one: one.crossings))))
    taking = [
        tuple(replace(a, crossings=crossed(a.crossings), resets=tuple(groups[g] for g in a.resets)) for a in here)
        for here in arcs.arcs
    ]
    whole = replace(automaton, edges=tuple(edges), letters=letters, negations=tuple(every[0]), groups=tuple(every[1]))
    return whole, Arcs(tuple(states), tuple(taking))


def with_arcs(program: Program, arcs: Arcs) -> Program:
    """Return a program of the same arcs, which have other numbers of negations and groups."""
    both = zip(program.steps, arcs.arcs, strict=True)
    steps = tuple(tuple(replace(s, arc=arc) for s, arc in zip(here, these, strict=True)) for here, these in both)
    return replace(program, steps=steps)


def numbered(program: Program, predicates: Sequence[int]) -> Program:
    """Return a program with other numbers of its predicates, and the registers and checks in the order of these."""

    def register(one: Register) -> Register:
        return replace(one, number=predicates[one.number]) if one.kind == "frames" else one

    def source(one: ValueSource) -> ValueSource:
        return replace(one, registers=tuple(map(register, one.registers)))

    def checks(some: Sequence[Check]) -> tuple[Check, ...]:
        made = [
            replace(
                one,
                predicate=predicates[one.predicate],
                sources=tuple(map(source, one.sources)),
                loops=tuple(map(register, one.loops)),
            )
            for one in some
        ]
        return tuple(sorted(made, key=lambda one: one.predicate))

    def step(one: Step) -> Step:
        frames = [replace(f, register=register(f.register), sources=tuple(map(source, f.sources))) for f in one.frames]
        return replace(
            one,
            leaving=checks(one.leaving),
            binding=checks(one.binding),
            frames=tuple(sorted(frames, key=lambda f: f.register)),
        )

    return Program(
        tuple(tuple(sorted(map(register, layout))) for layout in program.layouts),
        tuple(tuple(map(step, here)) for here in program.steps),
        tuple(map(checks, program.ending)),
    )


def programs_of(parts: Sequence[VersionPart], programs: Sequence[Program]) -> tuple[Program, ...]:
    """Return the programs of all versions with the numbers that their predicates have among those of all."""
    return tuple(numbered(program, part.predicates) for part, program in zip(parts, programs, strict=True))


def joined(
    parts: Sequence[VersionPart], programs: Sequence[Program], conditions: Conditions
) -> tuple[Arcs, Program, tuple[tuple[int, ...], ...]]:
    """Return the automaton of all versions, its program, and the number that each state of each version has in it.

    ``programs`` come from :func:`programs_of`, and ``conditions`` are those of each negation. States are never removed,
    so that numbers stay when a version is added. Arcs of a version that is over are left out, unless there are
    negations: then the arcs of a partial match say which of them it passed.
    """
    numbers: list[tuple[int, ...]] = []
    crossed = any(part.negations for part in parts)
    kinds = [_kinds(part, program, conditions) for part, program in zip(parts, programs, strict=True)]
    many = 0
    for i, (part, program) in enumerate(zip(parts, programs, strict=True)):
        same = _same_states(kinds[i - 1], programs[i - 1], kinds[i], program) if i else {}
        mine = list[int]()
        for local in range(len(part.arcs.states)):
            if i and local in same:
                mine.append(numbers[-1][same[local]])
            else:
                mine.append(many)
                many += 1
        numbers.append(tuple(mine))
    states: list[State | None] = [None] * many
    layouts: list[tuple[Register, ...]] = [()] * many
    ending: list[tuple[Check, ...]] = [()] * many
    steps: list[list[Step]] = [[] for _ in range(many)]
    arcs_so_far = 0
    for part, program, own in zip(parts, programs, numbers, strict=True):
        for state, number in zip(part.arcs.states, own, strict=True):
            known = states[number]
            rests = [None if known is None else known.rest, None if part.over else state.rest]
            rest = min((one for one in rests if one is not None), default=None)
            states[number] = replace(state, number=number, rest=rest)
            layouts[number], ending[number] = program.layouts[state.number], program.ending[state.number]
            here = program.steps[state.number]
            arcs_so_far += len(here)
            if part.over and not crossed:
                continue
            for place, step in enumerate(here, arcs_so_far - len(here)):
                arc = replace(step.arc, source=number, target=own[step.arc.target], number=place)
                steps[number].append(replace(step, arc=replace(arc, since=part.since, until=part.until)))
    every = tuple(state for state in states if state is not None)
    taking = tuple(map(tuple, steps))
    arcs = Arcs(every, tuple(tuple(step.arc for step in here) for here in taking))
    return arcs, Program(tuple(layouts), taking, tuple(ending)), tuple(numbers)


_Value = tuple[str, str]
_Kind = tuple[str, tuple[str, ...], tuple[Accept, ...], tuple[Register, ...], tuple[Check, ...], frozenset[_Value]]


def _same_states(
    before: Sequence[_Kind], old_program: Program, after: Sequence[_Kind], new_program: Program
) -> dict[int, int]:
    """Return the states of a version that are states of the one before: the greatest relation in which two states have
    the same kind and are reached by the same steps from states that are related. The starts are one."""
    ways, new_ways = _reaching(old_program), _reaching(new_program)
    related = {b: {a for a in range(1, len(before)) if before[a] == after[b]} for b in range(1, len(after))}
    related[0] = {0}
    while True:
        changed = False
        for b in range(1, len(after)):
            kept = {a for a in related[b] if _alike(ways[a], new_ways[b], related)}
            changed = changed or kept != related[b]
            related[b] = kept
        if changed:
            continue
        taken = [a for some in related.values() for a in some]
        unclear = [b for b, some in related.items() if len(some) > 1 or any(taken.count(a) > 1 for a in some)]
        if not unclear:
            return {b: next(iter(some)) for b, some in related.items() if some}
        for b in unclear:
            related[b] = set()


def _kinds(part: VersionPart, program: Program, conditions: Conditions) -> list[_Kind]:
    """Return for each state what a partial match in it is told by, besides its way: its variable, its open repetitions,
    its ends, its registers, the checks at its end, and the values of its events that negations compare with."""
    leaves = [leaf for number in part.negations for one in conditions[number] for leaf in leaves_of(one)]
    read = [(leaf.var, leaf.name) for leaf in leaves if not isinstance(leaf, ex.Length)]
    bound = may_be_bound(part.automaton, part.arcs)
    return [
        (
            state.var,
            state.open,
            state.accepts,
            program.layouts[state.number],
            program.ending[state.number],
            frozenset((var, name) for var, name in read if name is not None and var in bound[state.number]),
        )
        for state in part.arcs.states
    ]


def _reaching(program: Program) -> list[set[tuple[int, Step]]]:
    """Return the steps that lead to each state with their sources; the steps themselves have no ends."""
    found: list[set[tuple[int, Step]]] = [set() for _ in program.layouts]
    for here in program.steps:
        for step in here:
            bare: Arc = replace(step.arc, source=0, target=0)
            found[step.arc.target].add((step.arc.source, replace(step, arc=bare)))
    return found


def _alike(old: set[tuple[int, Step]], new: set[tuple[int, Step]], related: dict[int, set[int]]) -> bool:
    """Return whether each way to a state has its like among those to another one, in both directions."""
    forth = all(any(step == other and a in related[b] for b, other in new) for a, step in old)
    return forth and all(any(step == other and a in related[b] for a, other in old) for b, step in new)
