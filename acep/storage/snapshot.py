"""Seal state as bytes: magic, format version, fingerprint of the query, checksum, payload; never pickle.

A payload is JSON followed by the bytes that were in it, all compressed by LZ4. Buckets on Spark are sealed with every
micro-batch, and for them zlib (version 2) and a checksum by BLAKE2 (up to version 3) were too slow. Invalid bytes raise
:class:`SnapshotError` before anything of the old state is lost.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

import mmh3

from acep.errors import SnapshotError
from acep.storage.frame import digest

__all__ = ["VERSION", "seal", "unseal"]

MAGIC = b"ACEPSTAT"
VERSION = 4
HEADER = struct.Struct("<8sHH16s16sQ")
LIMIT = 2**32
DENSEST = 255  # the most bytes of content per compressed byte
SIZE = struct.Struct("<Q")  # of the JSON
BYTES = "\0bytes"  # the JSON key that stands for bytes, with their number


def seal(payload: Any, fingerprint: str) -> bytes:
    """Return a JSON-like payload, which may have bytes in it, as bytes bound to the query with this fingerprint.

    >>> unseal(seal({"a": [1, None, b"xyz"]}, "q"), "q")
    {'a': [1, None, b'xyz']}
    """
    sections: list[bytes] = []

    def put(value: Any) -> dict[str, int]:
        if not isinstance(value, bytes):
            raise TypeError(f"{type(value).__name__} is no part of a state")
        sections.append(value)
        return {BYTES: len(value)}

    text = json.dumps(payload, separators=(",", ":"), default=put).encode()
    content = b"".join([SIZE.pack(len(text)), text, *sections])
    packed: bytes = _codec().compress(content, asbytes=True)
    body = SIZE.pack(len(content)) + packed
    query = digest(fingerprint.encode(errors="surrogatepass"))
    return HEADER.pack(MAGIC, VERSION, 0, query, mmh3.hash_bytes(body), len(body)) + body


def unseal(data: bytes, fingerprint: str, difference: Callable[[Any], SnapshotError | None] | None = None) -> Any:
    """Return the payload of sealed bytes. ``difference`` tells from the payload of another fingerprint how it differs
    (``None``: it cannot tell).

    Raises :class:`SnapshotError` if the bytes are not a state, are damaged, or belong to another format version or
    another query.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SnapshotError(f"a snapshot is bytes, not {type(data).__name__}", code="state_damaged")
    data = bytes(data)
    if len(data) < HEADER.size or data[:8] != MAGIC:
        raise SnapshotError(
            "these bytes are not a snapshot of acep", hint="use what Matcher.snapshot() gave", code="state_damaged"
        )
    _, version, _, query, checksum, length = HEADER.unpack_from(data)
    body = data[HEADER.size :]
    if not 2 <= version <= VERSION:
        raise SnapshotError(
            f"the snapshot has format version {version}, this acep reads versions 2 to {VERSION}",
            hint="restore it with the acep that took it, or start without it",
            code="state_version",
        )
    if length != len(body) or checksum != (digest(body) if version < 4 else mmh3.hash_bytes(body)):
        raise SnapshotError(
            "the snapshot is damaged: its checksum does not fit", hint="use an older copy", code="state_damaged"
        )
    is_same_query = query == digest(fingerprint.encode(errors="surrogatepass"))
    mismatch = SnapshotError(
        "the snapshot belongs to another query, or to a stream with other columns",
        hint="restore it with the query that it was taken from, or start without it",
    )
    if not is_same_query and difference is None:
        raise mismatch
    try:
        payload = _payload(_content_by_zlib(body) if version == 2 else _content(body))
    except SnapshotError:
        raise
    except (OSError, zlib.error, struct.error, ValueError, RecursionError):
        raise SnapshotError("the snapshot is damaged: its content cannot be read", code="state_damaged") from None
    if not is_same_query:
        raise (None if difference is None else difference(payload)) or mismatch
    return payload


def _codec() -> Any:
    import pyarrow as pa

    return pa.Codec("lz4_raw")


def _content(body: bytes) -> bytes:
    (size,) = SIZE.unpack_from(body)
    if size > LIMIT:
        raise SnapshotError("the snapshot is larger than 4 GiB")
    if size > DENSEST * len(body):
        raise ValueError("more than these bytes can hold")
    content: bytes = _codec().decompress(body[SIZE.size :], size, asbytes=True)
    return content


def _content_by_zlib(body: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(body, LIMIT)
    if unpacker.unconsumed_tail:
        raise SnapshotError("the snapshot is larger than 4 GiB")
    return content


def _payload(content: bytes) -> Any:
    offset = SIZE.size + SIZE.unpack_from(content)[0]
    if offset > len(content):
        raise ValueError("less than there should be")

    def take(json_object: dict[str, Any]) -> Any:  # called in the order in which the bytes were written
        nonlocal offset
        if BYTES not in json_object:
            return json_object
        size = json_object[BYTES]
        if len(json_object) != 1 or type(size) is not int or not 0 <= size <= len(content) - offset:
            raise ValueError("bytes")
        offset += size
        return content[offset - size : offset]

    payload = json.loads(content[SIZE.size : offset], object_hook=take)
    if offset != len(content):
        raise ValueError("more than there should be")
    return payload
