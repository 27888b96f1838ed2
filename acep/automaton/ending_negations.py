"""Find the negations that end a partial match for good, so that it need not be kept: the next b in `SEQ(a, ~b, c)`.

A negation between two bound events looks at the events between them. So once an event breaks it behind the last event
that was bound, each later event that could be bound comes too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from acep.automaton.arcs import Arc, Arcs
from acep.automaton.registers import (
    Check,
    Ending,
    Program,
    Register,
    ValueSource,
    layouts_from,
    may_be_bound,
    must_be_bound,
)
from acep.automaton.thompson import Negated, Thompson
from acep.pattern import expressions as ex
from acep.pattern.walk import leaves_of

__all__ = ["with_ending_negations"]

Conditions = Sequence[Sequence[ex.Expr]]


def with_ending_negations(
    program: Program,
    automaton: Thompson,
    arcs: Arcs,
    predicates: Sequence[ex.Expr],
    negated: Conditions,
    *,
    endless: bool,
) -> Program:
    """Return a program that also says which events end the partial matches in each state.

    ``negated``: the conditions of each negation. ``endless``: partial matches do not expire, so values are kept for
    this that nothing else needs.
    """
    if not automaton.negations and not endless:
        return replace(program, ended=((),) * len(arcs.arcs))
    surely = must_be_bound(automaton, arcs)
    endings_of = [
        _endings(automaton, leaving, surely[state], predicates, negated) for state, leaving in enumerate(arcs.arcs)
    ]
    if endless:
        needed = [set(layout) for layout in program.layouts]
        for state, endings in enumerate(endings_of):
            needed[state] |= {register for ending in endings for register in ending.reads()}
        layouts = layouts_from(needed, program.steps, may_be_bound(automaton, arcs))
        program = replace(program, layouts=tuple(tuple(sorted(layout)) for layout in layouts))
    ended = (
        tuple(ending for ending in endings if ending.reads() <= set(layout))
        for endings, layout in zip(endings_of, program.layouts, strict=True)
    )
    return replace(program, ended=tuple(ended))


def _endings(
    automaton: Thompson, arcs: Sequence[Arc], surely: frozenset[str], predicates: Sequence[ex.Expr], negated: Conditions
) -> list[Ending]:
    """Return what ends the partial matches in a state, all of whose arcs go past the negation."""
    crossed = [{crossing.negation for crossing in arc.crossings} for arc in arcs]
    endings = []
    for number in sorted(set.intersection(*crossed)) if crossed else ():
        negation = automaton.negations[number]
        if negation.weight is not None or negation.leading:
            continue
        following = frozenset({arcs[0].var} if len({arc.var for arc in arcs}) == 1 else ())  # what is bound next
        free = surely - {v for group in automaton.groups for v in group} - automaton.kleene
        checks = _checks(negation, number, free, following - automaton.kleene, predicates, negated)
        if checks is not None:
            endings.append(Ending(number, checks))
    return endings


def _checks(
    negation: Negated,
    number: int,
    bound: frozenset[str],
    following: frozenset[str],
    predicates: Sequence[ex.Expr],
    negated: Conditions,
) -> tuple[Check, ...] | None:
    """Return the checks of an event that breaks a negation, on values of the variables ``bound`` alone; ``None`` if
    they do not decide it. ``following`` has the variable that is bound next."""
    first = len(predicates) + sum(len(conditions) for conditions in negated[:number])
    checks = []
    for index, condition in enumerate(negated[number]):
        leaves = leaves_of(condition)
        referenced = {leaf.var for leaf in leaves} - {negation.var}
        if referenced <= bound and all(isinstance(leaf, ex.Attribute) and leaf.index is None for leaf in leaves):
            sources = tuple(_source(leaf, negation.var) for leaf in leaves if isinstance(leaf, ex.Attribute))
            checks.append(Check(first + index, sources, ()))
        elif not (referenced <= following and _is_implied(condition, negation.var, bound, predicates, negated[number])):
            return None
    return tuple(checks)


def _source(leaf: ex.Attribute, var: str) -> ValueSource:
    if leaf.var == var:
        return ValueSource("event", name=leaf.name)
    return ValueSource("register", (Register("last", leaf.var, leaf.name),))


def _is_implied(
    condition: ex.Expr, var: str, bound: frozenset[str], predicates: Sequence[ex.Expr], conditions: Sequence[ex.Expr]
) -> bool:
    """Return whether the equality of an attribute of ``var`` and one of an event that is bound later follows from two
    others: with one of a variable that is bound, and of that one with the later event."""
    sides = _equal(condition)
    if sides is None:
        return False
    negated, later = sides if sides[0].var == var else sides[::-1]
    pairs = [pair for further in conditions if (pair := _equal(further)) is not None and negated in pair]
    between = {attribute for pair in pairs for attribute in pair if attribute.var in bound}
    equalities = [set(pair) for predicate in predicates if (pair := _equal(predicate)) is not None]
    return any({attribute, later} in equalities for attribute in between)


def _equal(condition: ex.Expr) -> tuple[ex.Attribute, ex.Attribute] | None:
    """Return the sides of an equality of two plain attributes without their places in the text."""
    match condition:
        case ex.Binary(op="=", left=ex.Attribute(index=None) as left, right=ex.Attribute(index=None) as right):
            return ex.Attribute(left.var, None, left.name), ex.Attribute(right.var, None, right.name)
    return None
