"""Say of a Sigma rule what of it has no exact counterpart."""

from __future__ import annotations

from acep.errors import QueryError

__all__ = ["MOST_TEXT", "checked_text", "excerpt", "refusal"]

MOST_TEXT = 60


def refusal(message: str, hint: str | None = None) -> QueryError:
    """Return the error of a rule that cannot be said exactly, without a place."""
    return QueryError(message, hint=hint, code="query_invalid")


def excerpt(text: object) -> str:
    r"""Return the beginning of a text in one line, for a message.

    >>> excerpt("a\nb"), len(excerpt("a" * 99))
    ('a b', 63)
    """
    words = "".join(sign if sign.isprintable() else " " for sign in str(text)[: MOST_TEXT + 1])
    return words if len(words) <= MOST_TEXT else f"{words[:MOST_TEXT]}..."


def checked_text(text: str, what: str) -> str:
    """Return a text that can stand in a rule. Raises :class:`QueryError` for one with zeros or half characters."""
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise refusal(f"{what} has characters that no text of events has", "write it without NUL and surrogates")
    return text
