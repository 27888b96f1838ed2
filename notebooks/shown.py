"""Print what stays the same when a notebook runs again."""

from __future__ import annotations

from typing import Any

__all__ = ["given_up"]


def given_up(report: Any) -> None:
    """Print a report without its first line, which says how many seconds it took."""
    print(*str(report).splitlines()[1:], sep="\n")
