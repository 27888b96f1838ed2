"""Define the scalar functions that give one of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acep.functions.scalar_function import Example, ScalarFunction

__all__ = ["CHOICES"]


def _values_not_null(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


CHOICES = (
    ScalarFunction(
        "least", ("value", "value"), "argument", "the least of the values that are not null; also `min` of several",
        Example("least(a.x, a.y, 5)", {"x": 7, "y": None}, 5),
        lambda *values: min(_values_not_null(values), default=None), repeats=True, takes_nulls=True,
        operations={"pair": "MIN"}, nodes={"Least": ("this", "*expressions")},
    ),
    ScalarFunction(
        "greatest", ("value", "value"), "argument",
        "the greatest of the values that are not null; also `max` of several",
        Example("greatest(a.x, a.y, 5)", {"x": 7, "y": None}, 7),
        lambda *values: max(_values_not_null(values), default=None), repeats=True, takes_nulls=True,
        operations={"pair": "MAX"}, nodes={"Greatest": ("this", "*expressions")},
    ),
    ScalarFunction(
        "coalesce", ("value",), "argument", "the first value that is not null",
        Example("coalesce(a.x, a.y, 0)", {"x": None, "y": 3}, 3),
        lambda *values: next(iter(_values_not_null(values)), None), repeats=True, takes_nulls=True,
        operations={"pair": "COALESCE"}, nodes={"Coalesce": ("this", "*expressions")},
    ),
)  # fmt: skip
