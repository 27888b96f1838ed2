"""Tell the names that rotation gives to the files of a log from those of other files."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath

__all__ = ["generation_of", "is_packed", "rotated_from"]

PACKED = (".gz", ".zst", ".bz2", ".xz", ".lz4", ".lzma", ".Z", ".zip")
DATE = r"\d{4}-?\d\d-?\d\d(?:[T._-]?\d{1,2}(?:[.:_-]?\d\d)*)?|\d{9,12}"
BEHIND = re.compile(rf"(.+)[._-](?:(\d{{1,4}})|{DATE})")
INSIDE = re.compile(rf"(.+)[._-](?:{DATE})(\.\w+)")


def rotated_from(name: str, bases: Collection[str]) -> str | None:
    """Return the file of which another is an older part by its name: one with a number or a date behind, or with a date
    before its ending, also compressed. ``None``: of none of them.

    >>> bases = {"app.log", "d/a.csv"}
    >>> [rotated_from(name, bases) for name in ("app.log.1", "app.log-20260131.gz", "d/a-2026-01-31.csv", "d/b.csv")]
    ['app.log', 'app.log', 'd/a.csv', None]
    """
    plain = name
    if is_packed(name):
        plain = name[: name.rindex(".")]
        if plain in bases:
            return plain
    if (match := BEHIND.fullmatch(plain)) is not None and match[1] in bases:
        return match[1]
    if (match := INSIDE.fullmatch(plain)) is not None and match[1] + match[2] in bases:
        return match[1] + match[2]
    return None


def is_packed(name: str) -> bool:
    """Return whether a name is that of a compressed file."""
    return PurePosixPath(name).suffix in PACKED


def generation_of(name: str) -> int:
    """Return a number that is smaller for older files, where rotation counts them; 0 for other names.

    >>> sorted(["a.log.1", "a.log.10", "a.log.2"], key=generation_of)
    ['a.log.10', 'a.log.2', 'a.log.1']
    """
    match = BEHIND.fullmatch(name)
    return -int(match[2]) if match is not None and match[2] else 0
