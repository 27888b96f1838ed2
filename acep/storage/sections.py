"""Store a ``history.acep``: named sections of bytes in a frame (:mod:`acep.storage.frame`)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from acep.errors import SnapshotError
from acep.storage.frame import FileFrame

__all__ = ["read_sections", "write_sections"]

FRAME = FileFrame(b"ACEPHIST", 1, "history", "use a file that `acep learn` wrote")


def write_sections(sections: Mapping[str, bytes]) -> bytes:
    """Return the bytes of a file with these sections.

    >>> read_sections(write_sections({"one": b"1", "none": b""}))
    {'one': b'1', 'none': b''}
    """
    table = json.dumps([[name, len(data)] for name, data in sections.items()]).encode()
    return FRAME.write(table, b"".join(sections.values()))


def read_sections(data: bytes) -> dict[str, bytes]:
    """Read the sections of a file. Raises :class:`SnapshotError` for other, damaged or newer bytes."""
    table, content = FRAME.read(data)
    try:
        sections, offset = {}, 0
        for name, size in json.loads(table):
            if not isinstance(name, str) or type(size) is not int or size < 0 or name in sections:
                raise ValueError("no section")
            sections[name] = content[offset : offset + size]
            offset += size
        if offset != len(content):
            raise ValueError("more or fewer bytes than the sections need")
    except (ValueError, TypeError, RecursionError):
        raise SnapshotError("the history is damaged: its sections cannot be read", code="state_damaged") from None
    return sections
