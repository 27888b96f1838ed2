"""Parse SASE+ text to a :class:`~acep.pattern.tree.Query` (an extension of the 2008 paper's language, section 2).

docs/reference/language.md describes the language; ``sase.lark`` is its grammar.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from acep.errors import QueryError, suggest
from acep.pattern.check import check_query, check_surplus, checked_errors, checked_surplus, checked_weights
from acep.pattern.expressions import Expr, Span, locate_errors
from acep.pattern.spelling import value_name
from acep.pattern.text.parameters import Parameters, fill, window_of_parameter
from acep.pattern.text.patterns import Places, pattern
from acep.pattern.text.predicates import conjuncts, expression, function_names
from acep.pattern.text.references import path
from acep.pattern.text.syntax import Branch, amounts, branches, fail, name, quote, read, span, tokens
from acep.pattern.text.user_calls import Functions, fill_functions
from acep.pattern.times import checked_window, read_duration, read_window
from acep.pattern.tree import Output, Query, SkipTarget, Source, Strategy, Within
from acep.pattern.walk import negated_variables, variables_in

__all__ = ["parse"]

Weights = Mapping[str, float | Fraction | Decimal | None]
Errors = float | Fraction | Decimal
Surplus = float | Fraction | Decimal | None


def parse(
    text: str,
    *,
    errors: Errors = 0,
    weights: Weights | None = None,
    surplus: Surplus = None,
    parameters: Parameters | None = None,
    functions: Functions = (),
) -> Query:
    """Parse a query in SASE+ text.

    ``errors`` is the error budget: the greatest total weight of missing components (a number, at least 0). ``weights``
    maps variables to other weights than 1: a positive number, or infinity (or ``None``) for a component that may not
    be missing. ``surplus`` is what an event costs of the error budget that comes between two others under contiguity,
    beyond one in place of each missing component (``None``: there may be none). ``parameters`` are the values of
    ``:name`` in the text: numbers, texts, truth values, datetimes, timedeltas, ``None``, and lists of these behind
    ``IN``. ``functions`` are functions of your own that the text calls by name (:func:`acep.function`).

    Raises :class:`~acep.errors.QueryError`, with the place in the text and a hint, for an invalid query.

    >>> query = parse("PATTERN SEQ(Shelf a, ~(Register b), Exit c) WHERE [tag_id] WITHIN 12 hours")
    >>> query.pattern.items[1]
    Negation(var='b', types=('Register',))
    >>> query.ties
    ('tag_id',)
    >>> parse("PATTERN SEQ(A a, B b) WHERE b.x > :least WITHIN 5", parameters={"least": 3}).where[0].right.value
    3
    """
    if not isinstance(text, str):
        raise QueryError(f"a query is a text, not {type(text).__name__}", code="option_invalid")
    try:
        tree = read("sase", text)
        fill(tree, {} if parameters is None else parameters)
        fill_functions(tree, functions, function_names)
        query = _query(branches(tree)[0], text, checked_errors(errors), {} if weights is None else weights)
        query = replace(query, surplus=checked_surplus(surplus))
        check_surplus(query)
        return query
    except QueryError as error:
        raise error.located(text) from None


def _query(branch: Branch, text: str, errors: Fraction, weights: Weights) -> Query:
    sources = tuple(_source(s, text) for part in branches(branch, "sources") for s in branches(part))
    clauses = _clauses(branch)
    strategy, bound, where, ties = _read_where(clauses.get("where"))
    having = expression(clauses["having"].children[0]) if "having" in clauses else None
    returns = _read_returns(clauses.get("returns"))
    variables_read = {
        v for e in (*where, *([having] if having else []), *(e for _, e in returns)) for v in variables_in(e)
    }
    places = Places(variables_read)
    pattern_branch = branches(branch, "alternatives")[0]
    node = pattern(pattern_branch, places)
    for var, where_it_is in bound:
        if var not in places.declared:
            raise fail(f"unknown variable {quote(var)}", where_it_is, suggest(var, places.declared), code="query_name")
    output, skip = _read_output(clauses.get("output"), places.declared, negated_variables(node))
    query = Query(
        text=text,
        pattern=node,
        strategy=strategy,
        where=tuple(where),
        ties=tuple(dict.fromkeys(_name_of_tie(tie, places.declared) for tie in ties)),
        within=_read_window(clauses.get("within")),
        having=having,
        returns=returns,
        output=output,
        skip=skip,
        sources=sources,
        errors=errors,
        weights=checked_weights(weights, tuple(places.declared)),
    )
    with locate_errors(span(pattern_branch)):
        check_query(query, places.declared)
    return query


def _source(branch: Branch, text: str) -> Source:
    query = _query(branches(branch, "query")[0], text, Fraction(0), {})
    return Source(query, name(branches(branch, "name")[0]))


def _clauses(branch: Branch) -> dict[str, Branch]:
    """Return the clauses by name, each at most once."""
    clauses: dict[str, Branch] = {}
    for clause in branches(branch, "where", "within", "having", "returns", "output_as"):
        kind = clause.data.removesuffix("_as")
        if kind in clauses:
            word = "RETURN" if kind == "returns" else kind.upper()
            hint = "join conditions by AND" if kind in ("where", "having") else None
            raise fail(f"a second {word} clause", clause, hint, code="query_syntax")
        clauses[kind] = clause
    return clauses


def _name_of_tie(tie: Branch, declared: Collection[str]) -> str:
    """Return the key that ``[attr]`` says; ``[dev.id]`` is a field, never an attribute of a variable."""
    if tie.data == "keyed":
        _name_of_tie(branches(tie)[0], declared)
        from acep.pattern.text.keys import key_of_call  # few queries have such keys

        return key_of_call(tie)
    head, *inner = (branches(step)[0] for step in branches(tie))
    if inner and tokens(head)[0].type == "NAME" and name(head) in declared:
        hint = f'write [{".".join(map(name, inner))}]; the field of a column is ["{path(tie)}"]'
        raise fail("`[attribute]` ties the events of all variables", tie, hint)
    return path(tie)


def _read_where(branch: Branch | None) -> tuple[Strategy, list[tuple[str, Span]], list[Expr], list[Branch]]:
    """Return the strategy, the variables it names, the conjuncts and the ties."""
    strategy, bound, where, ties = Strategy.SKIP_TILL_ANY_MATCH, list[tuple[str, Span]](), list[Expr](), list[Branch]()
    for part in branches(branch) if branch is not None else []:
        if part.data == "strategy":
            strategy = Strategy(tokens(part)[0].lower())
            bound = [(name(branches(b)[0]), span(tokens(branches(b)[0])[0])) for b in branches(part)]
        else:
            more, tied = conjuncts(part)
            where += more
            ties += tied
    return strategy, bound, where, ties


def _read_window(branch: Branch | None) -> Within | None:
    if branch is None:
        return None
    (length,) = branches(branch)
    amount, *units = tokens(length) if not branches(length) else [None, *tokens(length)]
    with locate_errors(span(branch)):
        if amount is None:
            return window_of_parameter(branches(length)[0], bool(units))
        if len(units) > 1:
            return checked_window(Within(read_duration(amounts(length)), "ns"))
        return read_window(amount, units[0] if units else None)


def _read_returns(branch: Branch | None) -> tuple[tuple[str, Expr], ...]:
    returns: dict[str, Expr] = {}
    for part in branches(branch) if branch is not None else []:
        value, *label = part.children
        expr = expression(value)
        called = name(branches(part)[1]) if label else value_name(expr)
        if called is None:
            raise fail("this value needs a name", value, "write AS and a name behind it", code="query_syntax")
        if called in returns:
            hint = None if label else "write AS and another name behind it"
            raise fail(f"RETURN names {quote(called)} twice", label[0] if label else value, hint, code="query_name")
        returns[called] = expr
    return tuple(returns.items())


def _read_output(
    branch: Branch | None, declared: Collection[str], negated: Collection[str]
) -> tuple[Output, SkipTarget | None]:
    """Return the choice among matches, and where the next one may begin if it is not after the last event."""
    if branch is None:
        return Output.ALL, None
    (clause,) = branches(branch)
    output, *target = (token.type for token in tokens(clause))
    match target:
        case []:
            return Output[output], None
        case ["PAST_LAST"]:
            return Output[output.replace("AFTER_SKIP", "NON_OVERLAP")], None
        case ["TO_NEXT"]:
            return Output[output], SkipTarget("next")
    (variable,) = branches(branches(clause)[0], "name")
    if name(variable) not in declared:
        hint = suggest(name(variable), declared)
        raise fail(f"unknown variable {quote(name(variable))}", variable, hint, code="query_name")
    if name(variable) in negated:
        hint = "skip to a variable that binds events"
        raise fail(f"{quote(name(variable))} is negated, so that no match binds it", variable, hint)
    return Output[output], SkipTarget("first" if target == ["TO_FIRST"] else "last", name(variable))
