"""Registers: each state keeps what is read later and nothing else; predicates stand where they can be decided first."""

from __future__ import annotations

from collections.abc import Callable

import acep
from acep.automaton.registers import Check, Program, Register, Step
from acep.pattern.walk import leaves_of
from acep.plan.assume import assumed_plan
from acep.plan.compile import Plan
from tests.complaints import fail_if_wrong
from tests.random_cases import random_case


def check_plans(number: int, check: Callable[[Plan], None]) -> None:
    """Check the plan of each of so many random cases."""
    for seed in range(number):
        fail_if_wrong(random_case(seed), lambda case: check(assumed_plan(case.query())))


def plan_of(where: str, pattern: str = "SEQ(A+ a[], B b)", **options: object) -> Plan:
    query = acep.parse(f"PATTERN {pattern} WHERE {where}", **options)  # type: ignore[arg-type]
    return assumed_plan(query)


# What is read later -----------------------------------------------------------------------------


def read_by(check: Check) -> set[Register]:
    found = {register for source in check.sources for register in source.registers} | set(check.loops)
    return found | ({check.only[0]} if check.only is not None else set())


def read_at_once(step: Step) -> set[Register]:
    """The registers whose value before the step decides whether it is made."""
    leaving = {r for check in step.leaving for r in read_by(check)}
    return leaving | {r for check in step.binding for r in read_by(check) if r.var not in step.forgets}


def read_for(register: Register, step: Step) -> set[Register]:
    """The registers whose value before the step goes into the value of one after it."""
    found: set[Register] = {register}
    if register.var == step.arc.var:
        if register.kind == "last":
            found = set()
        elif register.kind == "nth" and register.number > 1:
            found = {register, Register("count", register.var)}
        elif register.kind == "frames":
            (frame,) = (f for f in step.frames if f.register == register)
            found = {register, *(r for source in frame.sources for r in source.registers)}
    return {r for r in found if r.var not in step.forgets}


def live(program: Program) -> set[tuple[int, Register]]:
    """(state, register) pairs that some way onward reads: grown from the reads, backwards."""
    found = {
        (state, register)
        for state, checks in enumerate(program.ending)
        for check in checks
        for register in read_by(check)
    }
    found |= {(state, r) for state, here in enumerate(program.steps) for step in here for r in read_at_once(step)}
    grown = True
    while grown:
        more = {
            (state, before)
            for state, here in enumerate(program.steps)
            for step in here
            for target, register in found
            if target == step.arc.target and register in program.layouts[target]
            for before in read_for(register, step)
        }
        grown = not more <= found
        found |= more
    return found


def may_hold(plan: Plan) -> list[set[str]]:
    """For each state the variables with an event in some run there."""
    states = [(0, frozenset[str]())]
    seen = set(states)
    while states:
        state, bound = states.pop()
        for step in plan.program.steps[state]:
            there = (step.arc.target, bound - set(step.forgets) | {step.arc.var})
            if there not in seen:
                seen.add(there)
                states.append(there)
    return [{v for s, bound in seen if s == state for v in bound} for state in range(len(plan.arcs.states))]


def test_a_state_keeps_what_is_read_later_and_nothing_else(cases: Callable[[int], int]) -> None:
    check_plans(cases(300), check_registers)


def check_registers(plan: Plan) -> None:
    program, bound = plan.program, may_hold(plan)
    needed = live(program)
    for state, layout in enumerate(program.layouts):
        wanted = {r for s, r in needed if s == state and r.var in bound[state]}
        assert set(layout) == wanted
        assert list(layout) == sorted(set(layout))


# Where predicates stand -------------------------------------------------------------------------


def test_predicates_stand_where_one_of_their_variables_is_bound_or_left(cases: Callable[[int], int]) -> None:
    check_plans(cases(300), check_places_of_predicates)


def check_places_of_predicates(plan: Plan) -> None:
    variables = [{leaf.var for leaf in leaves_of(p.expr)} for p in plan.predicates]
    bound = may_hold(plan)
    for state, here in enumerate(plan.program.steps):
        for step in here:
            for check in step.binding:
                assert step.arc.var in variables[check.predicate]
            for check in step.leaving:
                assert set(step.arc.closes) & variables[check.predicate]
                assert variables[check.predicate] <= bound[state]
            assert set(step.forgets) == {v for g in step.arc.resets for v in plan.automaton.groups[g]}
            for frame in step.frames:
                assert frame.register in plan.program.layouts[step.arc.target]
    for state, checks in enumerate(plan.program.ending):
        assert plan.arcs.states[state].accepts or not checks


