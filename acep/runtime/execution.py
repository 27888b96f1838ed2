"""Say how the plans of a stream run: in how many threads, and what is known of the events that come."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["IN_ONE_THREAD", "Execution"]


@dataclass(frozen=True)
class Execution:
    """How the plans of a stream run.

    ``threads`` may run the plans that run on the native core; this changes no result. ``lanes``: of the state to be
    loaded (``None``: as many as the threads can use). ``revisable``: partitions may be matched again. ``is_whole``: one
    batch comes, which has all events. ``is_file``: all matches may come at the end, and no snapshot is taken.
    ``ordered``: chosen matches may be found in their order.
    """

    threads: int = 1
    lanes: int | None = None
    revisable: bool = False
    is_whole: bool = False
    is_file: bool = False
    ordered: bool = True


IN_ONE_THREAD = Execution()
"""How a stream runs of which nothing else is known."""
