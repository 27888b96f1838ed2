"""State as bytes: magic, format version, fingerprint of the query, checksum, payload. Never pickle.

A payload is JSON, compressed. Whatever is wrong with the bytes is a :class:`SnapshotError` before anything
of the old state is lost.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

from acep.errors import SnapshotError

__all__ = ["VERSION", "seal", "unseal"]

MAGIC = b"ACEPSTAT"
VERSION = 1
HEADER = struct.Struct("<8sHH16s16sQ")
LIMIT = 2**32


def _digest(data: bytes) -> bytes:
    import hashlib  # loads OpenSSL, which matching does not need

    return hashlib.blake2b(data, digest_size=16).digest()


def seal(payload: Any, fingerprint: str) -> bytes:
    """Bytes of a JSON-like payload, bound to the query with this fingerprint.

    >>> unseal(seal({"a": [1, None]}, "q"), "q")
    {'a': [1, None]}
    """
    body = zlib.compress(json.dumps(payload, separators=(",", ":")).encode(), 1)
    return (
        HEADER.pack(MAGIC, VERSION, 0, _digest(fingerprint.encode(errors="surrogatepass")), _digest(body), len(body))
        + body
    )


def unseal(data: bytes, fingerprint: str) -> Any:
    """The payload of sealed bytes.

    Raises :class:`SnapshotError` if the bytes are not a state, are damaged, or belong to another format
    version or another query.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SnapshotError(f"a snapshot is bytes, not {type(data).__name__}")
    data = bytes(data)
    if len(data) < HEADER.size or data[:8] != MAGIC:
        raise SnapshotError("these bytes are not a snapshot of acep", hint="use what Matcher.snapshot() gave")
    _, version, _, query, checksum, length = HEADER.unpack_from(data)
    body = data[HEADER.size :]
    if version != VERSION:
        raise SnapshotError(f"the snapshot has format version {version}, this acep reads version {VERSION}")
    if length != len(body) or _digest(body) != checksum:
        raise SnapshotError("the snapshot is damaged: its checksum does not fit", hint="use an older copy")
    if query != _digest(fingerprint.encode(errors="surrogatepass")):
        raise SnapshotError(
            "the snapshot belongs to another query, or to a stream with other columns",
            hint="restore it with the query that it was taken from, or start without it",
        )
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(body, LIMIT)
        if unpacker.unconsumed_tail:
            raise SnapshotError("the snapshot is larger than 4 GiB")
        return json.loads(text)
    except (zlib.error, ValueError, RecursionError):
        raise SnapshotError("the snapshot is damaged: its content cannot be read") from None
