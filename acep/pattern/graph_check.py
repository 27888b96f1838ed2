"""Check that the parts of a hand-written automaton fit together: its states, registers and epsilon arcs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from acep.errors import QueryError, suggest
from acep.pattern import expressions as ex
from acep.pattern.tree import GraphArc, StateGraph
from acep.pattern.walk import children, levels

__all__ = ["EVENT", "REGISTER", "check_cycles", "check_graph", "check_registers", "references"]

EVENT: Final = "e"
REGISTER: Final = "r"


def check_graph(graph: StateGraph, *, everywhere: bool = True) -> None:
    """Raise :class:`QueryError` for a graph whose parts do not fit together. ``everywhere``: arcs must lead to each
    final state."""
    if not graph.final or not all(isinstance(name, str) and name for name in graph.final):
        raise QueryError("an automaton needs final states", hint='final="end"')
    check_registers(graph, graph.arcs)
    reached, todo = {graph.start}, [graph.start]
    while todo:
        state = todo.pop()
        for graph_arc in graph.arcs:
            if graph_arc.source == state and graph_arc.target not in reached:
                reached.add(graph_arc.target)
                todo.append(graph_arc.target)
    for name in graph.final if everywhere else ():
        if name not in reached:
            raise QueryError(
                f"no arcs lead from `{graph.start}` to the final state `{name}`", hint=suggest(name, reached)
            )
    check_cycles(graph.arcs)
    if not graph.variables:
        raise QueryError("no arc of the automaton binds an event")


def check_registers(graph: StateGraph, arcs: Iterable[GraphArc]) -> None:
    """Raise :class:`QueryError` for an arc that names a register that the graph does not have."""
    registers = {register.name for register in graph.registers}
    for graph_arc in arcs:
        for name, _ in graph_arc.transfer:
            if name not in registers:
                where = f"arc {graph_arc.source} -> {graph_arc.target}"
                raise QueryError(
                    f"{where}: there is no register `{name}`", hint=suggest(name, registers), code="query_name"
                )
        for expr in (graph_arc.fence, *(value for _, value in graph_arc.transfer)):
            for leaf in references(expr):
                assert isinstance(leaf, ex.Attribute)
                if leaf.var == REGISTER and leaf.name not in registers:
                    hint = suggest(leaf.name, registers) or "declare it in registers="
                    where = f"arc {graph_arc.source} -> {graph_arc.target}"
                    raise QueryError(f"{where}: there is no register `{leaf.name}`", hint=hint, code="query_name")


def check_cycles(arcs: Iterable[GraphArc]) -> None:
    """Raise :class:`QueryError` for arcs among which epsilon arcs form a cycle."""
    sources: dict[str, list[str]] = {}
    for graph_arc in arcs:
        if graph_arc.epsilon:
            sources.setdefault(graph_arc.target, []).append(graph_arc.source)
    from graphlib import CycleError, TopologicalSorter  # few queries are hand-written automata

    try:
        TopologicalSorter(sources).prepare()
    except CycleError as cycle:  # along which a run would never end
        hint = "let one of them take an event"
        raise QueryError(f"the epsilon arcs through `{cycle.args[1][0]}` form a cycle", hint=hint) from None


def references(expr: ex.Expr | None) -> list[ex.Leaf]:
    """Return all references of an expression."""
    if expr is None:
        return []
    return [leaf for leaf, _ in levels(expr, children) if isinstance(leaf, ex.Attribute | ex.Length | ex.Aggregate)]
