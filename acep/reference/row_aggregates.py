"""Compute aggregates over the values of rows of a match, one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from acep.errors import DataError

__all__ = ["ROW_AGGREGATES", "distinct_values"]


def distinct_values(values: list[Any]) -> list[Any]:
    """Return the different values that are not null, each at its first place."""
    return [*dict.fromkeys(value for value in values if value is not None)]


def _present(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _spread(values: list[Any], freedom: int, is_root: bool) -> float | None:
    numbers = _present(values)
    if len(numbers) <= freedom:
        return None
    spread = float(np.var(np.array(numbers, np.float64), ddof=freedom))
    return spread**0.5 if is_root else spread


def _best(values: list[Any], key_columns: list[list[Any]], is_least: bool) -> Any:
    pairs = [(other, -i, value) for i, (value, other) in enumerate(zip(values, key_columns[0], strict=True))
             if other is not None]  # fmt: skip
    if not pairs:
        return None
    best = min(pairs, key=lambda pair: (pair[0], -pair[1])) if is_least else max(pairs, key=lambda pair: pair[:2])
    return best[2]


def _sum(values: list[Any]) -> Any:
    numbers = _present(values)
    total = sum(numbers) if numbers else None
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise DataError("a sum of integers does not fit in 64 bits", hint="cast the column to double",
                        code="data_value")  # fmt: skip
    return total


ROW_AGGREGATES: dict[str, Callable[[list[Any], list[list[Any]], tuple[str, ...]], Any]] = {
    "count": lambda values, keys, texts: len(_present(values)),
    "sum": lambda values, keys, texts: _sum(values),
    "avg": lambda values, keys, texts: float(_sum(values)) / len(_present(values)) if _present(values) else None,
    "min": lambda values, keys, texts: min(_present(values), default=None),
    "max": lambda values, keys, texts: max(_present(values), default=None),
    "any_value": lambda values, keys, texts: next(iter(_present(values)), None),
    "max_by": lambda values, keys, texts: _best(values, keys, False),
    "min_by": lambda values, keys, texts: _best(values, keys, True),
    "string_agg": lambda values, keys, texts: texts[0].join(_present(values)) if _present(values) else None,
    "stddev": lambda values, keys, texts: _spread(values, 1, True),
    "stddev_pop": lambda values, keys, texts: _spread(values, 0, True),
    "median": lambda values, keys, texts: float(np.median(_present(values))) if _present(values) else None,
    "variance": lambda values, keys, texts: _spread(values, 1, False),
    "variance_pop": lambda values, keys, texts: _spread(values, 0, False),
}
"""The aggregates by name: of the values in order, of columns of keys, and of constant texts."""