def test_predicates_of_one_event_are_checked_wherever_it_is_bound(cases: Callable[[int], int]) -> None:
    check_plans(cases(300), check_predicates_of_one_event)


def check_predicates_of_one_event(plan: Plan) -> None:
    for number, predicate in enumerate(plan.predicates):
        leaves = leaves_of(predicate.expr)
        names = {leaf.var for leaf in leaves}
        if len(names) > 1 or names & plan.kleene:
            continue
        for here in plan.program.steps:
            for step in here:
                checked = number in {check.predicate for check in step.binding}
                assert checked == (step.arc.var in names)


def test_cheap_checks_come_first(cases: Callable[[int], int]) -> None:
    check_plans(cases(100), check_costs)


def check_costs(plan: Plan) -> None:
    for here in plan.program.steps:
        for step in here:
            costs = [(bool(read_by(check)), len(check.loops)) for check in step.binding]
            assert costs == sorted(costs)


# Examples ---------------------------------------------------------------------------------------


def kept(plan: Plan) -> list[list[str]]:
    return [[str(register) for register in layout] for layout in plan.program.layouts]


def decided(plan: Plan) -> list[tuple[str, int, str]]:
    """(kind, state, variable bound) of every check of predicate 0."""
    found = []
    for state, here in enumerate(plan.program.steps):
        for step in here:
            found += [("leaving", state, step.arc.var) for check in step.leaving if check.predicate == 0]
            found += [("binding", state, step.arc.var) for check in step.binding if check.predicate == 0]
    found += [("end", s, "") for s, checks in enumerate(plan.program.ending) for c in checks if c.predicate == 0]
    return found


def test_aggregates_are_kept_as_running_values() -> None:
    plan = plan_of("a[i].x > avg(a[..i-1].x) AND b.y > max(a[].y)")
    assert kept(plan) == [[], ["max(a[].y)", "nonnull(a[].x)", "sum(a[].x)"], []]


def test_an_index_keeps_one_value() -> None:
    assert kept(plan_of("a[1].x > b.x")) == [[], ["a[1].x"], []]
    assert kept(plan_of("a[a.LEN].x > b.x")) == [[], ["a[last].x"], []]
    assert kept(plan_of("a[2].x > b.x")) == [[], ["count(a[])", "a[2].x"], []]


def test_each_event_against_a_later_one_keeps_frames() -> None:
    assert kept(plan_of("a.x > b.x")) == [[], ["a[].frames(p0)"], []]
    # The other way round each event of the repetition is checked as it comes.
    assert kept(plan_of("a.x > b.x", "SEQ(B b, A+ a[])")) == [[], ["b[last].x"], ["b[last].x"]]


def test_an_event_alone_keeps_nothing() -> None:
    plan = plan_of("a.x > 1 AND b.y < 2")
    assert kept(plan) == [[], [], []]
    assert decided(plan) == [("binding", 0, "a"), ("binding", 1, "a")]


def test_a_repetition_as_a_whole_is_decided_when_it_is_left() -> None:
    assert decided(plan_of("count(a[]) > 2")) == [("leaving", 1, "b")]
    assert decided(plan_of("count(a[]) > 2", "SEQ(B b, A+ a[])")) == [("end", 2, "")]
    assert decided(plan_of("count(a[]) > b.x")) == [("binding", 1, "b")]


def test_the_partition_needs_no_register() -> None:
    plan = plan_of("a.id = b.id")
    assert plan.finer is not None
    assert (kept(plan), kept(plan.finer)) == ([[], ["a[1].id"], []], [[], [], []])
    assert kept(plan_of("[id]")) == [[], [], []]


def test_entering_an_iteration_forgets_the_one_before() -> None:
    plan = plan_of("b.x > a.x AND c.x > b.x", "SEQ((A a, B b)+, C c)")
    (again,) = (step for step in plan.program.steps[2] if step.arc.var == "a")
    assert again.forgets == ("a", "b")
    assert kept(plan) == [[], ["a[last].x"], ["b[last].x"], []]
