"""Find the states of an automaton through which the events of a match lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acep.automaton.arcs import compose
from acep.automaton.thompson import build
from acep.pattern.tree import Query, StateGraph

__all__ = ["WalkSteps", "find_walk", "steps_of_query"]

MOST_STEPS = 2_000
"""The most events of a match of which the states are found."""


@dataclass(frozen=True)
class WalkSteps:
    """The steps of an automaton: by state and variable the states to which it may lead, with what that costs, and the
    states in which it may end, with what that costs. States are the numbers that its drawing has."""

    onward: dict[tuple[int, str], tuple[tuple[int, int], ...]]
    ends: dict[int, int]
    start: int = 0


def steps_of_query(query: Query) -> WalkSteps:
    """Return the steps of the automaton of a query. Raises :class:`QueryError` if it is too large."""
    onward: dict[tuple[int, str], list[tuple[int, int]]] = {}
    if query.graph is not None:
        return _steps_of_graph(query.graph)
    arcs = compose(build(query))
    for state_arcs in arcs.arcs:
        for arc in state_arcs:
            onward.setdefault((arc.source, arc.var), []).append((arc.target, arc.weight))
    ends = {state.number: min(accept.cost for accept in state.accepts) for state in arcs.states if state.accepts}
    return WalkSteps({key: tuple(targets) for key, targets in onward.items()}, ends)


def find_walk(steps: WalkSteps, variables: Sequence[str]) -> tuple[int, ...]:
    """Return the states after each of the variables, on the cheapest way to an end; empty if there is no way.

    >>> from acep.pattern.text.letters import regex
    >>> find_walk(steps_of_query(regex("a(b|c)d", within=5)), ["a", "c", "d"])
    (1, 3, 4)
    >>> find_walk(steps_of_query(regex("ab", within=5)), ["b", "a"])
    ()
    """
    if len(variables) > MOST_STEPS:
        return ()
    costs = {steps.start: 0}
    sources: list[dict[int, int]] = []
    for variable in variables:
        next_costs: dict[int, int] = {}
        source_of: dict[int, int] = {}
        for state, cost in costs.items():
            for target, weight in steps.onward.get((state, variable), ()):
                if target not in next_costs or cost + weight < next_costs[target]:
                    next_costs[target], source_of[target] = cost + weight, state
        costs = next_costs
        sources.append(source_of)
    ends = [(cost + steps.ends[state], state) for state, cost in costs.items() if state in steps.ends]
    if not ends or not variables:
        return ()
    walk = [min(ends)[1]]
    for source_of in reversed(sources[1:]):
        walk.append(source_of[walk[-1]])
    return tuple(reversed(walk))


def _steps_of_graph(graph: StateGraph) -> WalkSteps:
    """Return the steps of a hand-written automaton; arcs that bind no event lead on at once."""
    number = {name: place for place, name in enumerate(graph.states)}
    reached = {name: _reached_without_event(graph, name) for name in graph.states}
    onward: dict[tuple[int, str], tuple[tuple[int, int], ...]] = {}
    for name in graph.states:
        for arc in graph.arcs:
            if arc.source in reached[name] and not arc.epsilon and not arc.ignorable:
                key = number[name], arc.var
                onward[key] = (*onward.get(key, ()), (number[arc.target], 0))
    ends = {number[name]: 0 for name in graph.states if reached[name] & {*graph.final}}
    return WalkSteps(onward, ends, number[graph.start])


def _reached_without_event(graph: StateGraph, name: str) -> set[str]:
    reached, pending = {name}, [name]
    while pending:
        state = pending.pop()
        new_states = {arc.target for arc in graph.arcs if arc.epsilon and arc.source == state} - reached
        reached |= new_states
        pending += new_states
    return reached
