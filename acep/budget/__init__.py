"""What a user allows a query to spend."""

from acep.budget.budget import Budget, tolerant

__all__ = ["Budget", "tolerant"]
