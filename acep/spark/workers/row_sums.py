"""Sum up hashes of rows, to see whether a micro-batch that is run again has the same rows, in any order."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["sum_of_rows"]

Words = npt.NDArray[np.uint64]

ODD: Final = np.uint64(0x9E3779B97F4A7C15)
EMPTY: Final = np.uint64(0xD1B54A32D192ED03)
"""The word of a null."""


def sum_of_rows(rows: pa.Table) -> int:
    """Return the sum of hashes of all rows, modulo 2**64. Each hash covers all columns of a row.

    >>> first = pa.table({"x": [1, 2, None], "k": ["a", "b", "a"]})
    >>> sum_of_rows(first) == sum_of_rows(first.take([2, 0, 1]))
    True
    >>> sum_of_rows(first) == sum_of_rows(first.set_column(1, "k", pa.array(["b", "a", "a"])))
    False
    """
    hashes = np.zeros(rows.num_rows, np.uint64)
    for column in rows.columns if rows.num_rows else ():
        hashes *= ODD
        hashes += _words_of(column.combine_chunks())
        _mix(hashes)
    return int(hashes.sum())


def _words_of(values: pa.Array) -> Words:
    """Return a word for each value; equal values have equal words."""
    kind = values.type
    if pa.types.is_null(kind):
        return np.full(len(values), EMPTY)
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
        kind = values.type
    if pa.types.is_primitive(kind) and kind.bit_width <= 64:
        size = kind.bit_width // 8
        words = np.frombuffer(values.buffers()[1], f"u{size}", len(values), values.offset * size).astype(np.uint64)
    elif pa.types.is_decimal(kind):
        wide = np.frombuffer(values.buffers()[1], np.uint64)
        wide = wide.reshape(-1, kind.bit_width // 64)[values.offset : values.offset + len(values)]
        words = wide[:, 0].copy()
        for part in wide.T[1:]:
            words *= ODD
            words += part
    else:
        if pa.types.is_nested(kind) or pa.types.is_primitive(kind):  # lists, and intervals of 128 bits
            values = pa.array([None if value is None else repr(value) for value in values.to_pylist()], pa.string())
        texts = values.cast(pa.large_binary()).dictionary_encode()
        words_by_text = np.append(_words_of_texts(texts.dictionary), EMPTY)
        text_words: Words = words_by_text[texts.indices.fill_null(len(words_by_text) - 1).to_numpy()]
        return text_words
    return np.where(values.is_valid().to_numpy(zero_copy_only=False), words, EMPTY) if values.null_count else words


def _words_of_texts(texts: pa.Array) -> Words:
    """Return a word for each text, from its letters, their places and its length."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
    lengths = np.diff(ends)
    positions = np.arange(len(letters)) - np.repeat(ends[:-1] - ends[0], lengths)
    letters += positions.astype(np.uint64) << np.uint64(8)
    _mix(letters)
    sums = np.append(np.uint64(0), letters.cumsum())
    text_words: Words = sums[ends[1:] - ends[0]] - sums[ends[:-1] - ends[0]] + lengths.astype(np.uint64)
    return text_words


def _mix(words: Words) -> None:
    """Spread each word over all its bits, in place."""
    words ^= words >> np.uint64(32)
    words *= ODD
    words ^= words >> np.uint64(29)
    words *= ODD
    words ^= words >> np.uint64(32)
