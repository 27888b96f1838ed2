"""Hold counts of matches as columns: the result of the engines that count matches without making them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.matches.found_columns import unscale_error
from acep.pattern.expressions import Value

__all__ = ["Counted", "Row"]

Ints = npt.NDArray[np.int64]


class Row(NamedTuple):
    """The number of ``matches`` of a partition that end from ``first`` to ``last`` (ticks), and their least error."""

    key: tuple[Value, ...]
    first: int
    last: int
    bundle: int
    error: int | Fraction
    matches: int


@dataclass(frozen=True, eq=False)
class Counted:
    """n rows of counts, one per match point or bundle, as columns of length n.

    For a match point, ``first`` and ``last`` are the point and ``bundle`` is the first point of its bundle. For a
    bundle, ``first`` and ``last`` are its first and last point. ``error``: ``scale`` times the user's error.
    ``matches``: int64, or objects (Python integers) if one is larger; empty if only points were requested.
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
        """Yield the rows one by one; if only points were requested, ``matches`` is 1."""
        keys = list(zip(*(c.to_list() for c in self.keys), strict=True)) if self.keys else [()] * len(self)
        matches = self.matches.tolist() if len(self.matches) else [1] * len(self)
        columns = (self.first.tolist(), self.last.tolist(), self.bundle.tolist(), self.error.tolist(), matches)
        for key, first, last, bundle, error, n_matches in zip(keys, *columns, strict=True):
            yield Row(key, first, last, bundle, unscale_error(error, self.scale), n_matches)
