"""Print warnings and log messages of acep on stderr, one line each, from a level on (``--log-level``)."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from acep.cli.spelling import as_typed

__all__ = ["told"]


class _OnStderr(logging.Handler):
    """Write each message as one line, to the stderr of the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"acep: {record.levelname.lower()}: {record.getMessage()}\n")


@contextmanager
def told(level: str) -> Iterator[None]:
    """Print what acep logs at ``level`` or above, and Python's warnings as log messages of the level ``warning``."""
    log, handler = logging.getLogger("acep"), _OnStderr()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        log.warning("%s", as_typed(str(message)))

    before = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(level.upper())
    log.propagate = False  # a handler of the root would print the message a second time
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show
            yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]
