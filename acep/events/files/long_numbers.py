"""Find numbers in text that have more digits than a double distinguishes."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError
from acep.events.buffers import join_chunks
from acep.events.files.casts import as_cast
from acep.events.files.whole_numbers import is_inexact

__all__ = [
    "DIGITS",
    "first_inexact",
    "first_long",
    "is_exact",
    "is_long",
    "large_rows",
    "long_runs",
    "refuse",
    "refuse_beyond",
    "refuse_inexact",
]

DIGITS = 17  # enough to distinguish every double from any other
# Numbers with more significant digits and no exponent; zeros at both ends do not count.
PATTERN = rf"^\s*[+-]?[0.]*[1-9](\.?\d){{{DIGITS - 1}}}[\d.]*[1-9][0.]*\s*$"
LONG = re.compile(PATTERN)
EXACT = 2**53
MOST_DIGITS = 400  # of more there are no doubles
INTEGER = re.compile(r"[+-]?[0-9]+")
FEW = 1_000
PLACES = bytes(ord("0") if chr(byte) in "0123456789." else ord(" ") for byte in range(256))


def is_long(text: str) -> bool:
    """Return whether a text is a number with more digits than a double distinguishes.

    >>> is_long("90071992547409930.01"), is_long("0.30000000000000004"), is_long("1.50000000000000000000")
    (True, False, False)
    """
    return len(text) > DIGITS and LONG.match(text) is not None


def first_long(texts: pa.ChunkedArray) -> tuple[int, str] | None:
    """Return the row and the text of the first such number in a column of texts.

    >>> first_long(pa.chunked_array([["0.1", None], ["-1234.5678901234567", "0.123456789012345678"]]))
    (3, '0.123456789012345678')
    """
    row = 0
    for chunk in texts.chunks:
        rows = _candidates(chunk)
        if len(rows) > FEW:
            import pyarrow.compute as pc

            rows = rows[pc.match_substring_regex(chunk.take(pa.array(rows)), PATTERN).to_numpy(zero_copy_only=False)]
        for row_in_chunk, text in zip(rows.tolist(), chunk.take(pa.array(rows)).to_pylist(), strict=True):
            if is_long(text):
                return row + row_in_chunk, text
        row += len(chunk)
    return None


def is_exact(number: int) -> bool:
    """Return whether a double is equal to an integer.

    >>> is_exact(2**53), is_exact(2**53 + 1), is_exact(10**400)
    (True, False, False)
    """
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def first_inexact(texts: pa.ChunkedArray, values: pa.ChunkedArray | None) -> int | None:
    """Return the row of the first integer that no double equals; ``values`` are those of the texts.

    >>> texts = pa.chunked_array([["9007199254740992", "0.5", "9007199254740993"]])
    >>> first_inexact(texts, None), first_inexact(texts.slice(0, 1), None)
    (2, None)
    """
    if values is not None and (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        rows = large_rows(values)
    else:
        rows = _of_length(texts, len(str(EXACT)))
    for row in rows.tolist():
        digits = (texts[row].as_py() or "").strip(" \t")
        if INTEGER.fullmatch(digits) and (len(digits) > MOST_DIGITS or not is_exact(int(digits))):
            return int(row)
    return None


def large_rows(values: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return the rows of integers or doubles that may stand for integers that no double equals.

    >>> large_rows(pa.chunked_array([[2**53, None, -(2**63)]])).tolist()
    [2]
    >>> large_rows(pa.chunked_array([[1.5, 2.0**53]])).tolist()
    [1]
    """
    numbers, is_null = join_chunks(values)
    if pa.types.is_integer(values.type):
        if not len(numbers) or (numbers.min() >= -EXACT and numbers.max() <= EXACT):
            return np.empty(0, np.int64)
        is_large = (numbers < -EXACT) | (numbers > EXACT)
    else:
        is_large = np.abs(numbers) >= EXACT  # the double of 2**53 + 1 is 2**53
    return np.flatnonzero(is_large if is_null is None else is_large & ~is_null)


def _of_length(texts: pa.ChunkedArray, size: int) -> npt.NDArray[np.int64]:
    """Return the rows of texts with so many bytes at least."""
    n_before, rows = 0, [np.empty(0, np.int64)]
    for chunk in texts.chunks:
        if len(chunk):
            places = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
            rows.append(n_before + np.flatnonzero(np.diff(places) >= size))
        n_before += len(chunk)
    return np.concatenate(rows)


