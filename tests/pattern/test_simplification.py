"""What the front end simplifies means the same before and after, as the enumeration in ``tests/oracle.py`` says."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import pytest

from acep.pattern.text.quantifiers import repeat
from acep.pattern.tree import Component, EventSet, Node, Query, Repeat, Sequence, Strategy
from tests.complaints import difference, fail_if_wrong_on_rows
from tests.oracle import TooManyStepsError, oracle

BOUNDS = [(0, 1), (0, 2), (0, None), (1, 2), (1, None), (2, 2), (2, 3), (2, None), (3, 3)]
A, B, Z = Component("a", ("a",)), Component("b", ("b",)), Component("z", ("z",))


def pairs() -> list[tuple[str, Node, Node]]:
    """(name, a pattern, its simplification) where there is one."""
    found: list[tuple[str, Node, Node]] = []
    for inner, outer in product(BOUNDS, BOUNDS):
        before: Node = Repeat(Repeat(A, *inner), *outer)
        after = repeat(Repeat(A, *inner), *outer, ())
        if before != after:
            found.append((f"{inner} in {outer}", before, after))
    found += [(f"a set of one, {b}", EventSet((Repeat(A, *b),)), Repeat(A, *b)) for b in BOUNDS]
    return [*found, ("a set of one", EventSet((A,)), A)]


PAIRS = pairs()


def test_there_are_simplifications() -> None:
    assert len(PAIRS) > 25


@pytest.mark.parametrize(("before", "after"), [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_simplification_changes_nothing(before: Node, after: Node) -> None:
    rng = random.Random(str(before))
    for _ in range(25):
        first = rng.choice([(), (Component("y", ("b",)),), (Z,)])
        last = rng.choice([(), (B,), (B, Component("x", ("z",)))])
        events = [{"ts": t, "type": rng.choice("aaabz")} for t in range(rng.randint(3, 6))]
        strategy, errors = rng.choice(list(Strategy)), Fraction(rng.choice([0, 0, 1, 2]))
        if strategy.contiguous:  # there the number of what may be missing is that of one repetition
            errors = Fraction(0)
        title = f"{strategy.value}, {errors} errors, between {first} and {last}:\n{before}\n{after}"
        complaint_of = partial(complaint_of_simplification, before, after, first, last, strategy, errors)
        fail_if_wrong_on_rows(events, title, complaint_of)


def complaint_of_simplification(
    before: Node,
    after: Node,
    first: tuple[Node, ...],
    last: tuple[Node, ...],
    strategy: Strategy,
    errors: Fraction,
    events: list[Any],
) -> str:
    """Say what a pattern between two others finds and its simplification does not; nothing if it takes too long."""
    answers = []
    for node in (before, after):
        pattern = Sequence((*first, node, *last)) if first or last else node
        try:
            matches = oracle(Query("", pattern, strategy=strategy, errors=errors), events)
        except TooManyStepsError:
            return ""
        answers.append([(match.bindings, match.error) for match in matches])
    return difference(*answers, ("before", "after"))
