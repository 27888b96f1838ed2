"""Copy pipes and standard input to files, because a stream may have to be read twice, and refuse what has no end."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from acep.errors import DataError
from acep.events.files.formats import COMPRESSED, reason_of
from acep.events.files.options import Options, too_long
from acep.storage.devices import is_device

__all__ = ["spool"]

CHUNK = 1 << 20
MAGIC = b"PAR1"
WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)  # the mark of UTF-32 LE begins with one of them
WIDTH = 4  # bytes of a letter in such files, at most


def spool(path: Path | None, copy_path: Path, form: str, packed: str | None, options: Options) -> str | None:
    """Copy the bytes of a pipe, a device or standard input (``None``) to a file. Return how they are compressed:
    ``packed``, or by their beginning.

    Raises :class:`DataError` for a device that is no terminal, unless it is empty, and for a line of text that is
    longer than the options allow: either may have no end.
    """
    name = "standard input" if path is None else str(path)
    head = b""
    try:
        with copy_path.open("wb") as copy:
            for chunk in _chunks(path, name):
                if not head:
                    head = chunk
                    is_text = form != "parquet" and packed is None and _detect_compression(head) is None
                    lines = _LineLimit(name, head, options) if is_text and not options.skip_bad_lines else None
                copy.write(chunk)
                if lines is not None:
                    lines.see(chunk)
                if form == "parquet" and not head.startswith(MAGIC[: len(head)]):
                    break  # its reader says so
    except DataError:
        raise
    except (OSError, ValueError, AttributeError, TypeError) as wrong:
        quoted_name = name if path is None else f"`{name}`"
        raise DataError(f"{quoted_name} cannot be read: {reason_of(wrong)}", code="file_read") from None
    return _detect_compression(head) if packed is None and form != "parquet" else packed


def _chunks(path: Path | None, name: str) -> Iterator[bytes]:
    """Yield bytes as they come."""
    if path is None:
        yield from _read(getattr(sys.stdin, "buffer", sys.stdin), name)
        return
    with path.open("rb") as pipe:
        yield from _read(pipe, name)


def _read(source: Any, name: str) -> Iterator[bytes]:
    read = getattr(source, "read1", source.read)  # a read that waits for many would not notice a signal
    while chunk := read(CHUNK):
        if is_device(source):
            raise DataError(
                f"`{name}` is a device, which may have no end", hint="copy what is meant to a file", code="file_read"
            )
        yield chunk


class _LineLimit:
    """A check of the lengths of lines, chunk by chunk: whatever has no end of a line may have no end at all."""

    def __init__(self, name: str, head: bytes, options: Options) -> None:
        self.name, self.options = name, options
        self.limit = options.max_line * (WIDTH if head.startswith(WIDE) else 1)
        self.line, self.size = 1, 0

    def see(self, chunk: bytes) -> None:
        """Raise :class:`DataError` if the line that was not at its end is too long."""
        end = chunk.find(b"\n")
        self.size += len(chunk) if end < 0 else end
        if self.size > self.limit:
            raise too_long(self.name, self.line, self.options)
        if end >= 0:
            self.line += chunk.count(b"\n")
            self.size = len(chunk) - chunk.rfind(b"\n") - 1


def _detect_compression(head: bytes) -> str | None:
    """Return the compression of a pipe by its first bytes, or ``None``."""
    if head[:2] == b"\x1f\x8b":
        return COMPRESSED[".gz"]
    return COMPRESSED[".zst"] if head[:4] == b"\x28\xb5\x2f\xfd" else None
