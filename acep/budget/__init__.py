"""Define the budget that a user gives a query, and keep to it."""

from acep.budget.budget import Budget, tolerant

__all__ = ["Budget", "tolerant"]
