"""Do work in a child process that is killed before one of its calls that touch a file."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

__all__ = ["is_killed"]


def is_killed(number: int, work: Callable[[], object]) -> bool:
    """Do the work in a child, which is killed before the call with this number, counted from 1. Return whether it came
    so far. Raises :class:`AssertionError` if the work fails."""
    pid = os.fork()
    if pid == 0:
        _do_until_killed(number, work)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return os.WIFSIGNALED(status)


def _do_until_killed(number: int, work: Callable[[], object]) -> None:
    calls_left = number

    def count(_: Any, event: str, call: Any) -> None:
        nonlocal calls_left
        if event == "c_call" and (call.__module__ == "posix" or type(call.__self__).__module__ == "_io"):
            calls_left -= 1
            if calls_left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    try:
        work()
    except BaseException:  # noqa: BLE001 - the child must not go on as a second test
        sys.setprofile(None)
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)
