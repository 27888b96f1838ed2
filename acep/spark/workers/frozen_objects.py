"""Spare Python workers the search for garbage among the modules that they have loaded.

After each task PySpark collects garbage (`pyspark/daemon.py`). Python then visits all objects of the process, most of
which are those of modules and stay: 20 to 40 ms of processor time a task. Frozen objects are not visited.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

__all__ = ["run_task"]

FREEZING_TASKS = (1, 3)  # of a process: before its first work, and once modules that its work imports are loaded
_N_TASKS = [0]  # of this process


def run_task(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Return what a function returns in a task of a Python worker.

    >>> run_task(max, 1, 2)
    2
    """
    _N_TASKS[0] += 1
    if _N_TASKS[0] in FREEZING_TASKS:
        gc.collect()  # frozen garbage would stay
        gc.freeze()
    return function(*arguments, **keywords)
