"""Find the matches of one event: an event with a null in an attribute that equalities tie is in no other match."""

from __future__ import annotations

from acep.pattern.expressions import Value
from acep.plan.compile import Plan
from acep.reference.engine import Event
from acep.reference.runtime import Partition, ReferenceRuntime

__all__ = ["SingleEvents", "matches_one_event"]


def matches_one_event(plan: Plan) -> bool:
    """Return whether a match of a plan, which is not contiguous, may bind one event only."""
    states, budget = plan.arcs.states, plan.automaton.costs.budget
    begun = ((arc.weight, states[arc.target]) for arc in plan.arcs.arcs[0])
    return any(weight + accept.cost <= budget for weight, state in begun for accept in state.accepts)


class SingleEvents(ReferenceRuntime):
    """A runtime that gives each event up once it has ended the matches of one event."""

    def _feed(self, key: tuple[Value, ...], partition: Partition, event: Event, kind: str | None) -> None:
        super()._feed(key, partition, event, kind)
        partition.nodes.clear()
