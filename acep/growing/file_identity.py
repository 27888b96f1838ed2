"""Tell whether a file is still the one that was taken: by the digest of its bytes, and the time of its creation."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import mmh3

__all__ = ["born_ns", "digest_of"]

CHUNK = 1 << 20  # bytes that are read at once
# The call statx(2) of Linux: arguments, the size of its answer, and what stands where in it.
AT_FDCWD, STATX_BTIME, SIZE = -100, 0x800, 256
MASK, BORN, BORN_PLACE = struct.Struct("<I"), struct.Struct("<qI"), 0x50


def digest_of(path: Path, size: int | None = None) -> str:
    """Return a digest of the bytes of a file, or of its first ``size`` bytes, in hexadecimal.

    Raises :class:`OSError`.
    """
    digest, left = b"", size
    with path.open("rb") as stream:
        while left is None or left > 0:
            chunk = stream.read(CHUNK if left is None else min(CHUNK, left))
            if not chunk:
                break
            digest = mmh3.hash_bytes(digest + chunk)
            left = None if left is None else left - len(chunk)
    return digest.hex()


def born_ns(path: Path, stat: os.stat_result) -> int:
    """Return when a file was created, in nanoseconds since 1970, or 0 if the system does not say. A file may get the
    number (``st_ino``) of one that was removed before, but it has a time of its own."""
    seconds = getattr(stat, "st_birthtime", None)  # macOS
    return _born_ns()(os.fsencode(path)) if seconds is None else int(seconds * 10**9)


@lru_cache(maxsize=1)
def _born_ns() -> Callable[[bytes], int]:
    """Return the function that asks Linux, through its C library; elsewhere one that returns 0."""
    try:
        import ctypes

        statx = ctypes.CDLL(None).statx
    except (ImportError, OSError, AttributeError):
        return lambda path: 0

    def ask(path: bytes) -> int:
        answer = ctypes.create_string_buffer(SIZE)
        if statx(AT_FDCWD, path, 0, STATX_BTIME, answer) or not MASK.unpack_from(answer)[0] & STATX_BTIME:
            return 0
        seconds, ns = BORN.unpack_from(answer, BORN_PLACE)
        return int(seconds * 10**9 + ns)

    return ask
