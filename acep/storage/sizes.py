"""Read sizes in bytes: numbers, and texts such as ``64 MB``."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from numbers import Integral

from acep.errors import QueryError

__all__ = ["SIZE", "size_in_bytes"]

SIZE = "bytes, or a text such as '64 MB'"
UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def size_in_bytes(size: object, name: str = "memory") -> int:
    """Return a size in bytes; the units in texts are powers of 1,024 bytes. ``name`` is that of the option.

    Raises :class:`QueryError` for an invalid size.

    >>> size_in_bytes("1.5 kB"), size_in_bytes("2G"), size_in_bytes(7)
    (1536, 2147483648, 7)
    """
    if not isinstance(size, bool) and isinstance(size, Integral):
        if size <= 0:
            raise QueryError(f"{name}={size} is not a positive number of bytes", hint=SIZE, code="option_invalid")
        return int(size)
    if isinstance(size, str):
        match = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([KMGT]?)(?:i?B)?\s*", size, re.IGNORECASE)
        if match is not None:
            n_bytes = math.ceil(Fraction(match[1]) * Fraction(1024) ** UNITS[match[2].upper()])
            if n_bytes > 0:
                return n_bytes
    raise QueryError(f"{name}={size!r} is no size", hint=SIZE, code="option_invalid")
