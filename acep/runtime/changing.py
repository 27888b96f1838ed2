"""Automata that change while the stream runs: which queries may, and times of changes between ticks and expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from acep.errors import QueryError
from acep.pattern import expressions as ex
from acep.pattern.changes import graph_of
from acep.pattern.printing import canonical
from acep.pattern.tree import Query
from acep.plan.schema import Schema

__all__ = ["Edit", "as_dynamic", "moment_of", "with_graph"]

Edit: TypeAlias = Callable[[Query, ex.Expr | None, Callable[[ex.Expr], bool]], Query]
"""A function that changes a query from a time on, and is told which times are over."""


def as_dynamic(query: Query) -> Query:
    """Return an automaton whose arcs may change. Raises :class:`QueryError` for any other query."""
    if query.graph is None:
        raise QueryError(
            "only hand-written automata can change", hint="dynamic=False, or write it as an acep.Automaton"
        )
    return replace(query, pattern=replace(query.graph, dynamic=True))


def with_graph(query: Query, data: Mapping[str, Any]) -> Query:
    """Return an automaton as a snapshot holds it (:func:`acep.pattern.changes.graph_data`)."""
    assert query.graph is not None
    found = replace(query, pattern=graph_of(query.graph, data))
    return replace(found, text=canonical(found))


def moment_of(tick: int, schema: Schema) -> ex.Expr:
    """Return the expression of a time in ticks.

    >>> moment_of(7, Schema(()))
    Literal(value=7, span=None, exact=None)
    """
    if not schema.instants:
        return ex.Literal(tick)
    assert schema.tick_ns is not None
    return ex.Timestamp(int(tick * schema.tick_ns))
