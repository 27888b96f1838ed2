"""Compile the versions of a query that changes while a stream runs to one plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from acep.automaton.versions import VersionPart, joined, programs_of
from acep.errors import QueryError
from acep.pattern.spelling import expression_text
from acep.pattern.tree import Negation, Output, Query
from acep.pattern.walk import nodes, without_places
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Schema

__all__ = ["MOST_VERSIONS", "QueryVersion", "check_change", "check_dynamic", "plan_of_versions"]

MOST_VERSIONS = 100
"""The greatest number of versions of a query in one stream, since each keeps its states."""


@dataclass(frozen=True)
class QueryVersion:
    """A ``query``, which is valid from the tick ``since`` on (``None``: from the beginning) until the next version.
    An automaton has one version, whose arcs have times of their own; it began to be as it is at ``since``."""

    query: Query
    since: int | None


def check_dynamic(query: Query) -> None:
    """Raise :class:`QueryError` for a query in SASE+ that cannot change while a stream runs."""
    if query.graph is not None:
        raise QueryError("a hand-written automaton cannot replace a query", hint="give a query in SASE+")
    if query.letters:
        raise QueryError("a letter expression cannot change", hint="write it as a PATTERN, or dynamic=False")
    if query.sources:
        raise QueryError("a query over the matches of others cannot change", hint="dynamic=False")
    if query.output is not Output.ALL:
        raise QueryError("a query with OUTPUT cannot change, as it chooses among all matches", hint="dynamic=False")
    if any(isinstance(node, Negation) for node in nodes(query.pattern)):
        raise QueryError("a query with a negation cannot change", hint="dynamic=False")


def check_change(old: Query, new: Query) -> None:
    """Raise :class:`QueryError` if a query cannot be replaced by another one while a stream runs: pattern and WHERE may
    differ, but not what holds for all partial matches or decides the columns of the result.

    >>> import acep
    >>> one, other = (acep.parse(f"PATTERN SEQ(A a, {t} x) WITHIN {n}") for t, n in (("B", 5), ("C", 6)))
    >>> check_change(one, other)
    Traceback (most recent call last):
    acep.errors.QueryError: the query has another value of `WITHIN`
    hint: only the pattern and its conditions may change
    """
    check_dynamic(new)
    for name, one, two in (
        ("strategy", old.strategy, new.strategy),
        ("WITHIN", old.within, new.within),
        ("error budget", old.errors, new.errors),
        ("HAVING", _text(old.having), _text(new.having)),
        ("RETURN", [(n, _text(e)) for n, e in old.returns], [(n, _text(e)) for n, e in new.returns]),
    ):
        if one != two:
            raise QueryError(
                f"the query has another value of `{name}`", hint="only the pattern and its conditions may change"
            )


def plan_of_versions(versions: Sequence[QueryVersion], schema: Schema, over: int | None = None) -> Plan:
    """Compile versions that follow each other for the columns of a stream. No event before the tick ``over`` is matched
    any more (``None``: any may be).

    Raises :class:`QueryError` if a version does not fit the columns, or has other partition attributes than the first.
    """
    plans = [compile_query(one.query, schema) for one in versions]
    first, last = plans[0], plans[-1]
    predicates: dict[tuple[str, int], tuple[int, Any]] = {}
    parts = []
    for i, (version, plan) in enumerate(zip(versions, plans, strict=True)):
        if plan.keys != first.keys:
            raise QueryError(
                "the query has other partition attributes", hint="only the pattern and its other conditions may change"
            )
        if plan.automaton.costs.scale != first.automaton.costs.scale:
            raise QueryError("the query has weights of another kind", hint="give weights as before")
        numbers, seen = [], dict[str, int]()
        for made in plan.predicates:
            # By their text, as constants of several kinds are equal in Python.
            text = repr(without_places(made.expr))
            seen[text] = seen.get(text, 0) + 1
            numbers.append(predicates.setdefault((text, seen[text]), (len(predicates), made))[0])
        until = versions[i + 1].since if i + 1 < len(versions) else None
        ended = over is not None and until is not None and until <= over
        parts.append(VersionPart(plan.automaton, plan.arcs, tuple(numbers), version.since, until, ended))
    arcs, program, numbers_of = joined(parts, programs_of(parts, [plan.program for plan in plans]))
    return replace(
        last,
        columns=tuple(sorted({name for plan in plans for name in plan.columns})),
        row=tuple(dict.fromkeys(name for plan in plans for name in plan.row)),
        variables=tuple(dict.fromkeys(name for plan in plans for name in plan.variables)),
        kleene=frozenset(name for plan in plans for name in plan.kleene),
        arcs=arcs,
        program=program,
        predicates=tuple(made for _, made in predicates.values()),
        dynamic=True,
        parts=tuple(parts),
        current=numbers_of[-1],
    )


def _text(expr: Any) -> str:
    return "" if expr is None else expression_text(expr)
