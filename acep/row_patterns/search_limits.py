"""Say where a search begins and ends in partitions that go on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["SearchLimits"]

Ints = npt.NDArray[np.int64]


@dataclass
class SearchLimits:
    """For each of p partitions ``starts``, (p,) the rows before the first start; ``stops``, (p,) the rows before the
    first one at which no match starts; ``numbers``, (p,) the matches before. ``open_rows`` are the sorted rows that
    stand for those to come.

    After the search, ``next_starts`` and ``last_numbers`` say the same of the next one, and ``open_labels`` has offsets
    by partition, and the labels of the open matches (``None``: they are not known)."""

    starts: Ints
    stops: Ints
    numbers: Ints
    open_rows: Ints
    next_starts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    last_numbers: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    open_labels: tuple[Ints, npt.NDArray[np.uint16]] | None = None

    def triples(self) -> list[tuple[int, int, int]]:
        """Return start, stop and number of each partition."""
        return list(zip(self.starts.tolist(), self.stops.tolist(), self.numbers.tolist(), strict=True))

    def end_at(self, next_starts: Ints, last_numbers: Ints) -> None:
        """Take in where the search ended in each partition, and how many matches came until then."""
        self.next_starts, self.last_numbers = next_starts, last_numbers