def _candidates(chunk: pa.StringArray) -> npt.NDArray[np.int64]:
    """Return the rows of texts that may be such numbers, by their lengths and first characters."""
    no_rows = np.empty(0, np.int64)
    _, places, data = chunk.buffers()
    if not len(chunk) or data is None or not data.size:
        return no_rows
    offsets = np.frombuffer(places, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    lengths = np.diff(offsets)
    rows = np.flatnonzero(lengths > DIGITS)
    if not len(rows):
        return no_rows
    letters = np.frombuffer(data, np.uint8)
    starts = offsets[:-1][rows].astype(np.int64)
    negative = letters[starts] == ord("-")
    digits = lengths[rows] - negative
    starts += negative
    below_one = 2 * ((letters[starts] == ord("0")) & (letters[starts + 1] == ord(".")))
    starts += below_one
    digits -= below_one
    is_longer = digits > DIGITS
    rows, starts, digits, below_one = rows[is_longer], starts[is_longer], digits[is_longer], below_one[is_longer] > 0
    for _ in range(DIGITS):  # 0.01 has one digit
        below_one &= letters[starts] == ord("0")
        if not below_one.any():
            break
        starts, digits = starts + below_one, digits - below_one
        is_longer = digits > DIGITS
        rows, starts, digits, below_one = rows[is_longer], starts[is_longer], digits[is_longer], below_one[is_longer]
    # With a point these are only DIGITS digits, as in most printed doubles.
    borderline = np.flatnonzero(digits == DIGITS + 1)
    pointed = (letters[starts[borderline][:, None] + np.arange(DIGITS + 1)] == ord(".")).any(axis=1)
    candidates: npt.NDArray[np.int64] = np.delete(rows, borderline[pointed]).astype(np.int64)
    if chunk.null_count and len(candidates):
        candidates = candidates[chunk.is_valid().to_numpy(zero_copy_only=False)[candidates]]
    return candidates


def long_runs(block: bytes) -> list[int]:
    """Return the offsets in lines of JSON where runs of digits and points begin that are such numbers.

    >>> long_runs(b'{"x": 1.5, "y": 90071992547409930.01}')
    [16]
    """
    marked = block.translate(PLACES)
    if b"0" * (DIGITS + 2) not in marked:
        return []
    digit = np.frombuffer(marked, np.uint8) == ord("0")
    edges = np.flatnonzero(np.diff(digit, prepend=False, append=False))
    starts, lengths = edges[::2], np.diff(edges)[::2]
    long = lengths > DIGITS + 1
    starts, lengths = starts[long], lengths[long]
    letters = np.frombuffer(block, np.uint8)
    lengths = lengths - ((letters[starts] == ord("0")) & (letters[starts + 1] == ord(".")))
    runs = zip(starts[lengths > DIGITS + 1].tolist(), edges[1::2][long][lengths > DIGITS + 1].tolist(), strict=True)
    return [start for start, stop in runs if is_long(block[start:stop].decode())]


def refuse(where: str, name: str, text: str, *, written: str | None = None, castable: bool = True) -> DataError:
    """Return the error for such a number in a column of doubles; ``written`` is how the file has it."""
    number = Decimal(text.strip())
    places = max(-int(number.as_tuple().exponent), 0)
    hint = "write it as a text, or with an exponent for the nearest double"
    if castable:
        exact = f"decimal(19,{places})" if places <= 18 and abs(Fraction(number) * 10**places) < 2**63 else "string"
        hint = f"cast it: {as_cast(name, exact)}" + ("" if is_inexact(text) else ", or to float for the nearest double")
    return DataError(
        f"{where}: `{name}` is {(written or text).strip()}, and a double tells numbers of {DIGITS} digits apart, not of"
        " more",
        hint=hint,
        code="data_value",
    )


def refuse_inexact(where: str, name: str, text: str, *, written: str | None = None) -> DataError:
    """Return the error for an integer that no double equals, in a column of doubles."""
    number = int(text) if len(text) <= MOST_DIGITS else 0
    places = next((places for places in (3, 2, 1) if abs(number) * 10**places < 2**63), 0)
    exact = f", {as_cast(name, f'decimal(19,{places})')} holds up to {places} decimals" if number and places else ""
    return DataError(
        f"{where}: `{name}` is {(written or text).strip()}, an integer that no float is equal to, and other cells have"
        " decimals",
        hint=f"{as_cast(name, 'string')} takes all of them as texts{exact}",
        code="data_value",
    )


def refuse_beyond(where: str, name: str, text: str, *, written: str | None = None) -> DataError:
    """Return the error for a number to which no double is near."""
    return DataError(
        f"{where}: `{name}` is {(written or text).strip()[:40]}, and no double is near it",
        hint=f"is it right? {as_cast(name, 'string')} takes all of them as texts, and compares them as such",
        code="data_value",
    )
