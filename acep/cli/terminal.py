"""Write texts to the terminal, which acts upon none of their characters; find out how large it is."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from acep.errors import printable

__all__ = ["has_blocks", "printable_lines", "say", "show", "size_of"]


def printable_lines(text: str) -> str:
    r"""Return a text of some lines with escapes in place of other controls and of what turns the direction of writing.
    Texts of the input may be in it, and a terminal would act upon these.

    >>> printable_lines("a\x1b[2Jb\tc\nd")
    'a\\x1b[2Jb\tc\nd'
    """
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def show(text: str) -> None:
    """Write a result that people read to stdout, and end its last line."""
    sys.stdout.write(f"{printable_lines(text)}\n")


def say(text: str) -> None:
    """Write a message to stderr, and end its last line."""
    sys.stderr.write(f"{printable_lines(text)}\n")


def has_blocks(out: TextIO) -> bool:
    """Return whether ``out`` can write block characters such as ``█``."""
    return (out.encoding or "").lower().startswith("utf")


def size_of(out: TextIO) -> tuple[int, int]:
    """Return the columns and lines of a terminal; 80 and 24 if they are unknown."""
    try:
        size = os.get_terminal_size(out.fileno())
    except (OSError, ValueError, AttributeError):
        return 80, 24
    return size.columns or 80, size.lines or 24
