"""Find integers, in text and in columns, that no double equals."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["WHY", "cast_that_holds", "equals_no_double", "is_inexact", "reason_of_value"]

LONG = r"^\s*[+-]?\d{16,}\s*$"  # 2**53, up to which all integers are doubles, has 16 digits
LARGEST_DIGITS = 309  # of a double
MOST_PLACES = 18  # of a decimal
WHY = "an integer that no double equals"


def is_inexact(text: str) -> bool:
    """Return whether a text is an integer that no double equals.

    >>> is_inexact("9007199254740993"), is_inexact(" 9007199254740992"), is_inexact("9007199254740993.5")
    (True, False, False)
    """
    if re.match(LONG, text, re.ASCII) is None:
        return False
    digits = text.strip().lstrip("+-").lstrip("0")
    return len(digits) > LARGEST_DIGITS or _is_rounded(int(digits or "0"))


def equals_no_double(column: pa.ChunkedArray) -> bool:
    """Return whether a column of texts or decimals has an integer that no double equals.

    >>> equals_no_double(pa.chunked_array([["9007199254740993", None]])), equals_no_double(pa.chunked_array([["1"]]))
    (True, False)
    """
    import pyarrow.compute as pc

    if pa.types.is_decimal(column.type):
        integers = column.filter(pc.equal(column, pc.trunc(column)))
        return any(_is_rounded(int(value)) for value in integers.to_pylist())
    long = column.filter(pc.match_substring_regex(column, LONG))
    try:
        numbers = pc.utf8_trim_whitespace(long).cast(pa.int64()).combine_chunks().to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # a plus sign, or more than 64 bits
        return any(map(is_inexact, long.to_pylist()))
    doubles = numbers.astype(np.float64)
    in_reach = doubles < 2.0**63
    return bool((~in_reach | (np.where(in_reach, doubles, 0).astype(np.int64) != numbers)).any())


def reason_of_value(value: Any) -> str:
    """Return what to add to the message that a value is no float, where it is an integer that no double equals."""
    cast = cast_that_holds(value)
    return "" if cast is None else f", {WHY}; {cast} holds it"


def cast_that_holds(value: Any) -> str | None:
    """Return the cast to a type that holds an integer which no double equals: to a decimal of as many places as 64 bits
    leave, or to a text if they leave none, as other values may have decimals; ``None`` for other values.

    >>> cast_that_holds("9007199254740993"), cast_that_holds(2**70 + 1), cast_that_holds("1.5")
    ('decimal(19,3)', 'string', None)
    """
    number = _number_of(value)
    if number is None:
        return None
    places = [places for places in range(1, MOST_PLACES + 1) if abs(number) * 10**places < 2**63]
    return f"decimal(19,{places[-1]})" if places else "string"


def _number_of(value: Any) -> int | None:
    """Return the integer that a value is or has as its text, if no double equals it."""
    if isinstance(value, str):
        return int(Decimal(value.strip())) if is_inexact(value) else None
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or value != int(value):
        return None
    return int(value) if _is_rounded(int(value)) else None


def _is_rounded(number: int) -> bool:
    try:
        return int(float(number)) != number
    except OverflowError:
        return True
