"""Check that a query is valid, as far as this is possible without the columns of a stream.

Front ends call :func:`check_query` last. Each check is a plain function that raises a
:class:`~acep.errors.QueryError` with a hint and, if known, the place in the text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from acep.errors import QueryError, suggest
from acep.pattern import expressions as ex
from acep.pattern.closure import close_equalities
from acep.pattern.evaluation import children, leaves_of
from acep.pattern.operands import check_condition, kind_of
from acep.pattern.tree import Choice, Component, Negation, Node, Query, Sequence
from acep.pattern.walk import (
    components,
    mentioned,
    most_bound,
    negated_variables,
    nodes,
    parts,
    positions,
    variables,
)

__all__ = ["DEEPEST", "MOST_POSITIONS", "check_query", "checked_errors", "checked_weights"]

DEEPEST = 100
"""The greatest depth of patterns and expressions; it is limited because later stages walk them recursively."""

MOST_POSITIONS = 10_000
"""The greatest number of components of a pattern when its repetitions are written out."""

_MATCH_ATTRIBUTES = ("ts", "type", "start", "end", "error")

Places = Mapping[str, list[ex.Span]]


@dataclass(frozen=True)
class _Names:
    """The variables of a pattern, and the greatest number of events that each may bind."""

    known: frozenset[str]
    negated: frozenset[str]
    most: dict[str, int | None]


def check_query(query: Query, places: Places | None = None) -> None:
    """Raise :class:`QueryError` if the query is invalid for every possible stream.

    ``places`` are the places in the text where each variable is declared, in the order of the declarations.
    """
    places = places or {}
    _check_size(query)
    _check_declarations(query, places)
    _check_sources(query, places)
    names = _Names(frozenset(variables(query.pattern)), negated_variables(query.pattern), most_bound(query.pattern))
    for conjunct in query.where:
        _check_conjunct(conjunct, names)
    for result in [*([query.having] if query.having else []), *(e for _, e in query.returns)]:
        _check_result(result, names)
    if query.having is not None:
        check_condition(query.having)
    for _, value in query.returns:
        kind_of(value)
    _check_negations(query, places)
    close_equalities(query)


# ---- size


def _check_size(query: Query) -> None:
    if not any(isinstance(c, Component) for c in components(query.pattern)):
        raise QueryError("the pattern binds no event", hint="add a component that is not negated")
    if _pattern_depth(query.pattern) > DEEPEST:
        raise QueryError("the pattern is nested too deeply", hint=f"at most {DEEPEST} levels")
    if positions(query.pattern) > MOST_POSITIONS:
        hint = f"at most {MOST_POSITIONS} components, repetitions written out"
        raise QueryError("the pattern is too large", hint=hint)
    for expr in [*query.where, *([query.having] if query.having else []), *(e for _, e in query.returns)]:
        _check_depth(expr)


def _pattern_depth(node: Node) -> int:
    deepest, stack = 0, [(node, 1)]
    while stack:
        item, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((part, depth + 1) for part in parts(item))
    return deepest


def _check_depth(expr: ex.Expr) -> None:
    stack = [(expr, 1)]
    while stack:
        item, depth = stack.pop()
        if depth > DEEPEST:
            raise ex.error_at(
                "this expression is nested too deeply", expr, f"at most {DEEPEST} levels, or terms of one sum"
            )
        stack.extend((child, depth + 1) for child in children(item))


# ---- declarations


def _check_declarations(query: Query, places: Places) -> None:
    if query.letters:
        return
    _declare(query.pattern, set(), {}, places)
    kinds: dict[str, type] = {}
    for c in components(query.pattern):
        if kinds.setdefault(c.var, type(c)) is not type(c):
            raise ex.error_at(f"`{c.var}` is both negated and not", _place(places, c.var, -1), "use another variable")


def _declare(node: Node, before: set[str], seen: dict[str, int], places: Places) -> set[str]:
    """Return the variables declared in ``node``, and add them to ``before``, the variables declared so far."""
    match node:
        case Component(var=var) | Negation(var=var):
            seen[var] = seen.get(var, 0) + 1
            if var in before:
                hint = "use another name; only the alternatives of a choice may share one"
                raise ex.error_at(f"`{var}` is declared twice", _place(places, var, seen[var] - 1), hint)
            before.add(var)
            return {var}
        case _:
            found: set[str] = set()
            for part in parts(node):
                added = _declare(part, before, seen, places)
                found |= added
                if isinstance(node, Choice):
                    before -= added
            before |= found
            return found


def _place(places: Places, var: str, number: int) -> ex.Span | None:
    spans = places.get(var, [])
    return spans[number] if -len(spans) <= number < len(spans) else None


def _check_sources(query: Query, places: Places) -> None:
    if not query.sources:
        return
    known = {s.type for s in query.sources}
    for source in query.sources:
        for name, value in source.query.returns:
            if name in _MATCH_ATTRIBUTES:
                hint = "every match has one as an event: choose another name"
                raise ex.error_at(f"RETURN cannot name a value `{name}` in a query of FROM", value, hint)
    for c in components(query.pattern):
        for kind in c.types:
            if kind not in known:
                message = f"type `{kind}` comes from no query of FROM"
                raise ex.error_at(message, _place(places, c.var, 0), suggest(kind, known))


# ---- conditions


def _check_conjunct(expr: ex.Expr, names: _Names) -> None:
    """Check one conjunct of WHERE."""
    _check_known(expr, names)
    check_condition(expr)
    spoken = mentioned(expr)
    if not spoken:
        raise ex.error_at("a condition without a variable", expr, "leave it out")
    negated = [v for v in spoken if v in names.negated]
    if len(negated) > 1:
        raise ex.error_at(
            f"a condition on two negated variables, `{negated[0]}` and `{negated[1]}`", expr, "write one for each"
        )
    walking: set[str] = set()
    for leaf in leaves_of(expr):
        if leaf.var in negated:
            _check_negated_leaf(leaf)
        else:
            if _walks(leaf) and names.most[leaf.var] == 1:
                hint = f"write + after its type, or {leaf.var}.attribute"
                raise ex.error_at(f"`{leaf.var}` is no repetition: there is no [i]", leaf, hint)
            _check_number(leaf, names.most[leaf.var])
        if _walks(leaf):
            walking.add(leaf.var)
    if len(walking) > 1:
        first, second = sorted(walking)
        hint = f"plain {second}.x already means each event of {second}[]"
        raise ex.error_at(f"[i] of two variables, `{first}` and `{second}`, in one condition", expr, hint)


def _walks(leaf: ex.Attribute | ex.Length | ex.Aggregate) -> bool:
    """Return whether a reference means the events of a repetition one after another."""
    if isinstance(leaf, ex.Attribute):
        return leaf.index in ("i", "i-1")
    return isinstance(leaf, ex.Aggregate) and leaf.scope == "before"


def _check_known(expr: ex.Expr, names: _Names) -> None:
    for leaf in leaves_of(expr):
        if leaf.var not in names.known:
            raise ex.error_at(f"unknown variable `{leaf.var}`", leaf, suggest(leaf.var, sorted(names.known)))


def _check_negated_leaf(leaf: ex.Attribute | ex.Length | ex.Aggregate) -> None:
    if isinstance(leaf, ex.Attribute) and leaf.index is None:
        return
    hint = f"write {leaf.var}.attribute"
    raise ex.error_at(f"`{leaf.var}` is negated: each of its events is looked at alone", leaf, hint)


def _check_number(leaf: ex.Attribute | ex.Length | ex.Aggregate, most: int | None) -> None:
    """Reject ``a[3]`` if the variable binds fewer events, because it would never have a value."""
    if isinstance(leaf, ex.Attribute) and isinstance(leaf.index, int) and most is not None and leaf.index > most:
        bound = "one event only" if most == 1 else f"{most} events at most"
        hint = f"write {leaf.var}.{leaf.name}" if most == 1 else f"{leaf.var}[{leaf.var}.LEN] is the last one"
        raise ex.error_at(f"`{leaf.var}` binds {bound}", leaf, hint)


def _check_result(expr: ex.Expr, names: _Names) -> None:
    """Check an expression of HAVING or RETURN, which are evaluated on a complete match."""
    _check_known(expr, names)
    for leaf in leaves_of(expr):
        if leaf.var in names.negated:
            raise ex.error_at(f"`{leaf.var}` is negated: it is in no match", leaf)
        if _walks(leaf):
            hint = f"plain {leaf.var}.x is the last event; aggregates go over {leaf.var}[]"
            raise ex.error_at("[i] belongs in WHERE: here the match is complete", leaf, hint)


# ---- negations


def _check_negations(query: Query, places: Places) -> None:
    if query.within is not None:
        return
    for last in (False, True):
        for var in _open_ended(query.pattern, last=last):
            message = f"no component stands {'after' if last else 'before'} the negation of `{var}`"
            raise ex.error_at(message, _place(places, var, 0), "add WITHIN: it says how far to look")


def _open_ended(node: Node, *, last: bool) -> list[str]:
    """Return negations with no component before them (``last``: after them) in the sequences around them."""
    match node:
        case Negation(var=var):
            return [var]
        case Sequence(items=items):
            found: list[str] = []
            for item in reversed(items) if last else items:
                found += _open_ended(item, last=last)
                if any(isinstance(n, Component) for n in nodes(item)):
                    break
            return found
        case _:
            return [v for part in parts(node) for v in _open_ended(part, last=last)]


# ---- budget


def checked_errors(errors: object) -> Fraction:
    """Return the error budget as an exact number. Raises :class:`QueryError` unless it is a finite number >= 0.

    >>> checked_errors(0.1)
    Fraction(1, 10)
    """
    number = _exact(errors)
    if number is None or number < 0:
        raise QueryError(f"errors={errors!r} is not an error budget", hint="a number, at least 0 and finite")
    return number


def checked_weights(weights: object, known: tuple[str, ...]) -> tuple[tuple[str, Fraction | None], ...]:
    """Return the weights as (variable, weight) pairs sorted by variable; infinity becomes ``None``.

    Raises :class:`QueryError` for an unknown variable or a weight that is not positive.

    >>> checked_weights({"b": math.inf, "a": 2}, ("a", "b"))
    (('a', Fraction(2, 1)), ('b', None))
    """
    if not isinstance(weights, Mapping):
        raise QueryError(f"weights={weights!r} is not a mapping", hint='weights={"a": 2}')
    found: dict[str, Fraction | None] = {}
    for var, weight in weights.items():
        if var not in known:
            raise QueryError(f"weights: unknown variable `{var}`", hint=suggest(str(var), known))
        if weight is None or (isinstance(weight, float | Decimal) and weight == math.inf):
            found[var] = None
            continue
        number = _exact(weight)
        if number is None or number <= 0:
            message = f"weights: {weight!r} is no weight for `{var}`"
            raise QueryError(message, hint="a positive number, or math.inf for what may not be missing")
        found[var] = number
    return tuple(sorted(found.items(), key=lambda pair: pair[0]))


def _exact(value: object) -> Fraction | None:
    """Return a number exactly as the user wrote it, or ``None`` if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Decimal) and not value.is_finite():
        return None
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)
