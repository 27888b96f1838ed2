"""Match texts with regular expressions by RE2, in Arrow: in time linear in the text, whatever the pattern."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from acep.errors import QueryError

__all__ = ["REGEXP_LIKE", "check_pattern", "matching", "regexp_like"]

REGEXP_LIKE = "regexp_like"


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
