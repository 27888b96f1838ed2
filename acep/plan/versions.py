"""Compile the versions of a query that changes while a stream runs to one plan."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from acep.automaton.thompson import Negated
from acep.automaton.versions import VersionPart, join_versions, programs_of, renumber_negations, with_arcs
from acep.errors import QueryError
from acep.pattern.evaluation import Compiled
from acep.pattern.spelling import expression_text
from acep.pattern.tree import Query
from acep.pattern.walk import without_places
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Schema

__all__ = ["MOST_VERSIONS", "QueryVersion", "check_change", "check_dynamic", "plan_of_versions"]

MOST_VERSIONS = 100
"""The greatest number of versions of a query in one stream, since each keeps its states."""


@dataclass(frozen=True)
class QueryVersion:
    """A ``query``, which is valid from the tick ``since`` on (``None``: from the beginning) until the next version.
    An automaton has one version, whose arcs have times of their own; it began to be as it is at ``since``.
    ``has_arcs``: partial matches know the arcs along which they came, which those of older snapshots do not."""

    query: Query
    since: int | None
    has_arcs: bool = True


def check_dynamic(query: Query) -> None:
    """Raise :class:`QueryError` for a query in SASE+ that cannot change while a stream runs."""
    if query.graph is not None:
        raise QueryError(
            "a hand-written automaton cannot replace a query", hint="give a query in SASE+", code="query_change"
        )
    if query.letters:
        raise QueryError(
            "a letter expression cannot change", hint="write it as a PATTERN, or dynamic=False", code="query_change"
        )
    if query.sources:
        raise QueryError("a query over the matches of others cannot change", hint="dynamic=False", code="query_change")


def check_change(old: Query, new: Query) -> None:
    """Raise :class:`QueryError` if a query cannot be replaced by another one while a stream runs: pattern and WHERE may
    differ, but not what holds for all partial matches or decides the columns of the result.

    >>> import acep
    >>> query, other = (acep.parse(f"PATTERN SEQ(A a, {t} x) WITHIN {n}") for t, n in (("B", 5), ("C", 6)))
    >>> check_change(query, other)
    Traceback (most recent call last):
    acep.errors.QueryError: the query has another value of `WITHIN` [query_change]
    hint: only the pattern and its conditions may change
    """
    check_dynamic(new)
    for name, old_value, new_value in (
        ("strategy", old.strategy, new.strategy),
        ("WITHIN", old.within, new.within),
        ("error budget", old.errors, new.errors),
        ("surplus", old.surplus, new.surplus),
        ("HAVING", _text(old.having), _text(new.having)),
        ("OUTPUT", (old.output, old.skip), (new.output, new.skip)),
        ("RETURN", [(n, _text(e)) for n, e in old.returns], [(n, _text(e)) for n, e in new.returns]),
    ):
        if old_value != new_value:
            raise QueryError(
                f"the query has another value of `{name}`",
                hint="only the pattern and its conditions may change",
                code="query_change",
            )


def plan_of_versions(versions: Sequence[QueryVersion], schema: Schema, over: int | None = None) -> Plan:
    """Compile versions that follow each other for the columns of a stream. No event before the tick ``over`` is matched
    any more (``None``: any may be).

    Raises :class:`QueryError` if a version does not fit the columns, or has other partition attributes than the first.
    """
    plans = [compile_query(version.query, schema) for version in versions]
    first, last = plans[0], plans[-1]
    for plan in plans:
        if plan.keys != first.keys:
            raise QueryError(
                "the query has other partition attributes",
                hint="only the pattern and its other conditions may change",
                code="query_change",
            )
        if plan.automaton.costs.scale != first.automaton.costs.scale:
            raise QueryError(
                "the query has weights of another kind", hint="give weights as before", code="query_change"
            )
    shared = _Numbers()
    version_numbers = [shared.take(plan, version.since) for plan, version in zip(plans, versions, strict=True)]
    parts, programs = [], []
    for i, (version, plan, (predicates, negations, groups)) in enumerate(
        zip(versions, plans, version_numbers, strict=True)
    ):
        until = versions[i + 1].since if i + 1 < len(versions) else None
        ended = over is not None and until is not None and until <= over
        automaton, arcs = renumber_negations(
            plan.automaton, plan.arcs, negations, groups, (shared.negations, shared.groups)
        )
        parts.append(VersionPart(automaton, arcs, predicates, negations, version.since, until, ended))
        programs.append(with_arcs(plan.program, arcs))
    conditions = [[condition.expr for condition in group] for group in shared.negated]
    arcs, program, numbers_of = join_versions(parts, programs_of(parts, programs), conditions)
    return replace(
        last,
        columns=tuple(sorted({name for plan in plans for name in plan.columns})),
        row=tuple(dict.fromkeys(name for plan in plans for name in plan.row)),
        computed=tuple(dict.fromkeys(column for plan in plans for column in plan.computed)),
        variables=tuple(dict.fromkeys(name for plan in plans for name in plan.variables)),
        kleene=frozenset(name for plan in plans for name in plan.kleene),
        automaton=parts[-1].automaton,
        arcs=arcs,
        program=program,
        predicates=tuple(shared.predicates),
        negated=tuple(shared.negated),
        dynamic=True,
        finer=None,
        parts=tuple(parts),
        current=numbers_of[-1],
    )


@dataclass
class _Numbers:
    """The predicates, negations and groups of all versions so far, with the conditions of each negation (``negated``).
    Equal ones have one number, negations only if they are those of the version before: a negation holds from the first
    of its versions on. ``numbers`` are those of predicates and groups, ``latest`` those of the last version's
    negations."""

    predicates: list[Compiled] = field(default_factory=list)
    groups: list[tuple[str, ...]] = field(default_factory=list)
    negations: list[Negated] = field(default_factory=list)
    negated: list[tuple[Compiled, ...]] = field(default_factory=list)
    numbers: dict[Hashable, int] = field(default_factory=dict)
    latest: dict[Hashable, int] = field(default_factory=dict)

    def take(self, plan: Plan, since: int | None) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Return the numbers of the predicates, negations and groups of the next version, valid from ``since`` on."""
        predicates, groups, negations = list[int](), list[int](), list[int]()
        for key, predicate in zip(_number_repeats(map(_condition_key, plan.predicates)), plan.predicates, strict=True):
            predicates.append(self.numbers.setdefault(key, len(self.predicates)))
            self.predicates += [predicate] * (predicates[-1] == len(self.predicates))
        for key, names in zip(_number_repeats(plan.automaton.groups), plan.automaton.groups, strict=True):
            groups.append(self.numbers.setdefault(key, len(self.groups)))
            self.groups += [names] * (groups[-1] == len(self.groups))
        renumbered = [
            replace(negation, groups=tuple(groups[g] for g in negation.groups)) for negation in plan.automaton.negations
        ]
        latest = dict[Hashable, int]()
        keys = _number_repeats(
            [
                (repr(negation), *_negation_key(plan, conditions))
                for negation, conditions in zip(renumbered, plan.negated, strict=True)
            ]
        )
        for key, negation, conditions in zip(keys, renumbered, plan.negated, strict=True):
            latest[key] = self.latest.get(key, len(self.negations))
            negations.append(latest[key])
            if latest[key] == len(self.negations):
                self.negations.append(replace(negation, since=since))
                self.negated.append(conditions)
        self.latest = latest
        return tuple(predicates), tuple(negations), tuple(groups)


def _condition_key(condition: Compiled) -> str:
    """Return the text by which equal conditions are told: constants of several kinds are equal in Python."""
    return repr(without_places(condition.expr))


def _negation_key(plan: Plan, conditions: Sequence[Compiled]) -> tuple[Hashable, ...]:
    """Return the conditions of a negation, and the part that their variables have in the pattern."""
    names = sorted({leaf.var for condition in conditions for leaf in condition.leaves})
    return (*map(_condition_key, conditions), *((name, name in plan.variables, name in plan.kleene) for name in names))


def _number_repeats(keys: Iterable[Hashable]) -> list[Hashable]:
    """Tell equal keys apart by their order.

    >>> _number_repeats(["a", "b", "a"])
    [('a', 1), ('b', 1), ('a', 2)]
    """
    seen: dict[Hashable, int] = {}
    distinct_keys = list[Hashable]()
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
        distinct_keys.append((key, seen[key]))
    return distinct_keys


def _text(expr: Any) -> str:
    return "" if expr is None else expression_text(expr)
