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

__all__ = ["VersionPart", "join_versions", "programs_of", "renumber_negations", "renumber_predicates", "with_arcs"]

Conditions = Sequence[Sequence[ex.Expr]]


@dataclass(frozen=True)
class VersionPart:
    """One version: its ``automaton`` and ``arcs``, the number of each of its ``predicates`` and ``negations`` among
    those of all versions, and the ticks from which (``since``) and before which (``until``) it is valid.
    ``is_over``: no event before its end is matched any more. Its automaton has the negations and groups of all
    versions."""

    automaton: Thompson
    arcs: Arcs
    predicates: tuple[int, ...]
    negations: tuple[int, ...]
    since: int | None
    until: int | None
    is_over: bool


def renumber_negations(
    automaton: Thompson,
    arcs: Arcs,
    negations: Sequence[int],
    groups: Sequence[int],
    everything: tuple[Sequence[Negated], Sequence[tuple[str, ...]]],
) -> tuple[Thompson, Arcs]:
    """Return an automaton and its arcs with other numbers of its ``negations`` and ``groups``; ``everything`` has those
    that they are among."""

    def renumber_crossings(crossings: Sequence[Crossing]) -> tuple[Crossing, ...]:
        return tuple(sorted(Crossing(negations[c.negation], tuple(groups[g] for g in c.entered)) for c in crossings))

    edges = []
    for edge in automaton.edges:
        numbers = {"negation": negations, "again": groups}.get(edge.kind)
        edges.append(edge if numbers is None else replace(edge, number=numbers[edge.number]))
    letters = tuple(replace(letter, groups=tuple(groups[g] for g in letter.groups)) for letter in automaton.letters)
    states = []
    for state in arcs.states:
        accepts = [Accept(accept.cost, renumber_crossings(accept.crossings)) for accept in state.accepts]
        states.append(replace(state, accepts=tuple(sorted(accepts, key=lambda accept: accept.crossings))))
    taking = [
        tuple(
            replace(a, crossings=renumber_crossings(a.crossings), resets=tuple(groups[g] for g in a.resets))
            for a in state_arcs
        )
        for state_arcs in arcs.arcs
    ]
    renumbered = replace(
        automaton, edges=tuple(edges), letters=letters, negations=tuple(everything[0]), groups=tuple(everything[1])
    )
    return renumbered, Arcs(tuple(states), tuple(taking))


def with_arcs(program: Program, arcs: Arcs) -> Program:
    """Return a program of the same arcs, which have other numbers of negations and groups."""
    both = zip(program.steps, arcs.arcs, strict=True)
    steps = tuple(
        tuple(replace(s, arc=arc) for s, arc in zip(state_steps, these, strict=True)) for state_steps, these in both
    )
    return replace(program, steps=steps)


def renumber_predicates(program: Program, predicates: Sequence[int]) -> Program:
    """Return a program with other numbers of its predicates, and the registers and checks in the order of these."""

    def register(old_register: Register) -> Register:
        return (
            replace(old_register, number=predicates[old_register.number])
            if old_register.kind == "frames"
            else old_register
        )

    def source(old_source: ValueSource) -> ValueSource:
        return replace(old_source, registers=tuple(map(register, old_source.registers)))

    def checks(old_checks: Sequence[Check]) -> tuple[Check, ...]:
        new_checks = [
            replace(
                old_check,
                predicate=predicates[old_check.predicate],
                sources=tuple(map(source, old_check.sources)),
                loops=tuple(map(register, old_check.loops)),
            )
            for old_check in old_checks
        ]
        return tuple(sorted(new_checks, key=lambda check: check.predicate))

    def step(old_step: Step) -> Step:
        frames = [
            replace(f, register=register(f.register), sources=tuple(map(source, f.sources))) for f in old_step.frames
        ]
        return replace(
            old_step,
            leaving=checks(old_step.leaving),
            binding=checks(old_step.binding),
            frames=tuple(sorted(frames, key=lambda f: f.register)),
        )

    return Program(
        tuple(tuple(sorted(map(register, layout))) for layout in program.layouts),
        tuple(tuple(map(step, state_steps)) for state_steps in program.steps),
        tuple(map(checks, program.ending)),
    )


def programs_of(parts: Sequence[VersionPart], programs: Sequence[Program]) -> tuple[Program, ...]:
    """Return the programs of all versions with the numbers that their predicates have among those of all."""
    return tuple(renumber_predicates(program, part.predicates) for part, program in zip(parts, programs, strict=True))


