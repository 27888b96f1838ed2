"""Define the scalar functions of texts."""

from __future__ import annotations

from collections.abc import Callable

from acep.functions.scalar_function import Example, Fixed, ScalarFunction
from acep.functions.time_templates import write_time
from acep.regular_expressions import check_group, check_pattern, extracting, matching, regexp_extract, regexp_like

__all__ = ["TEXTS"]

_MOST_TEXT = 1 << 20


def _substring(text: str, start: int, length: int | None = None) -> str:
    first = start - 1
    last = len(text) if length is None else first + length
    return text[max(first, 0) : max(last, 0)]


def _pad_left(text: str, size: int, fill: str = " ") -> str | None:
    return _pad(text, size, fill, True)


def _pad_right(text: str, size: int, fill: str = " ") -> str | None:
    return _pad(text, size, fill, False)


def _pad(text: str, size: int, fill: str, is_left: bool) -> str | None:
    if size > _MOST_TEXT or (size > len(text) and not fill):
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
    return None if len(text) * times > _MOST_TEXT else text * max(times, 0)


def _replace(text: str, part: str, other: str = "") -> str:
    return text.replace(part, other)


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


_PATTERN = "a pattern in quotes"

TEXTS = (
    ScalarFunction(
        "lower", ("text",), "text", "the text in small letters", Example("lower(a.s)", {"s": "Ab"}, "ab"), str.lower,
        nodes={"Lower": ("this",)},
    ),
    ScalarFunction(
        "upper", ("text",), "text", "the text in capitals", Example("upper(a.s)", {"s": "Ab"}, "AB"), str.upper,
        nodes={"Upper": ("this",)},
    ),
    ScalarFunction(
        "length", ("text",), "integer", "the number of its characters", Example("length(a.s)", {"s": "abc"}, 3), len,
        nodes={"Length": ("this",)},
    ),
    ScalarFunction(
        "trim", ("text",), "text", "the text without blanks at its ends", Example("trim(a.s)", {"s": " ab "}, "ab"),
        str.strip,
    ),
    ScalarFunction(
        "substring", ("text", "integer", "integer"), "text",
        "a part of the text, from a place on that is 1 at its begin, and of a length",
        Example("substring(a.s, 2, 3)", {"s": "abcdef"}, "bcd"), _substring, required=2, synonyms=("substr",),
        nodes={"Substring": ("this", "start", "length")},
    ),
    ScalarFunction(
        "concat", ("text",), "text", "the texts one after the other",
        Example("concat(a.s, '-', 'x')", {"s": "ab"}, "ab-x"), lambda *parts: "".join(parts), repeats=True,
    ),
    ScalarFunction(
        "regexp_like", ("text", "text"), "condition",
        "whether a constant [regular expression](semantics.md#regular-expressions) matches a part of the text",
        Example("regexp_like(a.path, '^/admin')", {"path": "/admin/x"}, True), regexp_like, of_texts=matching,
        fixed={1: Fixed(_PATTERN, str, check_pattern, is_checked_in_sql=False)}, of_one_attribute=True,
        nodes={"RegexpLike": ("this", "expression")},
    ),
    ScalarFunction(
        "regexp_extract", ("text", "text", "integer"), "text",
        "what a group of a constant regular expression matches, or with 0 the whole of it; null without a match",
        Example("regexp_extract(a.path, '/user/([0-9]+)', 1)", {"path": "/user/17/x"}, "17"), regexp_extract,
        of_texts=extracting, of_one_attribute=True, sql_names=("REGEXP_EXTRACT",),
        fixed={
            1: Fixed(_PATTERN, str, lambda pattern, group: check_pattern(pattern)),
            2: Fixed("the number of a group", int, check_group),
        },
    ),
    ScalarFunction(
        "sql ascii", ("text",), "integer", "the number of its first character in Unicode",
        Example("ASCII(A.s)", {"s": "ab"}, 97), lambda text: ord(text[0]) if text else 0, nodes={"Ascii": ("this",)},
    ),
    ScalarFunction(
        "sql contains", ("text", "text"), "condition", "whether it contains another text",
        Example("CONTAINS(A.s, 'b')", {"s": "abc"}, True), lambda text, part: part in text,
        nodes={"Contains": ("this", "expression")},
    ),
    ScalarFunction(
        "sql ends_with", ("text", "text"), "condition", "whether it ends with another text",
        Example("ENDS_WITH(A.s, 'bc')", {"s": "abc"}, True), str.endswith, nodes={"EndsWith": ("this", "expression")},
    ),
    ScalarFunction(
        "sql left", ("text", "integer"), "text", "its first characters", Example("LEFT(A.s, 2)", {"s": "abc"}, "ab"),
        lambda text, size: text[:size] if size else "", nodes={"Left": ("this", "expression")},
    ),
    ScalarFunction(
        "sql lpad", ("text", "integer", "text"), "text", "the text filled up at its begin to a length",
        Example("LPAD(A.s, 4, '0')", {"s": "17"}, "0017"), _pad_left, required=2,
    ),
    ScalarFunction(
        "sql ltrim", ("text", "text"), "text", "the text without blanks, or other characters, at its begin",
        Example("LTRIM(A.s)", {"s": " ab "}, "ab "), _trim("left"), required=1,
    ),
    ScalarFunction(
        "sql repeat", ("text", "integer"), "text", "the text several times",
        Example("REPEAT(A.s, 2)", {"s": "ab"}, "abab"), _repeat, nodes={"Repeat": ("this", "times")},
    ),
    ScalarFunction(
        "sql replace", ("text", "text", "text"), "text", "the text with one part of it replaced by another",
        Example("REPLACE(A.s, 'a', 'x')", {"s": "aba"}, "xbx"), _replace, required=2,
        nodes={"Replace": ("this", "expression", "replacement")},
    ),
    ScalarFunction(
        "sql reverse", ("text",), "text", "its characters from the end", Example("REVERSE(A.s)", {"s": "abc"}, "cba"),
        lambda text: text[::-1], nodes={"Reverse": ("this",)},
    ),
    ScalarFunction(
        "sql right", ("text", "integer"), "text", "its last characters", Example("RIGHT(A.s, 2)", {"s": "abc"}, "bc"),
        lambda text, size: text[-size:] if size else "", nodes={"Right": ("this", "expression")},
    ),
    ScalarFunction(
        "sql rpad", ("text", "integer", "text"), "text", "the text filled up at its end to a length",
        Example("RPAD(A.s, 4, '0')", {"s": "17"}, "1700"), _pad_right, required=2,
    ),
    ScalarFunction(
        "sql rtrim", ("text", "text"), "text", "the text without blanks, or other characters, at its end",
        Example("RTRIM(A.s)", {"s": " ab "}, " ab"), _trim("right"), required=1,
    ),
    ScalarFunction(
        "sql split_part", ("text", "text", "integer"), "text", "one of the parts between separators",
        Example("SPLIT_PART(A.s, '-', 2)", {"s": "a-b-c"}, "b"), _split_part,
        nodes={"SplitPart": ("this", "delimiter", "part_index")},
    ),
    ScalarFunction(
        "sql starts_with", ("text", "text"), "condition", "whether it starts with another text",
        Example("STARTS_WITH(A.s, 'ab')", {"s": "abc"}, True), str.startswith,
        nodes={"StartsWith": ("this", "expression")},
    ),
    ScalarFunction(
        "sql time text", ("text", *("integer",) * 7), "text", "a time as text by a template",
        Example("TO_CHAR(A.t, 'YYYY')", {"t": "2026-01-31 10:00:00"}, "2026"), write_time,
    ),
    ScalarFunction(
        "sql translate", ("text", "text", "text"), "text", "the text with characters replaced by others",
        Example("TRANSLATE(A.s, 'ab', 'xy')", {"s": "abc"}, "xyc"), _translate,
        nodes={"Translate": ("this", "from_", "to")},
    ),
    ScalarFunction(
        "sql trim", ("text", "text"), "text", "the text without blanks, or other characters, at its ends",
        Example("TRIM(A.s)", {"s": " ab "}, "ab"), _trim("both"), required=1,
    ),
    ScalarFunction(
        "sql strpos", ("text", "text"), "integer", "the place of another text in it, 0 if it is not there",
        Example("STRPOS(A.s, 'b')", {"s": "abc"}, 2), lambda text, part: text.find(part) + 1,
        nodes={"StrPosition": ("this", "substr")},
    ),
)  # fmt: skip
