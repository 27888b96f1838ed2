"""Check that a query is valid, as far as this is possible without the columns of a stream.

Front ends call :func:`check_query` last. Each check is a plain function that raises a
:class:`~acep.errors.QueryError` with a hint and, if known, the place in the text.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from decimal import Decimal
from fractions import Fraction

from acep.errors import QueryError, suggest
from acep.functions.aggregates import AGGREGATES
from acep.pattern import expressions as ex
from acep.pattern import walk
from acep.pattern.closure import close_equalities
from acep.pattern.operands import check_condition, kind_of
from acep.pattern.tree import Choice, Component, Negation, Node, Output, Query, Sequence

__all__ = [
    "DEEPEST",
    "MOST_POSITIONS",
    "check_query",
    "check_surplus",
    "checked_errors",
    "checked_surplus",
    "checked_weights",
]

DEEPEST = 100
"""The greatest depth of patterns and expressions; it is limited because later stages walk them recursively."""

MOST_POSITIONS = 10_000
"""The greatest number of components of a pattern when its repetitions are written out."""

_MATCH_ATTRIBUTES = ("ts", "type", "start", "end", "error")

MaxEvents = Mapping[str, int | None]
Places = Mapping[str, list[ex.Span]]


def check_query(query: Query, places: Places | None = None) -> None:
    """Raise :class:`QueryError` if the query is invalid for every possible stream.

    ``places`` are the places in the text where each variable is declared, in the order of the declarations.
    """
    places = places or {}
    _check_size(query)
    _check_declarations(query, places)
    _check_sources(query, places)
    max_events, negated = walk.max_bound_counts(query.pattern), walk.negated_variables(query.pattern)
    for conjunct in query.where:
        _check_conjunct(conjunct, max_events, negated)
    for result in query.results:
        _check_result(result, max_events, negated)
    if query.having is not None:
        check_condition(query.having)
    for _, value in query.returns:
        kind_of(value)
    if (query.skip is None) == (query.output in (Output.LONGEST_AFTER_SKIP, Output.SHORTEST_AFTER_SKIP)):
        hint = "write it as text: OUTPUT LONGEST AFTER MATCH SKIP TO NEXT EVENT"
        raise QueryError("an output after a skip needs a place to skip to, and others have none", hint=hint)
    if query.skip is not None and query.skip.variable in negated:
        hint = "skip to a variable that binds events"
        raise QueryError(f"`{query.skip.variable}` is negated, so that no match binds it", hint=hint)
    _check_negations(query, places)
    close_equalities(query)


# ---- size


def _check_size(query: Query) -> None:
    if not walk.binds(query.pattern):
        raise QueryError("the pattern binds no event", hint="add a component that is not negated")
    if any(depth > DEEPEST for _, depth in walk.levels(query.pattern, walk.parts)):
        raise QueryError("the pattern is nested too deeply", hint=f"at most {DEEPEST} levels", code="query_size")
    if walk.positions(query.pattern) > MOST_POSITIONS:
        hint = f"at most {MOST_POSITIONS} components, repetitions written out"
        raise QueryError("the pattern is too large", hint=hint, code="query_size")
    for expr in (*query.where, *query.results):
        if any(depth > DEEPEST for _, depth in walk.levels(expr, walk.children)):
            hint = f"at most {DEEPEST} levels, or terms of one sum"
            raise ex.error_at("this expression is nested too deeply", expr, hint, code="query_size")


# ---- declarations


def _check_declarations(query: Query, places: Places) -> None:
    if query.letters:
        return
    _declare(query.pattern, set(), {}, places)
    kinds: dict[str, type] = {}
    for c in walk.components(query.pattern):
        if kinds.setdefault(c.var, type(c)) is not type(c):
            raise ex.error_at(
                f"`{c.var}` is both negated and not", _declaration_span(places, c.var, -1), "use another variable"
            )


def _declare(node: Node, before: set[str], seen: dict[str, int], places: Places) -> set[str]:
    """Return the variables declared in ``node``, and add them to ``before``, the variables declared so far."""
    match node:
        case Component(var=var) | Negation(var=var):
            seen[var] = seen.get(var, 0) + 1
            if var in before:
                hint = "use another name; only the alternatives of a choice may share one"
                raise ex.error_at(
                    f"`{var}` is declared twice", _declaration_span(places, var, seen[var] - 1), hint, code="query_name"
                )
            before.add(var)
            return {var}
        case _:
            declared: set[str] = set()
            for part in walk.parts(node):
                added = _declare(part, before, seen, places)
                declared |= added
                if isinstance(node, Choice):
                    before -= added
            before |= declared
            return declared


def _declaration_span(places: Places, var: str, number: int) -> ex.Span | None:
    spans = places.get(var, [])
    return spans[number] if -len(spans) <= number < len(spans) else None


def _check_sources(query: Query, places: Places) -> None:
    if not query.sources:
        return
    source_types = {s.type for s in query.sources}
    for source in query.sources:
        for name, value in source.query.returns:
            if name in _MATCH_ATTRIBUTES:
                hint = "every match has one as an event: choose another name"
                raise ex.error_at(f"RETURN cannot name a value `{name}` in a query of FROM", value, hint)
    for c in walk.components(query.pattern):
        for kind in c.types:
            if kind not in source_types:
                message = f"type `{kind}` comes from no query of FROM"
                raise ex.error_at(message, _declaration_span(places, c.var, 0), suggest(kind, source_types))


# ---- conditions


def _check_conjunct(expr: ex.Expr, max_events: MaxEvents, negated: Collection[str]) -> None:
    """Check one conjunct of WHERE. ``max_events``: the most events that each variable binds."""
    _check_known(expr, max_events, negated)
    check_condition(expr)
    mentioned = walk.variables_in(expr)
    if not mentioned:
        raise ex.error_at("a condition without a variable", expr, "leave it out")
    if len(absent := [v for v in mentioned if v in negated]) > 1:
        message = f"a condition on two negated variables, `{absent[0]}` and `{absent[1]}`"
        raise ex.error_at(message, expr, "write one for each")
    walking: set[str] = set()
    for leaf in walk.leaves_of(expr):
        if leaf.var not in negated:
            if _walks(leaf) and max_events[leaf.var] == 1:
                hint = f"write + after its type, or {leaf.var}.attribute"
                raise ex.error_at(f"`{leaf.var}` is no repetition: there is no [i]", leaf, hint)
            _check_number(leaf, max_events[leaf.var])
        elif not isinstance(leaf, ex.Attribute) or leaf.index is not None:
            message = f"`{leaf.var}` is negated: each of its events is looked at alone"
            raise ex.error_at(message, leaf, f"write {leaf.var}.attribute")
        if _walks(leaf):
            walking.add(leaf.var)
        if isinstance(leaf, ex.Aggregate) and AGGREGATES[leaf.function].where == "matches":
            hint = "write it in HAVING, where all events are bound"
            raise ex.error_at(f"`{leaf.function}` looks at complete matches", leaf, hint, code="query_type")
    if len(walking) > 1:
        first, second = sorted(walking)
        hint = f"plain {second}.x already means each event of {second}[]"
        raise ex.error_at(f"[i] of two variables, `{first}` and `{second}`, in one condition", expr, hint)


def _walks(leaf: ex.Leaf) -> bool:
    """Return whether a reference means the events of a repetition one after another."""
    if isinstance(leaf, ex.Attribute):
        return leaf.index == "i" or walk.steps_back(leaf.index) > 0
    return isinstance(leaf, ex.Aggregate) and leaf.scope == "before"


def _check_known(expr: ex.Expr, max_events: MaxEvents, negated: Collection[str]) -> None:
    for leaf in walk.leaves_of(expr):
        if leaf.var not in (variables := {*max_events, *negated}):
            raise ex.error_at(
                f"unknown variable `{leaf.var}`", leaf, suggest(leaf.var, sorted(variables)), code="query_name"
            )


def _check_number(leaf: ex.Leaf, max_events: int | None) -> None:
    """Reject ``a[3]`` or ``a[i-3]`` if the variable binds too few events, because it would never have a value."""
    if isinstance(leaf, ex.Attribute) and max_events is not None and 0 < max_events <= walk.steps_back(leaf.index):
        hint = f"none comes {walk.steps_back(leaf.index)} events after another"
        raise ex.error_at(f"`{leaf.var}` binds {max_events} events at most", leaf, hint)
    if (
        isinstance(leaf, ex.Attribute)
        and isinstance(leaf.index, int)
        and max_events is not None
        and leaf.index > max_events
    ):
        bound = "one event only" if max_events == 1 else f"{max_events} events at most"
        hint = f"write {leaf.var}.{leaf.name}" if max_events == 1 else f"{leaf.var}[{leaf.var}.LEN] is the last one"
        raise ex.error_at(f"`{leaf.var}` binds {bound}", leaf, hint)


def _check_result(expr: ex.Expr, max_events: MaxEvents, negated: Collection[str]) -> None:
    """Check an expression of HAVING or RETURN, which are evaluated on a complete match."""
    _check_known(expr, max_events, negated)
    for leaf in walk.leaves_of(expr):
        if leaf.var in negated:
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
            raise ex.error_at(message, _declaration_span(places, var, 0), "add WITHIN: it says how far to look")


def _open_ended(node: Node, *, last: bool) -> list[str]:
    """Return negations with no component before them (``last``: after them) in the sequences around them."""
    match node:
        case Negation(var=var):
            return [var]
        case Sequence(items=items):
            variables: list[str] = []
            for item in reversed(items) if last else items:
                variables += _open_ended(item, last=last)
                if walk.binds(item):
                    break
            return variables
        case _:
            return [v for part in walk.parts(node) for v in _open_ended(part, last=last)]


# ---- budget


def checked_errors(errors: object) -> Fraction:
    """Return the error budget as an exact number. Raises :class:`QueryError` unless it is a finite number >= 0.

    >>> checked_errors(0.1)
    Fraction(1, 10)
    """
    number = _exact_number(errors)
    if number is None or number < 0:
        raise QueryError(
            f"errors={errors!r} is not an error budget", hint="a number, at least 0 and finite", code="option_invalid"
        )
    return number


def checked_weights(weights: object, variables: tuple[str, ...]) -> tuple[tuple[str, Fraction | None], ...]:
    """Return the weights as (variable, weight) pairs sorted by variable; infinity becomes ``None``.

    Raises :class:`QueryError` for an unknown variable or a weight that is not positive.

    >>> checked_weights({"b": math.inf, "a": 2}, ("a", "b"))
    (('a', Fraction(2, 1)), ('b', None))
    """
    if not isinstance(weights, Mapping):
        raise QueryError(f"weights={weights!r} is not a mapping", hint='weights={"a": 2}', code="option_invalid")
    exact_weights: dict[str, Fraction | None] = {}
    for var, weight in weights.items():
        if var not in variables:
            raise QueryError(
                f"weights: unknown variable `{var}`", hint=suggest(str(var), variables), code="option_invalid"
            )
        if weight is None or (isinstance(weight, float | Decimal) and weight == math.inf):
            exact_weights[var] = None
            continue
        number = _exact_number(weight)
        if number is None or number <= 0:
            message = f"weights: {weight!r} is no weight for `{var}`"
            raise QueryError(message, hint="a positive number, or math.inf for what may not be missing")
        exact_weights[var] = number
    return tuple(sorted(exact_weights.items(), key=lambda pair: pair[0]))


def checked_surplus(surplus: object) -> Fraction | None:
    """Return what a surplus event costs as an exact number; ``None`` and infinity: there may be none.

    Raises :class:`QueryError` unless it is positive.

    >>> checked_surplus(0.5), checked_surplus(math.inf)
    (Fraction(1, 2), None)
    """
    if surplus is None or (isinstance(surplus, float | Decimal) and surplus == math.inf):
        return None
    number = _exact_number(surplus)
    if number is None or number <= 0:
        raise QueryError(
            f"surplus={surplus!r} is no weight",
            hint="a positive number: what each event costs that is surplus under contiguity",
            code="option_invalid",
        )
    return number


def check_surplus(query: Query) -> None:
    """Raise :class:`QueryError` if a query gives a weight to surplus events that changes nothing."""
    if query.surplus is None:
        return
    if not query.strategy.contiguous:
        raise QueryError(
            f"surplus= is for contiguity: {query.strategy.value.replace('_', ' ')} skips events for nothing",
            hint="leave surplus= out, or follow events by strict_contiguity or partition_contiguity",
            code="option_invalid",
        )
    if not query.errors:
        raise QueryError(
            "surplus= says what an event costs of the error budget, and there is none",
            hint="say how much: errors=",
            code="option_invalid",
        )


def _exact_number(value: object) -> Fraction | None:
    """Return a number exactly as the user wrote it, or ``None`` if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Decimal) and not value.is_finite():
        return None
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)
