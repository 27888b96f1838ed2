"""Counts of matches as columns: what the counting engine gives, without a match in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.matches.found_columns import unscaled
from acep.pattern.expressions import Value

__all__ = ["Counted", "Row"]

Ints = npt.NDArray[np.int64]


class Row(NamedTuple):
    """``matches`` matches of a partition that end from ``first`` to ``last`` (ticks), ``error`` the least of them."""

    key: tuple[Value, ...]
    first: int
    last: int
    bundle: int
    error: int | Fraction
    matches: int


@dataclass(frozen=True, eq=False)
class Counted:
    """n rows, as columns of n.

    Of match points ``first`` and ``last`` are the point and ``bundle`` the first point of its bundle; of bundles they
    are its first and last point. ``error``: ``scale`` times what the user counts. ``matches``: how many, int64, or
    Python's integers as objects where one is larger; empty where only points were asked for.
    """

    keys: tuple[Column, ...]
    first: Ints
    last: Ints
    bundle: Ints
    error: Ints
    scale: int
    matches: Any

    def __len__(self) -> int:
        return len(self.first)

    def rows(self) -> Iterator[Row]:
        """One row after the other; the matches of points count as 1."""
        keys = list(zip(*(c.to_list() for c in self.keys), strict=True)) if self.keys else [()] * len(self)
        matches = self.matches.tolist() if len(self.matches) else [1] * len(self)
        columns = (self.first.tolist(), self.last.tolist(), self.bundle.tolist(), self.error.tolist(), matches)
        for key, first, last, bundle, error, many in zip(keys, *columns, strict=True):
            yield Row(key, first, last, bundle, unscaled(error, self.scale), many)
