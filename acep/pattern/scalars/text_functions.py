"""Define functions of texts and of numbers that SQL has and queries in SASE+ have not (docs/reference/sql.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from acep.pattern.scalars.time_templates import write_time

__all__ = ["TEXT_CALLS", "TO_DECIMAL", "TextCall"]

MOST_TEXT = 1 << 20
TO_DECIMAL = "sql decimal"
"""The name of the call that CAST to a decimal is: of a number, the precision and the scale. Types resolve it."""


@dataclass(frozen=True)
class TextCall:
    """A function: the kinds of its arguments, of which those from ``required`` on may be missing, and of its result.
    The result is null if an argument is."""

    arguments: tuple[str, ...]
    required: int
    result: str
    run: Callable[..., Any]


def _pad_left(text: str, size: int, fill: str = " ") -> str | None:
    return _pad(text, size, fill, True)


def _pad_right(text: str, size: int, fill: str = " ") -> str | None:
    return _pad(text, size, fill, False)


def _pad(text: str, size: int, fill: str, is_left: bool) -> str | None:
    if size > MOST_TEXT or (size > len(text) and not fill):
        return None
    missing = max(size, 0) - len(text)
    if missing <= 0:
        return text[: max(size, 0)]
    padding = (fill * (missing // len(fill) + 1))[:missing]
    return padding + text if is_left else text + padding


def _trim(side: str) -> Callable[..., str]:
    def trim(text: str, signs: str = " ") -> str:
        left = text.lstrip(signs) if side != "right" else text
        return left.rstrip(signs) if side != "left" else left

    return trim


def _repeat(text: str, times: int) -> str | None:
    return None if len(text) * times > MOST_TEXT else text * max(times, 0)


def _split_part(text: str, separator: str, number: int) -> str | None:
    if not separator or number == 0:
        return None
    parts = text.split(separator)
    number = number - 1 if number > 0 else len(parts) + number
    return parts[number] if 0 <= number < len(parts) else ""


def _translate(text: str, signs: str, replacements: str) -> str:
    table: dict[int, str] = {}
    for index, sign in enumerate(signs):
        table.setdefault(ord(sign), replacements[index : index + 1])
    return text.translate(table)


def _of_number(function: Callable[..., float], count: int = 1) -> TextCall:
    return TextCall(("number",) * count, count, "float", function)


# The names have a blank, so that no query of SASE+ can call them.
TEXT_CALLS: dict[str, TextCall] = {
    "sql acos": _of_number(math.acos),
    "sql ascii": TextCall(("string",), 1, "int", lambda text: ord(text[0]) if text else 0),
    "sql asin": _of_number(math.asin),
    "sql atan": _of_number(math.atan),
    "sql atan2": _of_number(math.atan2, 2),
    "sql contains": TextCall(("string", "string"), 2, "bool", lambda text, part: part in text),
    "sql cos": _of_number(math.cos),
    "sql degrees": _of_number(math.degrees),
    "sql ends_with": TextCall(("string", "string"), 2, "bool", str.endswith),
    "sql left": TextCall(("string", "int"), 2, "string", lambda text, size: text[:size] if size else ""),
    "sql log2": _of_number(math.log2),
    "sql lpad": TextCall(("string", "int", "string"), 2, "string", _pad_left),
    "sql ltrim": TextCall(("string", "string"), 1, "string", _trim("left")),
    "sql radians": _of_number(math.radians),
    "sql repeat": TextCall(("string", "int"), 2, "string", _repeat),
    "sql replace": TextCall(("string", "string", "string"), 3, "string", str.replace),
    "sql reverse": TextCall(("string",), 1, "string", lambda text: text[::-1]),
    "sql right": TextCall(("string", "int"), 2, "string", lambda text, size: text[-size:] if size else ""),
    "sql rpad": TextCall(("string", "int", "string"), 2, "string", _pad_right),
    "sql rtrim": TextCall(("string", "string"), 1, "string", _trim("right")),
    "sql sin": _of_number(math.sin),
    "sql split_part": TextCall(("string", "string", "int"), 3, "string", _split_part),
    "sql starts_with": TextCall(("string", "string"), 2, "bool", str.startswith),
    "sql tan": _of_number(math.tan),
    "sql time text": TextCall(("string", *("int",) * 7), 8, "string", write_time),
    "sql translate": TextCall(("string", "string", "string"), 3, "string", _translate),
    "sql trim": TextCall(("string", "string"), 1, "string", _trim("both")),
    "sql strpos": TextCall(("string", "string"), 2, "int", lambda text, part: text.find(part) + 1),
}
"""The functions by their names in expressions."""
