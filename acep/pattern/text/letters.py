"""Parse letter expressions, which are regular expressions over event types, to a :class:`~acep.pattern.tree.Query`.

An example is ``a(b|c)d*`` with a window and a number of errors (the 2016 paper, section 2).
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Many
from datetime import timedelta
from fractions import Fraction
from typing import TypeVar

from acep.errors import QueryError, suggest
from acep.pattern.check import check_query, check_surplus, checked_errors, checked_surplus, checked_weights
from acep.pattern.text.patterns import flatten
from acep.pattern.text.quantifiers import bounds, repeat
from acep.pattern.text.sase import Errors, Surplus, Weights
from acep.pattern.text.syntax import Branch, branches, name, read
from acep.pattern.times import window_of
from acep.pattern.tree import Choice, Component, Node, Output, Query, Sequence, Strategy
from acep.pattern.walk import variables

__all__ = ["regex"]

Selection = TypeVar("Selection", Strategy, Output)


def regex(
    text: str,
    *,
    within: float | Fraction | str | timedelta | None = None,
    errors: Errors = 0,
    by: str | Many[str] | None = None,
    strategy: str | Strategy = Strategy.SKIP_TILL_ANY_MATCH,
    weights: Weights | None = None,
    surplus: Surplus = None,
    output: str | Output = Output.ALL,
) -> Query:
    """Parse a letter expression to a query.

    Each letter or digit is an event type, ``.`` is any type, and ``'SUBMIT'`` is a type with a longer name. The
    operators are ``* + ? {m} {m,} {m,n} {m+}``, groups ``( )`` or ``[ ]``, and ``|``. ``within`` is the window: a
    number in the units of ``ts``, a text (``"1 hour"``, ``"5 EVENTS"``), a timedelta, or ``None`` for no limit.
    ``errors`` is the greatest total weight of missing letters, ``by`` are the attributes that all events of a match
    share, ``strategy`` is the event selection strategy, ``weights`` maps letters to other weights than 1, ``surplus``
    is what an event costs that is surplus under contiguity (``None``: there may be none), and ``output`` selects the
    matches (``"all"``, ``"non_overlap"``, ``"longest_non_overlap"``, ``"shortest_non_overlap"``,
    ``"earliest_maximal"``).

    Raises :class:`~acep.errors.QueryError` for a text that cannot be parsed, or an invalid query.

    >>> query = regex("a(b|c)d*", within=5, errors=1, by="user")
    >>> query.pattern.items[2]
    Repeat(item=Component(var='d', types=('d',)), low=0, high=None)
    >>> query.ties
    ('user',)
    """
    if not isinstance(text, str):
        raise QueryError(f"a letter expression is a text, not {type(text).__name__}", code="option_invalid")
    try:
        node = _alternatives(read("letters", text))
        query = Query(
            text=text,
            pattern=node,
            strategy=_member(Strategy, strategy, str(strategy).lower()),
            ties=_attributes(by),
            within=window_of(within),
            output=_member(Output, output, "_".join(str(output).lower().replace("-", " ").split())),
            errors=checked_errors(errors),
            weights=checked_weights({} if weights is None else weights, variables(node)),
            letters=True,
            surplus=checked_surplus(surplus),
        )
        check_surplus(query)
    except QueryError as error:
        raise error.located(text) from None
    try:
        check_query(query)
    except QueryError as error:
        raise QueryError(error.message, text=text, start=0, end=len(text), hint=error.hint, code=error.code) from None
    return query


def _alternatives(branch: Branch) -> Node:
    return flatten(Choice, [flatten(Sequence, [_item(b) for b in branches(option)]) for option in branches(branch)])


def _item(branch: Branch) -> Node:
    match branch.data:
        case "single":
            letter = name(branch)
            # The type called "." must not share a name with the dot for any type.
            return Component("'.'" if letter == "." else letter, (letter,))
        case "anything":
            return Component(".", ())
        case "group":
            return _alternatives(branch)
        case _:
            inner, quantifier = branches(branch)
            return repeat(_item(inner), *bounds(quantifier), ())


def _attributes(by: str | Many[str] | None) -> tuple[str, ...]:
    attributes: object = (by,) if isinstance(by, str) else () if by is None else by
    try:
        names = tuple(attributes) if isinstance(attributes, Iterable) else (attributes,)
    except TypeError:  # a NumPy array without dimensions
        names = (attributes,)
    if not all(isinstance(n, str) and n for n in names):
        raise QueryError(
            f"by={by!r} is not a list of attributes", hint='by="symbol" or by=["symbol", "user"]', code="option_invalid"
        )
    return tuple(dict.fromkeys(names))


def _member(kind: type[Selection], value: str | Selection, member_name: str) -> Selection:
    """Return the strategy or output that an argument means; ``member_name`` is the argument as a text."""
    if isinstance(value, kind):
        return value
    members = {member.value: member for member in kind if not member.value.endswith("after_match_skip")}
    if member_name not in members:
        hint = suggest(member_name[:60], members)
        raise QueryError(f"unknown {kind.__name__.lower()} `{member_name[:60]}`", hint=hint, code="option_invalid")
    return members[member_name]
