"""Dumps of automata: one line a thing; whole ones are compared in ``tests/explain/test_stages.py``."""

from __future__ import annotations

from collections.abc import Callable

import acep
from acep.automaton.arcs import compose
from acep.automaton.thompson import build
from acep.explain.automaton_text import arcs_lines, program_lines, thompson_lines
from acep.plan.assume import assumed_plan
from tests.complaints import fail_if_wrong
from tests.random_cases import Case, random_case


def program(where: str, pattern: str = "SEQ(A+ a[], B b)") -> list[str]:
    plan = assumed_plan(acep.parse(f"PATTERN {pattern} WHERE {where}"))
    return [line.strip() for line in program_lines(plan.program, [p.expr for p in plan.predicates])]


def arcs(text: str, **options: object) -> list[str]:
    automaton = build(acep.parse(text, **options))  # type: ignore[arg-type]
    return [line.strip() for line in arcs_lines(compose(automaton), automaton)]


def test_every_edge_arc_and_check_has_a_line(cases: Callable[[int], int]) -> None:
    for seed in range(cases(200)):
        fail_if_wrong(random_case(seed), check_lines)


def check_lines(case: Case) -> None:
    plan = assumed_plan(case.query())
    automaton = plan.automaton
    lines = thompson_lines(automaton)
    parts = (automaton.places, automaton.edges, automaton.letters, automaton.negations, automaton.groups)
    assert len(lines) == 1 + sum(map(len, parts))
    lines = arcs_lines(plan.arcs, automaton)
    accepts = sum(len(state.accepts) for state in plan.arcs.states)
    assert len(lines) == len(plan.arcs.states) + sum(map(len, plan.arcs.arcs)) + accepts
    lines = program_lines(plan.program, [p.expr for p in plan.predicates])
    steps = [step for here in plan.program.steps for step in here]
    checks = sum(len(step.leaving) + len(step.binding) for step in steps) + sum(map(len, plan.program.ending))
    assert sum(line.lstrip().startswith(("checks", "drops", "on leaving", "at the end")) for line in lines) == checks


def test_costs_are_those_of_the_user() -> None:
    lines = arcs("PATTERN SEQ(A a, B b, C c)", errors=1.5, weights={"a": 0.5})
    assert "-> 2 (b), missing 1/2" in lines
    assert "-> 3 (c), missing 3/2" in lines
    assert lines.count("ends, missing 1") == 1


def test_negations_groups_and_repetitions() -> None:
    lines = arcs("PATTERN SEQ((A a, ~B b, C+ c[])+, D d, ~E e) WITHIN 5")
    assert "=> 2 (c), past n0 (no b)" in lines
    assert "-> 1 (a), again g0, closes c" in lines
    assert "ends, past n1 (no e)" in lines
    text = "\n".join(
        thompson_lines(build(acep.parse("PATTERN SEQ(~X x, (A|B) a, ~ANY y, C c) WITHIN 5", weights={"y": 2})))
    )
    assert "letter 1: a of A|B" in text
    assert "negation n0: no x of X; leading" in text
    assert "negation n1: no y of ANY; between; each costs 2" in text


def test_what_is_remembered() -> None:
    lines = program("a[i].x > avg(a[..i-1].x) AND b.x > a[2].x AND b.y > min(a[].y) AND b.z = a.LEN")
    assert "a[2].x = event.x if it is event 2" in lines
    assert "count(a[]) += 1" in lines
    assert "min(a[].y) = min(itself, event.y)" in lines
    assert "nonnull(a[].x) += 1 if event.x is known" in lines
    assert "sum(a[].x) += event.x" in lines
    assert "drops p0: a[i].x > avg(a[..i-1].x), as nonnull(a[].x) is unbound" in lines
    assert "checks p0: a[i].x > avg(a[..i-1].x)  [event.x, sum(a[].x) / nonnull(a[].x)]" in lines


def test_frames_and_turns() -> None:
    lines = program("a.x > b.x")
    assert "a[].frames(p0) += (event.x)" in lines
    assert "checks p0: a.x > b.x  [a[].frames(p0)[0], event.x], for each of a[].frames(p0)" in lines
    lines = program("a[2].x > b.x", "SEQ(B b, A+ a[])")
    assert "checks p0: a[2].x > b.x  [event.x, b[last].x], only when count(a[]) is 1" in lines


def test_repetitions_as_a_whole() -> None:
    assert "on leaving checks p0: count(a[]) > 1  [count(a[])]" in program("count(a[]) > 1")
    assert "at the end checks p0: count(a[]) > 1  [count(a[])]" in program("count(a[]) > 1", "SEQ(B b, A+ a[])")


def test_forgetting() -> None:
    assert "forgets b[last].x" in program("c.x > b.x", "SEQ((A a, B b)+, C c)")


def test_a_predicate_that_cannot_be_decided_is_named() -> None:
    assert "never decided: p0: a.x = b.x + 1" in program("a.x = b.x + 1", "(A a | B b)")
