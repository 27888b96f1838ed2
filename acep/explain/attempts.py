"""Try an event on the arcs of a partial match, and count the conditions that hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acep.plan.compile import Plan
from acep.reference.engine import Event, MatchNode, ReferenceEngine
from acep.reference.program import Move

__all__ = ["Attempt", "attempts"]


@dataclass(frozen=True)
class Attempt:
    """An arc that a partial match did not take although the event has a type of it. ``failed``: the numbers of the
    predicates that do not hold, in the order of the query; ``n_held``: how many do hold. ``error``: the scaled error
    of the partial match after the arc, where that is beyond the error budget (``None``: it is not). ``surplus``: how
    many events lie between where these break contiguity, and how many of them may come in place of missing ones."""

    move: Move
    failed: tuple[int, ...]
    n_held: int
    error: int | None
    surplus: tuple[int, int] | None = None

    @property
    def distance(self) -> tuple[int, int]:
        """Return a sort key, the nearest attempt first: what failed, and of equal ones that where more held."""
        return len(self.failed) + (self.error is not None or self.surplus is not None), -self.n_held


def attempts(engine: ReferenceEngine, node: MatchNode | None, event: Event, kind: str | None) -> Iterator[Attempt]:
    """Yield the failed attempts to bind an event of type ``kind`` to a partial match, or to begin one (``None``).

    An equality that follows from others is left out where one that the user wrote fails as well.
    """
    state, registers, so_far = (0, (), 0) if node is None else (node.state, node.registers, node.error)
    between = 0 if node is None or engine.graph is not None else event.position - node.trail.event.position - 1
    for move in engine.moves[state]:
        arc = move.arc
        if (arc.types and kind not in arc.types) or not arc.valid(event.ts):
            continue
        if so_far + arc.weight + engine.least_remaining_cost(arc) > engine.budget:
            continue  # no event may take it
        failed = move.failures(registers, event.row)
        error = so_far + engine.cost(arc, between)
        is_affordable = error + engine.least_remaining_cost(arc) <= engine.budget
        surplus = None
        if engine.strategy.contiguous and engine.plan.automaton.costs.of_gap(arc.gaps, between) is None:
            surplus = between, max(letters for _, letters in arc.gaps)
        if failed or not is_affordable:
            predicates = [number for number, _ in (*move.leaving, *move.binding)]
            written = [number for number in failed if is_written(engine.plan, number)]
            n_held = sum(is_written(engine.plan, number) for number in predicates) - len(written)
            beyond = None if is_affordable or surplus is not None else error
            yield Attempt(move, tuple(written or failed), n_held, beyond, surplus)


def is_written(plan: Plan, number: int) -> bool:
    """Return whether a predicate is in the text of the query; others follow from its equalities."""
    return plan.predicates[number].written.span is not None
