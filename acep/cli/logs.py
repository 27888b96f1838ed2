"""Print warnings and log messages of acep on stderr, one line each, from a level on (``--log-level``)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from acep.cli.terminal import say
from acep.errors import printable

__all__ = ["log_to_stderr"]


@contextmanager
def log_to_stderr(level: str) -> Iterator[None]:
    """Print what acep logs at ``level`` or above, and Python's warnings unless it is ``error``."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        from acep.cli.spelling import as_typed  # which most runs do not need

        if level != "error":
            say(f"acep: warning: {printable(as_typed(str(message)))}")

    with warnings.catch_warnings(), nullcontext() if level in ("warning", "error") else _handle_logs(level):
        warnings.showwarning = show
        yield


@contextmanager
def _handle_logs(level: str) -> Iterator[None]:
    import logging  # which takes time to load; the library logs no warnings

    class OnStderr(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(f"acep: {record.levelname.lower()}: {printable(record.getMessage())}")

    log, handler = logging.getLogger("acep"), OnStderr()
    previous = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(level.upper())
    log.propagate = False  # a handler of the root would print the message a second time
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(previous[0])
        log.propagate = previous[1]
