"""Tell devices, which may have no end, from files and pipes."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from acep.errors import DataError

__all__ = ["bytes_of_file", "is_device"]


def is_device(source: Any) -> bool:
    """Return whether an open file is a device, and no terminal.

    >>> with open("/dev/zero", "rb") as zeros:
    ...     is_device(zeros)
    True
    """
    try:
        state = os.fstat(source.fileno())
        return stat.S_ISBLK(state.st_mode) or (stat.S_ISCHR(state.st_mode) and not source.isatty())
    except (OSError, ValueError, AttributeError):  # no file of the system
        return False


def bytes_of_file(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file that is read as a whole.

    Raises :class:`OSError` or :class:`ValueError`, and :class:`DataError` for a device that is not empty.
    """
    with Path(path).open("rb") as source:
        if is_device(source) and source.read(1):
            raise DataError(f"`{path}` is a device, which may have no end", hint="name a file", code="file_read")
        return source.read()
