"""Extend a plan by open matches: those that rows decide which have not come yet.

While a partition goes on, a row stands behind its rows for all that may come: the *open row*. Each state that waits for
a row, or for the end of the partition, takes it too, and then accepts. So the preferred way either ends before it, and
then no later row changes it, or leads over it. No state waits for it before a match has its first row: nothing begins
there.
"""

from __future__ import annotations

from dataclasses import replace

from acep.errors import QueryError
from acep.pattern import expressions as ex
from acep.pattern.walk import leaves_of
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.plan.ordered.pattern_states import MOST_STATES, PatternStates, StateKind
from acep.plan.ordered.row_references import NUMBER, MatchNumber, Navigation, RowAggregate

__all__ = ["OPEN", "add_open_matches", "has_state", "reach_ahead", "reach_behind", "reads_number"]

OPEN = ""
"""The variable of the open row; no variable of a pattern has this name."""


def add_open_matches(plan: OrderedPlan) -> OrderedPlan:
    """Return a plan that also gives open matches: their last row has the variable :data:`OPEN`."""
    return replace(plan, states=add_open_row(plan.states), spellings=(*plan.spellings, (OPEN, OPEN)))


def add_open_row(pattern: PatternStates) -> PatternStates:
    """Return the states of a pattern with those that take the open row; its label is the last one. Raises
    :class:`QueryError` if there are too many.

    >>> pattern = PatternStates(((0, 1, 0), (0, 2, 1), (5, 0, 0)), (("a", False), ("b", False)))
    >>> for line in add_open_row(pattern).lines():
    ...     print(line)
    0: row a, then 1
    1: prefer 4, else 3
    2: accept
    3: row , then 2
    4: row b, then 2
    """
    states = list(pattern.states)
    accept = next((n for n, (kind, *_) in enumerate(states) if kind == StateKind.ACCEPT), None)
    waiting = [n for n in _behind_a_row(pattern) if states[n][0] in (StateKind.ROW, StateKind.END)]
    labels = (*pattern.labels, (OPEN, False))
    missing_rows = (*pattern.missing_rows, 0) if pattern.missing_rows else ()
    if accept is None or not waiting:
        return PatternStates(tuple(states), labels, missing_rows)
    open_row = len(states)
    states.append((int(StateKind.ROW), accept, len(pattern.labels)))
    for number in waiting:
        states.append(states[number])
        states[number] = (int(StateKind.SPLIT), len(states) - 1, open_row)
    if len(states) > MOST_STATES:
        raise QueryError(f"the pattern has more than {MOST_STATES} states on a stream, where most count twice",
                         hint="its quantifiers are too large", code="query_size")  # fmt: skip
    return PatternStates(tuple(states), labels, missing_rows)


def _behind_a_row(pattern: PatternStates) -> list[int]:
    """Return the states that can be reached once a match has its first row."""
    pending = [following for kind, following, _ in pattern.states if kind == StateKind.ROW]
    reached: set[int] = set()
    while pending:
        number = pending.pop()
        if number in reached:
            continue
        reached.add(number)
        kind, following, other = pattern.states[number]
        if kind != StateKind.ACCEPT:
            pending.append(following)
        if kind == StateKind.SPLIT:
            pending.append(other)
    return sorted(reached)


def has_state(plan: OrderedPlan, kind: StateKind) -> bool:
    """Return whether the pattern has a state of a kind."""
    return any(state[0] == kind for state in plan.states.states)


def reach_behind(plan: OrderedPlan) -> int:
    """Return how many rows before the first row of a match are read. For ``^`` it is one at least, which tells the
    first row of a partition from others."""
    shifts = [-reference.shift for reference in plan.references if isinstance(reference, Navigation)]
    return max([0, int(has_state(plan, StateKind.START)), *shifts])


def reach_ahead(plan: OrderedPlan) -> int:
    """Return how many rows behind the last row of a match are read."""
    return max([0, *(reference.shift for reference in plan.references if isinstance(reference, Navigation))])


def reads_number(plan: OrderedPlan) -> bool:
    """Return whether the numbers of matches matter to conditions or measures."""
    names = [leaf.name for _, typed in plan.mapped for leaf in leaves_of(typed.expr) if isinstance(leaf, ex.Attribute)]
    for reference in plan.references:
        if isinstance(reference, MatchNumber):
            return True
        names.append(reference.column or "")
        names += reference.arguments if isinstance(reference, RowAggregate) else ()
    return NUMBER in names
