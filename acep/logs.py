"""Log to the module `logging` if the process has loaded it: without it nobody can listen, and it takes time to load."""

from __future__ import annotations

import sys

from acep.errors import printable

__all__ = ["debug", "info", "listens"]

DEBUG, INFO = 10, 20


def listens(name: str, level: int = DEBUG) -> bool:
    """Return whether a message of the logger ``name`` would be seen."""
    logging = sys.modules.get("logging")
    return logging is not None and bool(logging.getLogger(name).isEnabledFor(level))


def debug(name: str, message: str, *values: object) -> None:
    """Log a message of the level ``debug``."""
    if listens(name, DEBUG):
        sys.modules["logging"].getLogger(name).debug(message, *map(_printable, values))


def info(name: str, message: str, *values: object) -> None:
    """Log a message of the level ``info``."""
    if listens(name, INFO):
        sys.modules["logging"].getLogger(name).info(message, *map(_printable, values))


def _printable(value: object) -> object:
    """Return a value of a message without characters that a reader of the log would act upon: a name of a file may have
    any."""
    return printable(value) if isinstance(value, str) else value
