"""Queries that change while the stream runs: which may, and their versions, also as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

from acep.errors import QueryError
from acep.pattern import expressions as ex
from acep.pattern.changes import change_arcs, difference, graph_data, graph_of, replace_arcs_since
from acep.pattern.check import checked_weights
from acep.pattern.printing import canonical
from acep.pattern.text.sase import parse
from acep.pattern.tree import Negation, Query
from acep.pattern.walk import nodes, variables
from acep.plan.compile import Plan, compile_query
from acep.plan.compile_graph import tick_of
from acep.plan.schema import Schema
from acep.plan.versions import MOST_VERSIONS, QueryVersion, check_change, check_dynamic, plan_of_versions

__all__ = [
    "EVER",
    "Edit",
    "as_dynamic",
    "compile_versions",
    "edit_automaton",
    "moment_at",
    "replace_query",
    "revise_query",
    "text_of",
    "versions_data",
    "versions_of",
    "whole_tick",
    "with_errors",
]

EVER = -(2**63)
"""The least tick, from which on a version is valid that was there before the first event."""

FORM = 2
"""The number of the form of the data of versions. In the form before it, which has no number, partial matches do not
know the arcs along which they came."""

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
    return replace(parse(text_of(query)), errors=query.errors, weights=query.weights, surplus=query.surplus)


def text_of(query: Query) -> str:
    """Return the text of a query without the errors and weights of a budget."""
    return canonical(replace(query, errors=Fraction(0), weights=(), surplus=None))


def compile_versions(versions: Sequence[QueryVersion], schema: Schema, over: int | None = None) -> Plan:
    """Compile the versions of a query that may change; an automaton has one, and its arcs have times of their own. No
    event before the tick ``over`` is matched any more. Raises :class:`QueryError`."""
    if versions[-1].query.graph is not None:
        return compile_query(versions[-1].query, schema)
    return plan_of_versions(versions, schema, over)


def edit_automaton(query: Query, edit: Edit, since: int | None, schema: Schema | None, certain: int | None) -> Query:
    """Return an automaton that changes from the tick ``since`` on (``None``: no event has come). No event before the
    tick ``certain`` is matched any more.

    Raises :class:`QueryError` if it cannot change so.
    """
    moment = None if since is None or schema is None else moment_at(since, schema)

    def is_over(moment: ex.Expr) -> bool:
        return certain is not None and schema is not None and tick_of(moment, schema) <= certain

    return edit(query, moment, is_over)


def replace_query(
    versions: Sequence[QueryVersion],
    query: Query,
    since: int | None,
    schema: Schema | None = None,
    certain: int | None = None,
) -> tuple[QueryVersion, ...]:
    """Return the versions of a query that is replaced by another one from the tick ``since`` on (``None``: no event has
    come). ``schema`` and ``certain`` are as for :func:`edit_automaton`, and only for an automaton.

    Raises :class:`QueryError` if it cannot be replaced by this one.
    """
    last = versions[-1].query
    if last.graph is not None:

        def edit(old: Query, since: ex.Expr | None, over: Callable[[ex.Expr], bool]) -> Query:
            if since is None:
                return change_arcs(old, *difference(old, query), since, over)
            return replace_arcs_since(old, query, since, over)  # changes that were declared for later are given up

        return (QueryVersion(edit_automaton(last, edit, since, schema, certain), since),)
    check_change(last, query)
    if not versions[0].has_arcs and any(isinstance(node, Negation) for node in nodes(query.pattern)):
        raise QueryError(
            "the stream goes on with an older state, which does not say what a negation needs to know",
            hint="begin a new stream with this query",
            code="query_change",
        )
    if len(versions) == MOST_VERSIONS:
        raise QueryError(
            f"a query can have {MOST_VERSIONS} versions in one stream",
            hint="go on with a Matcher of the last version",
            code="query_size",
        )
    return (*versions, QueryVersion(_as_stored(query), EVER if since is None else since))


def revise_query(
    versions: Sequence[QueryVersion], query: Query, since: int, schema: Schema, certain: int | None
) -> tuple[QueryVersion, ...]:
    """Return the versions of a query that is as another one from the tick ``since`` on, also for events that have come.
    Versions that began at that time or later are given up. ``certain`` is as for :func:`edit_automaton`.

    Raises :class:`QueryError` if it cannot become this one.
    """
    last = versions[-1].query
    if last.graph is None:
        earlier_versions = [version for version in versions if version.since is None or version.since < since]
        return replace_query(earlier_versions, query, since)

    def edit(old: Query, moment: ex.Expr | None, over: Callable[[ex.Expr], bool]) -> Query:
        assert moment is not None
        return replace_arcs_since(old, query, moment, over)

    return (QueryVersion(edit_automaton(last, edit, since, schema, certain), None),)


# As data, for snapshots ---------------------------------------------------------------------------


def versions_data(versions: Sequence[QueryVersion]) -> Any:
    """Return what has changed of a query as JSON-like data."""
    graph = versions[-1].query.graph
    if graph is not None:
        return graph_data(graph)
    rows = [
        [
            text_of(version.query),
            version.since,
            [(name, weight and str(weight)) for name, weight in version.query.weights],
        ]
        for version in versions[1:]
    ]
    return [FORM, *rows] if versions[0].has_arcs else rows


def versions_of(first: Query, data: Any) -> tuple[QueryVersion, ...]:
    """Return the versions of a query that began as ``first``, from :func:`versions_data`.

    Raises :class:`QueryError`, :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for other data.
    """
    if first.graph is not None:
        query = replace(first, pattern=graph_of(first.graph, data))
        return (QueryVersion(replace(query, text=canonical(query)), None),)
    if not isinstance(data, list):
        raise ValueError("versions")
    knows_arcs = data[:1] == [FORM]
    versions: tuple[QueryVersion, ...] = (QueryVersion(first, None, knows_arcs),)
    for text, since, *weights in data[1:] if knows_arcs else data:
        if not isinstance(text, str) or not isinstance(since, int) or not EVER <= since < -EVER:
            raise ValueError("versions")
        if versions[-1].since is not None and since < versions[-1].since:
            raise ValueError("versions")
        new_weights = (
            {name: None if weight is None else Fraction(weight) for name, weight in weights[0]} if weights else None
        )
        versions = replace_query(versions, with_errors(parse(text), first, new_weights), since)
    return versions


def with_errors(query: Query, old: Query, weights: Mapping[str, Fraction | None] | None = None) -> Query:
    """Return a query with the error budget of an older version, what a surplus event costs of it, and with these
    weights, or its weights.

    Raises :class:`QueryError` if a variable with a weight is not there.
    """
    new_weights = dict(old.weights) if weights is None else weights
    weighed = checked_weights(new_weights, variables(query.pattern))
    return replace(query, errors=old.errors, weights=weighed, surplus=old.surplus)


def moment_at(tick: int, schema: Schema) -> ex.Expr:
    """Return the expression of a time in ticks.

    >>> moment_at(7, Schema(()))
    Literal(value=7, span=None, exact=None)
    """
    if not schema.instants:
        return ex.Literal(tick)
    assert schema.tick_ns is not None
    return ex.Timestamp(int(tick * schema.tick_ns))


def whole_tick(moment: ex.Expr, schema: Schema) -> int | None:
    """Return the tick of a time; ``None`` for a time between two ticks.

    >>> whole_tick(ex.Literal(7), Schema(()))
    7
    """
    tick = tick_of(moment, schema)
    return tick if moment_at(tick, schema) == moment else None
