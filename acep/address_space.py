"""Say in one line that the address space of the process is too small, where its libraries would fail or end it."""

from __future__ import annotations

import mmap
import os

from acep.errors import EngineError

__all__ = ["check_address_space", "is_short_of_address_space", "refuse_small_address_space", "too_small"]

MINIMUM = 384 << 20
"""Bytes. With less, threads of the libraries cannot start, which ends the process without a message
(``tests/test_address_space.py`` tries smaller and larger ones)."""

ROOM = 64 << 20
"""Bytes that a thread may reserve at once."""


def check_address_space() -> None:
    """Let libraries start few threads where the address space is limited (``ulimit -v``). Raises :class:`EngineError`
    where it does not suffice for them."""
    if _limit() is None:
        return
    for name in ("OMP_NUM_THREADS", "ARROW_IO_THREADS"):
        os.environ.setdefault(name, "1")
    refuse_small_address_space("this command")


def refuse_small_address_space(what: str) -> None:
    """Raise :class:`EngineError` where the address space is limited and too small for the libraries of ``what``, as
    these end the process without a traceback."""
    limit = _limit()
    if limit is not None and limit < MINIMUM:
        raise too_small(limit, what)


def is_short_of_address_space() -> bool:
    """Return whether the address space is limited and nearly used up, so that any call may have failed for it."""
    if _limit() is None:
        return False
    try:
        mmap.mmap(-1, ROOM).close()
    except (OSError, ValueError):
        return True
    return False


def too_small(limit: int | None = None, what: str = "this command") -> EngineError:
    """Return the error for an address space of ``limit`` bytes (default: the limit of this process) and ``what``."""
    size = (_limit() if limit is None else limit) or 0
    return EngineError(
        f"an address space of {size >> 20} MB is too small for {what}",
        hint=f"at least {MINIMUM >> 20} MB, and more for many matches: ulimit -v {MINIMUM >> 10}",
        code="engine_memory",
    )


def _limit() -> int | None:
    """Return the most bytes of address space that the process may have; ``None``: there is no limit."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit
