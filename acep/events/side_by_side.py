"""Do several things at once, on threads that live as long as the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["results_of"]

Result = TypeVar("Result")


def results_of(tasks: Sequence[Callable[[], Result]], threads: int) -> list[Result]:
    """Return the results of functions, which up to ``threads`` threads call. They help where the functions work without
    the interpreter's lock, as those of Arrow do. Raises what the first of them that fails raises.

    >>> results_of([lambda: 1, lambda: 2], threads=2)
    [1, 2]
    """
    if threads == 1 or len(tasks) < 2:
        return [task() for task in tasks]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]
