"""Hold matches as flat arrays, and the places of them at which measures are computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["MatchBatch", "MeasurePoints"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MatchBatch:
    """m matches over sorted rows.

    ``partition``, ``number``, ``first``: (m,) partition, number in it, first row. ``offsets``: (m + 1,) where the
    labels of each match begin in ``labels``, (r,) labels of all mapped rows. ``begins`` and ``ends``: (m,) the rows of
    the partition of each match."""

    partition: Ints
    number: Ints
    first: Ints
    offsets: Ints
    labels: npt.NDArray[np.uint16]
    begins: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def match(self) -> Ints:
        """Return (r,) the match of each mapped row."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def rows(self) -> Ints:
        """Return (r,) the sorted row of each mapped row."""
        steps = np.arange(len(self.labels)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return np.repeat(self.first, np.diff(self.offsets)) + steps


@dataclass(frozen=True)
class MeasurePoints:
    """Places at which measures are computed: (p,) matches, and up to which mapped row (exclusive) each has come."""

    match: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.match)
