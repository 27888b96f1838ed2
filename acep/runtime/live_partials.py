"""List the live partial matches of an engine, or say why an engine has none to list."""

from __future__ import annotations

from collections.abc import Sequence

from acep.errors import EngineError
from acep.matches.partials.partial_columns import PartialColumns, sorted_columns
from acep.matches.records import Found
from acep.reference.engine import MatchNode, bound_events
from acep.reference.runtime import Key, ReferenceRuntime

__all__ = ["check_lists", "partials_of"]

LISTS = ("nodes", "merged")
"""The engines that keep partial matches with their events."""


def check_lists(engine: str) -> None:
    """Raise :class:`EngineError` for a native engine, by its name without prefixes, that keeps no partial matches with
    their events.

    >>> check_lists("nodes")
    """
    if engine in LISTS:
        return
    why = "counts partial matches, and does not keep their events"
    if engine == "search":
        why = "keeps no partial matches: it looks for the events of a match once the last one has come"
    elif engine == "dominance":
        why = "keeps no events of partial matches, as only match points are asked for"
    raise EngineError(
        f"the partial matches cannot be listed: the engine `{engine}` {why}",
        hint='a Matcher without output= lists them, and so does engine="reference"',
    )


def partials_of(runtime: ReferenceRuntime, limit: int, states: Sequence[int]) -> PartialColumns:
    """Return the ``limit`` last partial matches of a reference runtime in some states."""
    rows = []
    for key, node in runtime.live_nodes(frozenset(states)):
        position = runtime.position if runtime.plan.strict else runtime.partitions[key].position
        if not runtime.engine.is_stuck(node, position - 1):
            rows.append((_record(runtime, key, node), node.state))
    return sorted_columns(PartialColumns.of_rows(rows, len(rows)), limit)


def _record(runtime: ReferenceRuntime, key: Key, node: MatchNode) -> Found:
    plan, steps = runtime.plan, node.trail.steps()
    bound = bound_events(steps)
    return Found(
        key=key,
        start=node.trail.first.ts,
        end=node.trail.event.ts,
        error=plan.automaton.costs.unscale(node.error),
        bindings=tuple((var, tuple(event.id for event in bound[var])) for var in plan.variables if var in bound),
        bundle=0,
        trail=tuple((event.id, var) for event, var in steps),
    )
