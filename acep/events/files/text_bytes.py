"""Read files of text as UTF-8 bytes, in chunks: decompressed, without a mark at the beginning, and within bounds."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from acep.errors import DataError
from acep.events.files.finding import EventFile
from acep.events.files.formats import reason_of
from acep.events.files.options import Options

__all__ = ["VALUE", "check_expansion", "is_wide", "text_chunks"]

CHUNK = 1 << 20
VALUE = 8  # bytes of a number
SMALL = 64 << 20
"""The bytes that a compressed file may always have."""
# The longer marks come first, as one begins with another.
MARKS = (
    (codecs.BOM_UTF8, None),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def text_chunks(source: EventFile, options: Options, size: int = CHUNK) -> Iterator[bytes]:
    """Yield the bytes of a file of text as UTF-8, ``size`` bytes of the file at a time.

    Files in UTF-16 and UTF-32 are known by the mark at their beginning. Raises :class:`DataError` for a file that
    cannot be read, or that expands to more than the options allow.
    """
    decoder, is_first, n_bytes = None, True, 0
    try:
        with source.open() as stream:
            while data := stream.read(size):
                n_bytes += len(data)
                if source.packed is not None:
                    check_expansion(source, options, n_bytes)
                if is_first:
                    is_first = False
                    data, decoder = _without_mark(data, source.name)
                text = data if decoder is None else decoder.decode(data).encode()
                if text:
                    yield text
            if decoder is not None and (text := decoder.decode(b"", final=True).encode()):
                yield text
    except MemoryError:
        raise
    except (OSError, pa.ArrowException) as wrong:
        raise DataError(
            f"`{source.name}` cannot be read: {reason_of(wrong)}", hint="is it whole?", code="file_read"
        ) from None
    except UnicodeError as wrong:
        where = f"`{source.name}` is no whole text in {getattr(wrong, 'encoding', 'UTF-16').upper()}"
        raise DataError(where, hint="is it whole? or save the file as UTF-8", code="data_value") from None


def is_wide(head: bytes) -> bool:
    """Return whether a file that begins so is in UTF-16 or UTF-32, by the mark at its beginning.

    >>> is_wide("a".encode("utf-16")), is_wide(b"a")
    (True, False)
    """
    return any(head.startswith(mark) for mark, encoding in MARKS if encoding is not None)


# How files that are no text begin, by what they are.
NO_TEXT = (
    (b"\x1f\x8b", "compressed with gzip", "name it so: {}.gz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "name it so: {}.zst"),
    (b"\xfd7zXZ\0", "compressed with xz", "decompress it first, or compress it with gzip or zstd"),
    (b"BZh91AY&SY", "compressed with bzip2", "decompress it first, or compress it with gzip or zstd"),
    (b"PK\x03\x04", "a zip archive, or a workbook", "take the file out of it, or save it as CSV"),
    (b"PAR1\x15", "a Parquet file", "name it so: {}.parquet"),
    (b"\x89HDF\r\n", "an HDF5 file", "save it as CSV or Parquet"),
    (b"ARROW1\0", "a file of Arrow", "save it as Parquet"),
)


def _without_mark(data: bytes, name: str) -> tuple[bytes, codecs.IncrementalDecoder | None]:
    """Return the first bytes without the mark of their encoding, and what decodes them (``None``: they are UTF-8)."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data[len(mark) :], None if encoding is None else codecs.getincrementaldecoder(encoding)()
    for beginning, what, hint in NO_TEXT:
        if data.startswith(beginning):
            raise DataError(f"`{name}` is {what}", hint=hint.format(Path(name).name), code="file_read")
    if data[1:2] == b"\0" or data[:1] == b"\0":
        raise DataError(
            f"`{name}` is in UTF-16 or UTF-32, without the mark at its beginning that would tell which, or no text",
            hint="save the file as UTF-8",
            code="data_value",
        )
    return data, None


def check_expansion(source: EventFile, options: Options, n_bytes: int, what: str = "expanded") -> None:
    """Raise :class:`DataError` if a file has more bytes than the options allow for one of its size. ``what`` says when
    it has them: when it is expanded, or when its values are read."""
    size = source.path.stat().st_size
    limit = max(SMALL, int(options.max_expansion * size))
    if n_bytes > limit:
        raise DataError(
            f"`{source.name}` has {size:,} bytes, and more than {limit >> 20:,} MB when it is {what}",
            hint=f"is it what it seems? max_expansion={10 * n_bytes // size} allows ten times as much",
            code="file_read",
        )
