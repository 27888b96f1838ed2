"""Match texts with regular expressions by RE2, in Arrow: in time linear in the text, whatever the pattern."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import lru_cache

from acep.errors import QueryError

__all__ = ["check_group", "check_pattern", "extracting", "matching", "regexp_extract", "regexp_like"]

_PARTS = re.compile(
    r"""
    \\Q .*? (?: \\E | \Z )                                     # quoted
    | \\ .                                                    # escaped
    | \[ \^? \]? (?: \[:\^?\w+:\] | \\ . | [^\]\\] )* \]       # a class of characters
    | \( (?: \?P?<\w+> | (?! \? ) )                           # the begin of a group that captures
    """,
    re.VERBOSE | re.DOTALL,
)


def check_pattern(pattern: str) -> None:
    """Raise :class:`QueryError` (without a place) unless a text is a regular expression of RE2.

    >>> check_pattern("a(b")
    Traceback (most recent call last):
    acep.errors.QueryError: `a(b` is no regular expression of RE2: missing ): a(b [query_syntax]
    hint: RE2 has no look-ahead, no look-behind and no back references
    """
    import pyarrow as pa

    try:
        matching([""], pattern)
    except pa.ArrowInvalid as error:
        why = str(error).splitlines()[0].removeprefix("Invalid regular expression: ")
        hint = "RE2 has no look-ahead, no look-behind and no back references"
        excerpt = " ".join(pattern[:40].split())
        raise QueryError(
            f"`{excerpt}` is no regular expression of RE2: {why[:80]}", hint=hint, code="query_syntax"
        ) from None


def matching(texts: Sequence[str], pattern: str) -> list[bool]:
    """Return for each text whether the pattern matches a part of it.

    >>> matching(["/admin/x", "/home"], "^/admin")
    [True, False]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    matches: list[bool] = pc.match_substring_regex(pa.array(texts, pa.string()), pattern).to_pylist()
    return matches


@lru_cache(maxsize=100_000)
def regexp_like(text: str, pattern: str) -> bool:
    """Return whether the pattern matches a part of the text."""
    return matching([text], pattern)[0]


def check_group(pattern: str, group: int) -> None:
    """Raise :class:`QueryError` (without a place) unless a regular expression has a group of that number.

    >>> check_group("(a)|(b)", 3)
    Traceback (most recent call last):
    acep.errors.QueryError: the regular expression has no group 3 [query_type]
    hint: it has 2; 0 is the whole of what it matches
    """
    count = _count_groups(pattern)
    if not 0 <= group <= count:
        hint = f"it has {count or 'none'}; 0 is the whole of what it matches"
        raise QueryError(f"the regular expression has no group {group}", hint=hint, code="query_type")


def _count_groups(pattern: str) -> int:
    return sum(part.startswith("(") for part in _PARTS.findall(pattern))


@lru_cache(maxsize=1_000)
def _with_one_group(pattern: str, group: int) -> str:
    """Return the pattern with a name for one group, and no other group that captures: Arrow gives groups with names."""
    numbers = itertools.count(1)

    def rename(part: re.Match[str]) -> str:
        text = part.group()
        if text.startswith("("):
            return "(?P<group>" if next(numbers) == group else "(?:"
        is_open = text.startswith(r"\Q") and not text.endswith(r"\E")  # up to the end: a parenthesis comes behind it
        return text + r"\E" if is_open else text

    renamed = _PARTS.sub(rename, pattern)
    return renamed if group else f"(?P<group>{renamed})"


def extracting(texts: Sequence[str], pattern: str, group: int) -> list[str | None]:
    """Return for each text what a group of the pattern matches, at the first place where the pattern matches.

    Group 0 is the whole match. The value is null without a match, and for a group that takes no part in it. Raises
    :class:`ValueError` for a text that is no pattern, or that has no such group.

    >>> extracting(["id=7", "id=", "x"], "id=([0-9])?", 1)
    ['7', None, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    matching([""], pattern)
    if not 0 <= group <= _count_groups(pattern):
        raise ValueError(f"no group {group}")
    spans = pc.extract_regex_span(pa.array(texts, pa.string()), _with_one_group(pattern, group)).to_pylist()
    values: list[str | None] = []
    for text, span in zip(texts, spans, strict=True):
        place = None if span is None else span["group"]
        values.append(None if place is None else text.encode()[place[0] : sum(place)].decode())
    return values


@lru_cache(maxsize=100_000)
def regexp_extract(text: str, pattern: str, group: int) -> str | None:
    """Return what a group of the pattern matches in the text; ``None`` as in :func:`extracting`."""
    return extracting([text], pattern, group)[0]
