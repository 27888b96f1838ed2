"""Hash the values of columns: the same value has the same hash in every process, whatever the column around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.plan.schema import Kind
from acep.sketches.hashing import mix_bits

__all__ = ["STEP", "Hashes", "hashes_of_columns", "hashes_of_texts"]

Hashes = npt.NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)
NULL = np.uint64(0x632BE59BD9B4E019)


def hashes_of_columns(columns: Sequence[Column], size: int) -> Hashes:
    """Return a hash of the ``size`` rows of some columns, uint64[size]; all rows are equal without columns.

    >>> first, second = (Column(Kind.STRING, np.array([1, 0]), None, texts) for texts in (["a", "b"], ["b", "a"]))
    >>> hashes_of_columns([first], 2).tolist() == hashes_of_columns([second], 2)[::-1].tolist()
    True
    """
    hashes: Hashes | None = None
    for column in columns:
        words = _words(column)
        hashes = mix_bits(words if hashes is None else hashes * STEP + words)
    return np.zeros(size, np.uint64) if hashes is None else hashes


def hashes_of_texts(texts: Iterable[str]) -> Hashes:
    """Return a hash of each text."""
    import mmh3  # here, since streams without texts do not need it

    return np.array([mmh3.hash64(text, signed=False)[0] for text in texts], np.uint64)


def _words(column: Column) -> Hashes:
    words: Hashes
    if column.kind is Kind.STRING:
        used, places = np.unique(column.values, return_inverse=True)
        texts = column.texts or [""]  # a column of nulls may have no texts
        words = hashes_of_texts(texts[code] for code in used.tolist())[places]
    elif column.kind is Kind.FLOAT:
        words = (column.values + 0.0).view(np.uint64)  # -0.0 equals 0.0
    else:
        words = np.asarray(column.values, np.int64).view(np.uint64)
    return words if column.valid is None else np.where(column.valid == 0, NULL, words)
