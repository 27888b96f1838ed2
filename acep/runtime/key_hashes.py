"""Compute the hash by which Spark spreads keys over buckets: ``xxhash64`` of its SQL, for columns of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError

__all__ = ["hash_keys", "hash_more"]

Hashes: TypeAlias = npt.NDArray[np.uint64]
Words: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]

SEED = 42
P1, P2, P3, P4, P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
WORD = 8
STRIPE = 32
LONG_DIGITS = 18
"""The most digits of a decimal that Spark keeps in 64 bits."""


def hash_keys(columns: Sequence[pa.Array | pa.ChunkedArray]) -> npt.NDArray[np.int64]:
    """Return the hash of each row of some columns, as ``xxhash64`` of Spark gives it.

    Raises :class:`DataError` for a column of a type that cannot be hashed here.

    >>> hash_keys([pa.array(["x", None]), pa.array([1, 2])]).tolist()
    [-7029016486253711561, -3341702809300393011]
    >>> hash_keys([pa.array([], pa.string()), pa.array([], pa.int64())]).tolist()
    []
    """
    arrays = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
    hashes = np.full(len(arrays[0]), SEED, np.uint64)
    with np.errstate(over="ignore"):
        for array in arrays:
            is_valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)
            hashed = _hash_column(array, hashes)
            hashes = np.where(is_valid, hashed, hashes)  # a null leaves the hash as it is
    return hashes.view(np.int64)


def hash_more(hashes: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the hashes of rows with one more column, of 64-bit numbers without nulls. ``hashes`` are those without it.

    >>> bool(hash_more(hash_keys([pa.array(["x"])]), np.array([1])) == hash_keys([pa.array(["x"]), pa.array([1])]))
    True
    """
    with np.errstate(over="ignore"):
        return _hash_words(numbers, hashes.view(np.uint64)).view(np.int64)


def _hash_column(array: Any, seeds: Hashes) -> Hashes:
    """Return the hashes of the values of a column, each with a seed of its own; that of a null is any."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _hash_column(array.dictionary_decode(), seeds)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _hash_texts(array.cast(pa.large_string()).cast(pa.large_binary()), seeds)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _hash_texts(array.cast(pa.large_binary()), seeds)
    if pa.types.is_decimal(kind):
        numbers = [None if value is None else int(value.scaleb(kind.scale)) for value in array.to_pylist()]
        if kind.precision <= LONG_DIGITS:
            return _hash_words(np.array([number or 0 for number in numbers], np.int64), seeds)
        return _hash_texts(pa.array(map(_shortest_bytes, numbers), pa.large_binary()), seeds)
    return _hash_words(_words_of(array), seeds)


def _words_of(array: Any) -> Words:
    """Return the values of a column as whole numbers of as many bytes as Spark hashes."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return _fill(array.cast(pa.int8())).astype(np.int32)
    if pa.types.is_integer(kind) and kind not in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        numbers = _fill(array)
        return numbers if kind == pa.int64() else numbers.astype(np.int32)
    if pa.types.is_floating(kind) and kind != pa.float16():
        floats = _fill(array) + 0.0  # -0.0 and 0.0 are one key
        floats[np.isnan(floats)] = np.nan
        return floats.view(np.int32) if kind == pa.float32() else floats.view(np.int64)
    if pa.types.is_date32(kind):
        return _fill(array.cast(pa.int32()))
    if pa.types.is_timestamp(kind):
        return _fill(array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()))
    if pa.types.is_duration(kind):
        return _fill(array.cast(pa.duration("us")).cast(pa.int64()))
    raise DataError(f"the hash of keys of type {kind} is not known here", code="data_type")


def _fill(array: Any) -> npt.NDArray[Any]:
    """Return a column of numbers as an array, with 0 for null."""
    numbers: npt.NDArray[Any] = array.fill_null(0).to_numpy(zero_copy_only=False)
    return numbers


def _shortest_bytes(number: int | None) -> bytes:
    r"""Return a number as Java's ``BigInteger.toByteArray`` does.

    >>> _shortest_bytes(128), _shortest_bytes(-128), _shortest_bytes(0)
    (b'\x00\x80', b'\x80', b'\x00')
    """
    number = number or 0
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _hash_texts(array: Any, seeds: Hashes) -> Hashes:
    """Return the hashes of the bytes of a column, those of one length together."""
    hashes = seeds.copy()
    values = array.to_pylist()
    lengths = np.array([-1 if value is None else len(value) for value in values], np.int64)
    for length in np.unique(lengths[lengths >= 0]).tolist():
        rows = np.flatnonzero(lengths == length)
        joined = b"".join(values[row] for row in rows.tolist())
        hashes[rows] = _hash_bytes(np.frombuffer(joined, np.uint8).reshape(len(rows), length), seeds[rows])
    return hashes


def _hash_words(words: Words, seeds: Hashes) -> Hashes:
    """Return the hashes of whole numbers."""
    little = np.ascontiguousarray(words.astype(words.dtype.newbyteorder("<")))
    return _hash_bytes(little.view(np.uint8).reshape(len(words), words.dtype.itemsize), seeds)


def _hash_bytes(rows: npt.NDArray[np.uint8], seeds: Hashes) -> Hashes:
    """Return the hash of each row of bytes: XXH64."""
    length, done = rows.shape[1], 0
    if length >= STRIPE:
        lanes = [seeds + P1 + P2, seeds + P2, seeds.copy(), seeds - P1]
        while done + STRIPE <= length:
            for i in range(4):
                lanes[i] = _round(lanes[i], _read(rows, done + WORD * i, WORD))
            done += STRIPE
        first, second, third, fourth = (_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        hashes = first + second + third + fourth
        for lane in lanes:
            hashes = (hashes ^ _round(np.zeros_like(lane), lane)) * P1 + P4
    else:
        hashes = seeds + P5
    hashes = hashes + np.uint64(length)
    while done + WORD <= length:
        word = _round(np.zeros_like(seeds), _read(rows, done, WORD))
        hashes, done = _rotate(hashes ^ word, 27) * P1 + P4, done + WORD
    if done + WORD // 2 <= length:
        hashes, done = _rotate(hashes ^ (_read(rows, done, WORD // 2) * P1), 23) * P2 + P3, done + WORD // 2
    while done < length:
        hashes, done = _rotate(hashes ^ (_read(rows, done, 1) * P5), 11) * P1, done + 1
    hashes = (hashes ^ (hashes >> np.uint64(33))) * P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * P3
    mixed: Hashes = hashes ^ (hashes >> np.uint64(32))
    return mixed


def _read(rows: npt.NDArray[np.uint8], begin: int, size: int) -> Hashes:
    """Return some bytes of each row as a number, the lowest first."""
    part = np.ascontiguousarray(rows[:, begin : begin + size])
    return part.view(f"<u{size}").reshape(len(rows)).astype(np.uint64)


def _round(lanes: Hashes, words: Hashes) -> Hashes:
    return _rotate(lanes + words * P2, 31) * P1


def _rotate(words: Hashes, bits: int) -> Hashes:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
