"""Define the tree of expressions over bound events; :mod:`acep.pattern.evaluation` evaluates them.

A variable, an index and a name identify an attribute. The indexes ``None`` (plain ``a.x``) and ``"i"`` mean *each*
event bound to a Kleene variable, ``"i-1"`` the one bound before it, ``"i-2"`` the one before that, ``"last"``
(``a[a.LEN]``) the last one of a completed repetition, and an integer ``n >= 1`` the n-th bound event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal as OneOf
from typing import TypeAlias

from acep.errors import Code, QueryError
from acep.functions.aggregates import COUNT_DISTINCT, Composition
from acep.pattern.user_functions import Function

__all__ = [
    "COUNT_DISTINCT",
    "Aggregate",
    "Attribute",
    "Between",
    "Binary",
    "Call",
    "Duration",
    "Expr",
    "In",
    "Index",
    "IsNull",
    "Leaf",
    "Length",
    "Like",
    "Literal",
    "Span",
    "Timestamp",
    "Unary",
    "Value",
    "compose",
    "error_at",
    "locate_errors",
]

Value: TypeAlias = bool | int | float | str | None
Index: TypeAlias = int | str | None
"""``None``, ``"i"``, ``"i-1"``, ``"i-2"``, ..., ``"last"``, or the number of an event."""


Scope: TypeAlias = OneOf["before", "all"]


@dataclass(frozen=True)
class Span:
    """A place in the query's text: character offsets ``[start, end)``."""

    start: int
    end: int


@dataclass(frozen=True)
class Literal:
    """A constant: null, boolean, integer, float or string.

    ``exact`` is the number as it is written, if it has more digits than a float holds.
    """

    value: Value
    span: Span | None = None
    exact: Fraction | None = None


@dataclass(frozen=True)
class Duration:
    """A length of time in nanoseconds: ``250 ms``, ``1 hour``."""

    ns: Fraction
    span: Span | None = None


@dataclass(frozen=True)
class Timestamp:
    """A point in time in nanoseconds since 1970-01-01 UTC: ``TIMESTAMP '2024-01-02 10:00'``."""

    ns: int
    span: Span | None = None


@dataclass(frozen=True)
class Attribute:
    """``var[index].name``."""

    var: str
    index: Index
    name: str
    span: Span | None = None


@dataclass(frozen=True)
class Length:
    """``a.LEN``: the number of events that are bound to a completed repetition."""

    var: str
    span: Span | None = None


@dataclass(frozen=True)
class Aggregate:
    """``function(a[..i-1].name)`` (scope ``before``) or ``function(a[].name)`` (scope ``all``).

    ``function`` is one of :data:`acep.functions.aggregates.AGGREGATES` that queries have. ``name`` is ``None`` only for
    ``count(a[..i-1])`` and ``count(a[])``, which count events; with a name, ``count`` counts non-null values.
    """

    function: str
    var: str
    scope: Scope
    name: str | None
    span: Span | None = None


@dataclass(frozen=True)
class Unary:
    """``-x`` or ``NOT x``; ``op`` is ``"-"`` or ``"not"``."""

    op: str
    operand: Expr
    span: Span | None = None


@dataclass(frozen=True)
class Binary:
    """``left op right``; ``op`` is one of ``+ - * / %``, ``= != < <= > >=``, ``and``, ``or``."""

    op: str
    left: Expr
    right: Expr
    span: Span | None = None


@dataclass(frozen=True)
class Call:
    """A call of a scalar function (:data:`acep.functions.scalars.SCALARS`), ``case``, or a cast
    (:mod:`acep.pattern.scalars.casts`). ``user_function`` is the user's own function that is called."""

    name: str
    args: tuple[Expr, ...]
    span: Span | None = None
    user_function: Function | None = None


@dataclass(frozen=True)
class In:
    """``operand [NOT] IN (values)``."""

    operand: Expr
    values: tuple[Expr, ...]
    negated: bool = False
    span: Span | None = None


@dataclass(frozen=True)
class Between:
    """``operand [NOT] BETWEEN low AND high``, both ends included."""

    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False
    span: Span | None = None


@dataclass(frozen=True)
class Like:
    """``operand [NOT] LIKE 'pattern'``: ``%`` any characters, ``_`` one, backslash escapes."""

    operand: Expr
    pattern: str
    negated: bool = False
    span: Span | None = None


@dataclass(frozen=True)
class IsNull:
    """``operand IS [NOT] NULL``."""

    operand: Expr
    negated: bool = False
    span: Span | None = None


Leaf: TypeAlias = Attribute | Length | Aggregate
"""A reference to events, whose value an expression is computed from."""

Expr: TypeAlias = Literal | Duration | Timestamp | Leaf | Unary | Binary | Call | In | Between | Like | IsNull


def compose(composition: Composition, of_name: Callable[[str], Expr], span: Span | None) -> Expr:
    """Return the expression that a composition of aggregates is, where ``of_name`` gives that of one aggregate.

    >>> compose(("-", "max", "min"), lambda name: Aggregate(name, "a", "all", "x"), None).op
    '-'
    """
    if isinstance(composition, str):
        return of_name(composition)
    operator, left, right = composition
    return Binary(operator, compose(left, of_name, span), compose(right, of_name, span), span)


def error_at(message: str, part: Expr | Span | None, hint: str | None = None, code: Code | None = None) -> QueryError:
    """Return an error at a place, if that is known. The text is added later (:meth:`AcepError.located`)."""
    span = part if isinstance(part, Span) or part is None else part.span
    return QueryError(message, start=span.start if span else None, end=span.end if span else None, hint=hint, code=code)


@contextmanager
def locate_errors(span: Span) -> Iterator[None]:
    """Give an error that has no place the place ``span``."""
    try:
        yield
    except QueryError as error:
        raise error if error.start is not None else error_at(error.message, span, error.hint, code=error.code) from None
