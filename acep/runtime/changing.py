"""Queries that change while the stream runs: which may, their versions, and times between ticks and expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

from acep.budget import Budget, tolerant
from acep.errors import QueryError
from acep.pattern import expressions as ex
from acep.pattern.changes import graph_data, graph_of
from acep.pattern.printing import canonical
from acep.pattern.sase import parse
from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Schema
from acep.plan.versions import MOST_VERSIONS, QueryVersion, check_change, check_dynamic, plan_of_versions

__all__ = [
    "EVER",
    "Edit",
    "as_dynamic",
    "compiled",
    "moment_of",
    "versions_after",
    "versions_data",
    "versions_of",
]

EVER = -(2**63)
"""The least tick, from which on a version is valid that was there before the first event."""

Edit: TypeAlias = Callable[[Query, ex.Expr | None, Callable[[ex.Expr], bool]], Query]
"""A function that changes a query from a time on, and is told which times are over."""


def as_dynamic(query: Query) -> Query:
    """Return a query that may change. Raises :class:`QueryError` for one that cannot."""
    if query.graph is not None:
        return replace(query, pattern=replace(query.graph, dynamic=True))
    check_dynamic(query)
    return _as_stored(query)


def _as_stored(query: Query) -> Query:
    """Return a query as a snapshot of it would give it back, as versions are compared by the form of their parts."""
    return replace(parse(_text(query)), errors=query.errors, weights=query.weights)


def _text(query: Query) -> str:
    """Return the text of a query without the errors and weights of a budget."""
    return canonical(replace(query, errors=Fraction(0), weights=()))


def compiled(versions: Sequence[QueryVersion], schema: Schema, over: int | None = None) -> Plan:
    """Compile the versions of a query that may change; an automaton has one, and its arcs have times of their own. No
    event before the tick ``over`` is matched any more. Raises :class:`QueryError`."""
    if versions[-1].query.graph is not None:
        return compile_query(versions[-1].query, schema)
    return plan_of_versions(versions, schema, over)


def versions_after(versions: Sequence[QueryVersion], query: Query, since: int) -> tuple[QueryVersion, ...]:
    """Return the versions of a query that is replaced by another one from a tick on.

    Raises :class:`QueryError` if it cannot be replaced by this one.
    """
    check_change(versions[-1].query, query)
    query = _as_stored(query)
    if len(versions) == MOST_VERSIONS:
        raise QueryError(
            f"a query can have {MOST_VERSIONS} versions in one stream", hint="go on with a Matcher of the last version"
        )
    return (*versions, QueryVersion(query, since))


# As data, for snapshots ---------------------------------------------------------------------------


def versions_data(versions: Sequence[QueryVersion]) -> Any:
    """Return what has changed of a query as JSON-like data."""
    graph = versions[-1].query.graph
    if graph is not None:
        return graph_data(graph)
    return [[_text(version.query), version.since] for version in versions[1:]]


def versions_of(first: Query, data: Any, budget: Budget | None) -> tuple[QueryVersion, ...]:
    """Return the versions of a query that began as ``first``, from :func:`versions_data`. ``budget`` has the errors of
    all.

    Raises :class:`QueryError`, :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for other data.
    """
    if first.graph is not None:
        found = replace(first, pattern=graph_of(first.graph, data))
        return (QueryVersion(replace(found, text=canonical(found)), None),)
    versions: tuple[QueryVersion, ...] = (QueryVersion(first, None),)
    if not isinstance(data, list):
        raise ValueError("versions")
    for text, since in data:
        if not isinstance(text, str) or not isinstance(since, int) or not EVER <= since < -EVER:
            raise ValueError("versions")
        if versions[-1].since is not None and since < versions[-1].since:
            raise ValueError("versions")
        versions = versions_after(versions, tolerant(parse(text), budget), since)
    return versions


def moment_of(tick: int, schema: Schema) -> ex.Expr:
    """Return the expression of a time in ticks.

    >>> moment_of(7, Schema(()))
    Literal(value=7, span=None, exact=None)
    """
    if not schema.instants:
        return ex.Literal(tick)
    assert schema.tick_ns is not None
    return ex.Timestamp(int(tick * schema.tick_ns))
