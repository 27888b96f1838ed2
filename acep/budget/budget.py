"""The budget of a query: how much of a pattern may be missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from acep.errors import QueryError
from acep.pattern.check import checked_errors, checked_weights
from acep.pattern.tree import Query
from acep.pattern.walk import variables

__all__ = ["Budget", "tolerant"]

Number = int | float | Fraction | Decimal


@dataclass(frozen=True)
class Budget:
    """What a query may spend.

    ``errors``: the greatest total weight of missing letters. ``weights``: variables to the weights of their
    letters, and of the events that break a negation. What is given here replaces what ``acep.parse`` or
    ``acep.regex`` was given; ``None`` leaves it.
    """

    errors: Number | None = None
    weights: Mapping[str, Number | None] | None = None


def tolerant(query: Query, budget: Budget | None) -> Query:
    """The query with the error budget and the weights of ``budget``.

    Raises :class:`QueryError` for a negative budget, a weight that is not positive, or an unknown variable.

    >>> import acep
    >>> tolerant(acep.regex("ab", within=5), Budget(errors=1)).errors
    Fraction(1, 1)
    """
    if budget is None:
        return query
    if not isinstance(budget, Budget):
        raise QueryError(f"budget= takes an acep.Budget, not {type(budget).__name__}")
    if budget.errors is not None:
        query = replace(query, errors=checked_errors(budget.errors))
    if budget.weights is not None:
        query = replace(query, weights=checked_weights(budget.weights, variables(query.pattern)))
    return query
