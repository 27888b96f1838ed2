"""Find out how large a terminal is, and which characters it can show."""

from __future__ import annotations

import os
from typing import TextIO

__all__ = ["has_blocks", "size_of"]


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
