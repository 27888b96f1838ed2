"""The file format of ``history.acep``: a small container of named sections of bytes.

A file has a magic number, a format version, a checksum, a table of contents in JSON, and the sections. Never a pickle.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping

from acep.errors import SnapshotError

__all__ = ["VERSION", "read_sections", "write_sections"]

MAGIC = b"ACEPHIST"
VERSION = 1
HEADER = struct.Struct("<8sHH16sI")


def write_sections(sections: Mapping[str, bytes]) -> bytes:
    """Return the bytes of a file with these sections.

    >>> read_sections(write_sections({"one": b"1", "none": b""}))
    {'one': b'1', 'none': b''}
    """
    table = json.dumps([[name, len(data)] for name, data in sections.items()]).encode()
    rest = table + b"".join(sections.values())
    return HEADER.pack(MAGIC, VERSION, 0, _digest(len(table), rest), len(table)) + rest


def read_sections(data: bytes) -> dict[str, bytes]:
    """Read the sections of a file. Raises :class:`SnapshotError` for other, damaged or newer bytes."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SnapshotError(f"a history is read from bytes, not {type(data).__name__}")
    data = bytes(data)
    if len(data) < HEADER.size or data[: len(MAGIC)] != MAGIC:
        raise SnapshotError("these bytes are not a history of acep", hint="use a file that `acep learn` wrote")
    _, version, zero, checksum, length = HEADER.unpack_from(data)
    if version != VERSION:
        raise SnapshotError(f"the history has format version {version}, this acep reads version {VERSION}")
    rest = data[HEADER.size :]
    if zero or _digest(length, rest) != checksum:
        raise SnapshotError("the history is damaged: its checksum does not fit", hint="use an older copy")
    try:
        sections, at = {}, length
        for name, size in json.loads(rest[:length]):
            if not isinstance(name, str) or type(size) is not int or size < 0 or name in sections:
                raise ValueError("no section")
            sections[name] = rest[at : at + size]
            at += size
        if at != len(rest):
            raise ValueError("more or fewer bytes than the sections need")
    except (ValueError, TypeError, RecursionError):
        raise SnapshotError("the history is damaged: its sections cannot be read") from None
    return sections


def _digest(length: int, rest: bytes) -> bytes:
    import hashlib  # here, since it loads OpenSSL, which matching does not need

    return hashlib.blake2b(struct.pack("<I", length) + rest, digest_size=16).digest()
