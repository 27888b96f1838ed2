"""Write texts to CSV so that no spreadsheet takes them for formulas."""

from __future__ import annotations

import re
from typing import Any

from acep.errors import DataError

__all__ = ["check_quoting", "quoted_formula"]

_BEGINS = re.compile(
    "[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
)  # the last four: wide forms, which some take for the others
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def quoted_formula(value: Any) -> Any:
    """Return the value of a cell with an apostrophe before a text that a spreadsheet may take for a formula. Numbers
    stay as they are.

    >>> [quoted_formula(value) for value in ("=1+1", "@x", "-1.50", "a=b", -3, None)]
    ["'=1+1", "'@x", '-1.50', 'a=b', -3, None]
    """
    if isinstance(value, str) and _BEGINS.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def check_quoting(quote_formulas: Any, form: str | None) -> None:
    """Raise :class:`DataError` if formulas are to be quoted in another format than CSV (``None``: none is written)."""
    if not isinstance(quote_formulas, bool):
        raise DataError(f"quote_formulas= is True or False, not {quote_formulas!r}", code="option_invalid")
    if quote_formulas and form != "csv":
        raise DataError(
            "quote_formulas=True is for CSV, which spreadsheets open", hint="leave it out", code="option_invalid"
        )
