"""Cut files of text into blocks of whole lines, whose lines have a bound, and blocks into lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from acep.errors import DataError
from acep.events.files.finding import EventFile
from acep.events.files.options import Options, too_long
from acep.events.files.text_bytes import text_chunks

__all__ = ["count_lines", "cut", "line_blocks", "lines_of", "parts_of", "rows_at_once"]

CELLS = 1 << 22  # rows times columns that are read at once


def line_blocks(
    source: EventFile, options: Options, size: int, refuse: Callable[[DataError], None]
) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines of a file of text, each with the number of its first line (from 1).

    ``refuse`` is called with the error for a line that is longer than the options allow: it raises it, or the line is
    empty.
    """
    number, pending, is_long = 1, b"", False
    for chunk in text_chunks(source, options, size):
        start = chunk.find(b"\n") if is_long else 0
        if start < 0:
            continue
        pending, is_long = pending + chunk[start:], False
        end = pending.rfind(b"\n") + 1
        if end:
            block, pending = pending[:end], pending[end:]
            if len(block) > options.max_line:
                lines = block.split(b"\n")
                for i, line in enumerate(lines):
                    if len(line) > options.max_line:
                        refuse(too_long(source.name, number + i, options))
                        lines[i] = b""
                block = b"\n".join(lines)
            yield number, block
            number += block.count(b"\n")
        if len(pending) > options.max_line:
            refuse(too_long(source.name, number, options))
            pending, is_long = b"", True
    if pending.strip():
        yield number, pending + b"\n"


def parts_of(block: bytes, number: int, n_columns: int) -> Iterator[tuple[int, bytes]]:
    """Yield a block in parts of so few lines that rows of many columns fit into memory, each with its first line's
    number; that of the block is ``number``."""
    while block:
        head, block = cut(block, rows_at_once(n_columns))
        yield number, head
        number += head.count(b"\n")


def rows_at_once(n_columns: int) -> int:
    """Return how many rows of so many columns are read at once.

    >>> rows_at_once(10_000), rows_at_once(10**9)
    (419, 1)
    """
    return max(CELLS // max(n_columns, 1), 1)


def lines_of(block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a block that are not blank, each with its number; that of the first line is ``number``."""
    for line_number, line in enumerate(block.split(b"\n"), number):
        if stripped := line.strip():
            yield line_number, stripped


def count_lines(block: bytes) -> int:
    """Count the lines of a block that are not blank."""
    if b"\n\n" in block or b"\r\n" in block or block[:1] in b"\r\n \t" or b"\n " in block or b"\n\t" in block:
        return sum(1 for line in block.split(b"\n") if line.strip())
    return block.count(b"\n")


def cut(block: bytes, n_lines: int) -> tuple[bytes, bytes]:
    r"""Cut a block behind so many lines.

    >>> cut(b"1\n2\n3\n", 2)
    (b'1\n2\n', b'3\n')
    """
    end = -1
    for _ in range(n_lines):
        end = block.find(b"\n", end + 1)
        if end < 0:
            return block, b""
    return block[: end + 1], block[end + 1 :]
