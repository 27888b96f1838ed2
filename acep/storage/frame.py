"""Frame bytes of a file: magic, format version, checksum, a table of contents, and the rest; never pickle.

The checksum detects accidents and is no signature: readers check what is in the frame as well.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from acep.errors import SnapshotError

__all__ = ["HEADER", "FileFrame", "digest"]

HEADER = struct.Struct("<8sHH16sI")  # magic, version, 0, checksum, bytes of the table


def digest(data: bytes) -> bytes:
    """Return a checksum of 16 bytes."""
    import hashlib  # here, since it loads OpenSSL, which matching does not need

    return hashlib.blake2b(data, digest_size=16).digest()


@dataclass(frozen=True)
class FileFrame:
    """The frame of one kind of file, which messages call ``what``; ``hint`` says where such bytes come from.

    >>> frame = FileFrame(b"ACEPTEST", 1, "test", "make one")
    >>> frame.read(frame.write(b"table", b"content"))
    (b'table', b'content')
    """

    magic: bytes
    version: int
    what: str
    hint: str

    def write(self, table: bytes, content: bytes) -> bytes:
        """Return the framed bytes."""
        body = table + content
        checksum = digest(struct.pack("<I", len(table)) + body)
        return HEADER.pack(self.magic, self.version, 0, checksum, len(table)) + body

    def read(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the table and the rest. Raises :class:`SnapshotError` for other, damaged or newer bytes."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise SnapshotError(f"a {self.what} is read from bytes, not {type(data).__name__}", code="state_damaged")
        data = bytes(data)
        if len(data) < HEADER.size or data[: len(self.magic)] != self.magic:
            raise SnapshotError(f"these bytes are not a {self.what} of acep", hint=self.hint, code="state_damaged")
        _, version, zero, checksum, length = HEADER.unpack_from(data)
        if version != self.version:
            raise SnapshotError(
                f"the {self.what} has format version {version}, this acep reads version {self.version}",
                code="state_version",
            )
        body = data[HEADER.size :]
        if zero or digest(struct.pack("<I", length) + body) != checksum:
            raise SnapshotError(
                f"the {self.what} is damaged: its checksum does not fit", hint="use an older copy", code="state_damaged"
            )
        return body[:length], body[length:]
