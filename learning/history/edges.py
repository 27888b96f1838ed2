"""Keep weighted edges of the history graph: a sparse matrix of sorted coordinates, which needs no SciPy to add to."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from acep.learning.trajectories.match_vectors import Bools, Floats, Ints

__all__ = ["Edges"]


class Edges:
    """Weights of pairs (row, column) in a matrix of ``rows`` by ``columns``.

    At most ``limit`` pairs are kept; beyond that the lightest are removed.

    >>> edges = Edges(4, 3)
    >>> edges.add(np.array([2, 0, 2]), np.array([1, 2, 1]), np.array([1.0, 5.0, 2.0]))
    >>> [part.tolist() for part in edges.triples()]
    [[0, 2], [2, 1], [5.0, 3.0]]
    """

    def __init__(self, rows: int, columns: int, limit: int = 1 << 18) -> None:
        self.rows, self.columns, self.limit = rows, columns, limit
        self.keys: Ints = np.zeros(0, dtype=np.int64)
        self.weights: Floats = np.zeros(0)

    def add(self, rows: Ints, columns: Ints, weights: Floats) -> None:
        """Add weights; pairs may occur several times."""
        if not len(rows):
            return
        keys, key_index = np.unique(rows * self.columns + columns, return_inverse=True)
        self._add(keys, np.bincount(key_index, weights, len(keys)).astype(np.float64))

    def merge(self, other: Edges, new_columns: Ints | None = None) -> None:
        """Add another matrix of the same size; ``new_columns``: the new number of each column (-1: left out)."""
        rows, columns, weights = other.triples()
        if new_columns is not None:
            columns = new_columns[columns]
        self.add(rows[columns >= 0], columns[columns >= 0], weights[columns >= 0])

    def scale(self, factor: float) -> None:
        """Multiply all weights by a factor."""
        self.weights *= factor

    def drop(self, columns: Bools) -> None:
        """Remove the columns of a mask."""
        stays = ~columns[self.keys % self.columns]
        self.keys, self.weights = self.keys[stays], self.weights[stays]

    def triples(self) -> tuple[Ints, Ints, Floats]:
        """Return rows, columns and weights, sorted by row, then column."""
        return self.keys // self.columns, self.keys % self.columns, self.weights

    def restore(self, keys: Ints, weights: Floats) -> None:
        """Set ``keys`` and ``weights``; ``ValueError`` if they are not valid for this matrix."""
        fits = keys.dtype == np.int64 and weights.dtype == np.float64 and keys.shape == weights.shape == (len(keys),)
        fits = fits and bool(np.all(keys[1:] > keys[:-1]) and np.all((weights >= 0) & np.isfinite(weights)))
        if not fits or (len(keys) and not 0 <= keys[0] <= keys[-1] < self.rows * self.columns):
            raise ValueError("no edges")
        self.keys, self.weights = keys, weights

    def matrix(self) -> Any:
        """Return the edges as a ``scipy.sparse.csr_array`` (needs SciPy)."""
        sparse = import_module("scipy.sparse")
        rows, columns, weights = self.triples()
        return sparse.csr_array((weights, (rows, columns)), shape=(self.rows, self.columns))

    def _add(self, keys: Ints, weights: Floats) -> None:
        positions = np.searchsorted(self.keys, keys)
        is_present = np.zeros(len(keys), dtype=np.bool_)
        inside = positions < len(self.keys)
        is_present[inside] = self.keys[positions[inside]] == keys[inside]
        self.weights[positions[is_present]] += weights[is_present]
        if not is_present.all():
            self.keys = np.insert(self.keys, positions[~is_present], keys[~is_present])
            self.weights = np.insert(self.weights, positions[~is_present], weights[~is_present])
        if len(self.keys) > self.limit:
            heavy = np.sort(np.argsort(-self.weights, kind="stable")[: self.limit])
            self.keys, self.weights = self.keys[heavy], self.weights[heavy]
