"""Change an automaton again and again, at the cost of what is new in it: in the native core, or compiled anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from acep.changing.arcs_in_core import LATEST, ArcsInCore
from acep.changing.changeable_queries import moment_at, whole_tick
from acep.pattern import expressions as ex
from acep.pattern.graph_check import check_registers
from acep.pattern.tree import GraphArc, Query, StateGraph
from acep.plan.compile import Plan, compile_query
from acep.plan.compile_graph import KnownParts
from acep.plan.schema import Schema
from acep.runtime.stream import Stream

__all__ = ["ChangingAutomaton"]

MOST_ARCS = 1_000  # of an automaton whose changes wait for the next events
MOST_PROVEN = 10_000
_Form: TypeAlias = tuple[bool, ex.Expr | None, tuple[tuple[str, ex.Expr], ...]]
_Key: TypeAlias = tuple[bool, int, tuple[tuple[str, int], ...]]


@dataclass
class ChangingAutomaton:
    """An automaton of a stream that may change. ``parts`` were compiled for it before. ``proven`` are the forms of arcs
    that were part of a plan, by the identities of their expressions: arcs of such a form cannot be refused.
    ``in_core``: the arcs in the native core (``None``: not asked for since the automaton was compiled)."""

    parts: KnownParts = field(default_factory=KnownParts)
    proven: dict[_Key, _Form] = field(default_factory=dict)
    in_core: ArcsInCore | None = None

    def compile_plan(self, query: Query, schema: Schema) -> Plan:
        """Compile the automaton as it is now. Raises :class:`QueryError`."""
        return compile_query(query, schema, self.parts)

    def change_in_core(
        self,
        stream: Stream,
        number: int,
        query: Query,
        schema: Schema,
        arcs: tuple[Sequence[GraphArc], Sequence[GraphArc]],
        times: tuple[int, ex.Expr | None, int | None],
    ) -> int | None:
        """Add and remove arcs in the native core without compiling the others; return the number of partial matches
        that go on, or ``None`` where that is not possible.
        ``times``: the tick from which the change holds, that time as it was given (``None``: as the tick), and the tick
        before which no event is matched any more. Raises :class:`QueryError` for an arc that is not right."""
        since, moment, certain = times
        if self.in_core is None:
            plan = stream.plans[number]
            if query.graph is None or plan.query.graph is not query.graph or not stream.natively:
                return None
            self.in_core = ArcsInCore.from_graph(
                query.graph, sum(map(len, plan.arcs.arcs)), partial(whole_tick, schema=schema)
            )
            if self.in_core is None:
                return None
        if since > LATEST or (moment is not None and whole_tick(moment, schema) is None):
            return None

        def extend(new_graph: StateGraph) -> None:
            check_registers(new_graph, new_graph.arcs)
            stream.extend(number, self.compile_plan(replace(query, pattern=new_graph), schema))

        self.in_core.forget(certain)
        words = self.in_core.change(*arcs, since, moment, extend)
        return None if words is None else stream.renew(number, words)

    def current_query(self, query: Query, schema: Schema) -> Query | None:
        """Return the automaton as it is in the native core; ``None`` if it has not changed there."""
        if self.in_core is None or not self.in_core.apart:
            return None
        return replace(query, pattern=self.in_core.current_graph(partial(moment_at, schema=schema)), text="")

    def may_wait(self, old_graph: StateGraph, query: Query, schema: Schema, check: Callable[[Plan], None]) -> bool:
        """Return whether a change of an automaton may wait for the next events to be compiled, as it is known to be
        right. ``check`` raises an error for a plan that cannot run, and so does this method."""
        graph = query.graph
        assert graph is not None
        if len(graph.arcs) > MOST_ARCS or any(arc.epsilon for arc in graph.arcs):
            return False  # whose chains are known together only
        same = set(map(id, old_graph.arcs))
        new_arcs = {
            key: arc for arc in graph.arcs if id(arc) not in same and (key := _form(arc, graph)[0]) not in self.proven
        }
        if new_arcs:
            new_graph = replace(graph, arcs=tuple(new_arcs.values()), named=graph.states, bound=graph.variables)
            check(self.compile_plan(replace(query, pattern=new_graph), schema))
            self.prove(new_graph)
        return True

    def prove(self, graph: StateGraph) -> None:
        """Take up the forms of arcs that are part of a plan."""
        forms = dict(_form(arc, graph) for arc in graph.arcs)
        if len(self.proven) > MOST_PROVEN:
            self.proven.clear()
        self.proven |= forms


def _form(arc: GraphArc, graph: StateGraph) -> tuple[_Key, _Form]:
    """Return the form of an arc, by the identities of its expressions and with them."""
    begins = arc.source == graph.start
    key = begins, id(arc.fence), tuple((name, id(value)) for name, value in arc.transfer)
    return key, (begins, arc.fence, arc.transfer)