def join_versions(
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
    state_count = 0
    for i, (part, program) in enumerate(zip(parts, programs, strict=True)):
        same_states = _same_states(kinds[i - 1], programs[i - 1], kinds[i], program) if i else {}
        mine = list[int]()
        for local in range(len(part.arcs.states)):
            if i and local in same_states:
                mine.append(numbers[-1][same_states[local]])
            else:
                mine.append(state_count)
                state_count += 1
        numbers.append(tuple(mine))
    states: list[State | None] = [None] * state_count
    layouts: list[tuple[Register, ...]] = [()] * state_count
    ending: list[tuple[Check, ...]] = [()] * state_count
    steps: list[list[Step]] = [[] for _ in range(state_count)]
    arcs_so_far = 0
    for part, program, state_numbers in zip(parts, programs, numbers, strict=True):
        for state, number in zip(part.arcs.states, state_numbers, strict=True):
            earlier = states[number]
            costs = [None if earlier is None else earlier.cost_to_end, None if part.is_over else state.cost_to_end]
            remaining_cost = min((cost for cost in costs if cost is not None), default=None)
            states[number] = replace(state, number=number, cost_to_end=remaining_cost)
            layouts[number], ending[number] = program.layouts[state.number], program.ending[state.number]
            state_steps = program.steps[state.number]
            arcs_so_far += len(state_steps)
            if part.is_over and not crossed:
                continue
            for arc_number, step in enumerate(state_steps, arcs_so_far - len(state_steps)):
                arc = replace(step.arc, source=number, target=state_numbers[step.arc.target], number=arc_number)
                steps[number].append(replace(step, arc=replace(arc, since=part.since, until=part.until)))
    all_states = tuple(state for state in states if state is not None)
    taking = tuple(map(tuple, steps))
    arcs = Arcs(all_states, tuple(tuple(step.arc for step in state_steps) for state_steps in taking))
    return arcs, Program(tuple(layouts), taking, tuple(ending)), tuple(numbers)


_Value = tuple[str, str]
_Kind = tuple[str, tuple[str, ...], tuple[Accept, ...], tuple[Register, ...], tuple[Check, ...], frozenset[_Value]]


def _same_states(
    before: Sequence[_Kind], old_program: Program, after: Sequence[_Kind], new_program: Program
) -> dict[int, int]:
    """Return the states of a version that are states of the one before: the greatest relation in which two states have
    the same kind and are reached by the same steps from states that are related. The starts are one."""
    old_steps, new_steps = _steps_to_states(old_program), _steps_to_states(new_program)
    related = {b: {a for a in range(1, len(before)) if before[a] == after[b]} for b in range(1, len(after))}
    related[0] = {0}
    while True:
        changed = False
        for b in range(1, len(after)):
            still_related = {a for a in related[b] if _have_related_sources(old_steps[a], new_steps[b], related)}
            changed = changed or still_related != related[b]
            related[b] = still_related
        if changed:
            continue
        taken = [a for partners in related.values() for a in partners]
        unclear = [
            b for b, partners in related.items() if len(partners) > 1 or any(taken.count(a) > 1 for a in partners)
        ]
        if not unclear:
            return {b: next(iter(partners)) for b, partners in related.items() if partners}
        for b in unclear:
            related[b] = set()


def _kinds(part: VersionPart, program: Program, conditions: Conditions) -> list[_Kind]:
    """Return for each state what a partial match in it is told by, besides its way: its variable, its open repetitions,
    its ends, its registers, the checks at its end, and the values of its events that negations compare with."""
    leaves = [leaf for number in part.negations for condition in conditions[number] for leaf in leaves_of(condition)]
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


def _steps_to_states(program: Program) -> list[set[tuple[int, Step]]]:
    """Return the steps that lead to each state with their sources; the steps themselves have no ends."""
    steps_to: list[set[tuple[int, Step]]] = [set() for _ in program.layouts]
    for state_steps in program.steps:
        for step in state_steps:
            bare: Arc = replace(step.arc, source=0, target=0)
            steps_to[step.arc.target].add((step.arc.source, replace(step, arc=bare)))
    return steps_to


def _have_related_sources(old: set[tuple[int, Step]], new: set[tuple[int, Step]], related: dict[int, set[int]]) -> bool:
    """Return whether each way to a state has its like among those to another one, in both directions."""
    forth = all(any(step == other and a in related[b] for b, other in new) for a, step in old)
    return forth and all(any(step == other and a in related[b] for a, other in old) for b, step in new)
