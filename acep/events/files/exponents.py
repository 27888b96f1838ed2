"""Find numbers in text with exponents to which no double is near."""

from __future__ import annotations

import math
import re

import pyarrow as pa

__all__ = ["first_beyond", "has_long_exponents", "is_beyond"]

EXPONENT = re.compile(rb"[eE][+-]?\d\d\d")  # doubles have exponents of three digits at most
DECIMAL = re.compile(r"\s*[+-]?(?P<digits>\d+\.?\d*|\.\d+)[eE][+-]?\d+\s*")


def has_long_exponents(data: bytes) -> bool:
    """Return whether some bytes have an exponent of three digits or more."""
    return (b"e" in data or b"E" in data) and EXPONENT.search(data) is not None


def is_beyond(text: str) -> bool:
    """Return whether a text is a number with an exponent to which no double is near: it would be infinite, or 0.

    >>> is_beyond("1e400"), is_beyond("-2.5E-999"), is_beyond("1e300"), is_beyond("0e999"), is_beyond("inf")
    (True, True, False, False, False)
    """
    number = DECIMAL.fullmatch(text)
    if number is None:
        return False
    value = float(text)
    return math.isinf(value) or (value == 0 and any(digit in "123456789" for digit in number["digits"]))


def first_beyond(texts: pa.ChunkedArray) -> tuple[int, str] | None:
    """Return the row and the text of the first such number in a column of texts.

    >>> first_beyond(pa.chunked_array([["0.1", None], ["1e300", "1e-400"]]))
    (3, '1e-400')
    """
    row = 0
    for chunk in texts.chunks:
        data = chunk.buffers()[2]
        if data is not None and has_long_exponents(data.to_pybytes()):
            for place, text in enumerate(chunk.to_pylist()):
                if text is not None and is_beyond(text):
                    return row + place, text
        row += len(chunk)
    return None
