"""Define the stretches of files that grow, and how far such a file was taken."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mmh3

__all__ = ["SKIPPED", "FilePart", "Position", "Stretch", "continues", "digest_of_bytes", "mark_of", "skipped_position"]

ENDS = 1 << 10
"""The bytes at the beginning of what was taken of a file, and as many at its end, by which it is known again."""
SKIPPED = -1
"""The ``stop`` of a file that is there and is not read, such as one that was rotated before the first start."""


@dataclass(frozen=True)
class Position:
    """How far a file was taken. ``base`` is the name that is followed, ``name`` that of the file now, ``inode`` its
    number on the disk. ``stop``: the bytes that were taken, its ``header`` of so many bytes included, and ``lines`` in
    them; ``mark`` is a digest of their beginning and end (:func:`mark_of`). ``is_old``: the file was rotated away.
    ``is_whole``: it had no more bytes when it was taken last."""

    base: str
    name: str
    inode: int
    stop: int = 0
    lines: int = 0
    header: int = 0
    mark: str = ""
    is_old: bool = False
    is_whole: bool = False

    @property
    def has_rows(self) -> bool:
        """Return whether anything behind the header was taken."""
        return self.stop > self.header

    @classmethod
    def from_data(cls, fields: Sequence[Any]) -> Position:
        """Return a position from its fields. Raises :class:`TypeError` or :class:`ValueError` for other data."""
        base, name, inode, stop, lines, header, mark, is_old, is_whole = fields
        return cls(str(base), str(name), int(inode), int(stop), int(lines), int(header), str(mark), is_old is True,
                   is_whole is True)  # fmt: skip


@dataclass(frozen=True)
class Stretch:
    """Bytes of a file that grows, from ``start`` to ``stop``, behind so many ``lines``; the first ``header`` bytes of
    the file name its columns. ``digest`` is that of the header and the bytes. ``name`` is that of the file when it was
    read, ``base`` the one that is followed."""

    base: str
    name: str
    inode: int
    start: int
    stop: int
    lines: int
    header: int
    digest: str

    @classmethod
    def from_data(cls, fields: Sequence[Any]) -> Stretch:
        """Return a stretch from its fields. Raises :class:`TypeError` or :class:`ValueError` for other data."""
        base, name, inode, start, stop, lines, header, digest = fields
        return cls(str(base), str(name), int(inode), int(start), int(stop), int(lines), int(header), str(digest))


@dataclass(frozen=True)
class FilePart:
    """A file that is read for a micro-batch: a whole one, or a copy of a stretch of the file ``shown``, whose lines are
    ``header_lines`` of the header and then those behind the first ``lines``."""

    path: Path
    name: str
    shown: Path | None = None
    header_lines: int = 0
    lines: int = 0

    def describe(self, text: str) -> str:
        """Return a text about the copy as one about the file that it is of.

        >>> part = FilePart(Path("/s/0.csv"), "a.csv", Path("/in/a.csv"), header_lines=1, lines=40)
        >>> part.describe("`/s/0.csv`, line 3: `n` is no int; `/s/0.csv` begins")
        '`/in/a.csv`, line 42: `n` is no int; `/in/a.csv` begins'
        """
        if self.shown is None:
            return text

        def shift(place: re.Match[str]) -> str:
            line = int(place[2])
            return (
                f"{self.shown}{place[1]}{line if line <= self.header_lines else line - self.header_lines + self.lines}"
            )

        text = re.sub(re.escape(str(self.path)) + r"(`?, (?:a )?line (?:from )?)(\d+)", shift, text)
        return text.replace(str(self.path), str(self.shown))


def digest_of_bytes(*parts: bytes) -> str:
    """Return a digest of bytes, in hexadecimal."""
    digest = b""
    for part in parts:
        digest = mmh3.hash_bytes(digest + part)
    return digest.hex()


def mark_of(descriptor: int, stop: int) -> str:
    """Return a digest of the beginning and the end of the first ``stop`` bytes of an open file; "" for no bytes.

    Raises :class:`OSError`.
    """
    if stop <= 0:
        return ""
    size = min(stop, ENDS)
    return digest_of_bytes(os.pread(descriptor, size, 0), os.pread(descriptor, size, stop - size))


def skipped_position(path: Path, base: str, name: str, inode: int) -> Position:
    """Return the position of a file that is not read. It is known again by its first bytes, so many as ``header``, in
    which there are so many ``lines``."""
    try:
        with path.open("rb") as stream:
            head = stream.read(ENDS)
    except OSError:
        head = b""
    lines = head.count(b"\n") if len(head) < ENDS else ENDS
    return Position(base, name, inode, SKIPPED, lines=lines, header=len(head), mark=digest_of_bytes(head), is_old=True)


def continues(path: Path, position: Position, inode: int | None = None) -> bool:
    """Return whether a file begins with what was taken of a position; with ``inode``, only if that is its number."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        state = os.fstat(descriptor)
        if inode is not None and state.st_ino != inode:
            return False
        if position.stop == SKIPPED:
            return digest_of_bytes(os.pread(descriptor, position.header, 0)) == position.mark
        return state.st_size >= position.stop and mark_of(descriptor, position.stop) == position.mark
    except OSError:
        return False
    finally:
        os.close(descriptor)
