"""Compile an automaton again and again as its arcs change, at the cost of what is new in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from acep.pattern import expressions as ex
from acep.pattern.tree import GraphArc, Query, StateGraph
from acep.plan.compile import Plan, compile_query
from acep.plan.compile_graph import KnownParts
from acep.plan.schema import Schema

__all__ = ["ChangingAutomaton"]

MOST_ARCS = 1_000  # of an automaton whose changes wait for the next events
MOST_PROVEN = 10_000
_Form: TypeAlias = tuple[bool, ex.Expr | None, tuple[tuple[str, ex.Expr], ...]]
_Key: TypeAlias = tuple[bool, int, tuple[tuple[str, int], ...]]


@dataclass
class ChangingAutomaton:
    """An automaton of a stream that may change. ``parts`` were compiled for it before. ``proven`` are the forms of arcs
    that were part of a plan, by the identities of their expressions: arcs of such a form cannot be refused."""

    parts: KnownParts = field(default_factory=KnownParts)
    proven: dict[_Key, _Form] = field(default_factory=dict)

    def compiled(self, query: Query, schema: Schema) -> Plan:
        """Compile the automaton as it is now. Raises :class:`QueryError`."""
        return compile_query(query, schema, self.parts)

    def may_wait(self, before: StateGraph, query: Query, schema: Schema, check: Callable[[Plan], None]) -> bool:
        """Return whether a change of an automaton may wait for the next events to be compiled, as it is known to be
        right. ``check`` raises an error for a plan that cannot run, and so does this method."""
        graph = query.graph
        assert graph is not None
        if len(graph.arcs) > MOST_ARCS or any(one.epsilon for one in graph.arcs):
            return False  # whose chains are known together only
        same = set(map(id, before.arcs))
        fresh = {
            key: one for one in graph.arcs if id(one) not in same and (key := _form(one, graph)[0]) not in self.proven
        }
        if fresh:
            alone = replace(graph, arcs=tuple(fresh.values()), named=graph.states, bound=graph.variables)
            check(self.compiled(replace(query, pattern=alone), schema))
            self.prove(alone)
        return True

    def prove(self, graph: StateGraph) -> None:
        """Take up the forms of arcs that are part of a plan."""
        forms = dict(_form(one, graph) for one in graph.arcs)
        if len(self.proven) > MOST_PROVEN:
            self.proven.clear()
        self.proven |= forms


def _form(one: GraphArc, graph: StateGraph) -> tuple[_Key, _Form]:
    """Return the form of an arc, by the identities of its expressions and with them."""
    begins = one.source == graph.start
    key = begins, id(one.fence), tuple((name, id(value)) for name, value in one.transfer)
    return key, (begins, one.fence, one.transfer)
