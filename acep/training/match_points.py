"""List the match points of a run, with partitions numbered alike in all runs, so that runs can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns

__all__ = ["Ints", "Partitions", "points_of", "recall_of"]

Ints = npt.NDArray[np.int64]


@dataclass
class Partitions:
    """Numbers for partition keys, the same in all runs that share this object."""

    numbers: dict[Any, int] = field(default_factory=dict)

    def number_rows(self, keys: Sequence[Column], rows: int) -> Ints:
        """Return the partition number of each row, int64[rows].

        >>> from acep.plan.schema import Kind
        >>> one = Column(Kind.STRING, np.array([1, 0, 1]), None, ["a", "b"])
        >>> partitions = Partitions()
        >>> partitions.number_rows([one], 3).tolist(), partitions.number_rows([one.take(slice(1, 2))], 1).tolist()
        ([1, 0, 1], [0])
        """
        if not keys or not rows:
            return np.zeros(rows, np.int64)
        words = np.stack([_words(key.values) for key in keys])
        distinct, first, key_index = np.unique(words, axis=1, return_index=True, return_inverse=True)
        texts = zip(*(key.take(first).to_list() for key in keys), strict=True)
        numbers = np.array([self.numbers.setdefault(text, len(self.numbers)) for text in texts], np.int64)
        assert distinct.shape[1] == len(numbers)
        return numbers[key_index.ravel()]


def points_of(matches: FoundColumns | Counted, partitions: Partitions) -> Ints:
    """Return partition, time and bundle of each match or counted match point, int64[n, 3]; of equal neighbours only
    one."""
    if not len(matches):
        return np.zeros((0, 3), np.int64)
    end = matches.last if isinstance(matches, Counted) else matches.end
    columns = [*(_words(key.values) for key in matches.keys), end, matches.bundle]
    new = np.append(True, np.zeros(len(matches) - 1, np.bool_))
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    rows = np.flatnonzero(new)
    numbers = partitions.number_rows([key.take(rows) for key in matches.keys], len(rows))
    return np.stack([numbers, end[rows], matches.bundle[rows]], axis=1)


def recall_of(found_points: Ints, points: Ints) -> tuple[float, float]:
    """Return the shares of match points and of bundles that were found (int64[n, 2 or 3]), of all ``points``
    (int64[m, 3]). A bundle is found if any of its points is. Found points that are not in ``points`` do not count.

    >>> recall_of(np.array([[0, 5], [0, 5]]), np.array([[0, 5, 1], [0, 6, 1], [2, 5, 1], [2, 9, 2]]))
    (0.25, 0.3333333333333333)
    """
    every = {(int(p), int(t)): (int(p), int(b)) for p, t, b in points}
    in_points = {(int(row[0]), int(row[1])) for row in found_points} & every.keys()
    bundles = {every[point] for point in in_points}
    return _share(len(in_points), len(every)), _share(len(bundles), len(set(every.values())))


def _share(part: int, total: int) -> float:
    return part / total if total else 1.0


def _words(values: npt.NDArray[Any]) -> Ints:
    return values.view(np.int64) if values.dtype == np.float64 else values.astype(np.int64)
