"""Memory that is too small for what a query needs, said in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import clear_frames

from acep.errors import EngineError

__all__ = ["short_of_memory", "told_if_short"]

HINT = (
    'output="count", "points" or "bundles" makes no matches, limit= makes a few, blocks of matches come some at a time;'
    " a shorter window or a Budget keeps fewer partial matches"
)


@contextmanager
def told_if_short() -> Iterator[None]:
    """Raise :class:`EngineError` in place of a :class:`MemoryError`, also of NumPy and of Arrow.

    >>> with told_if_short():
    ...     raise MemoryError("std::bad_alloc")
    Traceback (most recent call last):
    acep.errors.EngineError: memory is too small for the matches and partial matches of this query...
    """
    try:
        yield
    except MemoryError as error:
        clear_frames(error.__traceback__)  # so that there is some again
        raise short_of_memory() from None


def short_of_memory() -> EngineError:
    """The error that says so.

    >>> str(short_of_memory()).splitlines()[0]
    'memory is too small for the matches and partial matches of this query'
    """
    return EngineError("memory is too small for the matches and partial matches of this query", hint=HINT)
