"""Convert values from one type to another (CAST): names of types, and functions of one value each.

A value that does not fit the type gives null (docs/reference/semantics.md, "CAST").
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from acep.pattern.times import timestamp_text

__all__ = ["CASTS", "CAST_TYPES", "DECIMAL_TEXT", "TIMESTAMP_TEXT", "TO_DECIMAL", "cast_type", "timestamp_cast"]

CAST_TYPES: Final = {
    **dict.fromkeys(("integer", "int", "bigint", "long"), "integer"),
    **dict.fromkeys(("float", "double", "double precision"), "float"),
    **dict.fromkeys(("text", "string", "varchar"), "text"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
}
"""The types of CAST by the names that a query may give them."""

DECIMAL_TEXT: Final = "decimal text"
TIMESTAMP_TEXT: Final = "timestamp text"
TO_DECIMAL: Final = "sql decimal"
"""The name of the call that CAST to a decimal is: of a number, the precision and the scale. Types resolve it."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BLANKS = " \t\r\n"


def cast_type(name: str) -> str | None:
    """Return the type that the name of a call casts to, or ``None`` for other calls.

    >>> cast_type("cast integer"), cast_type("lower")
    ('integer', None)
    """
    return name.removeprefix("cast ") if name in CASTS and name.startswith("cast ") else None


def _integer(x: Any) -> int | None:
    if isinstance(x, str):
        text = x.strip(_BLANKS)
        return int(text) if _INTEGER.fullmatch(text) else None
    return int(x)  # towards zero


def _float(x: Any) -> float | None:
    if isinstance(x, str):
        text = x.strip(_BLANKS)
        if not _NUMBER.fullmatch(text):
            return None
        number = float(text) + 0.0  # -0.0 becomes 0.0
        return number if math.isfinite(number) else None
    return float(x)


def _text(x: Any) -> str | None:
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, float):
        return repr(x + 0.0) if math.isfinite(x) else None
    return str(x)


def _boolean(x: Any) -> bool | None:
    if isinstance(x, str):
        return {"true": True, "false": False}.get(x.strip(_BLANKS).lower())
    return bool(x)


def _decimal_text(units: int, places: int) -> str:
    digits = str(abs(units)).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if units < 0 else text


def timestamp_cast(ticks: Any, tick_ns: Fraction) -> str:
    """Return a time in ticks as ISO text in UTC, without the zeros at its end.

    >>> timestamp_cast(1_500, Fraction(1_000_000))
    '1970-01-01 00:00:01.5'
    """
    text = timestamp_text(int(Fraction(ticks) * tick_ns // 1))
    return text.rstrip("0") if "." in text else text


# name: function, whether the result is null if an argument is null
CASTS: Final[dict[str, tuple[Callable[..., Any], bool]]] = {
    "cast integer": (_integer, True),
    "cast float": (_float, True),
    "cast text": (_text, True),
    "cast boolean": (_boolean, True),
    DECIMAL_TEXT: (_decimal_text, True),
    TIMESTAMP_TEXT: (timestamp_cast, True),
}
"""The calls that CAST is; a query names none of them. A decimal comes with its number of places."""
