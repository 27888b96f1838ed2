"""Order rows by their key: the columns of a key as words, and the rows of each key one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column

__all__ = ["Ints", "order_by_words", "words_of_keys"]

Ints = npt.NDArray[np.int64]

NARROW, WIDE = 1 << 16, 1 << 62
"""The number of different keys whose numbers fit into 16 bits, and the one above which they are not numbered."""


def words_of_keys(keys: Sequence[Column]) -> list[Ints]:
    """Return columns of words (n int64): two rows have equal words if all of their keys are equal, as nulls are.

    >>> from acep.plan.schema import Kind
    >>> column = Column(Kind.STRING, np.array([0, 1, 2]), None, ["x", "y", "x"])
    >>> words_of_keys([column])
    [array([0, 1, 0])]
    """
    return [words for key in keys for words in _words(key)]


def _words(key: Column) -> list[Ints]:
    values: Any = key.values
    if values.dtype == object:
        values = _numbers_of(values.tolist())
    elif values.dtype == np.float64:
        values = np.asarray(values + 0.0).view(np.int64)  # -0.0 is 0.0
    elif key.texts and not _are_distinct(key.texts, len(values)):
        used, places = np.unique(values, return_inverse=True)
        values = _numbers_of([key.texts[code] for code in used.tolist()])[places]
    words = [values.astype(np.int64, copy=False)]
    return words if key.valid is None else [*words, key.valid.astype(np.int64)]


def _are_distinct(texts: Sequence[str], rows: int) -> bool:
    """Return whether it is known that no text stands twice, with work that the rows bound."""
    return len(texts) <= 2 * rows and len(set(texts)) == len(texts)


def _numbers_of(values: Sequence[Any]) -> Ints:
    """Number values by their first occurrence, equal ones alike."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


def order_by_words(columns: Sequence[Ints], rows: int) -> tuple[Ints, Ints]:
    """Return the order of rows by their words, rows of equal words in their own order, and the places where other words
    begin in it, followed by the number of rows. There must be a row.

    >>> order_by_words([np.array([7, 5, 7])], 3)
    (array([1, 0, 2]), array([0, 1, 3]))
    """
    if not columns:
        return np.arange(rows), np.array([0, rows])
    code, size = np.zeros(rows, np.int64), 1
    for words in columns:
        low, high = int(words.min()), int(words.max())
        size *= high - low + 1
        if size >= WIDE:
            order = np.lexsort(columns[::-1])
            break
        code = code * (high - low + 1) + (words - low)
    else:
        # Numbers of 16 bits are sorted in linear time.
        order = np.argsort(code.astype(np.uint16) if size <= NARROW else code, kind="stable")
        columns = [code]
    edges = np.zeros(rows + 1, bool)
    edges[[0, rows]] = True
    for words in columns:
        in_order = words[order]
        edges[1:-1] |= in_order[1:] != in_order[:-1]
    return order, np.flatnonzero(edges)
