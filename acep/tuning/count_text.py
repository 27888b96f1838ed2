"""Write counts and tables as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10

__all__ = ["GREATEST", "count_text", "number_text", "table_lines"]

GREATEST = 10**15  # of greater numbers only the magnitude is told


def count_text(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number of things in words.

    >>> count_text(1, "key"), count_text(2000, "match", "matches"), count_text(2**500, "match", "matches")
    ('1 key', '2,000 matches', 'about 10^150 matches')
    """
    return f"{number_text(number)} {singular if number == 1 else plural or singular + 's'}"


def number_text(number: int) -> str:
    """Return a number as text, of a very great one the magnitude."""
    return f"{number:,}" if number < GREATEST else f"about 10^{int(log10(number))}"


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table as lines, with the columns to the right.

    >>> list(table_lines(("k", "matches"), [("0", "12")]))
    ['  k  matches', '  0       12']
    """
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    for row in (heads, *rows):
        yield "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
